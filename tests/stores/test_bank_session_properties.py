"""However turns come and sessions end, nothing is lost and nothing is committed twice."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memcycle.core.probe import SessionReport
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from memcycle.stores.indexes import Indexes
from memcycle.stores.ledger import sessions
from tests.banks import ANN, ListIndex, add, clock, said
from tests.fakes import FakeEmbeddings

SCOPES = [ANN, ANN.within("2")]
SCOPE = st.sampled_from(SCOPES)
PLACE = st.integers(1, 12)
REASON = st.sampled_from(["", "the Prober failed"])


class Killed(BaseException):
    """The process dies here."""


def _die(*_, **__):
    raise Killed


class SessionMachine(RuleBasedStateMachine):
    """Knows of each session what was said, what an examination in progress is up to, what was committed."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        chosen = Settings(home=Path(self.folder.name) / "h", shards=1)
        self.bank = Bank.open(chosen, embeddings=FakeEmbeddings(), world=clock())
        self.index = ListIndex(chosen)
        mirror = self.bank._indexes.mirror
        mirror._client = mirror._index = self.index
        self.said = {scope: {} for scope in SCOPES}
        self.begun = dict.fromkeys(SCOPES)
        self.ended = dict.fromkeys(SCOPES)
        self.direct = dict.fromkeys(SCOPES, 0)
        self.active = set()

    def teardown(self):
        try:
            self.everything_ends_active()
        finally:
            self.bank.close()
            self.folder.cleanup()

    def info(self, scope):
        return next(iter(self.bank.sessions(scope)), None)

    @rule(scope=SCOPE, place=PLACE, again=st.booleans())
    def stage(self, scope, place, again):
        given = said(place, f"line {place}{'' if again else len(self.said[scope])}", session=scope.session)
        (stored,) = self.bank.stage_turns(scope, [given])
        self.said[scope][stored.id] = stored.text

    @precondition(lambda self: any(self.said.values()))
    @rule(scope=SCOPE, picks=st.lists(st.integers(0, 50), min_size=1, max_size=3), text=st.integers(0, 6))
    def remember(self, scope, picks, text):
        if known := list(self.said[scope]):
            turns = [known[pick % len(known)] for pick in picks]
            applied = self.bank.apply(scope, [add(f"fact {text}", *turns, scope=scope)])
            self.direct[scope] += sum(one.status == "active" for one in self.bank.get(scope, applied.added))

    @precondition(lambda self: any(self.said.values()))
    @rule(scope=SCOPE)
    def begin(self, scope):
        if self.said[scope]:
            before = self.info(scope).part
            self.begun[scope] = self.bank.begin_verification(scope)
            assert self.begun[scope].number == before
            assert self.info(scope).status == "verifying"
            turns = self.bank.part_turns(scope, self.begun[scope].until)
            assert {turn.id for turn in turns} <= self.said[scope].keys()
            waiting = {
                one.turns[0] for one in self.bank.entries(scope, granularity="raw", statuses=["staged"])
            }
            assert {turn.id for turn in turns} == (waiting or self.said[scope].keys())

    @rule(scope=SCOPE, reason=REASON, late=st.booleans(), death=st.sampled_from([None, "ledger", "index"]))
    def end(self, scope, reason, late, death):
        """An examination ends, perhaps only at its second try, perhaps with a turn that came meanwhile."""
        part = self.begun[scope]
        if part is None:
            return
        if late:
            self.stage(scope, part.until + 1, again=False)
        after = {turn.id for turn in self.bank.session_turns(scope) if turn.position > part.until}
        given = {"until": part.until, "unverified": reason, "report": SessionReport(probes=1)}
        if death is not None:
            with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
                patch.setattr(*((sessions, "commit") if death == "ledger" else (Indexes, "catch_up")), _die)
                self.bank.commit_session(scope, **given)
        number = self.bank.commit_session(scope, **given)
        info = self.info(scope)
        waiting = [one.turns[0] for one in self.bank.entries(scope, granularity="raw", statuses=["staged"])]
        assert set(waiting) == after
        assert (info.status == "open") == bool(info.staged)
        assert bool(info.staged) >= late
        assert info.part == part.number + (info.status == "open")
        assert bool(reason) <= bool(info.reason)
        self.begun[scope], self.ended[scope] = None, (given, number)

    @rule(scope=SCOPE)
    def end_unexamined(self, scope):
        self.bank.commit_session(scope)
        self.begun[scope] = None
        assert self.info(scope) is None or self.info(scope).status.startswith("committed")

    @rule(scope=SCOPE)
    def commit_once_more(self, scope):
        """A run that died right after its commit commits again."""
        if self.ended[scope] is None or self.begun[scope] is not None:
            return
        before = (self.info(scope), list(self.bank.export(scope)))
        given, number = self.ended[scope]
        again = self.bank.commit_session(scope, **given)
        assert (self.info(scope), list(self.bank.export(scope))) == before
        if before[0].report.committed == number:
            assert again == number

    @invariant()
    def each_turn_has_one_raw_entry(self):
        for scope, turns in self.said.items():
            raw = self.bank.entries(scope, granularity="raw")
            assert {one.turns[0]: one.text for one in raw} == turns
            assert len(raw) == len(turns)

    @invariant()
    def what_is_active_stays_so(self):
        active = {one.id for one in self.bank.entries(ANN.base, statuses=["active"])}
        assert self.active <= active
        self.active = active

    @invariant()
    def what_waits_has_an_open_session(self):
        for scope in SCOPES:
            info = self.info(scope)
            if info is not None and info.staged:
                assert info.status in ("open", "verifying")

    @invariant()
    def each_entry_is_committed_once_and_counted_once(self):
        for scope in SCOPES:
            entries = self.bank.entries(scope)
            actions = [[event.action for event in self.bank.history(scope, one.id)] for one in entries]
            commits = sum(one.count("commit") for one in actions)
            assert max([one.count("commit") for one in actions], default=0) <= 1
            assert len([one for one in entries if one.status == "active"]) == commits + self.direct[scope]
            info = self.info(scope)
            assert (info.report.committed if info is not None else 0) == commits

    @invariant()
    def the_index_holds_what_is_active(self):
        self.bank.drain()
        assert self.index.ids() == {one.id for one in self.bank.entries(ANN.base, statuses=["active"])}
        assert self.bank.check()["ledger_drift"] == 0

    def everything_ends_active(self):
        for scope in SCOPES:
            self.bank.commit_session(scope)
            assert all(one.status == "active" for one in self.bank.entries(scope))
            assert self.info(scope) is None or self.info(scope).status.startswith("committed")


SessionMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestSessions = SessionMachine.TestCase
