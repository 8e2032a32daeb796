"""Which deleted facts probes ask for, what became of them, and how that is summed."""

import json

import pytest
import typer
from typer.testing import CliRunner

from memcycle.core.edit import Edit
from memcycle.core.probe import Probe, Repair, SessionReport, Tried
from memcycle.evals.deleted import (
    Deleted,
    Outcome,
    asks_for,
    delete_some,
    fate,
    holds,
    outcomes,
    tally,
    wanted_words,
)
from memcycle.evals.sessions import Spoiled, counts, main, spoiled_counts
from tests.banks import ANN, SAID, add, fact, open_bank, said, update

ONE = "D1:1"


def probe(*, n=1, question="What did Ann buy?", gold="a red kite", turn=ONE, **fields):
    return Probe(
        id=f"probe-{n}",
        session="1",
        part=1,
        n=n,
        kind="single-hop",
        question=question,
        gold=gold,
        turn=turn,
        **fields,
    )


def failed(n=1, **fields):
    return probe(n=n, before=Tried(verdict="failed", abstained=True), **fields)


def passed(*cited, n=1, **fields):
    return probe(n=n, before=Tried(answer="a kite", verdict="passed", cited=cited), **fields)


KITE = fact("Ann bought a red kite.", ONE)


def test_wanted_are_the_words_that_the_question_does_not_give():
    assert wanted_words(probe()) == {"red", "kite"}
    assert wanted_words(probe(question="Which kite did Ann buy?")) == {"red"}
    assert wanted_words(probe(question="Was the kite red?")) == set()


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("Ann bought a red kite.", {"red", "kite"}, True),
        ("Ann bought a blue kite.", {"red", "kite"}, False),  # half is not most
        ("Ann bought a blue kite in Graz.", {"red", "kite", "graz"}, True),
        ("Ann bought a red kite.", set(), False),
    ],
)
def test_a_fact_holds_most_of_the_words(text, words, says):
    assert holds(fact(text, ONE), words) is says


def test_a_date_that_the_fact_was_read_to_mean_is_among_its_words():
    dated = fact("Ann moved yesterday.", ONE, event_time=SAID.replace(day=6), event_precision="day")
    assert holds(dated, {"6", "may", "2023"})
    assert not holds(fact("Ann moved yesterday.", ONE), {"6", "may", "2023"})


def test_a_probe_asks_for_a_fact_of_its_turn_that_holds_the_answer():
    assert asks_for(probe(), KITE)
    assert asks_for(probe(), fact("Ann bought a red kite.", "D1:4", ONE))
    assert not asks_for(probe(), fact("Ann bought a red kite.", "D1:2"))
    assert not asks_for(probe(), fact("Ann lives in Graz.", ONE))


FRESH = fact("Ann bought the red kite herself.", ONE)
FACT, EPISODE = fact("x", ONE), fact("y", ONE)
KINDS = {FACT.id: "fact", EPISODE.id: "episode"}


@pytest.mark.parametrize(
    ("asking", "now", "left", "became"),
    [
        (failed(repair=Repair(decision="INSERT", wrote=True)), [FRESH], set(), "came back"),
        # What survived is not back; what survived and now rests on the turn too is.
        (
            failed(repair=Repair(decision="SKIP")),
            [FRESH],
            {(FRESH.id, ONE)},
            "the Consolidator took it for known",
        ),
        (failed(repair=Repair(decision="MERGE", wrote=True)), [FRESH], {(FRESH.id, "D1:9")}, "came back"),
        (
            failed(repair=Repair(decision="INSERT", wrote=True)),
            [fact("Ann bought a red kite.", "D1:2")],
            set(),
            "its repair holds other words or another turn",
        ),
        (
            failed(repair=Repair(decision="INSERT", wrote=True, rolled_back=True)),
            [],
            set(),
            "its repair was rolled back",
        ),
        (failed(repair=Repair(decision="NOOP")), [], set(), "the Repairer proposed nothing"),
        (failed(repair=Repair(decision="REFUSED")), [], set(), "its repair was refused"),
        (probe(before=Tried(why="down")), [], set(), "its probe was not graded"),
        (passed(EPISODE.id), [], set(), "not lost: its probe passed from an episode"),
        (passed(FACT.id), [], set(), "not lost: its probe passed from another fact"),
    ],
)  # fmt: skip
def test_what_became_of_a_fact(asking, now, left, became):
    assert fate(asking, now, frozenset(left), KINDS) == became


@pytest.fixture
def bank(tmp_path):
    with open_bank(tmp_path / "home") as opened:
        yield opened


def staged(bank, *said_and_stored):
    """Turns of session 1 with a fact of each."""
    bank.stage_turns(ANN, [said(n, text) for n, (text, _) in enumerate(said_and_stored, 1)])
    edits = [add(text, f"D1:{n}") for n, (_, text) in enumerate(said_and_stored, 1)]
    return bank.apply(ANN, edits).added


TEN = [(f"I saw {n} ships.", f"Ann saw {n} ships.") for n in range(20, 30)]


def test_a_share_of_the_staged_facts_goes_without_a_trace(bank):
    ids = staged(bank, *TEN)
    deleted = delete_some(bank, ANN, 0.2, 7)
    gone = [entry.id for entry in deleted.gone]
    assert (deleted.facts, len(gone)) == (10, 2)
    assert bank.get(ANN, gone) == []
    left = [entry.id for entry in bank.entries(ANN, granularity="fact")]
    assert set(left) | set(gone) == set(ids)
    assert {name for name, _ in deleted.left} == set(left)
    with bank.ledger.read() as conn:
        kept = "".join(
            str(tuple(row))
            for table in ("entries", "events", "outbox", "links", "conflicts")
            for row in conn.execute(f"SELECT * FROM {table}")
        )
        assert not any(name in kept for name in gone)
        assert all(name in kept for name in left)
        assert conn.execute("SELECT count(*) FROM tombstones").fetchone()[0] == 0
    assert len(bank.raw_entries(ANN, [f"D1:{n}" for n in range(1, 11)])) == 10
    again = bank.apply(ANN, [Edit(op="ADD", entry=deleted.gone[0])])
    assert again.added == [deleted.gone[0].id]


def test_the_seed_and_the_session_choose(tmp_path):
    def drawn(name, seed):
        with open_bank(tmp_path / name) as bank:
            staged(bank, *TEN)
            return {entry.text for entry in delete_some(bank, ANN, 0.3, seed).gone}

    assert drawn("a", 7) == drawn("b", 7)
    assert len({frozenset(drawn(f"s{seed}", seed)) for seed in range(5)}) > 1


def test_facts_that_replaced_another_stay(bank):
    (old, _) = staged(bank, ("I live in Graz.", "Ann lives in Graz."), ("I have a cat.", "Ann has a cat."))
    bank.stage_turns(ANN, [said(3, "I live in Linz now.")])
    bank.apply(ANN, [update(old, "Ann lives in Linz.", "D1:3")])
    deleted = delete_some(bank, ANN, 1.0, 7)
    assert deleted.facts == 2
    assert [entry.text for entry in deleted.gone] == ["Ann has a cat."]


def test_outcomes_read_the_probes_and_the_active_facts(bank):
    said_and_stored = [
        ("I bought a red kite.", "Ann bought a red kite."),
        ("I planted tulips.", "Ann planted tulips."),
        ("My cat is called Mo.", "Ann's cat is called Mo."),
    ]
    staged(bank, *said_and_stored)
    deleted = delete_some(bank, ANN, 1.0, 7)
    assert len(deleted.gone) == 3
    tulips = {"question": "What did Ann plant?", "gold": "tulips", "turn": "D1:2"}
    bank.save_probes(
        ANN,
        [
            failed(1, repair=Repair(decision="INSERT", wrote=True, turn=ONE)),
            passed(n=2, **tulips),
            failed(3, **tulips, repair=Repair(decision="NOOP")),
        ],
    )
    bank.apply(ANN, [add("Ann bought a red kite at the market.", ONE)])
    bank.commit_session(ANN)
    found = {outcome.fact.text: outcome for outcome in outcomes(bank, ANN, deleted)}
    assert found["Ann bought a red kite."].fate == "came back"
    assert found["Ann planted tulips."].fate == "the Repairer proposed nothing"
    assert found["Ann planted tulips."].asked.n == 3
    assert (found["Ann's cat is called Mo."].asked, found["Ann's cat is called Mo."].fate) == (None, None)
    assert {name: count for name, count in tally(list(found.values())).items() if count} == {
        "came back": 1,
        "the Repairer proposed nothing": 1,
    }


def test_sums_over_sessions():
    reports = [
        SessionReport(probes=5, passed_before=3, passed_after=5, repairs=2, merged=1, committed=30),
        SessionReport(probes=4, passed_before=1, passed_after=2, repairs=1, rolled_back=2, ungraded=1),
    ]
    assert counts(reports) == {
        "probes": 9, "passed_before": 4, "passed_after": 7, "ungraded": 1, "repairs": 3, "rolled_back": 2,
        "merged": 1,
    }  # fmt: skip
    back, lost = Outcome(KITE, failed(), "came back"), Outcome(KITE, failed(), "its repair was refused")
    nobody = Outcome(KITE, None, None)
    sessions = [
        Spoiled("1", reports[0], Deleted(10, (KITE, KITE), frozenset()), (back, nobody)),
        Spoiled("2", reports[1], Deleted(5, (KITE, KITE), frozenset()), (lost, back)),
    ]
    assert sessions[1].figures == {"facts": 5, "deleted": 2, "asked_for": 2, "came_back": 1}
    total = spoiled_counts(sessions)
    assert (total["facts"], total["deleted"], total["asked_for"], total["came_back"]) == (15, 4, 3, 2)
    assert total["share_back"] == pytest.approx(2 / 3)
    assert total["probes"] == 9
    assert spoiled_counts([])["share_back"] is None


@pytest.fixture
def app():
    command = typer.Typer()
    command.command()(main)
    return command


@pytest.fixture
def data(tmp_path):
    said = ["I painted the old harbour last week.", "My sister Eva plays the piano in a jazz trio.", "Nice!"]
    sample = {
        "sample_id": "made-up",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(said, 1)
            ],
            "session_2_date_time": "1:56 pm on 9 May, 2023",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "I sold my blue bicycle to Tom."}],
        },
        "qa": [{"question": "Who plays the piano?", "answer": "x", "evidence": ["D1:2"], "category": 4}],
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([sample]))
    return path


def test_the_three_runs_are_reported(app, data):
    options = ["--data", str(data), "--conversation", "made-up", "--drop", "1", "--k", "2", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert [row["session"] for row in figures["sessions"]] == ["1", "2"]
    assert figures["total"]["probes"] == sum(row["probes"] for row in figures["sessions"]) > 0
    assert figures["recall"]["without"]["recall"] == 1.0
    own = figures["deleted"]
    assert (own["share"], own["seed"]) == (1.0, 7)
    assert [row["deleted"] == row["facts"] > 0 for row in own["sessions"]] == [True, True]
    assert own["total"]["deleted"] == len(own["facts"])
    assert sum(own["fates"].values()) == own["total"]["asked_for"]
    assert own["fates"]["came back"] == own["total"]["came_back"]


def test_the_tables_say_what_they_show(app, data):
    result = CliRunner(env={"COLUMNS": "160"}).invoke(
        app, ["--data", str(data), "--conversation", "made-up", "--drop", "0.5"]
    )
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "Sessions of made-up, rules" in words
    assert "50% of the staged facts deleted" in words
    assert "deleted facts are asked for; nothing else answered for" in words
    assert "came back" in words


def test_an_unknown_conversation_is_named(app, data):
    result = CliRunner().invoke(app, ["--data", str(data), "--conversation", "conv-99"])
    assert result.exit_code == 1
    assert "conv-99" in result.stderr
