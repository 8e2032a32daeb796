"""Data sets of one's own: JSON Lines, one conversation with its questions a line.

Each line is `{"id", "turns": [...], "questions": [...]}`. A turn is what `memcycle ingest` reads from a line,
`{"session", "speaker", "role", "text", "time", "id"?, "caption"?}`. A question is `{"question", "answer"?,
"evidence"?, "category"?}`: evidence names turns by their `id`, or as `D{session}:{place in it}`; the
category `adversarial` means that nothing of the kind was mentioned. Evidence that names no turn is an error,
not dropped: it is the writer's own and can be mended.
"""

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file, read_name, read_records, read_turns
from memcycle.core.turn import Conversation
from memcycle.evals.dataset import Question, Sample
from memcycle.evals.datasets.reading import answer_text, distinct, errors_of, list_in, object_in, text_in
from memcycle.evals.metrics import ADVERSARIAL


def load_jsonl(path: Path, *, zone: tzinfo) -> list[Sample]:
    """The samples of a file of one's own, see `memcycle.evals.dataset.Loader`."""
    text = read_file(path)
    with errors_of(path):
        return read_samples(text, zone=zone)


def read_samples(text: str, *, zone: tzinfo) -> list[Sample]:
    """The samples of such lines.

    Raises:
        BadInput: not of the shape; names the conversation, the turn or question, and the field.
    """
    places = ((f"record {number}", record) for number, record in read_records(text))
    return distinct((where, _sample(where, record, zone)) for where, record in places)


def _sample(where: str, record: dict[str, Any], zone: tzinfo) -> Sample:
    name = read_name(where, record, "id")
    where = f"conversation {name!r}"
    turns = (
        (f"{where}, item {number} of 'turns'", item)
        for number, item in enumerate(list_in(where, record, "turns"), start=1)
    )
    conversation = read_turns(
        ((place, object_in(place, item)) for place, item in turns), zone=zone, name=name
    )
    ids = _ids(where, conversation)
    questions = list_in(where, record, "questions") if record.get("questions") is not None else []
    read = (_question(where, number, item, ids) for number, item in enumerate(questions, start=1))
    return Sample(name, conversation, tuple(read))


def _ids(where: str, conversation: Conversation) -> dict[str, str]:
    """Ids of turns by every name that evidence may give them."""
    ids = {turn.id: turn.id for turn in conversation.turns}
    given = [turn for turn in conversation.turns if turn.message_id is not None]
    own = {turn.message_id: turn.id for turn in given if turn.message_id is not None}
    if len(own) < len(given):
        # Within a session that is an error already.
        raise BadInput(f"{where}: turns of two sessions have the same id; evidence could mean either")
    return ids | own


def _question(where: str, number: int, item: Any, ids: Mapping[str, str]) -> Question:
    where = f"{where}, question {number}"
    text = text_in(where, object_in(where, item), "question")
    if not text.strip():
        raise BadInput(f"{where}: field 'question' is empty")
    category = item.get("category")
    if isinstance(category, int) and not isinstance(category, bool):  # as LoCoMo has them
        category = str(category)
    elif category is not None:
        category = text_in(where, item, "category")
    named = [str(name) for name in (list_in(where, item, "evidence") if item.get("evidence") else [])]
    unknown = [name for name in named if name not in ids]
    if unknown:
        raise BadInput(
            f"{where}: field 'evidence' names {unknown[0]!r:.60}, which no turn with text has for id"
        )
    return Question(
        id=str(number),
        question=text,
        answer=answer_text(item.get("answer")),
        evidence=tuple(dict.fromkeys(ids[name] for name in named)),
        category=category,
        adversarial=category == ADVERSARIAL,
    )
