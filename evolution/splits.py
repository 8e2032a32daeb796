"""Which questions an evolution learns from, which decide, and which only the final figures see."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Literal, get_args

from memcycle.core.errors import BadInput
from memcycle.evals.dataset import Question, Sample, chosen
from memcycle.evals.datasets.reading import errors_of

Split = Literal["train", "guard", "held_out"]
SPLITS: tuple[Split, ...] = get_args(Split)
Asked = list[tuple[str, Question]]
"""Questions with the id of their conversation."""
Eligible = dict[str, list[Question]]
"""Questions that can be scored, by conversation."""


def option(split: str) -> str:
    """The option that names a split."""
    return f"--{split.replace('_', '-')}"


def split_up(
    samples: Sequence[Sample],
    specs: Mapping[Split, str],
    *,
    answers: bool,
    limits: Mapping[Split, int | None],
    seed: int,
) -> dict[Split, Asked]:
    """The questions of each split.

    Args:
        samples: The data set.
        specs: By conversations (`1-3`, `conv-26,conv-30`), or all of them by share of questions (`50%`).
        answers: Whether questions are answered: those without gold turns can be scored then.
        limits: Questions of a split at most; drawn evenly over its categories.
        seed: Of all that is drawn.

    Raises:
        BadInput: splits that overlap, by name; an unknown conversation; a split without a question.
    """
    eligible = {one.id: [q for q in one.questions if _is_scored(q, answers=answers)] for one in samples}
    by_share = [spec.strip().endswith("%") for spec in specs.values()]
    if any(by_share) and not all(by_share):
        raise BadInput("name all splits by conversations (1-3), or all by shares of questions (50%)")
    whole = _by_share(eligible, specs, seed) if any(by_share) else _by_conversation(samples, eligible, specs)
    for split, asked in whole.items():
        if not asked:
            raise BadInput(f"{option(split)} {specs[split]} holds no question that can be scored")
    return {split: drawn(asked, limits.get(split), f"{seed} {split}") for split, asked in whole.items()}


def drawn(asked: Asked, limit: int | None, seed: str) -> Asked:
    """At most so many questions, evenly over the categories, in their own order."""
    if limit is None or len(asked) <= limit:
        return asked
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    places: dict[str | None, list[int]] = {}
    for place, (_, question) in enumerate(asked):
        places.setdefault(question.category, []).append(place)
    piles = [random.sample(own, len(own)) for _, own in sorted(places.items(), key=lambda one: str(one[0]))]
    taken: list[int] = []
    while len(taken) < limit:
        taken.extend(pile.pop() for pile in piles if pile)
    return [asked[place] for place in sorted(taken[:limit])]


def _is_scored(question: Question, *, answers: bool) -> bool:
    if question.adversarial:
        return answers
    return bool(question.evidence) or (answers and question.answer is not None)


def _by_conversation(
    samples: Sequence[Sample], eligible: Eligible, specs: Mapping[Split, str]
) -> dict[Split, Asked]:
    found: dict[Split, list[str]] = {}
    for split, spec in specs.items():
        with errors_of(option(split)):
            found[split] = [sample.id for sample in chosen(samples, spec)]
    for (split, own), (other, theirs) in combinations(found.items(), 2):
        if both := [name for name in own if name in theirs]:
            raise BadInput(
                f"{option(split)} and {option(other)} both hold {', '.join(both)}: no figure could be "
                "trusted; give each conversation to one split"
            )
    return {split: [(name, q) for name in own for q in eligible[name]] for split, own in found.items()}


def _by_share(eligible: Eligible, specs: Mapping[Split, str], seed: int) -> dict[Split, Asked]:
    shares = {split: _share(split, spec) for split, spec in specs.items()}
    if sum(shares.values()) > 100 + 1e-9:
        raise BadInput(f"the splits overlap: their shares sum to {sum(shares.values()):g} %")
    every = [(name, question) for name, own in eligible.items() for question in own]
    order = Random(f"{seed} shares").sample(range(len(every)), len(every))  # noqa: S311 - to be repeated
    found: dict[Split, Asked] = {}
    begin = 0.0
    for split, share in shares.items():
        end = begin + share * len(every) / 100
        found[split] = [every[place] for place in sorted(order[round(begin) : round(end)])]
        begin = end
    return found


def _share(split: Split, spec: str) -> float:
    try:
        share = float(spec.strip().removesuffix("%"))
    except ValueError:
        share = 0.0
    if not 0 < share < 100:  # noqa: PLR2004 - per cent
        raise BadInput(f"{option(split)} {spec!r} is no share of questions such as 50%")
    return share
