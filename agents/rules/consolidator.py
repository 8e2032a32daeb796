"""Consolidator by rules: skips the known, lets the fuller statement take over, keeps all else (MemMA 3.4)."""

from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.rules.containment import Stated, says_all


def consolidator(value: ConsolidatorInput) -> ConsolidatorOutput:
    """SKIP where a fact says all of the proposal, MERGE where the proposal says all of a fact and more.

    Statements are compared by their words in order, so that the same event on another day, another object,
    person, number or a denial is another fact. Two that each have a detail of their own stay two: no rule can
    tell whether they speak of one thing, nor write the one sentence that says both. Paraphrases are beyond it
    and are inserted.
    """
    proposal = Stated(value.text, value.speaker, value.turn.time, value.event_time, value.event_precision)
    facts = [memory for memory in value.memories if memory.granularity == "fact" and memory.current]
    for memory in facts:
        if says_all(Stated.of(memory), proposal):
            return ConsolidatorOutput(decision="SKIP", memory=memory.n, why="it says all of it")
    for memory in facts:
        if says_all(proposal, Stated.of(memory)) and _reads_alike(proposal, Stated.of(memory)):
            return ConsolidatorOutput(
                decision="MERGE", memory=memory.n, text=value.text, why="the proposal says the same and more"
            )
    return ConsolidatorOutput(decision="INSERT", why="no stored fact says the same")


def _reads_alike(proposal: Stated, stored: Stated) -> bool:
    """Whether the time words of the proposal mean the same beside the later of the two days of telling."""
    later = proposal.said is not None and stored.said is not None and stored.said > proposal.said
    return not (later and proposal.readings)
