"""Products in temporary homes, closed when the test is over; and a table of the cases at the end of a run."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cases.adapter import Product

CASES = [f"A{n:02d}" for n in range(1, 26)]
_CASE = re.compile(r"test_(a\d\d)_")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "argued(why): in which point, and why, this product does otherwise than the case expects"
    )


@pytest.fixture(autouse=True)
def _noted(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """The case and its argument go with the report, so that the table can be made wherever it was run."""
    found = _CASE.match(request.node.name)
    if found:
        record_property("case", found[1].upper())
    for marker in request.node.iter_markers("argued"):
        record_property("argued", marker.args[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a case: passed, argued (passed, with what it does otherwise) or failed, and its tests."""
    reports = defaultdict(list)
    for outcome in ("passed", "failed", "error", "xfailed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            told = dict(getattr(report, "user_properties", ()))
            if "case" in told and (report.when == "call" or outcome != "passed"):
                reports[told["case"]].append((outcome, told.get("argued")))
    if not reports:
        return
    terminalreporter.section("cases")
    for case in CASES:
        terminalreporter.write_line(f"{case}  {_verdict(reports.get(case, []))}")
    terminalreporter.write_line(
        f"{sum(_holds(reports.get(case, [])) for case in CASES)} of {len(CASES)} hold"
    )


def _holds(found: list[tuple[str, str | None]]) -> bool:
    return bool(found) and all(outcome == "passed" for outcome, _ in found)


def _verdict(found: list[tuple[str, str | None]]) -> str:
    if not found:
        return "not run"
    argued = [why for _, why in found if why]
    word = "FAILED" if not _holds(found) else "argued" if argued else "passed"
    tests = f"{sum(outcome == 'passed' for outcome, _ in found):>3} of {len(found)} tests"
    return f"{word}  {tests}" + (f"  {argued[0]}" if argued else "")


@pytest.fixture
def product(tmp_path) -> Iterator[Callable[..., Product]]:
    made: list[Product] = []

    def make(**given: Any) -> Product:
        made.append(Product(tmp_path / f"home{len(made)}", **given))
        return made[-1]

    yield make
    for one in made:
        one.close()
