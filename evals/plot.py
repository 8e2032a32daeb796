"""A line plot as SVG, readable without colour and by a screen reader; nothing but text is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10
from typing import Protocol

Point = tuple[float, float]
"""A place on the horizontal axis (tokens, above 0, or a round) and a share from 0 to 1."""

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 64, 220, 48, 56
_COLOURS = ("#0b5fa5", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#be185d", "#0e7490", "#4b5563")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "4 2 1 2", "3 6")
_MARKS = ("circle", "square", "triangle", "diamond")
_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
}
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Series:
    """A named line; a single point is a mark alone."""

    name: str
    points: tuple[Point, ...]


class Axis(Protocol):
    """A horizontal axis."""

    def place(self, value: float) -> float:
        """Where a value stands, in pixels."""

    def ticks(self) -> list[float]:
        """Values to be marked."""


@dataclass(frozen=True)
class Rounds:
    """An even axis of rounds, from 0 to the last, 1 or more."""

    last: float

    def place(self, value: float) -> float:
        """Where a round stands, in pixels."""
        return LEFT + (0.03 + 0.94 * value / self.last) * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[float]:
        """Every round."""
        return [float(number) for number in range(int(self.last) + 1)]


def line_plot(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    axis: Axis | None = None,
    unit: str = "tokens",
) -> str:
    """An SVG document: shares over tokens, the first series drawn boldly.

    Args:
        axis: By default a logarithmic one of tokens. unit: what it counts, in words.
    """
    drawn = [one for one in series if one.points]
    axis = axis or _Axis.over([x for one in drawn for x, _ in one.points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title description" '
        'font-family="system-ui, Arial, DejaVu Sans, sans-serif" font-size="13">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(_told(drawn))}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 26, title, size=16, weight="bold"),
        *_grid(axis, x_label, y_label),
    ]
    # The bold one last, so that it lies on top.
    for at in reversed(range(len(drawn))):
        parts.extend(_line(drawn[at], axis, at, unit))
    for at, one in enumerate(drawn):
        parts.extend(_legend(one, at))
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True)
class _Axis:
    """The logarithmic axis of tokens, from its least to its greatest value."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "_Axis":
        low, high = min(values, default=100.0), max(values, default=1000.0)
        return cls(low / 1.15, max(high, low * 2) * 1.15)

    def place(self, value: float) -> float:
        share = log10(value / self.low) / log10(self.high / self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[float]:
        """The doublings of 125 between the ends."""
        values = [125.0 * 2**power for power in range(20)]
        return [value for value in values if self.low <= value <= self.high]


def _height(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _grid(axis: Axis, x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for share in _TICKS:
        y = _height(share)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#e5e7eb"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{share:.1f}", anchor="end"))
    for value in axis.ticks():
        x = axis.place(value)
        parts.append(f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#e5e7eb"/>')
        parts.append(_text(x, bottom + 18, f"{value:,.0f}", anchor="middle"))
    middle = (TOP + bottom) / 2
    return [
        *parts,
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#374151"/>',
        _text((LEFT + right) / 2, HEIGHT - 14, x_label, anchor="middle"),
        f'<g transform="rotate(-90 18 {middle:.0f})">{_text(18, middle, y_label, anchor="middle")}</g>',
    ]


def _line(series: Series, axis: Axis, at: int, unit: str) -> list[str]:
    places = [(axis.place(x), _height(y)) for x, y in series.points]
    route = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    line = f'<polyline points="{route}" fill="none" {_stroke(at)}/>'
    marks = [
        f"<g><title>{escape(series.name)}: {share:.3f} at {_counted(value, unit)}</title>"
        f"{_mark(x, y, at)}</g>"
        for (x, y), (value, share) in zip(places, series.points, strict=True)
    ]
    return [line, *marks] if len(places) > 1 else marks


def _legend(series: Series, at: int) -> list[str]:
    x, y = WIDTH - RIGHT + 18, TOP + 14 + 24 * at
    line = [f'<path d="M{x} {y}h34" fill="none" {_stroke(at)}/>'] if len(series.points) > 1 else []
    return [
        *line,
        _mark(x + 17, y, at),
        _text(x + 42, y + 4, series.name, weight="bold" if at == 0 else "normal"),
    ]


def _stroke(at: int) -> str:
    dash = _DASHES[at % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{_colour(at)}" stroke-width="{3 if at == 0 else 1.6}"{dashed}'


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]


def _mark(x: float, y: float, at: int) -> str:
    size, colour = (5.0 if at == 0 else 4.0), _colour(at)
    shape = _MARKS[at % len(_MARKS)]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in _CORNERS[shape])
    return f'<polygon points="{points}" fill="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="#111827">{escape(text)}</text>'
    )


def _counted(value: float, unit: str) -> str:
    return f"round {value:.0f}" if unit == "round" else f"{value:,.0f} {unit}"


def _told(series: Sequence[Series]) -> str:
    """The plot in words."""
    lines = (
        f"{one.name}: " + ", ".join(f"{share:.3f} at {value:,.0f}" for value, share in one.points)
        for one in series
    )
    return ". ".join(lines)
