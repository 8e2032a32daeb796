"""A memory as plain records: out in an order that depends on its content alone, in only as a whole.

Each entry carries its log, so that in the copy history tells what happened, and `undo` takes it back. Of a
line only what is other than in the line after it, or in the entry, is written; read, it is whole again.
"""

import json
import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter, ValidationError

from memcycle.core.edit import Action, Event
from memcycle.core.entry import PERSON, STATUSES, Entry, Granularity, departure, same_text
from memcycle.core.errors import BadInput
from memcycle.core.language.tokens import content_stems
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.stores.edits import own_id
from memcycle.stores.ledger import entries, events, links, meta, sessions, turns
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.ledger.entries import RECALLABLE
from memcycle.stores.ledger.events import Numbered
from memcycle.stores.writer import Writer

ACTOR = "import"
PAGE = 500

_logger = logging.getLogger(__name__)


class Line(BaseModel):
    """A line of an entry's log as it is exported.

    Attributes:
        n, change, undoes: As in `events.Numbered`; `change` is left out where it is `n`.
        before: What the state before has that the one after has not; None where the entry was not there.
        after: What the state after has that the next line's state before has not, or, for the last line, the
            entry itself. Lines of a commit hold the status alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    change: int | None = None
    undoes: int | None = None
    at: AwareDatetime
    action: Action
    actor: str
    why: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] = {}


_LOGGED = TypeAdapter(dict[Literal["log"], tuple[Line, ...]])


class Record(NamedTuple):
    """A validated entry with its number in the file, from 1, and its log."""

    number: int
    entry: Entry
    log: Sequence[Numbered] = ()


def export(ledger: Ledger, scope: Scope) -> Iterator[dict[str, Any]]:
    """Every entry of the scope as JSON data with all fields and its log, whatever its status; no vectors.

    Read page by page: a slow consumer holds no view of the ledger open. Entries whose log is damaged are
    told without it: they are what cannot be made anew.
    """
    unlogged = 0
    with ledger.read() as conn:
        ids = entries.ids_of(conn, scope, statuses=STATUSES)
    for start in range(0, len(ids), PAGE):
        part = ids[start : start + PAGE]
        with ledger.read() as conn:
            found = entries.by_ids(conn, scope, part)
            try:
                logs = events.numbered(conn, scope, part)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                    raise
                logs, unlogged = {}, unlogged + len(part)
        for stored in entries.in_order(found, part):
            log = _told(stored.entry, logs.get(stored.entry.id, ()))
            yield stored.entry.model_dump(mode="json") | ({"log": log} if log else {})
    if unlogged:
        _logger.warning("%d entries are exported without their history, which is damaged", unlogged)


def read_records(scope: Scope, rows: Iterable[Mapping[str, Any]]) -> list[Record]:
    """Validates exported records and makes them the scope's own.

    User and workspace become those of `scope`. An id that does not follow from the content under the new
    scope is derived anew, and what refers to it follows.

    Raises:
        BadInput: names the first bad record and its field.
    """
    return _rehomed(scope, [_read(scope, number, row) for number, row in enumerate(rows, start=1)])


def insert_records(
    writer: Writer,
    scope: Scope,
    records: Sequence[Record],
    vectors: Mapping[str, Vector],
    embedder: str | None,
) -> int:
    """Stores the records that are new. What is there already, or was forgotten, stays as it is.

    Returns:
        How many entries were inserted.

    Raises:
        BadInput: a superseded record whose successor is neither among the records nor in memory.
    """
    _check_successors(writer.conn, scope, records)
    known = entries.by_ids(writer.conn, scope, [record.entry.id for record in records])
    # The recallable ones first: what they turn out to be decides what their predecessors point at.
    fresh = sorted(
        {record.entry.id: record.entry for record in records if record.entry.id not in known}.values(),
        key=lambda entry: entry.status not in RECALLABLE,
    )
    barred = {one.id for one in fresh if _is_forgotten(writer.conn, scope, one)}
    _restore_log(writer, scope, fresh, barred, {record.entry.id: record.log for record in records})
    fresh = [entry for entry in fresh if entry.id not in barred]
    _restore_sessions(writer, scope, fresh)
    became: dict[str, str | None] = dict.fromkeys(barred)
    inserted: list[Entry] = []
    waiting: dict[tuple[Granularity, str], tuple[Entry, Vector | None]] = {}

    def insert_waiting() -> None:
        stored = [one.entry for one in writer.insert_all(list(waiting.values()))]
        writer.record([events.line("import", None, entry) for entry in stored], actor=ACTOR)
        inserted.extend(stored)
        waiting.clear()

    for entry in fresh:
        says = entry.granularity, entry.id if entry.granularity == "raw" else same_text(entry.text)
        if says in waiting:
            # The one before may be its twin, and must be there to be found.
            insert_waiting()
        twin = writer.duplicate(entry) if entry.status in RECALLABLE else None
        if twin is not None:
            became[entry.id] = writer.merge(twin, entry, actor=ACTOR, why="it says the same").entry.id
            continue
        vector = vectors.get(entry.text)
        kept = _pointing(entry, became).model_copy(update={"embedder": None if vector is None else embedder})
        waiting[says] = kept, vector
    insert_waiting()
    # What says the same as an entry that is here already has become that entry, and has no log of its own.
    events.remove(writer.conn, scope, became.keys() - {entry.id for entry in inserted})
    _link(writer.conn, scope, inserted)
    return len(inserted)


def _told(entry: Entry, lines: Sequence[Numbered]) -> list[dict[str, Any]]:
    """A log as `Line`s, by what is other than in what came next."""
    state, told = events.state_of(entry), list[dict[str, Any]]()
    for n, change, undoes, event in reversed(lines):
        data = {"n": n, "at": event.at.isoformat(), "action": event.action, "actor": event.actor}
        data |= {"change": change} if change != n else {}
        data |= {} if undoes is None else {"undoes": undoes}
        data |= {"why": event.why} if event.why else {}
        for key, whole in (("after", event.after), ("before", event.before)):
            if whole is not None:
                kept = whole if event.action == "commit" else _other(whole, state)
                data |= {key: kept} if kept or key == "before" else {}
                state = {**state, **whole}
        told.append(data)
    return told[::-1]


def _other(whole: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """What a state has that the other has not. A log of long ago may hold fields that are known no more."""
    return {name: value for name, value in whole.items() if name in events.STATE and state.get(name) != value}


def _read(scope: Scope, number: int, row: Mapping[str, Any]) -> Record:
    if not isinstance(row, Mapping):
        raise BadInput(
            f"record {number}: expected an object with the fields of an entry, got {type(row).__name__}"
        )
    data = {"id": "", **row}
    try:
        # As JSON, where lists stand for tuples and text for times; an id may be left to be derived.
        log = json.dumps({"log": data.pop("log", ())}, allow_nan=False)
        entry = Entry.model_validate_json(json.dumps(data, allow_nan=False))
        lines = _LOGGED.validate_json(log)["log"]
    except ValidationError as error:
        raise _refused(f"record {number}, field ", error) from error
    except (TypeError, ValueError) as error:
        raise BadInput(f"record {number}: not plain JSON data ({error})") from error
    if not entry.text.strip() and entry.granularity != "raw":
        raise BadInput(f"record {number}, field text: is empty")
    if entry.scope.session is None and scope.session is None:
        raise BadInput(f"record {number}, field scope.session: every entry names the session it came from")
    return Record(number, entry, _log(number, entry, lines))


def _refused(where: str, error: ValidationError) -> BadInput:
    first = error.errors(include_url=False, include_input=False)[0]
    return BadInput(f"{where}{'.'.join(map(str, first['loc'])) or '(whole)'}: {first['msg']}")


def _log(number: int, entry: Entry, lines: Sequence[Line]) -> list[Numbered]:
    """The log with whole states, each that of an entry."""
    data, found = entry.model_dump(mode="json"), list[Numbered]()
    for place, line in reversed([*enumerate(lines)]):
        states: dict[str, dict[str, Any] | None] = {"after": line.after, "before": line.before}
        for name, kept in states.items():
            if kept is None:
                continue
            try:
                data = Entry.model_validate_json(json.dumps(data | kept)).model_dump(mode="json")
            except ValidationError as error:
                raise _refused(f"record {number}, field log.{place}.{name}.", error) from error
            keys = kept.keys() if line.action == "commit" else events.STATE
            states[name] = {key: value for key, value in data.items() if key in keys}
        event = Event(
            id="", entry_id=entry.id, **line.model_dump(include={"at", "action", "actor", "why"}), **states
        )
        found.append(Numbered(line.n, line.n if line.change is None else line.change, line.undoes, event))
    return found[::-1]


def _rehomed(scope: Scope, records: Sequence[Record]) -> list[Record]:
    """The records under the scope's user and workspace, with ids that follow from it."""
    moved, new_ids = list[Record](), dict[str, str | None]()
    of_session: dict[str | None, Scope] = {}
    for number, entry, log in records:
        session = entry.scope.session or scope.session
        own = of_session.setdefault(session, scope.model_copy(update={"session": session}))
        here = entry.model_copy(update={"scope": own})
        new_ids[entry.id] = new_id = own_id(here)
        moved.append(Record(number, here.model_copy(update={"id": new_id}), log))
    return [
        Record(number, _pointing(entry, new_ids), [_renamed(line, entry.id, new_ids) for line in log])
        for number, entry, log in moved
    ]


def _renamed(line: Numbered, own: str, new_ids: Mapping[str, str | None]) -> Numbered:
    """The line as one of the entry `own`, its references renamed."""

    def name(state: dict[str, Any] | None) -> dict[str, Any] | None:
        if state is None or "id" not in state:
            return state
        names = {key: new_ids.get(state[key], state[key]) for key in ("id", "superseded_by") if state[key]}
        return state | names | {"supersedes": [new_ids.get(one, one) for one in state["supersedes"]]}

    changes = {"entry_id": own, "before": name(line.event.before), "after": name(line.event.after)}
    return line._replace(event=line.event.model_copy(update=changes))


def _pointing(entry: Entry, new_ids: Mapping[str, str | None]) -> Entry:
    """The entry with its references renamed; one that was replaced by nothing stays out of recall."""
    if entry.status != "superseded" and not (entry.superseded_by or entry.supersedes):
        return entry
    after = new_ids.get(entry.superseded_by, entry.superseded_by) if entry.superseded_by else None
    before = [new_ids.get(one, one) for one in entry.supersedes]
    lost = entry.status == "superseded" and after is None
    return entry.model_copy(
        update={
            "superseded_by": after,
            "supersedes": tuple(dict.fromkeys(one for one in before if one is not None)),
            "status": "forgotten" if lost else entry.status,
        }
    )


def _check_successors(conn: sqlite3.Connection, scope: Scope, records: Sequence[Record]) -> None:
    here = {record.entry.id for record in records}
    named = {one.entry.superseded_by for one in records if one.entry.superseded_by}
    here |= entries.by_ids(conn, scope, named - here).keys()
    for number, entry, _ in records:
        if entry.superseded_by is not None and entry.superseded_by not in here:
            where = f"record {number}, field superseded_by"
            raise BadInput(f"{where}: names no entry of the file or of this memory")


def _is_forgotten(conn: sqlite3.Connection, scope: Scope, entry: Entry) -> bool:
    if entry.granularity != "raw":
        return meta.is_forgotten(conn, scope, "text", entry.text)
    turn = _turn(entry)
    return turn is not None and meta.is_forgotten(conn, scope, "turn", turns.identity_of(turn))


def _restore_log(
    writer: Writer,
    scope: Scope,
    fresh: Sequence[Entry],
    barred: Collection[str],
    logs: Mapping[str, Sequence[Numbered]],
) -> None:
    """Brings back what happened to the entries, but nothing of what was forgotten here."""
    gone = {line.change for one in barred for line in logs[one]}
    kept = []
    for line in (line for entry in fresh if entry.id not in barred for line in logs[entry.id]):
        before, why = line.event.before, "" if line.change in gone else line.event.why
        text = (before or {}).get("text") or ""
        if before and (before.get("id") in barred or meta.is_forgotten(writer.conn, scope, "text", text)):
            before = None
        kept.append(line._replace(event=line.event.model_copy(update={"before": before, "why": why})))
    events.restore(writer.conn, writer.world, scope, kept)
    forgotten = [entry for entry in fresh if entry.id in barred]
    names = {stem for entry in forgotten for stem in content_stems(entry.speaker or "")}
    stems = {stem for entry in forgotten for stem in content_stems(entry.text)} - names
    events.blank_reasons(writer.conn, scope, stems)


def _turn(entry: Entry) -> Turn | None:
    """The turn a raw entry was made of, as far as the entry tells."""
    position, message_id = entry.metadata.get("position"), entry.metadata.get("message_id")
    if not entry.turns or not isinstance(position, int) or position < 1 or entry.observed_at is None:
        return None
    return Turn(
        id=entry.turns[0],
        session=str(entry.scope.session),
        position=position,
        speaker=entry.speaker or "",
        role=entry.role or "human",
        text=entry.text,
        time=entry.observed_at,
        message_id=message_id if isinstance(message_id, str) else None,
    )


def _restore_sessions(writer: Writer, scope: Scope, fresh: Sequence[Entry]) -> None:
    """Brings back sessions and turns, so that the same conversation is not taken in again."""
    conn = writer.conn
    waiting = {entry.scope.session for entry in fresh if entry.status == "staged"}
    for session in sorted({str(entry.scope.session) for entry in fresh}):
        own = scope.within(session)
        new = sessions.state(conn, own) is None
        if new or session in waiting:
            sessions.reopen(conn, own, writer.now)
        if new and session not in waiting:
            sessions.commit(conn, own, writer.now)
    # A turn that was edited or corrected has several raw entries: what was said last is not a person's
    # correction, and its message was not edited since.
    for entry in sorted(fresh, key=lambda one: one.actor == PERSON or departure(one) == "reworded"):
        turn = _turn(entry) if entry.granularity == "raw" else None
        known = turn is None or turns.known(conn, scope, turn) or not turns.id_free(conn, scope, turn.id)
        if turn is not None and not known and turns.place_free(conn, scope, turn.session, turn.position):
            turns.insert(conn, scope, turn, turns.identity_of(turn), "processed")
            sessions.advance(conn, entry.scope, turn.position)


def _link(conn: sqlite3.Connection, scope: Scope, inserted: Sequence[Entry]) -> None:
    pairs = {(entry.id, earlier) for entry in inserted for earlier in entry.supersedes}
    pairs |= {(entry.superseded_by, entry.id) for entry in inserted if entry.superseded_by}
    known = entries.by_ids(conn, scope, {one for pair in pairs for one in pair})
    for successor, predecessor in sorted(pairs):
        if successor in known and predecessor in known:
            links.put(conn, scope, successor, predecessor)
