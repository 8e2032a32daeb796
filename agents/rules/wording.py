"""The statements of a turn as self-contained third-person sentences."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memcycle.agents.rules.statements import Stance, Statement, elliptic, plain_statements, statements
from memcycle.agents.rules.third_person import possessive, third_person
from memcycle.agents.views import TurnView
from memcycle.core.entry import same_text
from memcycle.core.language.date_forms import Reading, end_of
from memcycle.core.language.dates import read_dates
from memcycle.core.language.questions import question_language
from memcycle.core.language.tokens import per_text, word_set

_PHOTO = re.compile(
    r"^(?:a|an|the)\s+(?:close\s*up\s+)?(?:photo|photography|picture|image|drawing|painting"
    r"|screenshot|poster)\b",
    re.IGNORECASE,
)
_KIN = (
    r"brother|sister|mother|mom|mum|father|dad|son|daughter|wife|husband|partner|girlfriend"
    r"|boyfriend|fiance|fiancee|friend|cousin|aunt|uncle|niece|nephew|grandma|grandmother"
    r"|grandpa|grandfather|boss|colleague|coworker|teammate|roommate|neighbor|neighbour|dog"
    r"|cat|puppy|kitten|pup|horse|hamster|rabbit|parrot|turtle|coach|mentor|therapist"
    r"|teacher"
)
_OWNED = re.compile(
    rf"\b[Mm]y\s+(?:(?P<how>\w+)\s+)?(?P<noun>{_KIN}),?\s+" r"(?P<name>[A-Z][a-z]+)\b(?!['’])"
)
_APPOSITIVE = re.compile(
    r"\b(?P<name>[A-Z][a-z]+(?:\s[A-Z][a-z]+)?),\s+(?P<what>(?:an?|the"
    r"|my)\s+(?:[\w'’-]+\s+){0,5}?[\w'’-]+)(?=,\s+(?:who|is|was|has|will|and|\w+ed|\w+s)\b"
    r"|[.!;]|,\s*$)"
)
_NOT_NAMES = word_set(
    """
    The A An I It We He She They This That And But So Then Now Also January February March April May
    June July August September October November December Monday Tuesday Wednesday Thursday Friday
    Saturday Sunday Thanks Wow
    """
)  # fmt: skip
_ENGLISH = re.compile(r"\b(?:the|and|is|my|you|it|to|of|with|this|that|have)\b|\bI['’]", re.IGNORECASE)
MAX_GLUED, LEAST_FOREIGN_WORDS = 22, 6


class Worded(NamedTuple):
    """A third-person statement beside the span of the turn it words.

    `extra` marks what was drawn out of a larger statement (an appositive), which stands on its own too.
    """

    begin: int
    end: int
    text: str
    stance: Stance
    extra: bool = False


@per_text(2048)
def worded(text: str, speaker: str, listener: str | None = None) -> tuple[Worded, ...]:
    """The statements of a turn, each self-contained, in order and without repetition.

    A sentence that leans on the one before ("It was ...") is joined to it; where there is none, or the
    two grow too long, and for statements about the world, the speaker is said to have said so. Text
    that is not English is kept as said, after the speaker's name.

    Cached: a turn is read by several roles, and again whenever it is a candidate.
    """
    if not _is_english(text):
        return tuple(Worded(s.begin, s.end, f"{speaker}: {s.text}", s.stance) for s in plain_statements(text))
    found: list[Worded] = []
    for statement in statements(text):
        last = next((w for w in reversed(found) if not w.extra), None)
        if statement.stance == "pronoun" and last is not None and last.stance in ("own", "elliptic", "said"):
            joined = f"{last.text.rstrip('.!')}. {_closed(third_person(statement.text, speaker, listener))}"
            if len(joined.split()) <= MAX_GLUED:
                found[found.index(last)] = last._replace(end=statement.end, text=joined)
                continue
        found.append(
            Worded(statement.begin, statement.end, _wording(statement, speaker, listener), statement.stance)
        )
        found += _asides(statement, speaker)
    unique: dict[str, Worded] = {}
    for item in found:
        unique.setdefault(same_text(item.text), item)
    return tuple(unique.values())


def _is_english(text: str) -> bool:
    """Whether the rules of English apply. Short Latin texts show too little to say otherwise."""
    if question_language(text) == "en" or _ENGLISH.search(text):
        return True
    return text.isascii() and len(text.split()) < LEAST_FOREIGN_WORDS


def listener_of(speaker: str, turns: Sequence[TurnView]) -> str | None:
    """Who is spoken to: the other person of a talk of two, else None."""
    others = {turn.speaker for turn in turns if turn.role in ("human", "ai")} - {speaker}
    humans = {turn.speaker for turn in turns if turn.role == "human"} - {speaker}
    return humans.pop() if len(others) == len(humans) == 1 else None


def said_of(item: Worded, turn: TurnView) -> Reading | None:
    """When what a statement tells happened: its first exact time expression, else its first one."""
    if item.extra:
        return None
    inside = [
        reading for reading in read_dates(turn.text, turn.time) if item.begin <= reading.begin < item.end
    ]
    return next((reading for reading in inside if not reading.approximate), inside[0] if inside else None)


def true_until(item: Worded, turn: TurnView) -> datetime:
    """The latest moment a statement can speak of: the end of its period, at most when it was said.

    "moved in 2010" is no news about a home that was named in 2020.
    """
    reading = said_of(item, turn)
    return turn.time if reading is None else min(turn.time, end_of(reading.start, reading.precision))


def _wording(statement: Statement, speaker: str, listener: str | None) -> str:
    text = statement.text
    if statement.stance == "caption":
        shown = text[0].lower() + text[1:]
        return f"{speaker} shared {shown if _PHOTO.match(text) else f'an image: {shown}'}."
    if statement.stance == "rule":
        return f"{speaker} asked: {_closed(text)}"
    if statement.stance == "elliptic":
        prefix = elliptic(text) or "I "
        return _closed(third_person(prefix + _lower_first(text), speaker, listener))
    if statement.stance == "own":
        return _closed(third_person(text, speaker, listener))
    return f"{speaker} said {_lower_first(_closed(third_person(_lower_first(text), speaker, listener)))}"


def _asides(statement: Statement, speaker: str) -> list[Worded]:
    """What a statement says in passing: "my brother Tom", "Anna, a nurse, ..."."""
    if statement.stance == "caption":
        return []
    texts = []
    for match in _OWNED.finditer(statement.text):
        if match["name"] not in _NOT_NAMES:
            how = f"{match['how']} " if match["how"] else ""
            texts.append(f"{match['name']} is {possessive(speaker)} {how}{match['noun']}.")
    for match in _APPOSITIVE.finditer(statement.text):
        if match["name"] not in _NOT_NAMES:
            texts.append(f"{match['name']} is {third_person(match['what'], speaker)}.")
    return [Worded(statement.begin, statement.end, text, "own", extra=True) for text in texts]


def _lower_first(text: str) -> str:
    first = text.split(maxsplit=1)[0]
    proper = (
        first == "I"
        or first.startswith(("I'", "I’"))
        or first.isupper()
        or any(c.isupper() for c in first[1:])
    )
    return text if proper else text[0].lower() + text[1:]


def _closed(text: str) -> str:
    """The sentence with a capital and one full stop."""
    trimmed = text.strip().rstrip(".!…,;:-–— ")
    return f"{trimmed[:1].upper()}{trimmed[1:]}."
