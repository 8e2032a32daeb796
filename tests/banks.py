"""Banks, turns and facts for tests of the stores."""

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np

from memcycle.core.edit import Applied, Edit
from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, turn_id
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.chroma.index import IndexedEntry, metadata_of
from memcycle.stores.ledger import turns as turn_rows
from tests.fakes import FakeEmbeddings

START = datetime(2024, 3, 1, 9, tzinfo=UTC)
SAID = datetime(2023, 5, 7, 12, tzinfo=UTC)
ANN = Scope(user="ann", session="1")
BOB = Scope(user="bob", session="1")


def clock() -> World:
    """Each look at the clock is a second later; ids count."""
    ticks, ids = itertools.count(), itertools.count()
    return World(
        now=lambda: START + timedelta(seconds=next(ticks)),
        new_id=lambda: f"id-{next(ids):06d}",
        sleep=lambda seconds: None,
    )


def open_bank(home, *, embeddings=None, **settings) -> Bank:
    chosen = Settings(home=home, **{"shards": 2} | settings)
    return Bank.open(chosen, embeddings=embeddings or FakeEmbeddings(), world=clock())


def said(position, text="hello", *, session="1", speaker="Ann", **fields) -> Turn:
    values = {"id": turn_id(session, position), "time": SAID + timedelta(minutes=position)} | fields
    return Turn(session=session, position=position, speaker=speaker, text=text, **values)


def fact(text, *turns, scope=ANN, **fields):
    made = {"observed_at": SAID, "actor": "constructor"} | fields
    return new_entry(scope, made.pop("granularity", "fact"), text, turns, **made)


def add(text, *turns, **fields) -> Edit:
    return Edit(op="ADD", entry=fact(text, *turns, **fields))


def update(target, text, *turns, **fields) -> Edit:
    return Edit(op="UPDATE", target=target, entry=fact(text, *turns, **fields))


def heard(bank, scope, *ids) -> None:
    """Makes turns known, without entries of their own and out of the way of those a test stages."""
    with bank.ledger.write() as conn:
        taken = conn.execute("SELECT count(*) FROM turns").fetchone()[0]
        for n, name in enumerate(ids, taken + 1):
            if turn_rows.id_free(conn, scope, name):
                turn_rows.insert(conn, scope, said(10_000 + n, name, session="heard", id=name), f"heard {n}")


def apply(bank, scope, edits, **more) -> Applied:
    """Applies edits, the turns they rest on made known."""
    heard(bank, scope, *(turn for edit in edits if edit.entry for turn in edit.entry.turns))
    return bank.apply(scope, edits, **more)


def texts(entries) -> list[str]:
    return [entry.text for entry in entries]


def files_holding(folder, marker: bytes) -> list[str]:
    """Names of the files at or below a folder that hold the bytes."""
    return [path.name for path in folder.rglob("*") if path.is_file() and marker in path.read_bytes()]


class ListIndex:
    """The vector index in a dict, in place of Chroma: same methods, no files."""

    def __init__(self, settings) -> None:
        self.settings, self.held, self.note = settings, {}, None

    def shard_of(self, scope) -> int:
        return len(scope.user) % self.settings.shards

    def upsert(self, items, batch) -> None:
        self.held.update({entry.id: (entry, np.array(vector)) for entry, vector in items})

    def delete(self, scopes_and_ids) -> None:
        for _, entry_id in scopes_and_ids:
            self.held.pop(entry_id, None)

    def query(self, scope, vectors, k, granularity=None, *, whole_shard=False):
        return [
            sorted(
                ((entry.id, float(vector @ asked)) for entry, vector in self.held.values()
                 if whole_shard
                 or (entry.scope.base == scope.base and granularity in (None, entry.granularity))),
                key=lambda pair: (-pair[1], pair[0]),
            )[:k]
            for asked in vectors
        ]  # fmt: skip

    def ids(self, scope=None) -> set[str]:
        return {one for one, (entry, _) in self.held.items() if scope in (None, entry.scope.base)}

    def copies(self):
        for entry_id, (entry, vector) in self.held.items():
            yield [IndexedEntry(self.shard_of(entry.scope), entry_id, entry.text, metadata_of(entry), vector)]

    def leftover(self) -> int:
        return 0

    def drop_shards(self, shards) -> None:
        self.held = {one: v for one, v in self.held.items() if self.shard_of(v[0].scope) not in shards}

    def scrub(self) -> None:
        return None

    def clear(self) -> None:
        self.held = {}

    def close(self) -> None:
        return None
