"""Which session is due when: any order of words, time, ends and failures, without threads."""

from datetime import datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memcycle.core.scope import Scope
from memcycle.idle import LONGEST_RETRY, Silence
from tests.hand_clock import HandClock

AFTER = 60.0
ANN, ANN2 = Scope(user="ann", session="1"), Scope(user="ann", session="2")
BOB, EVE = Scope(user="bob", session="1"), Scope(user="eve", session="1")


def test_a_user_with_many_silent_sessions_lets_another_user_in():
    clock, silence = HandClock(), Silence(AFTER, 3)
    many = [Scope(user="ann", session=str(n)) for n in range(4)]
    for scope in many:
        silence.touch(scope, clock())
    silence.touch(BOB, clock())
    clock.pass_(AFTER)
    assert silence.take(clock()) == many[0]
    assert silence.due(clock()) == [BOB, *many[1:]]


def test_retries_wait_ten_minutes_at_most():
    clock, silence = HandClock(), Silence(AFTER, 100)
    silence.touch(ANN, clock())
    clock.pass_(AFTER)
    for _ in range(40):
        assert silence.take(clock()) == ANN
        assert silence.failed(ANN, clock())[1] == "retry"
        ((_, seconds),) = silence.waiting(clock())
        assert silence.due(clock()) == []
        clock.pass_(seconds)
    assert seconds == pytest.approx(LONGEST_RETRY)


some_scope = st.sampled_from([ANN, ANN2, BOB, EVE])


class Silences(RuleBasedStateMachine):
    """Any order of words, time, ends and failures, against what was noted of each session."""

    attempts = 3

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.silence = HandClock(), Silence(AFTER, self.attempts)
        self.spoken: dict[Scope, datetime] = {}
        self.open: set[Scope] = set()
        self.going: list[Scope] = []
        self.hurried: set[Scope] = set()
        self.failures: dict[Scope, int] = {}

    @rule(scope=some_scope)
    def speak(self, scope):
        self.silence.touch(scope, self.clock())
        self.spoken[scope] = self.clock()
        self.open.add(scope)
        self.hurried.discard(scope)
        self.failures[scope] = 0

    @rule(seconds=st.floats(0, 3 * AFTER))
    def pass_(self, seconds):
        self.clock.pass_(seconds)

    @rule()
    def begin(self):
        expected = self.silence.due(self.clock())
        scope = self.silence.take(self.clock())
        assert scope == (expected[0] if expected else None)
        if scope is not None:
            assert scope not in self.going
            silent = (self.clock() - self.spoken[scope]).total_seconds()
            assert scope in self.hurried or silent >= AFTER - 1e-6
            self.going.append(scope)
            self.open.discard(scope)

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def succeed(self, data):
        scope = self._one_going(data)
        self.silence.done(scope)

    @precondition(lambda self: self.going)
    @rule(data=st.data())
    def fail(self, data):
        scope = self._one_going(data)
        _, verdict = self.silence.failed(scope, self.clock())
        if verdict == "give_up":
            assert scope not in self.open
            assert self.failures[scope] == self.attempts - 1
            self.silence.done(scope)
        elif verdict == "retry":
            self.failures[scope] += 1
            assert self.failures[scope] < self.attempts
            self.open.add(scope)
        elif verdict == "spoken_again":
            assert scope in self.open

    @rule(scope=some_scope)
    def forget(self, scope):
        self.silence.forget(scope)
        self.open.discard(scope)

    @rule()
    def hurry(self):
        assert self.silence.hurry() == self.open | set(self.going)
        self.hurried |= self.open | set(self.going)

    def _one_going(self, data) -> Scope:
        return self.going.pop(data.draw(st.integers(0, len(self.going) - 1)))

    @invariant()
    def what_was_said_waits_or_is_being_ended(self):
        now = self.clock()
        waiting = {scope for scope, _ in self.silence.waiting(now)}
        assert waiting == self.open
        assert bool(self.silence) == bool(waiting)
        assert set(self.silence.running) == set(self.going)
        assert not set(self.silence.due(now)) & set(self.going)
        left = self.silence.seconds_left(now)
        assert left is None or left > 0

    def teardown(self):
        """However it went, once all fall silent each session ends, the last time after its last word."""
        while self.going:
            self.silence.done(self.going.pop())
        self.clock.pass_(LONGEST_RETRY + AFTER + 1)
        still = set(self.open)
        ended = set()
        while (scope := self.silence.take(self.clock())) is not None:
            ended.add(scope)
            self.silence.done(scope)
        assert (ended, self.silence.waiting(self.clock())) == (still, [])


TestSilences = Silences.TestCase
TestSilences.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
