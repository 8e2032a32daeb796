"""Reading replies: what is tolerated, what is not, and that nothing hidden becomes an answer."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.constructor import ConstructorOutput
from memcycle.agents.guide import GuideOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.agents.refresher import RefresherOutput
from memcycle.agents.repairer import RepairerOutput
from memcycle.agents.reply import (
    NoAnswer,
    Unreadable,
    complete_items,
    drop_reasoning,
    list_field,
    read_reply,
    reply_text,
    was_cut,
)

FACT = {"text": "Ana repairs accordions", "turn": 1}
GOOD = json.dumps({"facts": [FACT]})


def texts(content: str | list) -> list[str]:
    return [fact.text for fact in read_reply(AIMessage(content), ConstructorOutput).facts]


def test_tolerated_forms():
    for reply in [
        GOOD,
        f"Sure:\n```json\n{GOOD}\n```\nAnything else?",
        f"```\n{GOOD}\n```",
        f"I looked at it [carefully] and {{think}} that {GOOD} holds, see [1].",
        '{"facts": [{"text": "Ana repairs accordions", "turn": 1,},],}',
        '{"facts": [{"text": "Ana repairs accordions",\n "turn": 1 , } , ]\n, }',
        f'<think>maybe {{"facts": ["WRONG"]}}? no</think>\n{GOOD}',
        f'maybe ["WRONG"]</think>{GOOD}',
        f'<THINKING>{{"facts": []}}</THINKING> {GOOD}',
        f'[THINK]{{"facts": ["WRONG"]}}[/THINK]{GOOD}',
        json.dumps([FACT]),
        f"The facts: {json.dumps([FACT])}",
        f'For example {{"facts": ["like this"]}}; and here: {GOOD}',
        '{"facts": ["Ana repairs accordions"]}',
        '["Ana repairs accordions"]',
        '{"facts": [{"text": "Ana repairs accordions", "turn": 1, "persons": null, "kind": null, "x": 9}]}',
    ]:
        assert texts(reply) == ["Ana repairs accordions"], reply


def test_a_string_is_a_fact_of_an_unknown_turn():
    (fact,) = read_reply(AIMessage('{"facts": ["Keeps bees"]}'), ConstructorOutput).facts
    assert (fact.text, fact.turn) == ("Keeps bees", 0)


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ("", "empty"),
        ("I could not find any facts.", "no JSON"),
        (
            '{"$defs": {}, "properties": {"facts": {"type": "array"}}, "required": ["facts"]}',
            "missing: facts",
        ),
        ('{"fact": []}', "facts: Field required"),
        ('{"facts": [{"turn": 1}, null]}', "facts.0.text: Field required"),
        ('{"facts": [null, 7]}', "facts.0: "),
        ('{"facts": [{"text": "cut", "turn": 1, "persons": ["Ann", "Bob"]}, {"te', "broken JSON"),
        ('{"facts": [{"text": "said "hi" to", "turn": 1, "persons": ["Ann"]}]}', "broken JSON"),
        ("{'facts': ['single quotes']}", "no JSON"),
        ('Their names are ["Ann", "Bob"].', "no JSON"),
        ("[" * 100_000, "JSON"),
        ("<think>" + GOOD, "empty"),
    ],
)
def test_what_is_not_mended(reply, names):
    with pytest.raises(Unreadable, match=names.replace(".", r"\.")):
        read_reply(AIMessage(reply), ConstructorOutput)


def test_a_think_mark_inside_an_answer_is_part_of_it():
    said = {"facts": [{"text": "Ana asked what </think> means", "turn": 1}]}
    assert texts(json.dumps(said)) == ["Ana asked what </think> means"]
    assert texts(f"```json\n{json.dumps(said)}\n```") == ["Ana asked what </think> means"]


def test_only_text_parts_count():
    parts = [
        {"type": "reasoning", "reasoning": '{"facts": ["WRONG"]}'},
        {"type": "thinking", "thinking": '{"facts": ["WRONG"]}'},
        {"type": "text", "text": GOOD[:10]},
        {"type": "text", "text": GOOD[10:]},
        {"type": "image_url", "image_url": {"url": "data:WRONG"}},
    ]
    assert texts(parts) == ["Ana repairs accordions"]
    assert "WRONG" not in reply_text(AIMessage(parts))


def call(args: dict, name: str = "constructor") -> dict:
    return {"name": name, "args": args, "id": "c1", "type": "tool_call"}


def test_tool_arguments_win_over_text():
    reply = AIMessage('{"facts": ["WRONG"]}', tool_calls=[call({"facts": [FACT]})])
    assert [fact.text for fact in read_reply(reply, ConstructorOutput).facts] == ["Ana repairs accordions"]


def test_tool_arguments_the_client_could_not_parse():
    broken = {
        "name": "constructor",
        "args": '{"facts": [{"text": "b", "turn": 1,}]}',
        "id": "c1",
        "error": "x",
    }
    reply = AIMessage("", invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}])
    assert [fact.text for fact in read_reply(reply, ConstructorOutput).facts] == ["b"]


def test_a_list_spread_over_several_calls_is_joined():
    calls = [call({"facts": [{**FACT, "text": text}]}) for text in ("a", "b")]
    reply = AIMessage("", tool_calls=calls)
    assert [fact.text for fact in read_reply(reply, ConstructorOutput).facts] == ["a", "b"]


def test_a_null_stands_for_the_default():
    repair = read_reply(AIMessage('{"op": "NOOP", "cause": null, "fact": null}'), RepairerOutput)
    assert (repair.fact, repair.cause) == (None, "unknown")


def test_optional_fields_alone_need_one_known_name():
    assert read_reply(AIMessage('{"keep": ["x"]}'), GuideOutput).keep == ["x"]
    assert read_reply(AIMessage("{}"), GuideOutput) == GuideOutput()
    with pytest.raises(Unreadable, match="none of the fields"):
        read_reply(AIMessage('{"verdict": 1}'), GuideOutput)
    with pytest.raises(Unreadable, match="keep"):
        read_reply(AIMessage('{"keep": [null]}'), GuideOutput)


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", additional_kwargs={"refusal": "I can't"}),
        AIMessage([{"type": "refusal", "refusal": "no"}]),
        AIMessage(GOOD, response_metadata={"finish_reason": "content_filter"}),
        AIMessage("", response_metadata={"stop_reason": "refusal"}),
    ],
)
def test_refusals_are_no_answers(reply):
    with pytest.raises(NoAnswer):
        read_reply(reply, ConstructorOutput)


def test_ends_of_several_providers():
    for meta, cut in [
        ({"finish_reason": "length"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, True),
        ({"finish_reason": "stop"}, False),
        ({}, False),
    ]:
        assert was_cut(AIMessage("x", response_metadata=meta)) is cut, meta


def test_complete_items_of_a_cut_list():
    facts = [{"text": f"fact {n}", "turn": n} for n in range(1, 5)]
    whole = json.dumps({"facts": facts})
    kept = complete_items(AIMessage(whole[: whole.index("fact 3") + 4]), ConstructorOutput)
    assert [fact.text for fact in kept.facts] == ["fact 1", "fact 2"]


@given(st.integers(0, 200))
def test_a_cut_list_never_gives_an_item_that_was_not_whole(length):
    facts = [{"text": f"fact number {n}", "turn": n} for n in range(1, 5)]
    try:
        kept = complete_items(AIMessage(json.dumps({"facts": facts})[:length]), ConstructorOutput)
    except NoAnswer:
        return
    assert [fact.text for fact in kept.facts] == [fact["text"] for fact in facts][: len(kept.facts)]


def test_nothing_is_kept_of_a_cut_object():
    assert list_field(JudgeOutput) is None
    with pytest.raises(NoAnswer, match="token limit"):
        complete_items(AIMessage('{"relevant": [1, 2], "suff'), JudgeOutput)
    with pytest.raises(NoAnswer, match="first item"):
        complete_items(AIMessage('{"facts": [{"text": "a'), ConstructorOutput)


def test_times_as_models_write_them():
    for written, read in [
        ("2024-03-11", datetime(2024, 3, 11, tzinfo=timezone(timedelta(hours=1)))),
        ("2024-03-11T08:00:00", datetime(2024, 3, 11, 8, tzinfo=timezone(timedelta(hours=1)))),
        ("2024-03-11T08:00:00Z", datetime(2024, 3, 11, 8, tzinfo=UTC)),
        ("some day in May", None),
        ("", None),
    ]:
        context = {"zone": timezone(timedelta(hours=1))}
        reply = AIMessage(json.dumps({"facts": [{**FACT, "event_time": written}]}))
        assert read_reply(reply, ConstructorOutput, context=context).facts[0].event_time == read, written
        edits = {"edits": [{"op": "UPDATE", "memory": 0, "event_time": written}]}
        assert (
            read_reply(AIMessage(json.dumps(edits)), RefresherOutput, context=context).edits[0].event_time
            == read
        ), written


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4)
)
def test_a_good_item_is_kept_whatever_stands_beside_it(odd):
    for items in ([odd, FACT], [FACT, {**FACT, "persons": odd, "importance": odd}], [FACT, {"turn": odd}]):
        read = read_reply(AIMessage(json.dumps({"facts": items})), ConstructorOutput).facts
        assert any((fact.text, fact.turn) == ("Ana repairs accordions", 1) for fact in read), items


JSON_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@given(JSON_TEXT, JSON_TEXT)
def test_any_text_survives_fences_and_commas(answer, look_for):
    value = {"answer": answer, "answerable": True, "citations": [1], "look_for": look_for}
    plain = json.dumps(value, ensure_ascii=False)
    for written in (plain, f"```json\n{plain}\n```", plain[:-1] + " ,\n}"):
        read = read_reply(AIMessage(written), AnswererOutput)
        assert (read.answer, read.look_for) == (answer, look_for)


@given(st.text(alphabet='{}[]",:a1 <>/think', max_size=300))
def test_no_text_breaks_the_reader(text):
    try:
        read_reply(AIMessage(text), ConstructorOutput)
    except Unreadable as error:
        assert str(error)
    assert "</think>" not in drop_reasoning(f"x</think>{text.replace('<', '')}")
