import json

import pytest

from memcycle.evals import recall
from memcycle.evals.recall import Record, reciprocal_rank, summary


def record(setup="fused", split="tuning", category=1, share=1.0, milliseconds=2.0):
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
    fused = [one for one in answer["records"] if one["setup"] == "fused"]
    assert [(one["category"], one["recall"], one["split"]) for one in fused] == [
        (4, 1.0, "reporting"),
        (1, 1.0, "reporting"),
    ]
    assert set(answer["summary"]) == {
        "fused", "bm25", "window", "dense", "dense_nameless", "rrf bm25 + dense",
    }  # fmt: skip
    assert answer["summary"]["fused"]["all"] == 1.0
    assert answer["summary"]["fused"]["tuning"] is None
    assert answer["k"] == 1


def test_the_table_names_setups_and_the_split(data, capsys):
    assert recall.main(["--data", str(data), "--conversations", "made-up"]) == 0
    shown = capsys.readouterr().out
    assert "fused" in shown
    assert "2 questions of made-up" in " ".join(shown.split())


def test_an_unknown_conversation_is_named(data, capsys):
    assert recall.main(["--data", str(data), "--conversations", "conv-99"]) == 2
    assert "conv-99" in capsys.readouterr().err


def test_means_by_split_and_category():
    values = summary([record(share=1.0), record(share=0.5, category=2), record(share=0.0, split="reporting")])
    assert values["fused"]["all"] == pytest.approx(0.5)
    assert values["fused"]["tuning"] == pytest.approx(0.75)
    assert values["fused"]["temporal"] == pytest.approx(0.5)
    assert values["fused"]["open-domain"] is None


def test_reciprocal_rank_prefers_what_several_lists_hold():
    assert reciprocal_rank([["a", "b"], ["b", "c"]]) == ["b", "a", "c"]
    assert reciprocal_rank([["b"], ["a"]]) == ["a", "b"]
