"""The session graph, its roles scripted: what each decision does to memory and to the session."""

from dataclasses import replace

import pytest

from memcycle import build_session
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_writer import EpisodeWriterOutput
from memcycle.agents.grader import Grade, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberOutput
from memcycle.agents.repairer import RepairerOutput, RepairFact
from memcycle.agents.roles import Roles
from memcycle.core.errors import RoleFailed
from memcycle.core.settings import Settings, Verification
from memcycle.core.theta import Switches
from tests.graph.conftest import ANA
from tests.scripted import Always, Scripted

SAID = (
    "I am allergic to walnuts.",
    "My sister Eva keeps two beehives in Linz.",
    "On Sunday I sold the old loom to a museum.",
)
NO_FACTS = Always(ConstructorOutput(facts=[]))


def knows(*texts: str):
    """A Constructor that stores these, each of the turn that says so."""
    return Scripted(ConstructorOutput(facts=[FactDraft(text=text, turn=0) for text in texts]))


def asks(*probes: tuple[str, str, int], kind: str = "single-hop"):
    drafts = [ProbeDraft(question=q, answer=a, turn=turn, kind=kind) for q, a, turn in probes]
    return Scripted(ProberOutput(probes=drafts))


def answers(**by_word: str):
    """An Answerer that says what it finds in the evidence, by a word of the question."""

    def answer(value):
        word = next(word for word in by_word if word in value.question)
        held = [view.n for view in value.evidence if by_word[word] in view.text]
        if not held:
            return AnswererOutput(answer="Memory does not say.", answerable=False)
        return AnswererOutput(answer=by_word[word], answerable=True, citations=held[:1])

    return Always(answer)


GRADES = Always(
    lambda value: GraderOutput(
        grades=[Grade(n=item.n, correct=item.gold in item.answer) for item in value.items]
    )
)
WALNUTS = ("What is Ana allergic to?", "walnuts", 1)
BEES = ("What does Eva keep in Linz?", "two beehives", 2)
LOOM = ("To whom did Ana sell the loom?", "museum", 3)
ALLERGY = RepairFact(text="Ana is allergic to walnuts", turn=1, quote="I am allergic to walnuts")


def adds(fact: RepairFact, cause: str = "missing"):
    return RepairerOutput(op="ADD_FACT", cause=cause, fact=fact)


NOOP = RepairerOutput(op="NOOP", why="nothing to add")


def probes(cycle, session: str = "s1"):
    return cycle.bank.probes(ANA.within(session))


def lost(cycle, *stored: str, settings=None, **roles):
    """Ends a session of which these facts were stored, and an episode that tells no detail."""
    cycle.remember(*SAID, constructor=knows(*stored))
    return cycle.end(settings=settings, **(plain() | roles))


def plain():
    return {
        "episode_writer": Scripted(EpisodeWriterOutput(title="News", text="Ana told her news.")),
        "prober": asks(WALNUTS),
        "answerer": answers(allergic="walnuts", Eva="two beehives", loom="museum"),
        "grader": GRADES,
    }


def only_probe(cycle):
    (probe,) = probes(cycle)
    return probe


def test_what_memory_answers_is_committed_as_it_is(cycle):
    repairer = Scripted()
    result = lost(cycle, "Ana is allergic to walnuts", repairer=repairer)["result"]
    assert (result["status"], result["reason"], result["warnings"]) == ("committed", "", [])
    assert (result["probes"], result["passed_before"], result["passed_after"]) == (1, 1, 1)
    assert (result["repairs"], result["rolled_back"], repairer.seen) == (0, 0, [])
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"active"}


def test_insert_an_omission_comes_back_from_its_turn(cycle):
    result = lost(cycle, repairer=Scripted(adds(ALLERGY)))["result"]
    assert (result["passed_before"], result["passed_after"], result["repairs"]) == (0, 1, 1)
    (entry,) = cycle.bank.entries(ANA, granularity="fact")
    assert (entry.text, entry.turns, entry.status) == ("Ana is allergic to walnuts", ("Ds1:1",), "active")
    assert (entry.actor, entry.quote) == ("repairer", "I am allergic to walnuts")
    probe = only_probe(cycle)
    assert (probe.before.verdict, probe.after.verdict, probe.verdict) == ("failed", "passed", "passed")
    assert (probe.repair.decision, probe.repair.cause, probe.repair.entry) == ("INSERT", "missing", entry.id)


def test_skip_what_is_stored_is_not_stored_again(cycle):
    consolidator = Scripted(ConsolidatorOutput(decision="SKIP", memory=0, why="known"))
    result = lost(
        cycle, "Ana has a walnut allergy", repairer=Scripted(adds(ALLERGY)), consolidator=consolidator
    )["result"]
    assert (result["passed_after"], result["repairs"], result["status"]) == (0, 0, "committed")
    assert cycle.facts() == ["Ana has a walnut allergy"]
    assert (only_probe(cycle).repair.decision, only_probe(cycle).after) == ("SKIP", None)


def test_the_same_words_are_skipped_without_asking(cycle):
    answerer = Always(AnswererOutput(answer="Memory does not say.", answerable=False))
    lost(
        cycle,
        "Ana is allergic to walnuts",
        answerer=answerer,
        repairer=Scripted(adds(ALLERGY)),
        consolidator=Scripted(),
    )
    assert only_probe(cycle).repair.decision == "SKIP"
    assert len(answerer.seen) == 1, "nothing was written, so nothing is asked again"


def test_merge_makes_one_entry_that_rests_on_both_turns(cycle):
    cycle.remember("A walnut allergy is a nuisance.", constructor=knows("Ana has a walnut allergy"))
    merged = ConsolidatorOutput(decision="MERGE", memory=0, text="Ana is allergic to walnuts")
    fact = ALLERGY.model_copy(update={"turn": 2})
    roles = plain() | {
        "prober": asks(("What is Ana allergic to?", "walnuts", 2)),
        "repairer": Scripted(adds(fact)),
        "consolidator": Scripted(merged),
    }
    cycle.remember(SAID[0], constructor=NO_FACTS)
    result = cycle.end(**roles)["result"]
    (entry,) = cycle.bank.entries(ANA, granularity="fact")
    assert (entry.text, set(entry.turns)) == ("Ana is allergic to walnuts", {"Ds1:1", "Ds1:2"})
    assert (result["merged"], result["repairs"], result["passed_after"]) == (1, 1, 1)
    assert "Ana has a walnut allergy" in [
        (event.before or {}).get("text") for event in cycle.bank.history(ANA, entry.id)
    ]


def test_noop_leaves_memory_and_says_so(cycle):
    result = lost(cycle, repairer=Scripted(NOOP))["result"]
    assert (result["passed_after"], result["repairs"], cycle.facts()) == (0, 0, [])
    assert (only_probe(cycle).repair.decision, only_probe(cycle).repair.why) == ("NOOP", "nothing to add")


def test_a_repair_that_does_not_help_is_rolled_back(cycle):
    useless = RepairFact(text="Ana has an allergy", turn=1, quote="I am allergic")
    result = lost(cycle, repairer=Scripted(adds(useless)))["result"]
    assert (result["rolled_back"], result["repairs"], result["passed_after"]) == (1, 0, 0)
    assert cycle.facts() == []
    assert "rolled back" in result["warnings"][-1]
    probe = only_probe(cycle)
    assert probe.repair.state == "rolled_back"
    actions = [event.action for event in cycle.bank.history(ANA, probe.repair.entry)]
    assert actions == ["add", "undo"]


def test_a_rolled_back_repair_does_not_make_its_turn_outdated(cycle):
    lost(cycle, repairer=Scripted(adds(RepairFact(text="Ana has an allergy", turn=1, quote="I am allergic"))))
    seen = Always(AnswererOutput(answer="walnuts", answerable=True, citations=[0]))
    cycle.recall("What is Ana allergic to?", answerer=seen)
    assert all(view.current for view in seen.seen[0].evidence)


def test_a_repair_that_breaks_a_probe_is_rolled_back(cycle):
    def answer(value):
        texts = [view.text for view in value.evidence]
        if "Eva" in value.question:
            misled = [view.n for view in value.evidence if "walnuts" in view.text]
            said = "walnuts" if misled else "two beehives"
            cited = misled or [n for n, text in enumerate(texts) if "beehives" in text]
            return AnswererOutput(answer=said, answerable=True, citations=cited)
        held = [n for n, text in enumerate(texts) if "walnuts" in text]
        return AnswererOutput(answer="walnuts" if held else "?", answerable=bool(held), citations=held)

    result = lost(
        cycle,
        "Eva keeps two beehives in Linz",
        prober=asks(WALNUTS, ("What does Eva, Ana's sister, keep in Linz?", "two beehives", 2)),
        answerer=Always(answer),
        repairer=Scripted(adds(ALLERGY)),
    )["result"]
    assert (result["passed_before"], result["passed_after"]) == (1, 1)
    assert (result["repairs"], result["rolled_back"]) == (0, 1)
    assert cycle.facts() == ["Eva keeps two beehives in Linz"]
    walnuts, bees = probes(cycle)
    assert walnuts.repair.why == "probe 2, which passed before, failed with it"
    assert (bees.after.verdict, bees.as_before, bees.verdict) == ("failed", True, "passed")


def test_a_probe_that_its_turn_does_not_answer_is_left_out(cycle):
    prober = asks(
        ("What is Ana's cat called?", "Miso, after the soup", 1), ("Who is 9?", "walnuts", 9), WALNUTS
    )
    result = lost(cycle, "Ana is allergic to walnuts", prober=prober)["result"]
    assert result["probes"] == 1
    assert [warning.split(", since ")[1] for warning in result["warnings"]] == [
        "turn Ds1:1 does not say so",
        "it cites turn 9, which was not shown",
    ]


@pytest.mark.parametrize(
    "fact",
    [
        RepairFact(text="Ana owns a bear", turn=1, quote="I own a bear"),
        RepairFact(text="Ana is allergic to walnuts", turn=4, quote="You are allergic to walnuts"),
        RepairFact(text="Ana is allergic to walnuts", turn=1, quote=" "),
    ],
    ids=["invented", "said by the assistant", "no span"],
)
def test_a_span_that_no_person_said_is_refused(cycle, fact):
    cycle.remember(*SAID, ("ai", "You are allergic to walnuts, then."), constructor=NO_FACTS)
    result = cycle.end(**plain(), repairer=Scripted(adds(fact)))["result"]
    assert (result["repairs"], cycle.facts()) == (0, [])
    assert only_probe(cycle).repair.decision == "REFUSED"


def test_a_span_of_another_turn_is_found_there(cycle):
    wrong = ALLERGY.model_copy(update={"turn": 2})
    lost(cycle, repairer=Scripted(adds(wrong)))
    (entry,) = cycle.bank.entries(ANA, granularity="fact")
    assert entry.turns == ("Ds1:1",)


def test_a_repair_does_not_bring_back_what_its_turn_replaced(cycle):
    cycle.remember("I teach at Larkfield.", constructor=knows("Ana teaches at Larkfield"))

    def replaces(value):
        target = next(memory.n for memory in value.memories if memory.granularity == "fact")
        new = FactDraft(text="Ana teaches at Quarry Lane", turn=0, edit="UPDATE", target=target)
        return ConstructorOutput(facts=[new])

    cycle.remember("I left Larkfield, I teach at Quarry Lane now.", constructor=Scripted(replaces))
    back = RepairFact(text="Ana left Larkfield", turn=2, quote="I left Larkfield")
    roles = plain() | {
        "prober": asks(("What did Ana leave?", "Larkfield", 2)),
        "answerer": answers(leave="left"),
    }
    cycle.end(**roles, repairer=Scripted(adds(back)))
    assert cycle.facts() == ["Ana teaches at Quarry Lane"]
    assert only_probe(cycle).repair.why == "it names what was replaced"


def test_a_repair_does_not_bring_back_what_another_open_session_replaced(cycle):
    cycle.remember("I teach at Larkfield.", constructor=knows("Ana teaches at Larkfield"))

    def replaces(value):
        target = next(memory.n for memory in value.memories if memory.granularity == "fact")
        new = FactDraft(text="Ana teaches at Quarry Lane", turn=0, edit="UPDATE", target=target)
        return ConstructorOutput(facts=[new])

    cycle.remember("I teach at Quarry Lane now.", session="s2", constructor=Scripted(replaces))
    back = RepairFact(text="Ana is a teacher at Larkfield", turn=1, quote="I teach at Larkfield")
    roles = plain() | {
        "prober": asks(("Where does Ana teach?", "Larkfield", 1)),
        "answerer": answers(teach="Quarry Lane"),
    }
    cycle.end(**roles, repairer=Scripted(adds(back)))
    cycle.end("s2", verify=False)
    assert [one.text for one in cycle.bank.entries(ANA.base, granularity="fact")] == [
        "Ana teaches at Quarry Lane"
    ]
    assert only_probe(cycle).repair.why == "it names what was replaced"


def failure(role: str) -> RoleFailed:
    return RoleFailed(role, "it answered in prose", "")


def test_a_failed_prober_commits_the_session_unverified(cycle):
    result = lost(cycle, "Ana is allergic to walnuts", prober=Scripted(failure("prober")))["result"]
    assert result["status"] == "committed_unverified"
    assert "prober" in result["reason"]
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"active"}
    (listed,) = cycle.bank.check()["unverified_sessions"]
    assert (listed["user"], listed["session"], listed["reason"]) == ("ana", "s1", result["reason"])
    again = cycle.end(verify=True, **plain())["result"]
    assert (again["status"], again["probes"], again["passed_after"]) == ("committed", 1, 1)
    assert cycle.bank.check()["unverified_sessions"] == []


def test_a_failed_grader_leaves_probes_ungraded_and_repairs_nothing(cycle):
    repairer = Scripted()
    result = lost(cycle, "Ana is allergic to walnuts", grader=Scripted(failure("grader")), repairer=repairer)[
        "result"
    ]
    assert (result["status"], result["ungraded"], repairer.seen) == ("committed_unverified", 1, [])
    assert only_probe(cycle).verdict == "ungraded"


def test_a_grade_left_out_is_no_failure(cycle):
    result = lost(cycle, "Ana is allergic to walnuts", grader=Scripted(GraderOutput(grades=[])))["result"]
    assert (result["ungraded"], result["status"]) == (1, "committed_unverified")


def test_a_failed_answerer_leaves_its_probe_ungraded(cycle):
    result = lost(cycle, "Ana is allergic to walnuts", answerer=Scripted(failure("answerer")))["result"]
    assert (result["ungraded"], result["status"], result["passed_after"]) == (1, "committed_unverified", 0)


def test_a_failed_repairer_commits_the_session_unverified(cycle):
    result = lost(cycle, repairer=Scripted(failure("repairer")))["result"]
    assert (result["status"], only_probe(cycle).repair.decision) == ("committed_unverified", "NOOP")
    assert "repairer" in result["reason"]
    assert "repairer" in result["warnings"][0]


def test_a_failed_consolidator_inserts(cycle):
    result = lost(
        cycle,
        "Ana has a walnut allergy",
        repairer=Scripted(adds(ALLERGY)),
        consolidator=Scripted(failure("consolidator")),
    )["result"]
    assert (result["repairs"], result["passed_after"]) == (1, 1)
    assert len(cycle.facts()) == 2


def test_two_objects_are_kept_apart_and_two_wordings_are_not(cycle):
    """Walnuts and cashews are as much alike as two wordings of one fact: a role decides, no similarity."""
    cashews = ALLERGY.model_copy(
        update={"text": "Ana is allergic to cashews", "turn": 2, "quote": "I cannot eat cashews either"}
    )
    cycle.remember(SAID[0], "And I cannot eat cashews either.", constructor=knows("Ana has a walnut allergy"))

    def consolidate(value):
        if "cashews" in value.text:
            return ConsolidatorOutput(decision="INSERT")
        same = next(view.n for view in value.memories if "walnut" in view.text)
        return ConsolidatorOutput(decision="MERGE", memory=same, text=value.text)

    roles = plain() | {
        "prober": asks(WALNUTS, ("Which nuts can Ana eat no more?", "cashews", 2)),
        "answerer": answers(allergic="walnuts", nuts="cashews"),
        "repairer": Scripted(adds(ALLERGY), adds(cashews)),
        "consolidator": Always(consolidate),
    }
    result = cycle.end(**roles, settings=one_at_a_time())["result"]
    assert sorted(cycle.facts()) == ["Ana is allergic to cashews", "Ana is allergic to walnuts"]
    assert (result["passed_after"], result["merged"]) == (2, 1)


def one_at_a_time() -> Settings:
    """For roles whose replies are scripted in order."""
    return Settings(verification=Verification(at_once=1))


def test_proposals_are_decided_beside_those_before_them(cycle):
    consolidator = Always(ConsolidatorOutput(decision="INSERT"))
    loom = RepairFact(text="Ana sold the old loom to a museum", turn=3, quote="sold the old loom")
    lost(
        cycle,
        prober=asks(WALNUTS, LOOM),
        repairer=Scripted(adds(ALLERGY), adds(loom)),
        consolidator=consolidator,
        settings=one_at_a_time(),
    )
    (asked,) = consolidator.seen  # the first has nothing stored beside it
    assert [view.text for view in asked.memories] == ["Ana is allergic to walnuts"]


def test_what_each_role_is_shown(cycle):
    prober, grader = asks(WALNUTS), Always(GRADES.outputs[0])
    lost(cycle, "Ana is allergic to walnuts", prober=prober, grader=grader)
    assert [turn.text for turn in prober.seen[0].turns] == list(SAID)
    assert prober.seen[0].memories == [], "what was stored of a session is not shown to who examines it"
    assert [item.model_dump() for item in grader.seen[0].items] == [
        {"n": 1, "question": WALNUTS[0], "gold": "walnuts", "answer": "walnuts"}
    ]


def test_earlier_sessions_are_context_for_the_prober(cycle):
    lost(cycle, "Ana is allergic to walnuts")
    cycle.remember("Walnuts nearly got me at the fair.", session="s2", constructor=knows("Ana ate walnuts"))
    prober = asks()
    cycle.end("s2", prober=prober)
    assert "Ana is allergic to walnuts" in [view.text for view in prober.seen[0].memories]
    assert "Ana ate walnuts" not in [view.text for view in prober.seen[0].memories]


@pytest.mark.parametrize(("raw", "kinds"), [(False, {"fact", "episode"}), (True, {"raw", "fact", "episode"})])
def test_raw_turns_answer_only_where_the_setting_says_so(cycle, raw, kinds):
    answerer = answers(allergic="walnuts")
    settings = Settings(verification=Verification(raw=raw))
    lost(cycle, "Ana is allergic to walnuts", answerer=answerer, settings=settings)
    assert {view.granularity for view in answerer.seen[0].evidence} == kinds


def test_as_many_probes_as_the_setting_says(cycle):
    prober = asks(WALNUTS, BEES, LOOM)
    lost(
        cycle,
        "Ana is allergic to walnuts",
        prober=prober,
        settings=Settings(verification=Verification(probes=1)),
    )
    assert (prober.seen[0].count, len(probes(cycle))) == (1, 1)


@pytest.mark.parametrize(
    ("settings", "verify", "status"),
    [
        (Settings(switches=Switches(verify=False)), None, "committed"),
        (None, False, "committed_unverified"),
    ],
)
def test_an_end_without_examination_asks_nobody(cycle, settings, verify, status):
    cycle.remember(*SAID, constructor=knows("Ana is allergic to walnuts"))
    asked = {name: Scripted() for name in ("prober", "answerer", "grader", "repairer", "consolidator")}
    result = cycle.end(settings=settings, verify=verify, **asked)["result"]
    assert (result["status"], result["probes"]) == (status, 0)
    assert {entry.status for entry in cycle.bank.entries(ANA)} == {"active"}


def test_a_session_ended_twice_is_examined_once(cycle):
    lost(cycle, "Ana is allergic to walnuts")
    again = cycle.end(prober=Scripted())["result"]
    assert (again["status"], again["committed"], again["probes"]) == ("committed", 0, 0)


def test_late_turns_are_examined_as_a_part_of_their_own(cycle):
    lost(cycle, "Ana is allergic to walnuts")
    cycle.remember("The beehives moved to Graz.", constructor=knows("The beehives moved to Graz"))
    assert {e.status for e in cycle.bank.entries(ANA, granularity="fact")} == {"active", "staged"}
    prober = asks(("Where did the beehives move?", "Graz", 1))
    result = cycle.end(**(plain() | {"prober": prober, "answerer": answers(beehives="Graz")}))["result"]
    assert [turn.text for turn in prober.seen[0].turns] == ["The beehives moved to Graz."]
    assert (result["probes"], result["passed_before"]) == (1, 1)
    assert [(probe.part, probe.n) for probe in probes(cycle)] == [(1, 1), (2, 1)]
    (info,) = cycle.bank.sessions(ANA)
    assert (info.status, info.part, info.report.probes, info.report.passed_after) == ("committed", 2, 2, 2)


def test_a_turn_said_during_the_examination_waits_for_the_next_end(cycle):
    def late(value):
        cycle.remember("Late news: I row now.", constructor=knows("Ana rows now"))
        return ProberOutput(probes=[])

    lost(cycle, "Ana is allergic to walnuts", prober=Scripted(late))
    status = {entry.text: entry.status for entry in cycle.bank.entries(ANA, granularity="fact")}
    assert status == {"Ana is allergic to walnuts": "active", "Ana rows now": "staged"}
    (info,) = cycle.bank.sessions(ANA)
    assert (info.status, info.part) == ("open", 2)
    assert cycle.end(prober=asks())["result"]["committed"] == 2


def test_two_open_sessions_never_end_each_other(cycle):
    cycle.remember("I row.", session="s1", constructor=knows("Ana rows"))
    cycle.remember("I sing.", session="s2", constructor=knows("Ana sings"))
    cycle.end("s1", prober=asks())
    assert {info.session: info.status for info in cycle.bank.sessions(ANA.base)} == {
        "s1": "committed",
        "s2": "open",
    }
    assert [e.status for e in cycle.bank.entries(ANA.within("s2"), granularity="fact")] == ["staged"]


async def test_awaited_it_does_the_same(cycle):
    cycle.remember(*SAID, constructor=NO_FACTS)
    roles = replace(Roles.rules(), **(plain() | {"repairer": Scripted(adds(ALLERGY))}))
    out = await build_session(roles, cycle.bank).ainvoke({}, context={"user": "ana", "session": "s1"})
    assert (out["result"]["passed_after"], out["result"]["repairs"]) == (1, 1)


def test_its_edges_are_drawn_with_their_labels(cycle):
    graph = build_session(Roles.rules(), cycle.bank)
    drawing = graph.get_graph(xray=True).draw_mermaid()
    for label in ("each probe", "each failed probe", "asked again", "all answered", "proposal"):
        assert label in drawing.replace("&nbsp;", " ")


def test_state_holds_no_text_that_the_ledger_holds(cycle):
    cycle.remember(*SAID, constructor=NO_FACTS)
    roles = replace(Roles.rules(), **(plain() | {"repairer": Scripted(adds(ALLERGY))}))
    graph = build_session(roles, cycle.bank)
    states = list(graph.stream({}, context={"user": "ana", "session": "s1"}, stream_mode="values"))
    kept = [repr({k: v for k, v in state.items() if k not in ("edit", "episodes")}) for state in states]
    assert not any("walnuts" in state for state in kept)
    assert states[-1]["edit"] is None
    assert states[-1]["episodes"] == []


def test_what_the_end_proposes_of_waiting_turns_and_does_not_store_is_told(cycle):
    failing = Scripted(RoleFailed("constructor", "nonsense", ""))
    waiting = cycle.remember(SAID[0], constructor=failing)["result"]
    assert waiting["unextracted"] == waiting["turns"]
    blank = Scripted(ConstructorOutput(facts=[FactDraft(text=" ", turn=1)]))
    ended = cycle.end(constructor=blank, verify=False)["result"]
    assert ended["rejected"] == [{"text": " ", "why": "an empty statement"}]
    assert cycle.end()["result"]["rejected"] == []
