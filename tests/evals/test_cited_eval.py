"""The share of gold turns that evidence cites."""

import pytest
from typer.testing import CliRunner

from memcycle.core.settings import Settings
from memcycle.evals.cited import cited_turns, evaluate, summary
from memcycle.evals.datasets.locomo import read_locomo
from memcycle.memory import Memory
from memcycle.results import Evidence
from tests.fakes import FakeEmbeddings


def evidence(*turns: str) -> Evidence:
    return Evidence(id="x", granularity="raw", text="t", turns=list(turns))


def test_an_entry_of_several_turns_counts_as_those_turns_in_order():
    found = [evidence("D1:2"), evidence("D1:1", "D1:2", "D1:3"), evidence("D1:9")]
    assert cited_turns(found, 10) == ["D1:2", "D1:1", "D1:3", "D1:9"]
    assert cited_turns(found, 2) == ["D1:2", "D1:1"]
    assert cited_turns([], 2) == []


@pytest.fixture
def sample():
    from datetime import UTC

    said = ["I painted the old harbour.", "My sister plays the piano.", "We fly kites on Sundays."]
    return read_locomo(
        {
            "sample_id": "made-up",
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ann", "dia_id": f"D1:{n}", "text": text} for n, text in enumerate(said, 1)
                ],
            },
            "qa": [
                {"question": "Who plays the piano?", "answer": "x", "evidence": ["D1:2"], "category": 4},
                {"question": "Kites?", "answer": "x", "evidence": ["D1:3", "D1:1"], "category": 1},
                {"question": "Trap?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5},
                {"question": "Nothing?", "answer": "x", "evidence": [], "category": 3},
            ],
        },
        zone=UTC,
    )[0]


def test_the_whole_way_is_measured_by_question(sample, tmp_path):
    with Memory.open(settings=Settings(home=tmp_path), embeddings=FakeEmbeddings()) as memory:
        shares = evaluate(memory, sample, k=1)
    assert [share for _, share in shares] == [1.0, 0.5]
    figures = summary(shares)
    assert (figures["questions"], figures["recall"], figures["multi-hop"]) == (2, 0.75, 0.5)
    assert figures["open-domain"] is None


def test_a_conversation_that_is_not_there_is_named(tmp_path):
    import typer

    from memcycle.evals.cited import main

    (tmp_path / "data.json").write_text("[]")
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--data", str(tmp_path / "data.json"), "--conversation", "conv-1"])
    assert done.exit_code == 1
    assert "conv-1" in done.output
