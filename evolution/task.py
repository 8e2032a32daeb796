"""One run of evolution as data: the same task goes on with a run, another one never does."""

from collections.abc import Iterable, Mapping
from math import fsum, isclose, isfinite
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memcycle.core.errors import BadInput, first_complaint
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.evals.dataset import Sample
from memcycle.evals.datasets import LOADERS, file_hash
from memcycle.evals.records import RULES, Plan
from memcycle.evolution.records import QuestionRecord
from memcycle.evolution.splits import SPLITS, Split, split_up
from memcycle.evolution.theta.space import capped, start_theta, writing

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
        chain: In a tree each version is made from the last accepted one: an ablation.
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
    chain: bool = False
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
    def questions(self) -> str:
        """The splits as people read them."""
        return ", ".join(
            f"{split.replace('_', ' ')}: {sum(map(len, own.values()))} questions of {', '.join(own)}"
            for split, own in self.splits.items()
        )

    def would_overspend(self, calls: int, evaluations: int) -> bool:
        """Whether another evaluation would likely pass the limit of model calls.

        Args:
            calls: Made so far, by so many evaluations.
        """
        return self.max_calls is not None and bool(calls) and calls + calls / evaluations > self.max_calls

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


class Request(Options):
    """A request; the options of `memcycle evolve`, by their names.

    Attributes:
        kind: Of data set. data: its file. train, guard, held_out: conversations (`1-3`) or shares (`50%`).
        start: `shipped`, a named weak start, or a theta file.
        max_questions: Of train and of guard at most. max_held_out: of the held-out split at most.
        diagnoser: Who reads the failures; by default the model. stored: folder of stored conversations, to
            be shared by several runs.
    """

    kind: str = "locomo"
    data: Path
    train: str
    guard: str
    held_out: str
    out: Path
    start: str = "shipped"
    objective: str = "recall"
    diagnoser: str | None = None
    max_questions: int | None = Field(None, ge=1)
    max_held_out: int | None = Field(None, ge=1)
    random_seeds: int = Field(3, ge=0, le=100)
    stored: Path | None = None

    def task(self, settings: Settings) -> tuple[Task, dict[str, Sample]]:
        """The task, and the conversations it needs by id.

        Raises:
            BadInput: data that cannot be read, splits that overlap, a start or an objective that is unknown.
        """
        mix, start = read_mix(self.objective), capped(start_theta(self.start), self.token_budget)
        if "judge" in mix and self.judge is None:
            raise BadInput("--objective judge needs --judge MODEL: who compares answers with the gold")
        samples = LOADERS[self.kind](self.data, zone=settings.zone)
        specs: dict[Split, str] = {"train": self.train, "guard": self.guard, "held_out": self.held_out}
        limits: dict[Split, int | None] = {
            "train": self.max_questions,
            "guard": self.max_questions,
            "held_out": self.max_held_out,
        }
        asked = split_up(samples, specs, answers=answers_needed(mix), limits=limits, seed=self.seed)
        splits: dict[Split, dict[str, tuple[str, ...]]] = {
            split: {
                name: tuple(question.id for own, question in asked[split] if own == name)
                for name in dict.fromkeys(own for own, _ in asked[split])
            }
            for split in SPLITS
        }
        # A server would keep what is stored here beside what is there.
        own = settings.model_copy(update={"chroma_url": None})
        diagnoser = self.diagnoser or self.model
        task = Task(
            **self.model_dump(include=set(Options.model_fields)),
            data=self.kind,
            file=self.data.name,
            sha256=file_hash(self.data),
            splits=splits,
            objective=mix,
            diagnoser=diagnoser,
            start=start,
            start_name=self.start if self.start == start.version else Path(self.start).name,
            shown=300 if diagnoser == RULES else 40,
            random_seeds=tuple(range(self.seed, self.seed + self.random_seeds)),
            settings=own,
        )
        return task, {one.id: one for one in samples}


def read_request(values: Mapping[str, Any]) -> Request:
    """A request from plain values.

    Raises:
        BadInput: a field that is unknown, missing or does not fit, by name.
    """
    try:
        return Request.model_validate(values)
    except ValidationError as error:
        raise BadInput(f"request: {first_complaint(error)}") from None
