import json

import numpy as np
import pytest

from benchmarks import fit
from benchmarks.fit import Example, cross_validated, found
from memcycle.evals.datasets.locomo import REPORTING, TUNING
from memcycle.stores.search.ranker import NAMES

BM25, DENSE, SPEAKER = (NAMES.index(name) for name in ("bm25", "dense", "speaker"))


def drawn(conversation, rng, *, turns=30):
    """A question whose gold turn is likelier, the more bm25 it has, and the less likely, the more dense."""
    signals = np.zeros((turns, len(NAMES)))
    signals[:, [BM25, DENSE, SPEAKER]] = rng.random((turns, 3))
    chances = np.exp(6 * signals[:, BM25] - 3 * signals[:, DENSE])
    return Example(conversation, signals, np.array([rng.choice(turns, p=chances / chances.sum())]))


@pytest.fixture
def made():
    rng = np.random.default_rng(7)
    return [drawn(name, rng) for name in "abc" for _ in range(300)]


def test_a_fit_finds_the_weights_that_made_the_data_and_none_below_zero(made):
    weights = fit.fit(made, ["bm25", "dense", "speaker"], penalty=0.1)
    assert weights["bm25"] == pytest.approx(6, abs=1)
    assert "dense" not in weights
    assert weights.get("speaker", 0) < 0.5


def test_each_conversation_is_held_out_of_the_fit_that_ranks_it(made):
    result = cross_validated(made, ["bm25"], penalty=0.3)
    assert set(result.held) == set("abc")
    others = [one for one in made if one.conversation != "a"]
    own = [one for one in made if one.conversation == "a"]
    assert result.held["a"] == pytest.approx(np.mean(found(own, fit.fit(others, ["bm25"], 0.3))))


def test_found_is_the_share_of_gold_among_the_first_ten():
    signals = np.zeros((20, len(NAMES)))
    signals[:, BM25] = np.linspace(1, 0, 20)
    one = Example("a", signals, np.array([0, 15]))
    assert found([one], {"bm25": 1.0}) == [0.5]


def data(path, *names):
    def sample(name):
        return {
            "sample_id": name,
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"I saw the old {word} there."}
                    for n, word in enumerate(("kite", "piano", "harbour"), start=1)
                ],
            },
            "observation": {"session_1_observation": {"Ann": [["Ann saw a piano.", "D1:2"]]}},
            "qa": [{"question": "Who saw the piano?", "answer": "Ann", "evidence": ["D1:2"], "category": 4}],
        }

    path.write_text(json.dumps([sample(name) for name in names]))
    return str(path)


@pytest.mark.parametrize("extra", [[], ["--facts"]])
def test_the_command_prints_weights_and_what_is_held(tmp_path, capsys, extra):
    path = data(tmp_path / "data.json", *TUNING[:2], REPORTING[0])
    assert fit.main(["--data", path, "--json", *extra]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report["held"]) == list(TUNING[:2])
    assert report["held_mean"] == report["shipped"] == 1.0
    assert ("facts" in report["weights"]) <= bool(extra)
    assert fit.main(["--data", path, *extra]) == 0
    assert "held 1.000" in capsys.readouterr().out


def test_without_two_conversations_to_fit_on_it_says_so(tmp_path, capsys):
    assert fit.main(["--data", data(tmp_path / "data.json", *REPORTING)]) == 1
    assert TUNING[0] in capsys.readouterr().err
    assert fit.main(["--data", str(tmp_path / "none.json")]) == 1
