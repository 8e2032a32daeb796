"""Ledgers as former versions left them, kept as files, and how one of the present version is made.

`python -m tests.stores.old_ledgers` writes that of the present schema version, with what it holds beside it.
Do so once, when a schema version is released, and never again: a file made by later code is no old file.
"""

import gzip
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from memcycle.core.probe import Probe
from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.langgraph_store import MemcycleStore
from memcycle.stores.ledger import schema
from tests.banks import ANN, BOB, add, clock, said
from tests.fakes import FakeEmbeddings

FIXTURES = Path(__file__).parent / "fixtures"
TWO = ANN.within("2")
NOTES = ("notes", "ann")
PROBE = Probe(
    id="p1", session="1", part=1, n=1, kind="temporal", question="When?", gold="In May", turn="D1:3"
)


def opened(home: Path) -> Bank:
    """A bank with the embedder that the kept ledgers were made with, and a clock that stands still."""
    return Bank.open(Settings(home=home, shards=2), embeddings=FakeEmbeddings(dim=8), world=clock())


def fill(bank: Bank) -> None:
    """Something of everything a ledger can hold."""
    lines = ["Ich wohne in Graz.", "I have a cat {called} 'Miso'.", "My trip was in May \N{CAT FACE}.", "Bye"]
    bank.stage_turns(ANN, [said(n, line, message_id=f"m{n}") for n, line in enumerate(lines, 1)])
    bank.apply(ANN, [add("Ann lives in Graz", "D1:1"), add("Ann has a cat", "D1:2")], close_segment_at=3)
    bank.save_probes(ANN, [PROBE])
    bank.commit_session(ANN)
    town, cat = sorted(bank.entries(ANN, granularity="fact"), key=lambda one: one.text, reverse=True)
    moved = bank.edit(ANN, town.id, "Ann lives in Linz", why="she moved")
    bank.queue_conflict(ANN, moved.id, cat.id, "for the next write")
    bank.mention(ANN, ["Miso"])
    bank.stage_turns(TWO, [said(1, "A late word", session="2", role="ai", speaker="helper")])
    bank.stage_turns(BOB, [said(1, "I am Bob", speaker="Bob"), said(2, "Forget this", speaker="Bob")])
    bank.commit_session(BOB, unverified="no model")
    secret = next(one for one in bank.entries(BOB) if one.text == "Forget this")
    bank.forget(BOB, secret.id)
    with MemcycleStore(bank) as store:
        store.put(NOTES, "a", {"text": "red wine", "n": [1, None]})
        store.put(NOTES, "b", {"text": "blue sea"}, ttl=10)


def content(bank: Bank) -> dict[str, Any]:
    """All that a person or an agent can get out of it, as JSON."""
    return json.loads(
        json.dumps(
            {
                # The log that goes with each is told under "history".
                "export": [
                    {key: value for key, value in row.items() if key != "log"}
                    for scope in (ANN.base, BOB.base)
                    for row in bank.export(scope)
                ],
                "sessions": [
                    one.model_dump(mode="json")
                    for scope in (ANN.base, BOB.base)
                    for one in bank.sessions(scope)
                ],
                "turns": [
                    turn.model_dump(mode="json")
                    for scope in (ANN, TWO, BOB)
                    for turn in bank.session_turns(scope)
                ],
                "probes": [one.model_dump(mode="json") for one in bank.probes(ANN.base)],
                "history": [
                    event.model_dump(mode="json")
                    for entry in bank.entries(ANN.base)
                    for event in bank.history(ANN, entry.id)
                ],
            }
        )
    )


def unpack(version: int, home: Path) -> None:
    """Puts the kept ledger of a version into a new home."""
    home.mkdir()
    packed = (FIXTURES / f"ledger-v{version}.sqlite3.gz").read_bytes()
    (home / LEDGER_FILE).write_bytes(gzip.decompress(packed))


def expected(version: int) -> dict[str, Any]:
    """What the kept ledger of a version held when it was made."""
    return json.loads((FIXTURES / f"ledger-v{version}.json").read_text(encoding="utf-8"))


def keep(folder: Path) -> None:
    """Writes the ledger of the present version and what it holds."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        with opened(home) as bank:
            fill(bank)
            held = content(bank)
        with closing(sqlite3.connect(home / LEDGER_FILE)) as conn:
            conn.execute("PRAGMA journal_mode = DELETE")
            conn.execute("VACUUM")
        # The same file makes the same bytes, whenever it is packed.
        packed = gzip.compress((home / LEDGER_FILE).read_bytes(), mtime=0)
    (folder / f"ledger-v{schema.VERSION}.sqlite3.gz").write_bytes(packed)
    text = json.dumps(held, ensure_ascii=False, indent=1, sort_keys=True)
    (folder / f"ledger-v{schema.VERSION}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    keep(FIXTURES)
