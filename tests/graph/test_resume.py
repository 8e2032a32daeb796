"""Resume from SQLite checkpoints: a run that broke off in a node goes on there, and writes nothing twice."""

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from memcycle.agents.roles import Roles
from memcycle.agents.rules import RULES
from memcycle.core.scope import Scope
from memcycle.graph import build_memory, build_remember
from memcycle.stores.bank import Bank
from tests.banks import START, open_bank
from tests.scripted import Always

ANA = Scope(user="ana")
CONTEXT = {"user": "ana", "now": START}
THREAD = {"configurable": {"thread_id": "t1"}}
FIRST = {"messages": [HumanMessage("I teach pottery at Larkfield school.", id="m1")]}
LAST = {
    "messages": [HumanMessage("Do I teach pottery? I left Larkfield and row boats in Graz. My sister Eva keeps bees.", id="m2")],
    "end_session": True,
}
ROLES = [
    "retriever", "judge", "answerability", "query_reasoner", "answerer",
    "refresher", "guide", "constructor", "fact_judge", "episode_writer",
]  # fmt: skip
WRITES = [("stage_turns", 1), ("apply", 1), ("apply", 2), ("apply", 3), ("apply", 4), ("commit_session", 1)]


class Broken(Exception):
    """What breaks a run off, once."""


@dataclass
class Run:
    """One bank, one checkpoint file, roles by rules that count their calls."""

    home: Path
    mode: str
    calls: dict[str, Always] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calls = {name: Always(RULES[name]) for name in RULES}

    def breaks_in(self, role: str) -> None:
        """The next call of the role raises, as a provider that is down does."""
        rule, waiting = RULES[role], [Broken(role)]

        def once(value):
            if waiting:
                raise waiting.pop()
            return rule(value)

        self.calls[role].outputs = [once]

    def roles(self) -> Roles:
        return Roles(**{f.name: self.calls[f.name] for f in fields_of(Roles) if f.name in self.calls})

    def counts(self) -> dict[str, int]:
        return {name: len(role.seen) for name, role in self.calls.items()}

    def invoke(self, bank: Bank, build, value):
        """One run of the graph, on a saver opened for it alone."""
        graph, saved = build(self.roles(), bank).builder, str(self.home / "checkpoints.sqlite3")
        if self.mode == "sync":
            with SqliteSaver.from_conn_string(saved) as saver:
                return graph.compile(checkpointer=saver).invoke(value, THREAD, context=CONTEXT)

        async def run():
            async with AsyncSqliteSaver.from_conn_string(saved) as saver:
                return await graph.compile(checkpointer=saver).ainvoke(value, THREAD, context=CONTEXT)

        return asyncio.run(run())


@pytest.fixture(params=["sync", "async"])
def mode(request):
    return request.param


@contextmanager
def opened(home, mode):
    run = Run(home, mode)
    with open_bank(home) as bank:
        yield run, bank


def content(bank: Bank) -> list[tuple]:
    """Every entry with all that was ever done to it; without when it was written, and the replies' drawn ids."""
    rows = []
    for row in bank.export(ANA):
        del row["recorded_at"]
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


@pytest.fixture
def unbroken(tmp_path, mode):
    """Counts, output and bank of a chat of two turns that nothing breaks."""
    with opened(tmp_path / "whole", mode) as (run, bank):
        run.invoke(bank, build_memory, FIRST)
        before = run.counts()
        out = run.invoke(bank, build_memory, LAST)
        used = {name: n - before[name] for name, n in run.counts().items()}
        return used, out, content(bank)


@pytest.mark.parametrize("role", ROLES)
def test_a_run_broken_in_a_role_repeats_that_call_only(tmp_path, mode, unbroken, role):
    used, whole, expected = unbroken
    with opened(tmp_path / "broken", mode) as (run, bank):
        run.invoke(bank, build_memory, FIRST)
        before = run.counts()
        run.breaks_in(role)
        with pytest.raises(Broken):
            run.invoke(bank, build_memory, LAST)
        out = run.invoke(bank, build_memory, None)
        assert {name: n - before[name] for name, n in run.counts().items()} == {**used, role: used[role] + 1}
        assert content(bank) == expected
        assert [message.content for message in out["messages"]] == [m.content for m in whole["messages"]]
        assert (out["remembered"], out["ended"]) == (whole["remembered"], whole["ended"])


@pytest.mark.parametrize(("write", "nth"), WRITES)
def test_a_write_that_was_not_checkpointed_is_not_done_twice(
    tmp_path, mode, unbroken, write, nth, monkeypatch
):
    used, whole, expected = unbroken
    with opened(tmp_path / "broken", mode) as (run, bank):
        run.invoke(bank, build_memory, FIRST)
        before = run.counts()
        break_after(monkeypatch, write, nth)
        with pytest.raises(Broken):
            run.invoke(bank, build_memory, LAST)
        out = run.invoke(bank, build_memory, None)
        assert {name: n - before[name] for name, n in run.counts().items()} == used
        assert out["remembered"] == whole["remembered"]
        assert out["ended"]["episodes"] == whole["ended"]["episodes"]
        assert content(bank) == expected


def test_words_without_an_id_are_one_turn_after_a_resume(tmp_path, mode, monkeypatch):
    with opened(tmp_path, mode) as (run, bank):
        break_after(monkeypatch, "stage_turns", 1)
        with pytest.raises(Broken):
            run.invoke(bank, build_remember, {"messages": ["I play the cello."]})
        out = run.invoke(bank, build_remember, None)
        raws = bank.entries(ANA, granularity="raw")
        assert ([raw.text for raw in raws], out["result"]["turns"]) == (["I play the cello."], ["Dt1:1"])
