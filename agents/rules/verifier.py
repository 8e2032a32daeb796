"""Verifier without a model: an answer stands where words of the right person hold it (EvolveMem 3.2)."""

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.rules.answerer import answerer, candidates
from memcycle.agents.rules.content import content
from memcycle.agents.rules.evidence import passages, read_question, speakers_of
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.core.language.questions import NOTHING
from memcycle.core.language.tokens import strip_names


def verifier(value: VerifierInput) -> VerifierOutput:
    """Keeps an answer that the rules give too, or whose words one memory holds; else abstains.

    An abstention stays one. The rules find one answer to a question: there are no others to weigh it against.
    """
    parsed = read_question(value.question, speakers_of(value.evidence, value.window), value.now)
    given = AnswererOutput(answer=value.answer, answerable=True, confidence=0.3, extractive=True)
    own = answerer(AnswererInput(**{name: getattr(value, name) for name in AnswererInput.model_fields}))
    draft = own if own.answer == value.answer else given
    able = [one.memory for one in candidates(parsed, passages(parsed, value.evidence))]
    names = [memory.speaker for memory in able if memory.speaker]
    wanted = content(draft.quote or strip_names(draft.answer, names)) - parsed.words
    holding = list(dict.fromkeys(memory.n for memory in able if wanted <= content(memory.text)))
    if value.answerable and holding:
        sure = round(min(0.9, draft.confidence + 0.1 * (len(holding) - 1)), 2)
        return VerifierOutput(**draft.model_dump() | {"citations": holding, "confidence": sure})
    nothing = NOTHING[parsed.language]
    answer = nothing if value.answerable else value.answer or nothing
    return VerifierOutput(answer=answer, answerable=False, confidence=0.6, extractive=True)
