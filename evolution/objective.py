"""What is to grow: a mix of measures, over all questions or over the categories evenly."""

from collections.abc import Mapping, Sequence
from math import fsum, isclose, isfinite
from typing import Literal, get_args

from memcycle.core.errors import BadInput
from memcycle.evolution.records import QuestionRecord

Measure = Literal["recall", "f1", "judge"]
"""`recall`: share of gold turns shown within the token budget (strict, turn level); `f1`: token F1 of the
answer; `judge`: share of answers that the judge finds right."""
Mix = dict[Measure, float]
MEASURES: tuple[Measure, ...] = get_args(Measure)
RIGHT_F1 = 0.5
"""Token F1 from which an answer counts as no failure."""


def read_mix(text: str) -> Mix:
    """The mix that `recall`, or `recall=0.7,f1=0.3`, names; shares that sum to 1.

    Raises:
        BadInput: an unknown measure, one named twice, or a share that is no number above 0.
    """
    mix: Mix = {}
    for part in text.split(","):
        name, _, share = (piece.strip() for piece in part.partition("="))
        measure = next((one for one in MEASURES if one == name), None)
        if measure is None or measure in mix:
            known = ", ".join(MEASURES)
            raise BadInput(f"--objective {text!r}: {name!r} is named twice or unknown; measures are {known}")
        mix[measure] = _share(text, share)
    total = fsum(mix.values())
    return mix if isclose(total, 1) else {name: share / total for name, share in mix.items()}


def _share(text: str, share: str) -> float:
    try:
        value = float(share) if share else 1.0
    except ValueError:
        value = 0.0
    if not isfinite(value) or value <= 0:
        raise BadInput(f"--objective {text!r}: {share!r} is no share above 0; write recall=0.7,f1=0.3")
    return value


def answers_needed(mix: Mapping[Measure, float]) -> bool:
    """Whether questions must be answered, not only searched."""
    return "f1" in mix or "judge" in mix


def in_words(mix: Mapping[Measure, float], *, balanced: bool) -> str:
    """The mix as people read it."""
    shares = " + ".join(f"{share:g} {name}" if len(mix) > 1 else name for name, share in mix.items())
    return f"{shares}, each category counting the same" if balanced else shares


def value(record: QuestionRecord, mix: Mapping[Measure, float]) -> float | None:
    """A question's own score, 0 to 1; None where it has none of the measures."""
    measured = _measured(record)
    known = {name: share for name, share in mix.items() if measured[name] is not None}
    if not known:
        return None
    return fsum(share * (measured[name] or 0.0) for name, share in known.items()) / fsum(known.values())


def has_failed(record: QuestionRecord, mix: Mapping[Measure, float]) -> bool:
    """Whether it is worth a diagnosis: gold turns were missed, or the answer was wrong."""
    missed = "recall" in mix and record.recall is not None and record.recall < 1
    poor = "f1" in mix and record.f1 is not None and record.f1 < RIGHT_F1
    return missed or poor or ("judge" in mix and record.verdict == "WRONG")


def score(records: Sequence[QuestionRecord], mix: Mapping[Measure, float], *, balanced: bool) -> float:
    """The objective over records, 0 to 1; 0 without any.

    Args:
        records: Of one configuration and split.
        mix: Shares of the measures.
        balanced: Every category counts the same, however many questions it has.
    """
    groups: dict[str | None, list[float]] = {}
    for record in records:
        own = value(record, mix)
        if own is not None:
            groups.setdefault(record.category if balanced else None, []).append(own)
    means = [fsum(group) / len(group) for group in groups.values()]
    return round(fsum(means) / len(means), 6) if means else 0.0


def _measured(record: QuestionRecord) -> dict[Measure, float | None]:
    verdict = None if record.verdict is None else float(record.verdict == "CORRECT")
    return {"recall": record.recall, "f1": record.f1, "judge": verdict}
