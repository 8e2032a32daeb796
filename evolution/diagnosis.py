"""What the Diagnoser is shown of a round: its failures by pattern, the configuration, and what was tried."""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from memcycle.agents.diagnoser import DiagnoserInput, FailureView, HeldView, Pattern, PatternView, TriedView
from memcycle.core.theta import Theta
from memcycle.evolution.objective import has_failed, in_words, score, value
from memcycle.evolution.patterns import pattern_of
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.space import views
from memcycle.evolution.task import Task

Grouped = dict[Pattern, list[QuestionRecord]]


def grouped(records: Sequence[QuestionRecord], theta: Theta, task: Task) -> Grouped:
    """The failed questions by pattern, the most frequent one first."""
    groups: Grouped = {}
    for record in records:
        if has_failed(record, task.objective):
            # Scored as it is; what tells why is taken away after that.
            seen = record.blanked() if task.blank else record
            groups.setdefault(pattern_of(seen, theta), []).append(seen)
    return dict(sorted(groups.items(), key=lambda one: -len(one[1])))


def pattern_views(groups: Grouped, asked: int) -> list[PatternView]:
    """How many questions failed in each way, and their share of all asked."""
    return [
        PatternView(name=name, count=len(own), share=round(len(own) / max(asked, 1), 4))
        for name, own in groups.items()
    ]


def diagnoser_input(
    records: Sequence[QuestionRecord], theta: Theta, task: Task, tried: Sequence[Mapping[str, Any]]
) -> DiagnoserInput:
    """The Diagnoser's input.

    Args:
        records: Of the training split under `theta`; no other split's may come here.
        theta: The configuration that is to be changed.
        task: What is to grow, and how many failures are shown.
        tried: What earlier rounds changed, and what became of it.
    """
    groups = grouped(records, theta, task)
    chosen = _sampled([(name, one) for name, own in groups.items() for one in own], task)
    return DiagnoserInput(
        objective=in_words(task.objective, balanced=task.balanced),
        score=score(records, task.objective, balanced=task.balanced),
        token_budget=task.token_budget,
        dimensions=views(theta),
        patterns=pattern_views(groups, len(records)),
        held=[] if task.blank else _held(records),
        failures=[_failure(n, name, record, task) for n, (name, record) in enumerate(chosen, 1)],
        tried=[TriedView.model_validate(one) for one in tried],
    )


def _held(records: Sequence[QuestionRecord]) -> list[HeldView]:
    """Means over the questions that had wanted turns shown."""
    told = [record.held for record in records if record.held]
    names = dict.fromkeys(name for one in told for name in one)
    return [
        HeldView(signal=name, edge=round(fmean(one.get(name, 0.0) for one in told), 3), count=len(told))
        for name in names
    ]


def _sampled(
    failures: list[tuple[Pattern, QuestionRecord]], task: Task
) -> list[tuple[Pattern, QuestionRecord]]:
    """At most as many as are shown, drawn so that each pattern keeps its share."""
    if len(failures) <= task.shown:
        return failures
    places = Random(f"{task.seed} failures").sample(range(len(failures)), task.shown)  # noqa: S311
    return [failures[place] for place in sorted(places)]


def _failure(n: int, pattern: Pattern, record: QuestionRecord, task: Task) -> FailureView:
    return FailureView(
        n=n,
        pattern=pattern,
        question=record.question,
        category=record.category,
        score=round(value(record, task.objective) or 0.0, 4),
        wanted=len(record.wanted),
        missed=list(record.missed),
        shown=record.shown,
        answer=record.answer,
        gold=record.gold if record.answer is not None else None,
    )
