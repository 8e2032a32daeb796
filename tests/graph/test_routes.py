"""The routes as tables."""

from memcycle.core.theta import Swap, Switches, Theta
from memcycle.graph import routes
from memcycle.graph.routes import Policy

CONFLICT = {"memory": "a", "turn": "D1:1", "other": None, "why": ""}


def verdict(
    relevant: int = 3, shown: int = 3, conflicts: int = 0, sufficient: bool = True, judged: bool = True
) -> dict:
    return {
        "relevant": [str(n) for n in range(relevant)],
        "conflicts": [CONFLICT] * conflicts,
        "sufficient": sufficient,
        "missing": "",
        "shown": shown,
        "judged": judged,
    }


JUDGE = [
    # verdict, round, switches, retries, action
    (verdict(), 0, {}, 2, "Pass"),
    (verdict(conflicts=1), 0, {}, 2, "Refresh"),
    (verdict(conflicts=1, sufficient=False), 0, {}, 2, "Refresh"),
    (verdict(conflicts=1), 0, {"refresher": False}, 2, "Pass"),
    (verdict(sufficient=False), 0, {}, 2, "Retry"),
    (verdict(sufficient=False), 1, {}, 2, "Retry"),
    (verdict(sufficient=False), 2, {}, 2, "Pass"),
    (verdict(sufficient=False), 0, {}, 0, "Pass"),
    (verdict(sufficient=False), 0, {"iterative": False}, 2, "Pass"),
    (verdict(relevant=1, shown=20), 0, {}, 2, "Retry"),
    (verdict(relevant=4, shown=20), 0, {}, 2, "Pass"),
    (verdict(relevant=0, sufficient=False, shown=20, judged=False), 0, {}, 2, "Pass"),
]


def test_judge_action():
    for said, round_, switches, retries, action in JUDGE:
        state = {"verdict": said, "round": round_}
        policy = Policy(Theta(density=0.2), Switches(**switches), retries)
        assert routes.judge_action(state, policy) == action, said


def test_after_stage():
    for state, label in [
        ({"chunk": []}, "nothing new"),
        ({"chunk": ["D1:1"], "extracted": False}, "new turns"),
        ({"chunk": ["D1:1"], "extracted": True}, "already extracted"),
    ]:
        assert routes.after_stage(state) == label, state


def test_after_pass():
    for sufficient, always, iterative, evidence_only, label in [
        (True, False, True, False, "Pass: sufficient"),
        (False, False, True, False, "Pass: uncertain"),
        (True, True, True, False, "Pass: uncertain"),
        (False, False, False, False, "Pass: sufficient"),
        (True, True, False, False, "Pass: sufficient"),
        (True, False, True, True, "evidence only"),
    ]:
        state = {"verdict": verdict(sufficient=sufficient)}
        switches = Switches(always_think=always, iterative=iterative)
        policy = Policy(switches=switches, evidence_only=evidence_only)
        assert routes.after_pass(state, policy) == label, sufficient
        assert routes.after_recall_judge(state, policy) == label, sufficient


def test_after_recall_search():
    for candidates, refinements, reflections, evidence_only, label in [
        ([{"id": "a"}], 0, 0, False, "candidates"),
        ([{"id": "a"}], 1, 0, False, "refined"),
        ([{"id": "a"}], 1, 1, False, "reflected"),
        ([{"id": "a"}], 0, 0, True, "candidates"),
        ([], 0, 0, False, "no candidates"),
        ([], 1, 0, False, "no candidates"),
        ([], 0, 0, True, "evidence only"),
    ]:
        state = {"candidates": candidates, "refinements": refinements, "reflections": reflections}
        assert routes.after_recall_search(state, Policy(evidence_only=evidence_only)) == label, candidates


def test_after_think():
    for answerable, refinements, h, label in [
        (True, 0, 3, "answerable"),
        (False, 0, 3, "not answerable"),
        (False, 2, 3, "not answerable"),
        (False, 3, 3, "answerable"),
        (False, 0, 0, "answerable"),
    ]:
        state = {"gap": {"answerable": answerable}, "refinements": refinements}
        assert routes.after_think(state, Policy(Theta(h=h))) == label, answerable


SWAPPING = Theta(swap=Swap(on=True))


def test_after_reason():
    for plans, theta, label in [
        ([], Theta(), "nothing left"),
        ([], SWAPPING, "nothing left"),
        ([{"n": 1}], Theta(), "new query"),
        ([{"n": 1}], SWAPPING, "new query, entity swap"),
    ]:
        assert routes.after_reason({"plans": plans}, Policy(theta)) == label, plans


def test_after_plan():
    for parts, theta, label in [
        ([], Theta(), "as asked"),
        ([], SWAPPING, "entity swap"),
        (["a", "b"], Theta(), "sub-questions"),
        (["a", "b"], SWAPPING, "sub-questions"),
    ]:
        assert routes.after_plan({"parts": parts}, Policy(theta)) == label, parts


def test_after_answer():
    for answerable, confidence, reflections, changes, label in [
        (True, 0.9, 0, {"reflection.rounds": 1, "verification": "strict"}, "settled"),
        (True, 0.2, 0, {}, "settled"),
        (True, 0.2, 0, {"reflection.rounds": 1, "verification": "strict"}, "unsure: reflect"),
        (True, 0.2, 1, {"reflection.rounds": 1, "verification": "strict"}, "unsure: verify"),
        (True, 0.2, 1, {"reflection.rounds": 1}, "settled"),
        (True, 0.4, 0, {"reflection.unsure": 0.5, "verification": "multi_candidate"}, "unsure: verify"),
        (False, 1.0, 0, {"reflection.rounds": 2}, "unsure: reflect"),
        (False, 1.0, 0, {"verification": "strict"}, "unsure: verify"),
        (None, 0.0, 0, {"reflection.rounds": 2, "verification": "strict"}, "settled"),
    ]:
        state = {
            "answer": {"answerable": answerable, "confidence": confidence, "tokens": 5},
            "reflections": reflections,
            "plans": [{"n": 1}],
        }
        assert routes.after_answer(state, Policy(Theta().with_changes(changes)[0])) == label, answerable


def test_without_evidence_there_is_nothing_to_verify_and_one_shot_does_not_reflect():
    state = {"answer": {"answerable": False, "confidence": 1.0, "tokens": 0}, "plans": [{"n": 1}]}
    theta = Theta().with_changes({"reflection.rounds": 2, "verification": "strict"})[0]
    assert routes.after_answer(state, Policy(theta, Switches(iterative=False))) == "settled"
    assert routes.after_answer(state, Policy(theta)) == "unsure: reflect"
    assert routes.after_reflect({**state, "plans": []}, Policy(theta)) == "settled"


def test_after_construct():
    for uncovered, rereads, label in [
        ([], True, "covered"),
        (["D1:1"], True, "uncovered"),
        (["D1:1"], False, "covered"),
    ]:
        assert (
            routes.after_construct({"result": {"uncovered": uncovered}}, Policy(rereads=rereads)) == label
        ), uncovered


def test_after_search():
    for found, label in [([], "no candidates"), ([{"id": "a"}], "candidates")]:
        assert routes.after_search({"candidates": found}) == label, found


def test_after_trigger():
    for episodes, label in [([], "goes on"), ([{"turns": []}], "episode ends")]:
        assert routes.after_trigger({"episodes": episodes}) == label, episodes


def test_after_remember():
    for state, label in [
        ({}, "session goes on"),
        ({"end_session": False}, "session goes on"),
        ({"end_session": True}, "session ends"),
    ]:
        assert routes.after_remember(state) == label, state


def test_after_waiting():
    for is_open, waiting, label in [
        (True, [], "none wait"),
        (True, ["D1:1"], "turns wait"),
        (False, [], "nothing new"),
        (False, ["D1:1"], "nothing new"),
    ]:
        assert routes.after_waiting({"open": is_open, "waiting": waiting}) == label, is_open


def test_after_episode():
    for switched_on, verify, label in [
        (True, None, "to be examined"),
        (True, True, "to be examined"),
        (True, False, "as it is"),
        (False, None, "as it is"),
        (False, True, "as it is"),
    ]:
        assert (
            routes.after_episode({"verify": verify}, Policy(switches=Switches(verify=switched_on))) == label
        ), switched_on


def test_after_probe():
    for probes, label in [([], "no probes"), (["p1"], "probes")]:
        assert routes.after_probe({"probes": probes}) == label, probes


def sent(**state) -> dict:
    return {"asked": [], "failed": [], "found": {}, "round": 0, "part": 2} | state


def test_nothing_is_sent_where_nothing_is_to_do():
    for route, state, label in [
        (routes.after_look_up, sent(), "nothing to ask again"),
        (routes.after_grade, sent(), "all answered"),
        (routes.after_grade, sent(round=1), "asked again"),
        (routes.after_grade, sent(round=1, failed=["p1"]), "asked again"),
    ]:
        assert route(state) == label, route


def test_each_probe_is_sent_with_what_was_found_for_it():
    for route, key, node in [
        (routes.after_look_up, "asked", "examine"),
        (routes.after_grade, "failed", "repair"),
    ]:
        state = sent() | {key: ["p1", "p2"], "found": {"p1": ["e1"]}}
        given = [(one.node, one.arg) for one in route(state)]
        assert given == [
            (node, {"probe": "p1", "found": ["e1"], "round": 0, "part": 2}),
            (node, {"probe": "p2", "found": [], "round": 0, "part": 2}),
        ], route


def test_after_consolidate():
    for proposal, written, label in [
        ("p1", [], "proposal"),
        ("p1", ["e1"], "proposal"),
        (None, ["e1"], "repaired"),
        (None, [], "nothing repaired"),
    ]:
        assert routes.after_consolidate({"proposal": proposal, "written": written}) == label, proposal
