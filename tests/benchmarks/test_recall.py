import json

import pytest

from benchmarks import recall
from benchmarks.recall import Record, summary


def record(setup="linear", split="tuning", category="multi-hop", share=1.0, milliseconds=2.0):
    return Record(setup, "made-up", split, category, "?", share, milliseconds)


@pytest.fixture
def data(tmp_path):
    words = ("kite", "piano", "harbour", "garden", "bridge", "lantern")
    sample = {
        "sample_id": "made-up",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {
                    "speaker": "Ann" if n % 2 else "Bo",
                    "dia_id": f"D1:{n}",
                    "text": f"I saw the old {word} there.",
                }
                for n, word in enumerate(words, start=1)
            ],
        },
        "qa": [
            {"question": "Who saw the piano?", "answer": "Bo", "evidence": ["D1:2"], "category": 4},
            {
                "question": "What about the bridge?",
                "answer": "old",
                "evidence": ["D1:5; D1:9"],
                "category": 1,
            },
            {"question": "Nothing to find?", "answer": "-", "evidence": [], "category": 3},
            {"question": "A trap?", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5},
        ],
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([sample]))
    return path


def test_a_run_reports_each_question_in_each_setup(data, capsys):
    assert recall.main(["--data", str(data), "--k", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    fused = [one for one in answer["records"] if one["setup"] == "linear"]
    assert [(one["category"], one["recall"], one["split"]) for one in fused] == [
        ("single-hop", 1.0, "reporting"),
        ("multi-hop", 1.0, "reporting"),
    ]
    assert set(answer["summary"]) == {
        "linear", "weighted sum", "bm25", "window", "dense", "dense_nameless", "context", "rrf bm25 + dense",
    }  # fmt: skip
    assert answer["summary"]["linear"]["all"] == 1.0
    assert answer["summary"]["linear"]["tuning"] is None
    assert answer["k"] == 1


def test_means_by_split_and_category():
    values = summary(
        [record(share=1.0), record(share=0.5, category="temporal"), record(share=0.0, split="reporting")]
    )
    assert values["linear"]["all"] == pytest.approx(0.5)
    assert values["linear"]["tuning"] == pytest.approx(0.75)
    assert values["linear"]["temporal"] == pytest.approx(0.5)
    assert values["linear"]["open-domain"] is None
