"""State of the evolve graph: plain JSON data, so that a killed run resumes from any checkpoint."""

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from memcycle.core.probe import Usage, count_usage

Action = Literal["apply", "revert", "explore", "stop"]


class Best(TypedDict):
    """The best configuration so far: its round, its scores, and which reading of memory it had."""

    round: int
    theta: dict[str, Any]
    train: float
    guard: float
    memory: int


class Proposal(TypedDict):
    """What was made of the Diagnoser's changes.

    Attributes:
        theta: The configuration with them. applied: what is another now, by path.
        clamped: Values that were out of range: path, asked, given.
        proposed: Changes to what is no dimension, kept as wishes.
        refused: Changes whose value does not fit, with the reason.
    """

    theta: dict[str, Any]
    applied: dict[str, Any]
    clamped: list[dict[str, Any]]
    proposed: list[dict[str, Any]]
    refused: list[dict[str, Any]]


class Row(TypedDict):
    """A round as it is reported.

    Attributes:
        decision: What became of its configuration. why: in words.
        train, guard: Its scores, 0 to 1. theta: its fingerprint. memory: how often conversations
            were read anew. origin: the action of the round before.
        best: Whether it is the best so far.
    """

    round: int
    decision: Action
    why: str
    train: float
    guard: float
    theta: str
    memory: int
    origin: str
    best: bool


class EvolveInput(TypedDict, total=False):
    """What evolution begins with.

    Attributes:
        request: What to evolve on, where the graph was built without a lab; see
            `memcycle.evolution.task.Request`.
    """

    request: dict[str, Any]


class EvolveState(EvolveInput, total=False):
    """State of the loop.

    Attributes:
        round: From 0, the start. theta: what this round evaluates. origin: how it came to be.
        changes: What it changed, by path.
        train, guard: Its scores. memory: how often conversations were read anew.
        best: See `Best`. flat: flat rounds in a row. stands: whether its own failures are diagnosed, or
            those of the best, since it dropped.
        diagnosis: The Diagnoser's output, or why it failed. proposal: what was made of it.
        action, why: The guard's decision. reread: whether memory is read anew before the next round.
        rows: The rounds so far. tried: what they changed and what became of it.
    """

    round: int
    theta: dict[str, Any]
    origin: str
    changes: dict[str, Any]
    train: float
    guard: float
    memory: int
    best: Best | None
    flat: int
    stands: bool
    diagnosis: dict[str, Any]
    proposal: Proposal | None
    action: Action
    why: str
    reread: bool
    rows: list[Row]
    tried: list[dict[str, Any]]
    usage: Annotated[Usage, count_usage]


class EvolveOutput(TypedDict):
    """What came of it: the best configuration, the rounds, and model calls by role."""

    best: Best
    rows: list[Row]
    memory: int
    usage: Usage
