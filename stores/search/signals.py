"""The signals: each a small function that says how much speaks for each entry as an answer to one query.

All give one number an entry, 0 to 1, 0 where they have nothing to say. None knows of a benchmark or of how
many people speak; what reads English has less to say about other languages, never an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memcycle.core.entry import MOST
from memcycle.core.theta import SIGNALS_OF_VIEW
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.search import lexical as traits
from memcycle.stores.search.bm25 import DATED, FACTS, WINDOW, Flags, Floats
from memcycle.stores.search.request import DAY, PreparedQuery
from memcycle.stores.search.snapshot import SHARES, Snapshot, at, begins

_BEST = 3
"""Entries of a session that speak for it."""
_TELLING = 30.0
"""The idf mass that counts half."""


@dataclass(frozen=True)
class Comparison:
    """One query beside the entries it is asked of.

    Attributes:
        snapshot: The entries.
        visible: Which of them the request may see; the others count nowhere.
        mass: Idf of each one's own words, summed, in the statistics of what the request's session may see.
        query: What is asked.
        lexical: Their BM25 in each view, (entries, 3), 0 where not visible.
        known: Share of the query's idf mass whose words some visible entry holds.
        now: When recency counts from, in seconds. half_life: days in which it halves.
    """

    snapshot: Snapshot
    visible: Flags
    mass: Floats
    query: PreparedQuery
    lexical: Floats
    known: float
    now: float
    half_life: float

    @cached_property
    def nameless(self) -> Floats:
        """Cosine with the vector of the query without names, not below 0."""
        return self.positive(self._raw_nameless)

    @cached_property
    def surrounded(self) -> Floats:
        """The same of each entry's vector with shares of those around it added."""
        total = self._raw_nameless.copy()
        for share, near in zip(SHARES, self.snapshot.around, strict=True):
            total += share * at(self._raw_nameless, near, 0.0)
        return self.positive(total / self.snapshot.norms)

    @cached_property
    def own(self) -> Floats:
        """How well an entry's own words and meaning match."""
        return (self.lexical[:, DATED] + self.nameless) / 2

    def has(self, trait: int) -> Floats:
        """Which entries have a trait, as 0 and 1."""
        return np.asarray((self.snapshot.traits & trait) != 0, dtype=np.float64)

    @cached_property
    def _raw_nameless(self) -> Floats:
        return _cosines(self.snapshot.vectors, self.query.nameless)

    def positive(self, cosines: Floats) -> Floats:
        """Cosines, those below 0 and of entries that are not visible as 0."""
        return np.asarray(np.clip(cosines, 0.0, 1.0) * self.visible)


def _cosines(vectors: Vector, query: Vector) -> Floats:
    """Row by row: a matrix product may round a row differently beside other rows, or elsewhere in memory, and
    nobody's entries may change another's scores."""
    return np.asarray((vectors * query).sum(axis=1), dtype=np.float64)


def bm25(compared: Comparison) -> Floats:
    """BM25 over the entry's own words, with its speaker and its date."""
    return compared.lexical[:, DATED]


def window(compared: Comparison) -> Floats:
    """BM25 over the entry's own words with those of the two turns before it."""
    return compared.lexical[:, WINDOW]


def facts(compared: Comparison) -> Floats:
    """BM25 over the same and what facts say that rest on the turn: facts projected onto their turns.

    A turn says "that one", its fact says what. Without facts this is `window`.
    """
    return compared.lexical[:, FACTS]


def dense(compared: Comparison) -> Floats:
    """Cosine of query and entry."""
    return compared.positive(_cosines(compared.snapshot.vectors, compared.query.named))


def dense_nameless(compared: Comparison) -> Floats:
    """Cosine with the query without the names of those it asks about: what is asked, not of whom."""
    return compared.nameless


def context(compared: Comparison) -> Floats:
    """Cosine of the nameless query and the entry among the turns around it, of the same stretch of talk."""
    return compared.surrounded


def speaker(compared: Comparison) -> Floats:
    """Whether one who is asked about speaks. A boost only: what others say of them must stay within reach."""
    asked = [name.casefold() in compared.query.people for name in compared.snapshot.speakers]
    return np.array([*asked, False], dtype=np.float64)[compared.snapshot.speaker]


def date(compared: Comparison) -> Floats:
    """Whether it was said, or happened, at a time the query names, or shortly before or after it.

    Nothing where every entry is of that time.
    """
    within = np.zeros(len(compared.snapshot.rows), dtype=bool)
    for first, last in compared.query.periods:
        within |= (compared.snapshot.time >= first) & (compared.snapshot.time <= last)
    within &= compared.visible
    return np.zeros(len(within)) if within.sum() == compared.visible.sum() else within.astype(np.float64)


def time_expression(compared: Comparison) -> Floats:
    """For a question for a time: whether the entry names one."""
    return compared.has(traits.TIME) * (compared.query.slot == "when")


def number(compared: Comparison) -> Floats:
    """For a question how many or how long: whether the entry holds a number."""
    return compared.has(traits.NUMBER) * (compared.query.slot in {"how_many", "how_long"})


def capital(compared: Comparison) -> Floats:
    """For a question who or where: whether the entry names something inside a sentence."""
    return compared.has(traits.CAPITAL) * (compared.query.slot in {"who", "where"})


def statement(compared: Comparison) -> Floats:
    """Whether it tells something. Questions repeat the words of a query and answer nothing."""
    return 1.0 - compared.has(traits.QUESTION)


def first_person(compared: Comparison) -> Floats:
    """Whether its speaker tells of themselves."""
    return compared.has(traits.FIRST_PERSON)


def idf_mass(compared: Comparison) -> Floats:
    """How much it says at all: the idf of its own words, summed; a half for about ten telling words.

    "Sounds great!" answers nothing, whatever it matches.
    """
    return compared.mass / (compared.mass + _TELLING)


def session(compared: Comparison) -> Floats:
    """How well its session matches: mean of the three best entries there, by words and meaning in context.

    Where one turn of a talk is about what is asked, others with less of its words are too.
    """
    value = (compared.lexical[:, WINDOW] + compared.surrounded) / 2
    places = np.flatnonzero(compared.visible)
    order = places[np.lexsort((-value[places], compared.snapshot.session[places]))]
    sessions = compared.snapshot.session[order]
    starts = np.flatnonzero(begins(sessions))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    first = rank < _BEST
    size = len(compared.snapshot.sessions)
    total = np.bincount(sessions[first], weights=value[order][first], minlength=size)
    mean = total / np.maximum(np.bincount(sessions[first], minlength=size), 1)
    return np.asarray(mean[compared.snapshot.session])


def answer(compared: Comparison) -> Floats:
    """Whether it follows a question of somebody else that matches, times its own match."""
    before = compared.snapshot.around.before
    asks = at(compared.has(traits.QUESTION), before, 0.0) > 0
    other = at(compared.snapshot.speaker, before, -1) != compared.snapshot.speaker
    return np.asarray(np.where(asks & other, at(compared.own, before, 0.0), 0.0) * compared.own)


def neighbours(compared: Comparison) -> Floats:
    """How well the better of the turns just before and after it matches."""
    around = compared.snapshot.around
    return np.asarray(np.maximum(at(compared.own, around.before, 0.0), at(compared.own, around.after, 0.0)))


def importance(compared: Comparison) -> Floats:
    """How important it was found when it was written."""
    return compared.snapshot.importance


def recency(compared: Comparison) -> Floats:
    """How lately it was said: 1 for now, half of it each half-life earlier; 0 where the time is unknown."""
    age = np.maximum(compared.now - compared.snapshot.said, 0.0) / DAY
    return np.nan_to_num(np.exp2(-age / compared.half_life), nan=0.0)


def reinforcement(compared: Comparison) -> Floats:
    """How often questions named what it names, as a share of the most that counts."""
    return compared.snapshot.reinforcement / MOST


MATCHES = (*SIGNALS_OF_VIEW["lexical"], *SIGNALS_OF_VIEW["dense"])
"""Signals of a match with the query: they alone can find an entry, and entries are compared with the best.
The others count as they are, and only move what was found."""

SIGNALS: dict[str, Callable[[Comparison], Floats]] = {
    says.__name__: says
    for says in (
        bm25, window, facts, dense, dense_nameless, context,
        speaker, date, time_expression, number, capital, statement, first_person, idf_mass, session,
        answer, neighbours, importance, recency, reinforcement,
    )
}  # fmt: skip
"""By the names that theta's weights have."""
