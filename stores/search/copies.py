"""What search keeps of a scope in memory: numbers only, good for as long as the ledger says so.

Everything that ranking needs of an entry is computed once, when it is written or when the copy is made, and
never from text during a search. A copy is kept with the number of its scope's last change (`ledger.changes`):
after any write, also of another process, the next search brings it up to date or makes a new one (`merging`).
So what is forgotten is forgotten here too.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memcycle.core.scope import Scope
from memcycle.stores.search.bm25 import Documents, Flags, Floats, Index, Ints, idf

Vectors = NDArray[np.float32]

CLOSE = 600.0
"""Seconds between two turns that still belong to one stretch of talk."""
SHARES = (0.6, 0.3, 0.3)
"""How much the turn before, the one before that, and the next one add to a turn's context."""


class Around(NamedTuple):
    """Places of the turns around each entry in its session, (entries,) each, -1 where there is none near."""

    before: Ints
    earlier: Ints
    after: Ints


@dataclass(frozen=True)
class Copy:
    """The active and staged entries of one base scope, in the order of their ledger rows, (entries,) each.

    Attributes:
        ids: Their ids.
        granularity, session: Places in `GRANULARITIES` and `sessions`.
        staged: Whether their session is still open.
        position: Place of the first source turn in its session.
        speaker: Place in `speakers`, -1 where nobody speaks.
        time: When it was said or happened; said: when it was said; expires. Seconds, NaN where unknown.
        traits: See `memcycle.stores.search.traits`.
        turns: Ids of the turns that a raw entry or a fact rests on.
        vectors: (entries, dim), a zero row where an entry has none of the present embedder.
        documents: Their words, those of the facts that rest on a turn among its own.
    """

    rows: Ints
    ids: list[str]
    granularity: Ints
    session: Ints
    sessions: list[str]
    staged: Flags
    position: Ints
    speaker: Ints
    speakers: list[str]
    time: Floats
    said: Floats
    expires: Floats
    traits: Ints
    turns: list[tuple[str, ...]]
    importance: Floats
    reinforcement: Floats
    vectors: Vectors
    documents: Documents

    @cached_property
    def index(self) -> Index:
        """Their words, sorted."""
        return Index.over(self.documents)

    @cached_property
    def lengths(self) -> Floats:
        """Words in each view, (entries, 3)."""
        return self.documents.lengths

    @cached_property
    def _own(self) -> tuple[Ints, Ints]:
        """Each word of each entry's own, once: its number and the entry's place."""
        own = self.index.field == 0
        words, docs = self.index.words[own], self.index.doc[own]
        first = begins(words) | begins(docs)
        kind: Ints = np.cumsum(begins(words), dtype=np.int64)
        return kind[first], docs[first]

    def idf_mass(self, among: Flags) -> Floats:
        """The idf of each entry's own words, each once, summed; the statistics are those of these entries."""
        kind, docs = self._own
        weight = idf(np.bincount(kind, weights=among[docs]), int(among.sum()))
        return np.bincount(docs, weights=weight[kind], minlength=len(self.rows)).astype(np.float64)

    @cached_property
    def order(self) -> Ints:
        """Each entry's place among the ids in order: what decides between equal scores."""
        order = np.empty(len(self.ids), dtype=np.int64)
        order[sorted(range(len(self.ids)), key=self.ids.__getitem__)] = np.arange(len(self.ids))
        return order

    def speaking(self, among: Flags) -> frozenset[str]:
        """Who speaks in these entries."""
        return frozenset(self.speakers[code] for code in np.unique(self.speaker[among]).tolist() if code >= 0)

    def last_said(self, among: Flags) -> float:
        """When the last of these entries was said, in seconds; not finite where no time is known."""
        return float(np.fmax.reduce(self.said[among], initial=-np.inf))

    @cached_property
    def around(self) -> Around:
        """The raw entries around each raw entry, of the same session and stretch of talk."""
        raw = np.flatnonzero(self.granularity == 0)
        raw = raw[np.lexsort((self.position[raw], self.session[raw]))]
        # Turns of an unknown place all stand at the same one: nothing is beside them.
        beside = (np.diff(self.session[raw]) == 0) & (np.diff(self.position[raw]) > 0)
        # What is staged is seen by its session alone: it must not weigh on what others see.
        beside &= np.diff(self.staged[raw].astype(np.int8)) == 0
        near = beside & ~(np.abs(np.diff(self.said[raw])) > CLOSE)
        before, after = (np.full(len(self.rows), -1) for _ in range(2))
        before[raw[1:][near]], after[raw[:-1][near]] = raw[:-1][near], raw[1:][near]
        return Around(before, at(before, before, -1), after)

    @cached_property
    def norms(self) -> Floats:
        """Length of each entry's context vector: its own and the shares of those around it; at least 1e-9."""
        total = self.vectors.copy()
        for share, near in zip(SHARES, self.around, strict=True):
            total[near >= 0] += np.float32(share) * self.vectors[near[near >= 0]]
        return np.asarray(np.maximum(np.linalg.norm(total, axis=1), 1e-9), dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes once it was searched."""
        held = [getattr(self, field.name) for field in fields(self)]
        arrays = sum(value.nbytes for value in held if isinstance(value, np.ndarray))
        words = self.documents.words.nbytes + self.documents.fields.nbytes
        # An id is a string of its own, and a list of turns about another; the index, the neighbours and the
        # norms are made at the first search.
        return arrays + words + len(self.ids) * (2 * 100 + 64) + self.documents.words.size * (8 + 4 + 1)


def begins(values: NDArray[Any]) -> Flags:
    """Where a value differs from the one before it; the first does."""
    return np.append(True, np.diff(values) != 0)[: len(values)]


def at(values: NDArray[Any], places: Ints, missing: float) -> NDArray[Any]:
    """The values at these places; `missing` where a place is negative."""
    return np.where(places >= 0, values[places] if len(values) else missing, missing)


class Kept(NamedTuple):
    """A copy as of a change of its scope."""

    change: int
    copy: Copy


class Copies:
    """The copies used last, within a bound of bytes. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._lock = threading.Lock()
        self._copies: OrderedDict[str, Kept] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._held

    def get(self, scope: Scope) -> Kept | None:
        """The copy of the base scope, and of which change it is."""
        with self._lock:
            found = self._copies.get(scope.key)
            if found is not None:
                self._copies.move_to_end(scope.key)
            return found

    def put(self, scope: Scope, change: int, copy: Copy) -> None:
        """Keeps a copy, unless there is one of a later change; those not used for longest make room.

        One above the bound is not kept.
        """
        with self._lock:
            held = self._copies.get(scope.key)
            if held is not None and held.change >= change:
                return
            self._drop(scope.key)
            if copy.nbytes > self._most:
                return
            self._copies[scope.key] = Kept(change, copy)
            self._held += copy.nbytes
            while self._held > self._most:
                self._drop(next(iter(self._copies)))

    def drop(self, scope: Scope) -> None:
        """Keeps no copy of the base scope."""
        with self._lock:
            self._drop(scope.key)

    def _drop(self, key: str) -> None:
        found = self._copies.pop(key, None)
        if found is not None:
            self._held -= found.copy.nbytes
