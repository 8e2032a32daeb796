"""Does what a user does, through the public API, and notes what it sees."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.soak.findings import Finding
from benchmarks.soak.meters import OF_KIND
from benchmarks.soak.plan import Kind, Message, Op, Stint, marks, number_of, strangers
from memcycle.memory import Memory
from memcycle.results import Answer

ONE_OF = 16
"""Of so many users one has its processor time counted by kind: counting costs some 8 % of what is counted."""


@dataclass
class Done:
    """A stint that is done.

    Attributes:
        seconds: Of each operation, by kind. calls: model calls by kind. metered: operations by kind whose
            processor time is counted.
        made, erased: Ids of the facts and episodes that were reported as stored, and as forgotten.
        asked, shown: Questions about something that is there, and those whose evidence showed it.
        errors: Operations that failed, each in one line.
    """

    user: str
    seconds: dict[Kind, list[float]] = field(default_factory=dict)
    calls: Counter[Kind] = field(default_factory=Counter)
    metered: Counter[Kind] = field(default_factory=Counter)
    made: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    asked: int = 0
    shown: int = 0
    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Driver:
    """Does stints with one memory, several at the same time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._does: dict[Kind, Callable[[Op, Done], Awaitable[None]]] = {
            "add": self._add,
            "ask": self._ask,
            "end_session": self._end_session,
            "forget": self._forget,
            "forget_user": self._forget_user,
        }

    async def run(self, stint: Stint) -> Done:
        """One stint; an operation that fails is noted, and the next is done."""
        done = Done(stint.user)
        metered = number_of(stint.user) % ONE_OF == 0
        for op in stint.ops:
            OF_KIND.set(op.kind if metered else None)
            done.metered[op.kind] += metered
            started = time.perf_counter()
            try:
                # A task of its own, so that its first step counts for its kind too.
                await asyncio.create_task(self._does[op.kind](op, done))  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                done.errors.append(f"{op.kind} of {stint.user}: {type(error).__name__}: {error}"[:300])
            done.seconds.setdefault(op.kind, []).append(time.perf_counter() - started)
        return done

    async def _add(self, op: Op, done: Done) -> None:
        sent = [_sent(message) for message in op.messages]
        again = 2 if op.twice else 1
        added = await asyncio.gather(
            *(self._memory.aadd(sent, user=done.user, session=op.session) for _ in range(again))
        )
        for one in added:
            done.made.update(one.facts, one.episodes)
            _count(done, op, one.usage)

    async def _ask(self, op: Op, done: Done) -> None:
        question = f"What about {op.mark}?" if op.mark else "What did I adopt?"
        answer: Answer = await self._memory.aask(question, user=done.user, session=op.session or None)
        _count(done, op, answer.usage)
        texts = [one.text for one in answer.evidence]
        done.asked += bool(op.mark)
        done.shown += bool(op.mark) and any(op.mark in marks(text) for text in texts)
        for text in [answer.answer or "", *texts]:
            done.findings += [
                Finding("crossed", done.user, "answer", mark) for mark in strangers(text, done.user)
            ]
            done.findings += [
                Finding("not forgotten", done.user, "answer", mark)
                for mark in marks(text) - strangers(text, done.user)
                if mark in op.without
            ]

    async def _end_session(self, op: Op, done: Done) -> None:
        ended = await self._memory.aend_session(op.session, user=done.user)
        done.made.update(ended.episodes)
        _count(done, op, ended.usage)

    async def _forget(self, op: Op, done: Done) -> None:
        found = await self._memory.amemories(user=done.user, search=op.mark, granularity="raw")
        if len(found) != 1:
            done.findings.append(Finding("doubled" if found else "lost", done.user, "forget", op.mark))
        for entry in found:
            done.erased.update(await self._memory.aforget(entry.id, user=done.user))

    async def _forget_user(self, _: Op, done: Done) -> None:
        # What was made before is gone as a whole, and no id of it is told.
        await self._memory.aforget_user(done.user)
        done.erased.add(EVERYTHING)


EVERYTHING = "*"


def _sent(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text, "id": message.id}


def _count(done: Done, op: Op, usage: Any) -> None:
    done.calls[op.kind] += sum(count["calls"] for count in usage.values())


def left(made: set[str], runs: Iterable[Done]) -> set[str]:
    """Ids of facts and episodes that must be stored after these stints of one user."""
    kept = set(made)
    for done in runs:
        kept |= done.made
        if EVERYTHING in done.erased:
            kept.clear()
        kept -= done.erased
    return kept
