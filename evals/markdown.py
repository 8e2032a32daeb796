"""Tables and numbers in Markdown."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, all columns but the first to the right."""
    lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(text: str) -> str:
    """Text as a cell of a table holds it."""
    return " ".join(text.split()).replace("|", "\\|")


def share(value: float | None) -> str:
    """A share; a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"


def whole(value: float | None) -> str:
    """A number without its fraction; a dash where there is none."""
    return "-" if value is None else f"{value:,.0f}"


def tenth(value: float | None) -> str:
    """A number to one place; a dash where there is none."""
    return "-" if value is None else f"{value:,.1f}"
