"""Freed memory in Chroma's vector files: in crafted files, and in those that Chroma itself writes."""

import os
import platform
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma.client import open_client
from memcycle.stores.chroma.files import HEADER, LENGTHS, VECTORS, Slack
from memcycle.stores.chroma.index import ChromaIndex
from tests.banks import ANN, open_bank, said

SIZE, ROOM = 36, 100
SECRET = b"freed conversation "
ANA = Scope(user="ana", session="1")
DIM = 32
VECTORS_OF_TEN = np.random.default_rng(7).random((10, DIM), dtype=np.float32)


def header(used: int, *, version: int = 1, offset: int = 0, capacity: int = ROOM, size: int = SIZE) -> bytes:
    return struct.pack("=i4Q", version, offset, capacity, used, size).ljust(100, b"\1")


def craft(path: Path, used: int, name: str = "segment") -> Path:
    """A collection's folder with vectors of ones, and with secrets in all the room after them."""
    folder = path / name
    folder.mkdir(parents=True)
    secret = SECRET * SIZE * ROOM
    (folder / HEADER).write_bytes(header(used))
    (folder / VECTORS).write_bytes((b"\1" * used * SIZE + secret)[: ROOM * SIZE])
    (folder / LENGTHS).write_bytes((b"\1" * used * 4 + secret)[: ROOM * 4])
    (folder / "link_lists.bin").write_bytes(SECRET)
    return folder


@pytest.mark.parametrize("used", [0, 1, 10, ROOM])
def test_only_what_no_vector_uses_is_blanked(tmp_path: Path, used: int) -> None:
    folder = craft(tmp_path, used)
    slack = Slack(tmp_path)
    slack.blank()
    assert (folder / VECTORS).read_bytes() == (b"\1" * used * SIZE).ljust(ROOM * SIZE, b"\0")
    assert (folder / LENGTHS).read_bytes() == (b"\1" * used * 4).ljust(ROOM * 4, b"\0")
    assert (folder / HEADER).read_bytes() == header(used)
    assert (folder / "link_lists.bin").read_bytes() == SECRET
    assert slack.note is None


def test_more_than_is_read_at_once_is_blanked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcycle.stores.chroma.files.CHUNK", 7)
    folder = craft(tmp_path, 3)
    Slack(tmp_path).blank()
    assert (folder / VECTORS).read_bytes() == (b"\1" * 3 * SIZE).ljust(ROOM * SIZE, b"\0")


@pytest.mark.parametrize(
    "other",
    [
        {HEADER: header(10, version=2)},
        {HEADER: header(10, offset=8)},
        {HEADER: header(10, size=SIZE + 1)},
        {HEADER: header(10, size=0)},
        {HEADER: header(ROOM + 1, capacity=ROOM + 1)},
        {HEADER: header(10, capacity=ROOM - 1)},
        {HEADER: header(10)[:99]},
        {HEADER: header(10) + b"\0"},
        {HEADER: b""},
        {LENGTHS: SECRET * 3},
        {VECTORS: SECRET * 3},
        {VECTORS: b"\1" * (ROOM * SIZE - 1)},
    ],
)
def test_an_unknown_layout_is_left_alone_and_named(tmp_path: Path, other: dict[str, bytes]) -> None:
    folder = craft(tmp_path, 10)
    for name, content in other.items():
        (folder / name).write_bytes(content)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    slack = Slack(tmp_path)
    slack.blank()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert slack.note is not None
    assert "the layout of segment is not known" in slack.note
    assert "`memcycle doctor --rebuild`" in slack.note


@pytest.mark.parametrize("missing", [HEADER, LENGTHS])
def test_a_missing_file_is_an_unknown_layout_until_it_is_there(tmp_path: Path, missing: str) -> None:
    folder = craft(tmp_path, 10)
    content = (folder / missing).read_bytes()
    (folder / missing).unlink()
    slack = Slack(tmp_path)
    slack.blank_changed()
    assert "segment" in str(slack.note)
    (folder / missing).write_bytes(content)
    slack.blank()
    assert slack.note is None
    assert SECRET not in (folder / VECTORS).read_bytes()


def test_where_nothing_is_there_is_nothing_to_blank(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(SECRET)
    (tmp_path / "empty").mkdir()
    for path in (tmp_path, tmp_path / "none"):
        slack = Slack(path)
        slack.blank()
        assert slack.note is None
    assert (tmp_path / "chroma.sqlite3").read_bytes() == SECRET


def test_a_file_is_looked_at_again_only_after_it_changed(tmp_path: Path) -> None:
    folder, still = craft(tmp_path, 10), craft(tmp_path, 0, "still")
    slack = Slack(tmp_path)
    slack.blank()
    (still / LENGTHS).write_bytes(b"\2" * ROOM * 4)
    (folder / VECTORS).write_bytes(b"\2" * ROOM * SIZE)
    os.utime(folder / VECTORS, ns=(1, 1))
    slack.blank_changed()
    assert (folder / VECTORS).read_bytes() == (b"\2" * 10 * SIZE).ljust(ROOM * SIZE, b"\0")
    assert (still / LENGTHS).read_bytes() == b"\2" * ROOM * 4
    slack.blank()
    assert not any((still / LENGTHS).read_bytes())


# Chroma's own files


def index_of(home: Path) -> ChromaIndex:
    return ChromaIndex(open_client(Settings(home=home, shards=2, lock_timeout=0), "0123"), 2, DIM)


def asked(index: ChromaIndex) -> list[list[tuple[str, float]]]:
    return index.query(ANA, VECTORS_OF_TEN[:5] + 0.1, 7)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 120], ids=["queued", "synced"])
def test_a_home_with_freed_memory_heals_when_opened_and_answers_as_before(
    tmp_path: Path, rounds: int
) -> None:
    """As a killed process leaves it. Of ten entries, only after 1,000 writes anything is in the files."""
    index = index_of(tmp_path)
    items = [new_entry(ANA, "raw", f"text {n}", ("D1:1",), status="active") for n in range(10)]
    pairs = list(zip(items, VECTORS_OF_TEN, strict=True))
    for _ in range(rounds):
        index.upsert(pairs, 50)
    before = asked(index)
    index.close()
    (vectors,) = (tmp_path / "chroma").rglob(VECTORS)
    written = vectors.read_bytes()
    used = len(written.rstrip(b"\0"))
    assert (used > 0) == (rounds > 1)
    with vectors.open("r+b") as file:
        file.seek(-1_000, os.SEEK_END)
        file.write((SECRET * 1_000)[:1_000])
    index = index_of(tmp_path)
    assert vectors.read_bytes() == written
    assert asked(index) == before
    index.scrub()
    assert asked(index) == before
    assert index.note is None
    index.close()
    assert vectors.read_bytes() == written


def test_files_of_unknown_layout_are_noted_until_they_are_gone(tmp_path: Path) -> None:
    (craft(tmp_path / "chroma", 10) / HEADER).write_bytes(b"")
    index = index_of(tmp_path)
    assert "the layout of segment is not known" in str(index.note)
    index.scrub()
    assert index.note is None
    index.close()


def test_the_doctor_names_files_of_unknown_layout_and_a_rebuild_removes_them(tmp_path: Path) -> None:
    with open_bank(tmp_path) as bank:
        bank.stage_turns(ANN, [said(1)])
        bank.commit_session(ANN)
        (craft(tmp_path / "chroma", 10) / HEADER).write_bytes(b"")
        assert "the layout of segment is not known" in bank.check()["operator_note"]
        bank.rebuild()
        assert bank.check()["operator_note"] is None


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.chroma.client import open_client
from memcycle.stores.chroma.index import ChromaIndex
from memcycle.stores.chroma.files import Slack

home, raw = Path(sys.argv[1]), sys.argv[2] == "raw"
if raw:
    Slack.blank = Slack.blank_changed = lambda self: None
scope = Scope(user="ana", session="1")

def freed(step):
    files = [path for path in (home / "chroma").glob("*/*") if path.is_file()]
    print(step, len(files), sum(path.read_bytes().count(b"\\x5a" * 4) for path in files))

def put(index, n):
    items = [new_entry(scope, "raw", f"text {i}", ("D1:1",), status="active") for i in range(n)]
    index.upsert([(item, np.eye(1, 32, i % 32, dtype="f4")[0]) for i, item in enumerate(items)], 500)

def open_():
    return ChromaIndex(open_client(Settings(home=home, shards=2, lock_timeout=0), "0123"), 2, 32)

index = open_()
put(index, 3); freed("made")
index.query(scope, np.eye(1, 32, dtype="f4"), 2); freed("asked")
index.drop_shards([index.shard_of(scope)]); put(index, 3); index.scrub(); freed("scrubbed")
index.query(scope, np.eye(1, 32, dtype="f4"), 2); freed("asked-again")
index.close(); freed("closed")
index = open_()
index.query(scope, np.eye(1, 32, dtype="f4"), 2); freed("reopened")
for _ in range(12): put(index, 90)
freed("synced")
put(index, 1500); freed("grown")
index.close(); freed("closed-again")
"""


def freed_bytes(home: Path, how: str) -> dict[str, int]:
    """How much freed memory the files hold after each step, in a process whose allocator marks it."""
    marked = {**os.environ, "MALLOC_PERTURB_": "165"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), how],
        capture_output=True,
        text=True,
        check=False,
        env=marked,
    )
    assert done.returncode == 0, done.stderr
    steps = {
        name: (int(files), int(found)) for name, files, found in map(str.split, done.stdout.splitlines())
    }
    assert all(files for files, _ in steps.values())
    return {name: found for name, (_, found) in steps.items()}


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="marks freed memory through glibc's allocator")
def test_chroma_leaves_no_freed_memory_in_its_files(tmp_path: Path) -> None:
    assert set(freed_bytes(tmp_path / "ours", "ours").values()) == {0}
    # If this fails, Chroma no longer writes it, and the module may go.
    assert freed_bytes(tmp_path / "raw", "raw")["made"] > 0
