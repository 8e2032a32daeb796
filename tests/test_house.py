"""The house keeps its limits, and the page that shows it names what is there."""

import ast
import re
from pathlib import Path

import pytest

from tests.house import LIMITS, ROOT, House, broken, measure

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::([\w.]+)`", PAGE)
WAYS = ("A turn", "A question", "A session's end", "A forget")


def _defined(tree: ast.Module) -> set[str]:
    names = {
        one.name
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    }
    for holder in tree.body:
        if isinstance(holder, ast.ClassDef):
            names |= {f"{holder.name}.{one.name}" for one in holder.body if isinstance(one, ast.FunctionDef)}
        if isinstance(holder, ast.Assign):
            names |= {one.id for one in holder.targets if isinstance(one, ast.Name)}
        if isinstance(holder, ast.AnnAssign) and isinstance(holder.target, ast.Name):
            names.add(holder.target.id)
    return names


def test_the_limits_hold():
    assert broken(measure().figures()) == []


def test_what_the_page_names_is_there():
    assert len(NAMED) > 30
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not (ROOT / path).is_file()
        or name not in _defined(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    ]
    files = [
        path for path in re.findall(r"`([\w/]+\.(?:py|md|json|toml))`", PAGE) if not (ROOT / path).exists()
    ]
    folders = [path for path in re.findall(r"`([\w/]+/)`", PAGE) if not (ROOT / path).is_dir()]
    assert (missing, files, folders) == ([], [], [])


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_short(way: str):
    part = PAGE.split(f"### {way}\n", 1)[1].split("\n#", 1)[0]
    stops = re.findall(r"^\d+\. .*::", part, flags=re.MULTILINE)
    assert 4 < len(stops) < 15


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= 150


def _tree(root: Path, files: dict[str, str]) -> House:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return measure(root)


def test_a_chain_is_counted_by_what_is_loaded(tmp_path: Path):
    files = {
        "core/a.py": "x = 1\n",
        "agents/b.py": "from memcycle.core.a import x\n",
        "graph/c.py": "from memcycle.agents import b\n",
        "memcycle/d.py": "def f():\n    from memcycle.graph import c\n",
    }
    found = _tree(tmp_path, files)
    assert found.chain() == ["memcycle.graph.c", "memcycle.agents.b", "memcycle.core.a"]
    assert len(found.chain(late=True)) == 4


def test_what_breaks_the_house_is_found(tmp_path: Path):
    files = {
        "core/a.py": "from memcycle.graph.c import y\nclass Base:\n    pass\n",
        "graph/c.py": "from memcycle.core.a import Base\ny = 1\nclass Cut(Base):\n    pass\n",
        "agents/b.py": "import memcycle.stores.s\n",
        "stores/s.py": "z = 1\n",
    }
    found = _tree(tmp_path, files)
    assert found.cycles() == [("memcycle.core.a", "memcycle.graph.c")]
    assert found.upwards() == [
        ("memcycle.agents.b", "memcycle.stores.s"),
        ("memcycle.core.a", "memcycle.graph.c"),
    ]
    assert found.stacked() == [("memcycle.graph.c", "Cut", "memcycle.core.a.Base")]
    told = broken(dict.fromkeys(LIMITS, 0) | {"modules": LIMITS["modules"] + 1})
    assert told == [f"modules: {LIMITS['modules'] + 1}, at most {LIMITS['modules']}"]
