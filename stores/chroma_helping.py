"""The helper's own side: `python -m memcycle.stores.chroma_helping`, started by `chroma_helper.Helper`."""

import threading
from contextlib import closing, suppress
from io import FileIO

from filelock import FileLock, Timeout

from memcycle.core.errors import StoreBusy
from memcycle.core.world import World
from memcycle.stores.chroma.client import open_client
from memcycle.stores.chroma.index import ChromaIndex
from memcycle.stores.chroma.mirror import DRAIN_LOCK, work_off
from memcycle.stores.chroma_helper import FINISH, Task
from memcycle.stores.ledger import meta, outbox
from memcycle.stores.ledger.connection import BUSY_SECONDS, Ledger
from memcycle.stores.locks import LOCK_FOLDER

LOOK = 0.05
"""Seconds between two looks at the outbox."""
FROM, MOST = 4, 16
"""Bulk batches that wait before it begins, unless no more come, and that it takes at a time: a write of the
index costs much by itself, and what comes in spreads over the shards."""


class Orders:
    """What the process that started this one wants: go on, finish, or end now."""

    def __init__(self, control: FileIO) -> None:
        self._control = control
        self.finishing, self.ended = threading.Event(), threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while line := self._control.readline():
            if line == FINISH:
                self.finishing.set()
        # Closed: by `end`, or because that process is gone.
        self.ended.set()


def help_with(task: Task, orders: Orders) -> None:
    """Works off the outbox until all is done and no more is to come, or until it is to end."""
    settings, size = task.settings, task.settings.bulk_batch
    with closing(Ledger.open(task.ledger, World())) as ledger:
        with ledger.read() as conn:
            store = meta.store_id(conn)
        assert store is not None  # noqa: S101 - the index that is lent is named by it
        client = open_client(settings, store, lent=True)
        with closing(ChromaIndex(client, settings.shards, task.dimension)) as index:
            lock = FileLock(settings.home / LOCK_FOLDER / DRAIN_LOCK)
            while not orders.ended.is_set():
                finishing = orders.finishing.is_set()
                with ledger.read() as conn:
                    waiting = outbox.size(conn)
                if finishing and not waiting:
                    return
                if waiting < FROM * size and not finishing:
                    orders.ended.wait(LOOK)
                    continue
                # A long import keeps the ledger for itself: what is not noted as done is done again.
                with suppress(StoreBusy, Timeout), lock.acquire(timeout=BUSY_SECONDS):
                    for _ in work_off(ledger, index, task.embedder, size, MOST * size):
                        if orders.ended.is_set():
                            break


def main() -> None:
    """Reads the task and does it."""
    # Unbuffered: a buffer would take in the orders after the task.
    control = FileIO(0, closefd=False)
    help_with(Task.model_validate_json(control.readline()), Orders(control))


if __name__ == "__main__":
    main()
