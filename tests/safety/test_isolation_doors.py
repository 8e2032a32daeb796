"""Users under odd ids in one home: through every public door each sees and changes what is their own."""

import asyncio
import itertools
import json
from dataclasses import dataclass

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from typer.testing import CliRunner

from memcycle import (
    MemcycleStore,
    Memory,
    Settings,
    build_memory,
    build_recall,
    build_remember,
    build_session,
)
from memcycle.cli.app import app
from memcycle.core.errors import UnknownEntry
from memcycle.core.scope import Scope
from memcycle.graph.memory import embed
from memcycle.integrations import MemoryMiddleware, MemoryRetriever, memory_instructions, memory_tools
from memcycle.stores.search.request import Filters, Query, SearchRequest
from tests.fakes import FakeEmbeddings

USERS = (
    "ana", "ana2", "ana:b", "ana.b@mail.test", "x" * 200, "x" * 199, "аna", "ａｎａ", "Ana", "an%", "a_a",
    "7", '["ana", "default"]', "ana' OR '1'='1", "../ana", "ana/..", "Zoë", "Zoe\u0308", "ana\nb",
    " ana",
)  # fmt: skip
EACH = range(len(USERS))
SOME = (0, 3, 7, 12, 17)
"""For the doors that all lead to the bank, whose wall is tried with each."""
NO_NAMES = (7, 7.0, True, ["ana"], {"$ne": ""}, "", " ", "a\0b", "a" * 513, "\ud800")
ASKED = "What is kept on the roof, and what is the code?"


def marker(n: int) -> str:
    return f"marker{n:02d}code"


def seen_by(n: int, *texts: object) -> None:
    """What user `n` sees is of nobody else, and of them there is something in it."""
    text = " ".join(one if isinstance(one, str) else json.dumps(one, default=str) for one in texts)
    assert marker(n) in text
    assert [other for other in range(len(USERS)) if other != n and marker(other) in text] == []


@dataclass
class Home:
    memory: Memory
    ids: dict[str, list[str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Every user said the same, with a code of their own; it is committed and was examined."""
    settings = Settings(home=tmp_path_factory.mktemp("shared") / "home", shards=1)
    with Memory.open(settings=settings, embeddings=FakeEmbeddings()) as memory:
        for n, user in enumerate(USERS):
            memory.add(f"I keep two beehives on the roof. My code is {marker(n)}.", user=user)
            memory.add("My sister Eva lives in Graz.", user=user)
            memory.end_session(user=user)
        ids = {user: [one.id for one in memory.memories(user=user)] for user in USERS}
        yield Home(memory, ids)


def test_no_two_users_share_an_id(home):
    everything = list(itertools.chain(*home.ids.values()))
    assert len(everything) == len(set(everything)) > 2 * len(USERS)


def test_questions_and_lists(home):
    for n in EACH:
        memory, user = home.memory, USERS[n]
        every = " ".join(map(marker, range(len(USERS))))
        seen_by(n, memory.ask(ASKED, user=user).model_dump(mode="json"))
        seen_by(n, memory.recall(f"{ASKED} {every}", user=user, k=200).model_dump(mode="json")["evidence"])
        seen_by(n, [one.model_dump(mode="json") for one in memory.memories(user=user)])
        seen_by(n, memory.export(user=user))
        found = memory.memories(user=user, search="beehives")
        assert found
        assert {one.scope.user for one in found} == {user}


def test_sessions_and_probes(home):
    for n in SOME:
        memory, user = home.memory, USERS[n]
        (summary,) = memory.sessions(user=user)
        detail = memory.session("main", user=user)
        assert detail.examined
        probes = memory.probes_over(memory.memories(user=user), user=user)
        assert {probe.id for probe in probes} <= {probe.id for probe in detail.examined}
        seen_by(
            n, marker(n), summary.model_dump_json(), detail.model_dump_json(), [str(one) for one in probes]
        )


def scope_of(n: int):
    return lambda _: {"user": USERS[n]}


def test_the_graphs_by_context(home):
    for n in SOME:
        bank, context = home.memory.bank, {"user": USERS[n], "session": "main"}
        seen_by(n, build_recall(bank=bank).invoke({"question": ASKED}, context=context))
        parent = StateGraph(dict)
        parent.add_node(
            "recall",
            embed(
                build_recall(bank=bank),
                read=lambda state: {"question": ASKED},
                write=lambda out: {"found": out["answer"]["evidence"]},
                scope=scope_of(n),
            ),
        )
        parent.add_edge(START, "recall")
        seen_by(n, parent.compile().invoke({}))


def test_the_chat_graph_and_the_end_of_a_session(tmp_path):
    settings = Settings(home=tmp_path / "home", shards=1)
    with Memory.open(settings=settings, embeddings=FakeEmbeddings()) as memory:
        chat, few = build_memory(bank=memory.bank), [*enumerate(USERS)][::4]
        for n, user in few:
            out = chat.invoke(
                {"messages": [HumanMessage(f"My code is {marker(n)}.")]},
                context={"user": user, "session": "main"},
            )
            seen_by(n, out["messages"], marker(n))
            build_session(bank=memory.bank).invoke({}, context={"user": user, "session": "main"})
        for n, user in few:
            context = {"user": user, "session": "other"}
            seen_by(n, chat.invoke({"messages": [HumanMessage("What is the code?")]}, context=context))


class Tools:
    """Calls the tools as an agent does; whose memory it is comes from the run."""

    def __init__(self, memory: Memory) -> None:
        builder = StateGraph(MessagesState, context_schema=dict)
        builder.add_node("tools", ToolNode(memory_tools(memory)))
        builder.add_edge(START, "tools")
        self.graph = builder.compile()

    def __call__(self, user, name, *before, **args) -> str:
        call = AIMessage("", tool_calls=[{"id": "c1", "name": name, "args": args}])
        out = self.graph.invoke({"messages": [*before, call]}, context={"user": user})
        return out["messages"][-1].text


def shown(entry_id: str) -> ToolMessage:
    """As if the search tool had shown an id, which only another user's could."""
    return ToolMessage(f"[{entry_id}]", tool_call_id="c0", additional_kwargs={"memcycle": "shown"})


def test_the_tools(home):
    for n in SOME:
        use, user, other = Tools(home.memory), USERS[n], USERS[n - 1]
        seen_by(n, use(user, "search_memory", query=ASKED))
        stranger = home.ids[other][0]
        assert "Nothing was done" in use(user, "memory_history", entry_id=stranger)
        told = HumanMessage("Forget that please.")
        refused = use(
            user, "forget_memory", told, shown(stranger), entry_id=stranger, quote="Forget that please"
        )
        assert "Nothing was done" in refused
        assert home.memory.get(stranger, user=other).id == stranger


def test_the_middleware_the_retriever_and_the_instructions(home):
    for n in SOME:
        memory, user = home.memory, USERS[n]
        model = Recording(responses=["Fine."])
        with MemoryMiddleware(memory, remember=False, recall_timeout=60) as recalls:
            agent = create_agent(model, middleware=[recalls])
            agent.invoke({"messages": [("user", ASKED)]}, context={"user": user})
        seen_by(n, model.shown[-1])
        seen_by(n, [one.page_content for one in MemoryRetriever(memory=memory, user=user).invoke(ASKED)])
        config = {"configurable": {"user_id": user}}
        seen_by(n, memory_instructions(memory, recall_timeout=60).invoke(ASKED, config))


class Recording(FakeListChatModel):
    """Keeps what it was shown."""

    shown: list[str] = []

    def _call(self, messages, *args, **kwargs):
        self.shown.append("\n".join(message.text for message in messages))
        return super()._call(messages, *args, **kwargs)


def test_nothing_of_anothers_is_reached_by_its_id(home):
    for n in EACH:
        memory, user, other = home.memory, USERS[n], USERS[n - 1]
        before = memory.export(user=other)
        for entry_id in home.ids[other]:
            for act in (memory.get, memory.history, memory.undo, memory.holders):
                with pytest.raises(UnknownEntry):
                    act(entry_id, user=user)
            with pytest.raises(UnknownEntry):
                memory.edit(entry_id, "mine", user=user)
            assert memory.forget(entry_id, user=user) == []
        assert memory.export(user=other) == before


def test_no_filter_widens_a_scope(home):
    for n in EACH:
        everybody = tuple(USERS)
        wide = [
            Filters(),
            Filters(speakers=("user", "Ana", *everybody)),
            Filters(since="1970-01-01T00:00:00Z", until="2999-01-01T00:00:00Z"),
        ]  # fmt: skip
        for filters, session in itertools.product(wide, (None, "main", USERS[n - 1], '["ana2", "default"]')):
            request = SearchRequest(
                scope=Scope(user=USERS[n], session=session),
                queries=(Query(text=f"code {marker(n - 1)}", speaker=USERS[n - 1]),),
                filters=filters,
                k=1000,
            )
            hits = home.memory.bank.search(request)[0]
            assert {hit.entry.scope.user for hit in hits} <= {USERS[n]}


def test_another_workspace_or_session_is_another(home):
    for n in SOME:
        memory, user = home.memory, USERS[n]
        assert memory.memories(user=user, workspace="other") == []
        assert memory.recall(ASKED, user=user, workspace="other").evidence == []
        assert memory.memories(user="default", workspace=user) == []


def test_an_export_read_in_as_anothers_changes_nothing_of_its_own(home):
    for n in EACH:
        memory, user, thief = home.memory, USERS[n], f"thief of {n}"
        before = memory.export(user=user)
        memory.import_([{**row, "text": "stolen"} for row in before], user=thief)
        memory.import_([{**row, "superseded_by": None, "status": "active"} for row in before], user=thief)
        assert {row["scope"]["user"] for row in memory.export(user=thief)} == {thief}
        assert memory.export(user=user) == before
        assert memory.forget_user(thief) > 0
        assert memory.export(user=user) == before


def test_the_store_keeps_namespaces_apart(home):
    for n in SOME:
        if "." in USERS[n]:  # LangGraph allows no period in a label
            continue
        with MemcycleStore(home.memory.bank) as store:
            labels = [user for user in USERS if "." not in user]
            for user in labels:
                store.put((user, "notes"), "1", {"text": marker(USERS.index(user))})
            mine = (USERS[n],)
            seen_by(n, [one.value for one in store.search(mine, query="code", limit=100)])
            seen_by(n, [one.value for one in store.search(mine, limit=100)])
            assert store.get((*mine, "notes"), "1").value == {"text": marker(n)}
            assert store.list_namespaces(prefix=mine) == [(*mine, "notes")]
            assert store.delete_namespace(mine) == 1
            assert len(store.list_namespaces(limit=100)) == len(labels) - 1
            for user in labels:
                store.delete_namespace((user,))


def test_what_is_no_name_is_refused_at_every_door(home):
    for user in NO_NAMES:
        for door in doors_of(home, user):
            with pytest.raises(ValueError):  # BadInput, or pydantic's for a context
                door()


def doors_of(home, user):
    memory, bank = home.memory, home.memory.bank
    context = {"user": user}
    return [
        lambda: memory.add("Hello.", user=user),
        lambda: memory.ask(ASKED, user=user),
        lambda: memory.memories(user=user),
        lambda: memory.export(user=user),
        lambda: memory.import_([], user=user),
        lambda: memory.forget_user(user),
        lambda: memory.forget(home.ids["ana"][0], user=user),
        lambda: memory.history(home.ids["ana"][0], user=user),
        lambda: memory.sessions(user=user),
        lambda: memory.end_session(user=user),
        lambda: asyncio.run(memory.aask(ASKED, user=user)),
        lambda: build_remember(bank=bank).invoke({"messages": ["Hello."]}, context=context),
        lambda: build_recall(bank=bank).invoke({"question": ASKED}, context=context),
        lambda: build_session(bank=bank).invoke({}, context=context),
        lambda: Tools(memory)(user, "search_memory", query=ASKED),
        lambda: memory_instructions(memory).invoke(ASKED, {"configurable": {"user_id": user}}),
        lambda: build_recall(bank=bank, scope=lambda _: context).invoke({"question": ASKED}),
        lambda: MemoryRetriever(memory=memory, user=user).invoke(ASKED),
    ]


def test_the_command_line(tmp_path):
    """Each user by its own; `--user` is one name, never a pattern."""
    place = ["--home", str(tmp_path / "home")]

    def run(*args: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [args[0], *place, *args[1:]])
        assert result.exit_code == code, result.output
        return result.output

    names = [user for user in USERS if user in ("ana", "ana2", "ana:b", "аna", "an%", "x" * 200)]
    chat = tmp_path / "chat.jsonl"
    for user in names:
        turn = {"session": "1", "speaker": "Eva", "role": "human", "time": "2024-05-08T12:00:00Z"}
        chat.write_text(json.dumps({**turn, "text": f"My code is {marker(USERS.index(user))}."}) + "\n")
        run("ingest", str(chat), f"--user={user}", "--no-verify", "--json")
    for user, other in zip(names, [*names[1:], names[0]], strict=True):
        n = USERS.index(user)
        seen_by(
            n, run("memories", f"--user={user}", "--json"), run("ask", "What is the code?", f"--user={user}")
        )
        seen_by(n, run("export", f"--user={user}"))
        (stranger, *_) = [json.loads(line)["id"] for line in run("export", f"--user={other}").splitlines()]
        run("edit", stranger, "mine now", f"--user={user}", code=1)
        run("forget", stranger, f"--user={user}", "--yes", code=1)
        run("undo", stranger, f"--user={user}", code=1)
    for pattern in ("an", "*", "%", "_", "AN%", "ana*"):
        assert json.loads(run("memories", f"--user={pattern}", "--json")) == []
    run("forget", "--user=an%", "--yes")
    for user in names:
        assert bool(json.loads(run("memories", f"--user={user}", "--json"))) == (user != "an%")
