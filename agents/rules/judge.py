"""Judge and fact judge without a model (AMA 3.3): shared words, the asked kind, slots that conflict.

It is weak on meaning: on questions it is little better than letting all pass.
"""

from collections.abc import Sequence
from datetime import datetime

from memcycle.agents.fact_judge import FactJudgeInput, FactJudgeOutput, FactVerdict, NewFact
from memcycle.agents.judge import Conflict, JudgeInput, JudgeOutput
from memcycle.agents.rules.content import Stated, content, denies, numbers, says_all, share
from memcycle.agents.rules.evidence import ParsedQuestion, Passage, passages, read_question, speakers_of
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import is_news, statements_of
from memcycle.agents.views import MemoryView
from memcycle.core.language.dates import read_dates, without
from memcycle.core.language.names import person_names
from memcycle.core.language.sentences import corrects

RELEVANT, RELEVANT_TURN, ANSWERING, SUPPORTED = 0.34, 0.25, 0.5, 0.5
"""Share of the words of a question, of a turn, of what is asked, and of a fact, that must be held."""
LEAST_SHARED = 2
_MISSING = {
    "who": "a person",
    "when": "a date or time",
    "where": "a place",
    "how_many": "a number",
    "how_long": "a duration",
}


def judge(value: JudgeInput) -> JudgeOutput:
    """Verdicts on the candidates of a chunk's turns or of a question."""
    if value.purpose == "remember":
        topics = [words for item in value.items if (words := content(item.text))]
        near = [memory.n for memory in value.candidates if _near(memory, topics)]
        return JudgeOutput(relevant=near, conflicts=_conflicts_with_turns(value), sufficient=True)
    question = value.items[0].text if value.items else ""
    speakers = speakers_of(value.candidates, value.window)
    parsed = read_question(question, speakers, value.now)
    texts = [parsed.words, *(read_question(query, speakers, value.now).words for query in value.queries)]
    kept = [
        memory
        for memory in value.candidates
        if any(share(words, content(memory.text)) >= RELEVANT for words in texts)
    ]
    sufficient = any(answers(parsed, one) for one in passages(parsed, kept))
    return JudgeOutput(
        relevant=[memory.n for memory in kept],
        conflicts=_conflicts_among(kept),
        sufficient=sufficient,
        missing="" if sufficient else f"{_MISSING.get(parsed.slot, 'a statement')} that answers: {question}",
    )


def answers(parsed: ParsedQuestion, one: Passage) -> bool:
    """Whether a sentence is about what is asked and shows a value of the asked kind."""
    if one.person == 0 or one.cover < ANSWERING:
        return False
    named = parsed.wants_kind or parsed.slot in ("who", "where")
    return one.kind if named else bool(content(one.text) - parsed.words)


def _near(memory: MemoryView, topics: Sequence[frozenset[str]]) -> bool:
    held = content(memory.text)
    return any(share(words, held) >= RELEVANT_TURN or len(words & held) >= LEAST_SHARED for words in topics)


def when(memory: MemoryView) -> datetime | None:
    """When what a memory says was so."""
    return memory.event_time or memory.time


def claims_of(memory: MemoryView) -> list[str]:
    """The statements of a memory: of a turn those a person made, of a fact itself; an episode makes none."""
    if memory.granularity == "raw":
        human = memory.role in (None, "human")
        return [statement.text for statement in statements_of(memory.text)] if human else []
    return [memory.text] if memory.granularity == "fact" else []


def untrue_by(text: str, speaker: str | None, memory: MemoryView) -> str | None:
    """Why a new statement makes one of a memory untrue, None where it does not."""
    whys = (contradiction(text, speaker, claim, memory.speaker) for claim in claims_of(memory))
    return next(filter(None, whys), None)


def _conflicts_with_turns(value: JudgeInput) -> list[Conflict]:
    found: dict[int, Conflict] = {}
    new = [
        (turn, statement.text)
        for turn in value.items
        if turn.role == "human"
        for statement in statements_of(turn.text)
    ]
    for memory in (memory for memory in value.candidates if memory.current):
        for turn, text in new:
            if is_news(text, turn.time, memory) and (why := untrue_by(text, turn.speaker, memory)):
                found.setdefault(memory.n, Conflict(memory=memory.n, turn=turn.n, why=why))
    return list(found.values())


def _conflicts_among(memories: Sequence[MemoryView]) -> list[Conflict]:
    """Pairs of stored memories of which the later contradicts the earlier."""
    dated = sorted((time, memory.n, memory) for memory in memories if (time := when(memory)) is not None)
    told = [(memory, claims_of(memory)) for _, _, memory in dated]
    found: dict[int, Conflict] = {}
    for place, (older, old) in enumerate(told):
        for newer, new in told[place + 1 :]:
            whys = (contradiction(one, newer.speaker, two, older.speaker) for one in new for two in old)
            if why := next(filter(None, whys), None):
                found[older.n] = Conflict(memory=older.n, other=newer.n, why=why)
                break
    return list(found.values())


def fact_judge(value: FactJudgeInput) -> FactJudgeOutput:
    """Support of each new fact in its turn, and how it stands to its nearest stored facts."""
    return FactJudgeOutput(verdicts=[_verdict(fact) for fact in value.facts])


def _verdict(fact: NewFact) -> FactVerdict:
    if why := unsupported(fact):
        return FactVerdict(n=fact.n, supported=False, why=why)
    speaker = fact.speaker or fact.turn.speaker
    new = Stated(fact.text, speaker, fact.turn.time, fact.event_time)
    facts = [memory for memory in fact.near if memory.granularity == "fact"]
    for memory in facts:
        if says_all(Stated.of(memory), new):
            return FactVerdict(
                n=fact.n, supported=True, relation="duplicate", near=memory.n, why="the same statement"
            )
    until = fact.event_time or fact.turn.time
    for memory in facts:
        earlier = when(memory)
        reason = contradiction(fact.text, speaker, memory.text, memory.speaker)
        if reason and (earlier is None or earlier <= until or corrects(fact.text)):
            return FactVerdict(n=fact.n, supported=True, relation="conflict", near=memory.n, why=reason)
    return FactVerdict(n=fact.n, supported=True)


def unsupported(fact: NewFact) -> str:
    """Why the cited turn does not carry the fact, '' when it does; names and times are forgiven."""
    turn = fact.turn
    if turn.role != "human":
        return "not said by a person"
    if fact.text in turn.text:
        return ""
    names = content(" ".join([turn.speaker, *person_names(fact.text, [turn.speaker])]))
    plain = without(fact.text, read_dates(fact.text, turn.time))
    wanted, held = content(plain) - names, content(turn.text)
    if numbers(plain) - numbers(turn.text):
        return "a number that was not said"
    if denies(fact.text) and not denies(turn.text):
        return "the turn does not deny it"
    return "" if not wanted or share(wanted, held) >= SUPPORTED else "too few of its words were said"
