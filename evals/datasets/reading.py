"""What the readers of data sets share: JSON files, and errors that name where they are."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file
from memcycle.evals.dataset import Sample


def samples_of(path: Path, read: Callable[..., list[Sample]], **how: Any) -> list[Sample]:
    """The samples that `read` makes of a file's parsed JSON, with these arguments; see `dataset.Loader`."""
    text = read_file(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from None
    with errors_of(path):
        return read(data, **how)


@contextmanager
def errors_of(where: Path | str) -> Iterator[None]:
    """Names the file, or the option, in front of the bad input that is found within."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def distinct(samples: Iterable[tuple[str, Sample]]) -> list[Sample]:
    """The samples, each given with its place in the file; `BadInput` for two of one id."""
    found: dict[str, Sample] = {}
    for where, sample in samples:
        if found.setdefault(sample.id, sample) is not sample:
            raise BadInput(f"{where}: there is a conversation {sample.id!r} already")
    return list(found.values())


def time_in(where: str, words: str, form: str, like: str, zone: tzinfo) -> datetime:
    """A time written in a form of `strptime`, which holds no zone; `BadInput` where it is not."""
    try:
        return datetime.strptime(words, form).replace(tzinfo=zone)
    except ValueError:
        raise BadInput(f"{where}: {words!r:.60} is not like {like!r}") from None


def object_in(where: str, value: Any) -> dict[str, Any]:
    """The value, which must be a JSON object; `BadInput` where it is not."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} is {type(value).__name__}, not an object")
    return value


def text_in(where: str, item: dict[str, Any], key: str) -> str:
    """The text of a field; `BadInput` where it is missing or not text."""
    if not isinstance(item.get(key), str):
        raise BadInput(f"{where}: field {key!r} is missing or not text")
    return str(item[key])


def list_in(where: str, item: dict[str, Any], key: str) -> list[Any]:
    """The list of a field; `BadInput` where it is missing or not a list."""
    if not isinstance(item.get(key), list):
        raise BadInput(f"{where}: field {key!r} is missing or not a list")
    return list(item[key])


def answer_text(value: Any) -> str | None:
    """An answer as text: numbers as they are written, lists divided by commas, None for none."""
    if value is None:
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
