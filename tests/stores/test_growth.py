"""What one user costs does not grow with all that the user ever said, and nothing is lost for it."""

from datetime import timedelta

import pytest

from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.stores.ledger import entries
from memcycle.stores.search import lexical, snapshot
from memcycle.stores.search import search as search_module
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, SAID, open_bank, said

BOB = Scope(user="bob")


def say(bank, user, session, *texts, speakers=("Ann", "Ben"), commit=True, day=0):
    scope, begin = Scope(user=user, session=session), SAID + timedelta(days=day)
    turns = [
        said(n, text, session=session, speaker=speakers[n % len(speakers)], time=begin + timedelta(minutes=n))
        for n, text in enumerate(texts, start=1)
    ]
    bank.stage_turns(scope, turns)
    if commit:
        bank.commit_session(scope)


def hits(bank, user, text, **fields):
    [found] = bank.search(SearchRequest(scope=Scope(user=user), queries=(Query(text=text),), **fields))
    return [hit.entry.text for hit in found]


@pytest.fixture
def bank(tmp_path, list_index, monkeypatch):
    monkeypatch.setattr(search_module, "SCANNED_WHOLE", 20)
    monkeypatch.setattr(lexical, "RARE", 10)
    with open_bank(tmp_path / "h") as bank:
        yield bank


def steps(bank, work):
    """How much SQLite does for it, in hundreds of its instructions."""
    counted, real = [], bank.ledger._connect

    def connect():
        conn = real()
        conn.set_progress_handler(lambda: counted.append(1), 100)
        return conn

    bank.ledger._idle.clear()
    bank.ledger._connect = connect
    try:
        work()
        counted.clear()  # what is read once, and kept
        work()
    finally:
        bank.ledger._idle.clear()
        bank.ledger._connect = real
    return len(counted)


def filled(bank, sessions, first=0):
    for n in range(first, sessions):
        texts = [f"I put {a}{n} on the shelf of {b}{n}" for a, b in ("xy", "zw", "uv")]
        say(bank, "ann", f"s{n:03d}", *texts, day=n)


def test_what_a_user_costs_does_not_grow_with_what_was_said(bank):
    filled(bank, 20)

    def writes(n):
        bank.stage_turns(Scope(user="ann", session=f"now{n}"), [said(1, "A new lamp", session=f"now{n}")])

    def measured(n):
        return {
            "search": steps(bank, lambda: hits(bank, "ann", "x7 z7", theta=Theta(candidates=10))),
            "list": steps(bank, lambda: bank.by_time(ANN.base, limit=10)),
            "unread": steps(bank, lambda: bank.unprocessed(Scope(user="ann", session="s003"))),
            "speakers": steps(bank, lambda: bank.speakers(ANN)),
            "empty": steps(bank, lambda: bank.is_empty(ANN)),
            "write": steps(bank, lambda: writes(n)),
        }

    with bank.ledger.write() as conn:
        conn.execute("UPDATE turns SET state = 'processed'")
    few = measured(20)
    filled(bank, 160, 20)
    with bank.ledger.write() as conn:
        conn.execute("UPDATE turns SET state = 'processed'")
    many = measured(160)
    assert {name: count for name, count in many.items() if count > 2 * few[name] + 10} == {}


def test_a_rare_word_is_found_among_common_ones(bank):
    say(bank, "ann", "1", *(f"I put box {n} on the shelf" for n in range(60)))
    say(bank, "ann", "2", "I put the quokka on the shelf")
    say(bank, "ann", "3", *(f"I put box {n} on the shelf" for n in range(60)))
    assert hits(bank, "ann", "Where did I put the quokka: on the shelf or in a box?", k=1) == [
        "I put the quokka on the shelf"
    ]


def test_words_that_are_all_common_find_what_holds_all_of_them(bank):
    say(bank, "ann", "1", "The kettle stands on the shelf")
    say(bank, "ann", "2", *(f"A kettle, the number {n}" for n in range(30)))
    say(bank, "ann", "3", *(f"A shelf, the number {n}" for n in range(30)))
    assert hits(bank, "ann", "kettle shelf", k=1) == ["The kettle stands on the shelf"]


def test_a_common_word_counts_as_often_as_it_is_held(bank, monkeypatch):
    say(bank, "ann", "1", *(f"I put box {n} on the shelf" for n in range(60)))
    say(bank, "ann", "2", "I put the quokka on the shelf")
    with bank.ledger.read() as conn:
        [few] = lexical.score(conn, ANN.key, "raw", [["quokka", "shelf"]])
        monkeypatch.setattr(lexical, "RARE", 1000)
        [all_] = lexical.score(conn, ANN.key, "raw", [["quokka", "shelf"]])
    assert len(few.rows) < len(all_.rows) == 61
    held = dict(zip(all_.rows.tolist(), all_.views[:, 0].tolist(), strict=True))
    assert few.views[:, 0].tolist() == [held[row] for row in few.rows.tolist()]
    assert few.known == all_.known


def counted(bank):
    with bank.ledger.read() as conn:
        kept = conn.execute("SELECT * FROM lexical_stats ORDER BY scope").fetchall()
        anew = conn.execute(
            "SELECT scope, count(*), sum(own + dated), sum(own + before) FROM lexical_words"
            " GROUP BY scope ORDER BY scope"
        ).fetchall()
    assert [tuple(row) for row in kept] == [tuple(row) for row in anew]
    return len(kept)


def test_statistics_that_are_kept_are_those_that_would_be_counted(bank):
    filled(bank, 4)
    say(bank, "bob", "1", "A secret of mine")
    assert counted(bank) == 2
    [entry] = [one for one in bank.entries(ANN.base) if "x2" in one.text]
    bank.forget(ANN, entry.id)
    assert counted(bank) == 2
    bank.rebuild()
    assert counted(bank) == 2
    bank.forget_user("bob")
    assert counted(bank) == 1, "nothing is left of one who is forgotten"
    bank.forget_user("ann")
    assert counted(bank) == 0


@pytest.mark.parametrize("visibility", ["user", "session"])
def test_who_speaks_and_when_last_is_what_reading_all_says(tmp_path, list_index, visibility):
    with open_bank(tmp_path / "h", visibility=visibility) as bank:
        say(bank, "ann", "1", "One", "Two", "Three", speakers=("Zoë", "Ann", ""))
        say(bank, "ann", "2", "Late", "Later", speakers=("Dan",), commit=False)
        say(bank, "bob", "1", "Mine", speakers=("Bob",))
        for session in (None, "1", "2"):
            scope = Scope(user="ann", session=session)
            wall = entries.wall_of(scope, visibility)
            with bank.ledger.read() as conn:
                speakers, last = snapshot.spoken(conn, scope, wall)
            seen = [
                one
                for one in bank.entries(ANN.base)
                if one.status == "active" or wall in (None, one.scope.session)
            ]
            assert speakers == {one.speaker for one in seen if one.speaker}
            assert last == max(one.observed_at for one in seen).timestamp()


def test_a_listing_reads_in_the_order_it_was_said(bank):
    for session, day in (("b", 2), ("a", 3), ("c", 1)):
        scope = Scope(user="ann", session=session)
        times = [
            SAID + timedelta(days=day),
            SAID + timedelta(days=day),
            SAID + timedelta(days=day, seconds=0.5),
        ]
        turns = [said(n, f"{session}{n}", session=session, time=time) for n, time in enumerate(times, 1)]
        bank.stage_turns(scope, turns)
        bank.commit_session(scope)
    listed = [one.text for one in bank.by_time(ANN.base)]
    assert listed == ["c1", "c2", "c3", "b1", "b2", "b3", "a1", "a2", "a3"]
    assert [one.text for one in bank.by_time(ANN.base, words=("3",), limit=2)] == ["c3", "b3"]
    assert bank.by_time(ANN.base, limit=0) == []
    assert bank.by_time(BOB) == []


def test_a_scope_beside_larger_ones_in_its_shard_is_searched_as_if_alone(bank, list_index):
    say(bank, "ann", "1", *(f"tea {n}" for n in range(30)))
    alone = hits(bank, "ann", "tea", k=30)
    for n in range(8):
        say(bank, f"other{n}", "1", *(f"tea {n}" for n in range(100)))
    assert hits(bank, "ann", "tea", k=30) == alone
