"""SECURITY.md names tests; each of them is there, under that name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)))


def test_there_are_claims():
    assert len(NAMED) > 30


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path, name):
    source = (ROOT / path).read_text(encoding="utf-8")
    assert not name or re.search(rf"^(?:async )?def {name}\(", source, re.MULTILINE)


@pytest.mark.parametrize("part", re.split(r"^## ", TEXT, flags=re.MULTILINE)[2:])
def test_each_part_says_what_is_not_defended_and_names_tests(part):
    assert "*Not defended:*" in part, part.splitlines()[0]
    assert "`tests/" in part, part.splitlines()[0]
