"""A thread that removes items whose time is over, for a store that is seldom written to."""

import logging
import threading
from collections.abc import Callable

from memcycle.core.errors import StoreError

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` again and again. Started and stopped from any thread."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float) -> None:
        """Sweeps every so many minutes from now on. Nothing where it does already."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stopped, minutes * 60), name="memcycle-sweeper", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends it, waiting at most so many seconds; whether it has ended."""
        with self._lock:
            thread = self._thread
            self._stopped.set()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, stopped: threading.Event, seconds: float) -> None:
        while not stopped.wait(seconds):
            try:
                self._sweep()
            except StoreError as error:
                _log.warning("expired items could not be removed: %s", error)
