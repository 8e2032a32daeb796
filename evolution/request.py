"""What to evolve on, as a person asks for it, and the lab that this opens."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings
from memcycle.evals.dataset import Sample
from memcycle.evals.datasets import LOADERS
from memcycle.evals.records import RULES
from memcycle.evals.run import Watch, file_hash
from memcycle.evolution.lab import Lab
from memcycle.evolution.records import EvolveFolder
from memcycle.evolution.splits import SPLITS, Split, split_up
from memcycle.evolution.task import Options, Task, answers_needed, capped, read_mix
from memcycle.evolution.theta.space import start_theta
from memcycle.evolution.theta.states import EvolveState


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
        first = error.errors()[0]
        raise BadInput(f"request: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def open_lab(
    request: Request, settings: Settings, base_url: str | None = None, watch: Watch = lambda _: None
) -> Lab:
    """The lab of a request, to be used as a context manager; arguments as in `Request.task` and `Lab`."""
    task, samples = request.task(settings)
    folder = EvolveFolder(request.out, request.stored)
    return Lab(task, samples, folder, base_url=base_url, watch=watch)


class LabOpener:
    """Opens the lab of an input's request, once; settings and server are those of the environment."""

    def __init__(self) -> None:
        self._labs: dict[str, Lab] = {}

    def __call__(self, state: EvolveState) -> Lab:
        """The lab of the request.

        Raises:
            BadInput: no request, or one that cannot be used.
        """
        if "request" not in state:
            raise BadInput("evolve needs {'request': {'data': ..., 'train': ..., 'guard': ..., ...}}")
        request = read_request(state["request"])
        key = request.model_dump_json()
        if key not in self._labs:
            lab = open_lab(request, Settings.from_env(), os.environ.get("OPENAI_BASE_URL"))
            lab.folder.start(lab.task, "", resume=True)
            self._labs[key] = lab
        return self._labs[key]
