"""Verifier by rules: an answer is kept as far as evidence about the right person holds its words."""

from collections.abc import Sequence

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.rules.answerer import answerer
from memcycle.agents.rules.grounding import known_speakers, passages, read_question, stem_set
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.agents.views import MemoryView
from memcycle.core.language.questions import NOTHING

MOST = 3
"""Possible answers that are weighed."""


def verifier(value: VerifierInput) -> VerifierOutput:
    """Keeps an answer that the rules give too, or whose words evidence holds, else abstains.

    An abstention stays one.

    With candidates it also answers from the evidence without what earlier answers rested on, and takes the
    answer that most memories hold, the earliest found of equals.
    """
    own = _answered(value, value.evidence)
    given = own if value.answerable and _same(own.answer, value.answer) else _given(value)
    drafts = _drafts(value, given) if value.candidates else [given]
    weighed = [(len(_holding(value, draft)), draft) for draft in drafts if draft.answerable]
    considered = [draft.answer for _, draft in weighed]
    held = max(weighed, key=lambda pair: pair[0], default=None)
    if held is None or not held[0]:
        return _abstention(value, considered)
    support, best = held
    told = best.model_copy(update={"confidence": round(min(0.9, best.confidence + 0.1 * (support - 1)), 2)})
    cited = told.citations or _holding(value, told)
    return VerifierOutput(**{**told.model_dump(), "citations": cited, "considered": considered})


def _given(value: VerifierInput) -> AnswererOutput:
    return AnswererOutput(
        answer=value.answer, answerable=value.answerable, confidence=0.3, citations=[], extractive=True
    )


def _same(one: str, other: str) -> bool:
    return one.casefold().strip(" .") == other.casefold().strip(" .")


def _drafts(value: VerifierInput, given: AnswererOutput) -> list[AnswererOutput]:
    """The given answer, and what the rules answer without the memories that earlier answers rest on."""
    drafts, left = [given], list(value.evidence)
    taken = set(_holding(value, given)) if value.answerable else set[int]()
    while len(drafts) < MOST:
        left = [memory for memory in left if memory.n not in taken]
        found = _answered(value, left)
        if not left or not found.answerable or not found.citations:
            break
        drafts.append(found)
        taken = set(found.citations)
    return drafts


def _answered(value: VerifierInput, evidence: Sequence[MemoryView]) -> AnswererOutput:
    given = AnswererInput(
        question=value.question,
        evidence=list(evidence),
        window=value.window,
        style=value.style,
        now=value.now,
    )
    return answerer(given)


def _holding(value: VerifierInput, draft: AnswererOutput) -> list[int]:
    """Numbers of the memories about the asked person that hold every word of an answer, best first."""
    asked = read_question(value.question, known_speakers(value.evidence, value.window), value.now)
    wanted = stem_set(draft.answer) - asked.stems
    own = [passage.memory for passage in passages(asked, value.evidence) if passage.person > 0]
    cited = {memory.n for memory in own if memory.n in draft.citations}
    holds = [memory.n for memory in own if memory.n in cited or (wanted and wanted <= stem_set(memory.text))]
    return list(dict.fromkeys(holds))


def _abstention(value: VerifierInput, considered: Sequence[str]) -> VerifierOutput:
    asked = read_question(value.question, known_speakers(value.evidence, value.window), value.now)
    said = NOTHING[asked.language] if value.answerable else value.answer
    return VerifierOutput(
        answer=said or NOTHING[asked.language],
        answerable=False,
        confidence=0.6,
        considered=list(considered),
        extractive=True,
    )
