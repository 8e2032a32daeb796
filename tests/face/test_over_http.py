"""Ingest and ask with a model over HTTP: every agent called, usage counted, faults of replies borne."""

import json

import openai
import pytest

from memcycle.core.settings import Settings
from memcycle.memory import Memory
from tests.loopback import cut, fenced, lost_opening, model_server, prose, thinking, trailing_comma

SIX = {
    "Constructor": ["constructor"],
    "Retriever": ["retriever"],
    "Judge": ["judge", "fact_judge"],
    "Refresher": ["refresher"],
    "Meta-Thinker": ["guide", "answerability"],
    "Query-Reasoner": ["query_reasoner"],
}

FACT = {"text": "Ann keeps two beehives", "turn": 1, "quote": "I keep two beehives"}
SAID = {"role": "user", "name": "Ann", "content": "I keep two beehives"}
GOOD, DECOY = {"facts": [FACT]}, {"facts": [{"text": "WRONG", "turn": 1}]}
SCHEMA = {"$defs": {}, "properties": {"facts": {"type": "array"}}, "required": ["facts"]}


@pytest.fixture
def server(cli, socket_enabled, monkeypatch):
    with model_server() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test-key-that-must-not-show")
        yield running


def paper(tmp_path) -> Settings:
    """Each role is asked on its own."""
    return Settings(home=tmp_path / "home", profile="paper")


@pytest.fixture
def memory(server, tmp_path):
    with Memory.open(settings=paper(tmp_path), model="openai:test", user="ann", timeout=10) as opened:
        yield opened


def texts(memory: Memory) -> list[str]:
    return [entry.text for entry in memory.memories(granularity="fact")]


def test_ingest_and_ask_call_all_six_agents_and_count_their_use(server, cli, chat, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_PROFILE", "paper")
    path = chat(
        {"text": "I live in Graz."},
        {"text": "I work as a baker in town."},
        {"text": "Bye, talk soon!"},
        {"session": "2", "text": "I moved to Linz last week.", "time": "2024-06-01T12:00:00+00:00"},
        {"session": "2", "text": "I keep two beehives.", "time": "2024-06-01T12:01:00+00:00"},
    )
    made = cli.json("ingest", path, "--user", "ann", "--model", "openai:test", "--chunk-turns", "2")
    answer = cli.json("ask", "Where does Ann live?", "--user", "ann", "--model", "openai:test")
    missing = cli.json("ask", "Which car does Ann drive?", "--user", "ann", "--model", "openai:test")
    called = {request["role"] for request in server.requests}
    for agent, roles in SIX.items():
        assert called & set(roles), f"{agent} was never called"
    assert "Linz" in answer["answer"]
    assert answer["mode"] == "answer"
    assert missing["answerable"] is False
    for usage in (made["usage"], answer["usage"]):
        assert all(
            count["calls"] and count["input_tokens"] and count["output_tokens"] for count in usage.values()
        )
    total = sum(count["calls"] for result in (made, answer, missing) for count in result["usage"].values())
    assert total == len(server.requests)


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        (fenced(GOOD), 1),
        (prose(GOOD), 1),
        (trailing_comma(GOOD), 1),
        (thinking(GOOD, DECOY), 1),
        (lost_opening(GOOD, DECOY), 1),
        (json.dumps(SCHEMA), 2),
    ],
    ids=["fenced", "prose", "trailing comma", "reasoning", "reasoning without opening", "schema echoed"],
)
def test_a_faulty_reply_costs_at_most_one_more_call(server, memory, reply, calls):
    server.script("constructor", reply, *([json.dumps(GOOD)] if calls > 1 else []))
    added = memory.add(SAID)
    assert texts(memory) == ["Ann keeps two beehives"]
    assert len(server.of("constructor")) == calls
    assert added.unextracted == []


def test_a_reply_cut_twice_keeps_its_complete_items_and_says_so(server, memory):
    answer = {"facts": [FACT, {**FACT, "text": "Ann keeps two beehives on the roof"}]}
    part = len(json.dumps({"facts": [FACT]}))
    server.script("constructor", cut(answer, part + 20), cut(answer, part + 20))
    added = memory.add(SAID)
    assert texts(memory) == ["Ann keeps two beehives"]
    assert any("cut" in warning for warning in added.warnings)


def test_nonsense_twice_leaves_the_turn_waiting_and_the_next_run_reads_it(server, memory):
    server.script("constructor", "I would rather not.", json.dumps(SCHEMA))
    added = memory.add(SAID)
    assert added.unextracted == added.turns
    assert texts(memory) == []
    assert [entry.text for entry in memory.memories(granularity="raw")] == ["I keep two beehives"]
    assert memory.ask("What is kept?").evidence
    memory.add("Thanks")
    assert len(texts(memory)) == 1


def test_a_number_that_was_not_shown_is_reported_and_its_text_kept(server, memory):
    server.script("constructor", {"facts": [{**FACT, "edit": "UPDATE", "target": 12}]})
    added = memory.add(SAID)
    assert texts(memory) == ["Ann keeps two beehives"]
    assert any("12" in warning for warning in added.warnings)


def test_no_key_and_no_conversation_in_what_is_printed(server, cli, chat):
    server.script("constructor", "no", "no")
    result = cli.run(
        "ingest", chat({"text": "My secret is a heron."}), "--user", "ann", "--model", "openai:test"
    )
    for text in (result.stdout, result.stderr):
        assert "test-key-that-must-not-show" not in text


def test_a_server_that_is_down_is_one_clear_line_and_nothing_is_lost(cli, chat, monkeypatch, socket_enabled):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    path = chat({"text": "I keep two beehives."})
    result = cli.run("ingest", path, "--user", "ann", "--model", "openai:test", code=1)
    assert result.stdout == ""
    [line] = [line for line in result.stderr.splitlines() if not line.startswith("stored ")]
    assert "the model server at 127.0.0.1:9 cannot be reached" in line
    assert "What was said is kept" in line
    assert [row["text"] for row in cli.json("memories", "--user", "ann")] == ["I keep two beehives."]
    cli.run("ingest", path, "--user", "ann")
    assert len(cli.json("memories", "--user", "ann", "--granularity", "fact")) == 1


@pytest.mark.parametrize("ask", [lambda memory: memory.ask("Bees?"), lambda memory: memory.end_session()])
def test_a_program_is_told_what_an_error_of_the_server_means(tmp_path, socket_enabled, ask):
    named = {"base_url": "http://127.0.0.1:9/v1", "api_key": "k", "max_retries": 0}
    with Memory.open(tmp_path, user="ann", model="openai:test", **named) as memory:
        memory.add("I keep two beehives.")
        with pytest.raises(openai.APIConnectionError) as raised:
            ask(memory)
        told = [note for note in raised.value.__notes__ if "127.0.0.1:9 cannot be reached; check" in note]
        assert len(told) == 1
        assert [entry.text for entry in memory.memories(granularity="raw")] == ["I keep two beehives."]
