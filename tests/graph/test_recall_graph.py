"""recall: each edge, with scripted roles over a real bank."""

import pytest
from pydantic import ValidationError

from memcycle.agents.answerability import AnswerabilityOutput
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_trigger import EpisodeTriggerOutput
from memcycle.agents.fact_judge import FactJudgeOutput
from memcycle.agents.judge import Conflict, JudgeOutput
from memcycle.agents.query_reasoner import QueryReasonerOutput
from memcycle.agents.refresher import Refresh, RefresherOutput
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches
from memcycle.stores.bank import Bank
from tests.graph.conftest import ANA, Cycle
from tests.scripted import Always, Scripted

ENOUGH = Always(JudgeOutput(relevant=[0], sufficient=True))
DOUBT = Always(JudgeOutput(relevant=[0, 1, 2, 3], sufficient=False, missing="when"))
ANSWER = Always(AnswererOutput(answer="bees", answerable=True, citations=[0], confidence=0.9))


@pytest.fixture
def told(cycle):
    quiet = {
        "episode_trigger": Always(EpisodeTriggerOutput(boundaries=[])),
        "fact_judge": Always(FactJudgeOutput(verdicts=[])),
    }
    for text, fact in [("I keep bees", "Ana keeps bees"), ("I keep wasps now", "Ana keeps wasps now")]:
        cycle.remember(
            text, constructor=Scripted(ConstructorOutput(facts=[FactDraft(text=fact, turn=1)])), **quiet
        )
    cycle.end(verify=False)
    return cycle


def switched(cycle, **switches):
    return cycle.bank.settings.model_copy(update={"switches": Switches(**switches)})


def test_a_sufficient_pass_is_answered_at_once(told):
    out = told.recall("What does Ana keep?", judge=ENOUGH, answerer=ANSWER, answerability=Scripted())[
        "answer"
    ]
    assert (out["answer"], out["answerable"], out["mode"], out["rounds"]) == ("bees", True, "answer", 1)
    assert len(out["evidence"]) == 1
    assert set(out["evidence"][0]) >= {"id", "granularity", "text", "turns", "event_time", "score", "why"}


def test_a_switch_asks_the_meta_thinker_always(told):
    thinker = Scripted(AnswerabilityOutput(answerable=True))
    told.recall(
        "What does Ana keep?",
        judge=ENOUGH,
        answerer=ANSWER,
        answerability=thinker,
        settings=switched(told, always_think=True),
    )
    assert len(thinker.seen) == 1


def test_the_gap_is_closed_by_a_new_query_and_evidence_is_united(told):
    theta = told.bank.settings.theta.model_copy(update={"k_r": 0})
    settings = told.bank.settings.model_copy(update={"theta": theta})
    thinker = Scripted(
        AnswerabilityOutput(answerable=False, gap="what she rows"), AnswerabilityOutput(answerable=True)
    )
    reasoner = Scripted(QueryReasonerOutput(query="keeps wasps now"))
    out = told.recall(
        "bees?",
        judge=DOUBT,
        answerability=thinker,
        query_reasoner=reasoner,
        answerer=ANSWER,
        settings=settings,
    )["answer"]
    assert reasoner.seen[0].gap == "what she rows"
    assert {view.text for view in thinker.seen[0].evidence} <= {
        view.text for view in thinker.seen[1].evidence
    }
    assert out["rounds"] == 2


@pytest.mark.parametrize("query", ["", "bees?", "BEES?"])
def test_nothing_new_to_ask_ends_the_loop(told, query):
    theta = told.bank.settings.theta.model_copy(update={"k_r": 0})
    thinker = Always(AnswerabilityOutput(answerable=False, gap="x"))
    told.recall(
        "bees?",
        judge=DOUBT,
        answerability=thinker,
        query_reasoner=Scripted(QueryReasonerOutput(query=query)),
        answerer=ANSWER,
        retriever=Scripted(RoleFailed("retriever", "x")),
        settings=told.bank.settings.model_copy(update={"theta": theta}),
    )
    assert len(thinker.seen) == 1


def test_refinement_ends_after_h_rounds(told):
    theta = told.bank.settings.theta.model_copy(update={"k_r": 0, "h": 2})
    numbers = iter(range(99))
    reasoner = Always(lambda value: QueryReasonerOutput(query=f"try {next(numbers)}"))
    told.recall(
        "bees?",
        judge=DOUBT,
        answerability=Always(AnswerabilityOutput(answerable=False, gap="x")),
        query_reasoner=reasoner,
        answerer=ANSWER,
        settings=told.bank.settings.model_copy(update={"theta": theta}),
    )
    assert len(reasoner.seen) == 2


def test_one_shot_has_no_retry_and_no_refinement(told):
    judge = Scripted(JudgeOutput(relevant=[], sufficient=False))
    told.recall(
        "bees?",
        judge=judge,
        answerer=ANSWER,
        answerability=Scripted(),
        query_reasoner=Scripted(),
        settings=switched(told, iterative=False),
    )
    assert len(judge.seen) == 1


def _conflict(value):
    numbers = {view.text: view.n for view in value.candidates}
    pair = Conflict(memory=numbers["Ana keeps wasps now"], other=numbers["Ana keeps bees"])
    return JudgeOutput(relevant=[0, 1], conflicts=[pair], sufficient=True)


def test_a_conflict_is_settled_by_event_time_and_left_to_the_next_remember(told):
    before = [entry.model_dump() for entry in told.bank.entries(ANA)]
    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[]))
    judge = Scripted(_conflict)
    told.recall("What does Ana keep?", judge=judge, answerer=answerer)
    assert [view.text for view in answerer.seen[0].evidence if not view.current] == ["Ana keeps bees"]
    assert [entry.model_dump() for entry in told.bank.entries(ANA)] == before
    pairs = told.bank.conflicts(ANA)
    assert [told.bank.get(ANA, [pair[0]])[0].text for pair in pairs] == ["Ana keeps bees"]


def test_a_turn_and_the_fact_read_from_it_are_no_conflict(told):
    def judge(value):
        numbers = {view.text: view.n for view in value.candidates}
        pair = Conflict(memory=numbers["Ana keeps bees"], other=numbers["I keep bees"])
        return JudgeOutput(relevant=[0], conflicts=[pair], sufficient=True)

    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[]))
    told.recall("What does Ana keep?", judge=Scripted(judge), answerer=answerer)
    assert all(view.current for view in answerer.seen[0].evidence)
    assert told.bank.conflicts(ANA) == []


def test_a_persons_correction_is_newer_than_all_that_was_said_before(told):
    fact = next(entry for entry in told.bank.entries(ANA, granularity="fact") if "bees" in entry.text)
    told.bank.edit(ANA, fact.id, "Ana keeps geese now")

    def judge(value):
        numbers = {view.text: view.n for view in value.candidates}
        pair = Conflict(memory=numbers["Ana keeps geese now"], other=numbers["Ana keeps wasps now"])
        return JudgeOutput(relevant=[0], conflicts=[pair], sufficient=True)

    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[]))
    told.recall("What does Ana keep?", judge=Scripted(judge), answerer=answerer)
    current = {view.text: view.current for view in answerer.seen[0].evidence}
    assert (current["Ana keeps geese now"], current["Ana keeps wasps now"], current["I keep bees"]) == (
        True,
        False,
        False,
    )


def test_the_facts_of_a_corrected_turn_are_outdated(told):
    raw = next(entry for entry in told.bank.entries(ANA, granularity="raw") if "bees" in entry.text)
    told.bank.edit(ANA, raw.id, "I keep geese")
    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[]))
    told.recall("What does Ana keep?", judge=ENOUGH, answerer=answerer)
    current = {view.text: view.current for view in answerer.seen[0].evidence}
    assert (current["I keep geese"], current["Ana keeps bees"]) == (True, False)


def test_a_queued_conflict_is_settled_by_the_next_remember(told):
    facts = {entry.text: entry.id for entry in told.bank.entries(ANA, granularity="fact")}
    told.bank.queue_conflict(ANA, facts["Ana keeps bees"], facts["Ana keeps wasps now"], "made up")
    refresher = Scripted(RefresherOutput(edits=[Refresh(op="UPDATE", memory=0, text="Ana keeps wasps now")]))
    told.remember(
        "I keep wasps now on Sundays",
        judge=Always(JudgeOutput(relevant=[0], sufficient=True)),
        refresher=refresher,
        constructor=Scripted(ConstructorOutput(facts=[])),
        episode_trigger=Always(EpisodeTriggerOutput(boundaries=[])),
    )
    assert told.facts() == ["Ana keeps wasps now"]
    assert told.bank.conflicts(ANA) == []


def test_a_switch_refreshes_at_once(told):
    def judge(value):
        numbers = {view.text: view.n for view in value.candidates}
        pair = Conflict(memory=numbers["Ana keeps bees"], other=numbers["Ana keeps wasps now"])
        return JudgeOutput(relevant=[0], conflicts=[pair], sufficient=True)

    refresher = Scripted(RefresherOutput(edits=[Refresh(op="UPDATE", memory=0, text="Ana keeps wasps now")]))
    told.recall(
        "Ana?",
        judge=Scripted(judge),
        refresher=refresher,
        answerer=ANSWER,
        settings=switched(told, recall_refresh=True),
    )
    assert told.facts() == ["Ana keeps wasps now"]


def test_evidence_only_asks_no_answerer(told):
    out = told.recall("What does Ana keep?", answerer=Scripted(), context={"evidence_only": True})["answer"]
    assert (out["mode"], out["answer"], out["answerable"]) == ("evidence", None, None)
    assert "keep" in out["evidence"][0]["text"]


def test_budgets_of_a_run_cut_the_evidence(told):
    few = told.recall("Ana?", context={"evidence_only": True, "k": 1})["answer"]["evidence"]
    assert len(few) == 1
    with pytest.raises(ValidationError, match="less than or equal to 200"):
        told.recall("Ana?", context={"k": 1000})


def test_an_empty_memory_abstains_without_asking_a_model(cycle):
    out = cycle.recall("Where?", judge=Scripted(), answerer=Scripted(), answerability=Scripted())["answer"]
    assert (out["answerable"], out["evidence"]) == (False, [])


@pytest.mark.parametrize("role", ["retriever", "judge", "answerability", "query_reasoner"])
def test_a_failing_role_never_costs_the_answer(told, role):
    roles = {
        "judge": DOUBT,
        "answerability": Always(AnswerabilityOutput(answerable=False, gap="x")),
        "answerer": ANSWER,
    }
    out = told.recall("bees?", **{**roles, role: Always(RoleFailed(role, "nonsense"))})["answer"]
    assert out["answer"] == "bees"
    assert any(role in warning for warning in out["warnings"])


def test_a_failing_answerer_gives_the_evidence(told):
    out = told.recall("bees?", judge=ENOUGH, answerer=Scripted(RoleFailed("answerer", "cut")))["answer"]
    assert (out["mode"], out["answerable"]) == ("evidence", None)
    assert out["evidence"]


def test_numbers_that_were_not_shown_are_reported_not_followed(told):
    out = told.recall(
        "bees?",
        judge=Scripted(JudgeOutput(relevant=[99], conflicts=[Conflict(memory=98, other=0)], sufficient=True)),
        retriever=Always(RoleFailed("retriever", "x")),
        answerability=Always(AnswerabilityOutput(answerable=True)),
        answerer=Scripted(AnswererOutput(answer="x", answerable=True, citations=[77])),
        settings=told.bank.settings.model_copy(
            update={"theta": told.bank.settings.theta.model_copy(update={"k_r": 0})}
        ),
    )["answer"]
    assert [w for w in out["warnings"] if "99" in w]
    assert [w for w in out["warnings"] if "98" in w]


@pytest.mark.parametrize("question", ["", "   ", None, 3])
def test_a_question_is_needed(cycle, question):
    with pytest.raises(BadInput, match="question"):
        cycle.recall(question)


def test_a_user_is_needed(cycle):
    with pytest.raises(BadInput, match="user"):
        cycle.recall("What?", context={"user": ""})


def test_another_user_finds_nothing(told):
    out = told.recall("What does Ana keep?", context={"user": "ana2"})["answer"]
    assert (out["answerable"], out["evidence"]) == (False, [])


@pytest.mark.parametrize(("visibility", "seen"), [("user", ["I keep bees"]), ("session", [])])
def test_what_is_staged_is_recalled_in_other_sessions_as_the_settings_say(tmp_path, visibility, seen):
    with Bank.open(Settings(home=tmp_path, visibility=visibility)) as bank:
        _recalled_elsewhere(Cycle(bank), seen)


def _recalled_elsewhere(cycle, seen):
    cycle.remember(
        "I keep bees",
        constructor=Scripted(ConstructorOutput(facts=[])),
        episode_trigger=Always(EpisodeTriggerOutput(boundaries=[])),
    )
    inside = cycle.recall("bees", context={"evidence_only": True})["answer"]["evidence"]
    outside = cycle.recall("bees", session="s2", context={"evidence_only": True})["answer"]["evidence"]
    assert [item["text"] for item in inside] == ["I keep bees"]
    assert [item["text"] for item in outside] == seen
