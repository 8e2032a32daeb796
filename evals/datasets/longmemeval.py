"""LongMemEval (Wu et al., ICLR 2025): each question with a haystack of chat sessions of its own.

The shape is that of `longmemeval_s.json`, `_m` and `_oracle`, as the README of
github.com/xiaowu0162/LongMemEval describes it: a list of objects with question_id, question_type, question,
answer, question_date and, in step, haystack_session_ids, haystack_dates and haystack_sessions (turns of a
role and content, those that hold the evidence flagged has_answer); answer_session_ids names the sessions that
hold it. An id that ends in `_abs` marks a question that cannot be answered.

Evidence is every flagged turn, the assistant's too; the data set's own retrieval code looks at the user's
turns alone. Sessions are put in the order of their dates, which the oracle file does not keep.
"""

import re
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_name
from memcycle.core.messages import clean_text, read_role
from memcycle.core.turn import Conversation, Session, Turn
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.datasets.reading import (
    answer_text,
    distinct,
    list_in,
    object_in,
    samples_of,
    text_in,
    time_in,
    unused,
)

_WEEKDAY = re.compile(r"\s*\(\w+\)\s*")


def load_longmemeval(path: Path, *, zone: tzinfo) -> list[Sample]:
    """The samples of a LongMemEval file, one a question; see `memcycle.evals.dataset.Loader`."""
    return samples_of(path, read_longmemeval, zone=zone)


def read_longmemeval(data: Any, *, zone: tzinfo) -> list[Sample]:
    """The samples of parsed LongMemEval data.

    Raises:
        BadInput: not of its shape; names the sample and the field.
    """
    if not isinstance(data, list):
        raise BadInput(f"LongMemEval data is a list of questions, not {type(data).__name__}")
    places = ((f"sample {number}", item) for number, item in enumerate(data, start=1))
    return distinct((where, _sample(where, item, zone)) for where, item in places)


def _sample(where: str, item: Any, zone: tzinfo) -> Sample:
    name = read_name(where, object_in(where, item), "question_id")
    where = f"sample {name}"
    sessions: dict[str, Session] = {}
    flagged: list[str] = []
    for id_, date, contents in _haystack(where, item):
        session = unused(clean_text(str(id_)) or "session", sessions)
        place = f"{where}, session {session}"
        time = _date(place, date, zone)
        turns = [_turn(place, session, n, turn, time) for n, turn in enumerate(contents, start=1)]
        gold = [
            turn.id for turn, given in zip(turns, contents, strict=True) if turn and given.get("has_answer")
        ]
        sessions[session] = Session(session, tuple(turn for turn in turns if turn is not None))
        flagged.extend(gold)
    said = sorted((one for one in sessions.values() if one.turns), key=lambda one: one.turns[0].time)
    question = Question(
        id=name,
        question=text_in(where, item, "question"),
        answer=answer_text(item.get("answer")),
        evidence=tuple(flagged),
        category=text_in(where, item, "question_type"),
        adversarial=name.endswith("_abs"),
        asked_at=_date(f"{where}: field 'question_date'", item.get("question_date"), zone),
    )
    return Sample(name, Conversation(name, tuple(said)), (question,))


def _haystack(where: str, item: dict[str, Any]) -> list[tuple[Any, Any, list[Any]]]:
    """Id, date and turns of each session."""
    keys = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    ids, dates, sessions = (list_in(where, item, key) for key in keys)
    if not len(ids) == len(dates) == len(sessions):
        there = f"{len(ids)}, {len(dates)} and {len(sessions)}"
        raise BadInput(f"{where}: fields {', '.join(keys)} have {there} items; they must have as many")
    for id_, contents in zip(ids, sessions, strict=True):
        if not isinstance(contents, list):
            raise BadInput(f"{where}, session {id_} is {type(contents).__name__}, not a list of turns")
    return list(zip(ids, dates, sessions, strict=True))


def _date(where: str, value: Any, zone: tzinfo) -> datetime:
    """A date such as `2023/05/20 (Sat) 02:21`. The data time no single turn: a session's share its date."""
    # The weekday is left out: its name would be read in the machine's language.
    return time_in(where, _WEEKDAY.sub(" ", str(value)), "%Y/%m/%d %H:%M", "2023/05/20 (Sat) 02:21", zone)


def _turn(where: str, session: str, position: int, item: Any, time: datetime) -> Turn | None:
    where = f"{where}, turn {position}"
    text = clean_text(text_in(where, object_in(where, item), "content"))
    try:
        role = read_role(item.get("role"))
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
    said = {"speaker": item["role"], "role": role, "text": text, "time": time}
    return Turn.at(session, position, **said) if text else None
