"""Names and paths: what a person calls things never becomes a path, and links are not written through."""

import os
import re
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memcycle import MemcycleStore, Memory
from memcycle.cli.app import app
from memcycle.core.errors import MemcycleError
from tests.fakes import FakeEmbeddings

NASTY = (
    "../../out",
    "/tmp/out",
    "..",
    "C:\\out",
    "~",
    "a/b",
    "%00",
    "${HOME}",
    "`id`",
    "; rm -rf .",
    "x" * 500,
)


def tree(folder: Path) -> set[str]:
    """Names of all that lies below, but for those of Chroma's own."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    own = re.compile(r"outer/home/chroma/.*")
    return {name for name in names if not own.fullmatch(name)}


def test_no_name_becomes_a_path(tmp_path):
    home = tmp_path / "outer" / "home"
    with Memory.open(home, embeddings=FakeEmbeddings()) as memory:
        memory.add("I keep bees.", user="plain", session="plain")
        memory.end_session("plain", user="plain")
        before = tree(tmp_path)
        for name in NASTY:
            memory.add({"role": "user", "content": "I keep bees.", "name": name, "id": name}, user=name,
                       workspace=name, session=name)  # fmt: skip
            memory.end_session(name, user=name, workspace=name)
            with MemcycleStore(memory.bank) as store:
                store.put((name.replace(".", "_"),), name, {name: name})
            memory.export(user=name, workspace=name)
        after = tree(tmp_path)
    assert after == before
    assert {path.name for path in tmp_path.iterdir()} == {"outer"}


def test_a_new_home_is_its_owners_alone(tmp_path):
    with Memory.open(tmp_path / "home", embeddings=FakeEmbeddings()):
        assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_home_behind_a_link_is_one_home(tmp_path):
    """Two names of one folder are one store, not two writers of the same files."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    embeddings = FakeEmbeddings()
    with (
        Memory.open(tmp_path / "real", embeddings=embeddings) as one,
        Memory.open(tmp_path / "link" / ".." / "link", embeddings=embeddings) as two,
    ):
        assert two.bank is one.bank
        two.add("I keep bees.", user="ana")
        assert len(one.memories(user="ana", granularity="raw")) == 1


@pytest.mark.parametrize("kind", ["file", "dangling link", "link to a file", "device"])
def test_a_home_that_is_no_folder_is_refused_and_left_alone(tmp_path, kind):
    place, victim = tmp_path / "home", tmp_path / "victim"
    victim.write_text("mine")
    if kind == "file":
        place.write_text("mine")
    elif kind == "dangling link":
        place.symlink_to(tmp_path / "nowhere" / "deep" / "home")
        (tmp_path / "nowhere").write_text("no folder")
    elif kind == "link to a file":
        place.symlink_to(victim)
    else:
        place = Path(os.devnull)
    with pytest.raises(MemcycleError):
        Memory.open(place, embeddings=FakeEmbeddings())
    assert victim.read_text() == "mine"


def run(home: Path, *args: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [args[0], "--home", str(home), *args[1:]])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def home(tmp_path):
    with Memory.open(tmp_path / "home", embeddings=None) as memory:
        memory.add("I keep bees.", user="ana")
        memory.end_session(user="ana")
    return tmp_path / "home"


def test_an_export_replaces_a_link_and_does_not_write_through_it(home, tmp_path):
    victim, out = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    out.symlink_to(victim)
    run(home, "export", "--user=ana", "-o", str(out))
    assert victim.read_text() == "mine"
    assert "I keep bees." in out.read_text()
    assert not out.is_symlink()


def test_nor_through_one_laid_where_it_would_write_first(home, tmp_path):
    victim, out = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    for laid in (f".{out.name}.{os.getpid()}.part", f"{out.name}.part", f".{out.name}.part"):
        (tmp_path / laid).symlink_to(victim)
    run(home, "export", "--user=ana", "-o", str(out))
    assert victim.read_text() == "mine"
    assert "I keep bees." in out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_export_that_cannot_be_written_says_so(home, tmp_path):
    for where in "missing/out.jsonl", ".", "home/ledger.sqlite3/out":
        assert "cannot be written" in run(home, "export", "--user=ana", "-o", str(tmp_path / where), code=2)
    assert run(home, "memories", "--user=ana", "--json").strip() != "[]"


def test_the_command_line_takes_any_user_as_a_name(home, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    for name in (*NASTY, "-x"):
        assert run(home, "memories", f"--user={name}", "--json").strip() == "[]"
        run(home, "export", f"--user={name}")
    assert {path.name for path in tmp_path.iterdir()} == before
