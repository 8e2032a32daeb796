"""What is wrong with what is stored in the end: lost, doubled, crossed, or there although forgotten.

It is read past the product: the ledger's tables, Chroma's collections, the home's files.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from benchmarks.soak.plan import Person, marks, strangers
from memcycle.core.settings import Settings
from memcycle.memory import Memory
from memcycle.stores.bank import LEDGER_FILE

if TYPE_CHECKING:
    from chromadb.api.client import Client

Fault = Literal["lost", "doubled", "crossed", "not forgotten"]
FAULTS: tuple[Fault, ...] = ("lost", "doubled", "crossed", "not forgotten")
API, LEDGER, INDEX = "API", "ledger", "Chroma"
COMPLETE = (API, LEDGER, INDEX)
"""Places that must hold every message as it was said, each once."""
RECALLED = ("active", "staged")
PAGE = 1_000


class Finding(NamedTuple):
    """One thing that is wrong. `where` it was seen: the API, a table, the index, an answer."""

    fault: Fault
    user: str
    where: str
    what: str


class Held(NamedTuple):
    """One text that is stored for a user.

    Attributes:
        where: The place it was read from.
        whole: Whether it is one entry that can be recalled, of which there must be one only.
        raw: Whether it is a message as it was said.
    """

    user: str
    where: str
    text: str
    whole: bool = False
    raw: bool = False


def compare(settings: Settings, persons: Sequence[Person], made: Mapping[str, set[str]]) -> list[Finding]:
    """Ends what is open, then compares what is stored with what must be, in every place.

    Args:
        made: By user the ids of facts and episodes that must be stored.
    """
    with Memory.open(settings=settings) as memory:
        for person in persons:
            for session in memory.sessions(user=person.user):
                if session.status == "open":
                    memory.end_session(session.session, user=person.user, verify=False)
        memory.bank.drain()
        held = [
            Held(person.user, API, entry.text, whole=True, raw=entry.granularity == "raw")
            for person in persons
            for entry in memory.memories(user=person.user)
        ]
        held += _in_ledger(settings.home / LEDGER_FILE)
        with memory.bank.indexes.mirror.index().client() as (client, _):
            held += _in_chroma(client)
        lost = [
            Finding("lost", user, "history", entry)
            for user, ids in made.items()
            for entry in sorted(ids)
            if not memory.bank.get(memory.scope(user), [entry])
        ]
    return [*findings(persons, held), *lost]


def findings(persons: Iterable[Person], held: Iterable[Held]) -> list[Finding]:
    """Compares every text that is stored, of all places, with what must be."""
    known = {person.user: person for person in persons}
    of_place: dict[tuple[str, str], list[Held]] = {}
    found: list[Finding] = []
    for one in held:
        person = known.get(one.user)
        if person is None:
            found.append(Finding("crossed", one.user, one.where, one.text))
            continue
        of_place.setdefault((one.user, one.where), []).append(one)
        wrong = [("crossed", mark) for mark in strangers(one.text, one.user)]
        wrong += [("not forgotten", mark) for mark in marks(one.text) & person.gone]
        found += [Finding(fault, one.user, one.where, mark) for fault, mark in wrong]  # type: ignore[arg-type]
    for user, person in known.items():
        wanted = {message.text: mark for mark, (_, message) in person.said.items()}
        for where in COMPLETE:
            there = {one.text for one in of_place.get((user, where), ()) if one.raw}
            found += [Finding("lost", user, where, wanted[text]) for text in wanted.keys() - there]
    for (user, where), texts in of_place.items():
        # Every text has its own mark: messages are there once as said, and no two entries say the same.
        times = Counter((one.raw, one.text) for one in texts if one.whole)
        found += [Finding("doubled", user, where, text) for (_, text), count in times.items() if count > 1]
    return found


def in_files(home: Path, gone: set[str]) -> list[Finding]:
    """Forgotten marks that a file of the home still holds."""
    return [
        Finding("not forgotten", mark, f"file {path.relative_to(home)}", mark)
        for path in sorted(home.rglob("*"))
        if path.is_file()
        for mark in sorted(gone & marks(path.read_bytes().decode("latin-1")))
    ]


_ENTRIES = """
SELECT user, text || ' ' || coalesce(quote, '') || entities || persons || locations || topics || keywords,
    granularity, status FROM entries WHERE granularity <> 'raw'
UNION ALL SELECT user, text, granularity, status FROM entries WHERE granularity = 'raw'
"""
_SCOPES = "(SELECT DISTINCT scope_key, user FROM sessions) USING (scope_key)"
_TEXTS = f"""
SELECT user, 'events', coalesce(before, '') || ' ' || coalesce(after, '') || ' ' || why
    FROM events JOIN {_SCOPES}
UNION ALL SELECT user, 'probes', data FROM probes JOIN {_SCOPES}
UNION ALL SELECT user, 'turns', text FROM turns JOIN {_SCOPES}
"""  # noqa: S608 - nothing in it is a value


def _in_ledger(path: Path) -> Iterator[Held]:
    """What the ledger's tables hold, of any status, with its log and its probes."""
    with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as conn:
        for user, text, granularity, status in conn.execute(_ENTRIES):
            whole = status in RECALLED
            yield Held(user, LEDGER, text, whole=whole, raw=whole and granularity == "raw")
        for user, source, text in conn.execute(_TEXTS):
            yield Held(user, f"{LEDGER}: {source}", text)


def _in_chroma(api: "Client") -> Iterator[Held]:
    """What Chroma holds, whatever collection it stands in."""
    for collection in api.list_collections():
        for offset in range(0, collection.count(), PAGE):
            page = collection.get(limit=PAGE, offset=offset, include=["documents", "metadatas"])
            for text, about in zip(page["documents"] or [], page["metadatas"] or [], strict=True):
                is_raw = about["granularity"] == "raw"
                yield Held(str(about["user"]), INDEX, text or "", whole=True, raw=is_raw)
