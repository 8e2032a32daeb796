"""What is written down of one question under one configuration."""

from pydantic import BaseModel, ConfigDict

from memcycle.agents.diagnoser import MissedView, ShownView
from memcycle.core.usage import Usage
from memcycle.evals.record import StoredConversation, Verdict


class QuestionRecord(BaseModel):
    """One question: what it was scored against, what was shown and missed, what was answered.

    Attributes:
        theta: Fingerprint of the configuration it was asked under. memory: which reading of the conversation.
        gold: The gold answer. wanted: gold turns. missed: those that were not shown, and where they were.
        held: By signal what those that were shown have more of than the best others, in the mean.
        evidence: Ids of the entries that were shown, best first. shown: how many of a kind, and their tokens.
        recall: Share of the gold turns shown; None without gold turns.
        f1, verdict: Of the answer; None where none was asked for.
        error: What the question crashed with; it then counts as wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: str
    id: str
    theta: str
    memory: int
    question: str
    category: str | None
    gold: str | None
    wanted: tuple[str, ...]
    missed: tuple[MissedView, ...] = ()
    held: dict[str, float] = {}
    evidence: tuple[str, ...] = ()
    shown: ShownView = ShownView()
    recall: float | None = None
    answer: str | None = None
    abstained: bool | None = None
    f1: float | None = None
    verdict: Verdict | None = None
    usage: Usage = {}
    error: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Conversation and question id."""
        return self.conversation, self.id

    @property
    def calls(self) -> int:
        """Model calls it took."""
        return sum(count["calls"] for count in self.usage.values())

    def blanked(self) -> "QuestionRecord":
        """The same without what tells why it failed: a control for what the diagnosis reads."""
        nothing = {"missed": (), "held": {}, "shown": ShownView(), "answer": None, "gold": None}
        return self.model_copy(update=nothing)


class StoredHome(BaseModel):
    """A conversation that is stored in a home. `memory`: how often it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: str
    memory: int
    stored: StoredConversation
