"""Asks a person before memory is changed, where the settings say so.

The edits are decided and nothing of them is written when the graph stops (`interrupt`); they wait in its
checkpoint, so that no role is asked again when it goes on. The answer comes from whoever resumes the run,
with `Command(resume=...)` or in Studio: no role and no tool can give it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.types import interrupt

from memcycle.core.edit import Edit
from memcycle.core.language.tokens import content_stems
from memcycle.graph.environment import GraphRun
from memcycle.graph.events import APPROVAL

HOW = (
    'Resume with "approve" or "reject" for all, or with a list of '
    '{"n": 1, "decision": "approve" | "edit" | "reject", "text": "..."}; what is not named is rejected.'
)
APPROVED, EDITED, REJECTED = "approved by a person", "edited by a person", "a person rejected it"
REJECTED_BEFORE = "a person rejected it before; `memory.edit` changes a memory all the same"


class Approved(NamedTuple):
    """Edits that may be written, in order, and what a person rejected, in words."""

    edits: list[Edit]
    rejected: list[dict[str, str]]


class _Unclear(Exception):
    """An answer that cannot be read: what is wrong with it."""


def approved(run: GraphRun, edits: Sequence[Edit]) -> Approved:
    """The edits as a person lets them stand. Stops the run where one needs approval, until it is resumed.

    An answer that cannot be read is asked for again, with `problem` saying why.
    """
    before = [edit for edit in edits if run.bank.declined(run.scope, _changes(edit))]
    places = [at for at, edit in enumerate(edits) if edit not in before and _needs(run, edit)]
    decisions = _asked(run, edits, places) if places else {}
    found = Approved([], [_refused(edit, REJECTED_BEFORE) for edit in before])
    for at, edit in enumerate(edits):
        decision, text = decisions.get(at, ("reject", "")) if at in places else ("as it is", "")
        if edit in before:
            continue
        if decision == "reject":
            found.rejected.append(_refused(edit, REJECTED))
            run.bank.decline(run.scope, _changes(edit))
        elif decision == "edit":
            found.edits.append(_noted(_reworded(edit, text), EDITED))
        else:
            found.edits.append(_noted(edit, APPROVED) if at in places else edit)
    return found


def _asked(run: GraphRun, edits: Sequence[Edit], places: Sequence[int]) -> dict[int, tuple[str, str]]:
    """What a person decides, by place; what is not named is rejected."""
    payload = {
        "type": APPROVAL,
        "user": run.scope.user,
        "workspace": run.scope.workspace,
        "session": run.scope.session,
        # Numbered by their place among all edits: what is forgotten meanwhile must not shift the others.
        "items": [_item(run, at + 1, edits[at]) for at in places],
        "how": HOW,
    }
    problem: dict[str, str] = {}
    while True:
        answer = interrupt(payload | problem)
        try:
            return _read(answer, edits, places)
        except _Unclear as unclear:
            problem = {"problem": str(unclear)}


def of_turn(target: str | None, turn: str) -> str:
    """The change of an entry that a turn speaks for, in whatever words."""
    return f"{target or ''}|@{turn}"


def _changes(edit: Edit) -> list[str]:
    """What is rejected with an edit: the same words in place of the same entry, from whatever turn they come;
    any change of it by the same turn; and the same words of that turn, whatever they shall do."""
    if edit.entry is None:
        return [of_turn(edit.target, edit.asked_in)] if edit.asked_in else []
    words = " ".join(sorted(set(content_stems(edit.entry.text))))
    pair = [f"{edit.target}|{words}"] if edit.target else []
    by_turn = [of_turn(edit.target, turn) for turn in edit.entry.turns if edit.target]
    return [*pair, *by_turn, *(f"{words}|@{turn}" for turn in edit.entry.turns)]


def _refused(edit: Edit, why: str) -> dict[str, str]:
    return {"text": edit.entry.text if edit.entry else "", "why": why}


Body = Callable[[Any, GraphRun], dict[str, Any]]


def asking(approve: Body, write: Body) -> Body:
    """A node that writes, and asks before where the run's context wants that and no node of its own does."""

    def body(state: Any, run: GraphRun) -> dict[str, Any]:
        if not run.context.approval:
            return write(state, run)
        allowed = approve(state, run)
        return {**allowed, **write({**state, **allowed}, run)}

    return body


def _needs(run: GraphRun, edit: Edit) -> bool:
    approval = run.approval
    named = run.bank.get(run.scope, [edit.target]) if edit.target else []
    if edit.asked_in and all(one.turns == (edit.asked_in,) and one.granularity == "raw" for one in named):
        return False  # a request of which memory holds nothing else
    if (edit.op == "DELETE" and approval.delete) or (edit.op == "UPDATE" and approval.update):
        return True
    facts = [one for one in (edit.entry, *named) if one is not None and one.granularity == "fact"]
    return edit.op != "NONE" and any(one.kind in approval.kinds for one in facts)


def _item(run: GraphRun, n: int, edit: Edit) -> dict[str, Any]:
    """What a person needs to see of an edit: before, after, and the turns it rests on."""
    named = [edit.target] if edit.target and edit.op != "ADD" else []
    before, after = next(iter(run.bank.get(run.scope, named)), None), edit.entry
    entry = after or before
    turns = run.bank.turns(run.scope, entry.turns) if entry is not None else []
    return {
        "n": n,
        "action": edit.op,
        "kind": entry.kind if entry is not None else None,
        "before": before.text if before is not None else None,
        "after": after.text if after is not None else None,
        "said": [f"{turn.speaker}: {turn.text}" for turn in turns],
        "why": edit.reason,
    }


def _read(answer: Any, edits: Sequence[Edit], places: Sequence[int]) -> dict[int, tuple[str, str]]:
    """By place the decision and the new text of an edited one."""
    if answer in ("approve", "reject"):
        return dict.fromkeys(places, (answer, ""))
    found: dict[int, tuple[str, str]] = {}
    for one in answer if isinstance(answer, list) else [answer]:
        if not isinstance(one, Mapping) or one.get("decision") not in ("approve", "edit", "reject"):
            raise _Unclear(f"{one!r:.80} is no decision. {HOW}")
        n = one.get("n", places[0] + 1 if len(places) == 1 else None)
        if not isinstance(n, int) or not 1 <= n <= len(edits):
            numbers = ", ".join(str(at + 1) for at in places)
            raise _Unclear(f"there is no item {n!r:.20}; the items are {numbers}")
        text = str(one.get("text") or "").strip()
        if one["decision"] == "edit" and (not text or edits[n - 1].entry is None):
            raise _Unclear(f"item {n} cannot be edited so: an edit needs a text, and a deletion has none")
        found[n - 1] = (one["decision"], text)
    return found


def _reworded(edit: Edit, text: str) -> Edit:
    """The edit with a person's text; uniting turns leaves a text as it is, so that becomes a replacement."""
    entry = edit.entry.model_copy(update={"text": text, "quote": None}) if edit.entry is not None else None
    return edit.model_copy(update={"entry": entry, "op": "UPDATE" if edit.op == "MERGE" else edit.op})


def _noted(edit: Edit, by: str) -> Edit:
    return edit.model_copy(update={"reason": f"{edit.reason}; {by}" if edit.reason else by})
