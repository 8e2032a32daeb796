"""Repairer without a model: the statement of its turn that gives a failed probe's answer (MemMA 3.4)."""

from memcycle.agents.grader import GradeItem
from memcycle.agents.repairer import RepairerInput, RepairerOutput, RepairFact
from memcycle.agents.rules.answerer import quote
from memcycle.agents.rules.constructor import draft_of
from memcycle.agents.rules.content import Stated, content, says_all, share
from memcycle.agents.rules.grader import grade
from memcycle.agents.rules.statements import Statement, statements_of, when_of
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.language.dates import format_time
from memcycle.core.language.names import same_person


def repairer(value: RepairerInput) -> RepairerOutput:
    """ADD_FACT with the statement as it was said; NOOP in doubt.

    NOOP where a stored fact says the gold answer already (`hard to find`), where the source is no turn that a
    person said, or does not hold the answer. A turn or an episode that holds it is no fact.
    """
    source = next((turn for turn in value.turns if turn.n == value.source), None)
    if source is None or source.role != "human":
        return RepairerOutput(op="NOOP", why="its source is no turn that a person said")
    statement = _answering(value, source)
    if statement is None:
        return RepairerOutput(op="NOOP", why="the source turn does not say so")
    new, together = Stated(statement.text, source.speaker, source.time), frozenset[str]()
    for memory in (memory for memory in value.memories if memory.granularity == "fact"):
        if says_all(Stated.of(memory), new) or _right(value, memory, memory.text):
            return RepairerOutput(op="NOOP", cause="hard to find", why="a stored fact says so")
        if memory.time == source.time and same_person(memory.speaker, source.speaker):
            together |= content(memory.text)
    if content(statement.text) <= together:
        return RepairerOutput(op="NOOP", cause="hard to find", why="the facts of its turn say so together")
    draft = draft_of(source, statement, list(dict.fromkeys(turn.speaker for turn in value.turns)))
    fact = RepairFact(**{name: getattr(draft, name) for name in RepairFact.model_fields})
    return RepairerOutput(op="ADD_FACT", cause="missing", fact=fact, why="no stored fact says so")


def _answering(value: RepairerInput, source: TurnView) -> Statement | None:
    """The statement of the turn that holds most of question and gold, if it would be graded right."""
    view = MemoryView(n=0, granularity="raw", text=source.text, speaker=source.speaker, time=source.time)
    told = content(f"{value.question} {value.gold}")
    found = sorted(statements_of(source.text), key=lambda one: -share(told, content(one.text)))
    return next((one for one in found if _right(value, view, one.text)), None)


def _right(value: RepairerInput, memory: MemoryView, text: str) -> bool:
    """Whether these words of a memory, with their time written out, would be graded as a right answer."""
    when = when_of(text, memory.time) if memory.time else None
    day = f" ({format_time(when.start, when.precision)})" if when else ""
    said = quote(memory.model_copy(update={"time": None if when else memory.time}), text + day)
    return grade(GradeItem(n=1, question=value.question, gold=value.gold, answer=said)).correct
