"""Retriever without a model: the text itself, intent by cues, K by the shape of the question (AMA 3.2)."""

import re
from collections.abc import Iterator, Sequence

from memcycle.agents.retriever import Intent, Plan, RetrieverInput, RetrieverOutput
from memcycle.agents.views import Purpose, TurnView
from memcycle.core.language.dates import format_time, read_dates
from memcycle.core.language.names import person_names
from memcycle.core.language.questions import asked_slot, choices
from memcycle.core.language.tokens import content_stems, strip_names

_EXACT = re.compile(
    r"\b(?:exact(?:ly)?|verbatim|word for word|literally|precise(?:ly)?|quote[ds]?|wording|phone number"
    r"|password|serial|e-?mail|url|link|code|command|how (?:many|much))\b|```|`[^`]+`|https?://|\S@\S+\.\S"
    r"|[\"“«„][^\"”»“]{2,}[\"”»“]",
    re.IGNORECASE,
)
_COPIED = re.compile(r"\d[\d .,:/-]{4,}\d|\d{5,}|`|https?://|\S@\S+\.\S")
_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|i[sz]e)|overview|recap|in general|overall|tell me (?:about|everything)|describe|profile"
    r"|what do (?:you|we) know|everything (?:about|you)|usually|typical(?:ly)?|tends? to|habits?"
    r"|personality|patterns?)\b",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?:what happened|what went|what did .* do (?:in|on|at|during|last|over)|how was|how did .* go|during"
    r"|throughout|between .* and|over the (?:weekend|summer|winter|week|month|year)|what has .* been"
    r" (?:up to|doing)|catch(?:ing)? up on)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\b(?:I'm|I've|I'd|I'll|I|me|my|mine|myself)\b|\bi\b")
_VAGUE = re.compile(r"\b(?:it|that|this|there|then|they|them|those|these|one)\b", re.IGNORECASE)
_JOINT = re.compile(
    r",?\s+\band\s+(?=(?:who|whom|whose|what|which|where|when|why|how)\b)|[?;]\s+(?=\w)", re.IGNORECASE
)
_LEFT_OVER = re.compile(r"\b(?:both|and|or|with)\s+(?=(?:and|or|both|have|has|do|does|\W)|$)", re.IGNORECASE)
_GENERIC = frozenset(("user", "assistant", "human", "ai", "system", "tool", "me", "you", "bot"))
K_SINGLE, K_WIDE, K_OVERVIEW, K_TURN = 10, 30, 40, 8
BARE = 2
"""Content stems below which a question leans on what was said before it."""


def retriever(value: RetrieverInput) -> RetrieverOutput:
    """One plan for each item (u', intent vector, K_dyn)."""
    return RetrieverOutput(plans=[_plan(value, item) for item in value.items])


def _plan(value: RetrieverInput, item: TurnView) -> Plan:
    speakers = (item.speaker, *(turn.speaker for turn in value.window))
    named = person_names(item.text, [name for name in speakers if name.casefold() not in _GENERIC])
    intent = _intent(value.purpose, item.text)
    own = value.purpose == "remember" or _FIRST.search(item.text) is not None
    query = item.text
    if value.purpose == "recall":
        query = _dated(item)
        bare = len(content_stems(item.text)) < BARE and _VAGUE.search(item.text)
        if bare and value.window:
            query = f"{query} ({value.window[-1].text})"
    return Plan(
        n=item.n,
        query=query.strip() or item.text,
        intent=intent,
        k=_k(value.purpose, item.text, intent, len(named)),
        speaker=named[0] if named and value.purpose == "recall" else item.speaker if own else None,
        parts=sub_questions(query, named, value.parts) if value.parts else [],
    )


def _intent(purpose: Purpose, text: str) -> Intent:
    if purpose == "remember":
        # A turn is looked up to find what it repeats or changes: only copied matter needs its wording.
        fine = _COPIED.search(text) is not None
        return Intent(fine=fine, abs=False, event=False, atomic=not fine)
    dated = asked_slot(text) in ("when", "how_long")
    fine = _EXACT.search(text) is not None
    overview, event = _OVERVIEW.search(text) is not None, _EVENT.search(text) is not None and not dated
    return Intent(fine=fine, abs=overview, event=event, atomic=not (fine or overview or event))


def _k(purpose: Purpose, text: str, intent: Intent, persons: int) -> int:
    if purpose == "remember":
        return K_TURN
    if intent.abs:
        return K_OVERVIEW
    wide = intent.event or asked_slot(text) in ("list", "how_many") or persons > 1
    return K_WIDE if wide else K_SINGLE


def _dated(item: TurnView) -> str:
    """The text with its relative time words read against its time; the words themselves stay."""
    readings = [one for one in read_dates(item.text, item.time) if not (one.approximate or one.until)]
    words = dict.fromkeys(format_time(one.start, one.precision) for one in readings)
    added = [one for one in words if one.casefold() not in item.text.casefold()]
    return f"{item.text} ({', '.join(added)})" if added else item.text


def sub_questions(question: str, persons: Sequence[str], most: int) -> list[str]:
    """Questions that stand alone and together ask what a question asks, at most so many; [] where it is one.

    Args:
        persons: Persons it names.
    """
    found = [part for part in _parts(question, persons) if part.casefold() != question.casefold()]
    once = list({part.casefold(): part for part in found}.values())
    return once[:most] if len(once) > 1 else []


def _parts(question: str, persons: Sequence[str]) -> Iterator[str]:
    clauses = [clause.strip(" ?") for clause in _JOINT.split(question) if clause.strip(" ?")]
    if len(clauses) > 1:
        for clause in clauses:
            # "and when was it?" means what the first one asks about.
            alone = clause is clauses[0] or len(content_stems(clause)) >= BARE
            yield clause if alone else f"{clause} ({clauses[0]})"
    elif len(persons) > 1:
        for person in persons:
            rest = _LEFT_OVER.sub("", strip_names(question, persons))
            yield " ".join(f"{person} {rest}".split())
    elif (offered := choices(question)) and (whole := " or ".join(offered)) in question:
        for choice in offered:
            yield question.replace(whole, choice)
