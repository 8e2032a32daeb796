"""Brings a copy of a scope up to date by the entries that changed, without reading the others again."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from memcycle.stores.search.bm25 import Documents, Ints
from memcycle.stores.search.copies import Copy
from memcycle.stores.search.resting import chosen, with_facts, without_facts

_PLAIN = (
    "granularity",
    "staged",
    "position",
    "time",
    "said",
    "expires",
    "traits",
    "importance",
    "reinforcement",
)


def merged(old: Copy, changed: Sequence[int], new: Copy) -> Copy:
    """The old copy without the changed ledger rows, and with all of the new one: what reading it whole gives.

    Args:
        changed: Rows that are left out of the old copy, those of the new one among them.
    """
    kept = np.flatnonzero(~np.isin(old.rows, np.asarray(changed, dtype=np.int64)))
    rows = np.concatenate([old.rows[kept], new.rows])
    order = np.argsort(rows)
    # Places in both copies laid end to end.
    places = np.concatenate([kept, np.arange(len(new.rows)) + len(old.rows)])[order]
    plain = {name: np.concatenate([getattr(old, name), getattr(new, name)])[places] for name in _PLAIN}
    session, sessions = _coded((old.session, old.sessions), (new.session, new.sessions), places)
    speaker, speakers = _coded((old.speaker, old.speakers), (new.speaker, new.speakers), places)
    turns, ids = old.turns + new.turns, old.ids + new.ids
    turns = [turns[place] for place in places.tolist()]
    own = _joined(without_facts(old.documents), without_facts(new.documents))
    documents = with_facts(
        chosen(own, places), turns, plain["granularity"], session=session, staged=plain["staged"]
    )
    return Copy(
        rows=rows[order],
        ids=[ids[place] for place in places.tolist()],
        session=session,
        sessions=sessions,
        speaker=speaker,
        speakers=speakers,
        turns=turns,
        vectors=np.concatenate([old.vectors, new.vectors])[places],
        documents=documents,
        **plain,
    )


def _joined(one: Documents, other: Documents) -> Documents:
    return Documents(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))


def _coded(
    one: tuple[Ints, list[str]], other: tuple[Ints, list[str]], places: Ints
) -> tuple[Ints, list[str]]:
    """Codes of two copies in one code: places in the names that are used, in order of appearance."""
    names = list(dict.fromkeys(chain(one[1], other[1])))
    codes = {name: code for code, name in enumerate(names)}
    # The last place is that of -1, nobody.
    both = [np.array([*map(codes.__getitem__, own), -1])[coded] for coded, own in (one, other)]
    joined = np.concatenate(both)[places]
    used, first = np.unique(joined[joined >= 0], return_index=True)
    used = used[np.argsort(first)]
    renamed = np.full(len(names) + 1, -1)
    renamed[used] = np.arange(len(used))
    return renamed[joined], [names[code] for code in used.tolist()]
