"""Judge without a model: word overlap, asked slots, and contradictions on sure patterns (AMA 3.3).

Weak at sufficiency by nature (design section 5): the graphs let rules retry once at most.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime

from memcycle.agents.fact_judge import FactJudgeInput, FactJudgeOutput, FactVerdict, NewFact
from memcycle.agents.judge import Conflict, JudgeInput, JudgeOutput
from memcycle.agents.rules.contradiction import contradiction
from memcycle.agents.rules.labels import locations_of
from memcycle.agents.rules.verbs import is_finite
from memcycle.agents.rules.wording import listener_of, true_until, worded
from memcycle.agents.views import MemoryView
from memcycle.core.entry import same_text
from memcycle.core.language.dates import read_dates
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import Slot, asked_slot
from memcycle.core.language.tokens import STOPWORDS, by_concept, content_stems, distinct_stems, stems

RELEVANT, RELEVANT_TURN, ANSWERING = 0.34, 0.25, 0.5
SUPPORTED = 0.5
LEAST_SHARED, LEAST_PART, MOST_EXTRA = 2, 4, 2
_NUMBER = re.compile(
    r"\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|once"
    r"|twice|couple|several)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|no|nobody|nothing|cannot|without|hardly)\b|n['’]t\b", re.IGNORECASE)
_ASKING = frozenset(stems("many much long often kind type name call mention say said tell does did"))
WORDING = frozenset(
    stems(
        "said say asked shared other others photo image also just really very so quite "
        "currently recently today yesterday"
    )
)
_OTHERS = re.compile(
    r"\b(?:you|your|yours|he|she|they|his|her|hers|their|him|them)\b|\byou['’]", re.IGNORECASE
)
_MISSING = {
    "who": "a person",
    "when": "a date or time",
    "where": "a place",
    "how_many": "a number",
    "how_long": "a duration",
}


def judge(value: JudgeInput) -> JudgeOutput:
    """Verdicts on the candidates of a chunk's turns or of a question."""
    speakers = _speakers(value)
    texts = [item.text for item in value.items] + list(value.queries)
    topics = [topic for text in texts if (topic := _topic(text, speakers))]
    turns = value.purpose == "remember"
    relevant = [memory.n for memory in value.candidates if _relevant(memory, topics, turns=turns)]
    if turns:
        return JudgeOutput(relevant=relevant, conflicts=_conflicts_with_turns(value), sufficient=True)
    kept = [memory for memory in value.candidates if memory.n in relevant]
    question = value.items[0].text if value.items else ""
    slot = asked_slot(question)
    sufficient = any(_answers(slot, question, memory, speakers) for memory in kept)
    missing = "" if sufficient else f"{_MISSING.get(slot, 'a statement')} that answers: {question}"
    return JudgeOutput(
        relevant=relevant, conflicts=_conflicts_among(kept), sufficient=sufficient, missing=missing
    )


def _speakers(value: JudgeInput) -> list[str]:
    names = [turn.speaker for turn in [*value.window, *(value.items if value.purpose == "remember" else [])]]
    names += [memory.speaker for memory in value.candidates if memory.speaker]
    return list(dict.fromkeys(names))


def _topic(text: str, names: Sequence[str]) -> frozenset[str]:
    """Content stems without names and words of asking, folded by concept."""
    return by_concept(set(content_stems(text)) - {stem for name in names for stem in stems(name)} - _ASKING)


def _relevant(memory: MemoryView, topics: Sequence[frozenset[str]], *, turns: bool) -> bool:
    """Whether a memory shares enough with one of the topics, of turns or of a question and its queries."""
    held = by_concept(distinct_stems(memory.text))
    least = RELEVANT_TURN if turns else RELEVANT
    return any(
        (shared := len(topic & held)) / len(topic) >= least or (turns and shared >= LEAST_SHARED)
        for topic in topics
    )


def _answers(slot: Slot, question: str, memory: MemoryView, speakers: Sequence[str]) -> bool:
    """Whether a memory is about the question and holds a value of the asked kind."""
    asked = _topic(question, speakers)
    held = by_concept(distinct_stems(memory.text))
    named = person_names(question, speakers)
    about = not named or any(
        same_person(name, memory.speaker) or person_names(memory.text, [name])[:1] == [name] for name in named
    )
    if not asked or not about or len(asked & held) < ANSWERING * len(asked):
        return False
    if slot == "when":
        return memory.event_time is not None or bool(memory.time and read_dates(memory.text, memory.time))
    if slot == "who":
        return any(name not in named for name in person_names(memory.text, speakers)) or not named
    if slot == "where":
        return bool(locations_of(memory.text, [*named, *speakers]))
    if slot in ("how_many", "how_long"):
        return _NUMBER.search(memory.text) is not None
    return bool(set(content_stems(memory.text)) - asked)


def _claims_of(memory: MemoryView) -> list[str]:
    """A stored memory as third-person statements."""
    if memory.granularity == "raw":
        if memory.speaker is None or memory.role not in (None, "human"):
            return []
        return [item.text for item in worded(memory.text, memory.speaker)]
    return [memory.text] if memory.granularity == "fact" else []


def _when(memory: MemoryView) -> datetime | None:
    return memory.event_time or memory.time


def _conflicts_with_turns(value: JudgeInput) -> list[Conflict]:
    stored = [(memory, _claims_of(memory)) for memory in value.candidates if memory.current]
    found: dict[int, Conflict] = {}
    talk = [*value.window, *value.items]
    for turn in (item for item in value.items if item.role == "human"):
        said = worded(turn.text, turn.speaker, listener_of(turn.speaker, talk))
        new = [(item.text, true_until(item, turn)) for item in said]
        for memory, claims in stored:
            why = _why(new, memory, claims)
            if why and memory.n not in found:
                found[memory.n] = Conflict(memory=memory.n, turn=turn.n, why=why)
    return list(found.values())


def _why(new: Sequence[tuple[str, datetime]], memory: MemoryView, claims: Sequence[str]) -> str | None:
    """Why a statement, true until a moment, contradicts a memory that is not younger than it, else None."""
    earlier = _when(memory)
    for text, until in new:
        if earlier is None or earlier <= until:
            why = next((why for claim in claims if (why := contradiction(text, claim))), None)
            if why:
                return why
    return None


def _conflicts_among(memories: Sequence[MemoryView]) -> list[Conflict]:
    """Pairs of stored memories of which the later contradicts the earlier."""
    dated = sorted(
        ((when, memory.n, memory, _claims_of(memory)) for memory in memories if (when := _when(memory))),
        key=lambda item: item[:2],
    )
    found: dict[int, Conflict] = {}
    for place, (_, _, older, claims) in enumerate(dated):
        for _, _, newer, statements in dated[place + 1 :]:
            why = next(
                (why for new in statements for old in claims if (why := contradiction(new, old))), None
            )
            if why and older.n not in found:
                found[older.n] = Conflict(memory=older.n, other=newer.n, why=why)
    return list(found.values())


def fact_judge(value: FactJudgeInput) -> FactJudgeOutput:
    """Support of each new fact in its turn, and how it stands to its nearest stored facts."""
    return FactJudgeOutput(verdicts=[_verdict(fact) for fact in value.facts])


def _verdict(fact: NewFact) -> FactVerdict:
    why = unsupported(fact)
    if why:
        return FactVerdict(n=fact.n, supported=False, why=why)
    facts = [memory for memory in fact.near if memory.granularity == "fact"]
    for memory in facts:
        if same_statement(fact, memory):
            return FactVerdict(
                n=fact.n, supported=True, relation="duplicate", near=memory.n, why="the same statement"
            )
    new_time = fact.event_time or fact.turn.time
    for memory in facts:
        earlier = _when(memory)
        if (earlier is None or earlier <= new_time) and (reason := contradiction(fact.text, memory.text)):
            return FactVerdict(n=fact.n, supported=True, relation="conflict", near=memory.n, why=reason)
    return FactVerdict(n=fact.n, supported=True)


def unsupported(fact: NewFact) -> str:
    """Why the cited turn does not carry the fact, '' when it does.

    Names, pronouns, dates and words of reporting are forgiven; numbers and negation are not.
    """
    turn = fact.turn
    if turn.role != "human":
        return "not said by a person"
    named = person_names(fact.text, [turn.speaker])
    about = _subject(fact.text) or (named[0] if named else "")
    known = (
        same_person(about, turn.speaker)
        or _OTHERS.search(turn.text)
        or about.casefold() in turn.text.casefold()
    )
    if not known:
        return f"the turn is not about {about}"
    plain = _undated(fact.text, turn.time)
    names = {stem for name in [*named, turn.speaker] for stem in stems(name)}
    wanted, held = set(content_stems(plain)) - names - WORDING, distinct_stems(turn.text)
    numbers = set(re.findall(r"\d+", plain)) - set(re.findall(r"\d+", turn.text))
    if numbers and not _NUMBER.search(turn.text):
        return "a number that was not said"
    if (
        _NEGATION.search(fact.text)
        and not _NEGATION.search(turn.text)
        and wanted
        and wanted <= held | {"not", "no"}
    ):
        return "the turn does not deny it"
    return (
        ""
        if not wanted or len(wanted & held) >= SUPPORTED * len(wanted)
        else "too few of its words were said"
    )


def _subject(text: str) -> str:
    """The capitalised word a statement opens with, where a verb follows; else ''."""
    first, following = [*re.findall(r"[\w-]+", text)[:2], "", ""][:2]
    opens = first[:1].isupper() and first.casefold() not in STOPWORDS and is_finite(following.lower())
    return first if opens else ""


def _undated(text: str, time: datetime) -> str:
    for reading in reversed(read_dates(text, time)):
        text = text[: reading.begin] + " " + text[reading.end :]
    return text


def same_statement(fact: NewFact, memory: MemoryView) -> bool:
    """Whether a stored fact says all that the new one says: numbers, negation and time included."""
    days, known_days = (
        _days(fact.text, fact.turn.time, fact.event_time),
        _days(memory.text, memory.time or fact.turn.time, memory.event_time),
    )
    if days and known_days and days != known_days:
        return False  # another occasion, even in the same words
    if same_text(fact.text) == same_text(memory.text):
        return True
    if days and not known_days:
        return False
    new, old = _undated(fact.text, fact.turn.time), _undated(memory.text, memory.time or fact.turn.time)
    if _numbers(new) != _numbers(old) or bool(_NEGATION.search(new)) != bool(_NEGATION.search(old)):
        return False
    left, right = set(content_stems(new)) - WORDING, set(content_stems(old)) - WORDING
    # A subset of few words says little: "Anna likes tea" is not said by "Anna likes tea shops".
    part = len(left) >= LEAST_PART and left <= right and len(right) - len(left) <= MOST_EXTRA
    return bool(left) and (left == right or part)


def _days(text: str, said: datetime, event_time: datetime | None) -> set[date]:
    """The days a statement names, read against when it was said."""
    if event_time is not None:
        return {event_time.date()}
    return {reading.start.date() for reading in read_dates(text, said)}


def _numbers(text: str) -> set[str]:
    return {match.casefold() for match in _NUMBER.findall(text)}
