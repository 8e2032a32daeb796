"""Several processes on one home: one of them has the embedded index, and none waits for another.

Two banks of one process stand to each other as those of two processes, whose locks are the kernel's too.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from memcycle.core.errors import StoreBusy
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank
from memcycle.stores.search import search
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, BOB, open_bank, said, texts
from tests.stores.test_bank_forgetting import MARKER, added, converse, files_with


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def holder(home):
    with open_bank(home) as bank:
        bank.stage_turns(BOB, [said(1, "hello")])
        bank.commit_session(BOB)
        assert not bank.indexes.mirror.elsewhere
        yield bank


@pytest.fixture
def guest(home, holder):
    with open_bank(home) as bank:
        yield bank


def found(bank, words, scope=ANN, k=5):
    [hits] = bank.search(SearchRequest(scope=scope, queries=(Query(text=words),), k=k))
    return [hit.entry.text for hit in hits]


def test_both_write_and_find_what_the_other_wrote_at_once(holder, guest):
    converse(guest, ANN)
    assert guest.indexes.mirror.elsewhere
    assert f"my locker code is {MARKER}" in found(holder, "locker code")
    holder.stage_turns(ANN, [said(7, "a kettle of copper")])
    holder.commit_session(ANN)
    assert "a kettle of copper" in found(guest, "copper kettle")


def test_who_has_the_index_brings_in_what_others_wrote(holder, guest):
    converse(guest, ANN)
    assert guest.drain() == 0
    holder.stage_turns(BOB, [said(7)])
    holder.commit_session(BOB)
    report = holder.check()
    assert (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})


def by_a_question(holder, guest):
    found(holder, "anything")


def by_a_turn(holder, guest):
    holder.stage_turns(BOB, [said(8)])


def by_its_close(holder, guest):
    holder.close()


def killed_then_by_a_turn_of_the_other(holder, guest):
    holder.indexes.mirror.close()
    guest.stage_turns(ANN, [said(8)])


def killed_then_by_the_close_of_the_other(holder, guest):
    holder.indexes.mirror.close()
    guest.close()


@pytest.mark.parametrize(
    "step",
    [
        by_a_question,
        by_a_turn,
        by_its_close,
        killed_then_by_a_turn_of_the_other,
        killed_then_by_the_close_of_the_other,
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["an entry", "a user"])
def test_what_a_guest_forgets_leaves_the_files_with_the_next_step(home, holder, guest, step, whole):
    code = converse(holder, ANN)
    assert guest.forget_user("ann") if whole else guest.forget(ANN, code)
    assert f"process {os.getpid()} has the index" in guest.operator_note
    assert not any("ledger" in file for file in files_with(home))
    assert MARKER not in " ".join(texts(holder.entries(ANN)))
    step(holder, guest)
    assert files_with(home) == []
    with Bank.open(Settings(home=home), read_only=True) as reader:
        assert reader.check()["wipes_owed"] == 0


def test_a_large_scope_is_searched_whole_beside_who_has_the_index(holder, guest, monkeypatch):
    converse(holder, ANN)
    exact = found(holder, "locker code", k=20)
    monkeypatch.setattr(search, "SCANNED_WHOLE", 3)
    assert found(guest, "locker code", k=20) == exact
    assert guest.indexes.mirror.elsewhere
    added(guest, "Ann painted the locker", "D1:3")
    guest.commit_session(ANN)
    assert "Ann painted the locker" in found(guest, "painted locker")
    holder.close()
    guest.stage_turns(ANN, [said(9)])
    guest.commit_session(ANN)
    assert not guest.indexes.mirror.elsewhere
    assert "Ann painted the locker" in found(guest, "painted locker")
    assert guest.check()["index"] == {"missing": 0, "stray": 0}


@pytest.mark.parametrize("step", ["rebuild", "reembed", "mend", "check"])
def test_what_needs_the_index_alone_is_refused(holder, home, step):
    with open_bank(home, lock_timeout=0) as guest, pytest.raises(StoreBusy, match="already open in this"):
        getattr(guest, step)()


_SERVER = """
import json, sys
from memcycle import Memory
from memcycle.core.settings import Settings

with Memory.open(settings=Settings(home=sys.argv[1], lock_timeout=0.1), user="ann") as memory:
    for line in sys.stdin:
        name, args, kwargs = json.loads(line)
        try:
            made = getattr(memory, name, None) or getattr(memory.bank, name)
            value = made(*args, **kwargs) if callable(made) else made
            value = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
            print(json.dumps([value, None], default=str), flush=True)
        except Exception as error:
            print(json.dumps([None, f"{type(error).__name__}: {error}"]), flush=True)
"""


class Server:
    """A memory in a process of its own, asked a call at a time."""

    def __init__(self, home) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __getattr__(self, name):
        def call(*args, **kwargs):
            self.process.stdin.write(json.dumps([name, args, kwargs]) + "\n")
            self.process.stdin.flush()
            value, error = json.loads(self.process.stdout.readline())
            assert error is None, error
            return value

        return call


@contextmanager
def servers(home, n=2):
    with ExitStack() as stack:
        made = [Server(home) for _ in range(n)]
        for one in made:
            stack.callback(one.process.communicate, timeout=60)
        yield made


def told(server, question):
    return " ".join(one["text"] for one in server.recall(question)["evidence"])


@pytest.mark.slow
def test_two_processes_share_a_home(home):
    with servers(home) as (first, second):
        first.add("I keep two hives in Linz.")
        first.end_session()
        second.add("My locker code is Zebraquux.", session="gym")
        second.end_session("gym")
        assert "two hives" in told(second, "Where are my hives?")
        assert "Zebraquux" in told(first, "What is my locker code?")
        first.add("I rent a boat.")
        first.end_session()
        assert any("chroma" in file for file in files_with(home))
        [code] = [one for one in second.export() if one["granularity"] == "raw" and MARKER in one["text"]]
        assert second.forget(code["id"])
        assert f"process {first.process.pid} has the index" in second.operator_note()
        assert "Zebraquux" not in told(first, "What is my locker code?")
        assert files_with(home) == []


@pytest.mark.slow
def test_when_the_one_with_the_index_is_killed_the_other_goes_on(home):
    with servers(home) as (first, second):
        first.add("I keep two hives in Linz.")
        first.end_session()
        second.add("My locker code is Zebraquux.", session="gym")
        second.end_session("gym")
        first.process.kill()
        first.process.wait()
        second.add("I rent a boat.", session="boat")
        second.end_session("boat")
        assert "two hives" in told(second, "Where are my hives?")
        report = second.check()
        assert (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})


_WORKER = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from memcycle import Memory
from memcycle.core.settings import Settings

home, name, until = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3])

def talk(user):
    n = 0
    while n < 5 or time.time() < until:  # enough on a slow machine, too
        n += 1
        said, session = f"My box {name}{n} holds tools.", f"{name}-{n // 3}"
        memory.add(said, user=user, session=session)
        found = memory.ask(f"What holds {name}{n}?", user=user, session=session).evidence
        assert any(f"{name}{n} " in one.text for one in found), (said, found)
        if n % 3 == 2:
            memory.end_session(session, user=user)
        if n % 5 == 0:
            [raw] = [one for one in memory.memories(user=user, search=said, granularity="raw")]
            memory.forget(raw.id, user=user)
    return n - n // 5

with Memory.open(settings=Settings(home=home)) as memory, ThreadPoolExecutor(3) as pool:
    for user, kept in zip(("ann", "ben", "cleo"), pool.map(talk, ("ann", "ben", "cleo"))):
        print(user, kept, flush=True)
"""


@pytest.mark.slow
def test_two_workers_at_the_same_time(home):
    """As `uvicorn --workers 2`: threads of both processes add, ask, end and forget for some seconds."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(home), name, "6"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("red", "blue")
    ]
    done = [one.communicate(timeout=120) for one in workers]
    assert [one.returncode for one in workers] == [0, 0], done
    assert "Traceback" not in "".join(errors for _, errors in done)
    kept = dict.fromkeys(("ann", "ben", "cleo"), 0)
    for out, _ in done:
        for line in out.splitlines():
            user, n = line.split()
            kept[user] += int(n)
    assert min(kept.values()) > 2
    memcycle = [sys.executable, "-m", "memcycle"]
    for user, n in kept.items():
        listed = subprocess.run(
            [*memcycle, "memories", "--home", str(home), "-u", user, "-g", "raw", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len({one["text"] for one in json.loads(listed.stdout)}) == n
    looked = subprocess.run(
        [*memcycle, "doctor", "--home", str(home), "--json"], capture_output=True, text=True, check=False
    )
    assert json.loads(looked.stdout)["left"] == []
