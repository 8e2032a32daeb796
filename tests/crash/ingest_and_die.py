"""Run by test_crash_ingest: ingests the demo conversation and dies around the n-th ledger write.

Arguments: home, n (0: never), `before` or `after` its commit. Prints each acknowledged turn id at once.
"""

import os
import signal
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memcycle.cli.demo import conversation
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.ingest import Progress, ingest
from memcycle.memory import Memory
from memcycle.stores.ledger.connection import Ledger
from tests.fakes import FakeEmbeddings

CHUNK = 4


def arm(fatal: int, moment: str) -> None:
    """From here on the process dies around the fatal-th write transaction."""
    write, count = Ledger.write, [0]

    @contextmanager
    def counted(self):
        count[0] += 1
        mine = count[0]
        with write(self) as conn:
            yield conn
            if mine == fatal and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if mine == fatal and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    Ledger.write = counted


def acknowledge(progress: Progress) -> None:
    sys.stdout.write(f"{progress.done}\n")
    sys.stdout.flush()


def open_memory(home: Path) -> Memory:
    world = World(now=lambda: datetime(2025, 1, 1, tzinfo=UTC))
    settings = Settings(home=home, shards=2)
    return Memory.open(settings=settings, embeddings=FakeEmbeddings(), world=world, user="ana")


if __name__ == "__main__":
    arm(int(sys.argv[2]), sys.argv[3])
    with open_memory(Path(sys.argv[1])) as opened:
        ingest(opened, conversation(), chunk_turns=CHUNK, on_progress=acknowledge)
