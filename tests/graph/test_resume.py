"""Resume from SQLite checkpoints: a run that broke off in a node goes on there, and writes nothing twice."""

import asyncio
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from memcycle import build_memory, build_remember
from memcycle.agents.roles import Roles
from memcycle.agents.rules import RULES
from memcycle.core.errors import MemcycleError
from memcycle.core.scope import Scope
from memcycle.stores.bank import Bank
from tests.banks import START, open_bank
from tests.scripted import Always

ANA = Scope(user="ana")
CONTEXT = {"user": "ana", "now": START}
THREAD = {"configurable": {"thread_id": "t1"}}
FIRST = {"messages": [HumanMessage("I live in Larkfield and teach pottery.", id="m1")]}
LAST = {
    "messages": [
        HumanMessage(
            "What does my dentist need? I moved to Graz and row boats. My sister Eva keeps bees.",
            id="m2",
        )
    ],
    "end_session": True,
}
ROLES = [
    "retriever", "judge", "answerability", "query_reasoner", "answerer",
    "refresher", "guide", "constructor", "fact_judge", "episode_writer", "prober", "grader",
]  # fmt: skip
WRITES = [("stage_turns", 1), ("apply", 1), ("apply", 2), ("apply", 3), ("apply", 4), ("commit_session", 1)]


class Broken(MemcycleError):
    """What breaks a run off, once."""


@dataclass
class Run:
    """One bank, one checkpoint file, roles by rules that count their calls."""

    home: Path
    mode: str
    calls: dict[str, Always] = field(
        default_factory=lambda: {role: Always(rule) for role, rule in RULES.items()}
    )

    def breaks_in(self, role: str) -> None:
        """The next call of the role raises what no run goes on without."""
        rule, waiting = RULES[role], [Broken(role)]

        def once(value):
            if waiting:
                raise waiting.pop()
            return rule(value)

        self.calls[role].outputs = [once]

    def counts(self) -> dict[str, int]:
        return {name: len(role.seen) for name, role in self.calls.items()}

    def invoke(self, bank: Bank, build, value):
        """One run of the graph, on a saver opened for it alone."""
        graph, saved = build(Roles(**self.calls), bank).builder, str(self.home / "checkpoints.sqlite3")
        if self.mode == "sync":
            with SqliteSaver.from_conn_string(saved) as saver:
                return graph.compile(checkpointer=saver).invoke(value, THREAD, context=CONTEXT)

        async def run():
            async with AsyncSqliteSaver.from_conn_string(saved) as saver:
                return await graph.compile(checkpointer=saver).ainvoke(value, THREAD, context=CONTEXT)

        return asyncio.run(run())


@contextmanager
def opened(home: Path, mode: str):
    with open_bank(home) as bank:
        yield Run(home, mode), bank


def content(bank: Bank) -> list[tuple]:
    """Every entry with all that was done to it; not when it was written, nor the replies' drawn ids."""
    rows = []
    for row in bank.export(ANA):
        del row["recorded_at"], row["log"]
        row["metadata"].pop("message_id", None)
        rows.append((row, [event.action for event in bank.history(ANA, row["id"])]))
    return rows


def break_after(monkeypatch, write: str, nth: int) -> None:
    """The n-th call of a bank's write commits, and then breaks the run off."""
    original, count = getattr(Bank, write), [0]

    def once(self, *args, **named):
        done = original(self, *args, **named)
        count[0] += 1
        if count[0] == nth:
            raise Broken(write)
        return done

    monkeypatch.setattr(Bank, write, once)


@pytest.fixture(scope="module")
def mode(request):
    return request.param


def in_mode(*modes: str):
    return pytest.mark.parametrize("mode", modes, indirect=True, scope="module")


@pytest.fixture(scope="module")
def told(tmp_path_factory, mode):
    """A home after the first chat turn, with its checkpoints."""
    home = tmp_path_factory.mktemp("told")
    with opened(home, mode) as (run, bank):
        run.invoke(bank, build_memory, FIRST)
    return home


@pytest.fixture(scope="module")
def whole(tmp_path_factory, told, mode):
    """Calls, output and bank of a second chat turn that nothing breaks."""
    home = shutil.copytree(told, tmp_path_factory.mktemp("whole") / "home")
    with opened(home, mode) as (run, bank):
        out = run.invoke(bank, build_memory, LAST)
        return run.counts(), out, content(bank)


@pytest.fixture
def second(tmp_path, told, mode):
    """A run and a bank before the second chat turn."""
    home = shutil.copytree(told, tmp_path / "home")
    with opened(home, mode) as (run, bank):
        yield run, bank


@pytest.mark.parametrize(
    ("mode", "role"),
    [*(("sync", role) for role in ROLES), *(("async", role) for role in ("retriever", "answerer", "grader"))],
    indirect=["mode"],
    scope="module",
)
def test_a_run_broken_in_a_role_repeats_that_call_only(whole, second, role):
    (calls, expected, stored), (run, bank) = whole, second
    run.breaks_in(role)
    with pytest.raises(Broken):
        run.invoke(bank, build_memory, LAST)
    out = run.invoke(bank, build_memory, None)
    assert run.counts() == {**calls, role: calls[role] + 1}
    assert content(bank) == stored
    assert [message.content for message in out["messages"]] == [m.content for m in expected["messages"]]
    assert (out["remembered"], out["ended"]) == (expected["remembered"], expected["ended"])


@in_mode("sync")
@pytest.mark.parametrize(("write", "nth"), WRITES)
def test_a_write_that_was_not_checkpointed_is_not_done_twice(whole, second, write, nth, monkeypatch):
    (calls, expected, stored), (run, bank) = whole, second
    break_after(monkeypatch, write, nth)
    with pytest.raises(Broken):
        run.invoke(bank, build_memory, LAST)
    out = run.invoke(bank, build_memory, None)
    assert run.counts() == calls
    assert content(bank) == stored
    assert out["remembered"] == expected["remembered"]
    assert out["ended"]["episodes"] == expected["ended"]["episodes"]


@in_mode("sync", "async")
def test_words_without_an_id_are_one_turn_after_a_resume(tmp_path, mode, monkeypatch):
    with opened(tmp_path, mode) as (run, bank):
        break_after(monkeypatch, "stage_turns", 1)
        with pytest.raises(Broken):
            run.invoke(bank, build_remember, {"messages": ["I play the cello."]})
        out = run.invoke(bank, build_remember, None)
        raws = bank.entries(ANA, granularity="raw")
        assert ([raw.text for raw in raws], out["result"]["turns"]) == (["I play the cello."], ["Dt1:1"])
