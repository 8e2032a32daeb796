"""Whatever is done to a memory, in any order, these hold."""

import contextlib
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from memcycle.core.edit import Edit
from memcycle.core.entry import same_text
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from tests.banks import ANN, BOB, ListIndex, add, clock, fact, said, update
from tests.fakes import FakeEmbeddings

SCOPES = [ANN, ANN.within("2"), BOB]
WORDS = st.sampled_from(["Graz", "graz.", "Linz", "a cat", "two cats", "Wels"])
TURNS = st.integers(1, 4)
ALL = ("staged", "active", "superseded", "forgotten")


class MemoryMachine(RuleBasedStateMachine):
    ids = Bundle("ids")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name) / "h"
        chosen = Settings(home=home, shards=1)
        self.bank = Bank.open(chosen, embeddings=FakeEmbeddings(), world=clock())
        self.index = ListIndex(chosen)
        views = self.bank._views
        views.mirror._client = views.mirror._index = self.index

    def teardown(self):
        self.bank.close()
        self.folder.cleanup()

    @rule(target=ids, scope=st.sampled_from(SCOPES), position=TURNS, text=WORDS)
    def stage(self, scope, position, text):
        turns = self.bank.stage_turns(scope, [said(position, text, session=scope.session)])
        return multiple(*(entry.id for turn in turns for entry in self.bank.raw_entries(scope, [turn.id])))

    @rule(
        target=ids,
        scope=st.sampled_from(SCOPES),
        turn=TURNS,
        text=WORDS,
        kind=st.sampled_from(["fact", "episode"]),
    )
    def add(self, scope, turn, text, kind):
        edit = add(text, f"D{scope.session}:{turn}", scope=scope, granularity=kind)
        return multiple(*self.bank.apply(scope, [edit]).added)

    @rule(target=ids, scope=st.sampled_from(SCOPES), old=ids, turn=TURNS, text=WORDS)
    def update(self, scope, old, turn, text):
        applied = self.bank.apply(scope, [update(old, text, f"D{scope.session}:{turn}", scope=scope)])
        return multiple(*applied.updated)

    @rule(scope=st.sampled_from(SCOPES), old=ids, turn=TURNS)
    def merge(self, scope, old, turn):
        edit = Edit(op="MERGE", target=old, entry=fact("x", f"D{scope.session}:{turn}", scope=scope))
        self.bank.apply(scope, [edit])

    @rule(scope=st.sampled_from(SCOPES), old=ids)
    def delete(self, scope, old):
        self.bank.apply(scope, [Edit(op="DELETE", target=old, quote="forget that")])

    @rule(target=ids, scope=st.sampled_from(SCOPES), old=ids, text=WORDS)
    def edit(self, scope, old, text):
        try:
            return self.bank.edit(scope, old, text).id
        except (BadInput, UnknownEntry):
            return multiple()

    @rule(scope=st.sampled_from(SCOPES), old=ids, text=st.sampled_from(["brand new", "newer still"]))
    def edit_and_undo(self, scope, old, text):
        taken = {same_text(one.text) for one in self.bank.entries(scope.base, statuses=ALL)}
        found = self.bank.get(scope, [old])
        if found and found[0].status in ("active", "staged") and text not in taken:
            new = self.bank.edit(scope, old, text)
            restored = self.bank.undo(scope, new.id)
            assert (restored.id, restored.text, restored.turns) == (old, found[0].text, found[0].turns)
            assert restored.status == found[0].status

    @rule(scope=st.sampled_from(SCOPES), old=ids)
    def undo(self, scope, old):
        with contextlib.suppress(BadInput, UnknownEntry):
            assert self.bank.undo(scope, old).status in ("active", "staged")

    @rule(scope=st.sampled_from(SCOPES), old=ids, only=st.booleans())
    def forget(self, scope, old, only):
        gone = self.bank.forget(scope, old, only=only)
        assert self.bank.get(scope, [old, *gone]) == []

    @rule(scope=st.sampled_from(SCOPES))
    def commit(self, scope):
        self.bank.commit_session(scope)

    @rule()
    def forget_bob(self):
        self.bank.forget_user("bob")
        assert list(self.bank.export(BOB.base)) == []

    @rule(scope=st.sampled_from([ANN.base, BOB.base]))
    def carry_over(self, scope):
        assert self.bank.import_(scope, list(self.bank.export(scope))) == 0

    def everything(self):
        return [one for scope in (ANN.base, BOB.base) for one in self.bank.entries(scope, statuses=ALL)]

    @invariant()
    def nothing_is_said_twice(self):
        recallable = [one for one in self.everything() if one.status in ("active", "staged")]
        keys = [
            (one.scope.key, one.granularity, same_text(one.text))
            for one in recallable
            if one.granularity != "raw"
        ]
        assert len(keys) == len(set(keys))

    @invariant()
    def what_is_superseded_has_a_successor_that_knows_it(self):
        known = {one.id: one for one in self.everything()}
        for one in known.values():
            assert (one.status == "superseded") == (one.superseded_by is not None)
            if one.superseded_by is not None:
                assert one.id in known[one.superseded_by].supersedes
                assert known[one.superseded_by].scope.base == one.scope.base
                assert one.valid_until is not None
            assert all(earlier in known for earlier in one.supersedes)

    @invariant()
    def every_entry_has_a_history(self):
        for one in self.everything():
            assert one.id in {event.entry_id for event in self.bank.history(one.scope, one.id)}

    @invariant()
    def the_indexes_hold_the_active_entries(self):
        self.bank.drain()
        active = {one.id: one for one in self.everything() if one.status == "active"}
        assert set(self.index.held) == set(active)
        assert all(self.index.held[key][0] == active[key] for key in active)
        report = self.bank.check()
        assert (report["lexical_drift"], report["integrity"], report["wipes_owed"]) == (0, "ok", 0)


MemoryMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMemory = MemoryMachine.TestCase
