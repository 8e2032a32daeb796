"""Which of the found entries a recall shows, in which order, and what routing and Retry mean for it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_trigger import EpisodeTriggerOutput
from memcycle.agents.fact_judge import FactJudgeOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.agents.retriever import Intent, Plan, RetrieverOutput
from memcycle.core.entry import Entry, new_entry
from memcycle.core.language.token_count import token_counter
from memcycle.core.scope import Scope
from memcycle.core.theta import Routing, Shares, Theta
from memcycle.core.turn import Turn
from memcycle.graph.recall.evidence import Limits, Piece, assemble
from memcycle.graph.search import share_out
from memcycle.graph.states import Planned
from memcycle.stores.search.request import Ranked
from tests.graph.conftest import ANA
from tests.scripted import Always, Scripted

SCOPE = Scope(user="ana", session="s1")


def words(text: str) -> int:
    return len(text.split())


def turn(n: int, text: str, score: float = 0.5, *, current: bool = True, **more) -> Piece:
    return Piece(new_entry(SCOPE, "raw", text, (f"Ds1:{n}",), speaker="Ana", **more), score, current)


def fact(
    turns: int | tuple[int, ...], text: str, score: float = 0.5, *, current: bool = True, **more
) -> Piece:
    named = tuple(f"Ds1:{n}" for n in (turns if isinstance(turns, tuple) else (turns,)))
    return Piece(new_entry(SCOPE, "fact", text, named, speaker="Ana", **more), score, current)


def episode(text: str, score: float = 0.5) -> Piece:
    return Piece(new_entry(SCOPE, "episode", text, ("Ds1:1", "Ds1:2")), score)


def shown(pieces, k=10, tokens=1000, **limits) -> list[str]:
    return [one.entry.text for one in assemble(pieces, Limits(k, tokens, **limits), words)]


def test_a_fact_is_not_shown_beside_the_turn_it_only_repeats():
    found = [turn(1, "I keep bees in the garden", 0.6), fact(1, "Ana keeps bees", 0.9)]
    assert shown(found) == ["I keep bees in the garden"]


def test_a_fact_that_says_more_than_its_turn_is_shown_where_room_is_left():
    found = [turn(1, "I keep them there", 0.6), fact(1, "Ana keeps bees in the garden", 0.5)]
    assert shown(found) == ["I keep them there", "Ana keeps bees in the garden"]
    dated = [
        turn(1, "We met yesterday"),
        fact(1, "Ana met yesterday", 0.4, event_time=datetime(2024, 5, 1, tzinfo=UTC)),
    ]
    assert len(shown(dated)) == 2
    assert shown([turn(2, "I row boats", 0.1), *found], k=2) == ["I keep them there", "I row boats"]


def test_the_best_are_shown_as_said_and_the_others_in_their_cheapest_form():
    found = [
        piece
        for n in range(1, 5)
        for piece in (
            turn(n, f"well you know I keep {n} of them", 0.9 - n / 10),
            fact(n, f"Ana keeps {n}", 0.9 - n / 10),
        )
    ]
    assert shown(found, tokens=20, turns_first=0.4) == [
        "well you know I keep 1 of them",
        "Ana keeps 2",
        "Ana keeps 3",
        "Ana keeps 4",
    ]
    assert shown(found, tokens=20, turns_first=0) == [f"Ana keeps {n}" for n in range(1, 5)]
    assert shown(found, tokens=32, turns_first=1) == [
        f"well you know I keep {n} of them" for n in range(1, 5)
    ]


def test_a_short_turn_is_cheaper_than_its_fact():
    assert shown([turn(1, "Bees!"), fact(1, "Ana is fond of bees")], turns_first=0, k=1) == ["Bees!"]


def test_a_turn_and_its_fact_speak_for_each_other():
    found = [turn(1, "I keep bees", 0.5), turn(2, "I row boats", 0.55), fact(1, "Ana keeps bees", 0.9)]
    assert shown([*found, fact(2, "Ana rows boats", 0.2)], k=1) == ["I keep bees"]
    # A fact that was not found counts as the worst that was.
    assert shown([*found, fact(3, "Ana is tall", 0.2)], k=1) == ["I keep bees"]


def test_scores_are_those_of_what_is_said_and_fall():
    found = [turn(1, "I keep bees", 0.5), fact(1, "Ana keeps bees", 0.9), turn(2, "I row boats", 0.8)]
    chosen = assemble([*found, fact(2, "Ana rows boats", 0.8)], Limits(10, 100), words)
    assert [round(piece.score, 3) for piece in chosen] == [0.8, 0.62]


def test_of_one_granularity_the_best_scores_are_shown():
    for kind in [turn, fact]:
        found = [kind(n, f"about {n}", n / 10) for n in range(1, 6)]
        chosen = assemble(found, Limits(3, 100), words)
        assert [piece.entry.text for piece in chosen] == ["about 5", "about 4", "about 3"], kind
        assert [piece.score for piece in chosen] == [0.5, 0.4, 0.3], kind


def test_what_is_contradicted_does_not_stand_for_what_holds():
    found = [turn(1, "I keep bees"), fact(1, "Ana keeps bees", 0.2, current=False)]
    assert shown(found) == ["I keep bees", "Ana keeps bees"]


def test_a_correction_stands_beside_its_turn():
    said = fact(1, "Ana keeps bees")
    mended = said.entry.model_copy(update={"actor": "user", "supersedes": ("x",), "id": "y"})
    assert len(shown([turn(1, "I keep bees"), Piece(mended, 0.9)], k=2, turns_first=0)) == 2


def test_a_fact_of_several_turns_is_left_out_where_they_are_all_shown():
    found = [turn(1, "I keep bees", 0.9), turn(2, "I sell honey", 0.8), fact((1, 2), "Ana sells honey", 0.4)]
    other = fact((1, 3), "Ana keeps wild bees", 0.3)
    assert shown([*found, other], k=3) == ["I keep bees", "I sell honey", "Ana keeps wild bees"]


def test_episodes_take_no_more_than_their_share_while_others_are_left():
    found = [episode("a long story of bees and boats", 0.9), *(turn(n, f"about {n}") for n in range(1, 9))]
    assert "a long story of bees and boats" not in shown(found, tokens=20, episodes=0.1)
    assert shown(found, tokens=20, k=5, episodes=0.4)[0] == "a long story of bees and boats"
    # What nobody else needs is theirs.
    assert "a long story of bees and boats" in shown(found, tokens=23, k=9, episodes=0.1)


def test_the_first_may_exceed_the_budget_only_where_nothing_else_fits():
    long, short = turn(1, "a turn of many many words", 0.9), turn(2, "short", 0.1)
    assert shown([long, short], tokens=2) == ["short"]
    assert shown([long], tokens=2) == ["a turn of many many words"]
    assert shown([long, fact(1, "a fact of words", 0.1)], tokens=2) == ["a fact of words"]


def test_nothing_found_shows_nothing():
    assert assemble([], Limits(10, 100), words) == []


pieces = st.lists(
    st.builds(
        lambda kind, at, size, score: (
            turn(at, f"t{at} " + "x " * size, score)
            if kind == "raw"
            else fact(at, f"f{at} {size} " + "y " * (size // 2), score)
            if kind == "fact"
            else episode(f"e{at} " + "z " * size * 3, score)
        ),
        st.sampled_from(["raw", "fact", "episode"]),
        st.integers(1, 8),
        st.integers(1, 12),
        st.floats(0, 1),
    ),
    unique_by=lambda piece: piece.entry.id,
    max_size=20,
)


@given(
    pieces,
    st.integers(1, 12),
    st.integers(50, 120),
    st.floats(0, 1),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)
def test_limits_are_kept_whatever_was_found(found, k, tokens, first, episodes, random):
    limits = Limits(k, tokens, first, episodes)
    chosen = assemble(found, limits, words)
    assert len(chosen) <= k
    assert sum(words(piece.entry.text) for piece in chosen) <= tokens
    assert bool(chosen) == bool(found)
    assert len({piece.entry.id for piece in chosen}) == len(chosen)
    assert [piece.score for piece in chosen] == sorted((piece.score for piece in chosen), reverse=True)
    shuffled = random.sample(found, len(found))
    assert assemble(shuffled, limits, words) == chosen


@given(pieces, st.integers(50, 120))
def test_with_places_for_all_more_tokens_never_show_less(found, tokens):
    def covered(budget: int) -> set[str]:
        chosen: list[Entry] = [piece.entry for piece in assemble(found, Limits(50, budget, 0, 1), words)]
        return {turn for entry in chosen if entry.granularity != "episode" for turn in entry.turns}

    everything = sum(words(piece.entry.text) for piece in found) + 1
    assert covered(tokens) <= covered(max(tokens, everything))


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
