"""Theta: the whole retrieval configuration as data (EvolveMem eq. 2)."""

import functools
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from pydantic import AwareDatetime, Field, field_validator, model_validator

from memcycle.core.arguments import unknown
from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_object, write_object
from memcycle.core.scope import Data
from memcycle.core.theta_space import (
    GONE,
    OVERRIDES,
    Category,
    Clamped,
    Dimension,
    Space,
    flattened,
    is_override,
    is_same,
    tree,
)

_log = logging.getLogger(__name__)
AnswerStyle = Literal["concise", "explanatory", "verifying", "strict", "inferential", "choice"]
"""EvolveMem's six ways of phrasing an answer: shortest phrase; with the reason; with who said it and when;
in a fixed form (digits, dates, lists with commas); the likely conclusion; one of the alternatives offered."""
VerificationStyle = Literal["off", "strict", "multi_candidate"]

Number = TypeVar("Number", int, float)

WIDEST = 10_000
"""Entries a view keeps where it is not narrowed: as many as a scope that is scanned whole may have."""


class Part(Data):
    """A part of the configuration; names that it does not have are refused by the nearest that it has."""

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        for name in value:
            if name in GONE:
                _log.warning("%s is ignored: there is no such thing any more", name)
            elif name not in cls.model_fields:
                raise ValueError(unknown(str(name), cls.model_fields))
        return {name: own for name, own in value.items() if name not in GONE}


def ranged(default: Number, low: Number, high: Number, description: str) -> Number:
    """A field of this default and range, both ends of which are allowed."""
    field: Number = Field(default, ge=low, le=high, description=description)
    return field


class Shares(Part):
    """Share of each granularity among the candidates, for one routed operator."""

    raw: float = Field(ge=0, le=1, description="share of turns")
    fact: float = Field(ge=0, le=1, description="share of facts")
    episode: float = Field(ge=0, le=1, description="share of episodes")


class Routing(Part):
    """What AMA's operator (raw, fact, episode) means for the candidates.

    `exclusive` is the paper's form: only the routed granularity, the others on Retry. `shares` keeps
    some of each, which loses less when the route is wrong.
    """

    mode: Literal["shares", "exclusive"] = Field(
        "shares", description="what is searched: some of each granularity, or the routed one alone"
    )
    raw: Shares = Shares(raw=0.7, fact=0.25, episode=0.05)
    fact: Shares = Shares(raw=0.5, fact=0.4, episode=0.1)
    episode: Shares = Shares(raw=0.4, fact=0.35, episode=0.25)


class Views(Part):
    """How many entries each view speaks for (EvolveMem's top-k a view); 0 switches a view off.

    The evidence of a view counts for the first so many entries of that view, in its own order, whether a
    scope is scanned whole or its candidates are handed over by the indexes; beyond them it says nothing.
    """

    lexical: int = ranged(WIDEST, 0, WIDEST, "entries that BM25 speaks for")
    dense: int = ranged(WIDEST, 0, WIDEST, "entries that vectors speak for")
    structured: int = ranged(WIDEST, 0, WIDEST, "entries that speaker, date and kind of answer speak for")


class Swap(Part):
    """Entity swap: the query without the names of persons is searched beside the query (EvolveMem 3.2).

    It finds what was said of a matter by, or of, somebody else than the question names.
    """

    on: bool = Field(False, description="search the query without names too")
    original: int = ranged(15, 1, 200, "entries kept of the query as asked")
    swapped: int = ranged(10, 1, 200, "entries kept of the query without names")


class Decomposition(Part):
    """A question for several things is searched as sub-questions, merged by rank (EvolveMem 3.2)."""

    on: bool = Field(False, description="ask the Retriever for sub-questions")
    parts: int = ranged(3, 1, 6, "sub-questions at most")
    k: int = ranged(12, 1, 200, "entries each sub-question finds")


class Reflection(Part):
    """An answer that is unknown or unsure is looked for once more, with a new query (EvolveMem 3.2)."""

    rounds: int = ranged(0, 0, 3, "further searches after an unsure answer, at most")
    unsure: float = ranged(0.3, 0, 1, "an answer below this confidence is unsure, here and for the verifier")


class Extraction(Part):
    """How a conversation is read, and how bulk import guards what is read (EvolveMem 3.1).

    A window is `overlap` turns that were read before, shown again, and new ones. What a model cannot take
    is tried again, then read in smaller windows; turns of whose words the facts hold too little are read
    once more. Online, where somebody waits, nothing is tried or read once more; but at no time are more
    `tokens` read at once, and what a model refuses for its length is read in parts.
    """

    window: int = ranged(40, 2, 500, "turns of a window")
    overlap: int = ranged(6, 0, 50, "of these, turns shared with the window before")
    retries: int = ranged(2, 0, 10, "tries more, where a model or its server fails")
    wait: float = ranged(1.0, 0, 60, "seconds before the first; doubled for each further")
    split: int = ranged(15, 1, 200, "turns of the windows a failed window is split into")
    tokens: int = ranged(4000, 50, 1_000_000, "tokens of turns, with their marks, that are read at once")
    coverage: float = ranged(0.25, 0, 1, "share of its keywords that facts must hold of a turn; 0: unchecked")

    @property
    def new_turns(self) -> int:
        """Turns of a window that were not read before."""
        return max(1, self.window - self.overlap)


Fusion = Literal["linear", "weighted_sum", "sum", "rrf"]


class Weights(Part):
    """Weight of each signal in the order of what is found; any scale, only ratios matter.

    The signals are functions of these names in `memcycle.stores.search.signals`. Defaults: fitted on LoCoMo
    conversations 1-5 (`python -m benchmarks.fit`) and rounded; where those hardly decide, towards what
    holds on chats of another make. Those that are 0 help nothing there; they are for
    memories that grow old or are asked for the latest.
    """

    bm25: float = ranged(1.0, 0, 10, "BM25 over the entry's own stemmed, dated, named text")
    window: float = ranged(1.0, 0, 10, "BM25 over the entry with the two turns before it")
    facts: float = ranged(2.0, 0, 10, "the same with the words of the facts that rest on the turn")
    dense: float = ranged(0.0, 0, 10, "cosine of query and entry")
    dense_nameless: float = ranged(0.5, 0, 10, "cosine with the asked person's name removed")
    context: float = ranged(2.5, 0, 10, "the same with the turns around the entry")
    speaker: float = ranged(2.5, 0, 10, "the asked person speaks")
    date: float = ranged(3.0, 0, 10, "of a time that the query names")
    time_expression: float = ranged(2.0, 0, 10, "for a when-question: names a time")
    number: float = ranged(1.0, 0, 10, "for a how-many-question: holds a number")
    capital: float = ranged(1.5, 0, 10, "for a who- or where-question: names something")
    statement: float = ranged(0.75, 0, 10, "tells, does not ask")
    first_person: float = ranged(0.25, 0, 10, "its speaker tells of themselves")
    idf_mass: float = ranged(1.5, 0, 10, "how much it says at all")
    session: float = ranged(4.0, 0, 10, "the three best of its session")
    answer: float = ranged(1.5, 0, 10, "follows somebody else's question that matches")
    neighbours: float = ranged(0.0, 0, 10, "the turns beside it match")
    importance: float = ranged(0.0, 0, 10, "how important it was found")
    recency: float = ranged(0.0, 0, 10, "how lately it was said")
    reinforcement: float = ranged(0.0, 0, 10, "how often questions named what it names")

    @classmethod
    def only(cls, **weights: float) -> Self:
        """These weights, and 0 for every other signal."""
        return cls.model_validate(dict.fromkeys(cls.model_fields, 0.0) | weights)


class Relevance(NamedTuple):
    """A logistic model of how likely what a search found bears on what was asked.

    Fitted by `python -m benchmarks.relevance` on LoCoMo conversations 1-5 and notes of a user, in memories of
    all sizes, against small talk and questions of general knowledge.

    Attributes:
        embedder: How the id begins of the embedder that it was fitted with; cosines of others lie elsewhere.
        weights: Of what `stores.search.ranker.told_of` tells: the highest cosine of the first hits, alone and
            with the turns around, the share of the question that memory knows, how many entries there are
            and how far the highest lies above them; then of the question's form.
    """

    embedder: str
    intercept: float
    weights: tuple[float, ...]


RELEVANCE = Relevance(
    "wordllama", -0.32, (1.92, 6.11, 3.09, -0.64, 0.99, -1.25, -1.8, 1.3, -2.49, -3.21, 1.26, -0.67)
)


SIGNALS_OF_VIEW: Mapping[str, tuple[str, ...]] = {
    "lexical": ("bm25", "window", "facts"),
    "dense": ("dense", "dense_nameless", "context"),
    "structured": ("speaker", "date", "time_expression", "number", "capital"),
}
"""Signals by the view whose depth bounds them; the others are of none, and only move what a view found."""


class Theta(Part):
    """Every dimension of retrieval, with its range.

    `k_r`, `h`, `k_m` and `density` are AMA's and MemMA's round limits, minimum K and Judge threshold; most
    of the others are EvolveMem's action space (eq. 2, table 7). As shipped, what costs a model call more is
    off: swap, decomposition, reflection and verification.

    Attributes:
        overrides: By category of question (memcycle's own, never a gold label), dimensions that are another
            for such questions: `{"temporal": {"k": 40, "weights.recency": 2}}`.
    """

    version: str = Field("2", description="name of this configuration, recorded on results")
    k: int = ranged(30, 1, 200, "entries kept for answering")
    k_m: int = ranged(8, 1, 100, "least K whatever the Retriever asks (AMA K_m)")
    k_r: int = ranged(2, 0, 5, "Retry rounds at most (AMA K_r)")
    h: int = ranged(3, 0, 10, "refinement rounds at most (MemMA H)")
    density: float = ranged(0.2, 0, 1, "least share of relevant candidates for a Pass")
    token_budget: int = ranged(4000, 50, 100_000, "tokens of evidence shown to the Answerer")
    first_look: int = ranged(700, 50, 100_000, "of these, tokens (with marks) of a first look")
    turns_first: float = ranged(0.2, 0, 1, "share of these tokens for the best finds as they were said")
    window: int = ranged(6, 0, 50, "turns of short-term window W_t")
    candidates: int = ranged(100, 10, 5000, "candidates a view hands to fusion")
    duplicate: float = ranged(0.92, 0, 1, "cosine above which two facts are compared by a role")
    near_duplicate: float = ranged(0.8, 0.01, 1, "share of words from which two facts are one (Jaccard)")
    saturation_turns: int = ranged(20, 2, 500, "an episode closes at this many turns")
    saturation_tokens: int = ranged(2000, 50, 100_000, "or at this many tokens")
    routing: Routing = Field(default_factory=Routing)
    views: Views = Field(default_factory=Views)
    weights: Weights = Field(default_factory=Weights)
    fusion: Fusion = Field("linear", description="how the signals become an order")
    relevance: float = ranged(0.035, 0, 1, "least likelihood that a find bears on what is asked; 0: all")
    half_life_days: float = ranged(30.0, 0.01, 36_500, "days in which recency halves")
    reference_date: AwareDatetime | None = Field(
        None, description="when recency counts from; null: the time of the question"
    )
    swap: Swap = Field(default_factory=Swap)
    decomposition: Decomposition = Field(default_factory=Decomposition)
    reflection: Reflection = Field(default_factory=Reflection)
    verification: VerificationStyle = Field("off", description="second look at unknown and unsure answers")
    answer_style: AnswerStyle | None = Field(
        None, description="how answers are phrased; null: as settings.answer_style says"
    )
    extraction: Extraction = Field(default_factory=Extraction)
    overrides: dict[Category, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("overrides")
    @classmethod
    def _fit(cls, overrides: dict[Category, dict[str, Any]]) -> dict[Category, dict[str, Any]]:
        flat = {category: flattened(own) for category, own in overrides.items() if own}
        return {
            category: {
                path: _space().fitted(f"{OVERRIDES}.{category}.{path}", value, exact=True)
                for path, value in own.items()
            }
            for category, own in flat.items()
        }

    @classmethod
    def dimensions(cls) -> dict[str, Dimension]:
        """Every dimension by its path, such as `weights.bm25`, flat over the parts.

        Overrides are none themselves: `overrides.CATEGORY.PATH` has the range of the dimension at PATH. Nor
        is the version, a name.
        """
        return {path: one for path, one in _space().dimensions.items() if one.type != "text"}

    def get(self, path: str) -> Any:
        """The value of a dimension; of `overrides.CATEGORY.PATH` None where there is none.

        Raises:
            BadInput: no such dimension; the nearest one is named.
        """
        _space().dimension(path)
        return _flat(self).get(path)

    def with_changes(self, changes: Mapping[str, Any]) -> tuple[Self, list[Clamped]]:
        """This configuration with other values, each brought into its range.

        Args:
            changes: Values by path, `{"weights.bm25": 2, "overrides.temporal.k": 40}`, or nested as a file
                holds them, up to a whole configuration. None at the path of an override takes it away;
                `overrides` nested replaces all of them.

        Returns:
            The configuration, and what was out of range or no whole number, in the order of the changes.

        Raises:
            BadInput: unknown paths and values of the wrong type, all of them, by name.
        """
        values, complaints, clamped = _flat(self), list[str](), list[Clamped]()
        if isinstance(changes.get(OVERRIDES), Mapping):
            values = {path: value for path, value in values.items() if not is_override(path)}
        for path, asked in flattened(changes).items():
            try:
                dimension = _space().dimension(path)
                unset = asked is None and is_override(path)
                given = values[path] = None if unset else _space().fitted(path, asked)
            except BadInput as error:
                complaints.append(str(error))
                continue
            if given is not None and dimension.type in ("int", "float") and not is_same(asked, given):
                clamped.append(Clamped(path, asked, given))
        if complaints:
            raise BadInput("theta: " + "; ".join(complaints))
        return type(self).model_validate(tree(values)), clamped

    def diff(self, other: "Theta") -> list[tuple[str, Any, Any]]:
        """Dimensions and overrides in which two configurations differ: path, mine, the other's.

        An override that only one has is None in the other.
        """
        mine, others = _flat(self), _flat(other)
        return [
            (path, mine.get(path), others.get(path))
            for path in dict.fromkeys([*mine, *others])
            if not is_same(mine.get(path), others.get(path))
        ]

    def for_category(self, category: Category) -> Self:
        """This configuration as it is for one category of questions."""
        own = self.overrides.get(category)
        return self.with_changes(own)[0] if own else self

    @classmethod
    def load(cls, path: "Path | str") -> Self:
        """A configuration from a JSON file; what it does not name is as shipped.

        A file is refused, not clamped, where a value is out of range: it says what was meant to hold.

        Raises:
            BadInput: not to be read, or unknown keys and values that do not fit, all of them, by name.
        """
        content = read_object(Path(path))
        complaints = _space().complaints(content)
        if complaints:
            raise BadInput(f"theta {path}: " + "; ".join(complaints))
        return cls.model_validate(tree(flattened(content)))

    @classmethod
    def faults(cls, path: "Path | str") -> list[str]:
        """What is wrong with a file, in words, key by key; [] where it can be loaded."""
        return _space().complaints(read_object(Path(path)))

    def save(self, path: "Path | str") -> None:
        """Writes the whole configuration as JSON, whole or not at all."""
        write_object(Path(path), self.model_dump(mode="json"))


_WRITING = ("version", "k_m", "duplicate", "near_duplicate", "saturation_", "extraction.")
"""Dimensions of writing, which no question overrides."""


@functools.cache
def _space() -> Space:
    return Space(Theta(), fixed=_WRITING)


def overridable() -> Mapping[str, Dimension]:
    """The dimensions that may be another for a category of questions."""
    return _space().overridable


def _flat(theta: Theta) -> dict[str, Any]:
    """All values by path, those of overrides behind the others."""
    return flattened(theta.model_dump())


class Switches(Part):
    """Ablations, each a real edge of the graphs. True is the full cycle."""

    guidance: bool = Field(True, description="Meta-Thinker guides construction (off: MemMA/C)")
    iterative: bool = Field(True, description="refine evidence over rounds (off: one-shot, MemMA/R)")
    refresher: bool = Field(True, description="conflicts go to the Refresher (off: AMA without Refresher)")
    verify: bool = Field(True, description="examine and repair memory at a session's end (off: MemMA/E)")
    granularity: Literal["all", "raw", "fact", "episode"] = Field("all", description="AMA single granularity")
    always_think: bool = Field(False, description="ask the Meta-Thinker also after a sufficient Pass (MemMA)")
    recall_refresh: bool = Field(
        False, description="apply a conflict met in recall at once, not at the next write"
    )
