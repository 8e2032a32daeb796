"""The public face over the whole stack, without a model."""

import asyncio
import importlib.metadata
import inspect
import itertools
import pydoc
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

import memcycle
from memcycle import Memory, Settings
from memcycle.core.errors import BadInput, ModelUnavailable, StoreError, UnknownEntry
from memcycle.core.turn import Turn
from memcycle.core.world import World

START = datetime(2024, 5, 8, 12, tzinfo=UTC)

CHAT = [
    {"role": "user", "name": "Ann", "content": "I moved to Graz last Friday."},
    {"role": "user", "name": "Ann", "content": "My dog is called Pixel."},
    {"role": "assistant", "content": "Ann owns a castle in Spain."},
]


def world() -> World:
    ticks, ids = itertools.count(), itertools.count()
    return World(
        now=lambda: START + timedelta(seconds=next(ticks)),
        new_id=lambda: f"id-{next(ids)}",
        sleep=lambda _: None,
    )


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "home", user="ann", world=world()) as opened:
        yield opened


def test_the_public_names_load_on_first_use():
    assert {"Memory", "Roles", "Settings", "build_memory", "build_recall", "build_remember"} <= set(
        dir(memcycle)
    )
    for name in memcycle.__all__:
        assert getattr(memcycle, name)
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = memcycle.nothing_such


def test_the_version_is_that_of_the_package():
    assert memcycle.__version__ == importlib.metadata.version("memcycle")


def test_what_settings_are_made_of_is_public():
    settings = memcycle.Settings(
        approval=memcycle.Approval(delete=True),
        budget=memcycle.Budget(calls_a_run=3),
        verification=memcycle.Verification(),
        redact=memcycle.Redact(),
        theta=memcycle.Theta(),
    )
    assert settings.budget.calls_a_run == 3


def test_half_a_character_is_replaced_and_half_a_name_refused(memory):
    added = memory.add(
        [{"role": "user", "name": "A\ud800n", "content": "My dog \udfff is called Pixel \ud83d."}]
    )
    assert added.turns == ["Dmain:1"]
    (turn,) = memory.memories(granularity="raw")
    assert turn.text == "My dog \ufffd is called Pixel \ufffd."
    assert "Pixel" in memory.ask("What is my dog \ud800 called?").answer
    with pytest.raises(ValueError, match="user must be valid Unicode; its character 3 is a lone surrogate"):
        memory.add(CHAT, user="an\ud800")


def test_what_is_added_can_be_asked_for(memory):
    added = memory.add(CHAT)
    assert added.turns == ["Dmain:1", "Dmain:2", "Dmain:3"]
    assert added.facts
    assert added.unextracted == []
    assert added.usage == {}
    answer = memory.ask("What is Ann's dog called?")
    assert answer.answerable
    assert "Pixel" in answer.answer
    assert answer.mode == "extractive"
    assert any("Dmain:2" in item.turns for item in answer.evidence)
    assert all(0 <= item.score <= 1 for item in answer.evidence)


def test_answers_dump_as_the_documented_json(memory):
    memory.add(CHAT)
    dumped = memory.ask("Where did Ann move?").model_dump(mode="json")
    assert list(dumped) == [
        "question", "answer", "answerable", "mode", "evidence", "tokens", "tokens_exact",
        "rounds", "usage",
    ]  # fmt: skip
    assert list(dumped["evidence"][0]) == ["id", "granularity", "text", "turns", "event_time", "score", "why"]


def test_recall_gives_evidence_without_an_answer(memory):
    memory.add(CHAT)
    found = memory.recall("Where did Ann move?", k=1)
    assert (found.answer, found.mode) == (None, "evidence")
    assert len(found.evidence) == 1
    assert "Graz" in found.evidence[0].text


def test_what_an_assistant_said_is_no_fact(memory):
    memory.add(CHAT)
    facts = memory.memories(granularity="fact")
    assert facts
    assert not any("castle" in fact.text for fact in facts)


def test_injected_messages_are_not_remembered(memory):
    injected = SystemMessage("Ann lives in Oslo.", additional_kwargs={"memcycle": "recalled"})
    added = memory.add([injected, HumanMessage("Hello there!", name="Ann"), AIMessage("Hi Ann.")])
    assert len(added.turns) == 2
    assert not any("Oslo" in entry.text for entry in memory.memories())


def test_messages_with_ids_are_stored_once(memory):
    messages = [{**CHAT[0], "id": "m1"}, {**CHAT[1], "id": "m2"}]
    memory.add(messages)
    before = memory.export()
    again = memory.add(messages)
    assert again.turns == []
    assert memory.export() == before


def test_turns_keep_their_places(memory):
    turn = Turn(id="Dtrip:4", session="trip", position=4, speaker="Ann", text="I like rain.", time=START)
    assert memory.add([turn]).turns == ["Dtrip:4"]
    with pytest.raises(BadInput, match="one call"):
        memory.add([turn, "hello"])
    with pytest.raises(BadInput, match="several sessions"):
        memory.add([turn, turn.model_copy(update={"session": "other"})])


def test_ending_a_session_commits_it(memory):
    memory.add(CHAT)
    assert {entry.status for entry in memory.memories()} == {"staged"}
    ended = memory.end_session()
    assert ended.session == "main"
    assert ended.committed > 0
    assert len(ended.episodes) == 1
    assert {entry.status for entry in memory.memories()} == {"active"}
    assert memory.end_session().committed == 0


def test_edit_undo_history(memory):
    memory.add(CHAT)
    memory.end_session()
    [fact] = memory.memories(granularity="fact", search="pixel dog")
    edited = memory.edit(fact.id, "Ann's dog is called Voxel.", why="a typo")
    assert edited.supersedes == (fact.id,)
    assert "Voxel" in memory.ask("What is Ann's dog called?").answer
    assert [event.action for event in memory.history(edited.id)][-1] in {"supersede", "update"}
    restored = memory.undo(edited.id)
    assert restored.text == fact.text
    assert "Pixel" in memory.ask("What is Ann's dog called?").answer
    assert [event.actor for event in memory.history(fact.id) if event.actor == "user"]


def test_forgetting_takes_along_what_holds_the_words(memory):
    memory.add(CHAT)
    memory.end_session()
    [fact] = memory.memories(granularity="fact", search="pixel dog")
    holders = memory.holders(fact.id)
    assert {"raw", "episode"} <= {entry.granularity for entry in holders}
    assert set(memory.forget(fact.id)) >= {fact.id, *(entry.id for entry in holders)}
    assert memory.memories(search="pixel", statuses=("staged", "active", "superseded", "forgotten")) == []
    with pytest.raises(UnknownEntry):
        memory.get(fact.id)


def test_export_and_import_into_another_home(memory, tmp_path):
    memory.add(CHAT)
    memory.end_session()
    rows = memory.export()
    with Memory.open(tmp_path / "other", user="ann", world=world()) as other:
        assert other.import_(rows) == len(rows)
        assert other.import_(rows) == 0
        for row, copy in zip(rows, other.export(), strict=True):
            assert {**copy, "log": []} == {**row, "log": []}
            # The import itself is one more line.
            assert [line["action"] for line in copy["log"]] == [
                *(line["action"] for line in row["log"]),
                "import",
            ]
        assert "Graz" in other.ask("Where did Ann move?").answer


def test_two_users_never_meet(memory):
    memory.add(CHAT)
    memory.add([{**CHAT[0], "name": "Ben", "content": "I moved to Oslo last Friday."}], user="ben")
    memory.end_session()
    memory.end_session(user="ben")
    for user, other in (("ann", "Oslo"), ("ben", "Graz")):
        everything = [
            *memory.export(user=user),
            *memory.recall("Who moved where?", user=user).model_dump(mode="json")["evidence"],
        ]
        assert everything
        assert not any(other in str(item) for item in everything)
    assert memory.forget_user("ben") > 0
    assert memory.forget_user("ben") == 0
    assert memory.memories(user="ben") == []
    assert memory.memories(user="ann")


def test_workspaces_are_walls(memory):
    memory.add(CHAT, workspace="work")
    assert memory.memories() == []
    assert memory.memories(workspace="work")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.add("hello", user=" "), "user"),
        (lambda m: m.add("hello", session="x" * 600), "session"),
        (lambda m: m.add([{"role": "boss", "content": "a"}]), "message 1.*'role'"),
        (lambda m: m.add("hello", now="yesterday"), "now.*ISO 8601"),
        (lambda m: m.ask("  "), "blank"),
        (lambda m: m.ask("Who?", k=0), "k:"),
        (lambda m: m.edit("0" * 8, " "), "blank"),
        (lambda m: m.import_([{"id": "x"}]), "record 1"),
    ],
)
def test_bad_input_is_named(memory, call, words):
    with pytest.raises(BadInput, match=words):
        call(memory)


def test_a_user_must_be_named(tmp_path):
    with Memory.open(tmp_path / "home") as memory, pytest.raises(BadInput, match="no user"):
        memory.add("hello")


def test_models_that_cannot_be_used(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    for model, words in (("gpt", "unknown model 'gpt'"), ("openai:gpt", "OPENAI_API_KEY")):
        with pytest.raises(ModelUnavailable, match=words):
            Memory.open(tmp_path / "home", model=model)
    assert not (tmp_path / "home").exists()


def test_settings_and_path(tmp_path):
    settings = Settings(home=tmp_path / "a", timezone="Asia/Tokyo")
    with Memory.open(tmp_path / "b", settings=settings, user="ann") as memory:
        memory.add([{"role": "user", "content": "Hi.", "time": "2024-05-08T13:00"}])
        assert memory.memories()[0].observed_at == datetime(2024, 5, 8, 4, tzinfo=UTC)
    assert (tmp_path / "b").exists()
    assert not (tmp_path / "a").exists()


def test_reading_works_beside_a_writer(memory, tmp_path):
    memory.add(CHAT)
    with Memory.open(tmp_path / "home", user="ann", read_only=True) as reader:
        assert reader.memories() == memory.memories()
        with pytest.raises(BadInput, match="reading only"):
            reader.ask("Where did Ann move?")
        with pytest.raises(StoreError, match="reading its ledger only"):
            reader.edit(memory.memories()[0].id, "Something else.")


def test_a_closed_memory_opens_again(tmp_path):
    memory = Memory.open(tmp_path / "home", user="ann", world=world())
    memory.add(CHAT)
    memory.close()
    memory.close()
    assert memory.memories()
    memory.close()


async def test_the_awaitable_forms_do_the_same(tmp_path):
    with Memory.open(tmp_path / "sync", user="ann", world=world()) as memory:
        await asyncio.to_thread(lambda: (memory.add(CHAT), memory.end_session()))
        expected = await asyncio.to_thread(
            lambda: (memory.ask("Where did Ann move?").answer, [entry.id for entry in memory.memories()])
        )
    async with Memory.open(tmp_path / "async", user="ann", world=world()) as memory:
        await memory.aadd(CHAT)
        await memory.aend_session()
        found = await memory.amemories()
        assert ((await memory.aask("Where did Ann move?")).answer, [entry.id for entry in found]) == expected
        assert (await memory.arecall("Where did Ann move?")).evidence
        edited = await memory.aedit(found[0].id, "Something else.")
        assert (await memory.aundo(edited.id)).text == found[0].text
        assert await memory.ahistory(found[0].id)
        assert (await memory.aget(found[0].id)).text == found[0].text
        rows = await memory.aexport()
        assert await memory.aimport_(rows) == 0
        assert await memory.aforget(found[0].id)
        assert await memory.aforget_user("ann") > 0


async def test_search_is_recall_under_another_name(memory):
    memory.add(CHAT)
    found = memory.search("What is Ann's dog called?", user="ann", k=2)
    assert (
        found == memory.recall("What is Ann's dog called?", k=2) == await memory.asearch(found.question, k=2)
    )
    assert (found.answer, found.mode, len(found.evidence)) == (None, "evidence", 2)
    assert memory.search("dog").evidence
    with pytest.raises(BadInput, match="search: no 'limit'; there are query, user"):
        memory.search("dog", limit=2)
    with pytest.raises(BadInput, match="blank"):
        memory.search(" ")


async def test_users_are_counted_by_workspace(memory):
    assert memory.users() == []
    memory.add(CHAT)
    memory.add("I row on Sundays.", session="row", workspace="club", now="2024-03-01T10:00:00Z")
    memory.add("I ski.", user="Zoë")
    memory.end_session("row", workspace="club")
    zoe, club, own = sorted(await memory.ausers(), key=lambda one: (one.user != "Zoë", one.workspace))
    assert (own.user, own.workspace, own.sessions, own.turns) == ("ann", "default", 1, 3)
    assert own.facts == len(memory.memories(granularity="fact"))
    assert own.entries == len(memory.memories())
    assert (club.user, club.workspace, club.turns, club.facts) == ("ann", "club", 1, 1)
    assert club.last == datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert zoe.user == "Zoë"
    memory.forget_user("ann")
    assert [one.user for one in memory.users()] == ["Zoë"]


NOT_AWAITED = {"open", "scope", "bank", "threads", "roles", "graphs"}


def test_every_method_has_an_awaitable_form_with_the_same_signature():
    names = {name for name in vars(Memory) if not name.startswith("_")} - NOT_AWAITED
    plain = {name for name in names if not inspect.iscoroutinefunction(getattr(Memory, name))}
    assert {f"a{name}" for name in plain} == names - plain
    for name in plain:
        method, awaitable = getattr(Memory, name), getattr(Memory, f"a{name}")
        assert (awaitable.__name__, awaitable.__qualname__) == (f"a{name}", f"Memory.a{name}")
        assert inspect.signature(awaitable) == inspect.signature(method)
        assert method.__doc__


def test_help_tells_the_arguments_and_what_is_given_back():
    for name in ("ask", "aask"):
        told = pydoc.plain(pydoc.render_doc(getattr(Memory, name)))
        assert "question: str, *, user: str | None = None, " in told
        assert "evidence_only: bool = False, seen: " in told
        assert " thread_id: str | None = None) -> memcycle.results.Answer" in told


def test_only_naming_a_memory_loads_neither_langgraph_nor_the_store():
    program = (
        "import sys; from memcycle import Memory, Settings; "
        "print(sorted({'langgraph', 'langsmith', 'langchain_core', 'numpy', 'chromadb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_many_sessions_at_once(tmp_path):
    async with Memory.open(tmp_path / "home", world=world()) as memory:
        await asyncio.gather(*(memory.aadd(CHAT, user=f"u{n % 4}", session=f"s{n}") for n in range(16)))
        counts = [len(await memory.amemories(user=f"u{n}", granularity="raw")) for n in range(4)]
    assert counts == [12] * 4


def test_an_embedder_is_named_when_a_memory_is_opened(tmp_path):
    with Memory.open(tmp_path / "a", embedder="wordllama") as memory:
        assert memory.settings.embedder == "wordllama"
    with pytest.raises(StoreError, match="unknown embedder 'nix'"):
        Memory.open(tmp_path / "b", embedder="nix")
