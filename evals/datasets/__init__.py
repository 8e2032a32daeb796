"""The data sets that can be evaluated on, by name; their files read, chosen from and told apart."""

from dataclasses import replace
from datetime import tzinfo
from hashlib import file_digest
from pathlib import Path

from memcycle.core.errors import BadInput
from memcycle.evals.dataset import Loader, Sample, chosen
from memcycle.evals.datasets.jsonl import load_jsonl
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.evals.datasets.longmemeval import load_longmemeval
from memcycle.evals.datasets.membench import load_membench

LOADERS: dict[str, Loader] = {
    "locomo": load_locomo,
    "longmemeval": load_longmemeval,
    "membench": load_membench,
    "jsonl": load_jsonl,
}


def load(
    kind: str, path: Path, *, zone: tzinfo, conversations: str | None, limit: int | None
) -> list[Sample]:
    """The chosen samples of a data set's file, with at most `limit` questions each.

    Raises:
        BadInput: an unreadable file, an unknown conversation, or nothing in it to ask.
    """
    samples = chosen(LOADERS[kind](path, zone=zone), conversations)
    asked = [replace(sample, questions=sample.questions[:limit]) for sample in samples]
    if not any(sample.questions for sample in asked):
        raise BadInput(f"{path}: there is no question in what was chosen")
    empty = next((sample.id for sample in asked if not sample.conversation.turns), None)
    if empty is not None:
        raise BadInput(f"{path}: conversation {empty!r} has no turn with text")
    return asked


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
