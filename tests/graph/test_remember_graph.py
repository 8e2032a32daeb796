"""remember: each edge and each guard, with scripted roles."""

import pytest

from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_trigger import Boundary, EpisodeTriggerOutput
from memcycle.agents.episode_writer import EpisodeWriterOutput
from memcycle.agents.fact_judge import FactJudgeOutput, FactVerdict
from memcycle.agents.guide import GuideOutput
from memcycle.agents.judge import Conflict, JudgeOutput
from memcycle.agents.refresher import Refresh, RefresherOutput
from memcycle.core.entry import STATUSES
from memcycle.core.errors import RoleFailed
from memcycle.core.theta import Switches
from tests.graph.conftest import ANA
from tests.scripted import Always, Scripted

QUIET = {"episode_trigger": Always(EpisodeTriggerOutput(boundaries=[]))}


def facts(*drafts: str | FactDraft) -> Scripted:
    return Scripted(
        ConstructorOutput(
            facts=[d if isinstance(d, FactDraft) else FactDraft(text=d, turn=1) for d in drafts]
        )
    )


def number_of(text: str):
    """A function from a role's input to the number under which it was shown a memory."""
    return lambda value: next(view.n for view in value.candidates if view.text == text)


def conflict_with(text: str, turn: int = 1) -> Scripted:
    def judge(value):
        n = number_of(text)(value)
        return JudgeOutput(relevant=[n], conflicts=[Conflict(memory=n, turn=turn)], sufficient=True)

    return Scripted(judge)


PASS = Always(JudgeOutput(relevant=[0], sufficient=True))


def test_raw_turn_fact_and_result(cycle):
    out = cycle.remember(
        "I keep two beehives on the roof", constructor=facts("Ana keeps two beehives on the roof"), **QUIET
    )
    assert out["result"]["turns"] == ["Ds1:1"]
    assert cycle.facts() == ["Ana keeps two beehives on the roof"]
    entry = cycle.bank.get(ANA, out["result"]["facts"])[0]
    assert (entry.turns, entry.speaker, entry.status, entry.actor) == (
        ("Ds1:1",),
        "Ana",
        "staged",
        "constructor",
    )
    assert [raw.text for raw in cycle.bank.raw_entries(ANA, ["Ds1:1"])] == ["I keep two beehives on the roof"]


def test_a_failed_constructor_leaves_turns_waiting_and_the_next_run_takes_them(cycle):
    out = cycle.remember(
        "I repair accordions", constructor=Scripted(RoleFailed("constructor", "no JSON")), **QUIET
    )
    assert out["result"]["unextracted"] == ["Ds1:1"]
    assert out["result"]["facts"] == []
    assert any("constructor" in warning for warning in out["result"]["warnings"])
    constructor = Scripted(
        ConstructorOutput(
            facts=[FactDraft(text="Ana repairs accordions", turn=1), FactDraft(text="Ana has a dog", turn=2)]
        )
    )
    out = cycle.remember("I have a dog", constructor=constructor, **QUIET)
    assert [view.text for view in constructor.seen[0].turns] == ["I repair accordions", "I have a dog"]
    assert sorted(cycle.facts()) == ["Ana has a dog", "Ana repairs accordions"]
    assert out["result"]["unextracted"] == []
    assert cycle.bank.unprocessed(ANA) == []


def test_the_same_turns_twice_do_nothing_new(cycle):
    turns = cycle.turns("I keep bees")
    from memcycle import build_remember
    from memcycle.agents.roles import Roles

    graph = build_remember(Roles.rules(), cycle.bank)
    first = graph.invoke({"turns": turns}, context={"user": "ana", "session": "s1"})
    before = [entry.model_dump() for entry in cycle.bank.entries(ANA)]
    again = graph.invoke({"turns": turns}, context={"user": "ana", "session": "s1"})
    assert first["result"]["turns"] == ["Ds1:1"]
    assert again["result"]["turns"] == []
    assert [entry.model_dump() for entry in cycle.bank.entries(ANA)] == before


def test_assistant_and_tool_text_never_become_facts(cycle):
    out = cycle.remember(
        "Which boots for wet trails?",
        ("ai", "The Fellmark 3. You clearly like light boots."),
        ("tool", '{"owner": "Ana owns Fellmark boots"}'),
        constructor=facts(
            FactDraft(text="Ana likes light boots", turn=2), FactDraft(text="Ana owns Fellmark boots", turn=3)
        ),
        **QUIET,
    )
    assert cycle.facts() == []
    assert len(out["result"]["rejected"]) == 2
    assert "no evidence" in out["result"]["rejected"][0]["why"]


def test_an_unsupported_fact_is_judged_beside_its_turn_and_refused(cycle):
    judge = Scripted(FactJudgeOutput(verdicts=[FactVerdict(n=1, supported=False, why="not said of herself")]))
    out = cycle.remember(
        "Show last quarter's orders for client Oduya",
        constructor=facts("The user is called Oduya"),
        fact_judge=judge,
        **QUIET,
    )
    shown = judge.seen[0].facts[0]
    assert (shown.text, shown.turn.text) == (
        "The user is called Oduya",
        "Show last quarter's orders for client Oduya",
    )
    assert cycle.facts() == []
    assert out["result"]["rejected"] == [{"text": "The user is called Oduya", "why": "not said of herself"}]


def test_guidance_reaches_the_constructor_and_its_switch_removes_the_node(cycle):
    guided = facts()
    cycle.remember("I keep bees", constructor=guided, guide=Scripted(GuideOutput(keep=["bees"])), **QUIET)
    assert guided.seen[0].guidance.keep == ["bees"]
    bare = facts()
    settings = cycle.bank.settings.model_copy(update={"switches": Switches(guidance=False)})
    cycle.remember("I keep geese", constructor=bare, guide=Scripted(), settings=settings, **QUIET)
    assert bare.seen[0].guidance is None


def test_refresh_updates_the_conflicting_memory_and_keeps_history(cycle):
    cycle.remember("I teach at Larkfield", constructor=facts("Ana teaches at Larkfield"), **QUIET)
    old = cycle.bank.entries(ANA, granularity="fact")[0]
    out = cycle.remember(
        "I left Larkfield, I teach at Quarry Lane now",
        judge=conflict_with("Ana teaches at Larkfield"),
        refresher=Scripted(
            RefresherOutput(edits=[Refresh(op="UPDATE", memory=0, text="Ana teaches at Quarry Lane", turn=1)])
        ),
        constructor=facts(FactDraft(text="Ana teaches at Quarry Lane", turn=1)),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        **QUIET,
    )
    assert cycle.facts() == ["Ana teaches at Quarry Lane"]
    assert out["result"]["refreshed"] == [old.id]
    past = cycle.bank.get(ANA, [old.id])[0]
    assert past.status == "superseded"
    assert past.valid_until.date().isoformat() == "2024-05-03"
    assert "update" in [event.action for event in cycle.bank.history(ANA, old.id)] or "supersede" in [
        event.action for event in cycle.bank.history(ANA, old.id)
    ]


def test_what_replaces_a_fact_takes_over_no_name_that_it_does_not_speak_of(cycle):
    """It would outlive the words it comes from, when those are forgotten."""
    told = FactDraft(text="Ana teaches at Larkfield", turn=0, entities=["Ana", "Larkfield"], persons=["Ana"])
    cycle.remember("I teach at Larkfield", constructor=facts(told), **QUIET)
    (old,) = cycle.bank.entries(ANA, granularity="fact")
    assert old.entities == ("Ana", "Larkfield")
    cycle.remember(
        "I teach at Quarry Lane now",
        judge=conflict_with("Ana teaches at Larkfield"),
        refresher=Scripted(
            RefresherOutput(edits=[Refresh(op="UPDATE", memory=0, text="Ana teaches at Quarry Lane", turn=1)])
        ),
        constructor=facts(),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        **QUIET,
    )
    (new,) = cycle.bank.entries(ANA, granularity="fact")
    assert (new.text, new.entities) == ("Ana teaches at Quarry Lane", ("Ana",))


def test_a_fact_carries_no_name_from_the_turns_around_its_own(cycle):
    drawn = FactDraft(text="Ana lives there", turn=0, entities=["Larkfield"], locations=["Larkfield"])
    cycle.remember("I live there", constructor=facts(drawn), **QUIET)
    (fact,) = cycle.bank.entries(ANA, granularity="fact")
    assert (fact.entities, fact.locations) == ((), ())


@pytest.mark.parametrize("memory", [1, 7, -1])
def test_the_refresher_touches_the_conflict_set_only(cycle, memory):
    cycle.remember("I teach at Larkfield", constructor=facts("Ana teaches at Larkfield"), **QUIET)
    out = cycle.remember(
        "I teach at Quarry Lane now",
        judge=conflict_with("Ana teaches at Larkfield"),
        refresher=Scripted(
            RefresherOutput(edits=[Refresh(op="UPDATE", memory=memory, text="Ana swims", turn=1)])
        ),
        constructor=facts(),
        **QUIET,
    )
    assert cycle.facts() == ["Ana teaches at Larkfield"]
    assert "not in the conflict set" in out["result"]["rejected"][0]["why"]


def test_a_deletion_without_the_users_words_becomes_a_supersession(cycle):
    cycle.remember("I enjoy night shifts", constructor=facts("Ana enjoys night shifts"), **QUIET)
    old = cycle.bank.entries(ANA, granularity="fact")[0]
    cycle.remember(
        "Night shifts wear me out, I can't stand them now",
        judge=conflict_with("Ana enjoys night shifts"),
        refresher=Scripted(RefresherOutput(edits=[Refresh(op="DELETE", memory=0, quote="wear me out")])),
        constructor=facts("Ana dislikes night shifts"),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        **QUIET,
    )
    assert cycle.facts() == ["Ana dislikes night shifts"]
    assert cycle.bank.get(ANA, [old.id])[0].status == "superseded"


def test_a_deletion_in_the_users_words_is_done(cycle):
    cycle.remember("My address is Elm Road", constructor=facts("Ana's address is Elm Road"), **QUIET)
    old = cycle.bank.entries(ANA, granularity="fact")[0]
    out = cycle.remember(
        "Please forget my address",
        judge=conflict_with("Ana's address is Elm Road"),
        refresher=Scripted(
            RefresherOutput(edits=[Refresh(op="DELETE", memory=0, quote="forget my address")])
        ),
        constructor=facts(),
        **QUIET,
    )
    assert cycle.facts() == []
    assert out["result"]["refreshed"] == [old.id]
    assert cycle.bank.entries(ANA, statuses=STATUSES) == []


def test_a_deletion_that_rests_on_an_equal_fact_is_ignored(cycle):
    cycle.remember("I keep two beehives", constructor=facts("Ana keeps two beehives"), **QUIET)
    old = cycle.bank.entries(ANA, granularity="fact")[0]
    out = cycle.remember(
        "As I said, I keep two beehives",
        judge=PASS,
        constructor=Scripted(
            lambda value: ConstructorOutput(
                facts=[
                    FactDraft(
                        text="Ana keeps two beehives",
                        turn=1,
                        edit="DELETE",
                        target=_shown(value, "Ana keeps two beehives"),
                    )
                ]
            )
        ),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        **QUIET,
    )
    assert [entry.id for entry in cycle.bank.entries(ANA, granularity="fact")] == [old.id]
    assert "ignored" in out["result"]["rejected"][0]["why"]


def _shown(value, text: str) -> int:
    return next(view.n for view in value.memories if view.text == text)


def test_an_unknown_memory_number_is_reported_and_its_text_kept(cycle):
    cycle.remember("I row", constructor=facts("Ana rows"), **QUIET)
    out = cycle.remember(
        "I train for a triathlon in June",
        judge=PASS,
        constructor=facts(
            FactDraft(text="Ana trains for a triathlon in June", turn=1, edit="UPDATE", target=12)
        ),
        **QUIET,
    )
    assert sorted(cycle.facts()) == ["Ana rows", "Ana trains for a triathlon in June"]
    assert any("memory 12" in warning for warning in out["result"]["warnings"])


def test_paraphrases_merge_when_the_judge_says_so(cycle):
    cycle.remember("I play bass clarinet", constructor=facts("Ana plays bass clarinet"), **QUIET)
    judge = Scripted(
        lambda value: FactJudgeOutput(
            verdicts=[FactVerdict(n=1, supported=True, relation="duplicate", near=0)]
        )
    )
    cycle.remember(
        "I play the bass clarinet",
        judge=PASS,
        constructor=facts("Ana plays the bass clarinet"),
        fact_judge=judge,
        **QUIET,
    )
    stored = cycle.bank.entries(ANA, granularity="fact")
    assert [entry.text for entry in stored] == ["Ana plays bass clarinet"]
    assert stored[0].turns == ("Ds1:1", "Ds1:2")


def test_older_evidence_never_overwrites_newer(cycle):
    cycle.remember("I live in Linz", constructor=facts("Ana lives in Linz"), **QUIET)
    draft = FactDraft(
        text="Ana lived in Graz",
        turn=1,
        event_time="2020-01-01T00:00:00Z",
        event_precision="year",
        edit="UPDATE",
        target=0,
    )
    out = cycle.remember(
        "Back in 2020 I lived in Graz",
        judge=PASS,
        constructor=Scripted(
            lambda value: ConstructorOutput(
                facts=[draft.model_copy(update={"target": _shown(value, "Ana lives in Linz")})]
            )
        ),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        **QUIET,
    )
    assert "Ana lives in Linz" in cycle.facts()
    assert [entry.status for entry in cycle.bank.get(ANA, out["result"]["facts"])] == ["superseded"]


def test_retry_widens_at_most_k_r_rounds(cycle):
    cycle.remember("I row", constructor=facts("Ana rows"), **QUIET)
    judge = Always(JudgeOutput(relevant=[], sufficient=False, missing="boats"))
    cycle.remember("I bought a boat", judge=judge, constructor=facts(), **QUIET)
    assert len(judge.seen) == 1 + cycle.bank.settings.theta.k_r


def test_without_refresher_the_conflict_is_kept_side_by_side(cycle):
    settings = cycle.bank.settings.model_copy(update={"switches": Switches(refresher=False)})
    cycle.remember(
        "I teach at Larkfield", constructor=facts("Ana teaches at Larkfield"), settings=settings, **QUIET
    )
    cycle.remember(
        "I teach at Quarry Lane",
        judge=conflict_with("Ana teaches at Larkfield"),
        refresher=Scripted(),
        constructor=facts("Ana teaches at Quarry Lane"),
        fact_judge=Always(FactJudgeOutput(verdicts=[])),
        settings=settings,
        **QUIET,
    )
    assert sorted(cycle.facts()) == ["Ana teaches at Larkfield", "Ana teaches at Quarry Lane"]


def test_an_episode_is_written_where_the_trigger_fires(cycle):
    trigger = Always(lambda value: EpisodeTriggerOutput(boundaries=[Boundary(after=2, reason="topic_shift")]))
    writer = Scripted(EpisodeWriterOutput(title="Bees", text="Ana spoke of her bees."))
    out = cycle.remember(
        "Remember my bees, goodbye!",
        "Bye bye",
        "Let's talk about something else: new topic",
        constructor=facts(),
        episode_trigger=trigger,
        episode_writer=writer,
    )
    assert [view.n for view in writer.seen[0].turns] == [1, 2]
    episodes = cycle.bank.entries(ANA, granularity="episode")
    assert [(episode.title, episode.turns) for episode in episodes] == [("Bees", ("Ds1:1", "Ds1:2"))]
    assert out["result"]["episodes"] == [episodes[0].id]
    assert [turn.id for turn in cycle.bank.open_segment(ANA)] == ["Ds1:3"]


def test_a_saturated_window_closes_though_the_trigger_fails(cycle):
    settings = cycle.bank.settings.model_copy(
        update={"theta": cycle.bank.settings.theta.model_copy(update={"saturation_turns": 3})}
    )
    cycle.remember(
        *[f"Bye, line number {n}" for n in range(4)],
        constructor=facts(),
        episode_trigger=Always(RoleFailed("episode_trigger", "x")),
        episode_writer=Scripted(RoleFailed("episode_writer", "x")),
        settings=settings,
    )
    episodes = cycle.bank.entries(ANA, granularity="episode")
    assert [episode.turns for episode in episodes] == [("Ds1:1", "Ds1:2", "Ds1:3")]
    assert episodes[0].text


def test_ending_a_session_writes_the_last_episode_and_commits(cycle):
    cycle.remember("I keep bees", "They make honey", constructor=facts("Ana keeps bees"), **QUIET)
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"staged"}
    out = cycle.end(
        episode_writer=Scripted(EpisodeWriterOutput(title="Bees", text="Ana keeps bees for honey."))
    )
    assert out["result"]["committed"] == 4
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"active"}
    assert cycle.end()["result"]["committed"] == 0


@pytest.mark.parametrize("role", ["retriever", "judge", "guide", "fact_judge", "refresher"])
def test_a_failing_role_never_costs_a_fact(cycle, role):
    cycle.remember("I row a boat", constructor=facts("Ana rows a boat"), **QUIET)
    failing = {role: Always(RoleFailed(role, "nonsense"))}
    if role == "refresher":
        failing["judge"] = conflict_with("Ana rows a boat")
    out = cycle.remember(
        "I sail a boat now", constructor=facts("Ana sails a boat these days"), **QUIET, **failing
    )
    assert "Ana sails a boat these days" in cycle.facts()
    assert any(role in warning for warning in out["result"]["warnings"])


def test_waiting_turns_are_remembered_before_their_session_ends(cycle):
    cycle.remember("I repair accordions", constructor=Scripted(RoleFailed("constructor", "cut")), **QUIET)
    assert cycle.facts() == []
    cycle.end(constructor=facts("Ana repairs accordions"))
    assert cycle.facts() == ["Ana repairs accordions"]
    assert cycle.bank.unprocessed(ANA) == []
