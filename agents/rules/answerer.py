"""Answerer by rules: the words of the evidence that fill the asked slot, with their quote."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.rules.answer_slots import (
    duration_of,
    name_of,
    number_of,
    persons_of,
    polarity_of,
    time_of,
)
from memcycle.agents.rules.answer_styles import styled
from memcycle.agents.rules.grounding import (
    Asked,
    Passage,
    about_things,
    gap_of,
    known_speakers,
    passages,
    read_question,
    stem_set,
)  # fmt: skip
from memcycle.agents.rules.spans import Span, best_span
from memcycle.agents.views import MemoryView
from memcycle.core.language.dates import read_dates
from memcycle.core.language.questions import NOTHING, Slot, choices
from memcycle.core.language.sentences import NEGATION
from memcycle.core.language.tokens import content_stems

_TAGS = re.compile(r"\[image: ([^\]]*)\]")
_PREPOSITION = re.compile(
    r"^(?:(?:\w+\s+){1,3}?(?:to|in|at|from|near)\s+(?=[A-Z])|(?:[Tt]o|[Ii]n|[Aa]t|[Ff]rom|[Ii]nto|[Nn]ear)\s+)"
)
LIST_ITEMS = 4
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
RIVAL = 0.95
CLOSE = 0.8
"""Share of the best passage's score from which another passage counts as equally fitting."""
SPAN_PASSAGES = 3
SHORT_REPLY = 8
"""Words up to which a reply to the asked question is the answer as it stands."""


_VALUES: dict[Slot, Callable[[Asked, Passage, Sequence[str]], str | None]] = {
    "how_long": duration_of,
    "how_many": number_of,
    "who": persons_of,
    "yes_no": polarity_of,
}
"""How a slot with a value of its own is read from a passage."""


class Found(NamedTuple):
    """An answer and the passages it rests on, best first."""

    text: str
    rests_on: list[Passage]


def answerer(value: AnswererInput) -> AnswererOutput:
    """Answers from the evidence alone, or says in plain words that it holds nothing.

    Confidence follows the mean token-F1 such answers reached on tuning conversations (0.1 to 0.45).
    """
    speakers = known_speakers(value.evidence, value.window)
    asked = read_question(value.question, speakers, value.now)
    ranked = passages(asked, value.evidence)
    gap = gap_of(asked, ranked)
    if gap is not None:
        return _abstain(asked, ranked)
    own = about_things(asked, [passage for passage in ranked if passage.person > 0])
    if asked.slot == "yes_no" and asked.things and not asked.things & stem_set(own[0].memory.text):
        return _abstain(asked, ranked)
    own = _settled(own)
    found = _find(asked, own, speakers)
    best = found.rests_on[0]
    return AnswererOutput(
        answer=styled(value.style, found.text, asked, best),
        answerable=True,
        citations=list(dict.fromkeys(passage.memory.n for passage in found.rests_on)),
        confidence=round(0.05 + 0.45 * best.around, 2),
        quote=best.text,
        extractive=True,
    )


def _abstain(asked: Asked, ranked: Sequence[Passage]) -> AnswererOutput:
    unsure = ranked[0].around if ranked else 0.0
    return AnswererOutput(
        answer=NOTHING[asked.language],
        answerable=False,
        confidence=round(min(0.9, 1 - 0.5 * unsure), 2),
        extractive=True,
    )


def _settled(own: list[Passage]) -> list[Passage]:
    """The newest of the passages that say the same of the same thing comes first: it holds now."""
    best = own[0]
    rivals = [
        passage
        for passage in own
        if passage.cover >= best.cover
        and passage.score >= RIVAL * best.score
        and passage.memory.current == best.memory.current
        and (passage is best or _time(passage.memory) > _time(best.memory))
    ]
    newest = max(rivals, key=lambda passage: _time(passage.memory), default=best)
    return [newest, *(passage for passage in own if passage is not newest)]


def _time(memory: MemoryView) -> datetime:
    """When it happened, else when it was said; what has no time counts as oldest."""
    return memory.event_time or memory.time or _LONG_AGO


def _find(asked: Asked, own: list[Passage], speakers: Sequence[str]) -> Found:
    near = [passage for passage in own if passage.score >= CLOSE * own[0].score][:5]
    if asked.slot == "when" and (timed := time_of(asked, near)):
        return Found(timed[1], [timed[0]])
    if chosen := _chosen(asked, near) or _named(asked, near):
        return chosen
    if read := _VALUES.get(asked.slot):
        for passage in near:
            if words := read(asked, passage, speakers):
                return Found(words, [passage])
    return _listed(asked, own) if asked.slot == "list" else _phrase(asked, near)


def _chosen(asked: Asked, near: Sequence[Passage]) -> Found | None:
    """The alternative of a choice question that a passage names without denying it, best passage first."""
    offered = choices(asked.question) if asked.slot == "which" else []
    for passage in near:
        for choice in offered:
            if not stem_set(choice).isdisjoint(stem_set(passage.text)) and not NEGATION.search(passage.text):
                return Found(choice, [passage])
    return None


def _named(asked: Asked, near: Sequence[Passage]) -> Found | None:
    return next((Found(name, [passage]) for passage in near if (name := name_of(asked, passage))), None)


def _phrase(asked: Asked, own: list[Passage]) -> Found:
    best = own[0]
    if best.features["reply"] > best.cover and len(best.text.split()) <= SHORT_REPLY:
        return Found(best.text.rstrip(".!?… "), [best])
    span = best_span(asked, own[:SPAN_PASSAGES])
    if span is None:
        return Found(_TAGS.sub(r"\1", own[0].text), [own[0]])
    return Found(_place(span) if asked.slot == "where" else span.text, [span.passage])


def _place(span: Span) -> str:
    """A span that answers "where" without the preposition before it and the time after it."""
    said = span.passage.memory.time
    last = read_dates(span.text, said)[-1:] if said else []
    cut = span.text[: last[0].begin] if last and last[0].end >= len(span.text.rstrip(" .!?")) else span.text
    return _PREPOSITION.sub("", cut).rstrip(" ,.!?") or span.text


def _listed(asked: Asked, own: list[Passage]) -> Found:
    parts: list[str] = []
    rests_on: list[Passage] = []
    named: list[frozenset[str]] = []
    seen: set[int] = set()
    for passage in own:
        if len(parts) >= LIST_ITEMS or passage.score < 0.6 * own[0].score:
            break
        span = None if passage.memory.n in seen else best_span(asked, [passage])
        known = asked.stems.union(*(stem_set(name) for name in asked.persons))
        stems = frozenset(content_stems(span.text)) - known if span else frozenset()
        # A turn and the fact made of it name the same thing.
        if span is None or any(stems <= other or other <= stems for other in named):
            continue
        seen.add(passage.memory.n)
        named.append(stems)
        parts.append(span.text)
        rests_on.append(passage)
    return Found(", ".join(parts), rests_on) if parts else _phrase(asked, own)
