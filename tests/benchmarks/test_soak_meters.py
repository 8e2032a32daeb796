"""Processor time by kind of operation, the event loop's lag, and growth."""

import asyncio
import os
import subprocess
import time
from types import SimpleNamespace

import pytest

from benchmarks.soak.drive import EVERYTHING, Done, left
from benchmarks.soak.meters import OF_KIND, WORST, Lag, Processor, resident_mb, resident_of, slope
from benchmarks.soak.pool import Soak, _look_at
from tests.chroma_server import Server


def work():
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass


async def test_steps_and_threads_count_for_the_kind_they_were_begun_for():
    processor = Processor()
    processor.install(asyncio.get_running_loop())

    async def on_the_loop():
        work()

    async def in_a_thread():
        await asyncio.to_thread(work)

    async def begun(kind, do):
        OF_KIND.set(kind)
        await asyncio.create_task(do())

    await asyncio.gather(begun("add", on_the_loop), begun("ask", in_a_thread), begun("add", in_a_thread))
    seconds = processor.seconds()
    assert set(seconds) == {"add", "ask"}
    assert seconds["add"] >= 0.04
    assert seconds["ask"] >= 0.02


async def test_what_a_task_gives_and_raises_passes_through():
    processor = Processor()
    processor.install(asyncio.get_running_loop())
    OF_KIND.set("ask")

    async def fails():
        await asyncio.sleep(0)
        raise ValueError("as it is")

    async def gives():
        await asyncio.sleep(0)
        return 7

    assert await asyncio.create_task(gives()) == 7
    with pytest.raises(ValueError, match="as it is"):
        await asyncio.create_task(fails())
    waiting = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_the_longest_blocks_are_kept_with_what_ran():
    lag = Lag()
    for n in range(2 * WORST):
        lag.add(n / 100, n / 200, lambda n=n: f"at {n}")
    assert lag.looks == 2 * WORST
    assert lag.over == 9
    assert lag.over_by_itself == 0
    assert [block.running for block in lag.worst] == [f"at {n}" for n in range(19, 9, -1)]
    lag.add(0.2, 0.15, lambda: "busy")
    assert lag.over_by_itself == 1
    assert (lag.worst[0].ms, lag.worst[0].cpu_ms) == (200, 150)


def test_growth_is_by_minute():
    assert slope([(0, 100), (30, 101), (60, 102)]) == pytest.approx(2)
    assert slope([(0, 100)]) is None


def test_ids_that_must_be_left_follow_from_what_was_reported():
    first = Done("user-001", made={"a", "b"}, erased={"b"})
    assert left(set(), [first, Done("user-001", made={"c"}, erased={"a"})]) == {"c"}
    assert left(set(), [first, Done("user-001", made={"c"}, erased={EVERYTHING})]) == set()


def test_memory_of_another_process_is_told_where_the_system_can():
    own, gone = resident_of(os.getpid()), resident_of(2**22 + 1)
    if own is None:
        pytest.skip("this system has no /proc")
    assert own == pytest.approx(resident_mb(), rel=0.5)
    assert gone is None


def test_a_servers_memory_is_looked_at_once_a_second():
    result, running = Soak(users=1, processes=2, latency=0.3), Server("", SimpleNamespace(pid=os.getpid()))
    if resident_of("self") is None:
        pytest.skip("this system has no /proc")
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has looked yet
        _look_at(Server("", ended), 0.0, result)
    _look_at(Server("", ended), 0.0, result)
    _look_at(None, 0.0, result)
    assert result.server_resident == []
    for over in (0.0, 0.4, 1.1, 1.2, 2.0):
        _look_at(running, over, result)
    assert [at for at, _ in result.server_resident] == [0.0, 1.1, 2.0]
