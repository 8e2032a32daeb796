import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.world import World
from memcycle.stores.ledger import entries
from memcycle.stores.ledger import entries as entry_writes
from memcycle.stores.ledger import entries as plain_entries
from memcycle.stores.ledger.connection import Ledger
from tests.banks import ANN, BOB, fact

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SHARES = st.floats(0, 1)


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger.open(tmp_path / "ledger.sqlite3", World())
    yield opened
    opened.close()


def put(ledger, *made):
    with ledger.write() as conn:
        return entry_writes.insert(conn, [(entry, np.ones(2, dtype=np.float32)) for entry in made])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(TEXTS, SHARES, st.dictionaries(TEXTS, st.integers() | TEXTS)), max_size=4),
    st.sampled_from(["", "\n", "\0", "\u2028", '","', "\\"]),
)
@example([("", 0.1 + 0.2, {}), ("", math.nextafter(1, 0), {})], "\n")
def test_the_same_is_read_as_with_vectors(ledger, given_, around):
    made = [
        new_entry(
            Scope(user="ann", session=f"{n % 2}{around}".replace("\0", "")),
            ("fact", "raw", "episode")[n % 3],
            f"{around}{text}{around}{n}",
            ("D1:1", f"D1:{n}"),
            importance=share,
            speaker=text,
            metadata=metadata,
        )
        for n, (text, share, metadata) in enumerate(given_)
    ]
    ids = [entry.id for entry in made]
    rows = [stored.row for stored in put(ledger, *made)]
    with ledger.write() as conn:
        full = {stored.row: stored.entry for stored in entries.by_rows(conn, rows).values()}
        assert plain_entries.by_rows_plain_entries(conn, rows) == full
        assert list(full.values()) == made
        assert plain_entries.by_ids_plain_entries(conn, ANN, ids) == {entry.id: entry for entry in made}
        for granularity in (None, "raw"):
            asked = (conn, ANN, ["D1:1"], granularity)
            assert plain_entries.by_turns_plain_entries(*asked) == [
                one.entry for one in entries.by_turns(*asked)
            ]
        entry_writes.delete(conn, rows)


def test_reads_stay_in_their_base_scope(ledger):
    mine, theirs = fact("same", "D1:1"), fact("same", "D1:1", scope=BOB)
    put(ledger, mine, theirs)
    with ledger.read() as conn:
        assert list(plain_entries.by_ids_plain_entries(conn, ANN, [mine.id, theirs.id])) == [mine.id]
        assert [one.id for one in plain_entries.by_turns_plain_entries(conn, ANN, ["D1:1"])] == [mine.id]
        assert plain_entries.by_turns_plain_entries(conn, ANN, ["D1:1"], statuses=("forgotten",)) == []


def test_what_a_reader_does_to_an_entry_is_its_own(ledger):
    metadata = {"nested": {"list": [1, None, "\u00fc"]}}
    (stored,) = put(ledger, fact("Ann loves tea", metadata=metadata))
    with ledger.read() as conn:
        first, second = (
            plain_entries.by_rows_plain_entries(conn, [stored.row])[stored.row] for _ in range(2)
        )
    first.metadata["nested"]["list"].append(2)
    assert second.metadata == {"nested": {"list": [1, None, "\u00fc"]}}


def test_a_changed_entry_is_read_as_it_is_now(ledger):
    (stored,) = put(ledger, fact("Ann loves tea"))
    seen = []
    for importance in (0.1, 0.9, 0.1):
        with ledger.write() as conn:
            conn.execute("UPDATE entries SET importance = ?", (importance,))
            seen.append(plain_entries.by_rows_plain_entries(conn, [stored.row])[stored.row].importance)
    assert seen == [0.1, 0.9, 0.1]
