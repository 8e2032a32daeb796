"""A process without root's right to write everywhere, for tests of what may not be written."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, open_bank, said

NOBODY = 65534


def run_apart(file: str, function: str, *args: object) -> "subprocess.CompletedProcess[str]":
    """Runs a function of a test's file in a process of its own, with its arguments as text."""
    module = f"tests.{Path(file).parent.name}.{Path(file).stem}"
    program = f"import sys; from {module} import {function}; {function}(*sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that nobody can reach: pytest closes those it gives to all but its own user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def give_to_nobody(home: Path) -> None:
    """Makes the home nobody's, where root runs the tests."""
    if os.getuid() != 0:
        return
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)


def become_nobody() -> None:
    """Drops root's rights in this process. What it will import is loaded before: root's own may be closed."""
    with tempfile.TemporaryDirectory() as home, open_bank(Path(home)) as bank:
        bank.stage_turns(ANN, [said(1, "warm up")])
        bank.commit_session(ANN)
        bank.search(SearchRequest(scope=ANN, queries=(Query(text="warm"),), k=1))
        bank.mend()
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
