"""A line plot of shares as an SVG document, readable without colours and without eyes."""

from collections.abc import Sequence
from html import escape
from math import log10
from typing import NamedTuple

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 64, 220, 48, 56
_COLOURS = ("#0b5fa5", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#be185d", "#0e7490", "#4b5563")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "4 2 1 2", "3 6")
_CORNERS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
)
"""Marks in turn: a circle, a square, a triangle, a diamond."""


class Series(NamedTuple):
    """A named line of (x, share from 0 to 1); a single point is a mark alone."""

    name: str
    points: tuple[tuple[float, float], ...]


class Axis(NamedTuple):
    """A horizontal axis from `low` to `high`; a logarithmic one marks doublings of 125, else each unit."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], *, log: bool) -> "Axis":
        """An axis with room beside the values; an even one begins at 0."""
        low, high = min(values, default=100.0), max(values, default=1000.0)
        if log:
            return cls(low / 1.15, max(high, low * 2) * 1.15, log)
        return cls(-0.03 * max(high, 1.0), 1.03 * max(high, 1.0), log)

    def place(self, value: float) -> float:
        """Where a value stands, in pixels."""
        if self.log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[float]:
        """Values to be marked."""
        values = (
            [125.0 * 2**power for power in range(20)] if self.log else map(float, range(int(self.high) + 1))
        )
        return [value for value in values if self.low <= value <= self.high]


def line_plot(series: Sequence[Series], *, title: str, x_label: str, y_label: str, log: bool = True) -> str:
    """An SVG document, the first series drawn boldly."""
    drawn = [one for one in series if one.points]
    axis = Axis.of([x for one in drawn for x, _ in one.points], log=log)
    described = ". ".join(f"{one.name}: {', '.join(map(_said, one.points))}" for one in drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title description" '
        'font-family="system-ui, Arial, DejaVu Sans, sans-serif" font-size="13">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(described)}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 26, title, size=16, weight="bold"),
        *_grid(axis, x_label, y_label),
    ]
    # The bold one last, so that it lies on top.
    for at in reversed(range(len(drawn))):
        parts.extend(_line(drawn[at], axis, at))
    for at, one in enumerate(drawn):
        parts.extend(_legend(one, at))
    return "\n".join([*parts, "</svg>", ""])


def _said(point: tuple[float, float]) -> str:
    value, share = point
    return f"{share:.3f} at {value:,.0f}"


def _height(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _grid(axis: Axis, x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
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


def _line(series: Series, axis: Axis, at: int) -> list[str]:
    places = [(axis.place(x), _height(share)) for x, share in series.points]
    route = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = [
        f"<g><title>{escape(series.name)}: {_said(point)}</title>{_mark(x, y, at)}</g>"
        for (x, y), point in zip(places, series.points, strict=True)
    ]
    return [f'<polyline points="{route}" fill="none" {_stroke(at)}/>', *marks] if len(places) > 1 else marks


def _legend(series: Series, at: int) -> list[str]:
    x, y = WIDTH - RIGHT + 18, TOP + 14 + 24 * at
    line = [f'<path d="M{x} {y}h34" fill="none" {_stroke(at)}/>'] if len(series.points) > 1 else []
    name = _text(x + 42, y + 4, series.name, weight="bold" if at == 0 else "normal")
    return [*line, _mark(x + 17, y, at), name]


def _stroke(at: int) -> str:
    dash = _DASHES[at % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{_COLOURS[at % len(_COLOURS)]}" stroke-width="{3 if at == 0 else 1.6}"{dashed}'


def _mark(x: float, y: float, at: int) -> str:
    size, colour = (5.0 if at == 0 else 4.0), _COLOURS[at % len(_COLOURS)]
    corners = _CORNERS[at % len(_CORNERS)]
    if not corners:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="#111827">{escape(text)}</text>'
    )
