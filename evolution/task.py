"""One run of evolution as data: the same task goes on with a run, another one never does."""

from collections.abc import Mapping, Sequence
from math import fsum, isclose, isfinite
from random import Random
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from memcycle.agents.diagnoser import MissedView, ShownView
from memcycle.core.errors import BadInput
from memcycle.core.probe import Usage
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.evals.dataset import Question, Sample, chosen
from memcycle.evals.records import NONE, OBSERVATIONS, RULES, Plan, StoredConversation, Verdict

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
        try:
            found[split] = [sample.id for sample in chosen(samples, spec)]
        except BadInput as error:
            raise BadInput(f"{option(split)}: {error}") from None
    names = list(found)
    for at, split in enumerate(names):
        for other in names[at + 1 :]:
            both = [name for name in found[split] if name in found[other]]
            if both:
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


class QuestionRecord(BaseModel):
    """One question: what it was scored against, what was shown and missed, what was answered.

    Attributes:
        theta: Fingerprint of the configuration it was asked under. memory: which reading of the conversation.
        gold: The gold answer. wanted: gold turns. missed: those that were not shown, and where they were.
        held: By signal what those that were shown have more of than the best others, in the mean.
        evidence: Ids of the entries that were shown, best first. shown: how many of a kind, and their tokens.
        recall: Share of the gold turns shown; None without gold turns.
        f1, verdict: Of the answer; None where none was asked for.
        error: What the question crashed with; it then counts as wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation: str
    id: str
    theta: str
    memory: int
    question: str
    category: str | None
    gold: str | None
    wanted: tuple[str, ...]
    missed: tuple[MissedView, ...] = ()
    held: dict[str, float] = {}
    evidence: tuple[str, ...] = ()
    shown: ShownView = ShownView()
    recall: float | None = None
    answer: str | None = None
    abstained: bool | None = None
    f1: float | None = None
    verdict: Verdict | None = None
    usage: Usage = {}
    error: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Conversation and question id."""
        return self.conversation, self.id

    @property
    def calls(self) -> int:
        """Model calls it took."""
        return sum(count["calls"] for count in self.usage.values())

    def blanked(self) -> "QuestionRecord":
        """The same without what tells why it failed: a control for what the diagnosis reads."""
        nothing = {"missed": (), "held": {}, "shown": ShownView(), "answer": None, "gold": None}
        return self.model_copy(update=nothing)


class StoredHome(BaseModel):
    """A conversation that is stored in a home. `memory`: how often it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: str
    memory: int
    stored: StoredConversation


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
        mix[measure] = _share_objective(text, share)
    total = fsum(mix.values())
    return mix if isclose(total, 1) else {name: share / total for name, share in mix.items()}


def _share_objective(text: str, share: str) -> float:
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


R_MAX, TAU, EPSILON = 7, 0.01, 0.005
"""EvolveMem's rounds at most, drop that is reverted, and gain below which a round is flat."""


class Task(BaseModel):
    """Everything a figure depends on, but the packages' versions.

    Attributes:
        data: Kind of data set. file, sha256: its file's name and hash.
        splits: Ids of the questions of each split, by conversation.
        objective: What is to grow. balanced: with every category counting the same.
        token_budget: Tokens of evidence at most, whatever a configuration says: configurations are compared
            at an equal cost.
        facts: Where facts come from, as in `memcycle eval`. model: who runs recall. judge: who compares
            answers with the gold. diagnoser: who reads the failures.
        start: What is evolved. start_name: what that is called.
        rounds: At most, after the start. tau: drop of the guard's score that is reverted. epsilon: gain
            below which a round is flat.
        max_calls: Model calls of all rounds at most; None for no limit.
        shown: Failures that the Diagnoser is shown at most.
        blank: Show the Diagnoser failures without what tells why: a control.
        random_seeds: Of random search beside it; none for no such search.
        settings: Embedder, time zone, switches. Its home and its theta do not count.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    file: str
    sha256: str
    splits: dict[Split, dict[str, tuple[str, ...]]]
    objective: Mix
    balanced: bool = False
    token_budget: int = Field(ge=50, le=100_000)
    facts: str = RULES
    model: str = RULES
    judge: str | None = None
    diagnoser: str = RULES
    start: Theta
    start_name: str
    rounds: int = Field(R_MAX, ge=0, le=100)
    tau: float = Field(TAU, ge=0, le=1)
    epsilon: float = Field(EPSILON, ge=0, le=1)
    max_calls: int | None = Field(None, ge=1)
    shown: int = Field(300, ge=1, le=5000)
    blank: bool = False
    seed: int = 0
    random_seeds: tuple[int, ...] = ()
    settings: Settings

    @property
    def answers(self) -> bool:
        """Whether questions are answered, not only searched."""
        return answers_needed(self.objective)

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
        from memcycle.evolution.space import writing

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
