import json

import pytest
from typer.testing import CliRunner

from benchmarks.speed import Step, main, times

TURNS = (
    ("Ann", "I bought a red kite for the harbour festival yesterday."),
    ("Bo", "Lovely! I moved to Graz last month and work as a nurse now."),
    ("Ann", "My brother Tom plays the piano in a jazz trio."),
    ("Bo", "I planted twelve tulips in the garden this morning."),
    ("Ann", "The bridge near my flat has been closed since May."),
)


@pytest.fixture
def app():
    import typer

    command = typer.Typer()
    command.command()(main)
    return command


@pytest.fixture
def data(tmp_path):
    said = [{"speaker": name, "dia_id": f"D1:{n}", "text": text} for n, (name, text) in enumerate(TURNS, 1)]
    sample = {
        "sample_id": "made-up",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 June, 2023",
            "session_1": said,
            "session_2_date_time": "2:00 pm on 9 June, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I sold the blue bicycle."}],
        },
        "qa": [
            {"question": f"{question}?", "answer": "-", "evidence": [], "category": 4}
            for question in ("Where does Bo live", "What did Ann buy", "Who plays the piano")
        ],
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([sample]))
    return path


@pytest.mark.slow
def test_every_chunk_session_and_question_is_measured_with_rules_and_with_a_model(app, data):
    options = ["--data", str(data), "--conversation", "made-up", "--chunk-turns", "3", "--questions", "2"]
    result = CliRunner().invoke(app, [*options, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    for setup in ("rules", "model"):
        steps = figures["steps"][setup]
        assert [(step["unit"], step["turns"]) for step in steps] == [
            ("chunk", 3),
            ("chunk", 2),
            ("session's end", 0),
            ("chunk", 1),
            ("session's end", 0),
            ("question", 0),
            ("question", 0),
        ]
    assert all(step["usage"] == {} for step in figures["steps"]["rules"])


def step(unit, seconds=1.0, turns=0):
    return Step(unit, turns, seconds, {})


def test_a_turn_has_its_share_of_its_chunk():
    steps = [step("chunk", seconds=0.2, turns=20), step("chunk", seconds=0.1, turns=5)]
    assert times(steps)["turn"] == {"median": pytest.approx(15.0), "p95": pytest.approx(20.0)}
    assert "question" not in times(steps)
