"""The routes that weigh several things, as tables; the others are taken in the tests of each graph."""

from memcycle.core.theta import Switches, Theta
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
