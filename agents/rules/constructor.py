"""Constructor without a model: each sentence that states something, as it was said (AMA 3.1).

Nothing is reworded: who said it and when stand beside the words.
"""

import re
from collections.abc import Iterable, Sequence

from memcycle.agents.constructor import ConstructorInput, ConstructorOutput, FactDraft
from memcycle.agents.rules.content import content, numbers, share
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import Statement, is_news, statements_of, when_of
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.entry import Kind, same_speaker, same_text
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.names import entities_of, person_names, places_of
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import STOPWORDS, tokenize

_FORGET = re.compile(
    r"^(?:(?:hey|ok|okay|also|and|so|please|actually|now)[\s,]+)*(?:(?:can|could|would)\s+you\s+(?:please\s+)?"
    r"|i\s+(?:want|need|would\s+like)\s+you\s+to\s+)?(?:please\s+)?(?:forget|delete|erase|remove)\s+"
    r"(?:the\s+(?:fact|memory|note)\s+)?(?:that|about|what\s+i\s+(?:said|told\s+you)\s+about"
    r"|everything\s+(?:about|on)|my|of|where|which)\s+\S.*$",
    re.IGNORECASE | re.DOTALL,
)
_FORGETTING = content("forget delete erase remove fact memory note everything")
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
LEAST_MATCH = 0.5
MOST_KEYWORDS, SHORTEST = 10, 3


def constructor(value: ConstructorInput) -> ConstructorOutput:
    """The facts of a chunk, in order of their turns. Only what a person said becomes a fact."""
    speakers = list(dict.fromkeys(turn.speaker for turn in (*value.window, *value.turns)))
    stored = [memory for memory in value.memories if memory.granularity == "fact"]
    found: list[FactDraft] = []
    for turn in (turn for turn in value.turns if turn.role == "human"):
        request = forget_request(turn.text)
        target = forget_target(request, stored) if request else None
        for statement in statements_of(turn.text):
            if request is None or statement.text not in request:
                found.append(_with_edit(draft_of(turn, statement, speakers), turn, stored))
        if request and target:
            found.append(
                FactDraft(
                    text=target.text,
                    turn=turn.n,
                    quote=request,
                    speaker=turn.speaker,
                    edit="DELETE",
                    target=target.n,
                )
            )
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


def forget_request(text: str) -> str | None:
    """The sentence in which a person asks to forget something, as it stands in the text, else None."""
    return next((one for _, _, one in split_sentences(text) if _FORGET.match(one)), None)


def forget_target(request: str, memories: Sequence[MemoryView]) -> MemoryView | None:
    """The memory a request to forget speaks of: most of its words, else None."""
    asked = content(request) - _FORGETTING
    best = max(memories, key=lambda memory: (share(asked, content(memory.text)), -memory.n), default=None)
    return best if best and share(asked, content(best.text)) >= LEAST_MATCH else None
