"""One run of evolution as data: the same task goes on with a run, another one never does."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.evals.plan import NONE, OBSERVATIONS, RULES, Plan
from memcycle.evolution.objective import Mix, answers_needed
from memcycle.evolution.splits import Split

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
