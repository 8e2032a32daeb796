"""What is written down of one question, and of one stored conversation."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memcycle.core.entry import Granularity
from memcycle.core.language.token_count import token_counter
from memcycle.core.probe import Usage
from memcycle.core.settings import Settings

KS = (5, 10, 20, 30)
"""Found turns at which recall is given."""

LENIENT_KS = (5, 10)
"""Found turns at which the lenient session-level measure is given."""

BUDGETS = (250, 500, 1000, 2000, 4000)
"""Token budgets at which recall is given."""

NONE, OBSERVATIONS, RULES = "none", "observations", "rules"
"""Where facts come from, beside the name of a model: nowhere, from the data set, from the rules."""


def reader_of(facts: str) -> str:
    """Who reads facts from conversations: the rules too where they are given or none are wanted."""
    return RULES if facts in (NONE, OBSERVATIONS) else facts


_PACKAGES = ("memcycle", "langgraph", "langchain-core", "chromadb", "wordllama", "numpy")


class Plan(BaseModel):
    """Everything a figure depends on, but the packages' versions. Nothing in a run is drawn at random.

    Attributes:
        data: The kind of data set. file, sha256: its file's name and hash.
        conversations: Ids of those that are measured, in order.
        limit: Questions a conversation at most; None for all.
        facts: Where facts come from: `none`, `observations`, `rules` or a model's name.
        model: Who answers: `rules` or a model's name. judge: who compares that with the gold; None: nobody.
        answers: Whether questions are answered, or evidence alone is searched.
        k, token_budget: Entries and tokens of evidence an answer rests on.
        settings: Theta, switches, embedder and the rest. Its home does not count: each conversation has one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    file: str
    sha256: str
    conversations: tuple[str, ...]
    limit: int | None = Field(None, ge=1)
    facts: str = RULES
    model: str = RULES
    judge: str | None = None
    answers: bool = True
    baselines: bool = True
    k: int = Field(ge=1, le=200)
    token_budget: int = Field(ge=50, le=100_000)
    settings: Settings

    @property
    def ks(self) -> tuple[int, ...]:
        """Found turns at which recall is given: the usual ones and the run's own."""
        return tuple(sorted({*KS, self.k}))

    @property
    def budgets(self) -> tuple[int, ...]:
        """Token budgets at which recall is given: the usual ones and the run's own."""
        return tuple(sorted({*BUDGETS, self.token_budget}))

    def plain(self) -> dict[str, Any]:
        """As JSON, without what does not change a figure."""
        return self.model_dump(mode="json", exclude={"settings": {"home"}})


def versions() -> dict[str, str]:
    """Versions of what a figure depends on, and by what its tokens are counted."""
    found = {"python": python_version(), "tokens": token_counter().name}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout that is not installed
            found[name] = "unknown"
    return found


def first_difference(theirs: Mapping[str, Any], ours: Mapping[str, Any], place: str = "") -> str | None:
    """Where two configurations differ first, in words; None where they are the same."""
    for key in dict.fromkeys((*theirs, *ours)):
        where, left, right = f"{place}{key}", theirs.get(key), ours.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found = first_difference(left, right, f"{where}.")
            if found:
                return found
        elif left != right:
            return f"{where} was {left!r:.80} and is now {right!r:.80}"
    return None


Verdict = Literal["CORRECT", "WRONG"]


class Found(BaseModel):
    """An entry that a search found. `tokens`: of its line, as evidence is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    granularity: Granularity
    turns: tuple[str, ...]
    tokens: int


class Scores(BaseModel):
    """How well one way of searching found a question's gold turns: shares from 0 to 1, by k or by budget.

    All empty for a question without gold turns, which has no such share; what a way cannot be asked for (a
    ranked list of everything, say) is left out.

    Attributes:
        recall: Share of the gold turns among the first k distinct turns found.
        as_entries: The same among the turns of the first k entries, where a fact beside its turn takes a
            place of its own.
        all_evidence: 1 where the first k turns hold all gold turns, else 0. any_gold: one at least.
        reciprocal_rank: 1 / place of the first gold turn among the turns found; 0 where none is.
        recall_at_tokens: Share of the gold turns within a budget of tokens.
        session_any: 1 where any gold session is among those of the first k turns, else 0: the lenient one.
        shown: Share of the gold turns in what is shown under the run's own k and budget.
        tokens: Tokens of what is shown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recall: dict[str, float] = {}
    as_entries: dict[str, float] = {}
    all_evidence: dict[str, float] = {}
    any_gold: dict[str, float] = {}
    reciprocal_rank: float | None = None
    recall_at_tokens: dict[str, float] = {}
    session_any: dict[str, float] = {}
    shown: float | None = None
    tokens: int = 0


class Record(BaseModel):
    """One question: what it was scored against, what was found, what was answered, how that scored.

    Attributes:
        conversation, id: Whose question; its id there.
        gold, gold_turns: The gold answer and turns.
        found: Entries found by memcycle's search, best first. turns: the distinct turns they count for.
        shown: Ids of the entries chosen under the run's own k and budget.
        scores: Of memcycle's search. baselines: of the others, by name.
        answer: What was answered. cited: turns it cites. abstained: whether it says that nothing is known.
        evidence_tokens: Tokens of the evidence that whoever answered was shown.
        f1, bleu1: Of the answer; None where there is no gold answer, or none was asked for.
        verdict: The judge's; None where nobody judged. judge_error: why a judge gave none.
        calls, tokens: Of models, asking and judging; read and written.
        search_ms, answer_ms: Wall time in milliseconds.
        error: What the question crashed with; it then counts as wrong.
        elapsed: Seconds that the run had taken when this was written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: str
    id: str
    question: str
    category: str | None
    adversarial: bool
    gold: str | None
    gold_turns: tuple[str, ...]
    found: tuple[Found, ...] = ()
    turns: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    scores: Scores = Scores()
    baselines: dict[str, Scores] = {}
    answer: str | None = None
    abstained: bool | None = None
    cited: tuple[str, ...] = ()
    evidence_tokens: int | None = None
    f1: float | None = None
    bleu1: float | None = None
    verdict: Verdict | None = None
    judge_error: str | None = None
    usage: Usage = {}
    calls: int = 0
    tokens: int = 0
    search_ms: float | None = None
    answer_ms: float | None = None
    error: str | None = None
    elapsed: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """Conversation and question id."""
        return self.conversation, self.id


class StoredConversation(BaseModel):
    """A conversation that is stored whole, ready to be asked.

    Attributes:
        turns, facts: How many raw turns and facts are stored.
        unsourced: Facts of the data set that name no turn. refused: those that the store did not take.
        embedder: Id of what made the vectors.
        seconds: Wall time of storing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: str
    turns: int
    facts: int
    unsourced: int = 0
    refused: int = 0
    embedder: str
    usage: Usage = {}
    seconds: float
