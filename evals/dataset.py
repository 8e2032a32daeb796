"""One shape for every data set: conversations with their questions, and what these are scored against."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memcycle.core.errors import BadInput
from memcycle.core.turn import Conversation


@dataclass(frozen=True)
class Question:
    """One question with what it is scored against. No node may see more of it than `question` and `asked_at`.

    Attributes:
        id: Unique in its sample.
        answer: The gold answer as text; None where the data give none.
        evidence: Ids of the gold turns, mended, each once, all of them turns of the sample.
        category: Its name, `multi-hop` say; None where the data have no categories.
        adversarial: Whether the right answer is that nothing of the kind was mentioned.
        asked_at: When it is asked, timezone-aware; None where the data do not say.
    """

    id: str
    question: str
    answer: str | None
    evidence: tuple[str, ...]
    category: str | None
    adversarial: bool = False
    asked_at: datetime | None = None


@dataclass(frozen=True)
class GivenFact:
    """A fact, made by a model, that the data set ships with its conversation.

    Attributes:
        turns: Ids of the turns it was made from, mended, all of them turns of the sample; () for none known.
        speaker: Whom it is about.
        session: Name of the session it was made from.
    """

    text: str
    turns: tuple[str, ...]
    speaker: str | None
    session: str


@dataclass(frozen=True)
class Sample:
    """One conversation with its questions and the facts that the data set ships."""

    id: str
    conversation: Conversation
    questions: tuple[Question, ...]
    facts: tuple[GivenFact, ...] = ()


Loader = Callable[..., list[Sample]]
"""`(path, *, zone)`: the samples of a data set's file, as it is published; the zone of times that name none.

`BadInput` where the file cannot be read or is not of the data set's shape; names file, sample and field.
"""


def chosen(samples: Sequence[Sample], spec: str | None) -> list[Sample]:
    """The samples that a list such as `6-10`, `3`, `4-`, `conv-26,conv-30` or `1-2,conv-50` names.

    Args:
        samples: In the order of their places, counted from 1.
        spec: Ids, places and ranges of places, divided by commas; an id wins over a place that is written
            alike. None for all of them.

    Returns:
        The named ones, each once, in the order of the file.

    Raises:
        BadInput: a part names no sample; says what there is.
    """
    if spec is None:
        return list(samples)
    wanted = {place for part in spec.split(",") for place in _places(samples, part.strip())}
    return [samples[place] for place in sorted(wanted)]


def _places(samples: Sequence[Sample], part: str) -> list[int]:
    named = [place for place, sample in enumerate(samples) if sample.id == part]
    if named:
        return named
    match = re.fullmatch(r"([0-9]{1,9})(?:\s*(-)\s*([0-9]{1,9})?)?", part)
    if match:
        low = int(match[1])
        high = int(match[3]) if match[3] else (len(samples) if match[2] else low)
        if 1 <= low <= high <= len(samples):
            return list(range(low - 1, high))
    raise BadInput(f"no conversation {part!r} in the data; {_those_there(samples)}")


def _those_there(samples: Sequence[Sample]) -> str:
    shown = 20
    names = [sample.id for sample in samples[:shown]]
    more = f" and {len(samples) - shown} more" if len(samples) > shown else ""
    if not samples:
        return "there is none"
    places = "place 1" if len(samples) == 1 else f"places 1-{len(samples)}"
    return f"give {places}, or an id: {', '.join(names)}{more}"
