"""Who comes from another memory package finds its parts under the names that the page gives."""

import re
from pathlib import Path

import memcycle
from memcycle import integrations

PAGE = (Path(__file__).parents[2] / "docs/how-to/tools.md").read_text("utf-8")


def test_each_name_given_for_another_packages_is_there():
    table = PAGE.partition("| there | here |\n|---|---|\n")[2].partition("\n\n")[0]
    here = [row.split(" | ")[1] for row in table.splitlines()]
    names = set(re.findall(r"\b(?:build_\w+|embed|Memory\w*|memory_\w+)\b", " ".join(here)))
    assert {"MemoryMiddleware", "MemoryRetriever", "memory_tools", "memory_instructions", "embed"} <= names
    for name in names:
        assert any(hasattr(module, name) for module in (memcycle, integrations)), name
