"""SECURITY.md names tests; each of them is there, under that name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)))


def test_there_are_claims():
    assert len(NAMED) > 30


def test_each_named_test_exists():
    missing = []
    for path, name in NAMED:
        source = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        if not source or (name and not re.search(rf"^(?:async )?def {name}\(", source, re.MULTILINE)):
            missing.append(f"{path}::{name}")
    assert missing == []


def test_each_part_says_what_is_not_defended_and_names_tests():
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[2:]:
        assert "*Not defended:*" in part, part.splitlines()[0]
        assert "`tests/" in part, part.splitlines()[0]
