"""The run behind `benchmarks.small_model`: the whole cycle, with everything the model proposed noted."""

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from functools import partial
from time import perf_counter
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI

from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.runner import ModelRole
from memcycle.core.entry import same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.probe import Usage, add_usage
from memcycle.core.settings import Verification
from memcycle.core.theta import Theta
from memcycle.core.turn import Session, Turn
from memcycle.memory import Memory
from memcycle.prompts import PromptSet
from memcycle.results import Refused
from memcycle.stores.bank import LEDGER_FILE

ATTEMPTS = 4
"""Calls of one run of a role: a reply, one more with a larger budget, both again where it did not fit."""
LADDER = 2
"""Further calls of a role, once: until it is known which way of asking the server takes."""
ASKED_TO_FORGET = re.compile(r"\b(forget|delete|remove|erase|wipe|clear|drop|discard)\b", re.IGNORECASE)


def budget(unit: str, k_r: int, rounds: int, probes: int, turns: int) -> int:
    """Runs of roles that one step may take at most.

    A chunk: Retriever, Judge and Retries, Refresher, Meta-Thinker, Constructor, fact check, Episode trigger,
    and an Episode writer for each episode that ends there, at each of its turns at most. An end: those of a
    chunk that still waits, Episode writer, Prober, for each probe an answer, a repair, a consolidation and an
    answer again, the Grader twice. A question: Retriever, Judge and Retries, Answerer, and for each round
    Meta-Thinker and Query-Reasoner, and once more the Meta-Thinker.
    """
    chunk = 6 + turns + 1 + k_r
    return {
        "chunk": chunk,
        "session's end": chunk + 2 + 4 * probes + 2,
        "question": 1 + 1 + k_r + 2 * rounds + 1 + 1,
    }[unit]


@dataclass
class Heard:
    """What the roles were asked and answered. Filled from several threads at once.

    Attributes:
        runs: By role. failed: those that ended in `RoleFailed`. calls: requests that were sent.
        facts: Texts the Constructor proposed. deletions: quotes with which it or the Refresher asked for one.
    """

    runs: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    facts: list[str] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)
    _noting: threading.Lock = field(default_factory=threading.Lock)

    def asked(self) -> None:
        """One request."""
        with self._noting:
            self.calls += 1

    def note(self, role: str, output: Any | None) -> None:
        """One run of a role; no output where it failed."""
        with self._noting:
            self.runs[role] += 1
            if output is None:
                self.failed[role] += 1
            elif role == "constructor":
                self.facts += [fact.text for fact in output.facts]
                self.deletions += [fact.quote for fact in output.facts if fact.edit == "DELETE"]
            elif role == "refresher":
                self.deletions += [edit.quote for edit in output.edits if edit.op == "DELETE"]


class CappedModel(ChatOpenAI):
    """A model that counts what it is asked and never asks for more than `cap` tokens.

    A reply that was cut is asked for once more with thousands; a tiny model that repeats itself fills them.
    """

    cap: int
    asked: Callable[[], None]

    def _get_request_payload(
        self, input_: Any, *, stop: list[str] | None = None, **more: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **more)
        self.asked()
        named = {name: payload[name] for name in ("max_tokens", "max_completion_tokens") if name in payload}
        return payload | {name: min(value, self.cap) for name, value in named.items()}


class _Noted(ModelRole[Any, Any]):
    """A role on a model that tells what it answered."""

    def __init__(self, role: str, model: BaseChatModel, prompts: PromptSet, heard: Heard) -> None:
        super().__init__(role, OUTPUTS[role], model, prompts)
        self._heard = heard

    def invoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        try:
            output = super().invoke(input, config, **more)
        except RoleFailed:
            self._heard.note(self.role, None)
            raise
        self._heard.note(self.role, output)
        return output


def noted_roles(model: BaseChatModel, heard: Heard) -> Roles:
    """All roles on the model, with the shipped prompts."""
    prompts = PromptSet.shipped()
    names = [one.name for one in fields(Roles) if one.name in OUTPUTS]
    made: dict[str, Any] = {name: _Noted(name, model, prompts, heard) for name in names}
    return Roles(**made, model_name="small model")


@dataclass(frozen=True)
class Step:
    """One chunk, session's end or question.

    Attributes:
        calls: Model calls, also of a step that broke off. runs: of roles that ended. allowed: runs at most.
        calls_allowed: model calls at most.
        broken: The provider's error it ended with, else empty.
    """

    unit: str
    name: str
    seconds: float
    usage: Usage
    calls: int
    runs: int
    allowed: int
    calls_allowed: int
    broken: str = ""


@dataclass
class Cycle:
    """What came of a run.

    Attributes:
        lost: Turns that are not there as they were said. doubled: those that are there twice.
        rejected: What was proposed and is reported as not stored.
        stored, refused, merged: What became of the proposed facts. silent: those of which nothing tells.
        deleted: Facts that were deleted. wrongly: those of them that rest on no request in a turn.
    """

    steps: list[Step] = field(default_factory=list)
    heard: Heard = field(default_factory=Heard)
    warnings: list[str] = field(default_factory=list)
    rejected: list[Refused] = field(default_factory=list)
    turns: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    entries: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    refused: int = 0
    merged: int = 0
    silent: list[str] = field(default_factory=list)
    deleted: int = 0
    wrongly: int = 0
    sessions: list[str] = field(default_factory=list)

    @property
    def over(self) -> list[Step]:
        """Steps that took more than they may."""
        return [step for step in self.steps if step.runs > step.allowed or step.calls > step.calls_allowed]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is lost, doubled, wrongly deleted, silent or over its budget."""
        return not (self.lost or self.doubled or self.silent or self.wrongly or self.over)

    @property
    def unproven(self) -> list[str]:
        """Why the run does not show what it is for, although nothing was found wrong: in words."""
        broken = [f"{step.unit} {step.name} broke off: {step.broken}" for step in self.steps if step.broken]
        left = [one for one in self.sessions if ": committed" not in one]
        why = [*broken, *(f"not committed: session {one}" for one in left)]
        return why if self.heard.facts else [*why, "the model proposed no fact"]


class Runner:
    """Runs sessions and questions through the whole cycle."""

    def __init__(self, memory: Memory, heard: Heard, theta: Theta, tell: Callable[[str], None]) -> None:
        self._memory, self._theta, self._tell = memory, theta, tell
        self.cycle = Cycle(heard=heard)

    def run(self, sessions: Sequence[Session], questions: Sequence[str], chunk: int) -> Cycle:
        """Remembers chunk by chunk, ends each session, asks the questions, then looks at what is stored."""
        for session in sessions:
            for start in range(0, len(session.turns), chunk):
                turns = list(session.turns[start : start + chunk])
                self._step(
                    "chunk", f"{turns[0].id} to {turns[-1].id}", partial(self._memory.add, turns), len(turns)
                )
            end = partial(self._memory.end_session, session.name)
            self._step("session's end", session.name, end, len(session.turns))
        for n, question in enumerate(questions, 1):
            self._step("question", str(n), partial(self._memory.ask, question))
        self._look([turn for session in sessions for turn in session.turns])
        return self.cycle

    def _step(self, unit: str, name: str, do: Callable[[], Any], turns: int = 0) -> None:
        heard, started = self.cycle.heard, perf_counter()
        before, asked = heard.runs.total(), heard.calls
        self._tell(f"{unit} {name}")
        usage: Usage = {}
        broken = ""
        try:
            result = do()
        except openai.APIError as error:
            broken = f"{type(error).__name__}: {str(error)[:150]}"
        else:
            usage = result.usage
            self.cycle.warnings += result.warnings
            self.cycle.rejected += getattr(result, "rejected", [])
        allowed = budget(unit, self._theta.k_r, self._theta.h, Verification().probes, turns)
        took = perf_counter() - started
        runs = heard.runs.total() - before
        calls, most = heard.calls - asked, ATTEMPTS * allowed + LADDER * len(OUTPUTS)
        self.cycle.steps.append(Step(unit, name, took, usage, calls, runs, allowed, most, broken))

    def _look(self, turns: Sequence[Turn]) -> None:
        cycle, memory = self.cycle, self._memory
        raw = Counter(entry.text for entry in memory.memories(granularity="raw"))
        said = Counter(turn.text for turn in turns)
        cycle.turns = len(turns)
        cycle.lost, cycle.doubled = list((said - raw).elements()), list((raw - said).elements())
        everything = memory.memories(statuses=("active", "staged", "superseded", "forgotten"))
        cycle.entries = Counter(f"{entry.granularity}, {entry.status}" for entry in everything)
        cycle.sessions = [f"{one.session}: {one.status}" for one in memory.sessions()]
        ledger = (memory.settings.home / LEDGER_FILE).absolute().as_uri()
        with closing(sqlite3.connect(f"{ledger}?mode=ro", uri=True)) as log:
            actions = Counter(action for (action,) in log.execute("SELECT action FROM events"))
        self._account({same_text(entry.text) for entry in everything}, actions["merge"])
        cycle.deleted = actions["delete"]
        cycle.wrongly = max(0, cycle.deleted - requests(cycle.heard.deletions, turns))

    def _account(self, stored: set[str], merges: int) -> None:
        """What became of each proposed fact: stored, reported as rejected, or merged with its equal."""
        cycle = self.cycle
        reported = {same_text(one.text) for one in cycle.rejected}
        rest = []
        for text in cycle.heard.facts:
            folded = same_text(text)
            if folded in stored:
                cycle.stored += 1
            elif folded in reported:
                cycle.refused += 1
            else:
                rest.append(text)
        cycle.merged = min(len(rest), merges)
        cycle.silent = rest[cycle.merged :]


def requests(quotes: Iterable[str], turns: Sequence[Turn]) -> int:
    """How many of the quotes stand in a person's turn and ask that something be forgotten."""
    said = [" ".join(turn.text.casefold().split()) for turn in turns if turn.role == "human"]
    folded = (" ".join(quote.casefold().split()) for quote in quotes)
    return sum(bool(ASKED_TO_FORGET.search(one)) and any(one in text for text in said) for one in folded)


def tokens(steps: Iterable[Step]) -> Usage:
    """Calls and tokens by role."""
    total: Usage = {}
    for step in steps:
        total = add_usage(total, step.usage)
    return total
