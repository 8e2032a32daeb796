"""Each new fact is checked once more before it is stored: what it does to memory, if it may."""

from collections.abc import Sequence
from typing import Literal

from memcycle.agents.constructor import FactDraft
from memcycle.agents.judge import FactJudgeInput, FactJudgeOutput, FactVerdict, NewFact
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.edit import Edit, Rejected
from memcycle.core.entry import Entry, same_text
from memcycle.graph.environment import Env
from memcycle.graph.grounding import Grounded, Outcome, shared_words
from memcycle.graph.guards import requested_deletion
from memcycle.graph.node import Call
from memcycle.graph.organisation import Decided
from memcycle.graph.states import ConflictRef


def fact_judge_call(env: Env, grounded: Sequence[Grounded], supersede: Sequence[ConflictRef]) -> Call | None:
    """Asks the Judge about the facts that code alone cannot settle: weak support, or a close stored fact."""
    waiting = {ref["turn"] for ref in supersede}
    asked = [
        NewFact(
            n=n,
            text=item.draft.text,
            speaker=item.speaker,
            turn=TurnView.of(1, item.turn),
            event_time=item.draft.event_time,
            near=[MemoryView.of(i, entry) for i, entry in enumerate(item.near)],
        )
        for n, item in enumerate(grounded, 1)
        if not item.supported or item.close or item.turn.id in waiting
    ]
    return env.call("fact_judge", FactJudgeInput(facts=asked, now=env.now())) if asked else None


def decide(
    env: Env,
    grounded: Sequence[Grounded],
    verdicts: FactJudgeOutput | None,
    *,
    shown: Sequence[Entry],
    waiting: Sequence[tuple[str, Entry]],
    outcome: Outcome,
) -> None:
    """What each fact does to memory; fills `outcome`.

    Args:
        env: The environment; with the Refresher switched off nothing is updated.
        grounded: The facts, numbered from 1 in `verdicts`.
        verdicts: The Judge's, None where it was not asked or failed: supported and new.
        shown: The memories an edit of the Constructor may name, by number.
        waiting: Memories whose deletion was refused, each with the id of a turn that contradicts it.
        outcome: Where facts, deletions, refusals and warnings go.
    """
    by_n = {verdict.n: verdict for verdict in verdicts.verdicts} if verdicts else {}
    heirs = {_heir(grounded, turn, memory): memory for turn, memory in reversed(waiting)}
    for n, item in enumerate(grounded, 1):
        verdict = by_n.get(n, FactVerdict(n=n, supported=True))
        if not verdict.supported:
            why = verdict.why or f"its turn {item.turn.id} does not say so"
            outcome.rejected.append(Rejected(text=item.draft.text, why=why))
            continue
        target = _named_target(item.draft, shown, outcome)
        if target is not None and item.draft.edit == "DELETE" and _settled(item, target, outcome):
            continue
        if item.is_echo:
            why = f"it repeats a stored fact that its turn {item.turn.id} does not speak of"
            outcome.rejected.append(Rejected(text=item.draft.text, why=why))
            continue
        near = _named_near(item, verdict, outcome)
        op, chosen, why = _edit_of(item, verdict, near, target or heirs.get(n - 1))
        if op == "UPDATE" and not env.settings.switches.refresher:
            op, chosen, why = "ADD", None, "the Refresher is switched off"
        outcome.facts.append(Decided(item.draft, item.turn, item.related, op, chosen, why))
    _report_kept([memory for _, memory in waiting], outcome)


def _report_kept(waiting: Sequence[Entry], outcome: Outcome) -> None:
    """Says which memories the Refresher wanted deleted and no new fact replaces."""
    replaced = {fact.target.id for fact in outcome.facts if fact.op == "UPDATE" and fact.target}
    why = "deletion needs the user's own quoted words, and no new fact replaces it"
    for memory in {memory.id: memory for memory in waiting}.values():
        if memory.id not in replaced:
            outcome.rejected.append(Rejected(text=memory.text, why=why, target=memory.id))


def _named_near(item: Grounded, verdict: FactVerdict, outcome: Outcome) -> Entry | None:
    if verdict.near is None:
        return None
    if not 0 <= verdict.near < len(item.near):
        warning = f"the Judge named memory {verdict.near}, which was not shown beside: {item.draft.text}"
        outcome.warnings.append(warning)
        return None
    return item.near[verdict.near]


def _heir(grounded: Sequence[Grounded], turn: str, memory: Entry) -> int | None:
    """Index of the fact of that turn that speaks most of what the memory speaks of."""
    closest = [
        (shared_words(item.draft.text, memory.text), -n)
        for n, item in enumerate(grounded)
        if item.turn.id == turn
    ]
    return -max(closest)[1] if closest else None


def _named_target(draft: FactDraft, shown: Sequence[Entry], outcome: Outcome) -> Entry | None:
    if draft.edit == "ADD" or draft.target is None:
        return None
    if not 0 <= draft.target < len(shown):
        warning = (
            f"the Constructor named memory {draft.target}, which was not shown; stored as new: {draft.text}"
        )
        outcome.warnings.append(warning)
        return None
    entry = shown[draft.target]
    return entry if entry.granularity == "fact" else None


def _settled(item: Grounded, target: Entry, outcome: Outcome) -> bool:
    """Whether the deletion is done, as the user asked in the quoted words, or ignored, since it rests on an
    equal statement; else the fact goes on as an update."""
    quote = item.draft.quote or item.draft.text
    if requested_deletion(quote, [item.turn]) is not None:
        quoted = item.draft.quote or item.turn.text
        outcome.deletions.append(Edit(op="DELETE", target=target.id, reason="the user asked", quote=quoted))
        return True
    if item.repeats(target):
        why = "ignored: a deletion that rests only on an equal statement"
        outcome.rejected.append(Rejected(text=item.draft.text, why=why, target=target.id))
        return True
    return False


def _edit_of(
    item: Grounded, verdict: FactVerdict, near: Entry | None, target: Entry | None
) -> tuple[Literal["ADD", "UPDATE", "MERGE"], Entry | None, str]:
    if near is not None and verdict.relation == "duplicate" and not item.differs_in_time(near):
        return "MERGE", near, verdict.why or "says the same"
    if target is not None and same_text(target.text) == same_text(item.draft.text):
        if item.repeats(target):
            return "MERGE", target, "says the same"
        return "ADD", None, "the same on another occasion"
    if target is not None and item.draft.edit != "NONE":
        return "UPDATE", target, verdict.why or "the new statement replaces it"
    if near is not None and verdict.relation == "conflict":
        return "UPDATE", near, verdict.why or "the new statement contradicts it"
    return "ADD", None, ""
