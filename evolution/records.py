"""What an evolution writes down, and the folder it is written into."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from memcycle.agents.diagnoser import MissedView, ShownView
from memcycle.core.probe import Usage
from memcycle.evals.folder import Lines, RunFolder
from memcycle.evals.records import StoredConversation, Verdict


class QuestionRecord(BaseModel):
    """One question: what it was scored against, what was shown and missed, what was answered.

    Attributes:
        theta: Fingerprint of the configuration it was asked under. memory: which reading of the conversation.
        wanted: Gold turns. missed: those that were not shown, and where they were.
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


class EvolveFolder:
    """A folder of an evolution.

    Attributes:
        run: What it has as the folder of any run: configuration, figures, report, plot.
        homes: One line a conversation that is stored whole. shelf: the folder of the homes, which may be
            shared by several evolutions.
        checkpoints: Of the graph. best: the configuration that came of it. versions: those of a tree.
    """

    def __init__(self, path: Path, shelf: Path | None = None) -> None:
        self.path, self.run = path, RunFolder(path, "trajectory.svg")
        self.shelf = shelf or path / "homes"
        self.homes = Lines(self.shelf / "stored.jsonl", StoredHome)
        self.checkpoints, self.best = path / "checkpoints.sqlite3", path / "best_theta.json"
        self.versions = path / "versions"

    def round(self, number: int) -> Path:
        """The artefacts of a round."""
        return self.path / "rounds" / str(number)

    def evaluation(self, theta: str, memory: int, split: str) -> Lines[QuestionRecord]:
        """Records of one configuration, by its fingerprint, on one split; one line a question."""
        path = self.path / "evaluations" / f"{theta}-{memory}-{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return Lines(path, QuestionRecord)


def home_key(*parts: Any) -> str:
    """The name of a home, from all that what is stored in it depends on; never a path from the data."""
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=12).hexdigest()
