"""What a person asks to be forgotten, in their words: what is erased for it, or why nothing is.

Code finds what bears on a request, with a model or without one; a role may only point at it. Where several
statements fit, none is erased.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memcycle.agents.constructor import FactDraft
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, same_text
from memcycle.core.language.forget_requests import (
    Request,
    bears_on,
    holds,
    repeats,
    request_of,
    requests_in,
    says_only,
    states,
    telling,
)
from memcycle.core.language.restatement import restates
from memcycle.core.language.tokens import stems
from memcycle.core.turn import Turn
from memcycle.graph.environment import GraphRun
from memcycle.graph.guards import requested_deletion

ASKED, UNKNOWN = "the user asked", "a request to forget what is not known"
DONE = "Forgotten for good, as asked, with what held its words."
NOT_ALLOWED = "Not forgotten: a person rejected it."
_HOW = "`memory.forget(id)` or `memcycle forget ID` erases one"
NOTHING = (
    "Not forgotten: nothing in memory clearly holds what was named. `memory.memories()` and "
    f"`memcycle memories` list what there is; {_HOW}."
)
MOST, LONGEST = 9, 80
"""Statements that are listed where several fit, and characters of each."""


@dataclass
class Settled:
    """What becomes of the requests of a chunk.

    Attributes:
        drafts: Facts that are still to be checked: none that repeats what was to be forgotten.
        edits: A deletion a request that is carried out. told: in words, why the others are not.
    """

    drafts: list[FactDraft]
    edits: list[Edit] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def settle(
    run: GraphRun, turns: Sequence[Turn], drafts: Sequence[FactDraft], pointed: Mapping[str, Sequence[Entry]]
) -> Settled:
    """Looks for what each request of the chunk names, in all of memory.

    Args:
        turns: The chunk, numbered from 1 in the drafts.
        pointed: By id of a turn, what roles named as that which it asks to forget.
    """
    settled = Settled(list(drafts))
    for n, turn in enumerate(turns, 1):
        deletions = [draft for draft in settled.drafts if draft.turn == n and draft.edit == "DELETE"]
        for request in _requests(turn, deletions):
            _settle_one(run, turns, turn, request, pointed=pointed.get(turn.id, ()), settled=settled)
            settled.drafts = [
                draft
                for draft in settled.drafts
                if not (draft.turn == n and (draft in deletions or _repeats(request, draft, turn)))
            ]
    return settled


def _requests(turn: Turn, deletions: Iterable[FactDraft]) -> list[Request]:
    """What a turn asks, by its own words, or by those in which the Constructor sees a request."""
    if not turn.is_evidence:
        return []
    found = requests_in(turn.text)
    for draft in deletions:
        quote = draft.quote or draft.text
        seen = requested_deletion(quote, [turn]) and not any(draft.quote in one.text for one in found)
        if seen and (request := request_of(quote)) is not None:
            found.append(request)
    return found


def _settle_one(
    run: GraphRun,
    turns: Sequence[Turn],
    turn: Turn,
    request: Request,
    *,
    pointed: Sequence[Entry],
    settled: Settled,
) -> None:
    found = [entry for entry in run.bank.saying(run.scope, request) if entry.turns != (turn.id,)]
    stated = [entry for entry in found if _may_state(entry) and states(request, entry.text, entry.speaker)]
    groups = _groups(stated)
    named = [entry for entry in pointed if bears_on(request, entry.text) and entry.turns != (turn.id,)]
    if named:
        near = {turn for entry in named for turn in entry.turns}
        of_named = [group for group in groups if any(near & set(entry.turns) for entry in group)]
        chosen = [*named, *(entry for group in of_named for entry in group)]
    elif len(groups) > 1 and not request.whole:
        settled.told.append(_several(groups))
        return
    else:
        chosen = stated
    if not chosen:
        settled.told.append(NOTHING)
        if says_only(turn.text, request):
            raws = run.bank.raw_entries(run.scope, [turn.id])
            settled.edits += [_deletion(raws, turn, request, UNKNOWN)] if raws else []
        return
    # What the assistant answered at once speaks of it, however it puts it.
    answers = {one.id for one in turns if not one.is_evidence}
    echoes = [
        one
        for one in found
        if one not in stated and (answers & set(one.turns[:1]) or holds(request, one.text, one.speaker))
    ]
    chosen.sort(key=lambda entry: entry.granularity != "fact")
    settled.edits.append(_deletion([*chosen, *echoes], turn, request))
    settled.drafts = [
        one for one in settled.drafts if not states(request, one.text, one.speaker or turn.speaker)
    ]


def echoes_in(given: Sequence[Turn], stored: Sequence[Turn]) -> list[Turn]:
    """What the assistant made of a request that was carried out, in its words: "I forgot that you smoke".

    Args:
        given: Turns by message id. stored: those that are kept; a request that was carried out is not.
    """
    kept = {turn.message_id for turn in stored}
    found, carried_out = list[Turn](), list[Request]()
    for turn in given:
        if turn.is_evidence:
            gone = turn.message_id is not None and turn.message_id not in kept
            carried_out = requests_in(turn.text) if gone else []
        elif turn.message_id and any(repeats(request, turn.text) for request in carried_out):
            found.append(turn)
    return found


def _deletion(entries: Sequence[Entry], turn: Turn, request: Request, why: str = ASKED) -> Edit:
    first, *rest = dict.fromkeys(entry.id for entry in entries)
    return Edit(op="DELETE", target=first, also=tuple(rest), asked_in=turn.id, reason=why, quote=request.text)


def _may_state(entry: Entry) -> bool:
    return entry.granularity == "fact" or (entry.granularity == "raw" and entry.role in (None, "human"))


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries, those together that are one statement: of one turn, in other words, before and after."""
    groups: list[list[Entry]] = []
    for entry in entries:
        same = [group for group in groups if any(_one(entry, other) for other in group)]
        groups = [group for group in groups if group not in same]
        groups.append([entry, *(other for group in same for other in group)])
    return groups


def _one(entry: Entry, other: Entry) -> bool:
    linked = entry.id in (other.superseded_by, *other.supersedes) or other.id in entry.supersedes
    shared = bool(set(entry.turns) & set(other.turns))
    alike = same_text(entry.text) == same_text(other.text) or restates(entry.text, other.text, 0.5)
    return linked or shared or bool(alike)


def _repeats(request: Request, draft: FactDraft, turn: Turn) -> bool:
    """Whether a draft only says again what a request says."""
    own = frozenset(stems(f"{turn.speaker} {draft.speaker or ''} user ask want request forget delete remove"))
    return telling(draft.text) - own <= telling(request.text) | request.words


def _several(groups: Sequence[Sequence[Entry]]) -> str:
    first = [group[0] for group in groups[:MOST]]
    shown = "; ".join(f'{n}. "{one.text[:LONGEST]}" ({one.id})' for n, one in enumerate(first, 1))
    return f"Not forgotten: {len(groups)} memories fit, and one may be meant: {shown}. {_HOW}."
