"""What a developer's own tools see of an editable install."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN = """
from memcycle import Memory

def facts(memory: Memory) -> list[str]:
    return [one.text for one in memory.memories(granularity="facts")]

async def answer(memory: Memory) -> str | None:
    return (await memory.aask("Where?", k="3")).answer
"""


@pytest.mark.slow
def test_mypy_follows_an_editable_install_from_a_project_of_ones_own(tmp_path):
    venv, project = tmp_path / "venv", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", packages, "-e", ROOT], check=True, cwd=tmp_path)
    project.mkdir()
    (project / "mine.py").write_text(OWN)
    mypy = [sys.executable, "-m", "mypy", "--no-incremental", "--python-executable", venv / "bin" / "python"]
    told = subprocess.run([*mypy, "mine.py"], cwd=project, capture_output=True, text=True, check=False).stdout
    assert 'Argument "granularity" to "memories" of "Memory"' in told
    assert 'Argument "k" has incompatible type "str"' in told
    assert "Found 2 errors in 1 file" in told
