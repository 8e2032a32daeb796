"""The rules Query-Reasoner: new queries until nothing is left."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.rules.query_reasoner import query_reasoner
from memcycle.core.language.tokens import content_stems


def run_out(question, gap="", **fields):
    tried: list[str] = []
    while True:
        output = query_reasoner(QueryReasonerInput(question=question, gap=gap, tried=tried, **fields))
        if not output.query:
            return tried
        tried.append(output.query)
        assert len(tried) < 50, "it must end"


def test_no_query_repeats_a_tried_one():
    queries = run_out("When did Ines sell her old loom?", "Ines: loom sell", needs_time=True)
    assert len(queries) > 2
    assert len({frozenset(content_stems(query)) for query in queries}) == len(queries)


def test_a_missing_time_asks_with_words_of_time():
    first = run_out("When did Ines sell her loom?", needs_time=True)[0]
    assert "last" in first and "loom" in first


def test_the_name_comes_and_goes():
    queries = run_out("What did Ines say about the loom and the kiln?")
    assert any("Ines" in query for query in queries)
    assert any("Ines" not in query for query in queries)


def test_avoided_terms_stay_out():
    assert all("loom" not in query for query in run_out("Where is the loom near the mill?", avoid=["loom"]))


def test_like_words_are_tried():
    assert any("career" in query for query in run_out("What is the job of Ines?"))


def test_nothing_to_ask_ends_at_once():
    assert run_out("") == []
    assert run_out("?!") == []


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_question_runs_out(question, gap):
    assert isinstance(run_out(question, gap), list)
