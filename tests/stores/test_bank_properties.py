"""Whatever is done to a memory, in any order, these hold."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memcycle.core.edit import Edit
from memcycle.core.entry import departure, same_text
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.probe import Probe, probe_id
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from tests.banks import ANN, BOB, ListIndex, add, clock, fact, said, update
from tests.fakes import FakeEmbeddings

SCOPES = [ANN, ANN.within("2"), BOB]
WORDS = st.sampled_from(["Graz", "graz.", "Linz", "a cat", "two cats", "Wels", "tea", "Tea!"])
TURNS = st.integers(1, 5)
PICK = st.integers(0, 30)
ALL = ("staged", "active", "superseded", "forgotten")
RECALLABLE = ("staged", "active")


class MemoryMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name) / "h"
        chosen = Settings(home=home, shards=1)
        self.bank = Bank.open(chosen, embeddings=FakeEmbeddings(), world=clock())
        self.index = ListIndex(chosen)
        mirror = self.bank._indexes.mirror
        mirror._client = mirror._index = self.index

    def teardown(self):
        self.bank.close()
        self.folder.cleanup()

    def everything(self, statuses=ALL):
        return [one for scope in (ANN.base, BOB.base) for one in self.bank.entries(scope, statuses=statuses)]

    def picked(self, pick, statuses=ALL):
        found = [one for one in self.everything(statuses) if one.granularity != "raw" or pick % 3 == 0]
        return found[pick % len(found)] if found else None

    @initialize()
    def begin(self):
        for scope in SCOPES:
            self.bank.stage_turns(scope, [said(n, f"{n}", session=scope.session) for n in (1, 2, 3)])
            for turn, text in ((1, "Graz"), (2, "a cat")):
                self.bank.apply(scope, [add(text, f"D{scope.session}:{turn}", scope=scope)])

    @rule(scope=st.sampled_from(SCOPES), position=TURNS, text=WORDS)
    def stage(self, scope, position, text):
        self.bank.stage_turns(scope, [said(position, text, session=scope.session)])

    @rule(scope=st.sampled_from(SCOPES), turn=TURNS, text=WORDS, kind=st.sampled_from(["fact", "episode"]))
    def add(self, scope, turn, text, kind):
        self.bank.apply(scope, [add(text, f"D{scope.session}:{turn}", scope=scope, granularity=kind)])

    @rule(pick=PICK, turn=TURNS, text=WORDS)
    def update(self, pick, turn, text):
        if old := self.picked(pick, RECALLABLE):
            new = update(old.id, text, f"D1:{turn}", scope=old.scope, granularity=old.granularity)
            self.bank.apply(old.scope, [new])

    @rule(pick=PICK, turn=TURNS)
    def merge(self, pick, turn):
        if old := self.picked(pick):
            source = fact("x", f"D1:{turn}", scope=old.scope)
            self.bank.apply(old.scope, [Edit(op="MERGE", target=old.id, entry=source)])

    @rule(pick=PICK)
    def delete(self, pick):
        if old := self.picked(pick):
            self.bank.apply(old.scope, [Edit(op="DELETE", target=old.id, quote="forget that")])

    @rule(pick=PICK, text=WORDS)
    def edit(self, pick, text):
        if old := self.picked(pick):
            with contextlib.suppress(BadInput, UnknownEntry):
                assert same_text(self.bank.edit(old.scope, old.id, text).text) == same_text(text)

    @rule(pick=PICK, text=st.sampled_from(["brand new", "newer still"]))
    def edit_and_undo(self, pick, text):
        old = self.picked(pick, RECALLABLE)
        taken = {same_text(one.text) for one in self.everything()}
        if old and text not in taken:
            new = self.bank.edit(old.scope, old.id, text)
            restored = self.bank.undo(old.scope, new.id)
            assert (restored.id, restored.text, restored.turns) == (old.id, old.text, old.turns)
            assert (restored.status, restored.valid_until) == (old.status, old.valid_until)

    @rule(pick=PICK)
    def undo(self, pick):
        if old := self.picked(pick):
            with contextlib.suppress(BadInput):
                assert self.bank.undo(old.scope, old.id).status in RECALLABLE

    @rule(pick=PICK, only=st.booleans())
    def forget(self, pick, only):
        if old := self.picked(pick):
            gone = self.bank.forget(old.scope, old.id, only=only)
            assert self.bank.get(old.scope, [old.id, *gone]) == []

    @rule(pick=PICK)
    def meddle(self, pick):
        if old := self.picked(pick):
            before = self.everything()
            other = BOB if old.scope.user == "ann" else ANN
            applied = self.bank.apply(other, [Edit(op="DELETE", target=old.id, quote="forget that")])
            assert [one.target for one in applied.rejected] == [old.id]
            assert self.bank.forget(other, old.id) == self.bank.get(other, [old.id]) == []
            for change in (self.bank.undo, self.bank.history, lambda *at: self.bank.edit(*at, "x")):
                with pytest.raises(UnknownEntry):
                    change(other, old.id)
            assert self.everything() == before

    @rule(scope=st.sampled_from(SCOPES))
    def commit(self, scope):
        self.bank.commit_session(scope)

    @rule(scope=st.sampled_from(SCOPES), pick=PICK, turn=TURNS)
    def examine(self, scope, pick, turn):
        with contextlib.suppress(BadInput):
            part = self.bank.begin_verification(scope)
            held = self.picked(pick)
            probe = Probe(
                id=probe_id(scope, part.seq, part.number, turn), session=scope.session, part=part.number,
                n=turn, kind="single-hop", question="?", gold="!", turn=f"D{scope.session}:{turn}",
                memories=(held.id,) if held else (),
            )  # fmt: skip
            self.bank.save_probes(scope, [probe])
            if pick % 2:
                self.bank.commit_session(scope, until=part.until)

    @precondition(lambda self: len(self.everything()) > 25)
    @rule()
    def forget_bob(self):
        self.bank.forget_user("bob")
        assert list(self.bank.export(BOB.base)) == []

    @rule(scope=st.sampled_from([ANN.base, BOB.base]))
    def carry_over(self, scope):
        assert self.bank.import_(scope, list(self.bank.export(scope))) == 0

    @invariant()
    def nothing_is_said_twice(self):
        keys = [
            (one.scope.key, one.granularity, same_text(one.text))
            for one in self.everything(RECALLABLE)
            if one.granularity != "raw"
        ]
        assert len(keys) == len(set(keys))

    @invariant()
    def what_is_superseded_has_a_successor_that_knows_it(self):
        known = {one.id: one for one in self.everything()}
        for one in known.values():
            assert (one.status == "superseded") == (one.superseded_by is not None)
            # What another entry says as well is no predecessor of that one, which stays as it was said.
            if one.superseded_by is not None and departure(one) != "united":
                assert one.id in known[one.superseded_by].supersedes
                assert known[one.superseded_by].scope.base == one.scope.base
                assert one.valid_until is not None
            assert all(earlier in known for earlier in one.supersedes)

    @invariant()
    def probes_rest_on_what_is_there(self):
        for scope in (ANN.base, BOB.base):
            for probe in self.bank.probes(scope):
                assert len(self.bank.turns(scope, [probe.turn])) == 1
                assert len(self.bank.get(scope, probe.memories)) == len(probe.memories)

    @invariant()
    def every_entry_has_a_history(self):
        for one in self.everything():
            assert one.id in {event.entry_id for event in self.bank.history(one.scope, one.id)}

    @invariant()
    def the_indexes_hold_the_active_entries(self):
        self.bank.drain()
        active = {one.id: one for one in self.everything(["active"])}
        assert set(self.index.held) == set(active)
        assert all(self.index.held[key][0] == active[key] for key in active)
        report = self.bank.check()
        assert (report["ledger_drift"], report["integrity"], report["wipes_owed"]) == (0, "ok", 0)


MemoryMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMemory = MemoryMachine.TestCase
