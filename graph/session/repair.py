"""The nodes of session that repair memory: propose, consolidate, write, roll back (MemMA 3.4).

Consolidation says whether a proposed fact is stored beside what is there, united with it, or left out.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.constructor import FactDraft
from memcycle.agents.repairer import RepairerInput, RepairerOutput
from memcycle.agents.views import TurnView
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, departure, new_entry, same_speaker, same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import content_stems
from memcycle.core.probe import REPAIRER, Decision, Probe, Repair
from memcycle.core.turn import Turn
from memcycle.graph.approval import approved
from memcycle.graph.environment import GraphRun, Made
from memcycle.graph.facts import Grounded, Outcome, fact_entry, ground, with_nearest
from memcycle.graph.guards import exact, stands_in
from memcycle.graph.node import Step
from memcycle.graph.search import memory_views, turn_views
from memcycle.graph.session.examination import probes_of
from memcycle.graph.states import ProbeState, SessionState
from memcycle.stores.ledger.entries import RECALLABLE

AROUND = 4
"""Turns before and after the source that the Repairer is shown."""

SHOWN = 10
"""Stored entries that the Repairer is shown, those of the source turn first."""

_PIECES = re.compile(r"[;.!?\n]+|,\s+and\s+")
_OWN = {"id", "scope", "granularity", "text", "turns"}
"""What a merged entry does not take over."""


class Consolidated(NamedTuple):
    """What is done: with which stored fact, under which text (MERGE), and why."""

    decision: Decision
    target: Entry | None
    text: str
    why: str


def repair(state: ProbeState, run: GraphRun) -> Step:
    """The Repairer proposes a fact for each failed probe, or nothing; its span must stand in a turn."""
    around = [(probe, _around(run, probe)) for probe in probes_of(state, run)]
    shown = [
        (probe, turns, _memories(run, probe, state["found"][probe.id])) for probe, turns in around if turns
    ]
    replies = yield [
        run.call(
            "repairer",
            RepairerInput(
                question=probe.question,
                gold=probe.gold,
                answer=probe.before.answer if probe.before else "",
                turns=turn_views(turns),
                source=next(n for n, turn in enumerate(turns, 1) if turn.id == probe.turn),
                memories=memory_views(memories),
                now=run.now(),
            ),
        )
        for probe, turns, memories in shown
    ]
    repairs: dict[str, dict[str, Any]] = {}
    for (probe, turns, memories), reply in zip(shown, replies, strict=True):
        considered = {"considered": tuple(entry.id for entry in memories)}
        repairs[probe.id] = {"repair": proposed(reply, turns).model_copy(update=considered)}
    run.bank.update_probes(run.scope, repairs)
    failures = dict.fromkeys(str(reply) for reply in replies if isinstance(reply, RoleFailed))
    return {"mended": list(repairs), "warnings": list(failures)}


def _memories(run: GraphRun, probe: Probe, found: Sequence[str]) -> list[Entry]:
    """What is stored of a probe's turn, then what its answer was looked for in."""
    known = [*run.bank.by_turns(run.scope, [probe.turn], "fact"), *run.bank.get(run.scope, found)]
    return list({entry.id: entry for entry in known}.values())[:SHOWN]


def _around(run: GraphRun, probe: Probe) -> list[Turn]:
    source = run.bank.turns(run.scope, [probe.turn])
    if not source:
        return []
    place = source[0].position
    before = run.bank.session_turns(run.scope, last=AROUND, before=place)
    after = run.bank.session_turns(run.scope, last=AROUND, before=place + AROUND + 1)
    return [*before, *source, *(turn for turn in after if turn.position > place)]


def consolidate(state: SessionState, run: GraphRun) -> Step:
    """The Consolidator decides one proposal, beside what is stored and the proposals before it."""
    waiting = (one for one in probes_of(state, run) if one.repair and one.repair.state == "proposed")
    probe = next(waiting, None)
    if probe is None or probe.repair is None:
        return {"proposal": None, "edit": None}
    outcome, turns = Outcome(), run.bank.turns(run.scope, [str(probe.repair.turn)])
    drafts = [FactDraft.model_validate({**(probe.repair.draft or {}), "turn": 1})]
    found = ground(drafts, dict(enumerate(turns, 1)), turns, outcome)
    item = next(iter(with_nearest(run, found, outcome)), None)
    why = "its turn is gone" if item is None else _replaced(run, item)
    why = outcome.rejected[0].why if outcome.rejected else why
    if item is None or why:
        return _decided(probe, Consolidated("REFUSED", None, "", why), None)
    output, warnings = ConsolidatorOutput(decision="INSERT"), list[str]()
    twin = next((n for n, entry in enumerate(item.near) if item.repeats(entry)), None)
    if twin is not None:
        output = ConsolidatorOutput(decision="SKIP", memory=twin, why="the same words are stored")
    elif item.near:
        try:
            value = ConsolidatorInput(
                text=item.draft.text,
                speaker=item.speaker,
                turn=TurnView.of(1, item.turn),
                event_time=item.draft.event_time,
                event_precision=item.draft.event_precision,
                memories=memory_views(item.near),
                now=run.now(),
            )
            output = yield from run.ask("consolidator", value)
        except RoleFailed as failed:
            warnings = [f"{failed}: the proposal is stored beside what is there"]
    chosen, made = weigh(output, item), run.made("repairer")
    edit: Edit | None = None
    if chosen.decision == "INSERT":
        entry = fact_entry(item.draft, item.turn, made, related=item.related, actor=REPAIRER)
        edit = Edit(op="ADD", entry=entry, reason=chosen.why, actor=REPAIRER)
    elif chosen.decision == "MERGE":
        edit = merged_edit(item, chosen, made)
    return {**_decided(probe, chosen, edit, item.near), "warnings": warnings}


def _replaced(run: GraphRun, item: Grounded) -> str:
    """Why it speaks of what is no longer so, if so: by its own turn, or by what was said since, in any
    session."""
    stems = set(content_stems(item.draft.text))
    facts = run.bank.by_turns(run.scope, [item.turn.id], "fact", (*RECALLABLE, "superseded"))
    pairs = [(old, fact) for fact in facts for old in run.bank.get(run.scope, fact.supersedes)]
    pairs += [(fact, new) for fact in facts for new in run.bank.get(run.scope, [fact.superseded_by or ""])]
    revived = (
        stems & (set(content_stems(old.text)) - set(content_stems(new.text)))
        for old, new in pairs
        if departure(old) is None
    )
    return "it names what was replaced" if any(revived) else ""


def approve_repair(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """A person lets the repair stand, changes or rejects it, where the settings ask for that."""
    if state["edit"] is None:
        return {}
    found = approved(run, [Edit.model_validate(state["edit"])])
    if not found.edits:
        refused = {"decision": "REFUSED", "entry": None, "why": found.rejected[0]["why"]}
        return {"edit": None, "decision": {**(state["decision"] or {}), **refused}}
    return {"edit": found.edits[0].model_dump(mode="json")}


def write_repair(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Writes what was decided, staged, and notes it on the probe."""
    decision, written = state["decision"], state["written"]
    if decision is None:
        return {"proposal": None}
    edit = Edit.model_validate(state["edit"]) if state["edit"] is not None else None
    repair = run.bank.write_repair(run.scope, str(state["proposal"]), edit, decision)
    if repair is not None and repair.stands:
        written = [*written, str(repair.entry)]
    return {"proposal": None, "edit": None, "decision": None, "written": written, "round": 1}


def roll_back(state: SessionState, run: GraphRun) -> dict[str, Any]:
    """Takes back what did not help its probe, or broke one that memory answered before."""
    bank, probes = run.bank, probes_of(state, run)
    failures = blamed(probes, _standing(run, probes))
    # Two repairs merged into one entry are two writes to it.
    useless = [
        (str(probe.repair.entry), failures[probe.id])
        for probe in probes
        if probe.repair is not None and probe.id in failures
    ]
    bank.settle_repairs(run.scope, settled(probes, failures), useless)
    warnings = [
        f"the repair for probe {probe.n} was rolled back: {probe.repair.why}"
        for probe in probes_of(state, run)
        if probe.repair is not None and probe.repair.state == "rolled_back"
    ]
    return {"warnings": warnings}


def _standing(run: GraphRun, probes: Sequence[Probe]) -> dict[str, str]:
    """By id of the probe whose repair waits to be weighed: the entry that holds what it wrote now.

    A later repair may have been merged with it, into an entry that took its place.
    """
    found: dict[str, str] = {}
    for probe in probes:
        heir = probe.repair.entry if probe.repair and probe.repair.state == "written" else None
        seen = set[str]()
        while heir is not None and heir not in seen:
            found[probe.id] = heir
            seen.add(heir)
            heir = next((one.superseded_by for one in run.bank.get(run.scope, [heir])), None)
    return found


def proposed(output: RepairerOutput | RoleFailed, turns: Sequence[Turn]) -> Repair:
    """What the Repairer proposes, if its span stands in a turn that a person said; else why not."""
    if isinstance(output, RoleFailed):
        return Repair(state="failed", decision="NOOP", why=output.brief)
    if output.op == "NOOP" or output.fact is None:
        return Repair(state="skipped", cause=output.cause, decision="NOOP", why=output.why)
    fact, place = output.fact, output.fact.turn
    cited = [turns[place - 1]] if 0 < place <= len(turns) else []
    said = (turn for turn in [*cited, *turns] if turn.is_evidence and stands_in(fact.quote, turn.text))
    turn = next(said, None)
    if turn is None:
        why = "its span does not stand in a turn of the session that a person said"
        return Repair(state="refused", cause=output.cause, decision="REFUSED", why=why)
    draft = FactDraft.model_validate(fact.model_dump())
    return Repair(cause=output.cause, draft=draft.model_dump(mode="json"), turn=turn.id, why=output.why)


def _decided(
    probe: Probe, chosen: Consolidated, edit: Edit | None, near: Sequence[Entry] = ()
) -> dict[str, Any]:
    before = probe.repair.considered if probe.repair is not None else ()
    return {
        "proposal": probe.id,
        "edit": edit.model_dump(mode="json") if edit else None,
        "decision": {
            "decision": chosen.decision,
            "entry": chosen.target.id if chosen.target else None,
            "considered": list(dict.fromkeys((*before, *(entry.id for entry in near)))),
            "why": chosen.why,
        },
    }


def blamed(probes: Sequence[Probe], standing: Mapping[str, str]) -> dict[str, str]:
    """Ids of the probes whose repair is to be rolled back, each with the reason.

    Repairs that were merged into one entry are weighed as one. One helps where its probe, or another that
    failed, is now answered from it. It breaks a probe that passed before where the answer, now wrong, cites
    it; an answer that cites nothing of a repair but had it in its evidence blames all it had. What could not
    be graded blames nobody.

    Args:
        standing: By id of the probe whose repair is to be weighed: the entry that holds what it wrote.
    """
    entries = set(standing.values())
    helped, broke = set[str](), dict[str, int]()
    for probe in probes:
        if probe.after is None:
            continue
        rests_on = (entries & set(probe.after.cited)) or (entries & set(probe.after.evidence))
        if probe.after.verdict == "failed" and probe.passed_before:
            broke |= dict.fromkeys(rests_on, probe.n)
        elif probe.after.verdict == "passed" and not probe.passed_before:
            helped |= rests_on
        elif probe.after.verdict == "ungraded" and probe.id in standing:
            helped.add(standing[probe.id])
    failures: dict[str, str] = {}
    for name, entry in standing.items():
        if entry in broke:
            failures[name] = f"probe {broke[entry]}, which passed before, failed with it"
        elif entry not in helped:
            failures[name] = "its probe still failed with it"
    return failures


def settled(probes: Sequence[Probe], failures: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What changes in the probes with the roll-back, by id: every repair that wrote is weighed now."""
    gone = {probe.repair.entry for probe in probes if probe.id in failures and probe.repair}
    changes: dict[str, dict[str, Any]] = {}
    for probe in probes:
        if probe.repair is not None and probe.repair.state == "written":
            failed = probe.id in failures
            weighed = {"state": "rolled_back", "why": failures[probe.id]} if failed else {"state": "kept"}
            changes.setdefault(probe.id, {})["repair"] = probe.repair.model_copy(update=weighed)
        if probe.after is not None and gone & probe.after.rests_on:
            changes.setdefault(probe.id, {})["as_before"] = True
    return changes


def weigh(output: ConsolidatorOutput, item: Grounded) -> Consolidated:
    """The Consolidator's decision as far as code lets it stand; else INSERT with the reason."""
    target = next((entry for n, entry in enumerate(item.near) if n == output.memory), None)
    if output.decision == "INSERT" or target is None:
        unseen = f"memory {output.memory}, which it names, was not shown"
        return Consolidated("INSERT", None, "", output.why if output.decision == "INSERT" else unseen)
    if veto := _veto(item, target):
        return Consolidated("INSERT", None, "", veto)
    if output.decision == "SKIP":
        return Consolidated("SKIP", target, "", output.why)
    text = merged_text(output.text, item.draft.text, target.text)
    if text is None:
        return Consolidated("INSERT", None, "", "no single statement says what both say")
    if same_text(text) == same_text(target.text) and item.turn.id in target.turns:
        return Consolidated("SKIP", target, "", "the stored fact says it, and rests on that turn already")
    return Consolidated("MERGE", target, text, output.why)


def _veto(item: Grounded, target: Entry) -> str:
    """Why the two cannot be one fact, whatever a model says; empty if they can."""
    if item.differs_in_time(target):
        return "it is of another date than the stored fact"
    if target.speaker and not same_speaker(item.speaker, target.speaker):
        return "the stored fact is told of another person"
    if bool(NEGATION.search(item.draft.text)) != bool(NEGATION.search(target.text)):
        return "one denies what the other states"
    return ""


def merged_text(text: str, proposal: str, stored: str) -> str | None:
    """One statement for two: `text` if it may stand; else the one of the two that holds the other.

    It says nothing twice and nothing that neither says, keeps what both share, every number and
    name of either, and, where the two are alike but for one word (walnuts, cashews), both words.

    Returns:
        None where there is no such statement.
    """
    said, known = content_stems(proposal), content_stems(stored)
    new, old, stems = set(said), set(known), set(content_stems(text))
    different = [pair for pair in zip(said, known, strict=False) if pair[0] != pair[1]]
    swapped = different[0] if len(said) == len(known) and len(different) == 1 else ()
    required = (new & old) | exact(proposal) | exact(stored) | set(swapped)
    if text.strip() and required <= stems <= new | old and not says_twice(text):
        return text.strip()
    if new <= old:
        return stored
    return proposal if old <= new else None


def says_twice(text: str) -> bool:
    """Whether a piece of the text says again what another piece says ("X; X")."""
    pieces = (set(content_stems(piece)) for piece in _PIECES.split(text))
    return any(one <= other or other <= one for one, other in combinations(filter(None, pieces), 2))


def merged_edit(item: Grounded, chosen: Consolidated, made: Made) -> Edit:
    """One entry in place of the stored fact and the proposal, resting on the turns of both."""
    target = chosen.target
    assert target is not None  # noqa: S101 - a merge has one
    draft = item.draft.model_copy(update={"text": chosen.text})
    fresh = fact_entry(draft, item.turn, made, related=item.related, actor=REPAIRER)
    if same_text(chosen.text) == same_text(target.text):
        return Edit(op="MERGE", target=target.id, entry=fresh, reason=chosen.why, actor=REPAIRER)
    carried = {name: getattr(fresh, name) for name in Entry.model_fields if name not in _OWN}
    # Without a date of its own it is of the stored fact's; what was said last is what it rests on.
    if fresh.event_time is None:
        carried |= {"event_time": target.event_time, "event_precision": target.event_precision}
    times = [time for time in (fresh.observed_at, target.observed_at) if time is not None]
    carried |= {
        "observed_at": max(times, default=None),
        "importance": max(fresh.importance, target.importance),
    }
    for name in ("persons", "entities", "locations", "topics", "keywords", "related_turns"):
        carried[name] = tuple(dict.fromkeys((*getattr(target, name), *carried[name])))
    turns = tuple(dict.fromkeys((*target.turns, *fresh.turns)))
    entry = new_entry(fresh.scope, "fact", chosen.text, turns, **carried)
    return Edit(op="UPDATE", target=target.id, entry=entry, reason=chosen.why, actor=REPAIRER)
