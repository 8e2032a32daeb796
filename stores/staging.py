"""Takes turns in, each once and without any model."""

import sqlite3
from collections.abc import Mapping, Sequence

from memcycle.core.entry import Entry, new_entry
from memcycle.core.errors import BadInput
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn, turn_id
from memcycle.stores.ledger import entries, events, meta, sessions, turns
from memcycle.stores.ledger.columns import Vector
from memcycle.stores.writer import Writer

ACTOR = "ingest"


def session_of(scope: Scope) -> str:
    """The scope's session.

    Raises:
        BadInput: it names none.
    """
    if scope.session is None:
        raise BadInput("this needs a scope with a session, e.g. scope.within('main')")
    return scope.session


def prepare(
    conn: sqlite3.Connection, scope: Scope, given: Sequence[Turn], redactor: Redactor
) -> tuple[list[Turn], list[Turn]]:
    """The turns as they may be stored, and those of them that are neither stored nor forgotten.

    One that was stored or forgotten before redaction was switched on is left as it is, so that it is known.
    """
    clean = [redactor.turn(turn) if _is_new(conn, scope, turn) else turn for turn in given]
    return clean, [turn for turn in clean if _is_new(conn, scope, turn)]


def stage(
    writer: Writer, scope: Scope, given: Sequence[Turn], vectors: Mapping[str, Vector], embedder: str | None
) -> list[Turn]:
    """Stores turns with their raw entries, staged; a turn that is there already is not stored again.

    Args:
        vectors: By text; a text that is missing was not embedded.
        embedder: Id of the embedder of the vectors.

    Returns:
        The stored turns in the given order, old ones included, forgotten ones left out.

    Raises:
        BadInput: a turn of another session.
    """
    session, conn, stored = session_of(scope), writer.conn, []
    for turn in given:
        if turn.session != session:
            raise BadInput(f"turn {turn.id} is of session {turn.session!r}, the scope names {session!r}")
        old = turns.known(conn, scope, turn)
        if old is not None:
            stored.append(old)
        elif not _is_forgotten(conn, scope, turn):
            stored.append(_store(writer, scope, turn, vectors, embedder))
    return stored


def raw_entry(scope: Scope, turn: Turn) -> Entry:
    """The entry that holds a turn as it was said, with place and source's id for an import to restore."""
    metadata: dict[str, object] = {"position": turn.position}
    if turn.message_id is not None:
        metadata["message_id"] = turn.message_id
    return new_entry(
        scope.within(turn.session),
        "raw",
        turn.text,
        (turn.id,),
        speaker=turn.speaker,
        role=turn.role,
        observed_at=turn.time,
        actor=ACTOR,
        metadata=metadata,
    )


def _is_new(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> bool:
    return turns.known(conn, scope, turn) is None and not _is_forgotten(conn, scope, turn)


def _is_forgotten(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> bool:
    return meta.is_turn_forgotten(conn, scope, turns.identity_of(turn))


def _store(
    writer: Writer, scope: Scope, turn: Turn, vectors: Mapping[str, Vector], embedder: str | None
) -> Turn:
    conn = writer.conn
    sessions.reopen(conn, scope, turn.session, writer.now)
    placed = _placed(conn, scope, turn)
    # Its identity stays that of the place it asked for: the same message asks for the same place again.
    turns.insert(conn, scope, placed, turns.identity_of(turn))
    sessions.advance(conn, scope, turn.session, placed.position)
    vector = vectors.get(placed.text)
    entry = raw_entry(scope, placed).model_copy(update={"embedder": None if vector is None else embedder})
    if entries.one(conn, scope, entry.id) is None:
        stored = writer.insert(entry, vector)
        writer.record([events.line("stage", None, stored.entry)], actor=ACTOR)
    return placed


def _placed(conn: sqlite3.Connection, scope: Scope, turn: Turn) -> Turn:
    """The turn with a free place and a free id; an id not made from its place is kept where free."""
    position = turn.position
    own = turn.id != turn_id(turn.session, turn.position) and turns.id_free(conn, scope, turn.id)
    while (
        position < 1
        or not turns.place_free(conn, scope, turn.session, position)
        or not (own or turns.id_free(conn, scope, turn_id(turn.session, position)))
    ):
        position = max(position, sessions.last_position(conn, scope, turn.session)) + 1
    return turn.model_copy(
        update={"position": position, "id": turn.id if own else turn_id(turn.session, position)}
    )
