"""The one-writer lock of a home's embedded index.

Two processes writing one embedded Chroma directory corrupt it without an error, so the second is refused.
The lock is the kernel's (`filelock`): it ends with its process however that ends, so the pid file beside it
is read only to name the holder, never to decide who holds.
"""

import os
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from memcycle.core.errors import StoreBusy, StoreError

LOCK_FOLDER = "locks"


class WriterLock:
    """Held by the one process that writes the embedded index of `home`, which is created when absent.

    Not re-entrant: a process opens a home once and shares it.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pid_file = home / LOCK_FOLDER / "writer.pid"
        # Opened in one thread and closed in another under `ainvoke`, so not thread-local.
        self._lock = FileLock(home / LOCK_FOLDER / "writer.lock", thread_local=False)

    def acquire(self, timeout: float) -> Self:
        """Takes the lock.

        Args:
            timeout: Seconds to wait for another process to let go.

        Raises:
            StoreBusy: another process, or another opening in this one, holds it. Names the pid.
            StoreError: the home cannot be written.
        """
        try:
            self._pid_file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                if self._holder() == os.getpid():
                    raise
                self._lock.acquire(timeout=timeout)
            # Replaced in one step, so that a process just being refused never reads half a number.
            fresh = self._pid_file.with_suffix(".new")
            fresh.write_text(str(os.getpid()), encoding="ascii")
            fresh.replace(self._pid_file)
        except Timeout as error:
            raise self._refusal() from error
        except OSError as error:
            self.release()
            reason = error.strerror or type(error).__name__
            raise StoreError(
                f"cannot write the memory home {self._home}: {reason}; choose another one"
            ) from error
        return self

    def release(self) -> None:
        """Lets go; nothing when it is not held."""
        if self._lock.is_locked:
            self._pid_file.unlink(missing_ok=True)
            self._lock.release()

    def _holder(self) -> int | None:
        """The pid the holder wrote; None when there is none or it cannot be read."""
        try:
            return int(self._pid_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def _refusal(self) -> StoreBusy:
        pid = self._holder()
        if pid == os.getpid():
            return StoreBusy(
                f"{self._home} is already open in this process; share that one or close it first"
            )
        who = "another process" if pid is None else f"process {pid}"
        return StoreBusy(
            f"{self._home} is open in {who}; close it, or let several processes share a Chroma server:"
            " start `chroma run` and pass its address with --chroma-url"
        )
