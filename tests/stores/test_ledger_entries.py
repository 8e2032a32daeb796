from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcycle.core.entry import new_entry
from memcycle.core.world import World
from memcycle.stores.ledger import entries
from memcycle.stores.ledger.connection import Ledger
from tests.banks import ANN, fact

VIENNA = timezone(timedelta(hours=2))
FULL = {
    "kind": "preference",
    "title": "Tea",
    "pattern": "SVO",
    "speaker": "Ann",
    "role": "human",
    "related_turns": ("D1:9",),
    "quote": "I love tea",
    "event_time": datetime(2023, 5, 7, 1, 30, tzinfo=VIENNA),
    "event_precision": "day",
    "valid_from": datetime(2023, 5, 7, tzinfo=UTC),
    "valid_until": datetime(2024, 5, 7, tzinfo=UTC),
    "observed_at": datetime(2023, 5, 7, 12, 0, 0, 123456, tzinfo=UTC),
    "recorded_at": datetime(2023, 5, 8, tzinfo=UTC),
    "entities": ("tea", "O'Brien"),
    "persons": ("Ann",),
    "locations": ("Graz",),
    "topics": ("drinks",),
    "keywords": ("love",),
    "importance": 0.7,
    "confidence": 0.9,
    "reinforcement": 0.1,
    "access_count": 3,
    "status": "active",
    "supersedes": ("x",),
    "superseded_by": "y",
    "embedder": "e",
    "actor": "constructor",
    "prompt": "p1",
    "model": "m",
    "pipeline": "v",
    "expires_at": datetime(2030, 1, 1, tzinfo=UTC),
    "metadata": {"nested": {"list": [1, None, "ü"]}},
}


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger.open(tmp_path / "ledger.sqlite3", World())
    yield opened
    opened.close()


def put(ledger, *made, vector=None):
    with ledger.write() as conn:
        return entries.insert(conn, [(entry, vector) for entry in made])


def test_every_field_comes_back(ledger):
    entry = new_entry(ANN, "fact", "Ann loves tea", ("D1:1", "D1:2"), **FULL)
    vector = np.array([0.6, 0.8], dtype=np.float32)
    (stored,) = put(ledger, entry, vector=vector)
    with ledger.read() as conn:
        found = entries.by_rows(conn, [stored.row])[stored.row]
    assert found.entry == entry
    assert found.vector.tolist() == vector.tolist()
    assert found.entry.event_time.utcoffset() == timedelta(0)


def test_what_a_reader_does_to_an_entry_is_its_own(ledger):
    (stored,) = put(ledger, new_entry(ANN, "fact", "Ann loves tea", ("D1:1",), **FULL), vector=np.ones(2))
    with ledger.read() as conn:
        first, second = (entries.by_rows(conn, [stored.row])[stored.row] for _ in range(2))
    first.entry.metadata["nested"]["list"].append(2)
    assert second.entry.metadata == FULL["metadata"]
    with pytest.raises(ValueError, match="read-only"):
        first.vector[0] = 5


def test_a_changed_entry_is_read_as_it_is_now(ledger):
    (stored,) = put(ledger, new_entry(ANN, "fact", "Ann loves tea", ("D1:1",)))
    seen = []
    for importance in (0.1, 0.9, 0.1):
        with ledger.write() as conn:
            conn.execute("UPDATE entries SET importance = ?", (importance,))
            seen.append(entries.by_rows(conn, [stored.row])[stored.row].entry.importance)
    assert seen == [0.1, 0.9, 0.1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.dictionaries(st.text("ab'\";%"), st.integers()),
)
def test_any_text_is_only_text(ledger, text, metadata):
    turn = text.replace("\0", "")
    entry = fact(text, turn, metadata=metadata, speaker=text, quote=text)
    with ledger.write() as conn:
        [stored] = entries.insert(conn, [(entry, None)])
        assert entries.one(conn, ANN, entry.id).entry == entry
        assert [one.entry.id for one in entries.by_turns(conn, ANN, [turn])] == [entry.id]
        entries.delete(conn, [stored.row])


def test_a_zero_vector_is_none(ledger):
    (stored,) = put(ledger, fact("x"), vector=np.zeros(3, dtype=np.float32))
    with ledger.read() as conn:
        assert entries.by_rows(conn, [stored.row])[stored.row].vector is None


def test_a_listing_is_narrowed_by_session_granularity_kind_and_status(ledger):
    two = ANN.within("2")
    put(
        ledger,
        fact("a"),
        fact("b", scope=two),
        fact("c", kind="preference"),
        fact("d", granularity="episode"),
        fact("e", status="forgotten"),
    )
    with ledger.read() as conn:

        def listed(scope, **fields):
            found = entries.by_ids(conn, scope, entries.ids_of(conn, scope, **fields))
            return sorted(one.entry.text for one in found.values())

        assert listed(ANN.base) == ["a", "b", "c", "d"]
        assert listed(two) == ["b"]
        assert listed(ANN, kind="preference") == ["c"]
        assert listed(ANN.base, granularity="episode") == ["d"]
        assert listed(ANN, statuses=("forgotten",)) == ["e"]
        assert entries.counts(conn, ANN, ["staged", "active"]) == {"fact": 2, "episode": 1}


def test_more_ids_than_sqlite_takes_parameters(ledger):
    (stored,) = put(ledger, fact("a"))
    with ledger.read() as conn:
        assert list(entries.by_rows(conn, range(100_000))) == [stored.row]
