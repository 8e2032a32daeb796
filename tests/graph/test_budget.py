"""A budget of model calls and tokens, by run and by day and user: at its end memory goes on without one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from memcycle import Memory, Roles, Settings, build_memory
from memcycle.core.errors import BadInput
from memcycle.core.probe import Usage
from memcycle.core.scope import Scope
from memcycle.core.settings import Budget, Limit, Spent
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from tests.fakes import FakeEmbeddings
from tests.graph.test_profile import TALK
from tests.hand_clock import START, HandClock
from tests.rules_model import RulesModel, roles_on

PLAUSIBLE = RulesModel(failing=7, sure=True)
USED_UP = "the budget of today is used up"
OF_THIS_RUN = "the budget of this run is used up"
DAY, HOUR = 86_400, 3600


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def opened(tmp_path, clock):
    """Opens the same home, closed before, with this budget."""
    memories: list[Memory] = []

    def opened(*, roles: Roles | None = None, more: Any = None, **budget: int) -> Memory:
        for memory in memories:
            memory.close()
        settings = Settings(home=tmp_path / "home", shards=2, budget=Budget(**budget), **(more or {}))
        memories.append(
            Memory.open(
                settings=settings,
                roles=roles or roles_on(PLAUSIBLE),
                embeddings=FakeEmbeddings(),
                user="ana",
                world=World(now=clock),
            )
        )
        return memories[-1]

    yield opened
    for memory in memories:
        memory.close()


def calls(usage: Usage) -> int:
    return sum(count["calls"] for count in usage.values())


def tokens(usage: Usage) -> int:
    return sum(count["input_tokens"] + count["output_tokens"] for count in usage.values())


def done(memory: Memory, name: str, awaited: bool, *given: Any, **more: Any) -> Any:
    if awaited:
        return asyncio.run(getattr(memory, f"a{name}")(*given, **more))
    return getattr(memory, name)(*given, **more)


@pytest.mark.parametrize("profile", ["lean", "paper"])
@pytest.mark.parametrize("awaited", [False, True])
def test_at_the_end_of_a_days_budget_turns_wait_and_are_read_the_next_day(opened, clock, awaited, profile):
    memory = opened(calls_a_day=0, more={"profile": profile})
    added = done(memory, "add", awaited, TALK)
    assert added.unextracted == added.turns
    assert (added.facts, added.usage) == ([], {})
    assert any(one.startswith(f"{USED_UP} (0 of 0 calls)") for one in added.warnings)
    assert any("free again at 2024-03-02 00:00 (UTC)" in one for one in added.warnings)
    assert not any("smaller windows" in one for one in added.warnings)

    answer = done(memory, "ask", awaited, "Who repaired the loom?")
    assert any("loom" in one.text for one in answer.evidence)
    assert answer.usage == {}
    assert any(USED_UP in one for one in answer.warnings)

    ended = done(memory, "end_session", awaited)
    assert (ended.status, ended.committed, ended.usage) == ("open", 0, {})
    assert ended.warnings[0].startswith(USED_UP)
    assert ended.warnings[1].startswith("the session stays open")

    memory = opened(calls_a_day=1000)
    ended = done(memory, "end_session", awaited)
    assert ended.status == "committed"
    assert not ended.warnings
    assert memory.memories(granularity="fact")


def test_a_day_of_the_users_zone_begins_anew_and_survives_a_restart(opened, clock):
    vienna = {"timezone": "Europe/Vienna"}
    memory = opened(calls_a_day=1, more=vienna)
    assert calls(memory.add(TALK).usage) == 1
    assert memory.ask("Who repaired the loom?").usage == {}
    memory = opened(calls_a_day=1, more=vienna)
    told = memory.ask("Who repaired the loom?").warnings
    assert any("(1 of 1 calls)" in one and "2024-03-02 00:00 (Europe/Vienna)" in one for one in told)
    clock.pass_(14 * HOUR - 1)  # 23:59:59 in Vienna
    assert memory.ask("Who repaired the loom?").usage == {}
    clock.pass_(1)
    assert calls(memory.ask("Who repaired the loom?").usage) == 1
    assert memory.ask("Who repaired the loom?").usage == {}


def test_it_is_one_users_in_all_workspaces(opened):
    memory = opened(calls_a_day=1)
    memory.add("I play the cello.", workspace="home")
    assert calls(memory.ask("What do I play?", workspace="home").usage) == 1
    memory.add("I play the cello.", workspace="work")
    assert memory.ask("What do I play?", workspace="work").usage == {}
    memory.add("I play the cello.", user="bob")
    assert calls(memory.ask("What do I play?", user="bob").usage) == 1


def test_tokens_end_it_too(opened):
    memory = opened(tokens_a_day=1)
    memory.add("I play the cello.")
    first = memory.ask("What do I play?")
    assert calls(first.usage) == 1
    told = memory.ask("What do I play?").warnings
    assert any(f"({tokens(first.usage)} of 1 tokens)" in one for one in told)


def test_what_is_limited_by_nothing_is_not_counted(opened, clock):
    memory = opened()
    memory.add(TALK)
    assert memory.bank.spent(memory.scope(), clock().date()) == Spent(0, 0)


def test_rules_cost_nothing(opened):
    memory = opened(roles=Roles.rules(), calls_a_day=0, calls_a_run=0)
    added = memory.add(TALK)
    assert added.facts
    assert not added.warnings
    assert memory.end_session().status == "committed"


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("most", [1, 4, 9])
def test_a_run_stops_at_its_own_budget_with_all_that_runs_in_it(opened, awaited, most):
    """Probes are answered side by side, and turns that waited are read by a graph within the graph."""
    paper = {"profile": "paper", "idle_after": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RulesModel, "_generate", down)
        with pytest.raises(TimeoutError):
            opened(more=paper).add(TALK[:6], session="s1")
    memory = opened(calls_a_run=most, more=paper)
    ended = done(memory, "end_session", awaited, "s1")
    assert calls(ended.usage) == most
    assert any(one.startswith(f"{OF_THIS_RUN} ({most} of {most} calls)") for one in ended.warnings)
    # Another run has its own.
    assert calls(done(memory, "ask", awaited, "Who repaired the loom?").usage) >= 1


def down(*_: Any, **__: Any) -> Any:
    raise TimeoutError


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_parent_graph_and_its_graphs_are_one_run(opened, most):
    memory = opened()
    graph = build_memory(
        roles_on(PLAUSIBLE),
        memory.bank,
        memory.settings.model_copy(update={"budget": Budget(calls_a_run=most)}),
    )
    said = {"messages": [("user", "Remember that I play the cello. Where do I live?")], "end_session": True}
    out = graph.invoke(said, context={"user": "ana"})
    used = [out[part].get("usage") or {} for part in ("recalled", "remembered", "ended")]
    assert sum(map(calls, used)) == most


def test_what_was_read_before_it_ended_stays_and_the_session_stays_open(opened):
    """A catch-up of several chunks reads as many as it may; the next end reads on."""
    theta = {"extraction": {"tokens": 200}}
    memory = opened(calls_a_run=1, more={"theta": theta, "idle_after": None})
    waiting = []
    for n in range(3):
        part = memory.add([f"{one} {'It was a long day. ' * 20}" for one in TALK[n * 3 : n * 3 + 3]])
        waiting += part.unextracted
    before = len(memory.memories(granularity="fact"))
    first = memory.end_session()
    assert first.status in ("open", "verifying")
    assert calls(first.usage) == 1
    assert len(memory.memories(granularity="fact")) > before
    for _ in range(20):
        ended = memory.end_session()
        if ended.status.startswith("committed"):
            break
    assert ended.status == "committed_unverified"
    assert memory.bank.unprocessed(Scope(user="ana", session="main")) == []


def test_a_session_that_went_idle_is_ended_once_there_is_a_budget_again(opened, clock):
    memory = opened(calls_a_day=1, more={"idle_after": 60})
    memory.ask("What do I play?")
    memory.add("I play the cello.")
    assert calls(memory.ask("What do I play?").usage) == 1
    clock.pass_(61)
    (ended,) = memory.end_idle().values()
    assert ended.status == memory.sessions()[0].status == "open"
    assert any("budget" in one for one in ended.warnings)
    clock.pass_(DAY)
    memory.end_idle()
    assert memory.sessions()[0].status.startswith("committed")
    assert memory.memories(granularity="fact")


def test_an_import_neither_waits_nor_asks_again(opened):
    waited: list[float] = []
    memory = opened(calls_a_day=0)
    object.__setattr__(memory.bank.world, "sleep", waited.append)
    added = memory.add(TALK, bulk=True)
    assert added.unextracted == added.turns
    assert waited == []
    assert len(added.warnings) == len(set(added.warnings))


def test_processes_share_it_to_the_call(tmp_path, clock):
    """Two doors to one home, many at once: as many as there are get a call."""
    ann, today, limit = Scope(user="ann"), START.date(), Limit(calls=10, tokens=None)
    settings = Settings(home=tmp_path / "home", shards=2)
    banks = [Bank.open(settings, embeddings=FakeEmbeddings(), world=World(now=clock)) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda n: banks[n % 2].spend(ann, today, Spent(1, 5), limit), range(40)))
    assert told.count("") == 10
    assert set(told) == {"", "10 of 10 calls"}
    assert banks[0].spent(ann, today) == Spent(10, 50)
    assert banks[1].spend(ann, today + timedelta(days=1), Spent(1, 5), limit) == ""
    assert banks[0].spent(ann, today) == Spent(0, 0)
    for bank in banks:
        bank.close()


def test_it_goes_with_its_user(opened, clock):
    """Also of one who only asked."""
    memory = opened(calls_a_day=5)
    memory.add("I play the cello.")
    memory.ask("What do I play?", user="ana")
    bob = Scope(user="bob")
    memory.bank.spend(bob, clock().date(), Spent(3, 9))
    for user in ("ana", "bob"):
        assert memory.bank.spent(Scope(user=user), clock().date()).calls >= 1
        memory.forget_user(user)
        assert memory.bank.spent(Scope(user=user), clock().date()) == Spent(0, 0)


def test_it_is_read_from_the_environment_and_strictly():
    env = {"MEMCYCLE_MAX_CALLS_A_DAY": "20", "MEMCYCLE_MAX_TOKENS_A_RUN": "5000"}
    assert Settings.from_env(env).budget == Budget(calls_a_day=20, tokens_a_run=5000)
    assert Settings.from_env({}).budget == Budget()
    with pytest.raises(BadInput, match="calls_a_day"):
        Settings.from_env({"MEMCYCLE_MAX_CALLS_A_DAY": "-1"})
