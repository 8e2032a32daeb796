import json
from datetime import UTC, datetime

import pytest
import typer
from typer.testing import CliRunner

from memcycle.core.turn import Conversation, Session, Turn
from memcycle.evals.dataset import Sample
from memcycle.evals.endings import Ending, ending, main, medians, slopes, united
from memcycle.evals.speed import Step

NOON = datetime(2023, 6, 8, 12, tzinfo=UTC)


def sample(name, sessions):
    made = tuple(
        Session(
            str(n),
            tuple(
                Turn(
                    id=f"D{n}:{p}",
                    session=str(n),
                    position=p,
                    speaker="Ann",
                    text=f"{name} {n} {p}",
                    time=NOON,
                )
                for p in (1, 2)
            ),
        )
        for n in range(1, sessions + 1)
    )
    return Sample(name, Conversation(name, made), ())


def test_sessions_of_several_conversations_take_turns_under_names_of_their_own():
    sessions = united([sample("a", 3), sample("b", 1)], 10)
    assert [session.name for session in sessions] == ["a-1", "b-1", "a-2", "a-3"]
    assert [(turn.id, turn.session, turn.text) for turn in sessions[1].turns] == [
        ("Db-1:1", "b-1", "b 1 1"),
        ("Db-1:2", "b-1", "b 1 2"),
    ]
    assert [session.name for session in united([sample("a", 3), sample("b", 3)], 3)] == ["a-1", "b-1", "a-2"]


def test_an_ending_sums_its_roles():
    usage = {
        "prober": {"calls": 1, "input_tokens": 100, "output_tokens": 20},
        "answerer": {"calls": 5, "input_tokens": 300, "output_tokens": 30},
    }
    session = sample("a", 1).conversation.sessions[0]
    found = ending(7, session, Step("session's end", 0, 0.25, usage), 0.125)
    assert found == Ending(7, "1", 2, 6, 400, 50, 250.0, 125.0)


def session_ends(*turns):
    """Ends that cost 5 tokens read a turn and 10 more each session, in less time each session."""
    return [Ending(n, str(n), t, 8, 5 * t + 10 * n, 100, 50 - n, 30) for n, t in enumerate(turns, 1)]


def test_growth_shows_as_slope_and_in_the_medians():
    endings = session_ends(20, 20, 20, 20)
    assert slopes(endings) == pytest.approx(
        {"calls": 0, "read": 10, "written": 0, "own_ms": -1, "cpu_ms": 0}, abs=1e-9
    )
    assert medians(endings) == {
        "turns": 20, "calls": 8, "read": 125, "written": 100, "own_ms": 47.5, "cpu_ms": 30,
    }  # fmt: skip


def test_longer_sessions_are_not_taken_for_growth():
    endings = session_ends(10, 30, 20, 40)
    assert slopes(endings)["read"] == pytest.approx(50)
    assert slopes(endings, equal_turns=True)["read"] == pytest.approx(10)


def test_too_few_sessions_have_no_slope():
    assert set(slopes(session_ends(20)).values()) == {None}
    assert set(slopes(session_ends(20, 20, 20), equal_turns=True).values()) == {None}


@pytest.fixture
def data(tmp_path):
    def said(session, *texts):
        return [
            {"speaker": "Bo" if n % 2 else "Ann", "dia_id": f"D{session}:{n}", "text": text}
            for n, text in enumerate(texts, 1)
        ]

    conversation = {
        "session_1_date_time": "1:56 pm on 8 June, 2023",
        "session_1": said(1, "I moved to Graz last month.", "My brother Tom plays the piano in a trio."),
        "session_2_date_time": "2:00 pm on 9 June, 2023",
        "session_2": said(2, "I sold the blue bicycle yesterday.", "The harbour bridge is closed since May."),
        "session_3_date_time": "2:00 pm on 10 June, 2023",
        "session_3": said(3, "I planted twelve tulips this morning."),
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"sample_id": "made-up", "conversation": conversation, "qa": []}]))
    return path


@pytest.fixture
def app():
    command = typer.Typer()
    command.command()(main)
    return command


def test_every_end_is_measured(app, data):
    options = ["--data", str(data), "--conversation", "made-up", "--sessions", "2"]
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert [(one["n"], one["session"], one["turns"]) for one in figures["sessions"]] == [
        (1, "made-up-1", 2),
        (2, "made-up-2", 2),
    ]
    # An episode and the Prober at least.
    assert all(one["calls"] >= 2 and one["read"] > one["written"] > 0 for one in figures["sessions"])
    assert set(figures["slope"]) == {"calls", "read", "written", "own_ms", "cpu_ms"}
    assert set(figures["slope_settled"].values()) == {None}, "after the first ten there is none left"
    assert figures["tokens"] == "approximate"


def test_the_table_shows_the_ends_of_the_range_and_the_slope(app, data):
    result = CliRunner().invoke(app, ["--data", str(data), "--conversation", "made-up"])
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "Ending a session, 3 sessions of one user" in words
    assert "first 3, median" in words
    assert "slope" in words


def test_an_unknown_conversation_is_named(app, data):
    result = CliRunner().invoke(app, ["--data", str(data), "--conversation", "conv-99"])
    assert result.exit_code == 1
    assert "conv-99" in result.stderr
