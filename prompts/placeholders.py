"""What each role's prompt is filled with."""

from typing import NamedTuple


class Placeholders(NamedTuple):
    """Names a prompt must use, and names it may use."""

    required: frozenset[str]
    optional: frozenset[str]


def _of(required: str, optional: str = "") -> Placeholders:
    return Placeholders(frozenset(required.split()), frozenset(optional.split()))


# What a role cannot work without is required; the rest a swapped prompt may leave out.
PLACEHOLDERS: dict[str, Placeholders] = {
    "constructor": _of("turns", "window memories guidance now"),
    "episode_trigger": _of("turns", "new"),
    "episode_writer": _of("turns"),
    "retriever": _of("items", "window purpose parts now"),
    "judge": _of("items memories", "queries window purpose now"),
    "fact_judge": _of("facts", "now"),
    "refresher": _of("conflicts", "turns now"),
    "guide": _of("turns", "memories now"),
    "answerability": _of("question memories", "window tried round now"),
    "query_reasoner": _of("question gap", "memories tried avoid speaker time_need"),
    "answerer": _of("question memories", "window style now"),
    "verifier": _of("question memories answer", "answerable window style way now"),
    "prober": _of("turns", "memories count now"),
    "grader": _of("items"),
    "repairer": _of("question gold turns", "answer source memories now"),
    "consolidator": _of("proposal memories", "turn now"),
    "diagnoser": _of("dimensions failures", "objective score token_budget patterns held tried"),
}
