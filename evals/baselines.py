"""Plain ways of searching, over the same stored entries as memcycle's own, for comparison in the same run.

They are written here from scratch, so that nothing of the store's ranking is in them:

- `naive_rag`: cosine of question and turn, turns only.
- `bm25`, `dense`: over everything stored, turns and facts. BM25 reads stems, with speaker and date.
- `rrf`: reciprocal rank fusion of those two, k = 60 (Cormack et al., SIGIR 2009).
- `weighted_sum`: the sum of those two, each scaled to 0..1 over the conversation (min-max).
- `facts_only`: cosine of question and fact, as langmem and mem0 retrieve; a fact counts for its turn.
- `full_context`: every turn, in order.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memcycle.core.entry import Entry
from memcycle.core.language.tokens import content_stems, stems

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, (n, dim)."""

RANKED = ("naive_rag", "bm25", "dense", "rrf", "weighted_sum", "facts_only")
FULL_CONTEXT = "full_context"
BASELINES = (*RANKED, FULL_CONTEXT)

K1, B = 0.9, 0.4
"""Constants of BM25 (Robertson and Zaragoza, 2009) that suit chats better than the textbook's 1.2 and 0.75:
on LoCoMo conversations 1-5 it finds 0.65 with them, 0.63 with those."""

RRF_K = 60


class Bm25:
    """BM25 over a fixed list of texts; function words of a query do not count, unless it has no others."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(stems(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=float)
        self._norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1.0)) if texts else lengths
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._times: defaultdict[str, list[int]] = defaultdict(list)
        for place, count in enumerate(counts):
            for term, times in count.items():
                self._places[term].append(place)
                self._times[term].append(times)

    def scores(self, query: str) -> Floats:
        """A score for each text, (texts,), 0 and above."""
        total = np.zeros(len(self._norm))
        for term in dict.fromkeys(content_stems(query) or stems(query)):
            places = self._places.get(term, [])
            tf = np.array(self._times.get(term, []), dtype=float)
            idf = np.log1p((len(total) - len(places) + 0.5) / (len(places) + 0.5))
            total[places] += idf * tf * (K1 + 1) / (tf + self._norm[places])
        return total


class Baselines:
    """The ways of searching over one conversation's stored entries. `turns`: the full context, in order."""

    def __init__(self, entries: Sequence[Entry], embed: Embed) -> None:
        """Over entries, raw turns and facts, in conversation order; others are left out."""
        self._entries = [entry for entry in entries if entry.granularity in ("raw", "fact")]
        self._embed = embed
        self._vectors = embed([entry.text for entry in self._entries])
        self._bm25 = Bm25([_dated(entry) for entry in self._entries])
        self._raw = np.array([entry.granularity == "raw" for entry in self._entries], dtype=bool)
        self.turns = [entry for entry in self._entries if entry.granularity == "raw"]

    def rankings(self, question: str) -> dict[str, list[Entry]]:
        """All that each way of `RANKED` looks at, best first; a way with nothing to look at is left out."""
        [vector] = self._embed([question])
        # Row by row: a matrix product may round a row differently beside other rows.
        dense = (self._vectors * vector).sum(axis=1).astype(float)
        words = self._bm25.scores(question)
        fused = sum(1 / (RRF_K + ranks(scores)) for scores in (dense, words))
        found = {
            "naive_rag": self._best(dense, self._raw),
            "bm25": self._best(words),
            "dense": self._best(dense),
            "rrf": self._best(np.asarray(fused)),
            "weighted_sum": self._best(scaled(words) + scaled(dense)),
            "facts_only": self._best(dense, ~self._raw),
        }
        return {name: entries for name, entries in found.items() if entries}

    def _best(self, scores: Floats, among: NDArray[np.bool_] | None = None) -> list[Entry]:
        """Entries by falling score; equal scores in conversation order."""
        order = np.argsort(-scores, kind="stable")
        return [self._entries[at] for at in order if among is None or among[at]]


def _dated(entry: Entry) -> str:
    """An entry's text with who said it and when."""
    when = f"{entry.observed_at:%d %B %Y}" if entry.observed_at else ""
    return f"{entry.speaker or ''} {when}: {entry.text}"


def ranks(scores: Floats) -> Floats:
    """1-based rank of each score, the highest first; equal scores in order."""
    places = np.empty(len(scores))
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places


def scaled(scores: Floats) -> Floats:
    """Scores scaled to 0..1; all 0 where they are alike."""
    if not scores.size or scores.max() <= scores.min():
        return np.zeros(len(scores))
    return np.asarray((scores - scores.min()) / (scores.max() - scores.min()))
