"""Sessions that have gone idle are ended by runs of graphs, one a run, and by a run by the clock."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from memcycle import Roles, Settings, build_memory, build_recall, build_remember, build_session
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from memcycle.stores.ledger.connection import Ledger
from tests.banks import said
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock
from tests.scripted import Always

HALF_AN_HOUR, MINUTE = 1800, 60
OUTAGE = OSError("quokka: the provider is down")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def bank(tmp_path, clock):
    settings = Settings(home=tmp_path / "home", shards=2)
    with Bank.open(settings, embeddings=FakeEmbeddings(), world=World(now=clock)) as opened:
        yield opened


def say(graph, text, session, user="ana", **context):
    messages = {"messages": [{"role": "user", "content": text}]}
    return graph.invoke(messages, context={"user": user, "session": session, **context})


def steps(graph, text, session):
    """The nodes of a run, those of nested graphs after their parent's."""
    messages = {"messages": [{"role": "user", "content": text}]}
    context = {"user": "ana", "session": session}
    seen = graph.stream(messages, context=context, stream_mode="updates", subgraphs=True)
    return [name for _, update in seen for name in update]


def test_a_run_looks_at_no_session_graph_where_none_is_idle(bank, clock):
    graph = build_remember(bank=bank)
    assert "session" not in steps(graph, "I keep 2 hives.", "first")
    clock.pass_(MINUTE)
    assert "session" not in steps(graph, "I row.", "own")
    clock.pass_(HALF_AN_HOUR)
    assert steps(graph, "I like tea.", "own")[-2:] == ["commit", "session"]
    assert statuses(bank)["first"] == "committed"


def statuses(bank, user="ana"):
    return {one.session: one.status for one in bank.sessions(Scope(user=user))}


@pytest.mark.parametrize("build", [build_memory, build_remember])
def test_a_run_ends_one_session_the_longest_silent_and_never_its_own(bank, clock, build):
    graph = build(bank=bank)
    for minute, session in enumerate(["first", "second", "own"]):
        clock.time += timedelta(seconds=minute)
        say(graph, f"I keep {minute + 2} hives.", session)
    say(graph, "I row.", "theirs", user="bo")
    clock.pass_(HALF_AN_HOUR - 5)
    say(graph, "I like tea.", "own")
    assert set(statuses(bank).values()) == {"open"}, "a little too early"
    clock.pass_(HALF_AN_HOUR)
    say(graph, "I like cake.", "own")
    assert statuses(bank) == {"first": "committed", "second": "open", "own": "open"}
    say(graph, "I like pie.", "own")
    say(graph, "I like jam.", "own")
    assert statuses(bank) == {"first": "committed", "second": "committed", "own": "open"}
    assert statuses(bank, "bo") == {"theirs": "open"}


def test_what_a_run_of_memory_ended_is_in_its_state_and_its_stream(bank, clock):
    graph = build_memory(bank=bank)
    assert say(graph, "I teach fencing in Linz.", "monday")["ended"] == {}
    clock.pass_(HALF_AN_HOUR)
    out = say(graph, "I like tea.", "tuesday")
    assert (out["ended"]["session"], out["ended"]["status"]) == ("monday", "committed")
    assert statuses(bank) == {"monday": "committed", "tuesday": "open"}


async def test_awaited_and_in_a_parent_it_is_the_same(bank, clock):
    parent = StateGraph(MessagesState)
    parent.add_node("memory", build_memory(bank=bank))
    parent.add_edge(START, "memory")
    parent.add_edge("memory", END)
    graph = parent.compile(checkpointer=InMemorySaver())
    for thread in ("monday", "tuesday"):
        config = {"configurable": {"thread_id": thread, "user_id": "ana"}}
        await graph.ainvoke({"messages": [("user", f"It is {thread}.")]}, config)
        clock.pass_(HALF_AN_HOUR)
    assert statuses(bank) == {"monday": "committed", "tuesday": "open"}


@pytest.mark.parametrize("build", [build_memory, build_remember])
def test_an_end_that_fails_is_a_warning_and_is_tried_again_later(bank, clock, build, caplog):
    graph = build(replace(Roles.rules(), prober=Always(OUTAGE)), bank)
    say(graph, "I teach fencing in Linz.", "monday")
    clock.pass_(HALF_AN_HOUR)
    out = say(graph, "I like tea.", "tuesday")
    (warning,) = (out["remembered"] if build is build_memory else out["result"])["warnings"]
    assert warning == "a session that had gone idle was not ended: OSError"
    assert warning in caplog.text
    assert "quokka" not in caplog.text
    assert not (say(graph, "I like cake.", "tuesday").get("ended"))
    clock.pass_(HALF_AN_HOUR)
    say(build(bank=bank), "I like pie.", "tuesday")
    assert statuses(bank) == {"monday": "committed", "tuesday": "open"}


def test_an_end_that_was_asked_for_still_fails_its_run(bank):
    graph = build_memory(replace(Roles.rules(), prober=Always(OUTAGE)), bank)
    with pytest.raises(OSError, match="provider is down"):
        graph.invoke(
            {"messages": [("user", "I teach fencing in Linz.")], "end_session": True},
            context={"user": "ana", "session": "monday"},
        )


@pytest.mark.parametrize(
    ("settings", "context", "ends"),
    [(None, {}, False), (60, {}, True), (60, {"idle_after": 0}, False), (None, {"idle_after": 60}, True)],
)
def test_settings_and_a_runs_context_say_when(tmp_path, clock, settings, context, ends):
    chosen = Settings(home=tmp_path / "home", shards=2, idle_after=settings)
    with Bank.open(chosen, embeddings=FakeEmbeddings(), world=World(now=clock)) as bank:
        graph = build_remember(bank=bank)
        say(graph, "I keep bees.", "monday")
        clock.pass_(MINUTE)
        say(graph, "I row.", "tuesday", **context)
        assert statuses(bank)["monday"] == ("committed" if ends else "open")


def test_a_run_by_the_clock_ends_one_of_the_users_or_of_anybodys(bank, clock):
    remember, session = build_remember(bank=bank), build_session(bank=bank)
    say(remember, "I keep bees.", "a", user="ana")
    clock.pass_(1)
    say(remember, "I row.", "b", user="bo")
    assert session.invoke({"idle": True})["result"]["session"] is None
    clock.pass_(HALF_AN_HOUR)
    assert session.invoke({"idle": True}, context={"user": "bo"})["result"]["session"] == "b"
    assert session.invoke({"idle": True})["result"]["session"] == "a"
    assert session.invoke({"idle": True})["result"]["session"] is None
    with pytest.raises(BadInput, match="no user is named"):
        session.invoke({})


def test_a_run_by_the_clock_reads_what_waits_and_examines_it_for_whose_it_is(bank, clock):
    """Every node of it, those side by side too, is about the session that was found."""
    bank.stage_turns(
        Scope(user="ana", session="left"),
        [
            said(1, "I teach fencing in Linz.", session="left"),
            said(2, "My sister Eva sold the loom to a museum in Graz.", session="left"),
        ],
    )
    clock.pass_(HALF_AN_HOUR)
    done = build_session(bank=bank).invoke({"idle": True})["result"]
    assert (done["session"], done["status"], done["probes"] > 0) == ("left", "committed", True)
    facts = bank.entries(Scope(user="ana"), granularity="fact")
    assert {one.scope.session for one in facts} == {"left"}
    assert bank.unprocessed(Scope(user="ana")) == []


def test_of_two_processes_that_find_it_idle_one_ends_it(bank, clock):
    say(build_remember(bank=bank), "I keep bees.", "monday")
    clock.pass_(HALF_AN_HOUR)
    since = clock() - timedelta(seconds=HALF_AN_HOUR)
    others = [
        Bank(bank.settings, bank.world, Ledger.open(bank.ledger.path, bank.world), None) for _ in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda one: one.take_idle(since), others))
    for one in others:
        one.close()
    assert sorted(map(bool, taken)) == [False, False, False, True]
    clock.pass_(HALF_AN_HOUR)
    assert bank.take_idle(clock() - timedelta(seconds=HALF_AN_HOUR)) is not None, "it broke off: once more"


def test_reading_for_long_is_no_silence(bank, clock):
    slow = Roles.rules().constructor

    def read(value):
        clock.pass_(2 * HALF_AN_HOUR)
        return slow.invoke(value)

    graph = build_remember(replace(Roles.rules(), constructor=Always(read)), bank)
    say(graph, "I keep bees.", "monday")
    assert bank.take_idle(clock() - timedelta(seconds=HALF_AN_HOUR)) is None


def test_a_session_that_is_not_there_is_named_and_nothing_is_done(bank):
    say(build_remember(bank=bank), "I keep bees.", "monday")
    with pytest.raises(BadInput, match=r"no session .nope. of user .ana. .*sessions there: monday"):
        build_session(bank=bank).invoke({}, context={"user": "ana", "session": "nope"})
    assert statuses(bank) == {"monday": "open"}


# What a run is told from outside


@pytest.mark.parametrize(
    ("context", "configurable", "user"),
    [
        ({"user": "bob", "end_session": True}, {}, "bob"),
        ({"user_id": "bob", "tenant": 7, "k": "a lot"}, {}, "bob"),
        ({"tenant": 7}, {"user_id": "bob"}, "bob"),
        (None, {"user": "bob"}, "bob"),
    ],
)
@pytest.mark.parametrize("build", [build_memory, build_remember])
def test_a_parents_context_and_configurable_say_whose_memory_it_is(bank, context, configurable, user, build):
    parent = StateGraph(MessagesState)
    parent.add_node("ours", build(bank=bank))
    parent.add_edge(START, "ours")
    config = {"configurable": {"thread_id": "t", **configurable}}
    parent.compile().invoke({"messages": [("user", "I keep bees.")]}, config, context=context)
    assert statuses(bank, user) == {"t": "open"}


@pytest.mark.parametrize("build", [build_memory, build_remember, build_recall, build_session])
def test_a_graph_by_itself_takes_the_configurable_and_names_what_it_does_not_know(bank, build):
    say(build_remember(bank=bank), "I keep bees.", "t", user="bob")
    value = {"messages": [("user", "I row.")], "question": "bees?"}
    graph = build(bank=bank)
    graph.invoke(value, {"configurable": {"user_id": "bob", "session_id": "t"}})
    assert statuses(bank, "bob").keys() == {"t"}
    with pytest.raises(BadInput, match=r"no 'end_session'; it may name user, workspace, session"):
        graph.invoke(value, context={"user": "bob", "end_session": True})


@pytest.mark.parametrize(("answer", "left"), [("approve", 0), ("reject", 1)])
def test_a_runs_context_wants_a_person_asked(bank, answer, left):
    """Beside what the settings say: a run can ask for more, never for less."""
    graph = build_remember(bank=bank).builder.compile(checkpointer=InMemorySaver())
    config, context = {"configurable": {"thread_id": "t"}}, {"user": "ana", "approval": ["update", "delete"]}
    graph.invoke({"messages": ["I live in Vienna."]}, config, context=context)
    moved = {"messages": ["I no longer live in Vienna, I moved to Graz."]}
    out = graph.invoke(moved, config, context=context)
    (item,) = out["__interrupt__"][0].value["items"]
    assert "Vienna" in item["before"]
    graph.invoke(Command(resume=answer), config, context=context)
    facts = bank.entries(Scope(user="ana"), granularity="fact")
    assert sum(one.text == item["before"] for one in facts) == left
