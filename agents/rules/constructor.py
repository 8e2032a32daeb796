"""Constructor without a model: each sentence that states something, as it was said (AMA 3.1).

Nothing is reworded: who said it and when stand beside the words.
"""

import re
from collections.abc import Iterable, Sequence

from memcycle.agents.constructor import ConstructorInput, ConstructorOutput, FactDraft
from memcycle.agents.rules.content import content, numbers
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import Statement, is_news, statements_of, when_of
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.entry import Kind, same_speaker, same_text
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.forget_requests import requests_in
from memcycle.core.language.names import entities_of, person_names, places_of
from memcycle.core.language.tokens import STOPWORDS, tokenize

_PREFERENCE = re.compile(
    r"\b(?:like|love|hate|prefer|enjoy|dislike|adore)s?\b|\bcan['’]t stand\b|\bfavou?rites?\b|\bfan of\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:am|is|are|have|has|own|owns|lives?|works?|study|studies|teach|teaches|know|knows|speaks?|called)\b|['’]m\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:am|is|are|been)\s+(?:\w+ly\s+)?\w+ing\b|['’](?:m|re|ve|s)\s+\w+(?:ing|ed)\b", re.IGNORECASE
)
MOST_KEYWORDS, SHORTEST = 10, 3


def constructor(value: ConstructorInput) -> ConstructorOutput:
    """The facts of a chunk, in order of their turns. Only what a person said becomes a fact."""
    speakers = list(dict.fromkeys(turn.speaker for turn in (*value.window, *value.turns)))
    stored = [memory for memory in value.memories if memory.granularity == "fact"]
    found: list[FactDraft] = []
    for turn in (turn for turn in value.turns if turn.role == "human"):
        requests = [request.text for request in requests_in(turn.text)]
        found += [
            _with_edit(draft_of(turn, statement, speakers), turn, stored)
            for statement in statements_of(turn.text)
            if not any(statement.text in request for request in requests)
        ]
    return ConstructorOutput(facts=found)


def draft_of(turn: TurnView, statement: Statement, speakers: Sequence[str]) -> FactDraft:
    """The fact that a statement of a turn is; `speakers` are names known to be persons."""
    text, when = statement.text, when_of(statement.text, turn.time)
    persons = person_names(text, speakers)
    kind = _kind(text, when)
    keywords = (word for word in tokenize(text) if word not in STOPWORDS and len(word) >= SHORTEST)
    weight = 0.4 + 0.1 * (when is not None) + 0.1 * bool(numbers(text)) + 0.15 * (kind == "preference")
    return FactDraft(
        text=text,
        turn=turn.n,
        quote=text,
        speaker=turn.speaker,
        kind=kind,
        event_time=when.start if when else None,
        event_precision=when.precision if when else None,
        persons=persons,
        locations=places_of(text, persons),
        entities=entities_of(text, persons),
        keywords=list(dict.fromkeys(keywords))[:MOST_KEYWORDS],
        importance=round(min(0.9, weight + 0.0125 * min(len(content(text)), 8)), 3),
        confidence=0.9,
    )


def _kind(text: str, when: Reading | None) -> Kind:
    if _PREFERENCE.search(text):
        return "preference"
    lasting = when is None and _LASTING.search(text) and not _PASSING.search(text)
    return "semantic" if lasting else "episodic"


def _with_edit(draft: FactDraft, turn: TurnView, stored: Iterable[MemoryView]) -> FactDraft:
    """The draft as an edit of a given fact it repeats or replaces; else as an addition."""
    for memory in stored:
        if same_speaker(memory.speaker, turn.speaker) and same_text(memory.text) == same_text(draft.text):
            return draft.model_copy(update={"edit": "NONE", "target": memory.n})
    for memory in stored:
        against = contradiction(draft.text, turn.speaker, memory.text, memory.speaker)
        if against and is_news(draft.text, turn.time, memory):
            return draft.model_copy(update={"edit": "UPDATE", "target": memory.n})
    return draft
