"""LoCoMo (Maharana et al., ACL 2024): its conversations as turns, and its questions.

Reads a file that the caller names; nothing of the data set is shipped. Its known dirt is mended here and
nowhere else: malformed evidence ids are split and normalised, ids that no turn has are dropped and listed,
answers become text, session dates without turns are ignored.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.conversation import Conversation, Session
from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file
from memcycle.core.messages import clean_text, image_note
from memcycle.core.turn import Turn, turn_id

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TUNING = ("conv-26", "conv-30", "conv-41", "conv-42", "conv-43")
REPORTING = ("conv-44", "conv-47", "conv-48", "conv-49", "conv-50")


@dataclass(frozen=True)
class Question:
    """One question with what it is scored against. No node may see any field but `question`.

    Attributes:
        answer: The gold answer as text; None for an adversarial question without one.
        adversarial_answer: The wrong answer an adversarial question baits with.
        category: 1 to 5, see `CATEGORIES`.
        evidence: Ids of the gold turns, mended, each once, all of them turns of the sample.
        dropped: What stood in the evidence and names no turn.
    """

    question: str
    answer: str | None
    adversarial_answer: str | None
    category: int
    evidence: tuple[str, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One conversation with its questions. `raw` is the sample as the file holds it."""

    id: str
    conversation: Conversation
    questions: tuple[Question, ...]
    raw: dict[str, Any]


def load_locomo(path: Path, *, zone: tzinfo) -> list[Sample]:
    """The samples of a LoCoMo file.

    Raises:
        BadInput: not readable, not JSON, or not of LoCoMo's shape; names the sample and the field.
    """
    text = read_file(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from None
    return read_locomo(data, zone=zone)


def sample_named(samples: list[Sample], name: str) -> Sample:
    """The sample with that id.

    Raises:
        BadInput: there is none; names those there are.
    """
    for sample in samples:
        if sample.id == name:
            return sample
    raise BadInput(f"no conversation {name!r} in the data; there are {', '.join(one.id for one in samples)}")


def read_locomo(data: Any, *, zone: tzinfo) -> list[Sample]:
    """The samples of parsed LoCoMo data: a list of samples, or one.

    Raises:
        BadInput: not of LoCoMo's shape; names the sample and the field.
    """
    samples = [data] if isinstance(data, dict) else data
    if not isinstance(samples, list):
        raise BadInput(f"LoCoMo data is a list of samples, not {type(data).__name__}")
    return [_sample(number, sample, zone) for number, sample in enumerate(samples, start=1)]


def _sample(number: int, sample: Any, zone: tzinfo) -> Sample:
    if not isinstance(sample, dict) or not isinstance(sample.get("conversation"), dict):
        raise BadInput(f"sample {number}: field 'conversation' is missing; a LoCoMo sample has one")
    name = str(sample.get("sample_id") or f"conv-{number}")
    conversation = Conversation(name, _sessions(name, sample["conversation"], zone))
    known = {turn.id for turn in conversation.turns}
    questions = sample.get("qa") or []
    if not isinstance(questions, list):
        raise BadInput(f"sample {name}: field 'qa' is {type(questions).__name__}, not a list")
    read = tuple(
        _question(f"sample {name}, question {n}", item, known) for n, item in enumerate(questions, start=1)
    )
    return Sample(name, conversation, read, sample)


def _sessions(name: str, conversation: dict[str, Any], zone: tzinfo) -> tuple[Session, ...]:
    keys = [match for match in (re.fullmatch(r"session_(\d+)", key) for key in conversation) if match]
    sessions = []
    for number in sorted(int(match[1]) for match in keys):
        where = f"sample {name}, session_{number}"
        time = _session_time(where, conversation.get(f"session_{number}_date_time"), zone)
        items = conversation[f"session_{number}"]
        if not isinstance(items, list):
            raise BadInput(f"{where} is {type(items).__name__}, not a list of turns")
        turns = [_turn(where, str(number), place, item, time) for place, item in enumerate(items, start=1)]
        said = tuple(turn for turn in turns if turn is not None)
        if said:
            sessions.append(Session(str(number), said))
    return tuple(sessions)


def _session_time(where: str, value: Any, zone: tzinfo) -> datetime:
    """The session's start. The data set times no single turn: all turns of a session share it."""
    try:
        # strptime reads no zone here; the next call sets it.
        return datetime.strptime(str(value), "%I:%M %p on %d %B, %Y").replace(tzinfo=zone)
    except ValueError:
        raise BadInput(f"{where}_date_time: {value!r:.60} is not like '1:56 pm on 8 May, 2023'") from None


def _turn(where: str, session: str, position: int, item: Any, time: datetime) -> Turn | None:
    if not isinstance(item, dict):
        raise BadInput(f"{where}, turn {position} is {type(item).__name__}, not an object")
    for key in ("speaker", "text"):
        if not isinstance(item.get(key), str):
            raise BadInput(f"{where}, turn {position}: field {key!r} is missing or not text")
    text = " ".join(part for part in (clean_text(item["text"]), image_note(item.get("blip_caption"))) if part)
    if not text:
        return None
    # Ids in the data are D{session}:{turn}; deriving them makes a duplicate impossible.
    return Turn(
        id=turn_id(session, position),
        session=session,
        position=position,
        speaker=clean_text(item["speaker"]) or "unknown",
        text=text,
        time=time,
    )


def _question(where: str, item: Any, known: set[str]) -> Question:
    if not isinstance(item, dict) or not isinstance(item.get("question"), str):
        raise BadInput(f"{where}: field 'question' is missing or not text")
    if item.get("category") not in CATEGORIES:
        raise BadInput(f"{where}: field 'category' is {item.get('category')!r:.40}, not 1 to 5")
    evidence, dropped = mend_evidence(item.get("evidence") or [], known)
    return Question(
        question=item["question"],
        answer=_answer(item.get("answer")),
        adversarial_answer=_answer(item.get("adversarial_answer")),
        category=item["category"],
        evidence=evidence,
        dropped=dropped,
    )


def _answer(value: Any) -> str | None:
    return None if value is None else str(value)


def mend_evidence(values: list[Any], known: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Turn ids that evidence strings such as `D8:6; D9:17`, `D:11:26` and `D30:05` mean.

    Returns:
        The ids that exist, each once and in order, and the strings or ids that name no turn.
    """
    kept: dict[str, None] = {}
    dropped: list[str] = []
    for value in map(str, values):
        found = [turn_id(str(int(s)), int(p)) for s, p in re.findall(r"D:?(\d+):(\d+)", value)]
        kept.update(dict.fromkeys(name for name in found if name in known))
        dropped.extend(name for name in found if name not in known)
        if not found:
            dropped.append(value)
    return tuple(kept), tuple(dropped)
