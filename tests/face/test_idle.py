"""Sessions that fell silent are ended: by a clock that stands, by events, hardly ever by real time."""

import logging
import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.core.errors import BadInput, MemcycleError, RoleFailed, StoreBusy
from memcycle.core.scope import Scope
from memcycle.idle import FIRST_RETRY, LONGEST_RETRY, IdleSessions
from tests.hand_clock import START, HandClock

AFTER = 60.0
ANN, ANN2 = Scope(user="ann", session="1"), Scope(user="ann", session="2")
BOB = Scope(user="bob", session="1")
USERS = [Scope(user=f"u{n}", session="1") for n in range(8)]
SECRET = "the blue heron nests at dawn"
LONG = 20.0
"""Seconds after which a test that waits for another thread gives up."""


class Ends:
    """What ends sessions: notes each, fails as told, and can be held up."""

    def __init__(self, clock) -> None:
        self.clock, self.noted, self.given_up = clock, [], []
        self.errors: dict[Scope, list[BaseException]] = {}
        self.gates: dict[Scope, threading.Event] = {}
        self.begun = threading.Semaphore(0)
        self.now_going, self.most_at_once, self._guard = set(), 0, threading.Lock()

    def __call__(self, scope: Scope) -> None:
        with self._guard:
            assert scope not in self.now_going
            self.now_going.add(scope)
            self.most_at_once = max(self.most_at_once, len(self.now_going))
            self.noted.append((scope, (self.clock() - START).total_seconds()))
        self.begun.release()
        try:
            if scope in self.gates:
                assert self.gates[scope].wait(LONG)
            if self.errors.get(scope):
                raise self.errors[scope].pop(0)
        finally:
            with self._guard:
                self.now_going.remove(scope)

    def give_up(self, scope: Scope, error: Exception) -> None:
        self.given_up.append((scope, error))

    def hold(self, scope: Scope) -> threading.Event:
        self.gates[scope] = threading.Event()
        return self.gates[scope]

    def wait_begun(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=LONG)

    @property
    def scopes(self) -> list[Scope]:
        return [scope for scope, _ in self.noted]


class Idle:
    """An `IdleSessions` whose time is moved by hand."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.ends = Ends(self.clock)
        self.made: list[IdleSessions] = []

    def open(self, **options) -> IdleSessions:
        given = {"now": self.clock, "give_up": self.ends.give_up} | options
        self.made.append(IdleSessions(given.pop("end", self.ends), given.pop("after", AFTER), **given))
        return self.made[-1]

    def pass_(self, seconds: float) -> None:
        """Moves the clock and lets all that is due begin."""
        self.clock.pass_(seconds)
        for sessions in self.made:
            sessions.run_due()

    def pass_and_settle(self, seconds: float) -> None:
        self.pass_(seconds)
        settle()


def settle() -> None:
    """Waits until nothing that is due is left to be ended."""
    while workers := threads("worker"):
        workers[0].join(LONG)
        assert not workers[0].is_alive()


def threads(kind: str = "") -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith(f"memcycle-idle-{kind}")]


@pytest.fixture
def idle():
    made = Idle()
    yield made
    for gate in made.ends.gates.values():
        gate.set()
    for sessions in made.made:
        sessions.close()
    # One that was closed before, while an end hung, ends its threads by itself now.
    for thread in threads():
        thread.join(LONG)
    assert threads() == []


def test_no_thread_before_the_first_touch_and_none_when_nothing_waits(idle):
    sessions = idle.open()
    assert (threads(), sessions.waiting, sessions.running, sessions.failures) == ([], [], [], [])
    sessions.touch(ANN)
    assert [one.daemon for one in threads()] == [True]
    idle.pass_and_settle(AFTER)
    for clock in threads("clock"):
        clock.join(LONG)
    assert (idle.ends.scopes, threads()) == ([ANN], [])


def test_a_touch_restarts_the_wait_and_one_run_holds_all(idle):
    sessions = idle.open()
    for _ in range(5):
        sessions.touch(ANN)
        idle.pass_and_settle(AFTER - 1)
    assert idle.ends.noted == []
    assert sessions.waiting == [(ANN, 1.0)]
    idle.pass_and_settle(1)
    assert idle.ends.noted == [(ANN, 5 * (AFTER - 1) + 1)]
    idle.pass_and_settle(10 * AFTER)
    assert (len(idle.ends.noted), sessions.waiting) == (1, [])


def test_two_open_sessions_of_one_user_never_end_each_other(idle):
    sessions = idle.open()
    sessions.touch(ANN)
    idle.pass_and_settle(40)
    sessions.touch(ANN2)
    assert sessions.waiting == [(ANN, 20.0), (ANN2, 60.0)]
    idle.pass_and_settle(20)
    assert idle.ends.scopes == [ANN]
    sessions.touch(ANN2)
    idle.pass_and_settle(59)
    assert idle.ends.scopes == [ANN]
    idle.pass_and_settle(1)
    assert idle.ends.scopes == [ANN, ANN2]


def test_eight_users_are_ended_side_by_side(idle):
    met = threading.Barrier(8)
    sessions = idle.open(end=lambda scope: (idle.ends(scope), met.wait(LONG)))
    for scope in USERS:
        sessions.touch(scope)
    idle.pass_and_settle(AFTER)
    assert sorted(idle.ends.scopes, key=lambda scope: scope.user) == USERS
    assert sessions.failures == []


def test_a_slow_session_holds_up_no_other_users(idle):
    sessions = idle.open(at_once=2)
    gate = idle.ends.hold(ANN)
    sessions.touch(ANN)
    idle.pass_(AFTER)
    idle.ends.wait_begun()
    for scope in USERS:
        sessions.touch(scope)
    idle.pass_(AFTER)
    idle.ends.wait_begun(8)
    assert sessions.running[0] == ANN
    gate.set()
    idle.pass_and_settle(0)
    assert idle.ends.most_at_once == 2
    assert sorted(idle.ends.scopes[1:], key=lambda scope: scope.user) == USERS


def test_a_user_with_many_silent_sessions_lets_another_user_in(idle):
    sessions = idle.open(at_once=2)
    many = [Scope(user="ann", session=str(n)) for n in range(4)]
    for scope in (*many, BOB):
        sessions.touch(scope)
    gate = idle.ends.hold(many[0])
    idle.pass_(AFTER)
    idle.ends.wait_begun(2)
    assert idle.ends.scopes[:2] == [many[0], BOB]
    gate.set()
    settle()
    assert idle.ends.scopes[2:] == many[1:]


def test_retries_wait_ten_minutes_at_most(idle):
    sessions = idle.open(attempts=100)
    idle.ends.errors[ANN] = [ValueError()] * 40
    sessions.touch(ANN)
    idle.pass_and_settle(AFTER)
    for _ in range(39):
        ((_, seconds),) = sessions.waiting
        idle.pass_and_settle(seconds)
    assert sessions.waiting == [(ANN, LONGEST_RETRY)]


def test_a_session_spoken_in_while_it_is_ended_is_ended_again(idle):
    sessions, gate = idle.open(), idle.ends.hold(ANN)
    sessions.touch(ANN)
    idle.pass_(AFTER)
    idle.ends.wait_begun()
    sessions.touch(ANN)
    idle.pass_(2 * AFTER)
    assert (sessions.running, sessions.waiting) == ([ANN], [(ANN, 0.0)])
    assert idle.ends.scopes == [ANN]
    gate.set()
    idle.pass_and_settle(0)
    assert idle.ends.scopes == [ANN, ANN]


def test_failures_are_seen_tried_again_after_growing_waits_and_given_up(idle, caplog):
    caplog.set_level(logging.WARNING)
    last = RoleFailed("grader", SECRET, SECRET)
    idle.ends.errors[ANN] = [ValueError(SECRET), StoreBusy("held by process 7"), last]
    sessions = idle.open()
    sessions.touch(ANN)
    idle.pass_and_settle(AFTER)
    assert sessions.waiting == [(ANN, FIRST_RETRY)]
    idle.pass_and_settle(FIRST_RETRY)
    assert sessions.waiting == [(ANN, 2 * FIRST_RETRY)]
    assert idle.ends.given_up == []
    idle.pass_and_settle(2 * FIRST_RETRY)
    assert idle.ends.given_up == [(ANN, last)]
    assert sessions.failures == [
        (ANN, 1, "ValueError", "retry"),
        (ANN, 2, "StoreBusy: held by process 7", "retry"),
        (ANN, 3, "RoleFailed: role 'grader'", "given_up"),
    ]
    idle.pass_and_settle(100 * AFTER)
    assert (len(idle.ends.noted), sessions.waiting) == (3, [])
    assert (
        "could not end session '1' of 'ann' in 'default' (3): RoleFailed: role 'grader'; given_up"
        in caplog.text
    )
    assert SECRET not in caplog.text
    assert caplog.text.count("could not end session '1' of 'ann'") == 3


def test_a_session_spoken_in_while_its_last_try_fails_is_not_given_up(idle):
    sessions, gate = idle.open(attempts=1), idle.ends.hold(ANN)
    idle.ends.errors[ANN] = [ValueError()]
    sessions.touch(ANN)
    idle.pass_(AFTER)
    idle.ends.wait_begun()
    sessions.touch(ANN)
    gate.set()
    idle.pass_and_settle(0)
    assert sessions.failures == [(ANN, 1, "ValueError", "spoken_again")]
    assert (sessions.waiting, idle.ends.given_up) == ([(ANN, AFTER)], [])


def test_a_retry_is_watched_by_the_clock_again(idle):
    sessions, gate = idle.open(), idle.ends.hold(ANN)
    idle.ends.errors[ANN] = [ValueError()]
    sessions.touch(ANN)
    sessions.touch(BOB)
    idle.pass_(AFTER)
    idle.ends.wait_begun(2)
    for clock in threads("clock"):
        clock.join(LONG)
    assert threads("clock") == []
    gate.set()
    settle()
    assert (len(threads("clock")), sessions.waiting) == (1, [(ANN, FIRST_RETRY)])


def test_a_providers_status_is_told_without_its_words(idle, caplog):
    refused = type("RateLimited", (Exception,), {"status_code": 429})(SECRET)
    idle.ends.errors[ANN] = [refused]
    sessions = idle.open()
    sessions.touch(ANN)
    idle.pass_and_settle(AFTER)
    idle.pass_and_settle(FIRST_RETRY)
    assert [failure.error for failure in sessions.failures] == ["RateLimited: status 429"]
    assert (idle.ends.given_up, len(idle.ends.noted), SECRET in caplog.text) == ([], 2, False)


def test_words_said_after_a_failure_start_the_count_anew(idle):
    idle.ends.errors[ANN] = [ValueError()] * 2 + [OSError()] * 3
    sessions = idle.open()
    sessions.touch(ANN)
    idle.pass_and_settle(AFTER)
    idle.pass_and_settle(FIRST_RETRY)
    sessions.touch(ANN)
    idle.pass_and_settle(2 * FIRST_RETRY)
    assert len(idle.ends.noted) == 2
    for seconds in (AFTER, FIRST_RETRY, 2 * FIRST_RETRY):
        idle.pass_and_settle(seconds)
    assert [failure.attempts for failure in sessions.failures] == [1, 2, 1, 2, 3]
    assert len(idle.ends.given_up) == 1


def test_a_last_resort_that_fails_is_recorded_and_the_session_left(idle):
    def refuse(scope, error):
        raise KeyError(SECRET)

    idle.ends.errors[ANN] = [ValueError()]
    sessions = idle.open(give_up=refuse, attempts=1)
    sessions.touch(ANN)
    idle.pass_and_settle(AFTER)
    assert sessions.failures == [(ANN, 1, "ValueError; then KeyError", "lost")]
    assert (sessions.waiting, sessions.running) == ([], [])


def test_an_end_that_is_broken_off_counts_as_failed(idle):
    idle.ends.errors[ANN] = [SystemExit()]
    sessions = idle.open()
    sessions.touch(ANN)
    sessions.touch(BOB)
    idle.pass_and_settle(AFTER)
    assert [(failure.scope, failure.error) for failure in sessions.failures] == [(ANN, "SystemExit")]
    idle.pass_and_settle(FIRST_RETRY)
    assert sorted(scope.user for scope in idle.ends.scopes) == ["ann", "ann", "bob"]


def test_flush_ends_all_now_and_tries_failures_again_at_once(idle):
    idle.ends.errors[ANN] = [ValueError()]
    idle.ends.errors[BOB] = [ValueError()] * 3
    sessions = idle.open()
    for scope in (ANN, ANN2, BOB):
        sessions.touch(scope)
    assert sessions.flush() == []
    assert (sessions.waiting, sessions.running) == ([], [])
    assert sorted((scope.user, scope.session) for scope in idle.ends.scopes) == [
        ("ann", "1"), ("ann", "1"), ("ann", "2"), ("bob", "1"), ("bob", "1"), ("bob", "1"),
    ]  # fmt: skip
    assert [scope for scope, _ in idle.ends.given_up] == [BOB]
    assert {seconds for _, seconds in idle.ends.noted} == {0.0}


def test_flush_waits_for_what_is_being_ended_and_ends_what_was_said_meanwhile(idle):
    sessions, gate = idle.open(), idle.ends.hold(ANN)
    sessions.touch(ANN)
    idle.pass_(AFTER)
    idle.ends.wait_begun()
    sessions.touch(ANN)
    assert sessions.flush(timeout=0) == [ANN]
    gate.set()
    assert sessions.flush() == []
    assert idle.ends.scopes == [ANN, ANN]


def test_a_session_spoken_in_after_the_flush_began_keeps_its_wait(idle):
    sessions, gate = idle.open(), idle.ends.hold(ANN)
    sessions.touch(ANN)
    flushing = threading.Thread(target=sessions.flush)
    flushing.start()
    idle.ends.wait_begun()
    sessions.touch(ANN)
    gate.set()
    flushing.join(LONG)
    assert not flushing.is_alive()
    assert (idle.ends.scopes, sessions.waiting) == ([ANN], [(ANN, AFTER)])


def test_close_flushes_stops_and_may_be_repeated(idle, caplog):
    sessions = idle.open()
    sessions.touch(ANN)
    sessions.close()
    assert (idle.ends.scopes, threads()) == ([ANN], [])
    sessions.close()
    assert caplog.text == ""
    sessions.touch(BOB)
    assert "session '1' of 'bob' in 'default' was spoken in after close" in caplog.text
    assert (sessions.waiting, sessions.flush(), threads()) == ([], [], [])


def test_close_comes_back_from_an_end_that_does_not_and_names_it(idle, caplog):
    sessions, gate = idle.open(at_once=1), idle.ends.hold(ANN)
    sessions.touch(ANN)
    idle.pass_(1)
    sessions.touch(BOB)
    idle.pass_(AFTER)
    idle.ends.wait_begun()
    idle.ends.errors[ANN] = [ValueError()]
    sessions.close(timeout=0.01)
    assert "closed while it took long to end: session '1' of 'ann' in 'default'" in caplog.text
    assert "closed too early to end, left as they are: session '1' of 'bob' in 'default'" in caplog.text
    gate.set()
    settle()
    assert idle.ends.scopes == [ANN]
    assert sessions.failures == [(ANN, 1, "ValueError", "lost")]


def test_an_explicit_end_drops_the_wait(idle):
    sessions = idle.open()
    sessions.touch(ANN)
    sessions.touch(ANN2)
    sessions.forget(ANN2)
    sessions.forget(BOB)
    idle.pass_and_settle(100 * AFTER)
    assert (idle.ends.scopes, sessions.waiting) == ([ANN], [])


def test_no_thread_to_be_had_is_told_and_later_made_good(idle, caplog, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    sessions = idle.open()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        sessions.touch(ANN)
        assert sessions.flush() == [ANN]
    assert "no thread could be started: 1 sessions go on waiting" in caplog.text
    assert sessions.flush() == []
    assert idle.ends.scopes == [ANN]


@pytest.mark.parametrize(
    "options", [{"after": 0}, {"after": -1.0}, {"after": float("nan")}, {"attempts": 0}, {"at_once": 0}]
)
def test_what_makes_no_sense_is_refused(idle, options):
    with pytest.raises(BadInput, match="after must be above 0"):
        idle.open(**options)


def test_a_scope_without_a_session_is_refused(idle):
    with pytest.raises(BadInput, match="names none"):
        idle.open().touch(ANN.base)


async def test_a_touch_does_not_block_an_event_loop(idle):
    sessions = idle.open()
    with blockbuster_ctx():
        sessions.touch(ANN)
        sessions.forget(ANN)
        sessions.touch(BOB)
        assert [waiting.scope for waiting in sessions.waiting] == [BOB]


def test_by_the_real_clock():
    ended, scopes = threading.Event(), []
    sessions = IdleSessions(
        lambda scope: (scopes.append(scope), ended.set()),
        0.01,
        now=lambda: datetime.now(UTC),
        give_up=lambda scope, error: None,
    )
    sessions.touch(ANN)
    assert ended.wait(LONG)
    sessions.close()
    assert (scopes, threads()) == ([ANN], [])


def test_a_program_that_forgets_to_close_ends_all_the_same():
    program = """
import datetime, sys, threading
from memcycle.core.scope import Scope
from memcycle.idle import IdleSessions
begun = threading.Event()
def end(scope):
    begun.set()
    threading.main_thread().join()
    print("ended", scope.session)
start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
time = [start]
sessions = IdleSessions(end, 3600, now=lambda: time[0], give_up=print, at_once=1)
sessions.touch(Scope(user="ann", session="begun"))
time[0] += datetime.timedelta(hours=1)
sessions.run_due()
begun.wait()
sessions.touch(Scope(user="ann", session="waits"))
time[0] += datetime.timedelta(hours=1)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended begun\n", "")


class Talk:
    """Users who speak, also while a session is being ended; ends that fail; and what was covered by them."""

    def __init__(self, at_once: int) -> None:
        self.clock, self.guard, self.flushing = HandClock(), threading.Lock(), False
        self.spoken, self.when = Counter(), {}
        self.tried, self.covered, self.early = {}, {}, []
        self.fails, self.speaks = Counter(), Counter()
        self.sessions = IdleSessions(self.end, AFTER, now=self.clock, give_up=self.give_up, at_once=at_once)

    def speak(self, scope: Scope) -> None:
        with self.guard:
            self.spoken[scope] += 1
            self.when[scope] = self.clock()
        self.sessions.touch(scope)

    def end(self, scope: Scope) -> None:
        with self.guard:
            heard = self.tried[scope] = self.spoken[scope]
            if not self.flushing and (self.clock() - self.when[scope]).total_seconds() < AFTER:
                self.early.append(scope)
            fails, speaks = self.fails[scope] > 0, self.speaks[scope] > 0
            self.fails[scope] -= fails
            self.speaks[scope] -= speaks
        if speaks:
            self.speak(scope)
        if fails:
            raise MemcycleError(SECRET)
        self.covered[scope] = heard

    def give_up(self, scope: Scope, error: Exception) -> None:
        self.covered[scope] = self.tried[scope]

    def pass_(self, seconds: float) -> None:
        self.clock.pass_(seconds)
        self.sessions.run_due()
        settle()

    def flush(self, _) -> None:
        self.flushing = True
        assert self.sessions.flush(LONG) == []
        self.flushing = False

    def close(self) -> None:
        self.flushing = True
        self.speaks.clear()
        self.sessions.close(LONG)


some_scope = st.sampled_from([ANN, ANN2, BOB, USERS[0]])
steps = st.one_of(
    st.tuples(st.just(Talk.speak), some_scope),
    st.tuples(st.just(lambda talk, scope: talk.fails.update([scope])), some_scope),
    st.tuples(st.just(lambda talk, scope: talk.speaks.update([scope])), some_scope),
    st.tuples(st.just(Talk.pass_), st.sampled_from([1.0, FIRST_RETRY, AFTER])),
    st.just((Talk.flush, None)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(steps, max_size=25), at_once=st.integers(1, 3))
def test_every_session_is_ended_after_its_last_word_and_never_before_it_fell_silent(steps, at_once):
    talk = Talk(at_once)
    for step, value in steps:
        step(talk, value)
    talk.close()
    assert talk.covered == dict(talk.spoken)
    assert (talk.early, talk.sessions.waiting, talk.sessions.running) == ([], [], [])
