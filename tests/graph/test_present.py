"""What a recall shows: in which order, how many tokens, and what routing and Retry mean for it."""

import pytest

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_trigger import EpisodeTriggerOutput
from memcycle.agents.fact_judge import FactJudgeOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.agents.retriever import Intent, Plan, RetrieverOutput
from memcycle.core.language.token_count import token_counter
from memcycle.core.theta import Routing, Shares, Theta
from memcycle.core.turn import Turn
from memcycle.graph.search import share_out
from memcycle.graph.states import Planned
from memcycle.stores.search.request import Ranked
from tests.graph.conftest import ANA
from tests.scripted import Always, Scripted

QUIET = {
    "episode_trigger": Always(EpisodeTriggerOutput(boundaries=[])),
    "fact_judge": Always(FactJudgeOutput(verdicts=[])),
}
ENOUGH = Always(JudgeOutput(relevant=[0, 1, 2, 3], sufficient=True))


@pytest.fixture
def told(cycle):
    """Two sessions; the turns of the second, told first, are the later ones."""
    for session, said in (("s2", ["Then the boat sank", "The boat was old"]), ("s1", ["I built a boat"])):
        cycle.day = {"s2": 5, "s1": 1}[session]
        cycle.remember(*said, session=session, constructor=Scripted(ConstructorOutput(facts=[])), **QUIET)
        cycle.end(session, verify=False)
    return cycle


def test_the_answerer_reads_in_the_order_in_which_things_were_said(told):
    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[2]))
    out = told.recall("Why was the boat old?", judge=ENOUGH, answerer=answerer)["answer"]
    said = ["I built a boat", "Then the boat sank", "The boat was old"]
    raws = [view for view in answerer.seen[0].evidence if view.granularity == "raw"]
    assert [view.text for view in raws] == said
    assert [view.n for view in answerer.seen[0].evidence] == list(range(len(answerer.seen[0].evidence)))
    assert all(view.time and view.speaker == "Ana" for view in raws)
    assert [item["text"] for item in out["evidence"]] == [answerer.seen[0].evidence[2].text]


def test_turns_of_one_time_stand_in_their_places(cycle):
    turns = cycle.turns("one boat", "two boats", "three boats", "four boats", "five boats")
    for turn in turns:
        turn["time"] = turns[0]["time"]
    cycle.bank.stage_turns(ANA, [Turn.model_validate(turn) for turn in turns])
    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[]))
    cycle.recall("boats", judge=ENOUGH, answerer=answerer)
    said = [view.text for view in answerer.seen[0].evidence]
    assert said == ["one boat", "two boats", "three boats", "four boats", "five boats"]


def test_retrieval_alone_gives_the_best_first(told):
    out = told.recall("Why was the boat old?", judge=ENOUGH, context={"evidence_only": True})["answer"]
    scores = [item["score"] for item in out["evidence"]]
    assert scores == sorted(scores, reverse=True)
    assert out["evidence"][0]["text"] == "The boat was old"


def test_tokens_are_those_of_all_that_was_shown(told):
    counter = token_counter()
    answerer = Scripted(AnswererOutput(answer="x", answerable=True, citations=[0]))
    out = told.recall("Why was the boat old?", judge=ENOUGH, answerer=answerer)["answer"]
    assert len(out["evidence"]) == 1
    assert out["tokens"] == sum(counter.count(view.text) for view in answerer.seen[0].evidence)
    assert out["tokens_exact"] is counter.exact
    nothing = told.recall("boat?", context={"user": "nobody"})["answer"]
    assert nothing["tokens"] == 0


def test_k_and_the_token_budget_are_both_kept(cycle):
    for n in range(12):
        cycle.remember(
            f"boat {n} " + "is very old " * 5, constructor=Scripted(ConstructorOutput(facts=[])), **QUIET
        )

    def asked(**limits):
        context = {"evidence_only": True, **limits}
        return cycle.recall("old boat", judge=ENOUGH, context=context)["answer"]

    assert len(asked(k=3, token_budget=4000)["evidence"]) == 3
    tight = asked(k=12, token_budget=60)
    assert 0 < len(tight["evidence"]) < 12
    assert tight["tokens"] <= 60


def test_the_places_of_a_fact_beside_its_turn_go_to_others(cycle):
    """Four turns with a fact each: k of 4 shows four turns, not two and their facts."""
    for n, name in enumerate(["red", "green", "blue", "black"], 1):
        facts = ConstructorOutput(facts=[FactDraft(text=f"Ana owns the {name} boat", turn=1)])
        cycle.remember(f"I own the {name} boat, number {n}", constructor=Scripted(facts), **QUIET)
    out = cycle.recall("Ana boat", judge=ENOUGH, context={"evidence_only": True, "k": 4})["answer"]
    assert len({turn for item in out["evidence"] for turn in item["turns"]}) == 4


def ranked(**scores: float) -> list[Ranked]:
    """Named `raw_1=0.9`, best first."""
    best = sorted(scores.items(), key=lambda one: -one[1])
    return [Ranked(name, name.split("_")[0], score, row=n, place=n) for n, (name, score) in enumerate(best)]


def planned(operator: str) -> Planned:
    return Planned(n=1, query="q", operator=operator, k=4, speaker=None)


def test_the_routed_granularity_has_its_share_and_the_rest_goes_by_score():
    found = ranked(raw_1=0.9, raw_2=0.8, raw_3=0.7, raw_4=0.6, fact_1=0.3, fact_2=0.2, episode_1=0.1)
    half = Shares(raw=0.5, fact=0.25, episode=0.25)
    theta = Theta(routing=Routing(fact=half, raw=Shares(raw=0, fact=0, episode=0)))

    def ids(operator: str) -> list[str]:
        return [one.id for one in share_out(found, planned(operator), 4, theta)]

    assert ids("fact") == ["raw_1", "raw_2", "fact_1", "episode_1"]
    assert ids("raw") == ["raw_1", "raw_2", "raw_3", "raw_4"]


def test_free_places_go_to_the_best_of_what_is_there():
    found = ranked(raw_1=0.9, raw_2=0.8, raw_3=0.7)
    assert len(share_out(found, planned("episode"), 4, Theta())) == 3


def test_exclusive_routing_keeps_to_its_granularity_until_retry_widens(told):
    theta = Theta(routing=Routing(mode="exclusive"), k_r=1)
    settings = told.bank.settings.model_copy(update={"theta": theta})
    fine = Intent(fine=True, abs=False, event=False, atomic=False)
    retriever = Always(RetrieverOutput(plans=[Plan(n=1, query="boat", k=8, intent=fine)]))

    def kinds(**judged) -> set[str]:
        judge = Always(JudgeOutput(**judged))
        out = told.recall(
            "boat", settings, judge=judge, retriever=retriever, context={"evidence_only": True}
        )["answer"]
        return {item["granularity"] for item in out["evidence"]}

    assert kinds(relevant=[0, 1, 2], sufficient=True) == {"raw"}
    assert kinds(relevant=[], sufficient=False) == {"raw", "episode"}
