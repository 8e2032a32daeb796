"""Figures of a run from its records: shares from 0 to 1, None where nothing was measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import ceil, fsum
from statistics import median
from typing import Any

from memcycle.core.usage import Usage, add_usage
from memcycle.evals.baselines import BASELINES, FULL_CONTEXT
from memcycle.evals.plan import LENIENT_KS, Plan
from memcycle.evals.record import Record, Scores, StoredConversation

_P95 = 0.95
Ways = Callable[[Record], Scores | None]
"""The scores of one way of searching in a record; None where it was not asked."""


def summarized(
    plan: Plan, records: Sequence[Record], stored: Sequence[StoredConversation], *, seconds: float
) -> dict[str, Any]:
    """The figures of a run.

    Recall and what else is said of evidence are means over the questions that have gold turns, adversarial
    ones left out; F1 and BLEU-1 over those with a gold answer, adversarial ones left out too unless there are
    no others, as in their own category. Accuracy is over all that can be judged; an answer the judge gave no
    verdict on counts as wrong.
    """
    spent: list[Usage] = [*(one.usage for one in stored), *(one.usage for one in records)]
    categories = sorted({record.category for record in records if record.category is not None})
    return {
        "data": plan.data,
        "conversations": list(plan.conversations),
        "n": len(records),
        "failed": sum(record.error is not None for record in records),
        **_figures(plan, records),
        "abstained": _abstained(plan, records),
        "by_category": {
            name: {
                "n": sum(record.category == name for record in records),
                **_figures(plan, [record for record in records if record.category == name]),
            }
            for name in categories
        },
        "baselines": {name: _baseline(plan, records, name) for name in BASELINES if plan.baselines},
        "usage": reduce(add_usage, spent, Usage()),
        "evidence_tokens": _mean(record.evidence_tokens for record in records),
        "calls_per_question": _mean(record.calls for record in records) if plan.answers else None,
        "milliseconds": {
            "search": _times(record.search_ms for record in records),
            "answer": _times(record.answer_ms for record in records),
        },
        "seconds": round(seconds, 1),
    }


def _figures(plan: Plan, records: Sequence[Record]) -> dict[str, Any]:
    plain = [record for record in records if not record.adversarial] or records
    return {
        **_evidence(plan, records, lambda record: record.scores),
        "f1": _mean(record.f1 for record in plain),
        "bleu1": _mean(record.bleu1 for record in plain),
        "accuracy": _accuracy(records),
    }


def _evidence(plan: Plan, records: Sequence[Record], way: Ways) -> dict[str, Any]:
    """How one way of searching does, over the questions with gold turns."""
    asked = [scores for record in records if record.gold_turns and (scores := way(record)) is not None]

    def by(field: str, keys: Iterable[int]) -> dict[str, float | None]:
        shares: list[Mapping[str, float]] = [getattr(scores, field) for scores in asked]
        return {str(key): _mean(one.get(str(key)) for one in shares) for key in keys}

    return {
        "n_evidence": len(asked),
        "recall": by("recall", plan.ks),
        "recall_as_entries": by("as_entries", plan.ks),
        "all_evidence": by("all_evidence", plan.ks),
        "recall_at_tokens": by("recall_at_tokens", plan.budgets),
        "session_any": by("session_any", LENIENT_KS),
        "shown": {
            "recall": _mean(scores.shown for scores in asked),
            "tokens": _mean(float(scores.tokens) for scores in asked),
        },
    }


def _baseline(plan: Plan, records: Sequence[Record], name: str) -> dict[str, Any] | None:
    """None where no question could be asked so, as with facts alone where there are none."""
    if not any(name in record.baselines for record in records):
        return None
    figures = _evidence(plan, records, lambda record: record.baselines.get(name))
    if name == FULL_CONTEXT:
        # It shows everything: there is no rank and no budget to speak of.
        nothing = {key: dict.fromkeys(value) for key, value in figures.items() if isinstance(value, dict)}
        return {**figures, **nothing, "shown": figures["shown"]}
    return figures


def _accuracy(records: Sequence[Record]) -> float | None:
    judged = [record for record in records if record.verdict is not None or record.judge_error is not None]
    return _mean(float(record.verdict == "CORRECT") for record in judged)


def _abstained(plan: Plan, records: Sequence[Record]) -> dict[str, float | None]:
    """Share of the adversarial questions, and of the others, that were answered with "nothing is known"."""
    if not plan.answers:
        return {"right": None, "wrong": None}
    return {
        "right": _mean(float(record.abstained or False) for record in records if record.adversarial),
        "wrong": _mean(float(record.abstained or False) for record in records if not record.adversarial),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _times(values: Iterable[float | None]) -> dict[str, float | None]:
    """Median and 95th percentile."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return {"p50": None, "p95": None}
    return {"p50": median(known), "p95": known[ceil(_P95 * len(known)) - 1]}
