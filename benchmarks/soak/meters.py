"""What a process of a soak measures beside its work: how late the event loop is and why, and memory."""

import asyncio
import resource
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

TICK, LATE = 0.05, 0.1
"""Seconds: how often the loop is looked at; from when on it counts as blocked."""
WORST = 10
MB = 1_000_000


class Block(NamedTuple):
    """One time the event loop was late.

    Attributes:
        ms: How late. cpu_ms: processor time of the whole process meanwhile; what is missing to `ms` the
            machine gave to others.
        running: What ran.
    """

    ms: float
    cpu_ms: float
    running: str


@dataclass
class Lag:
    """How late the event loop was.

    Attributes:
        looks: How often it was looked at. over: how often it was later than 100 ms; over_by_itself: those in
            which the process had as much processor time.
        worst: The longest.
    """

    looks: int = 0
    over: int = 0
    over_by_itself: int = 0
    worst: list[Block] = field(default_factory=list)

    def add(self, seconds: float, cpu: float, running: str) -> None:
        """One look, with the processor seconds since the last."""
        self.looks += 1
        self.over += seconds > LATE
        self.over_by_itself += min(seconds, cpu) > LATE
        self.worst = sorted([*self.worst, Block(1000 * seconds, 1000 * cpu, running)], reverse=True)[:WORST]


class Watchdog:
    """Looks at the event loop from inside, and from a thread at what runs while it is late."""

    def __init__(self) -> None:
        self.lag = Lag()
        self._beat, self._over = time.perf_counter(), threading.Event()
        self._seen: deque[tuple[float, str]] = deque(maxlen=100)

    async def watch(self) -> None:
        """Runs until it is cancelled."""
        threading.Thread(target=self._look_from_outside, args=(threading.get_ident(),), daemon=True).start()
        try:
            while True:
                self._beat = began = time.perf_counter()
                spent = time.process_time()
                await asyncio.sleep(TICK)
                late = time.perf_counter() - began - TICK
                what = next((what for at, what in reversed(self._seen) if at > began), "not seen")
                self.lag.add(late, time.process_time() - spent, what)
        finally:
            self._over.set()

    def _look_from_outside(self, loop_thread: int) -> None:
        while not self._over.wait(TICK):
            if time.perf_counter() - self._beat > LATE / 2:
                self._seen.append((time.perf_counter(), _running(sys._current_frames(), loop_thread)))


_WAITS = {"wait", "select", "_worker", "get", "_look_from_outside", "acquire", "_recv", "join", "accept"}


def _running(frames: dict[int, FrameType], loop_thread: int) -> str:
    """What the loop's thread and the others that do not just wait are at."""
    told = [f"loop at {_place(frames[loop_thread])}"] if loop_thread in frames else []
    busy = Counter(
        _place(frame)
        for thread, frame in frames.items()
        if thread != loop_thread and frame.f_code.co_name not in _WAITS
    )
    return "; ".join([*told, *(f"{count} thread(s) at {place}" for place, count in busy.most_common(3))])


def _place(frame: FrameType) -> str:
    """The innermost function of ours, and the one it waits in."""
    inner, ours = frame, frame
    while ours.f_back is not None and "memcycle" not in ours.f_globals.get("__name__", ""):
        ours = ours.f_back
    names = [f"{one.f_globals.get('__name__')}.{one.f_code.co_name}" for one in (ours, inner)]
    return names[0] if ours is inner else f"{names[0]} in {names[1]}"


def resident_mb(process: int | str = "self") -> float | None:
    """Memory of a process now, in MB; None of one that has ended, or where the system has no /proc."""
    try:
        pages = int(Path("/proc", str(process), "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * resource.getpagesize() / MB if pages else None


def slope(samples: Sequence[tuple[float, float]]) -> float | None:
    """Growth a minute of (seconds, value), by least squares; None for too few to tell."""
    if len({at for at, _ in samples}) < 2:  # noqa: PLR2004 - a line
        return None
    at, values = np.array(samples).T
    return float(60 * np.polyfit(at, values, 1)[0])
