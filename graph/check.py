"""Each new fact is checked once more before it is stored: source, support, nearest stored facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memcycle.agents.constructor import FactDraft
from memcycle.agents.judge import FactJudgeInput, FactJudgeOutput, FactVerdict, NewFact
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.edit import Edit, Rejected
from memcycle.core.entry import Entry, same_text
from memcycle.core.language.tokens import content_stems
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.environment import Env
from memcycle.graph.guards import best_source, requested_deletion, stands_in, support
from memcycle.graph.node import Call
from memcycle.graph.organisation import Decided
from memcycle.graph.states import ConflictRef
from memcycle.stores.request import Hit, Query, SearchRequest

NEAREST = 5
CLOSE_WORDS = 0.5


@dataclass(frozen=True)
class Grounded:
    """A draft with its source turn, the turns it refers to, and the stored facts nearest to it."""

    draft: FactDraft
    turn: Turn
    related: tuple[str, ...]
    near: tuple[Entry, ...] = ()
    close: bool = False

    @property
    def supported(self) -> bool:
        """Whether every content word of the statement stands in its turn."""
        return support(self.draft.text, self.turn) >= 1.0


@dataclass
class Outcome:
    """What came of the drafts so far."""

    facts: list[Decided] = field(default_factory=list)
    deletions: list[Edit] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def ground(
    drafts: Sequence[FactDraft], numbered: Mapping[int, Turn], chunk: Sequence[Turn], outcome: Outcome
) -> list[Grounded]:
    """Drafts with a human source turn. `numbered` holds what the Constructor was shown, chunk and window.

    A fact rests on a turn of the chunk that a person said: assistant and tool text are no evidence.
    A draft whose number is not of the chunk goes to the turn that supports it best.
    """
    own = {turn.id for turn in chunk}
    grounded, seen = [], set[tuple[str, str]]()
    for draft in drafts:
        cited = numbered.get(draft.turn)
        turn = cited if cited is not None and cited.id in own else best_source(draft.text, chunk)
        if not draft.text.strip():
            outcome.rejected.append(Rejected(text=draft.text, why="an empty statement"))
        elif turn is None:
            outcome.rejected.append(Rejected(text=draft.text, why="no turn a person said supports it"))
        elif not turn.is_evidence:
            why = f"only {turn.role} text ({turn.id}) says so, which is no evidence about a person"
            outcome.rejected.append(Rejected(text=draft.text, why=why))
        elif (turn.id, same_text(draft.text)) not in seen:
            seen.add((turn.id, same_text(draft.text)))
            related = tuple(
                numbered[n].id for n in draft.related_turns if n in numbered and numbered[n] != turn
            )
            quote = draft.quote if stands_in(draft.quote, turn.text) else ""
            grounded.append(Grounded(draft.model_copy(update={"quote": quote}), turn, related))
    return grounded


def with_nearest(env: Env, scope: Scope, grounded: Sequence[Grounded]) -> list[Grounded]:
    """The same with their nearest stored facts: one search for all."""
    if not grounded:
        return []
    results = env.bank().search(
        SearchRequest(
            scope=scope,
            queries=tuple(Query(text=item.draft.text) for item in grounded),
            granularities=("fact",),
            k=NEAREST,
            theta=env.settings.theta,
        )
    )
    return [_near(env, item, hits) for item, hits in zip(grounded, results, strict=True)]


def _near(env: Env, item: Grounded, hits: Sequence[Hit]) -> Grounded:
    def is_close(hit: Hit) -> bool:
        cosine = max((why.score for why in hit.why if why.view == "dense"), default=0.0)
        return (
            cosine >= env.settings.theta.duplicate or _jaccard(hit.entry.text, item.draft.text) >= CLOSE_WORDS
        )

    return replace(item, near=tuple(hit.entry for hit in hits), close=any(is_close(hit) for hit in hits))


def _jaccard(left: str, right: str) -> float:
    a, b = set(content_stems(left)), set(content_stems(right))
    return len(a & b) / len(a | b) if a | b else 0.0


def fact_judge_call(env: Env, grounded: Sequence[Grounded], supersede: Sequence[ConflictRef]) -> Call | None:
    """Asks the Judge about the facts that code alone cannot settle: weak support, or a close stored fact."""
    waiting = {ref["turn"] for ref in supersede}
    asked = [
        NewFact(
            n=n,
            text=item.draft.text,
            speaker=item.draft.speaker or item.turn.speaker,
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
    waiting: Mapping[str, Entry],
    outcome: Outcome,
) -> None:
    """What each fact does to memory; fills `outcome`.

    Args:
        env: The environment; with the Refresher switched off nothing is updated.
        grounded: The facts, numbered from 1 in `verdicts`.
        verdicts: The Judge's, None where it was not asked or failed: supported and new.
        shown: The memories an edit of the Constructor may name, by number.
        waiting: By turn id, the memory whose deletion was refused although that turn contradicts it.
        outcome: Where facts, deletions, refusals and warnings go.
    """
    by_n = {verdict.n: verdict for verdict in verdicts.verdicts} if verdicts else {}
    heirs = {_heir(grounded, turn, memory): memory for turn, memory in waiting.items()}
    for n, item in enumerate(grounded, 1):
        verdict = by_n.get(n, FactVerdict(n=n, supported=True))
        if not verdict.supported:
            why = verdict.why or f"its turn {item.turn.id} does not say so"
            outcome.rejected.append(Rejected(text=item.draft.text, why=why))
            continue
        target = _named_target(item.draft, shown, outcome)
        if target is not None and item.draft.edit == "DELETE" and _deleted(item, target, outcome):
            continue
        near = (
            item.near[verdict.near]
            if verdict.near is not None and 0 <= verdict.near < len(item.near)
            else None
        )
        op, chosen, why = _edit_of(item.draft, verdict, near, target or heirs.get(n - 1))
        if op == "UPDATE" and not env.settings.switches.refresher:
            op, chosen, why = "ADD", None, "the Refresher is switched off"
        outcome.facts.append(Decided(item.draft, item.turn, item.related, op, chosen, why))


def _heir(grounded: Sequence[Grounded], turn: str, memory: Entry) -> int | None:
    """Index of the fact of that turn that speaks most of what the memory speaks of."""
    closest = [
        (_jaccard(item.draft.text, memory.text), -n)
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


def _deleted(item: Grounded, target: Entry, outcome: Outcome) -> bool:
    """Whether the user asked for the deletion in the quoted words; else the fact goes on as an update."""
    if requested_deletion(item.draft.quote or item.draft.text, [item.turn]) is not None:
        outcome.deletions.append(
            Edit(
                op="DELETE",
                target=target.id,
                reason="the user asked",
                quote=item.draft.quote or item.turn.text,
            )
        )
        return True
    if same_text(target.text) == same_text(item.draft.text):
        why = "ignored: a deletion that rests only on an equal statement"
        outcome.rejected.append(Rejected(text=item.draft.text, why=why, target=target.id))
    return False


def _edit_of(
    draft: FactDraft, verdict: FactVerdict, near: Entry | None, target: Entry | None
) -> tuple[Literal["ADD", "UPDATE", "MERGE"], Entry | None, str]:
    if verdict.relation == "duplicate" and near is not None:
        return "MERGE", near, verdict.why or "says the same"
    if target is not None and same_text(target.text) == same_text(draft.text):
        # The same words of another date are another occurrence ("went swimming yesterday").
        once = None in (target.event_time, draft.event_time) or target.event_time == draft.event_time
        return ("MERGE", target, "says the same") if once else ("ADD", None, "")
    if target is not None and draft.edit != "NONE":
        return "UPDATE", target, verdict.why or "the new statement replaces it"
    if verdict.relation == "conflict" and near is not None:
        return "UPDATE", near, verdict.why or "the new statement contradicts it"
    return "ADD", None, ""
