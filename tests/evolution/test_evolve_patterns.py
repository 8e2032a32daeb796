"""The pattern that a failed question counts for."""

from memcycle.agents.diagnoser import ShownView
from memcycle.core.theta import Theta, Weights
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.theta.diagnosis import diagnoser_input, pattern_of
from tests.evolution.made_evolution import missed, task

FULL = ShownView(entries={"raw": 18}, tokens={"raw": 480}, k=30, token_budget=500)
FEW = ShownView(entries={"raw": 5}, tokens={"raw": 120}, k=5, token_budget=500)
LONG = ShownView(entries={"raw": 4}, tokens={"raw": 480}, k=30, token_budget=500)
EPISODES = ShownView(
    entries={"raw": 4, "episode": 2}, tokens={"raw": 100, "episode": 380}, k=30, token_budget=500
)
BM25 = Theta(weights=Weights.only(bm25=1))


def record(**values):
    return QuestionRecord(
        **(
            {
                "conversation": "one",
                "id": "q1",
                "theta": "0" * 16,
                "memory": 0,
                "question": "Where?",
                "category": "single-hop",
                "gold": "here",
                "wanted": ("D1:1",),
                "shown": FULL,
                "recall": 0.0,
            }
            | values
        )
    )


def test_patterns():
    for values, pattern in [
        ({"missed": (missed(rank=None, cut="not found", views={"bm25": 140}),)}, "nothing retrieved"),
        ({"missed": (missed(rank=8, cut="entries"),), "shown": FEW}, "too little context"),
        ({"missed": (missed(rank=20),)}, "too little context"),
        ({"missed": (missed(rank=60, views={"bm25": 60}),)}, "outranked"),
        ({"missed": (missed(rank=60, views={"bm25": 60, "context": 2}),)}, "view blind"),
        ({"missed": (missed(rank=60, views={"bm25": 3, "context": 4}),)}, "outranked"),
        ({"missed": (missed(rank=None, cut="not found", views={"dense": 2}),)}, "view blind"),
        ({"missed": (missed(rank=60, edges={"date": 0.6, "speaker": 0.9}),)}, "wrong time"),
        ({"missed": (missed(rank=60, edges={"speaker": 0.7}),)}, "wrong entity"),
        ({"missed": (missed(rank=60, edges={"speaker": -0.7}),)}, "wrong entity"),
        ({"missed": (missed(rank=60, edges={"speaker": 0.7, "bm25": 0.8}),)}, "outranked"),
        ({"missed": (missed(rank=None, cut="not found", views={"bm25": 3}),)}, "outranked"),
        ({"missed": (missed(rank=60),), "shown": EPISODES}, "drowned"),
        ({"missed": (missed(rank=60),), "shown": LONG}, "drowned"),
        ({"answer": "I do not know", "abstained": True, "f1": 0.0}, "abstained wrongly"),
        ({"answer": "There", "abstained": False, "f1": 0.0}, "answer format"),
        ({"error": "ValueError: no"}, "unexplained"),
    ]:
        assert pattern_of(record(**values), BM25) == pattern, values


def test_a_view_that_is_switched_off_is_blind_too():
    seen = record(missed=(missed(rank=60, views={"bm25": 2, "dense": 60}),))
    theta = Theta(weights=Weights.only(bm25=1, dense=1))
    assert pattern_of(seen, theta) == "outranked"
    assert pattern_of(seen, theta.with_changes({"views.lexical": 0})[0]) == "view blind"


def test_a_blanked_record_explains_nothing():
    seen = record(missed=(missed(rank=60, edges={"speaker": 0.7}),), held={"bm25": 0.2}, answer="so")
    blank = seen.blanked()
    assert pattern_of(blank, BM25) == "unexplained"
    assert blank.recall == seen.recall
    value = diagnoser_input([seen], BM25, task(blank=True), [])
    assert [(one.pattern, one.missed, one.gold) for one in value.failures] == [("unexplained", [], None)]
    assert not value.held
    assert value.score == 0


def test_what_is_shown_of_failures_is_bounded_and_the_patterns_are_counted_whole():
    seen = [record(id=f"q{n}", missed=(missed(rank=60, edges={"speaker": 0.7}),)) for n in range(30)]
    right = [record(id=f"r{n}", recall=1.0, held={"bm25": 0.5}) for n in range(10)]
    value = diagnoser_input(seen + right, BM25, task(shown=8), [])
    assert len(value.failures) == 8
    assert [(one.name, one.count, one.share) for one in value.patterns] == [("wrong entity", 30, 0.75)]
    assert [(one.signal, one.edge, one.count) for one in value.held] == [("bm25", 0.5, 10)]
    assert value == diagnoser_input(seen + right, BM25, task(shown=8), [])


def test_the_gold_answer_is_shown_only_beside_an_answer():
    [failure] = diagnoser_input([record(missed=(missed(),))], BM25, task(), []).failures
    assert failure.gold is None
