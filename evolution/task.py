"""One run of evolution as data: the same task goes on with a run, another one never does."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import fsum, isclose, isfinite
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta, overridable
from memcycle.evals.records import NONE, OBSERVATIONS, RULES, Plan
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.splits import Split

VERSION = "version"
"""The dimension that is a configuration's name."""

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
        mix[measure] = _share_of(text, share)
    total = fsum(mix.values())
    return mix if isclose(total, 1) else {name: share / total for name, share in mix.items()}


def _share_of(text: str, share: str) -> float:
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


def fingerprint(theta: Theta) -> str:
    """What a configuration is known by: equal where all of it but its name is. 16 hex digits."""
    plain = theta.model_dump(mode="json", exclude={VERSION})
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def capped(theta: Theta, tokens: int) -> Theta:
    """The configuration with no more tokens of evidence than the limit, for any category of question.

    So the limit is part of it: loaded elsewhere it shows the same evidence.
    """
    paths = ("token_budget", *(f"overrides.{category}.token_budget" for category in theta.overrides))
    changes = {path: tokens for path in paths if (theta.get(path) or 0) > tokens}
    return theta.with_changes(changes)[0] if changes else theta


def writing(theta: Theta) -> dict[str, Any]:
    """The dimensions of writing memory, by path: where one of them changes, conversations are read again."""
    searched = overridable()
    return {path: theta.get(path) for path in Theta.dimensions() if path not in searched and path != VERSION}


R_MAX, TAU, EPSILON = 7, 0.01, 0.005
"""EvolveMem's rounds at most, drop that is reverted, and gain below which a round is flat."""


class Options(BaseModel):
    """What a person may say of an evolution, with what is taken where nothing is said.

    Attributes:
        balanced: The objective with every category of questions counting the same.
        token_budget: Tokens of evidence at most, whatever a configuration says: configurations are compared
            at an equal cost.
        facts: Where facts come from, as in `memcycle eval`. model: who runs recall. judge: who compares
            answers with the gold.
        rounds: At most, after the start. tau: drop of the guard's score that is reverted. epsilon: gain
            below which a round is flat.
        max_calls: Model calls of all rounds at most; None for no limit.
        blank: Show the Diagnoser failures without what tells why: a control.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    balanced: bool = False
    token_budget: int = Field(500, ge=50, le=100_000)
    facts: str = RULES
    model: str = RULES
    judge: str | None = None
    rounds: int = Field(R_MAX, ge=0, le=100)
    tau: float = Field(TAU, ge=0, le=1)
    epsilon: float = Field(EPSILON, ge=0, le=1)
    max_calls: int | None = Field(None, ge=1)
    blank: bool = False
    seed: int = 0


class Task(Options):
    """Everything a figure depends on, but the packages' versions.

    Attributes:
        data: Kind of data set. file, sha256: its file's name and hash.
        splits: Ids of the questions of each split, by conversation.
        objective: What is to grow. diagnoser: who reads the failures.
        start: What is evolved. start_name: what that is called.
        shown: Failures that the Diagnoser is shown at most.
        random_seeds: Of random search beside it; none for no such search.
        settings: Embedder, time zone, switches. Its home and its theta do not count.
    """

    data: str
    file: str
    sha256: str
    splits: dict[Split, dict[str, tuple[str, ...]]]
    objective: Mix
    diagnoser: str = RULES
    start: Theta
    start_name: str
    shown: int = Field(300, ge=1, le=5000)
    random_seeds: tuple[int, ...] = ()
    settings: Settings

    @property
    def answers(self) -> bool:
        """Whether questions are answered, not only searched."""
        return answers_needed(self.objective)

    @property
    def aim(self) -> str:
        """The objective as people read it."""
        one = len(self.objective) == 1
        shares = " + ".join(name if one else f"{share:g} {name}" for name, share in self.objective.items())
        return f"{shares}, each category counting the same" if self.balanced else shares

    def value(self, record: QuestionRecord) -> float | None:
        """A question's own score, 0 to 1; None where it has none of the measures."""
        verdict = None if record.verdict is None else float(record.verdict == "CORRECT")
        measured = {"recall": record.recall, "f1": record.f1, "judge": verdict}
        known = [(share, measured[name]) for name, share in self.objective.items()]
        shares = [(share, own) for share, own in known if own is not None]
        total = fsum(share for share, _ in shares)
        return fsum(share * own for share, own in shares) / total if shares else None

    def has_failed(self, record: QuestionRecord) -> bool:
        """Whether it is worth a diagnosis: gold turns were missed, or the answer was wrong."""
        mix = self.objective
        missed = "recall" in mix and record.recall is not None and record.recall < 1
        poor = "f1" in mix and record.f1 is not None and record.f1 < RIGHT_F1
        return missed or poor or ("judge" in mix and record.verdict == "WRONG")

    def score(self, records: Iterable[QuestionRecord]) -> float:
        """The objective over records of one configuration, 0 to 1; 0 without any."""
        groups: dict[str | None, list[float]] = {}
        for record in records:
            own = self.value(record)
            if own is not None:
                groups.setdefault(record.category if self.balanced else None, []).append(own)
        means = [fsum(group) / len(group) for group in groups.values()]
        return round(fsum(means) / len(means), 6) if means else 0.0

    @property
    def reader(self) -> str:
        """Who reads facts from conversations."""
        return RULES if self.facts in (NONE, OBSERVATIONS) else self.facts

    def plain(self) -> dict[str, Any]:
        """As JSON, without what does not change a figure."""
        return self.model_dump(mode="json", exclude={"settings": {"home", "theta"}})

    def storing(self, theta: Theta) -> Plan:
        """How conversations are stored: under the shipped configuration with this one's dimensions of
        writing, so that memory is the same whatever else of theta changes."""
        written = Theta().with_changes(writing(theta))[0]
        return Plan(
            data=self.data,
            file=self.file,
            sha256=self.sha256,
            conversations=tuple(dict.fromkeys(name for own in self.splits.values() for name in own)),
            facts=self.facts,
            model=self.model,
            answers=False,
            baselines=False,
            k=written.k,
            token_budget=self.token_budget,
            settings=self.settings.model_copy(update={"theta": written}),
        )
