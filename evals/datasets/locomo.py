"""LoCoMo (Maharana et al., ACL 2024): its conversations as turns, its questions, its observations as facts.

The shape is that of `locomo10.json` in github.com/snap-research/locomo. The known dirt of the data is mended
here and nowhere else: malformed evidence ids are split and normalised, ids that no turn has are dropped,
answers become text, session dates without turns are ignored.
"""

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import WORDLESS, Unread
from memcycle.core.messages import clean_text, image_note
from memcycle.core.turn import Conversation, Session, Turn, turn_id
from memcycle.evals.dataset import GivenFact, Question, Sample
from memcycle.evals.datasets.reading import answer_text, list_in, object_in, samples_of, text_in, time_in
from memcycle.evals.metrics import ADVERSARIAL, MULTI_HOP, OPEN_DOMAIN

CATEGORIES = {1: MULTI_HOP, 2: "temporal", 3: OPEN_DOMAIN, 4: "single-hop", 5: ADVERSARIAL}
"""Names of the categories by their numbers in the data."""
ANSWERABLE = tuple(name for name in CATEGORIES.values() if name != ADVERSARIAL)
TUNING = ("conv-26", "conv-30", "conv-41", "conv-42", "conv-43")
REPORTING = ("conv-44", "conv-47", "conv-48", "conv-49", "conv-50")

_SAMPLE = {"sample_id", "conversation", "qa", "observation", "session_summary", "event_summary"}
_TURN = {"speaker", "dia_id", "text", "blip_caption", "img_url", "img_file", "query", "re-download"}
_OF_SESSION = re.compile(r"session_\d+(_date_time)?")
"""Fields that are known, whether they are read or not."""


def load_locomo(path: Path, *, zone: tzinfo) -> list[Sample]:
    """The samples of a LoCoMo file, see `memcycle.evals.dataset.Loader`."""
    return samples_of(path, read_locomo, zone=zone)


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
    unread = Unread()
    unread.see(sample, _SAMPLE)
    sessions = _sessions(name, sample["conversation"], zone, unread)
    conversation = Conversation(name, sessions, unread.notes())
    known = {turn.id for turn in conversation.turns}
    questions = list_in(f"sample {name}", sample, "qa") if sample.get("qa") else []
    read = tuple(_question(name, number, item, known) for number, item in enumerate(questions, start=1))
    return Sample(name, conversation, read, tuple(_facts(name, sample.get("observation") or {}, known)))


def _sessions(name: str, conversation: dict[str, Any], zone: tzinfo, unread: Unread) -> tuple[Session, ...]:
    keys = [match for match in (re.fullmatch(r"session_(\d+)", key) for key in conversation) if match]
    unread.see({key: 0 for key in conversation if not _OF_SESSION.fullmatch(key)}, ("speaker_a", "speaker_b"))
    sessions = []
    for number in sorted(int(match[1]) for match in keys):
        where = f"sample {name}, session_{number}"
        # The data set times no single turn: all turns of a session share its start.
        begun = str(conversation.get(f"session_{number}_date_time"))
        time = time_in(f"{where}_date_time", begun, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023", zone)
        items = list_in(f"sample {name}", conversation, f"session_{number}")
        turns = [_turn(where, str(number), place, item, time) for place, item in enumerate(items, start=1)]
        said = tuple(turn for turn in turns if turn is not None)
        unread.left(WORDLESS, len(turns) - len(said))
        for item in items:
            unread.see(item, _TURN)
        if said:
            sessions.append(Session(str(number), said))
    return tuple(sessions)


def _turn(where: str, session: str, position: int, item: Any, time: datetime) -> Turn | None:
    where = f"{where}, turn {position}"
    speaker, said = (text_in(where, object_in(where, item), key) for key in ("speaker", "text"))
    text = " ".join(part for part in (clean_text(said), image_note(item.get("blip_caption"))) if part)
    who = clean_text(speaker) or "unknown"
    return Turn.at(session, position, speaker=who, text=text, time=time) if text else None


def _question(name: str, number: int, item: Any, known: set[str]) -> Question:
    where = f"sample {name}, question {number}"
    text = text_in(where, object_in(where, item), "question")
    category = CATEGORIES.get(item.get("category")) if isinstance(item.get("category"), int) else None
    if category is None:
        raise BadInput(f"{where}: field 'category' is {item.get('category')!r:.40}, not 1 to 5")
    return Question(
        id=str(number),
        question=text,
        answer=answer_text(item.get("answer")),
        evidence=mend_evidence(item.get("evidence") or [], known),
        category=category,
        adversarial=category == ADVERSARIAL,
    )


def _facts(name: str, observations: Any, known: set[str]) -> Iterator[GivenFact]:
    """The observations: lists of a text and its turn id, or ids, by session and by speaker."""
    for key, by_speaker in object_in(f"sample {name}: field 'observation'", observations).items():
        where = f"sample {name}, {key}"
        match = re.fullmatch(r"session_(\d+)_observation", key)
        if not match:
            raise BadInput(
                f"{where}: such a field is called session_1_observation, with the session's number"
            )
        for speaker in object_in(where, by_speaker):
            for number, item in enumerate(list_in(where, by_speaker, speaker), start=1):
                yield _fact(f"{where}, {speaker}, observation {number}", match[1], speaker, item, known)


def _fact(where: str, session: str, speaker: str, item: Any, known: set[str]) -> GivenFact:
    match item:
        case [str() as words, ids] if clean_text(words):
            turns = mend_evidence(ids if isinstance(ids, list) else [ids], known)
            return GivenFact(clean_text(words), turns, clean_text(speaker) or None, session)
    raise BadInput(f"{where} is not a text and its turn ids")


def mend_evidence(values: list[Any], known: set[str]) -> tuple[str, ...]:
    """The known turns that evidence strings such as `D8:6; D9:17`, `D:11:26` and `D30:05` mean, each once."""
    found = [
        turn_id(str(int(session)), int(place))
        for value in map(str, values)
        for session, place in re.findall(r"D:?(\d+):(\d+)", value)
    ]
    return tuple(dict.fromkeys(name for name in found if name in known))
