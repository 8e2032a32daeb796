"""The folder of a run: its configuration, one line a question as it is made, and the stored conversations.

A run that was broken off, by a kill too, leaves a folder from which the same command with `--resume` goes on:
each line is written whole and at once, and a last line that a kill tore is cut off.
"""

import json
import shutil
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from memcycle.core.errors import BadInput
from memcycle.evals.records import Record, StoredConversation, first_difference, versions

M = TypeVar("M", bound=BaseModel)


class Lines(Generic[M]):
    """A file of records, one JSON object a line, that is only ever added to."""

    def __init__(self, path: Path, model: type[M]) -> None:
        self.path, self._model = path, model

    def read(self) -> list[M]:
        """All records. A last line that is not whole is cut off.

        Raises:
            BadInput: a line before the last is none of ours; names it.
        """
        if not self.path.is_file():
            return []
        *whole, torn = self.path.read_bytes().split(b"\n")
        if torn:
            with self.path.open("r+b") as file:
                file.truncate(sum(len(line) + 1 for line in whole))
        return [self._parsed(number, line) for number, line in enumerate(whole, start=1)]

    def _parsed(self, number: int, line: bytes) -> M:
        try:
            return self._model.model_validate_json(line)
        except ValidationError as error:
            raise BadInput(
                f"{self.path}: line {number} is not a record of this version: {error.errors()[0]['msg']}"
            ) from None

    def add(self, record: M) -> None:
        """Adds a record; it is in the file, whole, when this returns."""
        with self.path.open("ab") as file:
            file.write(record.model_dump_json().encode() + b"\n")


def _draft_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def write_whole(path: Path, text: str) -> None:
    """A file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _draft_of(path).write_text(text, "utf-8")
    _draft_of(path).replace(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON file, whole or not at all; what JSON has no form for is text."""
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=2, default=str) + "\n")


class RunFolder:
    """A run's folder.

    Attributes:
        records: One line a question. stored: one line a conversation that is stored whole.
        summary: The figures, as `--json` prints them. report, plot: what people read of them.
    """

    def __init__(self, path: Path, plot: str = "recall_by_tokens.svg") -> None:
        self.path = path
        self.records = Lines(path / "records.jsonl", Record)
        self.stored = Lines(path / "stored.jsonl", StoredConversation)
        self.summary, self.report, self.plot = path / "summary.json", path / "report.md", path / plot
        self._config = path / "config.json"

    def home(self, conversation: str) -> Path:
        """Where a conversation is stored. Its id is what the data say, so it never becomes a path."""
        return self.path / "homes" / blake2b(conversation.encode(), digest_size=8).hexdigest()

    def start(self, plan: Mapping[str, Any], command: str, *, resume: bool) -> None:
        """Makes the folder of a plan, given as JSON, or goes on with the run that is in it.

        Raises:
            BadInput: the folder holds other files, or a run that is not to be resumed or is another one.
        """
        ours = {"plan": plan, "versions": versions()}
        if self._config.is_file():
            self._check_same(ours, resume=resume)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            foreign = next((path for path in self.path.iterdir() if path != _draft_of(self._config)), None)
        except OSError as error:
            raise BadInput(f"--out {self.path} cannot be made or read: {error.strerror}") from None
        if foreign is not None:
            raise BadInput(
                f"--out {self.path} holds other files ({foreign.name}); name a new or empty folder"
            )
        # A kill leaves no folder that cannot be used again.
        write_json(self._config, {**ours, "command": command, "seeds": []})

    def _check_same(self, ours: Mapping[str, Any], *, resume: bool) -> None:
        if not resume:
            raise BadInput(
                f"--out {self.path} holds a run already: add --resume to go on with it, or name another"
            )
        try:
            theirs = json.loads(self._config.read_text("utf-8"))
        except (OSError, ValueError):
            raise BadInput(f"{self._config} cannot be read; name another folder") from None
        kept = {key: theirs.get(key) for key in ours} if isinstance(theirs, dict) else {}
        # Through JSON and back, as theirs went.
        difference = first_difference(kept, json.loads(json.dumps(ours)))
        if difference:
            raise BadInput(
                f"--out {self.path} holds another run, which this cannot resume: {difference}; name another"
            )

    def drop_home(self, conversation: str) -> None:
        """Deletes a stored conversation."""
        shutil.rmtree(self.home(conversation), ignore_errors=True)

    def drop_homes(self) -> None:
        """Deletes all stored conversations."""
        shutil.rmtree(self.path / "homes", ignore_errors=True)
