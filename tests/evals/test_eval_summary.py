"""Figures from records: which questions count for which, and what is null."""

import pytest

from memcycle.core.probe import RoleUsage
from memcycle.evals.records import Record, Scores, StoredConversation
from memcycle.evals.report import recall_plot, report, summarized
from tests.evals.small_eval import plan, sample


def found(share, tokens=100):
    keys, budgets = ("5", "10", "20", "30"), ("250", "500", "1000", "2000", "4000")
    return Scores(
        recall=dict.fromkeys(keys, share),
        as_entries=dict.fromkeys(keys, share / 2),
        all_evidence=dict.fromkeys(keys, float(share == 1)),
        recall_at_tokens=dict.fromkeys(budgets, share),
        session_any={"5": 1.0, "10": 1.0},
        shown=share,
        tokens=tokens,
    )


def record(name, share=None, **fields):
    values = {
        "conversation": "garden",
        "id": name,
        "question": f"{name}?",
        "category": "single-hop",
        "adversarial": False,
        "gold": "x",
        "gold_turns": () if share is None else ("D1:1",),
        "scores": Scores() if share is None else found(share),
        "baselines": {}
        if share is None
        else {"bm25": found(share / 2), "full_context": Scores(shown=1.0, tokens=900)},
        "abstained": False,
        "f1": 0.5,
        "bleu1": 0.25,
    }
    return Record(**(values | fields))


USED = {"answerer": RoleUsage(calls=2, input_tokens=30, output_tokens=4)}
STORED = [
    StoredConversation(conversation="garden", turns=5, facts=2, embedder="bag", usage=USED, seconds=1.0)
]
RECORDS = [
    record("a", 1.0, verdict="CORRECT", usage=USED, calls=2, search_ms=10.0, answer_ms=100.0),
    record("b", 0.5, category="temporal", f1=0.0, verdict="WRONG", search_ms=30.0, answer_ms=300.0),
    record("c", category="adversarial", adversarial=True, gold=None, abstained=True, f1=1.0, bleu1=None),
    record("d", category=None, gold=None, abstained=True, f1=None, bleu1=None, judge_error="no grade"),
    record("e", 0.0, error="ValueError: sad", f1=0.0, bleu1=0.0, verdict="WRONG"),
]


@pytest.fixture
def figures():
    return summarized(plan(sample(), judge="rules"), RECORDS, STORED, seconds=12.34)


def test_evidence_is_of_questions_with_gold_turns(figures):
    assert (figures["n"], figures["n_evidence"], figures["failed"]) == (5, 3, 1)
    assert figures["recall"] == dict.fromkeys(("5", "10", "20", "30"), 0.5)
    assert figures["recall_as_entries"]["10"] == 0.25
    assert figures["all_evidence"]["10"] == pytest.approx(1 / 3)
    assert figures["recall_at_tokens"]["500"] == 0.5
    assert figures["session_any"] == {"5": 1.0, "10": 1.0}
    assert figures["shown"] == {"recall": 0.5, "tokens": 100.0}


def test_answers_leave_adversarial_questions_out_and_crashes_in(figures):
    assert figures["f1"] == pytest.approx((0.5 + 0.0 + 0.0) / 3)
    assert figures["bleu1"] == pytest.approx((0.25 + 0.25 + 0.0) / 3)
    assert figures["abstained"] == {"right": 1.0, "wrong": 0.25}
    assert figures["accuracy"] == 0.25  # of four; what the judge failed on counts as wrong


def test_categories_have_figures_of_their_own(figures):
    own = figures["by_category"]
    assert list(own) == ["adversarial", "single-hop", "temporal"]
    assert (own["temporal"]["recall"]["5"], own["temporal"]["n"]) == (0.5, 1)
    assert own["adversarial"]["f1"] == 1.0
    assert own["adversarial"]["recall"] == dict.fromkeys(("5", "10", "20", "30"))


def test_baselines_are_given_alike_and_null_where_nobody_asked(figures):
    baselines = figures["baselines"]
    assert baselines["bm25"]["recall"]["10"] == 0.25
    assert baselines["facts_only"] is None
    assert baselines["full_context"]["shown"] == {"recall": 1.0, "tokens": 900.0}
    assert baselines["full_context"]["recall"] == dict.fromkeys(("5", "10", "20", "30"))
    assert baselines["full_context"]["recall_at_tokens"]["500"] is None


def test_cost_is_summed(figures):
    assert figures["usage"] == {"answerer": RoleUsage(calls=4, input_tokens=60, output_tokens=8)}
    assert figures["milliseconds"]["search"] == {"p50": 20.0, "p95": 30.0}
    assert figures["calls_per_question"] == pytest.approx(2 / 5)
    assert figures["seconds"] == 12.3


def test_nothing_measured_is_null():
    figures = summarized(
        plan(sample(), answers=False, baselines=False), [record("a", f1=None, bleu1=None)], [], seconds=0
    )
    assert figures["recall"]["5"] is None
    assert figures["accuracy"] is None
    assert figures["milliseconds"]["answer"] == {"p50": None, "p95": None}
    assert figures["calls_per_question"] is None


def test_the_report_says_what_was_run_and_shows_every_table(figures):
    text = report(
        plan(sample(), judge="rules"), figures, RECORDS, STORED, command="memcycle eval x", plot="p.svg"
    )
    assert "    memcycle eval x\n" in text
    for words in (
        "# Evaluation on jsonl",
        "| questions | 5, 3 of them with gold turns |",
        "| stored | 5 turns, 2 facts |",
        "| embedder | bag |",
        "| all | 3 | 0.500 |",
        "| temporal | 1 | 0.500 |",
        "| BM25 | 1.000 | 1.000 | 0.250 |",
        "| full context | - |",
        "| 1.000 | 900 |",
        "Not asked, since nothing of the kind is stored: naive RAG",
        "| answerer | 4 | 60 | 8 |",
        "1.000 of the questions whose answer was never mentioned",
        "![Share of gold turns against tokens of evidence](p.svg)",
        "garden, question e: ValueError: sad",
        "1 answers were not judged",
    ):
        assert words in text, words


def test_tables_have_as_many_cells_as_heads(figures):
    text = report(plan(sample()), figures, RECORDS, STORED, command="x", plot="p.svg")
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) >= 6
    for block in blocks:
        assert len({line.count(" | ") for line in block}) == 1, block


def test_the_plot_shows_each_way_that_was_asked(figures):
    drawn = recall_plot(figures)
    assert "memcycle: 0.500 at 250" in drawn
    assert "full context: 1.000 at 900" in drawn
    assert "facts only" not in drawn
