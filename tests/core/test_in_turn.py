"""Work off the event loop: piece by piece, in the order of the calls, and nobody waits for one that hangs."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from memcycle.core.in_turn import PATIENCE, in_turn

NAMED: ContextVar[str] = ContextVar("named", default="")


async def test_pieces_are_done_one_after_another_in_the_order_of_the_calls():
    begun, at_once, most = [], 0, 0
    counting = threading.Lock()

    def work(n):
        nonlocal at_once, most
        with counting:
            begun.append(n)
            at_once += 1
            most = max(most, at_once)
        with counting:
            at_once -= 1
        return n

    assert await asyncio.gather(*(in_turn(work, n) for n in range(50))) == list(range(50))
    assert begun == list(range(50))
    assert most == 1


async def test_the_next_begins_while_one_hangs():
    let_go = threading.Event()
    hanging = asyncio.create_task(in_turn(let_go.wait))
    assert await in_turn(threading.get_ident) != threading.get_ident()
    assert not hanging.done()
    let_go.set()
    assert await hanging


async def test_it_runs_in_the_context_of_its_caller():
    NAMED.set("ann")
    assert await in_turn(NAMED.get) == "ann"


async def test_an_error_is_raised_and_the_next_gets_its_turn():
    def failing():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await in_turn(failing)
    assert await in_turn(lambda: 1) == 1


async def test_who_is_cancelled_keeps_nobody_waiting():
    let_go = threading.Event()
    first = asyncio.create_task(in_turn(let_go.wait))
    second = asyncio.create_task(in_turn(lambda: 2))
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    third = await in_turn(lambda: 3)
    let_go.set()
    assert third == 3
    for task in (first, second):
        with pytest.raises(asyncio.CancelledError):
            await task


def test_each_event_loop_has_turns_of_its_own():
    async def many():
        return await asyncio.gather(*(in_turn(int, "4") for _ in range(3)))

    assert [asyncio.run(many()) for _ in range(2)] == [[4, 4, 4]] * 2


async def test_a_piece_that_was_slow_makes_no_second_line_when_it_is_done():
    let_go, at_once, most = threading.Event(), 0, 0

    def quick():
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.001)
        at_once -= 1

    hanging = asyncio.create_task(in_turn(let_go.wait))
    queued = [asyncio.create_task(in_turn(quick)) for _ in range(40)]
    await asyncio.sleep(PATIENCE + 0.01)
    let_go.set()
    await asyncio.gather(*queued, hanging)
    assert most == 1


async def test_many_that_hang_and_a_full_pool_lose_nothing():
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    let_go = threading.Event()
    hanging = [asyncio.create_task(in_turn(let_go.wait)) for _ in range(5)]
    last = asyncio.create_task(in_turn(lambda: "done"))
    await asyncio.sleep(6 * PATIENCE)
    assert not last.done()
    let_go.set()
    assert await asyncio.gather(*hanging, last) == [True] * 5 + ["done"]


def test_a_loop_that_ends_waits_for_the_piece_that_runs_and_begins_no_other():
    begun, ran = threading.Event(), []

    def slow():
        begun.set()
        time.sleep(2 * PATIENCE)
        ran.append("slow")

    async def leave():
        pieces = [asyncio.create_task(in_turn(slow)), asyncio.create_task(in_turn(ran.append, "next"))]
        await asyncio.to_thread(begun.wait)
        return pieces

    asyncio.run(leave())
    assert ran == ["slow"]


def test_a_loop_that_is_gone_is_told_nothing():
    let_go, begun, after = threading.Event(), threading.Event(), threading.Event()

    def hang():
        begun.set()
        let_go.wait()
        threading.Timer(0.01, after.set).start()

    async def leave():
        task = asyncio.create_task(in_turn(hang))
        await asyncio.to_thread(begun.wait)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(leave())
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    let_go.set()
    assert after.wait(1)


async def test_a_pool_that_takes_nothing_any_more_is_said_and_another_is_used():
    loop, closed = asyncio.get_running_loop(), ThreadPoolExecutor(1)
    closed.shutdown()
    loop.set_default_executor(closed)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shutdown"):
            await asyncio.wait_for(in_turn(int, "4"), 5)
    loop.set_default_executor(ThreadPoolExecutor(1))
    assert await asyncio.wait_for(in_turn(int, "4"), 5) == 4
