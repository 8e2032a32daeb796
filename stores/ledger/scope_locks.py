"""Locks by base scope that hold between threads and between processes."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from memcycle.core.errors import StoreBusy
from memcycle.core.scope import Scope

BUCKETS = 64
"""Lock files are shared by hash, so their number does not grow with the users, nor their names tell them."""


class ScopeLocks:
    """One lock a bucket of base scopes. The kernel frees a lock whose process dies.

    Args:
        folder: Where the lock files stand; must exist when a lock is taken.
        seconds: How long to wait for a lock.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds
        self._threads = [threading.Lock() for _ in range(BUCKETS)]

    @contextmanager
    def hold(self, scope: Scope | None) -> Iterator[None]:
        """Holds the lock of the base scope of `scope`; nothing without one.

        Raises:
            StoreBusy: another thread or process held it for too long.
        """
        if scope is None:
            yield
            return
        bucket = int.from_bytes(hashlib.blake2b(scope.key.encode(), digest_size=8).digest(), "big") % BUCKETS
        thread_lock = self._threads[bucket]
        if not thread_lock.acquire(timeout=self._seconds):
            raise self._too_long()
        try:
            file_lock = FileLock(self._folder / f"scope-{bucket:02d}.lock", thread_local=False)
            try:
                file_lock.acquire(timeout=self._seconds, poll_interval=0.005)
            except Timeout as error:
                raise self._too_long() from error
            try:
                yield
            finally:
                file_lock.release()
        finally:
            thread_lock.release()

    def _too_long(self) -> StoreBusy:
        return StoreBusy(
            f"another write to this user's memory has not ended for {self._seconds:.0f} s; try again"
        )
