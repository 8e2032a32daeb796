import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_file, read_jsonl
from memcycle.core.messages import clean_text
from memcycle.core.turn import Turn, turn_id

GOOD = {
    "session": "1",
    "speaker": "Ann",
    "role": "human",
    "text": "Hello.",
    "time": "2024-05-08T13:56:00+02:00",
}


def lines(*records) -> str:
    return "\n".join(json.dumps(record) for record in records)


def test_sessions_keep_the_order_of_their_first_line():
    text = lines(
        GOOD,
        {**GOOD, "session": "trip", "speaker": "Bo", "role": "assistant"},
        {**GOOD, "text": " "},
        {**GOOD, "text": "Again.", "role": "user", "id": "m4"},
    )
    read = read_jsonl(text, zone=UTC, name="chat")
    assert read.name == "chat"
    assert [
        (s.name, [(t.id, t.speaker, t.role, t.text, t.message_id) for t in s.turns]) for s in read.sessions
    ] == [
        ("1", [("D1:1", "Ann", "human", "Hello.", None), ("D1:3", "Ann", "human", "Again.", "m4")]),
        ("trip", [("Dtrip:1", "Bo", "ai", "Hello.", None)]),
    ]


def test_numbers_are_names_and_naive_times_take_the_zone():
    [session] = read_jsonl(
        lines({**GOOD, "session": 3, "time": "2024-05-08 13:56"}), zone=ZoneInfo("Asia/Tokyo")
    ).sessions
    assert session.name == "3"
    assert session.turns[0].time == datetime(2024, 5, 8, 4, 56, tzinfo=UTC)


def test_the_caption_of_an_image_stands_in_the_text():
    read = read_jsonl(
        lines({**GOOD, "caption": "a kite"}, {**GOOD, "text": "", "caption": "two\nbees"}), zone=UTC
    )
    assert [turn.text for turn in read.turns] == ["Hello. [image: a kite]", "[image: two bees]"]


def test_blank_lines_and_line_separators_inside_text():
    read = read_jsonl(
        "\n" + json.dumps({**GOOD, "text": "a\u2028b"}, ensure_ascii=False) + "\r\n\n", zone=UTC
    )
    assert [turn.text for turn in read.turns] == ["a\u2028b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lines(GOOD) + "\n{oops", ["record 2", "JSON"]),
        ("\n\n" + lines(GOOD, [1]), ["record 2 (line 4)", "list"]),
        ("[" * 100_000, ["record 1", "JSON"]),
        *[
            (lines(GOOD, {k: v for k, v in GOOD.items() if k != key}), ["record 2", repr(key)])
            for key in GOOD
        ],
        (lines({**GOOD, "time": "yesterday"}), ["record 1", "D1:1", "'time'", "ISO 8601"]),
        (lines({**GOOD, "role": "boss"}), ["record 1", "'role'", "boss"]),
        (lines({**GOOD, "text": 7}), ["record 1", "'text'", "int"]),
        (lines({**GOOD, "caption": 7}), ["record 1", "'caption'", "int"]),
        (lines({**GOOD, "speaker": " "}), ["record 1", "'speaker'"]),
        (lines({**GOOD, "session": {}}), ["record 1", "'session'", "dict"]),
        (lines({**GOOD, "session": "x" * 600}), ["record 1", "'session'", "512"]),
        (lines({"granularity": "fact", "scope": {}, "text": "x"}), ["record 1", "memcycle import"]),
    ],
)
def test_bad_records_are_named(text, words):
    with pytest.raises(BadInput) as caught:
        read_jsonl(text, zone=UTC)
    assert all(word in str(caught.value) for word in words), str(caught.value)


TURNS = st.lists(
    st.builds(
        dict,
        session=st.sampled_from(["1", "2", "trip"]),
        speaker=st.text(min_size=1, max_size=20).filter(lambda t: clean_text(t) == t),
        role=st.sampled_from(["human", "ai", "tool", "system"]),
        text=st.text(min_size=1).filter(lambda t: clean_text(t) == t),
        time=st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        message_id=st.none() | st.uuids().map(str),
    )
)


def line(turn: Turn) -> dict:
    fields = turn.model_dump(mode="json", exclude={"id", "position", "message_id"})
    return fields if turn.message_id is None else {**fields, "id": turn.message_id}


@given(TURNS)
def test_what_is_written_is_read_back(records):
    counts: dict[str, int] = {}
    turns = []
    for record in records:
        counts[record["session"]] = position = counts.get(record["session"], 0) + 1
        turns.append(Turn(id=turn_id(record["session"], position), position=position, **record))
    read = read_jsonl(lines(*map(line, turns)), zone=UTC)
    assert sorted(read.turns, key=lambda t: t.id) == sorted(turns, key=lambda t: t.id)


CHAT = read_jsonl(lines(*[{**GOOD, "session": name} for name in ("1", "2", "3", "5")]), zone=UTC, name="chat")


def test_session_ranges():
    for spec, names in [
        ("2", ["2"]),
        ("1-3", ["1", "2", "3"]),
        ("3-", ["3", "5"]),
        ("1, 4-9", ["1", "5"]),
        ("5-5", ["5"]),
    ]:
        assert [session.name for session in CHAT.select(spec).sessions] == names, spec


def test_session_ranges_count_places_where_names_are_words():
    chat = read_jsonl(lines(*[{**GOOD, "session": name} for name in ("a", "b", "c")]), zone=UTC)
    assert [session.name for session in chat.select("2-3").sessions] == ["b", "c"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", ["1-3"]),
        ("a-b", ["'a-b'"]),
        ("3-1", ["no session"]),
        ("4", ["no session", "1 to 5"]),
        ("1,9-", ["'9-'"]),
        ("-2", ["'-2'"]),
    ],
)
def test_bad_session_ranges(spec, words):
    with pytest.raises(BadInput) as caught:
        CHAT.select(spec)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_unreadable_files(tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    for path, words in [("absent", "no such file"), ("latin", "UTF-8"), ("", "folder")]:
        with pytest.raises(BadInput, match=words):
            read_file(tmp_path / path)
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfok")
    assert read_file(tmp_path / "bom") == "ok"


def test_two_turns_of_a_session_cannot_share_an_id():
    lines = [
        {
            "session": session,
            "speaker": "A",
            "role": "human",
            "text": text,
            "time": "2024-05-08T12:00:00Z",
            "id": "m1",
        }
        for session, text in (("1", "one"), ("2", "other session"), ("1", "two"))
    ]
    with pytest.raises(BadInput, match=r"record 3: id 'm1' is that of record 1 already"):
        read_jsonl("\n".join(json.dumps(line) for line in lines), zone=UTC)
