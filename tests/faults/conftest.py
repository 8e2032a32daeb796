"""A home with everything in it, to be damaged."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from memcycle.core.settings import Settings
from memcycle.stores.bank import LEDGER_FILE, Bank
from memcycle.stores.langgraph_store import MemcycleStore
from tests.banks import ANN, BOB, add, clock, said
from tests.face.conftest import chat, cli, small  # noqa: F401 - fixtures

SHARDS = 32


def fill(bank: Bank) -> None:
    """Two users, a committed session with facts and a replaced one, items of a store."""
    for scope in (ANN, BOB):
        name = scope.user.title()
        bank.stage_turns(
            scope, [said(n, f"{name} said line {n}", speaker=name, id=f"D1:{n}") for n in (1, 2, 3)]
        )
        bank.apply(scope, [add(f"{name} lives in Graz", "D1:1", scope=scope)])
        bank.apply(scope, [add(f"{name} has a cat called Miso", "D1:2", scope=scope)])
        bank.commit_session(scope)
    old = next(one for one in bank.entries(ANN, granularity="fact") if "Graz" in one.text)
    bank.edit(ANN, old.id, "Ann lives in Linz")
    with MemcycleStore(bank) as store:
        store.put(("notes", "ann"), "a", {"text": "red wine"})
        store.put(("notes", "ann"), "b", {"text": "blue sea"})


@pytest.fixture(scope="session")
def whole_home(tmp_path_factory):
    """Made once; tests take copies."""
    home = tmp_path_factory.mktemp("whole") / "home"
    with Bank.open(Settings(home=home, shards=SHARDS), world=clock()) as bank:
        fill(bank)
    return home


@pytest.fixture
def home(whole_home, cli):  # noqa: F811
    """A copy of the whole home, which the test's commands use."""
    shutil.copytree(whole_home, cli.home)
    return cli.home


@pytest.fixture
def sql(home):
    """Runs statements in the home's ledger behind memcycle's back; gives the rows of the last."""

    def run(*statements, **values):
        with closing(sqlite3.connect(home / LEDGER_FILE, isolation_level=None)) as conn:
            conn.execute("PRAGMA foreign_keys = OFF")
            for statement in statements:
                rows = conn.execute(statement, values).fetchall()
        return rows

    return run
