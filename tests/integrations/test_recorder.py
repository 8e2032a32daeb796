"""What is recorded in the background: in turn, side by side, until close, and where a program forgets it."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage

from memcycle.core.scope import Scope
from memcycle.integrations.background import AT_ONCE, Recorder
from memcycle.results import Added

LONG = 20.0
"""Seconds after which a test that waits for another thread gives up."""
ANN, BO = Scope(user="ann", session="1"), Scope(user="bo", session="1")


class Reads:
    """Stands in for `Memory.add`: notes what is read, is held up for users as told, and may fail."""

    def __init__(self, memory):
        self.read, self.held, self.begun = [], {}, threading.Semaphore(0)
        self.going, self.fails = [], {}
        memory.add, self.real = self.add, memory.add

    def add(self, turns, **scope):
        assert scope not in self.going, "a conversation is read by one job at a time"
        self.going.append(scope)
        self.begun.release()
        try:
            if gate := self.held.get(scope["user"]):
                assert gate.wait(LONG)
            if error := self.fails.pop(scope["user"], None):
                raise error
            self.read.append((scope["user"], [turn.text for turn in turns]))
            return self.real(turns, **scope)
        finally:
            self.going.remove(scope)

    def hold(self, user):
        self.held[user] = threading.Event()
        return self.held[user]

    def wait_begun(self, count=1):
        for _ in range(count):
            assert self.begun.acquire(timeout=LONG)


@pytest.fixture
def reads(memory):
    made = Reads(memory)
    yield made
    for gate in made.held.values():
        gate.set()


@pytest.fixture
def recorder(memory, reads):
    made = Recorder(memory)
    yield made
    for gate in reads.held.values():
        gate.set()
    made.close()


def words(*texts):
    return [HumanMessage(text, id=text) for text in texts]


def threads():
    """Those left, once those that have nothing to do any more are gone."""
    left = [one for one in threading.enumerate() if one.name == "memcycle-remember"]
    for one in left:
        one.join(0.2)
    return [one for one in left if one.is_alive()]


def test_a_conversation_is_read_in_turn_and_holds_up_no_other(recorder, reads):
    assert (threads(), recorder.flush(), recorder.waiting) == ([], [], [])
    gate = reads.hold("ann")
    recorder.later(ANN, words("one"))
    reads.wait_begun()
    recorder.later(ANN, words("one", "two"))
    recorder.later(ANN, words("one", "two", "three"))
    recorder.later(BO, words("four"))
    deadline = time.monotonic() + LONG
    while recorder.waiting != [ANN] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (reads.read, recorder.flush(timeout=0.01)) == ([("bo", ["four"])], [ANN])
    gate.set()
    assert (recorder.flush(), recorder.waiting) == ([], [])
    assert [said for user, said in reads.read if user == "ann"] == [["one"], ["two"], ["three"]]
    assert recorder.failures == []


def test_conversations_beyond_the_bound_wait_their_turn(recorder, reads):
    gates = [reads.hold(f"u{n}") for n in range(AT_ONCE)]
    scopes = [Scope(user=f"u{n}", session="1") for n in range(AT_ONCE + 1)]
    for scope in scopes:
        recorder.later(scope, words("hello"))
    reads.wait_begun(AT_ONCE)
    assert not reads.begun.acquire(timeout=0.1)
    gates[0].set()
    reads.wait_begun()
    assert scopes[0] not in recorder.waiting


@pytest.mark.parametrize("error", [ConnectionError("Zanzibar"), SystemExit()])
def test_what_failed_is_told_and_read_with_the_next_words(recorder, reads, caplog, error):
    reads.fails["ann"] = error
    recorder.later(ANN, words("one"))
    assert recorder.flush() == []
    assert recorder.failures == [(ANN, type(error).__name__)]
    assert f"session '1' of 'ann' was not remembered: {type(error).__name__}" in caplog.text
    assert "Zanzibar" not in caplog.text
    recorder.later(ANN, words("one", "two"))
    assert (recorder.flush(), reads.read) == ([], [("ann", ["one", "two"])])


def test_close_reads_what_waits_stops_and_may_be_repeated(recorder, reads, caplog):
    recorder.later(ANN, words("one"))
    recorder.close()
    recorder.close()
    assert (reads.read, threads(), caplog.text) == ([("ann", ["one"])], [], "")
    recorder.later(BO, words("two"))
    assert (reads.read[1:], threads()) == ([("bo", ["two"])], [])


def test_close_comes_back_from_a_model_that_does_not_and_names_what_it_left(recorder, reads, memory, caplog):
    gate = reads.hold("ann")
    recorder.stage(ANN, words("one", "two"))
    recorder.later(ANN, words("one"))
    reads.wait_begun()
    recorder.later(ANN, words("one", "two", "three"))
    recorder.close(timeout=0.01)
    assert "closed before all was remembered; left: session '1' of 'ann'" in caplog.text
    gate.set()
    for thread in threads():
        thread.join(LONG)
    assert (reads.read, recorder.waiting) == ([("ann", ["one", "two"])], [])


def test_no_thread_to_be_had_is_told_and_later_made_good(recorder, reads, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        recorder.later(ANN, words("one"))
    assert (recorder.failures, recorder.waiting) == ([(ANN, "RuntimeError")], [])
    recorder.later(ANN, words("one", "two"))
    assert recorder.flush() == []
    assert [one for _, said in reads.read for one in said] == ["one", "two"]


def test_many_who_speak_at_once_are_all_read(recorder, reads):
    said = {Scope(user=f"u{n}", session="1"): [f"word {m}" for m in range(5)] for n in range(6)}

    def speak(scope):
        for m in range(5):
            recorder.later(scope, words(*said[scope][: m + 1]))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(speak, said))
    assert (recorder.flush(), recorder.waiting, recorder.failures) == ([], [], [])
    for scope, texts in said.items():
        assert [one for user, read in reads.read if user == scope.user for one in read] == texts


def test_a_program_that_forgets_to_close_ends_soon_and_loses_no_word(tmp_path):
    """It waits for what it is reading, begins no more, and has all in the ledger."""
    program = f"""
import threading
from langchain_core.messages import HumanMessage
from memcycle import Memory, Scope
from memcycle.integrations.background import Recorder
from tests.fakes import FakeEmbeddings
memory = Memory.open({str(tmp_path / "m")!r}, embeddings=FakeEmbeddings())
begun = threading.Event()
real = memory.add
def add(*args, **kwargs):
    begun.set()
    threading.main_thread().join()
    return real(*args, **kwargs)
memory.add = add
recorder = Recorder(memory)
said = [HumanMessage("I keep geese.", id="1"), HumanMessage("I keep hens.", id="2")]
scope = Scope(user="ann", session="t")
recorder.later(scope, said[:1])
assert begun.wait(20)
recorder.later(scope, said)
recorder.later(Scope(user="bo", session="t"), said)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    from memcycle import Memory

    with Memory.open(tmp_path / "m", read_only=True) as memory:
        for user in ("ann", "bo"):
            found = memory.memories(user=user, granularity="raw")
            assert [one.text for one in found] == ["I keep geese.", "I keep hens."]


def test_an_added_chunk_is_what_now_gives(memory):
    done = Recorder(memory).now(ANN, words("I keep geese."))
    assert isinstance(done, Added)
    assert done.turns == ["D1:1"]
