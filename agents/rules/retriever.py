"""Retriever by rules: intent by cues, K by the shape of the question, pronouns only where they are safe."""

import re
from collections.abc import Sequence
from datetime import datetime

from memcycle.agents.retriever import Intent, Plan, RetrieverInput, RetrieverOutput
from memcycle.agents.rules.decomposition import sub_questions
from memcycle.agents.views import Purpose, TurnView
from memcycle.core.language.dates import format_time, read_dates
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import asked_slot
from memcycle.core.language.tokens import content_stems

_EXACT = re.compile(
    r"\b(?:exact(?:ly)?|verbatim|word for word|literally|precise(?:ly)?|quote[ds]?|wording|phone number|"
    r"password|serial|e-?mail|url|link|code|command|how (?:many|much))\b|```|`[^`]+`|https?://|\S@\S+\.\S",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“«„][^\"”»“]{2,}[\"”»“]")
_NUMBER = re.compile(r"\d")
_LONG_NUMBER = re.compile(r"\d[\d .,:/-]{4,}\d|\d{5,}")
_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|i[sz]e)|overview|recap|in general|overall|tell me (?:about|everything)|describe|"
    r"profile|what do (?:you|we) know|everything (?:about|you)|usually|"
    r"typical(?:ly)?|tends? to|habits?|personality|"
    r"patterns?)\b",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?:what happened|what went|what did .* do (?:in|on|at|during|last|over)|how was|how did .* go|"
    r"during|throughout|between .* and|over the (?:weekend|summer|winter|week|month|year)|"
    r"what has .* been (?:up to|doing)|catch(?:ing)? up on)\b",
    re.IGNORECASE,
)
_THIRD = re.compile(r"\b(?:he|she|him|his|her|hers)\b", re.IGNORECASE)
_THIRD_POSSESSIVE = re.compile(r"\b(?:his|her)(?=\s+[a-z])|\bhers\b", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:I'm|I've|I'd|I'll|I|me|my|mine|myself)\b|\bi\b")
_VAGUE = re.compile(r"\b(?:it|that|this|there|then|they|them|those|these|one)\b", re.IGNORECASE)
_GENERIC = frozenset(("user", "assistant", "human", "ai", "system", "tool", "me", "you", "bot"))
K_SINGLE, K_WIDE, K_OVERVIEW, K_TURN = 10, 30, 40, 8
BARE = 2
"""Content stems below which a question leans on what was said before it."""
WINDOW_FOR_PRONOUNS = 4


def retriever(value: RetrieverInput) -> RetrieverOutput:
    """One plan for each item (AMA section 3.2: u', intent vector, K_dyn)."""
    plans = []
    for position, item in enumerate(value.items):
        before = [*value.window, *value.items[:position]] if value.purpose == "remember" else value.window
        plans.append(_plan(value.purpose, item, before, value.parts))
    return RetrieverOutput(plans=plans)


def _plan(purpose: Purpose, item: TurnView, before: Sequence[TurnView], parts: int) -> Plan:
    speakers = list(dict.fromkeys([turn.speaker for turn in before] + [item.speaker]))
    named = person_names(item.text, [name for name in speakers if name.casefold() not in _GENERIC])
    referent = None if named else _referent(item, before)
    intent = _intent(purpose, item.text)
    query = _rewrite(purpose, item, before, referent)
    return Plan(
        n=item.n,
        query=query,
        intent=intent,
        k=_k(purpose, item.text, intent, len(named)),
        speaker=_asked_person(purpose, item, named, referent),
        parts=sub_questions(query, named, parts) if parts else [],
    )


def _intent(purpose: Purpose, text: str) -> Intent:
    if purpose == "remember":
        # A turn is looked up to find what it repeats or changes: only copied matter needs its wording.
        fine = bool(_LONG_NUMBER.search(text) or "`" in text or re.search(r"https?://|\S@\S+\.\S", text))
        return Intent(fine=fine, abs=False, event=False, atomic=not fine)
    dated = asked_slot(text) in ("when", "how_long")
    numbers = bool(_NUMBER.search(_without_dates(text))) and not dated
    fine = bool(_EXACT.search(text) or _QUOTED.search(text) or numbers)
    overview, event = bool(_OVERVIEW.search(text)), bool(_EVENT.search(text)) and not dated
    return Intent(fine=fine, abs=overview, event=event, atomic=not (fine or overview or event))


def _without_dates(text: str) -> str:
    """The text without years and days of months, whose digits ask for no exact wording."""
    months = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*"
    return re.sub(
        rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+{months}|{months}\s+\d{{1,2}}(?:st|nd|rd|th)?|(?:19|20)\d\d)\b",
        "",
        text,
        flags=re.I,
    )


def _k(purpose: Purpose, text: str, intent: Intent, persons: int) -> int:
    if purpose == "remember":
        return K_TURN
    if intent.abs:
        return K_OVERVIEW
    wide = intent.event or asked_slot(text) in ("list", "how_many") or persons > 1
    return K_WIDE if wide else K_SINGLE


def _referent(item: TurnView, before: Sequence[TurnView]) -> str | None:
    """Who "he" or "she" is: the only person the last turns name, beside the speaker, if there is one."""
    if not _THIRD.search(item.text):
        return None
    recent = before[-WINDOW_FOR_PRONOUNS:]
    speakers = {turn.speaker for turn in recent} | {item.speaker}
    named = [name for turn in recent for name in person_names(turn.text)]
    others = {name for name in named if not any(same_person(name, speaker) for speaker in speakers)}
    return others.pop() if len(others) == 1 else None


def _asked_person(purpose: Purpose, item: TurnView, named: list[str], referent: str | None) -> str | None:
    if purpose == "remember":
        return item.speaker
    if named or referent:
        return named[0] if named else referent
    return item.speaker if _FIRST.search(item.text) else None


def _rewrite(purpose: Purpose, item: TurnView, before: Sequence[TurnView], referent: str | None) -> str:
    text = item.text
    if referent:
        text = _THIRD.sub(referent, _THIRD_POSSESSIVE.sub(f"{referent}'s", text))
    if purpose == "remember" and item.speaker.casefold() not in _GENERIC and _FIRST.search(text):
        text = f"{item.speaker}: {text}"
    text = _dated(text, item.time)
    if purpose == "recall" and _leans_back(item.text) and before:
        text = f"{text} ({before[-1].text})"
    return text.strip() or item.text


def _leans_back(text: str) -> bool:
    """Whether a question says too little to be searched for alone ("And when was that?")."""
    return len(content_stems(text)) < BARE and _VAGUE.search(text) is not None


def _dated(text: str, reference: datetime) -> str:
    """The text with relative time words read against the turn's time; the words themselves stay."""
    readings = [(r, format_time(r.start, r.precision)) for r in read_dates(text, reference)]
    added = [
        words
        for reading, words in readings
        if words.casefold() not in text.casefold() and not reading.approximate
    ]
    return f"{text} ({', '.join(dict.fromkeys(added))})" if added else text
