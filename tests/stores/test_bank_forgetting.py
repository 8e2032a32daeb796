import pytest

from memcycle.core.edit import Edit
from memcycle.core.errors import StoreError
from memcycle.core.scope import Scope
from memcycle.stores.chroma.index import ChromaIndex
from memcycle.stores.chroma.mirror import Mirror
from memcycle.stores.ledger import connection
from tests.banks import ANN, BOB, add, apply, open_bank, said, texts, update

MARKER = "Zebraquux"


def added(bank, *args, scope=ANN, **fields):
    (entry_id,) = apply(bank, scope, [add(*args, scope=scope, **fields)]).added
    return entry_id


def files_with(home, marker=MARKER):
    """Files of a home that hold the marker in any case and encoding."""
    wanted = [
        form.encode(code)
        for form in (marker, marker.lower(), marker.upper())
        for code in ("utf-8", "utf-16-le", "utf-16-be")
    ]
    return [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in wanted)
    ]


def converse(bank, scope, n=6):
    """A committed session in which turn 3 and what was made of it hold the marker."""
    lines = {i: f"line {i} of {scope.user}" for i in range(1, n + 1)} | {3: f"my locker code is {MARKER}"}
    spoken = [said(i, line) for i, line in lines.items()]
    bank.stage_turns(scope, spoken)
    code = added(bank, f"Ann's locker code is {MARKER}", "D1:3", scope=scope, quote=f"code is {MARKER}")
    added(bank, "Ann rents a locker", "D1:3", scope=scope)
    added(bank, "Ann is cheerful", "D1:3", scope=scope, quote=f"my locker code is {MARKER}")
    added(bank, f"They talked about {MARKER}", "D1:2", "D1:3", scope=scope, granularity="episode")
    added(bank, "Ann says hello", "D1:1", scope=scope)
    bank.commit_session(scope)
    return code


def test_holders_are_the_turn_its_like_facts_and_its_episodes(bank):
    code = converse(bank, ANN)
    held = bank.holders(ANN, code)
    assert {(one.granularity, one.text) for one in held} == {
        ("raw", f"my locker code is {MARKER}"),
        ("fact", "Ann rents a locker"),
        ("episode", f"They talked about {MARKER}"),
    }
    (raw,) = bank.raw_entries(ANN, ["D1:3"])
    assert len(bank.holders(ANN, raw.id)) == 4


def test_forgetting_leaves_no_byte_of_it(chroma_bank):
    bank, home = chroma_bank, chroma_bank.settings.home
    code = converse(bank, ANN)
    bank.edit(ANN, code, f"Ann's locker code was {MARKER}", why=f"{MARKER} is old")
    (current,) = [one for one in bank.entries(ANN, granularity="fact") if MARKER in one.text]
    bank.queue_conflict(ANN, current.id, code, f"both say {MARKER}")
    assert {file.split("-")[0] for file in files_with(home)} >= {"ledger.sqlite3", "chroma/chroma.sqlite3"}
    gone = bank.forget(ANN, current.id)
    assert files_with(home) == []
    assert set(gone) >= {current.id, code}
    assert sorted(texts(bank.entries(ANN, granularity="fact"))) == ["Ann is cheerful", "Ann says hello"]
    assert [one.quote for one in bank.entries(ANN, granularity="fact")] == [None, None]
    report = bank.check()
    expected = {
        "index": {"missing": 0, "stray": 0}, "ledger_drift": 0, "outbox": 0, "wipes_owed": 0,
        "integrity": "ok",
    }  # fmt: skip
    assert {name: report[name] for name in expected} == expected
    assert bank.forget(ANN, current.id) == []


def test_forgetting_a_user_spares_the_other_of_the_shard(tmp_path):
    with open_bank(tmp_path / "home", shards=1) as bank:
        converse(bank, ANN)
        converse(bank, Scope(user="ann", workspace="work", session="1"))
        converse(bank, BOB)
        theirs = bank.export(BOB.base)
        before = list(theirs)
        assert bank.forget_user("ann", "work") == 11
        assert bank.forget_user("ann") == 11
        assert bank.forget_user("ann") == 0
        assert list(bank.export(BOB.base)) == before
        assert bank.entries(ANN.base) == bank.sessions(ANN.base) == []
        assert bank.users() == ["bob"]
        assert bank.check()["index"] == {"missing": 0, "stray": 0}
        assert files_with(bank.settings.home) != []
        bank.forget_user("bob")
        assert files_with(bank.settings.home) == []
        assert files_with(bank.settings.home, "line 1 of bob") == []


def test_while_serving_no_call_to_the_index_is_large(tmp_path, monkeypatch):
    sizes, call = [], ChromaIndex._call

    def watched(self, shard, method, arguments):
        if method in ("add", "upsert"):
            sizes.append(len(arguments["ids"]))
        return call(self, shard, method, arguments)

    monkeypatch.setattr(ChromaIndex, "_call", watched)
    with open_bank(tmp_path / "home", shards=1, serving_batch=3) as bank:
        code = converse(bank, ANN)
        converse(bank, BOB)
        written = len(sizes)
        bank.forget(ANN, code)
        assert sum(sizes[written:]) >= len(bank.entries(ANN.base)) + len(bank.entries(BOB.base))
    assert max(sizes) == 3


def test_nothing_of_a_users_name_stays(tmp_path):
    name = Scope(user="Quibblewick", session="1")
    with open_bank(tmp_path / "home") as bank:
        converse(bank, name)
        bank.forget_user("Quibblewick")
    assert files_with(tmp_path / "home", "Quibblewick") == []


def test_what_was_forgotten_is_not_stored_again(bank):
    code = converse(bank, ANN)
    bank.forget(ANN, code)
    assert (
        bank.stage_turns(ANN, [said(3, f"my locker code is {MARKER}"), said(2, "line 2 of ann")])[0].id
        == "D1:2"
    )
    applied = apply(bank, ANN, [add(f"ann's locker code is {MARKER}!", "D1:6")])
    assert "was forgotten" in applied.rejected[0].why
    # The place of the forgotten turn is not given to another one.
    assert bank.stage_turns(ANN, [said(7, "new")])[0].id == "D1:7"
    assert apply(bank, BOB, [add(f"ann's locker code is {MARKER}!", "D1:6", scope=BOB)]).added


def test_the_place_of_a_forgotten_last_turn_stays_taken(bank):
    bank.stage_turns(ANN, [said(1), said(2, "last")])
    bank.forget(ANN, bank.raw_entries(ANN, ["D1:2"])[0].id)
    assert bank.next_position(ANN) == 3


def test_a_forgotten_user_may_come_anew(bank):
    converse(bank, ANN)
    bank.forget_user("ann")
    converse(bank, ANN)
    assert bank.count(ANN)["raw"] == 6


def test_only_this_entry(bank):
    code = converse(bank, ANN)
    assert bank.forget(ANN, code, only=True) == [code]
    assert len(bank.raw_entries(ANN, ["D1:3"])) == 1
    assert len(bank.by_turns(ANN, ["D1:3"], "fact")) == 2


def test_ids_of_another_user_are_unknown(bank):
    code = converse(bank, ANN)
    assert bank.forget(BOB, code) == []
    assert len(bank.get(ANN, [code])) == 1


def test_the_windows_of_later_turns_forget_it_too(bank):
    from memcycle.stores.search import lexical

    converse(bank, ANN)
    bank.forget(ANN, bank.raw_entries(ANN, ["D1:3"])[0].id)
    with bank.ledger.read() as conn:
        for granularity in ("raw", "fact", "episode"):
            (found,) = lexical.score(conn, ANN.key, granularity, [["zebraquux"]])
            assert len(found.rows) == 0


def chain(bank, *said_in):
    """Facts, each superseding the one before."""
    made = [added(bank, said_in[0], "D1:1")]
    for n, text in enumerate(said_in[1:], start=2):
        made += apply(bank, ANN, [update(made[-1], text, f"D1:{n}")]).updated
    return made


def test_forgetting_the_newest_does_not_make_the_old_true_again(bank):
    old, new = chain(bank, "Graz", "Linz")
    bank.forget(ANN, new)
    (left,) = bank.get(ANN, [old])
    assert (left.status, left.superseded_by) == ("forgotten", None)
    assert bank.entries(ANN) == []
    (event,) = [event for event in bank.history(ANN, old) if event.action == "supersede"]
    assert event.why == ""


def test_forgetting_the_middle_ties_the_ends(bank):
    old, middle, new = chain(bank, "Graz", "Linz", "Wels")
    bank.forget(ANN, middle)
    first, last = bank.get(ANN, [old, new])
    assert (first.status, first.superseded_by, last.supersedes) == ("superseded", new, (old,))
    assert {event.entry_id for event in bank.history(ANN, new)} == {old, new}


def test_forgetting_the_oldest_leaves_the_newest(bank):
    old, new = chain(bank, "Graz", "Linz")
    bank.forget(ANN, old)
    (left,) = bank.get(ANN, [new])
    assert (left.status, left.supersedes) == ("active", ())
    assert all(event.before is None for event in bank.history(ANN, new))


def test_a_softly_deleted_entry_can_be_forgotten_for_good(bank):
    entry = added(bank, f"{MARKER}", "D1:1")
    apply(bank, ANN, [Edit(op="DELETE", target=entry, quote="forget it")])
    assert bank.forget(ANN, entry) == [entry]
    assert files_with(bank.settings.home) == []


def test_a_wipe_that_was_cut_short_is_finished_later(bank, monkeypatch):
    code = converse(bank, ANN)

    def failing(_):
        raise StoreError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "wipe", failing)
        with pytest.raises(StoreError, match="disk full"):
            bank.forget(ANN, code)
    assert bank.get(ANN, [code]) == []
    assert bank.check()["wipes_owed"] == 2
    assert bank.forget(ANN, code) == []
    assert bank.check()["wipes_owed"] == 0
    assert files_with(bank.settings.home) == []


@pytest.mark.parametrize(
    ("owner", "step"), [(connection.Ledger, "compact"), (ChromaIndex, "scrub")], ids=["ledger", "index"]
)
@pytest.mark.parametrize("second", [ANN, BOB], ids=["same scope", "other scope"])
def test_what_is_deleted_while_a_wipe_runs_is_owed_after_it(chroma_bank, monkeypatch, owner, step, second):
    bank, original = chroma_bank, getattr(owner, step)
    codes = {scope: converse(bank, scope) for scope in (ANN, BOB)}
    extra = added(bank, f"The parrot is called {MARKER}", "D1:1", scope=second)

    def overtaken(self):
        done = original(self)
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, original)
            patch.setattr(Mirror, "wipe", lambda _: None)
            bank.forget(second, extra)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, overtaken)
        bank.forget(ANN, codes[ANN])
    # The index is wiped after the ledger, and of all that was deleted until then.
    assert bank.check()["wipes_owed"] == (1 if step == "compact" else 2)
    bank.forget(BOB, codes[BOB])
    assert bank.check()["wipes_owed"] == 0
    assert files_with(bank.settings.home) == []


def test_a_new_process_finishes_a_wipe(tmp_path, list_index, monkeypatch):
    with monkeypatch.context() as patch, open_bank(tmp_path / "h") as bank:
        code = converse(bank, ANN)
        patch.setattr(Mirror, "wipe", lambda _: None)
        patch.setattr(Mirror, "wipe_index", lambda _: None)
        bank.forget(ANN, code)
    with open_bank(tmp_path / "h") as bank:
        assert bank.check()["wipes_owed"] == 2
        bank.apply(ANN, [])
        assert bank.check()["wipes_owed"] == 0
    assert files_with(tmp_path / "h") == []


def test_reasons_of_roles_that_may_quote_it_are_emptied(bank):
    """A role that was shown it says why it changed another entry: a person's own words stay."""
    code = converse(bank, ANN)
    other = added(bank, "Ann rows", "D1:5")

    def because(why, text, actor):
        edit = update(other, text, "D1:6").model_copy(update={"reason": why, "actor": actor})
        return apply(bank, ANN, [edit]).updated[0]

    other = because(f"not the {MARKER.upper()} thing", "Ann rows a boat", "repairer")
    other = because("Ann says what she rows", "Ann rows a red boat", "repairer")
    other = bank.edit(ANN, other, "Ann rows a blue boat", why=f"{MARKER} is mine").id
    theirs = converse(bank, BOB)
    told = apply(
        bank,
        BOB,
        [update(theirs, "Bob rows", "D1:6", scope=BOB).model_copy(update={"reason": f"no {MARKER}"})],
    ).updated
    bank.forget(ANN, code)
    whys = {event.why for event in bank.history(ANN, other) if event.why}
    assert whys == {"Ann says what she rows", f"{MARKER} is mine"}, "the speaker's name tells nothing"
    assert f"no {MARKER}" in {event.why for event in bank.history(BOB, told[0])}
