"""A second process that brings the vector index up to date while this one goes on writing the ledger.

Chroma keeps the interpreter lock for as long as a call takes, so a thread would gain nothing. What the
helper does is what `Mirror.drain` does: it takes entries from the ledger's outbox, and a row leaves that only
after the index took it. So it may die at any moment: what is left is brought in by whoever drains next.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from pydantic import BaseModel, ConfigDict

from memcycle.core.settings import Settings

MODULE = "memcycle.stores.chroma_helping"
FINISH = b"finish\n"
PATIENCE = 60.0
"""Seconds without any progress after which it is killed."""

_log = logging.getLogger(__name__)


class Task(BaseModel):
    """What a helper is told: one line of JSON on its standard input.

    Attributes:
        ledger: The ledger's file. embedder, dimension: the vectors the index holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: Settings
    ledger: Path
    embedder: str
    dimension: int


class Helper:
    """The process, seen from the one that started it. It ends with that one, or when it is told to."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @classmethod
    def start(cls, task: Task) -> Self:
        """Starts it. It waits for the index until that is lent to it.

        Raises:
            OSError: there is no interpreter to run, or no room for another process.
        """
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # Ctrl-C is for the one that started it, which then says what to do.
            start_new_session=True,
        )
        helper = cls(process)
        helper._say(task.model_dump_json().encode() + b"\n")
        return helper

    def finish(self, waiting: Callable[[], int]) -> None:
        """Waits until it has brought in all that waits, or has failed.

        Args:
            waiting: How many entries wait in the outbox.
        """
        if self._is_ended:
            return
        self._say(FINISH)
        left = waiting()
        while self._process.poll() is None:
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                now = waiting()
                if now >= left:
                    break
                left = now
        self.end()

    def end(self) -> None:
        """Ends it after the call of the index it is at. Idempotent."""
        if self._is_ended:
            return
        with suppress(OSError):
            # What it did not read it does not need: it is gone.
            self._control.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode:
            _log.warning(
                "the helper that fills the index ended with %d; what is left is brought in without it",
                self._process.returncode,
            )

    @property
    def _control(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        return self._process.stdin

    @property
    def _is_ended(self) -> bool:
        return self._control.closed

    def _say(self, line: bytes) -> None:
        with suppress(OSError):
            # It may be gone: `end` says so.
            self._control.write(line)
            self._control.flush()
