"""Meta-Thinker without a model (MemMA 3): what a chunk says that is new; what a question still lacks."""

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.rules.content import Stated, says_all
from memcycle.agents.rules.evidence import gap_of, passages, read_question, speakers_of
from memcycle.agents.rules.judge import claims_of
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import statements_of
from memcycle.core.entry import same_speaker


def guide(value: GuideInput) -> GuideOutput:
    """Every statement of the chunk, sorted into new, known and at odds with memory."""
    keep: list[str] = []
    redundant: list[str] = []
    conflicts: list[str] = []
    for turn in (turn for turn in value.turns if turn.role == "human"):
        near = [
            (memory, claim)
            for memory in value.memories
            if memory.speaker is None or same_speaker(memory.speaker, turn.speaker)
            for claim in claims_of(memory)
        ]
        for statement in statements_of(turn.text):
            said = f"{turn.speaker}: {statement.text}"
            new = Stated(statement.text, turn.speaker, turn.time)
            if any(says_all(Stated(claim, memory.speaker, memory.time), new) for memory, claim in near):
                redundant.append(said)
                continue
            keep.append(said)
            conflicts += [
                f"{said} (memory {memory.n} says: {claim})"
                for memory, claim in near
                if contradiction(statement.text, turn.speaker, claim, memory.speaker)
            ][:1]
    return GuideOutput(keep=keep, redundant=redundant, conflicts=conflicts)


def answerability(value: AnswerabilityInput) -> AnswerabilityOutput:
    """The blocking-gap test: what content words of the question nothing of the asked person holds."""
    parsed = read_question(value.question, speakers_of(value.evidence, value.window), value.now)
    gap = gap_of(parsed, passages(parsed, value.evidence))
    if gap is None:
        return AnswerabilityOutput(answerable=True, why="what is asked stands in the evidence")
    return AnswerabilityOutput(
        answerable=False,
        gap=gap.words,
        speaker=parsed.persons[0] if parsed.persons else None,
        needs_time=parsed.slot in ("when", "how_long"),
        why=gap.why,
    )
