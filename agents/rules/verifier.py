"""Verifier without a model: an answer stands where words of the right person hold it (EvolveMem 3.2)."""

from collections.abc import Sequence

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.rules.answerer import answerer, candidates
from memcycle.agents.rules.content import content
from memcycle.agents.rules.evidence import passages, read_question, speakers_of
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.agents.views import MemoryView
from memcycle.core.language.questions import NOTHING
from memcycle.core.language.tokens import strip_names

MOST = 3
"""Possible answers that are weighed."""


def verifier(value: VerifierInput) -> VerifierOutput:
    """Keeps an answer that the rules give too, or whose words one memory holds; else abstains.

    An abstention stays one. With candidates it also answers from what earlier answers do not rest on; the
    answer that most memories hold stands, of equals the first.
    """
    parsed = read_question(value.question, speakers_of(value.evidence, value.window), value.now)
    own = [one.memory for one in candidates(parsed, passages(parsed, value.evidence))]
    considered: list[str] = []
    best: VerifierOutput | None = None
    most = 0
    for draft in _drafts(value, own, parsed.words):
        held = len(draft.citations)
        considered.append(draft.answer)
        if held > most:
            told = {
                **draft.model_dump(),
                "confidence": round(min(0.9, draft.confidence + 0.1 * (held - 1)), 2),
            }
            best, most = VerifierOutput(**told), held
    if best is not None:
        return best.model_copy(update={"considered": considered})
    abstained = NOTHING[parsed.language] if value.answerable else value.answer
    return VerifierOutput(
        answer=abstained or NOTHING[parsed.language],
        answerable=False,
        confidence=0.6,
        considered=considered,
        extractive=True,
    )


def _drafts(value: VerifierInput, own: Sequence[MemoryView], words: frozenset[str]) -> list[AnswererOutput]:
    """The answer with the memories that hold its words; with candidates, what the others answer."""
    if not value.answerable:
        return []
    given = AnswererOutput(answer=value.answer, answerable=True, confidence=0.3, extractive=True)
    again = _answered(value, value.evidence)
    first = again if again.answer == value.answer else given
    drafts = [first.model_copy(update={"citations": _holding(first, own, words)})]
    left = list(value.evidence)
    while value.candidates and len(drafts) < MOST:
        taken = set(drafts[-1].citations)
        left = [memory for memory in left if memory.n not in taken]
        found = _answered(value, left)
        if not taken or not found.answerable:
            break
        held = _holding(found, own, words)
        drafts.append(
            found.model_copy(update={"citations": list(dict.fromkeys([*found.citations[:1], *held]))})
        )
    return drafts


def _answered(value: VerifierInput, evidence: Sequence[MemoryView]) -> AnswererOutput:
    given = value.model_dump(include={"question", "window", "style", "now"})
    return answerer(AnswererInput(**given, evidence=list(evidence)))


def _holding(draft: AnswererOutput, own: Sequence[MemoryView], words: frozenset[str]) -> list[int]:
    """Numbers of the memories that hold all that an answer says beyond the question, in their order."""
    names = [memory.speaker for memory in own if memory.speaker]
    wanted = content(draft.quote or strip_names(draft.answer, names)) - words
    return list(dict.fromkeys(memory.n for memory in own if wanted <= content(memory.text)))
