"""The lexical view: FTS5 finds the candidates of one scope, BM25 is computed over that scope alone.

FTS5's own bm25() mixes the statistics of all scopes and has fixed constants, which shifts scores and tells
one user about another's texts. So it is asked for words of the scope (`stores.ledger.full_text`), and
document frequencies, counts and lengths come from rows of that scope and granularity.

The rows are rebuildable from the ledger. They hold the active entries; an open session's staged entries
are handed to `score` and take part in the same statistics. A search of a scope that is kept in memory reads
only the words from here, once (see `memcycle.stores.search.snapshot`).

Traits read English and what is written alike everywhere (question marks, digits, dates); a text of another
language has fewer of them, and is ranked by its words and its vector.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from memcycle.core.entry import Granularity
from memcycle.core.language.date_forms import DAY_NAMES, MONTH_NAMES, NUMBERS
from memcycle.core.language.dates import read_dates
from memcycle.core.language.small_talk import asks, tells
from memcycle.core.language.tokens import base_stems, based, per_text, strip_names, tokenize, word_set
from memcycle.stores.ledger import full_text, turns
from memcycle.stores.ledger.columns import json_list
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.search.bm25 import FIELDS, Documents, Ints, Scores, Stats, places, postings, weigh

QUESTION, FIRST_PERSON, NUMBER, CAPITAL, TIME, SILENT = (1 << place for place in range(6))
"""SILENT is a turn that tells nothing: questions, thanks, fillers. Those written before it was known lack it
until `memcycle doctor --rebuild`."""

SELF = word_set("i im ive id ill me my mine myself we our ours us weve ourselves")
"""Words by which a speaker tells of themselves."""
_COUNTS = frozenset(NUMBERS) - {"a", "an"} | word_set("dozen hundred thousand once twice several few couple")
_ASKS = re.compile(r"[?？؟]\W*(?:\[[^\]]*\]\s*)?\Z")
_CAPITAL = re.compile(r"(?<=[^\W\d_A-Z] )[A-Z][^\W\d_]+|(?<=[,;] )[A-Z][^\W\d_]+")


def traits_of(text: str, time: datetime | None, people: Iterable[str | None]) -> int:
    """The traits of a text, or-ed.

    - QUESTION: it ends by asking (a note in brackets after it, as of an image, does not count).
    - FIRST_PERSON: its speaker tells of themselves.
    - NUMBER: it holds a number, in digits or in words.
    - CAPITAL: it names something inside a sentence, other than these people.
    - TIME: it says when, in a way that can be read; only where `time`, when it was said, is known.
    """
    words = frozenset(tokenize(text))
    nameless = strip_names(text, [name for name in people if name])
    return (
        QUESTION * bool(_ASKS.search(text))
        | FIRST_PERSON * bool(words & SELF)
        | NUMBER * (bool(words & _COUNTS) or any(word[0].isdigit() for word in words))
        | CAPITAL * bool(_CAPITAL.search(nameless))
        | TIME * (time is not None and bool(read_dates(text, time)))
    )


TURNS_BEFORE = 2
"""Turns before a raw entry that its row knows."""
RARE = 400
"""Documents that hold a word, up to which all of them are looked at for it."""
_HOLD = "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY rowid DESC LIMIT ?"
_COUNT = "SELECT count(*) FROM lexical WHERE lexical MATCH ?"
_READ = """
SELECT row, own, dated, before, words FROM lexical_words
WHERE row IN (SELECT value FROM json_each(?))
"""
MOST_WORDS, MOST_ENTRIES = 5_000, 1_500
"""What `Kept` has of each at most, before it begins anew."""


@dataclass(frozen=True)
class LexicalRow:
    """What the lexical view knows of an entry.

    Attributes:
        row: The entry's integer key in the ledger.
        scope_key: `Scope.key` of its base scope.
        time: When it was said or happened, in the zone its date shall be read in.
        before: Texts of the two turns before it in its session, raw entries only.
        people: Whom it may address or be about: who spoke in those turns, or the persons of a fact.
    """

    row: int
    scope_key: str
    granularity: Granularity
    text: str
    speaker: str | None = None
    time: datetime | None = None
    before: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def rows_of(conn: sqlite3.Connection, stored: Sequence[StoredEntry]) -> list[LexicalRow]:
    """What the lexical view shall know of entries."""
    said: dict[str, dict[str, list[turns.Said]]] = {}
    raw = [one.entry for one in stored if one.entry.granularity == "raw" and one.entry.turns]
    for scope in {entry.scope.base for entry in raw}:
        ids = [entry.turns[0] for entry in raw if entry.scope.base == scope]
        said[scope.key] = turns.before(conn, scope, ids, TURNS_BEFORE)
    return [_row_of(one, said.get(one.entry.scope.key, {})) for one in stored]


def _row_of(stored: StoredEntry, said: Mapping[str, Sequence[turns.Said]]) -> LexicalRow:
    entry = stored.entry
    time = entry.event_time or entry.observed_at
    before: tuple[str, ...] = ()
    people = entry.persons
    if entry.granularity == "raw" and entry.turns:
        time = entry.observed_at
        earlier = said.get(entry.turns[0])
        if earlier is not None:
            before = tuple(other.text for other in earlier)
            people = tuple(dict.fromkeys(other.speaker for other in earlier))
    return LexicalRow(
        row=stored.row,
        scope_key=entry.scope.key,
        granularity=entry.granularity,
        text=entry.text,
        speaker=entry.speaker,
        time=time,
        before=before,
        people=people,
    )


class LexicalTerms(NamedTuple):
    """What is kept of a row: how many words each field has, the words as numbers, and the traits."""

    own: int
    dated: int
    before: int
    words: bytes
    traits: int


def _stems(row: LexicalRow) -> tuple[Sequence[str], ...]:
    """Stems by field: own text; speaker and date; the turns before."""
    time, day = row.time, ""
    if time is not None:
        day = f"{DAY_NAMES[time.weekday()]} {time.day} {MONTH_NAMES[time.month - 1]} {time.year}"
    return (
        base_stems(row.text),
        (*base_stems(row.speaker or ""), *base_stems(day)),
        [stem for text in row.before for stem in base_stems(text)],
    )


@lru_cache(maxsize=4096)
def _scope_token(scope_key: str, granularity: Granularity) -> str:
    digest = blake2b(f"{granularity}\0{scope_key}".encode(errors="surrogatepass"), digest_size=16)
    return "s" + digest.hexdigest()


@per_text(8192)
def _number(stem: str) -> int:
    """A stem as 64 bits; stems of one store do not collide in practice."""
    return int.from_bytes(blake2b(stem.encode(), digest_size=8).digest(), "little", signed=True)


def numbers(stems_of_text: Iterable[str]) -> Ints:
    """Stems as the numbers that rows keep, irregular forms brought to their base ("went" and "go" meet)."""
    return np.array([_number(stem) for stem in based(stems_of_text)], dtype=full_text.NUMBER)


@per_text(1024, lambda row: len(row.text))
def terms_of(row: LexicalRow) -> LexicalTerms:
    """What is kept of a row.

    Cached: an open session's entries are in no index, and read by every search until they are.
    """
    fields = _stems(row)
    own, dated, before = map(len, fields)
    traits = traits_of(row.text, row.time, (row.speaker, *row.people))
    if row.granularity == "raw":
        answers = bool(row.before) and asks(row.before[-1])
        traits |= SILENT * (not tells(row.text, answers=answers))
    return LexicalTerms(own, dated, before, numbers(chain(*fields)).tobytes(), traits)


def documents(rows: Collection[Sequence[Any]]) -> Documents:
    """The words of rows, each given by its key and its `LexicalTerms`; none of facts, not known here."""
    return Documents(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([(*row[1:4], 0) for row in rows], dtype=np.int64).reshape(-1, FIELDS),
        np.frombuffer(b"".join(row[4] for row in rows), dtype=full_text.NUMBER),
    )


def put(conn: sqlite3.Connection, rows: Sequence[LexicalRow]) -> None:
    """Adds rows, or replaces those already there. Part of the caller's transaction."""
    tokens = [_scope_token(row.scope_key, row.granularity) for row in rows]
    kept = [(row.row, token, row.speaker, *terms_of(row)) for row, token in zip(rows, tokens, strict=True)]
    full_text.put(conn, kept)


@dataclass
class Kept:
    """What was read of a large base scope, as of one of its changes: searches after another share much of it.

    Attributes:
        words, entries: What scoring and a snapshot take, by row.
        rows: Of entries that were read, by id. waiting: those of them that are staged.
    """

    change: int = 0
    words: dict[int, sqlite3.Row] = field(default_factory=dict)
    entries: dict[int, sqlite3.Row] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)

    def bounded(self) -> "Kept":
        """This, or begun anew where it takes some five MB."""
        full = len(self.words) > MOST_WORDS or len(self.entries) > MOST_ENTRIES
        return Kept(self.change) if full else self

    def at(self, change: int, changed: Iterable[int]) -> "Kept":
        """What of it still holds after that change, which was made to these rows."""
        words, entries = self.words.copy(), self.entries.copy()
        # The words of what waits for its commit depend on what was said before.
        for row in {*changed, *self.waiting}:
            words.pop(row, None)
            entries.pop(row, None)
        return Kept(change, words=words, entries=entries, rows=self.rows)


def score(
    conn: sqlite3.Connection,
    scope_key: str,
    granularity: Granularity,
    queries: Sequence[Sequence[str]],
    extra: Sequence[LexicalRow] = (),
    *,
    kept: Kept | None = None,
) -> list[Scores]:
    """BM25 of the entries of a scope and granularity that hold a stem, for each query.

    Of stems that more than `RARE` entries hold, only those are looked at that hold a rarer one too, or
    several; where there is none, the last ones. The words are read and counted once for all queries.

    Args:
        queries: Stems of each, from `stems` or `content_stems`; a repeated one counts once.
        extra: Staged rows, not in the index, scored along in the same statistics.
        kept: Of this scope as it is now; what it lacks is read into it.
    """
    index = _Index(conn, _scope_token(scope_key, granularity), kept or Kept())
    staged = [(row.row, *terms_of(row)) for row in extra]
    asked = [frozenset(based(query)) for query in queries]
    held = {stem: index.holders([stem]) for stem in sorted(frozenset().union(*asked))}
    common = {stem: index.count(stem) for stem, rows in held.items() if len(rows) > RARE}
    rows = {row for stems in asked for row in index.looked_at(stems, held, common)}
    found = documents([*index.words(rows.difference(row[0] for row in staged)), *staged])
    stats = index.stats().plus(documents(staged))
    counted = {_number(stem): count for stem, count in common.items()}
    return [_scored(found, stats, np.unique(numbers(query)), counted) for query in queries]


def _scored(found: Documents, stats: Stats, terms: Ints, counted: Mapping[int, int]) -> Scores:
    """BM25 of one query; `counted` says how many hold a term of which not all documents are given."""
    least = np.array([counted.get(term, 0) for term in terms.tolist()], dtype=np.int64)
    held = postings(found, places(found.words, terms), len(terms))
    views, known = weigh(held, found.lengths, stats, len(terms), least)
    some = views.any(axis=1)
    return Scores(found.rows[some], views[some], known)


class _Index(NamedTuple):
    """The index, as far as one scope and granularity goes."""

    conn: sqlite3.Connection
    scope: str
    kept: Kept

    def looked_at(
        self, stems: Iterable[str], held: Mapping[str, Sequence[int]], common: Mapping[str, int]
    ) -> Iterable[int]:
        """The documents that are looked at for one query."""
        rare = [held[stem] for stem in stems if stem not in common]
        if sum(map(len, rare)) >= RARE or not common:
            return chain(*rare)
        # Too few hold a rare word: those that hold the most telling of the common ones are looked at as well.
        often = sorted(common.keys() & stems, key=lambda stem: (common[stem], stem))
        return chain(*rare, *(self.holders(often[:count]) for count in range(len(often), 0, -1)))

    def holders(self, stems: Sequence[str]) -> list[int]:
        """Rows that hold all of the stems, the last first; of more than `RARE` one more than that."""
        return [row[0] for row in self.conn.execute(_HOLD, (self._match(stems), RARE + 1))]

    def count(self, stem: str) -> int:
        """How many rows hold a stem."""
        return int(self.conn.execute(_COUNT, (self._match([stem]),)).fetchone()[0])

    def words(self, wanted: set[int]) -> list[sqlite3.Row]:
        """What is kept of these rows, in their order."""
        if lacking := wanted - self.kept.words.keys():
            found = self.conn.execute(_READ, (json_list(lacking),))
            self.kept.words.update((row[0], row) for row in found)
        return [self.kept.words[row] for row in sorted(wanted) if row in self.kept.words]

    def _match(self, stems: Sequence[str]) -> str:
        return full_text.match(full_text.terms(self.scope, numbers(stems).tobytes()))

    def stats(self) -> Stats:
        """How many there are, and how long."""
        found = self.conn.execute(
            "SELECT docs, dated, windowed FROM lexical_stats WHERE scope = ?", (self.scope,)
        )
        docs, dated, windowed = found.fetchone() or (0, 0, 0)
        return Stats(docs, np.array([dated, windowed, windowed]))
