"""The one-writer lock, against real second processes."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from memcycle.core.errors import StoreBusy, StoreError
from memcycle.stores.chroma.client import WriterLock

HOLD = """
import sys
from pathlib import Path
from memcycle.stores.chroma.client import WriterLock
lock = WriterLock(Path(sys.argv[1])).acquire(0)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process_holding(home):
    command = [sys.executable, "-c", HOLD, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_a_second_process_is_refused_by_the_pid_of_the_holder(tmp_path):
    with other_process_holding(tmp_path) as holder:
        with pytest.raises(StoreBusy, match=rf"is open in process {holder.pid}; .*--chroma-url"):
            WriterLock(tmp_path).acquire(0.2)
        (tmp_path / "locks" / "writer.pid").write_text("not a pid")
        with pytest.raises(StoreBusy, match="is open in another process"):
            WriterLock(tmp_path).acquire(0)


def test_a_killed_holder_is_no_hindrance(tmp_path):
    with other_process_holding(tmp_path) as holder:
        holder.kill()
        holder.wait()
        pid = tmp_path / "locks" / "writer.pid"
        assert pid.read_text() == str(holder.pid)
        lock = WriterLock(tmp_path).acquire(0)
        assert pid.read_text() == str(os.getpid())
        lock.release()


def test_waiting_ends_when_the_holder_lets_go(tmp_path):
    with other_process_holding(tmp_path) as holder:
        timer = threading.Timer(0.1, holder.kill)
        timer.start()
        WriterLock(tmp_path).acquire(60).release()
        timer.join()


def test_a_second_opening_in_one_process_is_refused_without_waiting(tmp_path):
    lock = WriterLock(tmp_path).acquire(0)
    with pytest.raises(StoreBusy, match="already open in this process"):
        WriterLock(tmp_path).acquire(3600)
    lock.release()


def test_it_is_released_from_another_thread_and_taken_again(tmp_path):
    lock = WriterLock(tmp_path).acquire(0)
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    lock.release()
    WriterLock(tmp_path).acquire(0).release()


def test_a_home_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(StoreError, match=r"cannot write the memory home .*home: .*; choose another one"):
        WriterLock(tmp_path / "home").acquire(0)
