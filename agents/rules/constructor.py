"""Constructor without a model: each turn's statements, reworded and labelled (AMA 3.1)."""

import re
from collections.abc import Sequence
from datetime import datetime

from memcycle.agents.constructor import ConstructorInput, ConstructorOutput, FactDraft
from memcycle.agents.rules.contradiction import contradiction
from memcycle.agents.rules.labels import (
    importance_of,
    keywords_of,
    kind_of,
    locations_of,
)  # fmt: skip
from memcycle.agents.rules.third_person import possessive
from memcycle.agents.rules.verbs import sentence_pattern
from memcycle.agents.rules.wording import Worded, listener_of, said_of, true_until, worded
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.entry import same_text
from memcycle.core.language.names import entities_of, person_names
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import content_stems

_FORGET = re.compile(
    r"^(?:(?:hey|ok|okay|also|and|so|please|actually|now)[\s,]+)*(?:(?:can|could"
    r"|would)\s+you\s+(?:please\s+)?|i\s+(?:want|need|would\s+like)\s+you\s+to\s+)?"
    r"(?:please\s+)?(?P<verb>forget|delete|erase|remove)\s+(?:the\s+(?:fact|memory|note)\s+)?"
    r"(?P<what>(?:that|about|what\s+i\s+(?:said|told\s+you)\s+about|everything\s+(?:about"
    r"|on)|my|of|where|which)\s+\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_CONFIDENCE = {"own": 0.9, "elliptic": 0.8, "rule": 0.9, "caption": 0.7, "pronoun": 0.5, "said": 0.6}
LEAST_MATCH = 0.5
MOST_REPLY_WORDS = 12
FORGET_WORDS = frozenset({"forget", "delet", "eras", "remov", "fact", "memori", "said", "told", "everyth"})


def constructor(value: ConstructorInput) -> ConstructorOutput:
    """The facts of a chunk, in order of their turns. Only what a person said becomes a fact."""
    talk = [*value.window, *value.turns]
    speakers = list(dict.fromkeys(turn.speaker for turn in talk))
    facts: list[FactDraft] = []
    for before, turn in zip(
        [value.window[-1] if value.window else None, *value.turns], value.turns, strict=False
    ):
        if turn.role == "human":
            found = _facts_of(turn, speakers, listener_of(turn.speaker, talk), value.memories)
            facts += found or reply_of(turn, before)
    return ConstructorOutput(facts=facts)


def forget_request(text: str) -> str | None:
    """The sentence in which a person asks to forget something, as it stands in the text, else None."""
    return next((s for _, _, s in split_sentences(text) if _FORGET.match(s)), None)


def forget_target(request: str, memories: Sequence[MemoryView]) -> MemoryView | None:
    """The memory a request to forget speaks of: most of its words, else None."""
    asked = set(content_stems(request)) - FORGET_WORDS
    if not asked:
        return None
    shares = [
        (len(asked & set(content_stems(memory.text))) / len(asked), -memory.n, memory) for memory in memories
    ]
    best = max(shares, key=lambda share: share[:2], default=None)
    return best[2] if best and best[0] >= LEAST_MATCH else None


def _facts_of(
    turn: TurnView, speakers: list[str], listener: str | None, memories: Sequence[MemoryView]
) -> list[FactDraft]:
    request = forget_request(turn.text)
    facts = []
    for item in worded(turn.text, turn.speaker, listener):
        if request is None or turn.text[item.begin : item.end] not in request:
            facts.append(_with_edit(draft_of(turn, item, speakers), true_until(item, turn), memories))
    if request is not None and (target := forget_target(request, memories)) is not None:
        facts.append(
            FactDraft(
                text=target.text,
                turn=turn.n,
                quote=request,
                speaker=turn.speaker,
                edit="DELETE",
                target=target.n,
            )
        )
    return facts


def reply_of(turn: TurnView, before: TurnView | None) -> list[FactDraft]:
    """A short answer that says nothing alone, beside the question it answers."""
    if before is None or before.speaker == turn.speaker:
        return []
    asked, answered = _sentences(before.text), [s for s in _sentences(turn.text) if not is_question(s)]
    if not asked or not is_question(asked[-1]) or not answered or len(answered[0].split()) > MOST_REPLY_WORDS:
        return []
    question, answer = asked[-1], answered[0]
    return [
        FactDraft(
            text=f"{turn.speaker} answered “{answer}” to {possessive(before.speaker)} question “{question}”",
            turn=turn.n,
            quote=answer,
            speaker=turn.speaker,
            related_turns=[before.n],
            pattern="SVO",
            persons=[turn.speaker, before.speaker],
            keywords=keywords_of(f"{answer} {question}"),
            importance=0.4,
            confidence=0.5,
        )
    ]


def _sentences(text: str) -> list[str]:
    return [piece for _, _, piece in split_sentences(text) if not piece.startswith("[image:")]


def draft_of(turn: TurnView, item: Worded, speakers: Sequence[str]) -> FactDraft:
    """The fact that a worded statement of a turn is; `speakers` are names known to be persons."""
    when = said_of(item, turn)
    persons = person_names(item.text, speakers)
    kind = kind_of(item.text)
    entities = entities_of(item.text, [*persons, *speakers])
    return FactDraft(
        text=item.text,
        turn=turn.n,
        pattern=sentence_pattern(item.text),
        quote=turn.text[item.begin : item.end],
        speaker=turn.speaker,
        kind=kind,
        event_time=when.start if when else None,
        event_precision=when.precision if when else None,
        persons=persons,
        locations=locations_of(item.text, [*persons, *speakers]),
        entities=entities,
        keywords=keywords_of(item.text),
        importance=0.3 if item.stance == "caption" else importance_of(
            item.text, kind, dated=when is not None, named=len(entities) > 1
        ),
        confidence=_CONFIDENCE[item.stance],
    )  # fmt: skip


def _with_edit(draft: FactDraft, until: datetime, memories: Sequence[MemoryView]) -> FactDraft:
    """The draft as an edit of a given fact it repeats or replaces; else as an addition."""
    facts = [memory for memory in memories if memory.granularity == "fact"]
    for memory in facts:
        if same_text(memory.text) == same_text(draft.text):
            return draft.model_copy(update={"edit": "NONE", "target": memory.n})
    for memory in facts:
        earlier = memory.event_time or memory.time
        newer = earlier is None or earlier <= until
        if newer and contradiction(draft.text, memory.text):
            return draft.model_copy(update={"edit": "UPDATE", "target": memory.n})
    return draft
