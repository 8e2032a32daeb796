"""MemBench (Tan et al., ACL 2025 Findings): trajectories of messages, each with one question.

Both published shapes are read, as `load_test_data.py` of github.com/import-myself/Membench reads and writes
them. A file is `{question type: {scenario: [trajectory]}}`, or, for a single type,
`{scenario: [trajectory]}`, whose type is the file's name. A trajectory is `{tid, message_list, QA}`. A
message is one step:

- text, or `{message, time, place}`: what an observed user says;
- `{user, agent}` or `{user_message, assistant_message, time, place}`: an exchange, which becomes two turns.

Steps may stand in lists, one a session. Time and place stand behind a message in brackets, and are put there
where the data hold them apart; a message without a time has that of the one before. QA is `{question, answer,
choices, ground_truth, time, target_step_id}`; a target is a step's number from 0 over all sessions, or a pair
of it and the session's. The data do not say which turn of an exchange holds the answer: both are evidence.
The choices are left out, the question is asked openly.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from memcycle.core.errors import BadInput
from memcycle.core.messages import clean_text
from memcycle.core.turn import Conversation, MessageType, Session, Turn, read_time
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.datasets.reading import answer_text, list_in, object_in, samples_of, text_in, unused

_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?")
_TIME_OF_MESSAGE = re.compile(rf"\btime:?\s*'?({_TIME.pattern})")
_SIDES: tuple[tuple[MessageType, str, tuple[str, ...]], ...] = (
    ("human", "user", ("message", "user_message", "user")),
    ("ai", "assistant", ("assistant_message", "agent", "assistant")),
)


class _Said(NamedTuple):
    step: int
    session: str
    role: MessageType
    speaker: str
    text: str


def load_membench(path: Path, *, zone: tzinfo) -> list[Sample]:
    """The samples of a MemBench file, one a trajectory; see `memcycle.evals.dataset.Loader`."""
    return samples_of(path, read_membench, zone=zone, name=path.stem)


def read_membench(data: Any, *, zone: tzinfo, name: str) -> list[Sample]:
    """The samples of parsed MemBench data, called `type/scenario/tid`.

    Args:
        data: The parsed file.
        zone: Zone of its times.
        name: The question type of a file that holds a single one.

    Raises:
        BadInput: not of its shape; names the sample and the field.
    """
    whole = object_in("MemBench data", data)
    by_type = {name: whole} if any(isinstance(value, list) for value in whole.values()) else whole
    samples: dict[str, Sample] = {}
    for kind, scenarios in by_type.items():
        for scenario in object_in(kind, scenarios):
            for number, item in enumerate(list_in(kind, scenarios, scenario)):
                trajectory = object_in(f"{kind}/{scenario}, trajectory {number}", item)
                # Ids of trajectories are not unique where files were mixed.
                own = unused(f"{kind}/{scenario}/{trajectory.get('tid', number)}", samples)
                samples[own] = _sample(own, kind, trajectory, zone)
    return list(samples.values())


def _sample(name: str, kind: str, trajectory: dict[str, Any], zone: tzinfo) -> Sample:
    where = f"sample {name}"
    qa = object_in(f"{where}: field 'QA'", trajectory.get("QA"))
    said = list(_said(where, list_in(where, trajectory, "message_list")))
    asked_at = _asked_at(where, qa.get("time"), zone)
    turns = _turns(where, said, _times(where, said, asked_at, zone))
    steps: dict[int, list[str]] = {}
    for one, turn in zip(said, turns, strict=True):
        steps.setdefault(one.step, []).append(turn.id)
    question = Question(
        id="1",
        question=text_in(where, qa, "question"),
        answer=_answer(qa),
        evidence=_evidence(qa.get("target_step_id"), steps),
        category=kind,
        asked_at=asked_at,
    )
    names = dict.fromkeys(turn.session for turn in turns)
    sessions = [Session(one, tuple(turn for turn in turns if turn.session == one)) for one in names]
    return Sample(name, Conversation(name, tuple(sessions)), (question,))


def _said(where: str, messages: list[Any]) -> Iterator[_Said]:
    """What is said in each step, in order; steps are counted from 0 over all sessions."""
    sessions = messages if messages and all(isinstance(one, list) for one in messages) else [messages]
    step = 0
    for number, session in enumerate(sessions, start=1):
        for message in session:
            for role, speaker, text in _sides(f"{where}, step {step}", message):
                if text:
                    yield _Said(step, str(number), role, speaker, text)
            step += 1


def _sides(where: str, message: Any) -> Iterator[tuple[MessageType, str, str]]:
    if isinstance(message, str):
        yield "human", "user", clean_text(message)
        return
    fields = object_in(where, message)
    if not any(key in fields for _, _, keys in _SIDES for key in keys):
        raise BadInput(f"{where} holds no message; it has {', '.join(sorted(fields)[:8]) or 'no field'}")
    kept = "; ".join(f"{key}: {fields[key]}" for key in ("place", "time") if fields.get(key))
    for role, speaker, keys in _SIDES:
        for key in keys:
            if key in fields:
                text = clean_text(text_in(where, fields, key))
                yield role, speaker, clean_text(f"{text} ({kept})") if text and kept else text
                break


def _times(where: str, said: Sequence[_Said], asked_at: datetime | None, zone: tzinfo) -> list[datetime]:
    """The time of each message: its own, else that of the one before, else the first there is."""
    own = [_TIME_OF_MESSAGE.findall(one.text) for one in said]
    known = [_time(where, found[-1], zone) if found else None for found in own]
    last = next((time for time in known if time is not None), asked_at)
    if last is None:
        raise BadInput(f"{where}: neither a message nor the question has a time such as '2024-10-01 08:00'")
    times = []
    for time in known:
        last = time or last
        times.append(last)
    return times


def _asked_at(where: str, value: Any, zone: tzinfo) -> datetime | None:
    match = _TIME.search(value) if isinstance(value, str) else None
    return _time(where, match[0], zone) if match else None


def _time(where: str, words: str, zone: tzinfo) -> datetime:
    try:
        return read_time(words, zone)
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def _turns(where: str, said: Sequence[_Said], times: Sequence[datetime]) -> list[Turn]:
    if not said:
        raise BadInput(f"{where}: field 'message_list' holds no message")
    turns: list[Turn] = []
    places: dict[str, int] = {}
    for one, time in zip(said, times, strict=True):
        place = places[one.session] = places.get(one.session, 0) + 1
        words = {"speaker": one.speaker, "role": one.role, "text": one.text}
        turns.append(Turn.at(one.session, place, time=time, **words))
    return turns


def _evidence(targets: Any, steps: dict[int, list[str]]) -> tuple[str, ...]:
    """Ids of the turns of the target steps."""
    kept: dict[str, None] = {}
    for target in targets if isinstance(targets, list) else [targets]:
        step = target[0] if isinstance(target, list) and target else target
        kept.update(dict.fromkeys(steps.get(step, []) if isinstance(step, int) else []))
    return tuple(kept)


def _answer(qa: dict[str, Any]) -> str | None:
    """The answer in words, or those of the right choice."""
    if qa.get("answer") is not None:
        return answer_text(qa["answer"])
    choices = qa.get("choices")
    return answer_text(choices.get(qa.get("ground_truth"))) if isinstance(choices, dict) else None
