"""What is written down of one question, and of one stored conversation."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from memcycle.core.entry import Granularity
from memcycle.core.usage import Usage

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
        all_evidence: 1 where the first k turns hold all gold turns, else 0.
        recall_at_tokens: Share of the gold turns within a budget of tokens.
        session_any: 1 where any gold session is among those of the first k turns, else 0: the lenient one.
        shown: Share of the gold turns in what is shown under the run's own k and budget.
        tokens: Tokens of what is shown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    recall: dict[str, float] = {}
    as_entries: dict[str, float] = {}
    all_evidence: dict[str, float] = {}
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
