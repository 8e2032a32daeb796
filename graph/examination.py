"""Nodes of session that mend memory: propose, consolidate, write, take back what did not help (MemMA 3.4)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.constructor import FactDraft
from memcycle.agents.grader import Grade, GradeItem, GraderInput, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberInput, ProberOutput
from memcycle.agents.repairer import RepairerInput, RepairerOutput, RepairFact
from memcycle.agents.views import TurnView
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, Granularity, departure, new_entry, same_speaker, same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import approx_tokens, content_stems, tokenize
from memcycle.core.probe import REPAIRER, Decision, Probe, Repair, Tried, probe_id
from memcycle.core.scope import Scope
from memcycle.core.turn import Turn
from memcycle.graph.approval import approved
from memcycle.graph.environment import Env
from memcycle.graph.facts import Grounded, Outcome, ground, with_nearest
from memcycle.graph.guards import stands_in, support
from memcycle.graph.node import Step
from memcycle.graph.organisation import Decided, Made, fact_entry
from memcycle.graph.search import memory_views, turn_views
from memcycle.graph.states import ProbeState, SessionState
from memcycle.stores.search.request import Query, SearchRequest

EARLIER, LOOKED_FROM = 10, 3
"""Entries of earlier sessions that the Prober is shown for cross-session probes, and how many turns, the
longest first, they are looked for from."""


TOPIC_WORDS = 8

FORGOTTEN = "what it was examined by was forgotten meanwhile"


class Examination:
    """The examining nodes, over one environment."""

    def __init__(self, env: Env) -> None:
        self.env = env

    def probe(self, state: SessionState, config: RunnableConfig) -> Step:
        """The Prober asks about the session's turns; it never sees what was stored of them."""
        scope, bank, wanted = self.env.scope(config), self.env.bank(), self.env.settings.verification
        shown = spread(bank.part_turns(scope, state["until"]), wanted.turn_tokens, wanted.probes)
        if not any(turn.is_evidence for turn in shown):
            bank.save_probes(scope, [], replace_part=state["part"], seq=state["seq"])
            return {"probes": [], "asked": []}
        earlier = self._earlier(scope, shown)
        value = ProberInput(
            turns=turn_views(shown),
            memories=memory_views(earlier),
            count=wanted.probes,
            now=self.env.now(),
        )
        try:
            output: ProberOutput = yield self.env.call("prober", value)
        except RoleFailed as failed:
            bank.save_probes(scope, [], replace_part=state["part"], seq=state["seq"])
            return {"probes": [], "asked": [], "unverified": failed.brief, "warnings": [str(failed)]}
        drafts, refused = acceptable(output.probes, shown, wanted.probes)
        probes = [
            Probe(
                id=probe_id(scope, state["seq"], state["part"], n),
                session=str(scope.session),
                part=state["part"],
                n=n,
                kind=draft.kind,
                question=draft.question.strip(),
                gold=draft.answer.strip(),
                turn=turn.id,
                memories=tuple(entry.id for entry in earlier),
            )
            for n, (draft, turn) in enumerate(drafts, 1)
        ]
        told = [turn.id for turn in shown]
        if not bank.save_probes(scope, probes, replace_part=state["part"], shown=told, seq=state["seq"]):
            return {"probes": [], "asked": [], "unverified": FORGOTTEN, "warnings": refused}
        names = [probe.id for probe in probes]
        return {"probes": names, "asked": names, "warnings": refused}

    def _earlier(self, scope: Scope, turns: Sequence[Turn]) -> list[Entry]:
        """Facts and episodes of other sessions that speak of what this one speaks of: one search."""
        queries = sorted((turn for turn in turns if turn.is_evidence), key=lambda turn: -len(turn.text))
        results = self.env.bank().search(
            SearchRequest(
                scope=scope.base,
                queries=tuple(Query(text=_topic(turn)) for turn in queries[:LOOKED_FROM]),
                granularities=("fact", "episode"),
                k=EARLIER,
                theta=self.env.theta,
            )
        )
        found = sorted(
            (hit for hits in results for hit in hits if hit.entry.scope.session != scope.session),
            key=lambda hit: (-hit.score, hit.entry.id),
        )
        return list({hit.entry.id: hit.entry for hit in found}.values())[:EARLIER]

    def look_up(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """One search for all probes, over facts and episodes.

        After repair only those are asked again whose evidence now holds something a repair wrote: the others
        would be answered from what they were answered from before.
        """
        scope, probes = self.env.scope(config), self.probes(state, config)
        if not probes:
            return {"found": {}, "asked": []}
        wanted = self.env.settings.verification
        results = self.env.bank().search(
            SearchRequest(
                scope=scope,
                queries=tuple(Query(text=probe.question) for probe in probes),
                granularities=self._granularities(),
                k=wanted.k,
                theta=self.env.theta,
            )
        )
        found = {
            probe.id: [hit.entry.id for hit in hits] for probe, hits in zip(probes, results, strict=True)
        }
        written = set(state.get("written") or [])
        again = [name for name, entries in found.items() if not state["round"] or written & set(entries)]
        return {"found": {name: found[name] for name in again}, "asked": again}

    def _granularities(self) -> tuple[Granularity, ...]:
        single = self.env.settings.switches.granularity
        if single != "all":
            return (single,)
        return ("raw", "fact", "episode") if self.env.settings.verification.raw else ("fact", "episode")

    def examine(self, state: ProbeState, config: RunnableConfig) -> Step:
        """The Answerer answers one probe from what was found for it."""
        scope, bank = self.env.scope(config), self.env.bank()
        probe = self.named(scope, state["part"], state["probe"])
        if probe is None:
            return {}
        entries = bank.get(scope, state["found"])
        tried, warnings = Tried(evidence=tuple(entry.id for entry in entries), abstained=True), []
        if entries:
            shown = sorted(entries, key=lambda entry: (str(entry.observed_at), entry.id))
            value = AnswererInput(
                question=probe.question, evidence=memory_views(shown), style="sentence", now=self.env.now()
            )
            try:
                output: AnswererOutput = yield self.env.call("answerer", value)
            except RoleFailed as failed:
                warnings = [str(failed)]
                tried = tried.model_copy(update={"abstained": False, "why": failed.brief})
            else:
                cited = dict.fromkeys(shown[n].id for n in output.citations if 0 <= n < len(shown))
                said = {"answer": output.answer, "abstained": not output.answerable, "cited": tuple(cited)}
                tried = tried.model_copy(update=said)
        moment = "after" if state["round"] else "before"
        bank.update_probes(scope, {probe.id: {moment: tried}})
        return {"answered": [probe.id], "warnings": warnings}

    def grade(self, state: SessionState, config: RunnableConfig) -> Step:
        """The Grader compares answers with gold answers, all in one call; an abstention needs none."""
        moment, asked = "after" if state["round"] else "before", set(state["asked"])
        probes = [one for one in self.probes(state, config) if one.id in asked and getattr(one, moment)]
        tries: list[Tried] = [getattr(probe, moment) for probe in probes]
        items = [
            GradeItem(n=n, question=probe.question, gold=probe.gold, answer=tried.answer)
            for n, (probe, tried) in enumerate(zip(probes, tries, strict=True), 1)
            if not tried.abstained and not tried.why
        ]
        output, warnings, missing = GraderOutput(grades=[]), list[str](), "the Grader left it out"
        if items:
            try:
                output = yield self.env.call("grader", GraderInput(items=items))
            except RoleFailed as failed:
                warnings, missing = [str(failed)], failed.brief
        grades = {grade.n: grade for grade in output.grades}
        graded = [_graded(tried, grades.get(n), missing) for n, tried in enumerate(tries, 1)]
        changes = {probe.id: {moment: tried} for probe, tried in zip(probes, graded, strict=True)}
        self.env.bank().update_probes(self.env.scope(config), changes)
        ungraded = next((tried.why for tried in graded if tried.verdict == "ungraded"), "")
        by_id = {probe.id: tried.verdict for probe, tried in zip(probes, graded, strict=True)}
        return {
            "passed": [name for name, verdict in by_id.items() if verdict == "passed"],
            "failed": [name for name, verdict in by_id.items() if verdict == "failed"],
            "unverified": state["unverified"] or ungraded,
            "warnings": warnings,
        }

    def named(self, scope: Scope, part: int, name: str) -> Probe | None:
        """The probe with this id, as it stands in the ledger; None where it was forgotten meanwhile."""
        return next((one for one in self.env.bank().probes(scope, part=part) if one.id == name), None)

    def probes(self, state: SessionState, config: RunnableConfig) -> list[Probe]:
        """The probes of this run, in order."""
        own = set(state["probes"])
        found = self.env.bank().probes(self.env.scope(config), part=state["part"]) if own else []
        return [probe for probe in found if probe.id in own]


def _graded(tried: Tried, grade: Grade | None, missing: str) -> Tried:
    """The attempt with its verdict; ungraded, with the reason, where a role failed."""
    if tried.abstained:
        return tried.model_copy(update={"verdict": "failed", "why": "memory does not hold it"})
    if tried.why:
        return tried
    if grade is None:
        return tried.model_copy(update={"why": missing})
    return tried.model_copy(update={"verdict": "passed" if grade.correct else "failed", "why": grade.why})


def _topic(turn: Turn) -> str:
    """The longest words of a turn: what it is about, in few enough words to be looked up at any size."""
    words = dict.fromkeys(tokenize(turn.text))
    return " ".join(sorted(words, key=lambda word: (-len(word), word))[:TOPIC_WORDS])


def spread(turns: Sequence[Turn], budget: int, parts: int) -> list[Turn]:
    """Turns within a budget of tokens: all of them, else as many from each of `parts` stretches in turn."""
    if sum(approx_tokens(turn.text) for turn in turns) <= budget:
        return list(turns)
    size = -(-len(turns) // parts)
    chosen: list[Turn] = []
    for start in range(0, len(turns), size):
        left = budget / parts
        for turn in turns[start : start + size]:
            left -= approx_tokens(turn.text)
            if left < 0:
                break
            chosen.append(turn)
    return chosen or list(turns[:1])


def acceptable(
    drafts: Sequence[ProbeDraft], turns: Sequence[Turn], most: int
) -> tuple[list[tuple[ProbeDraft, Turn]], list[str]]:
    """The drafts that can be probes, each with its turn; and why the others cannot, in words.

    A probe rests on a turn a person said: what an assistant or a tool said is no evidence and is not stored
    as facts. Its answer shares words with that turn (a date need not) and does not stand in the question.
    """
    kept: list[tuple[ProbeDraft, Turn]] = []
    refused: list[str] = []
    asked: set[str] = set()
    for draft in drafts:
        turn = turns[draft.turn - 1] if 0 < draft.turn <= len(turns) else None
        if turn is None:
            why = f"it cites turn {draft.turn}, which was not shown"
        elif not turn.is_evidence:
            why = f"its turn {turn.id} is {turn.role} text"
        else:
            why = _flaw(draft, turn) or ("it is asked twice" if same_text(draft.question) in asked else "")
        if why or turn is None:
            refused.append(f"a probe was left out, since {why}")
        elif len(kept) < most:
            asked.add(same_text(draft.question))
            kept.append((draft, turn))
    return kept, refused


def _flaw(draft: ProbeDraft, turn: Turn) -> str:
    if not draft.question.strip() or not draft.answer.strip():
        return "question or answer is blank"
    told = set(content_stems(draft.answer))
    if told and told <= set(content_stems(draft.question)):
        return "its question gives the answer away"
    if draft.kind != "temporal" and told and support(draft.answer, turn) == 0:
        return f"turn {turn.id} does not say so"
    return ""


_PIECES = re.compile(r"[;.!?\n]+|,\s+and\s+")
_EXACT = re.compile(r"\d+|(?<!^)\b[A-Z]\w+")
"""Numbers, and names inside a sentence: what a merged text may never lose."""

_OWN = {"id", "scope", "granularity", "text", "turns"}
"""What a merged entry does not take over."""


class Consolidated(NamedTuple):
    """What is done: with which stored fact, under which text (MERGE), and why."""

    decision: Decision
    target: Entry | None
    text: str
    why: str


def decide(output: ConsolidatorOutput, item: Grounded) -> Consolidated:
    """The Consolidator's decision as far as code lets it stand; else INSERT with the reason."""
    if output.decision == "INSERT":
        return Consolidated("INSERT", None, "", output.why)
    n = output.memory
    if n is None or not 0 <= n < len(item.near):
        return Consolidated("INSERT", None, "", f"memory {n}, which it names, was not shown")
    target = item.near[n]
    veto = _veto(item, target)
    if veto:
        return Consolidated("INSERT", None, "", veto)
    if output.decision == "SKIP":
        return Consolidated("SKIP", target, "", output.why)
    return _merged(output, item, target)


def _merged(output: ConsolidatorOutput, item: Grounded, target: Entry) -> Consolidated:
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


def merged_text(wanted: str, proposal: str, stored: str) -> str | None:
    """One statement for two: the wanted one if it may stand; else the one of the two that holds the other.

    A wanted text says nothing twice and nothing that neither says, keeps what both share, every number and
    name of either, and, where the two are alike but for one word (walnuts, cashews), both words.

    Returns:
        None where there is no such statement.
    """
    new, old = content_stems(proposal), content_stems(stored)
    both = set(new) | set(old)
    kept = (set(new) & set(old)) | _exact(proposal) | _exact(stored) | _swapped(new, old)
    told = set(content_stems(wanted))
    if wanted.strip() and kept <= told <= both and not says_twice(wanted):
        return wanted.strip()
    if set(new) <= set(old):
        return stored
    return proposal if set(old) <= set(new) else None


def _exact(text: str) -> set[str]:
    return {stem for word in _EXACT.findall(text) for stem in content_stems(word)}


def _swapped(new: Sequence[str], old: Sequence[str]) -> set[str]:
    """The one word of each in which two statements of the same words differ, if that is all."""
    different = [pair for pair in zip(new, old, strict=False) if pair[0] != pair[1]]
    return set(different[0]) if len(new) == len(old) and len(different) == 1 else set()


def says_twice(text: str) -> bool:
    """Whether a piece of the text says again what another piece says ("X; X")."""
    pieces = [set(content_stems(piece)) for piece in _PIECES.split(text)]
    told: Sequence[set[str]] = [piece for piece in pieces if piece]
    return any(one <= other for n, one in enumerate(told) for m, other in enumerate(told) if n != m)


def merged_edit(item: Grounded, chosen: Consolidated, made: Made) -> Edit:
    """One entry in place of the stored fact and the proposal, resting on the turns of both."""
    target = chosen.target
    assert target is not None  # noqa: S101 - a merge has one
    draft = item.draft.model_copy(update={"text": chosen.text})
    decided = Decided(draft, item.turn, item.related, "ADD", None, chosen.why, actor=REPAIRER)
    fresh = fact_entry(decided, made)
    if same_text(chosen.text) == same_text(target.text):
        return Edit(op="MERGE", target=target.id, entry=fresh, reason=chosen.why, actor=REPAIRER)
    carried = {name: getattr(fresh, name) for name in Entry.model_fields if name not in _OWN}
    # Without a date of its own it is of the stored fact's; what was said last is what it rests on.
    if fresh.event_time is None:
        carried |= {"event_time": target.event_time, "event_precision": target.event_precision}
    said = [time for time in (fresh.observed_at, target.observed_at) if time is not None]
    carried |= {
        "observed_at": max(said, default=None),
        "importance": max(fresh.importance, target.importance),
    }
    for name in ("persons", "entities", "locations", "topics", "keywords", "related_turns"):
        carried[name] = tuple(dict.fromkeys((*getattr(target, name), *carried[name])))
    turns = tuple(dict.fromkeys((*target.turns, *fresh.turns)))
    entry = new_entry(fresh.scope, "fact", chosen.text, turns, **carried)
    return Edit(op="UPDATE", target=target.id, entry=entry, reason=chosen.why, actor=REPAIRER)


AROUND = 4
"""Turns before and after the source that the Repairer is shown."""

SHOWN = 10
"""Stored entries that the Repairer is shown, those of the source turn first."""


class Repairing(Examination):
    """The mending nodes, over one environment."""

    def repair(self, state: ProbeState, config: RunnableConfig) -> Step:
        """The Repairer proposes a fact for one failed probe, or nothing; its span must stand in a turn."""
        scope, bank = self.env.scope(config), self.env.bank()
        probe = self.named(scope, state["part"], state["probe"])
        shown = self._around(scope, probe) if probe is not None else []
        if probe is None or not shown:
            return {}
        known = [*bank.by_turns(scope, [probe.turn], "fact"), *bank.get(scope, state["found"])]
        memories = list({entry.id: entry for entry in known}.values())[:SHOWN]
        value = RepairerInput(
            question=probe.question,
            gold=probe.gold,
            answer=probe.before.answer if probe.before else "",
            turns=turn_views(shown),
            source=next(n for n, turn in enumerate(shown, 1) if turn.id == probe.turn),
            memories=memory_views(memories),
            now=self.env.now(),
        )
        try:
            output: RepairerOutput = yield self.env.call("repairer", value)
        except RoleFailed as failed:
            repair, warnings = Repair(decision="NOOP", failed=True, why=failed.brief), [str(failed)]
        else:
            considered = tuple(entry.id for entry in memories)
            repair = proposed(output, shown).model_copy(update={"considered": considered})
            warnings = []
        bank.update_probes(scope, {probe.id: {"repair": repair}})
        return {"mended": [probe.id], "warnings": warnings}

    def _around(self, scope: Scope, probe: Probe) -> list[Turn]:
        bank = self.env.bank()
        source = bank.turns(scope, [probe.turn])
        if not source:
            return []
        place = source[0].position
        before = bank.session_turns(scope, last=AROUND, before=place)
        after = bank.session_turns(scope, last=AROUND, before=place + AROUND + 1)
        return [*before, *source, *(turn for turn in after if turn.position > place)]

    def consolidate(self, state: SessionState, config: RunnableConfig) -> Step:
        """The Consolidator decides one proposal, beside what is stored and the proposals before it."""
        scope = self.env.scope(config)
        probe = next((probe for probe in self.probes(state, config) if is_open(probe)), None)
        if probe is None or probe.repair is None:
            return {"proposal": None, "edit": None}
        outcome, turns = Outcome(), self.env.bank().turns(scope, [str(probe.repair.turn)])
        drafts = [FactDraft.model_validate({**(probe.repair.draft or {}), "turn": 1})]
        found = ground(drafts, dict(enumerate(turns, 1)), turns, outcome)
        grounded = with_nearest(self.env, scope, found, outcome)
        if not grounded:
            why = outcome.rejected[0].why if outcome.rejected else "its turn is gone"
            return _decided(probe, Consolidated("REFUSED", None, "", why), None)
        (item,) = grounded
        if self._revives(scope, item):
            why = "it names what a fact of the same turn has replaced"
            return _decided(probe, Consolidated("REFUSED", None, "", why), None)
        output, warnings = ConsolidatorOutput(decision="INSERT"), list[str]()
        twin = next((n for n, entry in enumerate(item.near) if item.repeats(entry)), None)
        if twin is not None:
            output = ConsolidatorOutput(decision="SKIP", memory=twin, why="the same words are stored")
        elif item.near:
            try:
                output = yield self.env.call("consolidator", self._input(item))
            except RoleFailed as failed:
                warnings = [f"{failed}: the proposal is stored beside what is there"]
        chosen, made = decide(output, item), self.env.made("repairer", scope)
        edit: Edit | None = None
        if chosen.decision == "INSERT":
            fact = Decided(item.draft, item.turn, item.related, "ADD", None, chosen.why, actor=REPAIRER)
            (edit,) = yield from self.env.organisation.organise([fact], made)
        elif chosen.decision == "MERGE":
            edit = merged_edit(item, chosen, made)
        return {**_decided(probe, chosen, edit, item.near), "warnings": warnings}

    def _revives(self, scope: Scope, item: Grounded) -> bool:
        """Whether it speaks of what is no longer so by its own turn, as was settled when that was read."""
        bank, told = self.env.bank(), set(content_stems(item.draft.text))
        return any(
            told & (set(content_stems(old.text)) - set(content_stems(fact.text)))
            for fact in bank.by_turns(scope, [item.turn.id], "fact")
            for old in bank.get(scope, fact.supersedes)
            if departure(old) is None
        )

    def _input(self, item: Grounded) -> ConsolidatorInput:
        return ConsolidatorInput(
            text=item.draft.text,
            speaker=item.speaker,
            turn=TurnView.of(1, item.turn),
            event_time=item.draft.event_time,
            event_precision=item.draft.event_precision,
            memories=memory_views(item.near),
            now=self.env.now(),
        )

    def approve_repair(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """A person lets the repair stand, changes or rejects it, where the settings ask for that."""
        if state["edit"] is None:
            return {}
        found = approved(self.env, self.env.scope(config), [Edit.model_validate(state["edit"])])
        if not found.edits:
            refused = {"decision": "REFUSED", "entry": None, "why": found.rejected[0]["why"]}
            return {"edit": None, "decision": {**(state["decision"] or {}), **refused}}
        return {"edit": found.edits[0].model_dump(mode="json")}

    def write_repair(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Writes what was decided, staged, and notes it on the probe."""
        decision, written = state["decision"], state["written"]
        if decision is None:
            return {"proposal": None}
        edit = Edit.model_validate(state["edit"]) if state["edit"] is not None else None
        repair = self.env.bank().write_repair(self.env.scope(config), str(state["proposal"]), edit, decision)
        if repair is not None and repair.wrote:
            written = [*written, str(repair.entry)]
        return {"proposal": None, "edit": None, "decision": None, "written": written, "round": 1}

    def roll_back(self, state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        """Takes back what did not help its probe, or broke one that memory answered before."""
        scope, bank, probes = self.env.scope(config), self.env.bank(), self.probes(state, config)
        failures = blamed(probes, self._standing(scope, probes))
        # Two repairs merged into one entry are two writes to it.
        useless = [
            (str(probe.repair.entry), failures[probe.id])
            for probe in probes
            if probe.repair is not None and probe.id in failures
        ]
        bank.settle_repairs(scope, settled(probes, failures), useless)
        told = [
            f"the repair for probe {probe.n} was rolled back: {probe.repair.why}"
            for probe in self.probes(state, config)
            if probe.repair is not None and probe.repair.rolled_back
        ]
        return {"warnings": told}

    def _standing(self, scope: Scope, probes: Sequence[Probe]) -> dict[str, str]:
        """By id of the probe whose repair waits to be weighed: the entry that holds what it wrote now.

        A later repair may have been merged with it, into an entry that took its place.
        """
        found: dict[str, str] = {}
        for probe in probes:
            if probe.repair is None or not probe.repair.waits:
                continue
            chain = [str(probe.repair.entry)]
            while (heir := self._heir(scope, chain[-1])) is not None and heir not in chain:
                chain.append(heir)
            found[probe.id] = chain[-1]
        return found

    def _heir(self, scope: Scope, entry: str) -> str | None:
        return next((one.superseded_by for one in self.env.bank().get(scope, [entry])), None)


def is_open(probe: Probe) -> bool:
    """Whether the probe's repair is proposed and not decided yet."""
    return probe.repair is not None and probe.repair.draft is not None and probe.repair.decision is None


def proposed(output: RepairerOutput, shown: Sequence[Turn]) -> Repair:
    """What the Repairer proposes, if its span stands in a turn that a person said; else why not."""
    if output.op == "NOOP" or output.fact is None:
        return Repair(cause=output.cause, decision="NOOP", why=output.why)
    turn = _source(output.fact, shown)
    if turn is None:
        why = "its span does not stand in a turn of the session that a person said"
        return Repair(cause=output.cause, decision="REFUSED", why=why)
    draft = FactDraft.model_validate(output.fact.model_dump())
    return Repair(cause=output.cause, draft=draft.model_dump(mode="json"), turn=turn.id, why=output.why)


def _source(fact: RepairFact, shown: Sequence[Turn]) -> Turn | None:
    named = shown[fact.turn - 1 : fact.turn] if fact.turn > 0 else []
    return next(
        (turn for turn in [*named, *shown] if turn.is_evidence and stands_in(fact.quote, turn.text)), None
    )


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


class _Asked(NamedTuple):
    """A probe with the entries of repairs that its second answer rests on."""

    probe: Probe
    rests_on: set[str]


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
    again = [
        _Asked(probe, (entries & set(probe.after.cited)) or (entries & set(probe.after.evidence)))
        for probe in probes
        if probe.after is not None
    ]
    helped = {
        entry
        for asked in again
        if not asked.probe.passed_before and asked.probe.after and asked.probe.after.verdict == "passed"
        for entry in asked.rests_on
    }
    broke = {
        entry: asked.probe.n
        for asked in again
        if asked.probe.passed_before and asked.probe.after and asked.probe.after.verdict == "failed"
        for entry in asked.rests_on
    }
    unknown = {standing[probe.id] for probe in probes if probe.id in standing and _unknown(probe)}
    failures: dict[str, str] = {}
    for name, entry in standing.items():
        if entry in broke:
            failures[name] = f"probe {broke[entry]}, which passed before, failed with it"
        elif entry not in helped | unknown:
            failures[name] = "its probe still failed with it"
    return failures


def _unknown(probe: Probe) -> bool:
    return probe.after is not None and probe.after.verdict == "ungraded"


def settled(probes: Sequence[Probe], failures: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What changes in the probes with the roll-back, by id: every repair that wrote is weighed now."""
    gone = {probe.repair.entry for probe in probes if probe.id in failures and probe.repair}
    found: dict[str, dict[str, Any]] = {}
    for probe in probes:
        changes: dict[str, Any] = {}
        if probe.repair is not None and probe.repair.waits:
            weighed = {"settled": True}
            failed = {"rolled_back": True, "why": failures[probe.id]} if probe.id in failures else {}
            changes["repair"] = probe.repair.model_copy(update=weighed | failed)
        if probe.after is not None and gone & probe.after.rests_on:
            changes["as_before"] = True
        found[probe.id] = changes
    return {name: changes for name, changes in found.items() if changes}
