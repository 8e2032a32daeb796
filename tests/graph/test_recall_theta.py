"""What theta switches on in recall: each mechanism, with scripted and rules roles over a real bank."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.agents.query_reasoner import QueryReasonerOutput
from memcycle.agents.retriever import Intent, Plan, RetrieverOutput
from memcycle.agents.verifier import VerifierOutput
from memcycle.core.errors import RoleFailed
from memcycle.core.theta import Theta, Weights
from tests.scripted import Always, Scripted


def all_relevant(value):
    return JudgeOutput(relevant=[memory.n for memory in value.candidates], sufficient=True)


ENOUGH = Always(all_relevant)
ANSWER = AnswererOutput(answer="bees", answerable=True, citations=[0], confidence=0.9)
DOUBT = AnswererOutput(answer="bees?", answerable=True, citations=[0], confidence=0.1)
UNKNOWN = AnswererOutput(answer="No idea.", answerable=False, confidence=0.9)
ATOMIC = Intent(fine=False, abs=False, event=False, atomic=True)


@pytest.fixture
def told(cycle):
    cycle.remember("I keep bees on the roof", "Marta rows boats", "The boats are painted green")
    cycle.end(verify=False)
    return cycle


@pytest.fixture
def searched(told, monkeypatch):
    """The requests of every search."""
    requests, rank = [], told.bank.rank

    def run(request):
        requests.append(request)
        return rank(request)

    monkeypatch.setattr(told.bank, "rank", run)
    return requests


def planned(query, *parts):
    return Always(RetrieverOutput(plans=[Plan(n=1, query=query, intent=ATOMIC, k=5, parts=list(parts))]))


def ask(told, question="What does Ana keep?", theta=None, context=None, **roles):
    given = {"judge": ENOUGH, "answerer": Always(ANSWER), **roles}
    return told.recall(question, context={"theta": theta or {}, **(context or {})}, **given)["answer"]


def queries(searched):
    return [[query.text for query in request.queries] for request in searched]


def test_as_shipped_a_sufficient_first_search_asks_three_roles_once(told, searched):
    roles = {
        "retriever": Scripted(planned("What does Ana keep?").outputs[0]),
        "judge": Scripted(all_relevant),
        "answerer": Scripted(DOUBT),
        "verifier": Scripted(),
        "query_reasoner": Scripted(),
    }
    ask(told, **roles)
    assert sum(len(role.seen) for role in roles.values()) == 3
    assert queries(searched) == [["What does Ana keep?"]]
    assert roles["retriever"].seen[0].parts == 0


def test_entity_swap_searches_the_query_without_names_in_the_same_call(told, searched):
    theta = {"swap.on": True, "swap.original": 1, "swap.swapped": 2}
    out = ask(told, theta=theta, retriever=planned("Does Ana row boats?"), context={"evidence_only": True})
    assert queries(searched) == [["Does Ana row boats?", "Does row boats"]]
    texts = {item["text"] for item in out["evidence"]}
    assert "Marta rows boats" in texts


def test_entity_swap_keeps_its_own_numbers_of_each(told):
    def found(**theta):
        out = ask(
            told,
            theta={f"swap.{name}": value for name, value in theta.items()},
            retriever=planned("Does Ana row boats?"),
            context={"evidence_only": True},
        )
        return len(out["evidence"])

    assert found(on=True, original=1, swapped=1) < found(on=True, original=50, swapped=50)


def test_a_query_without_names_is_searched_once(told, searched):
    ask(told, theta={"swap.on": True}, retriever=planned("boats"))
    assert queries(searched) == [["boats"]]


def test_sub_questions_are_searched_beside_the_question_in_one_call(told, searched):
    retriever = planned("Who keeps bees and who rows?", "who keeps bees", "who rows", "too many")
    theta = {"decomposition.on": True, "decomposition.parts": 2, "decomposition.k": 3}
    out = ask(told, theta=theta, retriever=retriever, context={"evidence_only": True})
    assert retriever.seen[0].parts == 2
    assert queries(searched) == [["Who keeps bees and who rows?", "who keeps bees", "who rows"]]
    assert out["rounds"] == 1


def test_sub_questions_nobody_asked_for_are_not_searched(told, searched):
    ask(told, retriever=planned("Who?", "who keeps bees", "who rows"))
    assert queries(searched) == [["Who?"]]


def test_rules_name_the_parts_of_a_question(told, searched):
    question = "Who keeps bees and who rows the boats?"
    told.recall(question, context={"theta": {"decomposition.on": True}, "evidence_only": True})
    assert queries(searched)[0] == [question, "Who keeps bees", "who rows the boats"]


@pytest.mark.parametrize("first", [DOUBT, UNKNOWN])
def test_an_unsure_answer_is_looked_for_with_a_new_query(told, searched, first):
    reasoner, answerer = Scripted(QueryReasonerOutput(query="roof hives")), Scripted(first, ANSWER)
    out = ask(told, theta={"reflection.rounds": 2}, query_reasoner=reasoner, answerer=answerer)
    assert (out["answer"], out["rounds"]) == ("bees", 2)
    assert queries(searched)[1:] == [["roof hives"]]
    assert reasoner.seen[0].tried


def test_reflection_ends_after_its_rounds_and_the_surer_answer_stands(told):
    numbers = iter(range(9))
    reasoner = Always(lambda _: QueryReasonerOutput(query=f"try {next(numbers)}"))
    better = DOUBT.model_copy(update={"answer": "honey", "confidence": 0.2})
    answerer = Scripted(better, DOUBT, UNKNOWN)
    out = ask(told, theta={"reflection.rounds": 2}, query_reasoner=reasoner, answerer=answerer)
    assert (out["answer"], out["rounds"], len(reasoner.seen)) == ("honey", 3, 2)


@pytest.mark.parametrize("reply", [QueryReasonerOutput(query=""), RoleFailed("query_reasoner", "x")])
def test_without_a_new_query_the_unsure_answer_stands(told, searched, reply):
    out = ask(
        told,
        theta={"reflection.rounds": 1},
        query_reasoner=Scripted(reply),
        answerer=Scripted(DOUBT),
    )
    assert (out["answer"], len(searched)) == ("bees?", 1)
    assert bool(out["warnings"]) is isinstance(reply, RoleFailed)


@pytest.mark.parametrize(("way", "several"), [("strict", False), ("multi_candidate", True)])
def test_an_unsure_answer_is_verified(told, way, several):
    verifier = Scripted(VerifierOutput(answer="hives", answerable=True, citations=[0], confidence=0.8))
    out = ask(told, theta={"verification": way}, answerer=Scripted(DOUBT), verifier=verifier)
    assert (out["answer"], out["confidence"]) == ("hives", 0.8)
    seen = verifier.seen[0]
    assert (seen.answer, seen.answerable, seen.candidates) == ("bees?", True, several)
    assert seen.evidence


def test_a_sure_answer_is_not_verified_and_a_failing_verifier_changes_nothing(told):
    theta = {"verification": "strict", "reflection.unsure": 0.5}
    assert ask(told, theta=theta, verifier=Scripted())["answer"] == "bees"
    failing = Scripted(RoleFailed("verifier", "x"))
    out = ask(told, theta=theta, answerer=Scripted(DOUBT), verifier=failing)
    assert out["answer"] == "bees?"
    assert "verifier" in out["warnings"][-1]


def test_reflection_comes_before_verification(told):
    verifier = Scripted(VerifierOutput(answer="nothing", answerable=False))
    out = ask(
        told,
        theta={"verification": "strict", "reflection.rounds": 1},
        query_reasoner=Scripted(QueryReasonerOutput(query="roof hives")),
        answerer=Scripted(UNKNOWN, UNKNOWN),
        verifier=verifier,
    )
    assert (out["answer"], out["answerable"], out["evidence"]) == ("nothing", False, [])


@pytest.mark.parametrize(("style", "asked"), [(None, "short"), ("explanatory", "explanatory")])
def test_the_style_of_theta_wins_over_the_settings(told, style, asked):
    answerer = Scripted(ANSWER)
    ask(told, theta={"answer_style": style}, answerer=answerer)
    assert answerer.seen[0].style == asked


def test_overrides_count_for_questions_of_their_category_alone(told):
    theta = {"overrides.temporal.answer_style": "strict", "overrides.single.answer_style": "concise"}
    answerer = Scripted(ANSWER, ANSWER, ANSWER)
    for question in ("When did Ana keep bees?", "What does Ana keep?", "Does Ana keep bees?"):
        ask(told, question, theta=theta, answerer=answerer)
    assert [value.style for value in answerer.seen] == ["strict", "concise", "short"]


def test_settings_hold_overrides_too(told):
    theta = Theta(overrides={"temporal": {"k": 1}})
    settings = told.bank.settings.model_copy(update={"theta": theta})
    options = {"settings": settings, "context": {"evidence_only": True}}
    assert len(told.recall("When did Ana keep bees?", **options)["answer"]["evidence"]) == 1
    assert len(told.recall("Who keeps bees, who rows boats?", **options)["answer"]["evidence"]) > 1


def test_what_a_run_asks_out_of_range_is_clamped_and_said(told, searched):
    out = ask(told, theta={"k": 0, "weights": {"bm25": 99}})
    assert searched[0].theta.k == 1
    assert searched[0].theta.weights.bm25 == 10
    assert out["warnings"] == [
        "theta k: 0 is out of range, 1 is used",
        "theta weights.bm25: 99 is out of range, 10.0 is used",
    ]


def test_an_unknown_dimension_is_refused_by_name(told):
    with pytest.raises(ValidationError, match=r"did you mean weights\.bm25"):
        ask(told, theta={"weights.bm26": 1})


def test_recency_counts_from_the_reference_date_else_from_the_time_asked(told, searched):
    asked_at = datetime(2024, 6, 1, tzinfo=UTC)
    ask(told, context={"now": asked_at.isoformat()})
    ask(told, theta={"reference_date": "2024-05-08T10:00:00+02:00"}, context={"now": asked_at.isoformat()})
    assert searched[0].theta.reference_date == asked_at
    assert searched[1].theta.reference_date == datetime(2024, 5, 8, 8, tzinfo=UTC)


def test_time_decay_prefers_what_was_said_near_the_reference_date(cycle):
    for text in ("The gate is red", "The gate is blue"):
        cycle.remember(text)
        cycle.end()

    def scores(recency):
        weights = Weights.only(bm25=1, recency=recency).model_dump()
        theta = {"weights": weights, "half_life_days": 0.5, "reference_date": "2024-05-10T00:00:00+00:00"}
        out = cycle.recall("What colour is the gate?", context={"theta": theta, "evidence_only": True})
        return {item["text"]: item["score"] for item in out["answer"]["evidence"]}

    newer = [text for text in scores(5) if "blue" in text]
    assert newer
    assert scores(5)[newer[0]] > max(score for text, score in scores(5).items() if "red" in text)
    assert len(set(scores(0).values())) == 1


def test_the_judge_is_asked_as_often_as_theta_of_the_run_says(told):
    judge = Scripted(*[JudgeOutput(relevant=[], sufficient=False)] * 2)
    ask(told, theta={"k_r": 1, "h": 0}, judge=judge)
    assert len(judge.seen) == 2


def test_remember_respects_theta_of_the_run(told, searched):
    from memcycle import build_remember

    graph = build_remember(bank=told.bank)
    context = {"user": "ana", "session": "s2", "theta": {"k_m": 3, "saturation_turns": 2, "views.dense": 4}}
    out = graph.invoke({"turns": told.turns("I keep bees", "I like tea", session="s2")}, context=context)
    assert len(out["result"]["episodes"]) == 1
    assert all(request.theta.views.dense == 4 for request in searched)
