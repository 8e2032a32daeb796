"""A tiny soak in this process: stints are done through the API, and what is wrong in a store is found."""

import sqlite3
from pathlib import Path

import pytest
from typer import BadParameter

from benchmarks.soak.__main__ import main
from benchmarks.soak.drive import Driver, left
from benchmarks.soak.plan import Op, Person, Stint
from benchmarks.soak.pool import compare
from memcycle.core.settings import Settings
from memcycle.memory import Memory


@pytest.fixture
async def lived(tmp_path):
    """Three users, two sessions each, and what their stints reported."""
    settings, persons, done = Settings(home=tmp_path), [Person(number) for number in range(3)], []
    async with Memory.open(settings=settings) as memory:
        for person in persons:
            done += [await Driver(memory).run(person.next_stint()) for _ in range(2)]
    made = {person.user: left(set(), [one for one in done if one.user == person.user]) for person in persons}
    return settings, persons, done, made


async def test_a_sound_store_has_no_findings(lived):
    settings, persons, done, made = lived
    assert not [error for one in done for error in one.errors]
    assert not [finding for one in done for finding in one.findings]
    assert sum(map(len, made.values())) > 0
    assert not compare(settings, persons, made)


async def test_what_a_ledger_loses_or_crosses_is_found(lived):
    settings, persons, _, made = lived
    compare(settings, persons, made)  # ends what is open
    with sqlite3.connect(settings.home / "ledger.sqlite3") as ledger:
        ledger.execute(
            "UPDATE entries SET status = 'forgotten' WHERE row IN (SELECT row FROM entries"
            " WHERE user = 'user-001' AND granularity = 'raw' AND status = 'active' LIMIT 1)"
        )
        ledger.execute("UPDATE turns SET text = 'I met Q007x00001.' WHERE row = (SELECT min(row) FROM turns)")
    ledger.close()
    found = {(one.fault, one.user, one.where) for one in compare(settings, persons, made)}
    assert {("lost", "user-001", "API"), ("lost", "user-001", "ledger")} <= found
    assert {where for fault, _, where in found if fault == "crossed"} == {"ledger: turns"}


async def test_an_entry_that_was_reported_and_is_not_there_is_found(lived):
    settings, persons, _, made = lived
    found = compare(settings, persons, {**made, "user-002": {"no-such-id"}})
    assert [(one.fault, one.where, one.what) for one in found] == [("lost", "history", "no-such-id")]


async def test_an_operation_that_fails_is_noted_and_the_next_is_done(tmp_path):
    person = Person(1)
    stint = person.next_stint()
    async with Memory.open(tmp_path) as memory:
        done = await Driver(memory).run(Stint("user-001", 0, (Op("end_session", "s" * 5000), *stint.ops)))
    assert len(done.errors) == 1
    assert done.errors[0].startswith("end_session of user-001: BadInput")
    assert len(done.seconds["end_session"]) == 2
    assert len(done.made) > 0


async def test_what_is_to_be_forgotten_and_is_not_there_is_lost(tmp_path):
    async with Memory.open(tmp_path) as memory:
        done = await Driver(memory).run(Stint("user-001", 0, (Op("forget", mark="Q001x00009"),)))
    assert [(one.fault, one.what) for one in done.findings] == [("lost", "Q001x00009")]


@pytest.mark.parametrize("make", [Path.write_text, lambda path, text: path.mkdir() or (path / text).touch()])
def test_what_is_in_a_folder_already_is_left_alone(tmp_path, make):
    keep = tmp_path / "kept"
    make(keep, "mine")
    with pytest.raises(BadParameter, match="is not empty: name a new folder"):
        main(keep=keep)
    assert [path.name for path in tmp_path.rglob("*")] in (["kept"], ["kept", "mine"])


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadParameter, match=r"file/kept cannot be made: Not a directory; name another folder"):
        main(keep=tmp_path / "file" / "kept")
