"""Wh-questions about a statement, each with the words of the statement that answer it."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memcycle.agents.rules.clauses import Clause
from memcycle.agents.rules.phrases import (
    DETERMINERS,
    LEAST_ANSWER,
    MOST_ANSWER,
    PEOPLE,
    PREPOSITIONS,
    WORD,
    closes,
    cut,
    dangles,
    names_people,
)
from memcycle.agents.rules.verb_groups import Step
from memcycle.agents.rules.verbs import BASE, is_adverb
from memcycle.core.language.date_forms import NUMBERS
from memcycle.core.language.tokens import word_set

_GOING = word_set("go come move travel head drive fly hike walk run return get")
_STAYING = word_set("live work stay study volunteer teach meet camp stop perform play grow")
_DOING = word_set("start begin keep try stop finish quit consider continue end")
_MAKING = word_set("build start have create raise")
_SAYING = word_set(
    """
    think know say believe guess hope feel bet wish realize realise mean remember see hear wonder understand
    tell agree notice learn forget find ask admit hate imagine figure swear
    """
)
_GIVING = word_set("give send show tell teach buy offer lend bring cook make write get")
_LINKING = word_set("be become get seem look sound taste smell remain stay turn go feel")
_NO_OBJECT = word_set(
    """
    alright well great good fine okay ok better best more less hard fast early late home busy happy sad safe
    calm close free open quiet sure strong positive optimistic alone there here
    """
)
_COUNTS = frozenset(NUMBERS) - {"a", "an", "one"}
_SPAN_UNITS = r"(?:minutes?|hours?|days?|nights?|weeks?|weekends?|months?|years?|decades?)"
_SPAN = re.compile(
    rf"\bfor\s+(?:about\s+|almost\s+|over\s+|nearly\s+|the\s+(?:last|past)\s+)?(?:{'|'.join(sorted(_COUNTS))}"
    rf"|an?|one|\d+|several)\s+{_SPAN_UNITS}$",
    re.IGNORECASE,
)
_NO_NOUN = word_set("how what why whether if when where that like as by than")
_RECEIVER = re.compile(r"(?P<who>[A-Z][\w-]*(?:['’]s?\s+\w+)?(?:\s+and\s+others)?)\s+(?=(?P<next>[\w'’]+))")
_PAUSE = re.compile(r"[.;!]|\s+(?:but|so)\s+|\s+-+\s*|,\s+(?=\w+ing\b)")
_OPEN = re.compile(r"\b(?:I|you|this)\b")
_BECAUSE = re.compile(r"^(?:just\s+)?because\s+(?!of\b)", re.IGNORECASE)
MOST_ASKED = 12
"""Words that a question says after its verb."""


class Asked(NamedTuple):
    """A question and its answer. `at_end`: a time can be put after the question's words."""

    question: str
    answer: str
    at_end: bool = True


def wh_questions(clause: Clause) -> Iterator[Asked]:
    """Questions about a clause, the most telling first: how many, how long, what, who, where, why."""
    for step in reversed(clause.steps):
        yield from _counted(clause, step)
        yield from _lasting(clause, step)
        if (asked := _about_step(clause, step)) is not None:
            yield asked
    if clause.copula and clause.steps and not clause.steps[-1].verbs:
        yield from _identity(clause)
    yield from _reason(clause)


def when_question(clause: Clause) -> str | None:
    """The question when it happened, with its details; None for lasting states and where much dangles."""
    if not clause.steps or clause.auxiliary in {"has", "have"}:
        return None
    if clause.copula and clause.auxiliary in {"is", "are"}:
        return None
    step = clause.steps[-1]
    if (step.last in _SAYING or step.last in {"love", "like", "want", "need"}) and len(clause.steps) == 1:
        return None
    rest = cut(step.rest, MOST_ASKED)
    if rest is None or dangles(f"{step.verbs} {rest}", clause.subject):
        return None
    return clause.asks("When", f"{step.verbs} {rest}".strip())


def _answer(clause: Clause, step: Step, gap: str) -> str | None:
    """The gap as far as it makes a phrase; the whole clause where the gap is a mere keyword."""
    short = cut(gap, MOST_ANSWER)
    if short is None or not closes(short) or dangles(short, clause.subject):
        return None
    if len(short.split()) >= LEAST_ANSWER:
        return short
    whole = clause.core[: clause.core.rfind(step.rest)] + step.rest[: step.rest.find(gap)] + short
    return None if len(whole.split()) > MOST_ANSWER or dangles(whole, clause.subject) else whole


def _asked(clause: Clause, step: Step, opening: str, ending: str, gap: str) -> Asked | None:
    answer = _answer(clause, step, gap)
    if answer is None or dangles(ending, clause.subject):
        return None
    return Asked(clause.asks(opening, ending.strip()), answer)


def _about_step(clause: Clause, step: Step) -> Asked | None:
    """The question for what follows the verb group at this step."""
    words = WORD.findall(step.rest)
    if not words or not step.verbs or _no_object(clause, step, words):
        return None
    first = words[0].lower()
    infinitive = step is not clause.steps[-1] or (words[1:2] and words[1] in BASE and step.last not in _GOING)
    if first == "to" and len(words) > 1 and infinitive:
        return _asked(clause, step, "What", f"{step.verbs} to do", step.rest.split(maxsplit=1)[1])
    if first.endswith("ing") and step.last in _DOING and step.verbs.split()[-1] != "out":
        return _asked(clause, step, "What", f"{step.verbs} doing", step.rest)
    if words[0] in PREPOSITIONS:
        return _after_preposition(clause, step, first)
    if step.last == "feel" and first not in DETERMINERS:
        return _asked(clause, step, "How", step.verbs, step.rest)
    return _object(clause, step, words)


def _no_object(clause: Clause, step: Step, words: Sequence[str]) -> bool:
    """Whether what follows the verb is an adverb, an adjective or too little to ask for."""
    first, following = words[0].lower(), words[1].lower() if words[1:] else ""
    noun = first in DETERMINERS | _COUNTS or words[0][0].isupper()
    adverb = first in _NO_OBJECT and following in PREPOSITIONS | {"", "to", "and", "or"}
    gerund = first.endswith("ing") and (clause.copula or step.last == "go")
    complement = step.last in _LINKING and not noun and first not in PREPOSITIONS and step.last != "feel"
    waits = step.last == "wait" and (clause.negated or first not in PREPOSITIONS)
    opens = step.rest[0].isalnum() or step.rest[0] in '"“'
    joined = first in {"and", "or", "but"} or (step.last == "do" and first not in PREPOSITIONS)
    return adverb or gerund or complement or waits or joined or not opens or is_adverb(first)


def _after_preposition(clause: Clause, step: Step, first: str) -> Asked | None:
    _, _, phrase = step.rest.partition(" ")
    opener = phrase.split()[0].lower() if phrase.split() else ""
    verb = first in {"to", "toward", "towards"} and opener in {"be", "get", "go", "do", "have", "see"}
    if WORD.match(phrase) is None or opener in PREPOSITIONS or verb or _SPAN.search(step.rest):
        return None
    place = (step.last in _GOING and first == "to") or (
        step.last in _GOING | _STAYING and first in {"in", "at", "near", "around"}
    )
    if place and not clause.copula and not names_people(_head(phrase)):
        return _asked(clause, step, "Where", step.verbs, step.rest)
    return _asked(clause, step, _what(phrase), f"{step.verbs} {first}", phrase)


def _object(clause: Clause, step: Step, words: Sequence[str]) -> Asked | None:
    """What or whom the verb takes; with "gave Ana a ring" the question names Ana."""
    first = words[0].lower()
    said = step.last in _SAYING and not _owner(words[0]) and first not in DETERMINERS
    if said or first in _NO_NOUN:
        return None
    receiver = _RECEIVER.match(step.rest)
    if receiver and receiver["next"].lower() not in PREPOSITIONS:
        given = step.rest[receiver.end() :]
        if step.last in _GIVING and receiver["next"].lower() in DETERMINERS | _COUNTS:
            return _asked(clause, step, "What", f"{step.verbs} {receiver['who']}", given)
        if not any(map(_owner, receiver["who"].split())):
            return None
    return _asked(clause, step, _what(step.rest, step.last), step.verbs, step.rest)


def _owner(word: str) -> bool:
    return re.search(r"['’]s?$", word) is not None


def _head(phrase: str) -> str:
    """The noun phrase before the first preposition or "who"."""
    return re.split(r",|\s+(?:in|on|at|to|from|with|for|of|about|who|that|by|during|and)\b", phrase)[0]


def _what(phrase: str, verb: str = "") -> str:
    head = _head(re.sub(r"^(?:some|all|many|most|one)\s+of\s+", "", phrase)).split()
    made = verb in _MAKING and head[-1:] == ["family"]
    return "Who" if head and head[-1].lower() in PEOPLE and not made else "What"


def _counted(clause: Clause, step: Step) -> Iterator[Asked]:
    """How many: a number right after the verb, with its noun."""
    match = re.match(
        rf"(?:(?:{'|'.join(sorted(_COUNTS))})|\d+)\s+(?P<what>(?:[\w'’-]+\s+)?[\w'’-]+s)\b", step.rest
    )
    if match is None or not step.verbs or re.search(rf"{_SPAN_UNITS}$|times$|ago\b", match["what"]):
        return
    after = cut(step.rest[match.end() :].split(",")[0], 6)
    whole = cut(f"{clause.core[: clause.core.rfind(step.rest)]}{step.rest}", MOST_ANSWER)
    if after is not None and whole and match[0] in whole and not dangles(f"{whole} {after}", clause.subject):
        yield Asked(clause.asks(f"How many {match['what']}", f"{step.verbs} {after}".strip()), whole)


def _lasting(clause: Clause, step: Step) -> Iterator[Asked]:
    """How long: a span of time that closes the clause."""
    match = _SPAN.search(step.rest)
    if match is None or step is not clause.steps[-1]:
        return
    asked = f"{step.verbs} {step.rest[: match.start()].strip(' ,')}".strip()
    if asked and not dangles(asked, clause.subject) and len(clause.core.split()) <= MOST_ANSWER:
        yield Asked(clause.asks("How long", asked), clause.core, at_end=False)


def _identity(clause: Clause) -> Iterator[Asked]:
    """What somebody's dog, job or favourite is; of a person alone that would ask anything."""
    rest = clause.steps[-1].rest
    first = rest.split()[0].lower()
    answer = cut(rest, MOST_ANSWER)
    noun = first not in PREPOSITIONS and (first in DETERMINERS or rest[0].isupper())
    if noun and any(map(_owner, clause.subject.split())) and answer and not clause.negated:
        keyword = len(answer.split()) < LEAST_ANSWER
        full = f"{clause.subject} {clause.auxiliary} {answer}" if keyword else answer
        if not dangles(answer, clause.subject):
            yield Asked(clause.asks(_what(rest), ""), full)


def _reason(clause: Clause) -> Iterator[Asked]:
    """Why: a clause with "because"; its pronouns speak of what the question names."""
    step = clause.steps[-1]
    asked = cut(step.rest, MOST_ASKED)
    if not _BECAUSE.match(clause.tail) or not asked or dangles(f"{step.verbs} {asked}", clause.subject):
        return
    reason = cut(_PAUSE.split(clause.tail)[0], MOST_ANSWER) or ""
    if len(reason.split()) >= LEAST_ANSWER and closes(reason) and not _OPEN.search(reason):
        yield Asked(clause.asks("Why", f"{step.verbs} {asked}".strip()), reason, at_end=False)
