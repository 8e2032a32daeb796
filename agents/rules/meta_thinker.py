"""Meta-Thinker by rules: what a chunk holds that memory does not, and what a question still lacks."""

import re

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.rules.grounding import gap_of, known_speakers, passages, read_question
from memcycle.agents.views import MemoryView
from memcycle.core.language.names import same_person
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import content_stems

_CHANGE = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|instead|switched|changed|moved|quit|stopped|left|gave up|sold|"
    r"broke up|divorced|cancel(?:l)?ed|used to|now|actually|never|not)\b|n['’]t\b",
    re.IGNORECASE,
)
WORTH = 3
"""Content stems from which on a sentence states something worth keeping."""
SAME, NEAR = 0.8, 0.4
"""Share of a sentence's content stems that a memory holds: says the same; speaks of the same."""


def guide(value: GuideInput) -> GuideOutput:
    """Every statement of the chunk, sorted into new, known and at odds with memory (MemMA section 3)."""
    keep: list[str] = []
    redundant: list[str] = []
    conflicts: list[str] = []
    known = [(memory, frozenset(content_stems(memory.text))) for memory in value.memories]
    for turn in value.turns:
        if turn.role != "human":
            continue
        for _, _, sentence in split_sentences(turn.text):
            content = frozenset(content_stems(sentence))
            if len(content) < WORTH or is_question(sentence):
                continue
            nearest, overlap = _nearest(content, turn.speaker, known)
            said = f"{turn.speaker}: {sentence}"
            if nearest and overlap >= NEAR and _turns(sentence, nearest.text):
                conflicts.append(f"{said} (memory {nearest.n} says: {nearest.text})")
            elif nearest and overlap >= SAME:
                redundant.append(said)
                continue
            keep.append(said)
    return GuideOutput(keep=keep, redundant=redundant, conflicts=conflicts)


def _nearest(
    content: frozenset[str], speaker: str, known: list[tuple[MemoryView, frozenset[str]]]
) -> tuple[MemoryView | None, float]:
    best: tuple[MemoryView | None, float] = (None, 0.0)
    for memory, held in known:
        if memory.speaker is not None and not same_person(memory.speaker, speaker):
            continue
        share = len(content & held) / len(content)
        if share > best[1]:
            best = (memory, share)
    return best


def _turns(new: str, old: str) -> bool:
    """Whether exactly one of two statements of the same thing carries a word of change or denial."""
    return bool(_CHANGE.search(new)) != bool(_CHANGE.search(old))


def answerability(value: AnswerabilityInput) -> AnswerabilityOutput:
    """The blocking-gap test by slot: predicate, person and a value of the asked type must be there."""
    asked = read_question(value.question, known_speakers(value.evidence, value.window), value.now)
    gap = gap_of(asked, passages(asked, value.evidence))
    if gap is None:
        return AnswerabilityOutput(answerable=True, why="predicate, person and value stand in the evidence")
    return AnswerabilityOutput(
        answerable=False,
        gap=gap.words,
        speaker=asked.persons[0] if asked.persons else None,
        needs_time=asked.slot in ("when", "how_long"),
        why=gap.why,
    )
