"""Asks a person before memory is changed, where the settings say so.

The edits are decided and nothing of them is written when the graph stops (`interrupt`); they wait in its
checkpoint, so that no role is asked again when it goes on. The answer comes from whoever resumes the run,
with `Command(resume=...)` or in Studio: no role and no tool can give it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.types import interrupt

from memcycle.core.edit import Edit
from memcycle.core.scope import Scope
from memcycle.graph.environment import Env

HOW = (
    'Resume with "approve" or "reject" for all, or with a list of '
    '{"n": 1, "decision": "approve" | "edit" | "reject", "text": "..."}; what is not named is rejected.'
)
APPROVED, EDITED, REJECTED = "approved by a person", "edited by a person", "a person rejected it"


class Approved(NamedTuple):
    """Edits that may be written, in order, and what a person rejected, in words."""

    edits: list[Edit]
    rejected: list[dict[str, str]]


class _Unclear(Exception):
    """An answer that cannot be read: what is wrong with it."""


def approved(env: Env, scope: Scope, edits: Sequence[Edit]) -> Approved:
    """The edits as a person lets them stand. Stops the run where one needs approval, until it is resumed.

    An answer that cannot be read is asked for again, with `problem` saying why.
    """
    places = [at for at, edit in enumerate(edits) if _needs(env, scope, edit)]
    if not places:
        return Approved(list(edits), [])
    asked = {
        "type": "memcycle.approval",
        "user": scope.user,
        "workspace": scope.workspace,
        "session": scope.session,
        "items": [_item(env, scope, n, edits[at]) for n, at in enumerate(places, 1)],
        "how": HOW,
    }
    problem: dict[str, str] = {}
    while True:
        answer = interrupt(asked | problem)
        try:
            return _decided(edits, places, _read(answer, [edits[at] for at in places]))
        except _Unclear as unclear:
            problem = {"problem": str(unclear)}


def _needs(env: Env, scope: Scope, edit: Edit) -> bool:
    wanted = env.settings.approval
    if (edit.op == "DELETE" and wanted.delete) or (edit.op == "UPDATE" and wanted.update):
        return True
    kinds = {edit.entry.kind} if edit.entry is not None else set()
    kinds |= {old.kind for old in env.bank().get(scope, [edit.target])} if edit.target else set()
    return edit.op != "NONE" and bool(kinds & set(wanted.kinds))


def _item(env: Env, scope: Scope, n: int, edit: Edit) -> dict[str, Any]:
    """What a person needs to see of an edit: before, after, and the turns it rests on."""
    before = next(iter(env.bank().get(scope, [edit.target])), None) if edit.target else None
    after = edit.entry
    shown = after or before
    turns = env.bank().turns(scope, shown.turns) if shown is not None else []
    return {
        "n": n,
        "action": edit.op,
        "kind": shown.kind if shown is not None else None,
        "before": before.text if before is not None else None,
        "after": after.text if after is not None else None,
        "said": [f"{turn.speaker}: {turn.text}" for turn in turns],
        "why": edit.reason,
    }


def _read(answer: Any, edits: Sequence[Edit]) -> dict[int, tuple[str, str]]:
    """By number the decision and the new text of an edited one."""
    if answer in ("approve", "reject"):
        return dict.fromkeys(range(1, len(edits) + 1), (answer, ""))
    found: dict[int, tuple[str, str]] = {}
    for one in [answer] if isinstance(answer, Mapping) else answer if isinstance(answer, list) else [None]:
        if not isinstance(one, Mapping) or one.get("decision") not in ("approve", "edit", "reject"):
            raise _Unclear(f"{one!r:.80} is no decision. {HOW}")
        n = one.get("n", 1 if len(edits) == 1 else None)
        if not isinstance(n, int) or not 1 <= n <= len(edits):
            raise _Unclear(f"there is no item {n!r:.20}; the items are 1 to {len(edits)}")
        text = str(one.get("text") or "").strip()
        if one["decision"] == "edit" and (not text or edits[n - 1].entry is None):
            raise _Unclear(f"item {n} cannot be edited so: an edit needs a text, and a deletion has none")
        found[n] = (one["decision"], text)
    return found


def _decided(
    edits: Sequence[Edit], places: Sequence[int], decisions: Mapping[int, tuple[str, str]]
) -> Approved:
    numbers = {at: n for n, at in enumerate(places, 1)}
    kept: list[Edit] = []
    rejected: list[dict[str, str]] = []
    for at, edit in enumerate(edits):
        decision, text = decisions.get(numbers[at], ("reject", "")) if at in numbers else ("as it is", "")
        if decision == "reject":
            rejected.append({"text": edit.entry.text if edit.entry else "", "why": REJECTED})
        elif decision == "edit" and edit.entry is not None:
            changed = edit.entry.model_copy(update={"text": text, "quote": None})
            kept.append(_noted(edit.model_copy(update={"entry": changed}), EDITED))
        else:
            kept.append(_noted(edit, APPROVED) if at in numbers else edit)
    return Approved(kept, rejected)


def _noted(edit: Edit, by: str) -> Edit:
    return edit.model_copy(update={"reason": f"{edit.reason}; {by}" if edit.reason else by})
