"""The one-writer lock, against real second processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.stores.locks import WriterLock

HOLD = """
import sys
from pathlib import Path
from memcycle.stores.locks import WriterLock
lock = WriterLock(Path(sys.argv[1]), 0).acquire()
print("held", flush=True)
sys.stdin.read()
"""
NO_SUCH_PID = 2**22 + 1


@contextmanager
def other_process_holding(home: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_second_process_is_refused_by_the_name_of_the_holders_pid(tmp_path: Path) -> None:
    with (
        other_process_holding(tmp_path) as holder,
        pytest.raises(StoreBusy, match=rf"is open in process {holder.pid}; .*--chroma-url"),
    ):
        WriterLock(tmp_path, 0.2).acquire()


def test_a_killed_holder_is_no_hindrance(tmp_path: Path) -> None:
    with other_process_holding(tmp_path) as holder:
        holder.kill()
        holder.wait()
        assert (tmp_path / "locks" / "writer.pid").exists()
        with WriterLock(tmp_path, 0.2) as lock:
            assert lock.holder() == os.getpid()


def test_a_pid_file_of_a_dead_process_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "writer.pid").write_text(str(NO_SUCH_PID))
    with WriterLock(tmp_path, 0) as lock:
        assert lock.holder() == os.getpid()


def test_a_pid_file_of_this_process_left_by_an_earlier_life_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "writer.pid").write_text(str(os.getpid()))
    with WriterLock(tmp_path, 0) as lock:
        assert lock.held


@pytest.mark.parametrize("content", ["", "not a pid"])
def test_an_unreadable_pid_file_still_refuses(tmp_path: Path, content: str) -> None:
    with other_process_holding(tmp_path):
        (tmp_path / "locks" / "writer.pid").write_text(content)
        with pytest.raises(StoreBusy, match="is open in another process"):
            WriterLock(tmp_path, 0).acquire()


def test_a_second_opening_in_one_process_is_refused_without_waiting(tmp_path: Path) -> None:
    with (
        WriterLock(tmp_path, 0),
        pytest.raises(StoreBusy, match="already open in this process"),
    ):
        WriterLock(tmp_path, 3600).acquire()


def test_the_same_lock_is_not_reentrant(tmp_path: Path) -> None:
    with WriterLock(tmp_path, 0) as lock, pytest.raises(StoreBusy, match="already open in this process"):
        lock.acquire()


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path, 0)
    for _ in range(2):
        lock.acquire()
        lock.release()
        lock.release()
    assert not lock.held
    assert lock.holder() is None
    with WriterLock(tmp_path, 0) as other:
        assert other.held


def test_it_is_released_from_another_thread(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path, 0).acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    with WriterLock(tmp_path, 0) as other:
        assert other.held


def test_waiting_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    with other_process_holding(tmp_path) as holder:
        timer = threading.Timer(0.1, holder.kill)
        timer.start()
        with WriterLock(tmp_path, 60) as lock:
            assert lock.held
        timer.join()


def test_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(StoreError, match=r"cannot write the memory home .*home: .*; choose another one"):
        WriterLock(tmp_path / "home", 0).acquire()
