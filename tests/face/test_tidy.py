"""Memory in order: `Memory.maintain` and `memcycle maintain`."""

import asyncio

import pytest

from memcycle import Memory
from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from tests.banks import apply

ANN = Scope(user="ann", session="1")
LONG = "Nora brought a tin of roasted walnuts to the choir rehearsal in the old church"
CASHEWS, DETAIL = LONG.replace("walnuts", "cashews"), LONG.replace("a tin", "a blue tin")


@pytest.fixture
def home(cli):
    """Three facts, of which one says all of another."""
    with Memory.open(cli.home) as memory:
        entries = [
            new_entry(ANN, "fact", text, (f"D1:{n}",), actor="constructor", persons=("Nora",))
            for n, text in enumerate((LONG, CASHEWS, DETAIL), 1)
        ]
        apply(memory.bank, ANN, [Edit(op="ADD", entry=entry) for entry in entries])
    return cli.home


def facts(cli):
    return sorted(entry["text"] for entry in cli.json("memories", "--user", "ann"))


def test_a_dry_run_tells_what_the_run_then_does(cli, home):
    planned = cli.json("maintain", "--user", "ann", "--dry-run")
    assert list(planned) == ["user", "workspace", "dry_run", "united", "renewed", "expired", "reinforced"]
    assert facts(cli) == sorted([LONG, CASHEWS, DETAIL])
    done = cli.json("maintain", "--user", "ann")
    assert done == planned | {"dry_run": False}
    assert [(pair["kept"]["text"], pair["dropped"]["text"]) for pair in done["united"]] == [(DETAIL, LONG)]
    assert facts(cli) == sorted([CASHEWS, DETAIL])
    assert cli.json("maintain", "--user", "ann")["united"] == []


def test_undo_brings_it_back_for_good(cli, home):
    (pair,) = cli.json("maintain", "--user", "ann")["united"]
    dropped = pair["dropped"]["id"]
    actions = [event["action"] for event in cli.json("history", pair["kept"]["id"])]
    assert actions == ["add", "add", "supersede", "merge"]
    assert cli.json("undo", dropped)["id"] == dropped
    assert cli.json("maintain", "--user", "ann")["united"] == []
    assert facts(cli) == sorted([LONG, CASHEWS, DETAIL])


def test_people_read_it(cli, home):
    planned = cli.run("maintain", "--user", "ann", "--dry-run")
    assert "Would be: 1 united, 0 renewed, 0 expired, 0 reinforced" in planned.stdout
    assert all(text in planned.stdout for text in (LONG, DETAIL))
    assert planned.stderr == ""
    done = cli.run("maintain", "--user", "ann", "--max-entries", "1", "--kind", "episodic")
    assert "Done: 1 united, 0 renewed, 1 expired, 0 reinforced" in done.stdout
    assert "at most 1 of these are kept" in done.stdout
    assert "memcycle undo" in done.stderr
    assert "Done: 0 united" in cli.run("maintain", "--user", "ann").stdout


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--kind", "episodic"], "--max-age-days"),
        (["--granularity", "raw"], "--max-entries"),
        (["--max-age-days", "0"], "max_age_days"),
        (["--max-entries", "-1"], "max_entries"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(cli, home, options, word):
    assert word in cli.fails("maintain", "--user", "ann", *options, code=2)


def test_a_home_that_is_not_there(cli):
    assert "no memory at" in cli.fails("maintain", "--user", "ann", code=1)


def test_memory_maintains_the_named_user(home):
    with Memory.open(home, user="ann") as memory:
        assert memory.maintain(user="ben", dry_run=True).united == []
        assert memory.maintain(workspace="other").united == []
        planned = memory.maintain(dry_run=True)
        assert asyncio.run(memory.amaintain()) == planned
        assert [pair.drop.text for pair in planned.united] == [LONG]
