"""Hard delete: what else holds an entry's words, and leaving none of them in any table."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from memcycle.core.entry import Entry
from memcycle.core.language.forget_requests import Request, repeats
from memcycle.core.language.tokens import based, content_stems
from memcycle.core.scope import Scope
from memcycle.stores import undo
from memcycle.stores.ledger import entries, events, full_text, links, meta, outbox, probes, turns, weights
from memcycle.stores.ledger.entries import StoredEntry
from memcycle.stores.ledger.schema import OF_A_SCOPE
from memcycle.stores.writer import Writer, united


def holders(conn: sqlite3.Connection, entry: Entry) -> list[StoredEntry]:
    """What else holds the words of an entry, of any status, in conversation order.

    These are the turns it rests on; facts of those turns that share a word with it other than names and
    function words (all of them, where the entry is a turn itself); and the episodes over those turns.
    """
    related = entries.by_turns(conn, entry.scope, entry.turns)
    names = {one.speaker for one in (stored.entry for stored in related) if one.speaker}
    words = _words(entry.text, names | set(entry.persons))

    def shares(text: str) -> bool:
        return bool(words & set(content_stems(text))) or (not words and text == entry.text)

    whole = entry.granularity == "raw"
    return [
        one
        for one in related
        if one.entry.id != entry.id and (whole or one.entry.granularity != "fact" or shares(one.entry.text))
    ]


def doomed(conn: sqlite3.Connection, scope: Scope, entry_id: str, *, only: bool) -> list[StoredEntry]:
    """What forgetting an entry removes: it, and its holders unless `only`. Nothing for an unknown id."""
    stored = entries.one(conn, scope, entry_id)
    if stored is None:
        return []
    return [stored] if only else [stored, *holders(conn, stored.entry)]


def saying(conn: sqlite3.Connection, scope: Scope, request: Request) -> list[Entry]:
    """Entries of any status of which a sentence has all the words that a request to forget names."""
    found = [name for _, name, text in entries.texts(conn, scope) if repeats(request, text)]
    return [one.entry for one in entries.by_ids(conn, scope, found).values()]


def asked_away(
    conn: sqlite3.Connection, scope: Scope, ids: Iterable[str], words: Collection[str]
) -> list[StoredEntry]:
    """What erasing these entries removes: of the facts of their turns those that share one of the words.

    An episode goes alone: its turns say much else.
    """
    chosen = list(entries.by_ids(conn, scope, ids).values())
    own = {one.entry.id for one in chosen}
    told = [stored.entry for stored in chosen if stored.entry.granularity != "episode"]
    held = {one.entry.id: one for entry in told for one in holders(conn, entry)}
    for one in held.values():
        says_it = set(words) & set(based(content_stems(one.entry.text)))
        if one.entry.id not in own and (one.entry.granularity != "fact" or says_it):
            chosen.append(one)
    return chosen


def forget(writer: Writer, scope: Scope, chosen: Sequence[StoredEntry]) -> None:
    """Removes entries for good, with all that the ledger keeps of them, and leaves tombstones.

    A turn goes with its raw entry, a probe with any turn or entry whose words it may hold; what its repair
    wrote and nobody weighed goes back before, since nobody would know of it. Entries that were
    replaced by a removed one and not by another stay out of recall: forgetting what replaced a fact does not
    make the old fact true again.
    """
    conn = writer.conn
    ids = {one.entry.id for one in chosen}
    said = [turn for one in chosen if one.entry.granularity == "raw" for turn in one.entry.turns]
    gone = turns.by_ids(conn, scope, said)
    dropped = probes.holding(conn, scope, said, ids)
    unweighed = [one for one in dropped if one.repair is not None and one.repair.state == "written"]
    undo.retract_repairs(writer, scope, unweighed, "what it was examined with was forgotten")
    probes.delete(conn, scope, dropped)
    chosen = list(entries.by_ids(conn, scope, ids).values())
    identities = map(turns.identity_of, gone.values())
    meta.bury(conn, scope, "turn", [*turns.identities(conn, scope, said), *identities])
    meta.bury(conn, scope, "text", [one.entry.text for one in chosen if one.entry.granularity != "raw"])
    _mend_chains(writer, scope, chosen, ids)
    # Other facts of the removed turns stay, but not the words of the turn that they quote.
    for one in entries.by_turns(conn, scope, said):
        if one.entry.id not in ids and one.entry.quote:
            writer.change(one, quote=None)
    events.erase(conn, scope, ids)
    # A role that was shown these entries may quote them where it says why it changed another.
    speakers = {one.entry.speaker for one in chosen if one.entry.speaker}
    events.blank_reasons(conn, scope, {stem for one in chosen for stem in _words(one.entry.text, speakers)})
    links.erase(conn, scope, ids)
    weights.clear_mentions(conn, scope)
    full_text.remove(conn, [one.row for one in chosen])
    entries.delete(conn, [one.row for one in chosen])
    turns.delete(conn, scope, said)
    outbox.put(conn, [(scope, entry_id) for entry_id in ids])
    for turn in gone.values():
        writer.reindex_after(scope, turn.session, turn.position)
    meta.owe_scrub(conn, [scope.base])


def forget_scope(conn: sqlite3.Connection, scope: Scope) -> int:
    """Removes everything of a base scope, tombstones too: who is erased is unknown, and may come anew.

    Gives how many entries were removed.
    """
    full_text.remove(conn, [row for row, _, _ in entries.texts(conn, scope)])
    # Their triggers note a change for each entry, so the tables of changes come last.
    deleted = [
        conn.execute(f"DELETE FROM {table} WHERE scope_key = ?", (scope.key,)).rowcount  # noqa: S608
        for table in OF_A_SCOPE
    ]
    outbox.erase(conn, scope)
    meta.erase_tombstones(conn, scope)
    meta.owe_scrub(conn, [scope])
    return deleted[0]


def _words(text: str, names: Iterable[str]) -> set[str]:
    return set(content_stems(text)) - {stem for name in names for stem in content_stems(name)}


def _mend_chains(writer: Writer, scope: Scope, chosen: Sequence[StoredEntry], ids: set[str]) -> None:
    """Ties what a removed entry had replaced to what replaced the removed one."""
    by_id = {one.entry.id: one.entry for one in chosen}
    around = {near for one in ids for near in links.neighbours(writer.conn, scope, one)} - ids
    heirs: dict[str, list[str]] = {}
    for survivor in entries.by_ids(writer.conn, scope, around).values():
        heir = survivor.entry.superseded_by
        if heir not in ids:
            continue
        seen: set[str] = set()
        while heir in ids and heir not in seen:
            seen.add(heir)
            heir = by_id[heir].superseded_by
        if heir is None or heir in ids:
            writer.change(survivor, status="forgotten", superseded_by=None)
        else:
            writer.change(survivor, superseded_by=heir)
            heirs.setdefault(heir, []).append(survivor.entry.id)
            links.put(writer.conn, scope, heir, survivor.entry.id)
    for successor in entries.by_ids(writer.conn, scope, around | heirs.keys()).values():
        earlier = [one for one in successor.entry.supersedes if one not in ids]
        whole = united(earlier, heirs.get(successor.entry.id, ()))
        if whole != successor.entry.supersedes:
            writer.change(successor, supersedes=whole)
