"""Table `probes`: the questions sessions were examined with, and what came of them."""

import sqlite3
from collections.abc import Iterable, Sequence

from memcycle.core.probe import Attempt, Probe
from memcycle.core.scope import Scope
from memcycle.stores.ledger import entries, turns
from memcycle.stores.ledger.columns import IN, json_list


def put(conn: sqlite3.Connection, scope: Scope, probes: Iterable[Probe]) -> None:
    """Stores probes, each in place of the one with its id in this base scope."""
    conn.executemany(
        "INSERT OR REPLACE INTO probes (scope_key, id, session, part, n, turns, refs, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                scope.key, one.id, one.session, one.part, one.n,
                json_list(sorted(turns_of(one))), json_list(sorted(refs_of(one))), one.model_dump_json(),
            )
            for one in probes
        ],
    )  # fmt: skip


def of_scope(conn: sqlite3.Connection, scope: Scope, part: int | None = None) -> list[Probe]:
    """Probes of the scope's session, of all without one; as sessions began, then by part and number."""
    found = conn.execute(
        "SELECT p.data FROM probes p JOIN sessions s USING (scope_key, session)"
        " WHERE p.scope_key = ? AND p.session = coalesce(?, p.session) AND p.part = coalesce(?, p.part)"
        " ORDER BY s.seq, p.part, p.n, p.id",
        (scope.key, scope.session, part),
    )
    return [Probe.model_validate_json(data) for (data,) in found]


def by_ids(conn: sqlite3.Connection, scope: Scope, ids: Iterable[str]) -> dict[str, Probe]:
    """Probes of the scope's session, of all without one, by id; unknown ids are left out."""
    found = conn.execute(
        f"SELECT id, data FROM probes WHERE scope_key = ? AND session = coalesce(?, session) AND id {IN}",  # noqa: S608
        (scope.key, scope.session, json_list(ids)),
    )
    return {name: Probe.model_validate_json(data) for name, data in found}


def delete(conn: sqlite3.Connection, scope: Scope, probes: Iterable[Probe]) -> None:
    """Removes these probes."""
    ids = json_list(one.id for one in probes)
    conn.execute(f"DELETE FROM probes WHERE scope_key = ? AND id {IN}", (scope.key, ids))  # noqa: S608


def holding(conn: sqlite3.Connection, scope: Scope, said: Iterable[str], held: Iterable[str]) -> list[Probe]:
    """The probes of the base scope that may hold words of any of these turns and entries.

    Whoever made a probe was shown other turns of its session than the one it rests on.
    """
    turn_ids, entry_ids = set(said), set(held)
    sessions = {turn.session for turn in turns.by_ids(conn, scope, turn_ids).values()}
    return [
        one
        for one in of_scope(conn, scope.base)
        if one.session in sessions or turns_of(one) & turn_ids or refs_of(one) & entry_ids
    ]


def intact(conn: sqlite3.Connection, scope: Scope, probes: Sequence[Probe]) -> list[Probe]:
    """Those of the probes whose turns and entries are all there, of whatever status."""
    said = turns.by_ids(conn, scope, {turn for one in probes for turn in turns_of(one)}).keys()
    held = entries.by_ids(conn, scope, {entry for one in probes for entry in refs_of(one)}).keys()
    return [one for one in probes if turns_of(one) <= said and refs_of(one) <= held]


def turns_of(probe: Probe) -> set[str]:
    """Ids of the turns whose words it may hold."""
    repaired = probe.repair.turn if probe.repair is not None else None
    return {probe.turn} | ({repaired} if repaired is not None else set())


def refs_of(probe: Probe) -> set[str]:
    """Ids of the entries whose words it may hold."""
    repair = probe.repair
    mended = {*repair.considered, *([repair.entry] if repair.entry else [])} if repair is not None else set()
    tried: list[Attempt] = [one for one in (probe.before, probe.after) if one is not None]
    read = {entry for one in tried for entry in (*one.evidence, *one.cited)}
    return {*probe.memories, *read, *mended}
