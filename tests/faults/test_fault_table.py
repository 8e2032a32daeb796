"""docs/faults.md and the tests it names."""

import ast
import re
from functools import cache
from pathlib import Path

from memcycle.stores.doctor import KINDS

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
HEAD = ["Fault", "What the user sees", "What is kept", "How it heals", "Tests"]
ABOUT_THE_TABLES = {"test_every_finding_has_a_test"}


def rows():
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TABLE.splitlines()
        if line.startswith("|") and not set(line) <= set("|-")
    ]
    return [row for row in cells if row != HEAD]


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_each_row_is_whole_and_its_tests_exist():
    assert len(rows()) > 40
    for row in rows():
        assert len(row) == len(HEAD), row[0]
        assert all(row[:3]), row[0]
        assert row[-1], row[0]
        for one in row[-1].split():
            path, _, name = one.partition("::")
            assert name in names_in(path), one


def test_each_fault_test_has_a_row():
    named = {one for row in rows() for one in row[-1].split()}
    there = {
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
        for name in names_in(path.relative_to(ROOT)) - ABOUT_THE_TABLES
    }
    assert there - named == set()


def test_each_finding_of_the_doctor_has_a_row():
    told = {name for row in rows() for name in re.findall(r"`(\w+)`", row[0])}
    assert set(KINDS) - told == set()
