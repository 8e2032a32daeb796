"""Several writers at once: threads of one bank, and processes with a bank each."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from tests.banks import ANN, add, apply, clock, said
from tests.fakes import FakeEmbeddings

NOWHERE = "http://127.0.0.1:9"
"""A Chroma server that is never asked: several processes may write, and none commits."""


def at_once(work, items):
    start = threading.Barrier(len(items))

    def run(item):
        start.wait(30)
        return work(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))


def test_threads_adding_one_fact_end_with_one_entry_and_all_sources(bank):
    at_once(lambda n: apply(bank, ANN, [add("Ann lives in Graz", f"D1:{n}")]), range(1, 9))
    (only,) = bank.entries(ANN)
    assert set(only.turns) == {f"D1:{n}" for n in range(1, 9)}


def test_threads_staging_one_turn_store_it_once(bank):
    results = at_once(lambda _: bank.stage_turns(ANN, [said(1, "hi")]), range(8))
    assert all(result == results[0] for result in results)
    assert bank.count(ANN) == {"raw": 1}


def test_threads_staging_without_places_get_one_each(bank):
    at_once(lambda n: bank.stage_turns(ANN, [said(1, f"line {n}")]), range(8))
    turns = bank.session_turns(ANN)
    assert [turn.position for turn in turns] == list(range(1, 9))
    assert len({turn.id for turn in turns}) == 8


def test_eight_sessions_of_users_at_once_lose_no_write(bank, list_index):
    def live(n):
        scope = Scope(user=f"user{n % 3}", session=str(n))
        for position in range(1, 6):
            turns = bank.stage_turns(scope, [said(position, f"{n}: line {position}", session=str(n))])
            apply(bank, scope, [add(f"fact {position} of {n}", turns[0].id, scope=scope)])
        bank.commit_session(scope)

    at_once(live, range(8))
    listed = [entry for n in range(3) for entry in bank.entries(Scope(user=f"user{n}"))]
    assert len(listed) == 8 * 10
    assert {entry.status for entry in listed} == {"active"}
    assert list_index[bank.settings.home].ids() == {entry.id for entry in listed}
    report = bank.check()
    assert (report["outbox"], report["ledger_drift"], report["without_vector"]) == (0, 0, 0)


def test_of_two_updates_of_one_entry_one_wins(bank):
    from tests.banks import update

    (target,) = apply(bank, ANN, [add("Ann lives in Graz", "D1:1")]).added
    results = at_once(
        lambda n: apply(bank, ANN, [update(target, f"Ann lives in town {n}", f"D1:{n}")]), range(2, 6)
    )
    assert sorted(len(result.updated) for result in results) == [0, 0, 0, 1]
    assert len(bank.entries(ANN)) == 1


def test_reading_goes_on_beside_writing_and_wiping(bank):
    bank.stage_turns(ANN, [said(n, f"line {n}") for n in range(1, 6)])
    bank.commit_session(ANN)
    done = threading.Event()

    def read():
        seen = set()
        while not done.is_set():
            seen.add(len(bank.entries(ANN, granularity="raw")))
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for raw in bank.entries(ANN, granularity="raw"):
            bank.forget(ANN, raw.id)
        done.set()
        for reader in readers:
            assert reader.result(30) <= {0, 1, 2, 3, 4, 5}
    assert bank.entries(ANN) == []


_ADDER = """
import sys
from pathlib import Path
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from tests.banks import ANN, add, apply, said
from tests.fakes import FakeEmbeddings

home, url, number = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with Bank.open(Settings(home=home, chroma_url=url), embeddings=FakeEmbeddings()) as bank:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(10):
        bank.stage_turns(ANN, [said(1, f"line {n} of {number}", message_id=f"{number}-{n}")])
        apply(bank, ANN, [add(f"Ann knows fact {n}", f"told by {number}")])
"""


@pytest.mark.slow
def test_processes_adding_the_same_facts_end_with_one_entry_each_and_all_sources(tmp_path):
    home = tmp_path / "home"
    adders = [
        subprocess.Popen(
            [sys.executable, "-c", _ADDER, str(home), NOWHERE, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for adder in adders:
        assert adder.stdout.readline() == "ready\n"
    for adder in adders:
        adder.stdin.write("go\n")
        adder.stdin.flush()
    for adder in adders:
        adder.communicate(timeout=60)
    assert [adder.returncode for adder in adders] == [0, 0, 0]
    with Bank.open(Settings(home=home), read_only=True, world=clock()) as bank:
        facts = bank.entries(ANN, granularity="fact")
        assert sorted(fact.text for fact in facts) == [f"Ann knows fact {n}" for n in range(10)]
        assert all(set(fact.turns) == {"told by 0", "told by 1", "told by 2"} for fact in facts)
        assert [turn.position for turn in bank.session_turns(ANN)] == list(range(1, 31))
        assert bank.embedder_id == "langchain:fake-bag"


def test_the_embedder_of_the_first_process_counts(tmp_path, list_index, caplog):
    def opened(model):
        return Bank.open(
            Settings(home=tmp_path / "h", chroma_url=NOWHERE),
            embeddings=FakeEmbeddings(model=model),
            world=clock(),
        )

    with opened("first") as one, opened("second") as other:
        one.stage_turns(ANN, [said(1)])
        other.stage_turns(ANN, [said(2)])
        # What was said is kept, and gets its vector when the right embedder comes; no vectors are mixed.
        assert "built with the embedder 'langchain:first'" in caplog.text
        assert [entry.embedder for entry in one.entries(ANN)] == ["langchain:first", None]
