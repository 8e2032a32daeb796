"""Consolidator without a model: skips the known, lets the fuller statement take over (MemMA 3.4)."""

from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.rules.content import Stated, says_all


def consolidator(value: ConsolidatorInput) -> ConsolidatorOutput:
    """SKIP where a fact says all of the proposal, MERGE where the proposal says all of a fact and more.

    The same event on another day, another object, person, number or a denial is another fact. Two statements
    that each have a detail of their own stay two, and so do paraphrases: no rule can tell.
    """
    proposal = Stated(value.text, value.speaker, value.turn.time, value.event_time)
    facts = [memory for memory in value.memories if memory.granularity == "fact" and memory.current]
    for memory in facts:
        if says_all(Stated.of(memory), proposal):
            return ConsolidatorOutput(decision="SKIP", memory=memory.n, why="it says all of it")
    for memory in facts:
        # Words of time mean something else beside a later day of telling.
        later = memory.time is not None and memory.time > value.turn.time and proposal.days
        if says_all(proposal, Stated.of(memory)) and not later:
            return ConsolidatorOutput(
                decision="MERGE", memory=memory.n, text=value.text, why="the proposal says the same and more"
            )
    return ConsolidatorOutput(decision="INSERT", why="no stored fact says the same")
