"""One checkpoint file for sync and async graphs: how it is opened, what is refused, what resumes from it."""

import asyncio
import errno
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from filelock import FileLock
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from memcycle import Scope, build_recall, build_remember, checkpointer
from memcycle.agents.roles import Roles
from memcycle.agents.rules import RULES
from memcycle.checkpoints import OffLoop, for_both
from memcycle.core.errors import MemcycleError, StoreBusy, StoreError
from tests.banks import START, open_bank
from tests.scripted import Always

CONTEXT = {"user": "ana", "session": "s", "now": START}
TOLD = {"messages": ["I teach pottery at Larkfield school. My sister Eva keeps bees."]}


class Broken(MemcycleError):
    """What breaks a run off, once."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept" / "checkpoints.sqlite3"


def config(thread: str = "t1") -> dict:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def pragma(conn: sqlite3.Connection, name: str):
    return conn.execute(f"PRAGMA {name}").fetchone()[0]


def run(path, mode: str, graph, value, thread: str):
    """One run on a checkpointer opened for it alone, as after a restart."""
    builder = graph.builder
    if mode == "sync":
        with checkpointer(path) as saver:
            return builder.compile(checkpointer=saver).invoke(value, config(thread), context=CONTEXT)

    async def main():
        async with checkpointer(path) as saver:
            return await builder.compile(checkpointer=saver).ainvoke(value, config(thread), context=CONTEXT)

    return asyncio.run(main())


def breaks_once(role: str) -> Always:
    waiting = [Broken(role)]

    def rule(value):
        if waiting:
            raise waiting.pop()
        return RULES[role](value)

    return Always(rule)


@pytest.mark.parametrize(("first", "then"), [("sync", "async"), ("async", "sync")])
def test_a_broken_run_resumes_whichever_way_the_file_is_opened(tmp_path, path, first, then):
    calls = {role: Always(rule) for role, rule in RULES.items()}
    calls |= {role: breaks_once(role) for role in ("constructor", "answerer")}
    with open_bank(tmp_path / "home") as bank:
        remember, recall = build_remember(Roles(**calls), bank), build_recall(Roles(**calls), bank)
        with pytest.raises(Broken):
            run(path, first, remember, TOLD, "remember")
        out = run(path, then, remember, None, "remember")
        assert out["result"]["turns"] == ["Ds:1"]
        assert len(bank.entries(Scope(user="ana"), granularity="raw")) == 1
        with pytest.raises(Broken):
            run(path, first, recall, {"question": "What does Eva keep?"}, "recall")
        before = {role: len(always.seen) for role, always in calls.items()}
        out = run(path, then, recall, None, "recall")
        assert "bees" in out["answer"]["answer"]
        after = {role: len(always.seen) for role, always in calls.items()}
        assert after == {**before, "answerer": before["answerer"] + 1}


def test_a_file_is_written_ahead_without_a_wait_a_node_and_owner_only(path):
    with checkpointer(path) as saver:
        saver.put(config(), empty_checkpoint(), {"step": 1}, {})
        conn = saver.saver.conn
        assert (pragma(conn, "journal_mode"), pragma(conn, "synchronous")) == ("wal", 1)
        assert pragma(conn, "busy_timeout") == 30_000
        made = sorted(path.parent.iterdir())
        assert [one.name.removeprefix(path.name) for one in made] == ["", "-shm", "-wal", ".lock"]
        assert {mode_of(one) for one in made} == {0o600}
    assert mode_of(path.parent) == 0o700
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        saver.get_tuple(config())


async def test_a_file_is_opened_read_and_written_off_the_loop(path):
    with blockbuster_ctx():
        async with checkpointer(path) as saver:
            await saver.aput(config(), empty_checkpoint(), {"step": 1}, {})
            await saver.aput_writes((await saver.aget_tuple(config())).config, [("x", 1)], "task")
            [held] = [one async for one in saver.alist(config())]
            assert (held.metadata["step"], held.pending_writes) == (1, [("task", "x", 1)])
            await saver.adelete_thread("t1")
            assert await saver.aget_tuple(config()) is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await saver.aget_tuple(config())


def test_a_saver_that_is_given_is_made_to_serve_async_graphs_and_others_are_left(path):
    path.parent.mkdir()
    assert isinstance(for_both(InMemorySaver()), InMemorySaver)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        assert isinstance(for_both(saver), OffLoop)


def test_both_ways_read_the_same_file_one_after_the_other(path):
    one = checkpointer(path)
    with one as saver:
        saver.put(config(), empty_checkpoint(), {"step": 7}, {})

    async def read():
        async with one as found:
            return (await found.aget_tuple(config())).metadata["step"]

    assert asyncio.run(read()) == 7
    with one as again:
        assert again.get_tuple(config()).metadata["step"] == 7


def test_one_object_is_open_once_at_a_time_and_others_beside_it(path):
    one = checkpointer(path)
    with one as saver:
        with pytest.raises(StoreError, match="in use: make a second one"), one:
            pass
        with checkpointer(path) as other:
            saver.put(config(), empty_checkpoint(), {"step": 1}, {})
            assert other.get_tuple(config()).metadata["step"] == 1


def test_a_refused_one_can_be_entered_once_its_path_is_free(path):
    path.mkdir(parents=True)
    one = checkpointer(path)
    with pytest.raises(StoreError, match="it is a folder"):
        one.__enter__()
    path.rmdir()
    with one:
        pass


def test_many_open_a_new_file_at_once(path):
    met = threading.Barrier(8)

    def write(n: int) -> None:
        met.wait(20)
        with checkpointer(path) as saver:
            saver.put(config(f"t{n}"), empty_checkpoint(), {"step": n}, {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with checkpointer(path) as saver:
        assert {found.metadata["step"] for found in saver.list(None)} == set(range(8))


def test_a_sync_saver_serves_several_threads(path):
    with checkpointer(path) as saver, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: saver.put(config(f"t{n}"), empty_checkpoint(), {"step": n}, {}), range(40)))
        assert sorted(pool.map(lambda n: saver.get_tuple(config(f"t{n}")).metadata["step"], range(40))) == [
            *range(40)
        ]


def test_a_file_of_langgraph_itself_is_taken_over_and_made_private(path):
    path.parent.mkdir()
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.put(config(), empty_checkpoint(), {"step": 3}, {})
    path.chmod(0o644)
    with checkpointer(path) as saver:
        assert saver.get_tuple(config()).metadata["step"] == 3
    assert mode_of(path) == 0o600


def test_rights_that_cannot_be_changed_are_told(path, monkeypatch, caplog):
    path.parent.mkdir()
    path.touch()
    path.chmod(0o640)

    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(type(path), "chmod", refuse)
    caplog.set_level(logging.WARNING)
    with checkpointer(path):
        pass
    assert f"others may read {path}" in caplog.text


def enter(path) -> None:
    with checkpointer(path):
        pass


def a_folder(path):
    path.mkdir(parents=True)
    return "it is a folder"


def a_pipe(path):
    path.parent.mkdir()
    os.mkfifo(path)
    return "it is no file"


def a_text(path):
    path.parent.mkdir()
    path.write_text("Dear diary, " * 100)
    return "it is the file of another program"


def another_database(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE checkpoints (name TEXT)")
    conn.close()
    return "it is the database of another program"


def a_ledger(path):
    with open_bank(path.parent):
        pass
    (path.parent / "ledger.sqlite3").rename(path)
    return "it is the database of another program"


def below_a_file(path):
    path.parent.write_text("")
    return "is no folder"


@pytest.mark.parametrize("there", [a_folder, a_pipe, a_text, another_database, a_ledger, below_a_file])
def test_what_is_no_checkpoint_file_is_refused_and_left_as_it_is(path, there):
    reason = there(path)
    held = path.read_bytes() if path.is_file() else None
    rights = mode_of(path) if path.exists() else None
    with pytest.raises(StoreError, match=f"cannot keep checkpoints in .*{reason}; choose another file"):
        enter(path)
    assert (path.read_bytes() if path.is_file() else None) == held
    assert (mode_of(path) if path.exists() else None) == rights


def test_a_path_that_cannot_be_written_is_refused(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(StoreError, match="Read-only file system; choose another file"):
            enter(path)
    enter(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
def test_a_read_only_file_is_refused(path):
    enter(path)
    path.chmod(0o400)
    with pytest.raises(StoreError, match="Permission denied"):
        enter(path)


def test_a_path_that_is_none_is_refused():
    with pytest.raises(StoreError, match="null byte"):
        enter("check\0points")


_OPEN_AND_CLOSE = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1])
conn.execute("SELECT count(*) FROM checkpoints").fetchone()
conn.close()
"""


def test_a_file_opened_twice_stays_that_of_its_process(path):
    """Who is the last to close a file takes its log away, and what others then write into that is lost."""
    with checkpointer(path) as saver:
        with checkpointer(path) as second:
            second.saver.conn.execute("CREATE TABLE first (x)")
            second.saver.conn.commit()
        subprocess.run([sys.executable, "-c", _OPEN_AND_CLOSE, path], check=True)
        assert Path(f"{path}-wal").exists()
        saver.saver.conn.execute("CREATE TABLE second (x)")
        saver.saver.conn.commit()
        with closing(sqlite3.connect(path)) as other:
            made = {name for (name,) in other.execute("SELECT name FROM sqlite_master")}
    assert made >= {"first", "second"}


def test_a_file_that_another_process_keeps_opening_is_busy(path, monkeypatch):
    monkeypatch.setattr("memcycle.checkpoints.BUSY_SECONDS", 0.01)
    path.parent.mkdir()
    with FileLock(f"{path}.lock"), pytest.raises(StoreBusy, match="another process has been opening"):
        enter(path)


def test_a_new_file_that_another_process_writes_is_busy(path, monkeypatch):
    monkeypatch.setattr("memcycle.checkpoints.BUSY_SECONDS", 0.01)
    path.parent.mkdir()
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreBusy, match="being written by another process"):
            enter(path)
    finally:
        conn.close()
