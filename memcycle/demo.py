"""The demonstration: a small conversation written for it, remembered step by step, then questioned."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from importlib.resources import files
from typing import Any

from memcycle.core.jsonl import read_jsonl
from memcycle.core.probe import Probe
from memcycle.core.scope import Scope
from memcycle.core.turn import Conversation
from memcycle.graph.context import Context
from memcycle.memory import Memory
from memcycle.results import Answer, SessionDetail
from memcycle.stores.bank import Bank

Update = Mapping[str, Any]

_CONFLICTS = 2
"""Conflicts told in full."""


def narrate(node: str, update: Update, bank: Bank, scope: Scope) -> str:
    """One line on what a node of remember, recall or session did.

    Args:
        node: Its name.
        update: The partial state it returned.
        bank: Where the texts behind ids are looked up.
        scope: Whose memory.
    """
    tell = _LOOKED_UP.get(node)
    if tell is not None:
        return tell(update, _Texts(bank, scope))
    plain = _PLAIN.get(node)
    return plain(update) if plain is not None else "done"


class _Texts:
    """Texts by entry or turn id."""

    def __init__(self, bank: Bank, scope: Scope) -> None:
        self._bank, self._scope = bank, scope

    def entry(self, entry_id: str) -> str:
        found = self._bank.get(self._scope, [entry_id])
        return quoted(found[0].text) if found else "a memory"

    def probe(self, probe_id: str) -> Probe | None:
        return next((one for one in self._bank.probes(self._scope) if one.id == probe_id), None)

    def turn(self, turn_id: str) -> str:
        found = self._bank.turns(self._scope, [turn_id])
        return f"{turn_id} {quoted(found[0].text)}" if found else turn_id


def quoted(text: str, most: int = 60) -> str:
    """A text in quotation marks, its end cut off where it is long."""
    flat = " ".join(text.split())
    return f'"{flat if len(flat) <= most else flat[: most - 3] + "..."}"'


def _count(number: int, noun: str, many: str | None = None) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"


def _stage(update: Update) -> str:
    chunk = update["chunk"]
    if not chunk:
        return "nothing new: all of it is stored"
    return f"{_count(len(chunk), 'turn')} written as said, {chunk[0]} to {chunk[-1]}"


def _plan(update: Update) -> str:
    routes = Counter(plan["operator"] for plan in update["plans"])
    if not routes:
        return "no search: memory is empty, or nobody said anything to look up"
    listed = ", ".join(f"{number} {name}" for name, number in routes.most_common())
    return f"searches planned: {listed}; first {quoted(update['plans'][0]['query'])}"


def _search(update: Update) -> str:
    return f"{_count(len(update['candidates']), 'candidate')} found"


def _judge(update: Update, texts: _Texts) -> str:
    verdict = update["verdict"]
    said = f"{len(verdict['relevant'])} bear on it"
    said += (
        ", enough"
        if verdict["sufficient"]
        else f", not enough{': ' if verdict['missing'] else ''}{verdict['missing']}"
    )
    conflicts = verdict["conflicts"]
    for conflict in conflicts[:_CONFLICTS]:
        against = conflict["turn"] and texts.turn(conflict["turn"])
        against = against or (conflict["other"] and texts.entry(conflict["other"]))
        said += f"; CONFLICT {texts.entry(conflict['memory'])} against {against}"
    return said + (f"; and {len(conflicts) - _CONFLICTS} more" if len(conflicts) > _CONFLICTS else "")


def _refresh(update: Update, texts: _Texts) -> str:
    edits = update["edits"]
    if not edits:
        later = len(update.get("supersede") or [])
        return f"{_count(later, 'conflict')} left to the new fact" if later else "nothing is changed"
    return "; ".join(f"{edit['op']} {texts.entry(edit['target'])} -> {_edit_text(edit)}" for edit in edits)


def _edit_text(edit: Mapping[str, Any]) -> str:
    return quoted(edit["entry"]["text"]) if edit.get("entry") else "gone"


def _guide(update: Update) -> str:
    guidance = update["guidance"]
    parts = [f"{len(guidance.get(key) or [])} {word}" for key, word in _GUIDED]
    return ", ".join(parts)


_GUIDED = (("keep", "to keep"), ("redundant", "known already"), ("conflicts", "in conflict"))


def _construct(update: Update) -> str:
    drafts = update["drafts"]
    return f"{_count(len(drafts), 'fact')} drafted" + (
        f", first {quoted(drafts[0]['text'])}" if drafts else ""
    )


def _check(update: Update) -> str:
    allowed = Counter(edit["op"] for edit in update["edits"])
    listed = ", ".join(f"{number} {name}" for name, number in allowed.most_common()) or "nothing to write"
    refused = update["result"]["rejected"]
    return listed + (f"; {len(refused)} refused, last: {refused[-1]['why']}" if refused else "")


def _apply(update: Update, texts: _Texts) -> str:
    result = update["result"]
    said = f"{_count(len(result['facts']), 'fact')} stored"
    return said + "".join(f"; SUPERSEDED {texts.entry(name)}" for name in result["refreshed"])


def _trigger(update: Update) -> str:
    ended = [episode["turns"][-1] for episode in update["episodes"]]
    return f"an episode ends with {', '.join(ended)}" if ended else "the topic goes on"


def _episodes(update: Update) -> str:
    made = [
        edit.get("entry") or edit for edit in [*(update.get("edits") or []), *(update.get("episodes") or [])]
    ]
    return (
        "; ".join(f"{quoted(entry.get('title') or entry['text'])}" for entry in made)
        or "nothing left to summarise"
    )


def _think(update: Update) -> str:
    gap = update["gap"]
    return (
        "answerable" if gap["answerable"] else f"not answerable yet: {gap['gap'] or 'something is missing'}"
    )


def _reason(update: Update) -> str:
    plans: Sequence[Mapping[str, Any]] = update["plans"]
    return f"asks {quoted(plans[0]['query'])}" if plans else "nothing left to try"


def _answer(update: Update) -> str:
    answer = update["answer"]
    found = _count(len(answer["evidence"]), "source")
    return f"{quoted(answer['answer'])} from {found}" if answer["answer"] else f"{found} found"


def _probed(update: Update, texts: _Texts) -> str:
    asked = [texts.probe(name) for name in update["probes"]]
    first = f", first {quoted(asked[0].question)}" if asked and asked[0] else ""
    return f"{_count(len(asked), 'probe')} made from the turns{first}"


def _answered(update: Update, texts: _Texts) -> str:
    probe = texts.probe(update["answered"][0])
    tried = (probe.after or probe.before) if probe is not None else None
    if probe is None or tried is None:
        return "the probe is gone: what it rests on was forgotten"
    said = "nothing" if tried.abstained else quoted(tried.answer)
    return f"probe {probe.n} {quoted(probe.question)} memory says {said}"


def _mended(update: Update, texts: _Texts) -> str:
    probe = texts.probe(update["mended"][0])
    if probe is None or probe.repair is None:
        return "the probe is gone: what it rests on was forgotten"
    repair = probe.repair
    if repair.draft is None:
        return f"probe {probe.n}: {repair.decision}, {repair.why or repair.cause}"
    return f"probe {probe.n}: proposes {quoted(repair.draft['text'])}, {repair.cause}"


def _consolidated(update: Update, texts: _Texts) -> str:
    probe = texts.probe(update["proposal"]) if update["proposal"] else None
    if probe is None or probe.repair is None:
        return "no proposal is left"
    said = quoted((probe.repair.draft or {}).get("text", ""))
    return f"{update['decision']['decision']} {said} for probe {probe.n}"


def _maintained(update: Update) -> str:
    done = [f"{number} {name}" for name, number in update["maintained"].items() if number]
    return ", ".join(done) or "nothing to tidy"


def _committed(update: Update) -> str:
    result = update["result"]
    said = f"{_count(result['committed'], 'memory', 'memories')} active now"
    if result["probes"]:
        passed = f"{result['passed_before']} -> {result['passed_after']} of {result['probes']}"
        said += f"; probes passed {passed}"
    return said + (f"; UNVERIFIED: {result['reason']}" if result["reason"] else "")


_LOOKED_UP: dict[str, Callable[[Update, _Texts], str]] = {
    "probe": _probed,
    "examine": _answered,
    "repair": _mended,
    "consolidate": _consolidated,
    "judge": _judge,
    "refresh": _refresh,
    "apply": _apply,
}
_PLAIN: dict[str, Callable[[Update], str]] = {
    "listen": lambda _: "the question is taken in",
    "stage": _stage,
    "plan": _plan,
    "search": _search,
    "widen": lambda update: f"RETRY, wider: {_count(len(update['candidates']), 'candidate')} so far",
    "settle": lambda update: f"settled by time: {len(update['outdated'])} outdated",
    "apply_refresh": lambda _: "written",
    "guide": _guide,
    "construct": _construct,
    "check": _check,
    "trigger": _trigger,
    "write_episode": _episodes,
    "finish": lambda _: "the turns are done",
    "think": _think,
    "reason": _reason,
    "answer": _answer,
    "present": _answer,
    "find_waiting": lambda update: f"{_count(len(update['waiting']), 'turn')} still to be read",
    "catch_up": lambda _: "the turns that waited are read",
    "close_episode": _episodes,
    "apply_episode": lambda update: f"{_count(len(update['result']['episodes']), 'episode')} stored",
    "look_up": lambda update: f"evidence looked up for {_count(len(update['asked']), 'probe')}",
    "grade": lambda update: f"{_count(len(update['failed']), 'probe')} failed",
    "write_repair": lambda update: f"{_count(len(update.get('written') or []), 'repair')} written so far",
    "roll_back": lambda update: "; ".join(update["warnings"]) or "every repair helped",
    "maintain": _maintained,
    "commit": _committed,
}


USER = "demo"

QUESTIONS = (
    "Where does Tomas live now?",
    "What does Tomas work as?",
    "When did Nora start her pottery class?",
    "What is Nora's dog called?",
    "Who hiked up Ulriken with Tomas?",
    "Which things did Nora make in her pottery class?",
    "When is Ines moving to Madrid?",
    "What is Nora allergic to?",
    "What car does Ines drive?",
)
"""Among them a contradicted fact, relative dates, a list, and one that memory holds no answer to."""

_EXAMINED = ("probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged")


@dataclass(frozen=True)
class Step:
    """What one node decided.

    Attributes:
        graph: `remember`, `session` or `recall`.
        about: The session, or the question.
    """

    graph: str
    about: str
    node: str
    words: str


def conversation() -> Conversation:
    """The conversation of the demonstration."""
    text = (files("memcycle") / "demo.jsonl").read_text("utf-8")
    return read_jsonl(text, zone=UTC, name="demo")


def remember(memory: Memory) -> Iterator[Step]:
    """Remembers the conversation, a session a chunk; gives a step for each node as it ends."""
    for session in conversation().sessions:
        context = Context(user=USER, session=session.name)
        turns = [turn.model_dump(mode="json") for turn in session.turns]
        yield from _steps(memory, "remember", {"turns": turns}, context, session.name)
        yield from _steps(memory, "session", {}, context, session.name)


def ask(memory: Memory, question: str) -> Iterator[Step | Answer]:
    """Answers a question; gives a step for each node as it ends, then the answer."""
    steps = _steps(memory, "recall", {"question": question}, Context(user=USER), question)
    answer = yield from steps
    yield Answer(**answer["answer"], usage=answer.get("usage") or {})


def _steps(memory: Memory, graph: str, value: dict[str, Any], context: Context, about: str) -> Any:
    """Runs a graph: yields its steps, returns its output."""
    output: dict[str, Any] = {}
    scope = Scope(user=USER).within(context.session or "main")
    stream = memory.graphs[graph].stream(value, context=context, stream_mode=["updates", "values"])
    for mode, data in stream:
        if mode == "values":
            output = data
            continue
        for node, update in data.items():
            yield Step(graph, about, node, narrate(node, update or {}, memory.bank, scope))
    return output


def examined(memory: Memory) -> list[SessionDetail]:
    """The sessions, each with what it was examined with when it ended."""
    return [memory.session(one.session, user=USER) for one in memory.sessions(user=USER)]


def summary(memory: Memory, answers: list[Answer]) -> dict[str, Any]:
    """What is stored now and what was answered, as `memcycle demo --json` prints it."""
    scope = memory.scope(USER)
    stored = memory.bank.count(scope)
    superseded = memory.bank.count(scope, statuses=("superseded", "forgotten"))
    return {
        "turns": stored.get("raw", 0),
        "facts": stored.get("fact", 0),
        "episodes": stored.get("episode", 0),
        "refreshed": superseded.get("fact", 0),
        "examined": {
            name: sum(getattr(one, name) for one in memory.sessions(user=USER)) for name in _EXAMINED
        },
        "questions": [
            {
                "question": answer.question,
                "answer": answer.answer,
                "answerable": answer.answerable,
                "evidence": [
                    item.model_dump(mode="json", include={"id", "granularity", "text", "turns"})
                    for item in answer.evidence
                ],
            }
            for answer in answers
        ],
    }
