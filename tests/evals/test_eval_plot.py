"""The plot: well-formed, readable without eyes, and nothing in it but text."""

from xml.etree import ElementTree as ET

import pytest

from memcycle.evals.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Series, line_plot

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*series):
    return ET.fromstring(line_plot(series, title="Recall & <tokens>", x_label="tokens", y_label="share"))


def test_it_has_a_title_and_the_figures_in_words():
    root = drawn(Series("ours", ((250, 0.5), (1000, 0.75))), Series("<b>", ((250, 0.25),)))
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title description"
    assert root.find(f"{SVG}title").text == "Recall & <tokens>"
    assert root.find(f"{SVG}desc").text == "ours: 0.500 at 250, 0.750 at 1,000. <b>: 0.250 at 250"


def test_points_stand_within_the_axes_higher_shares_above():
    root = drawn(Series("ours", ((250, 0.0), (4000, 1.0))))
    [line] = root.iter(f"{SVG}polyline")
    (x1, y1), (x2, y2) = (tuple(map(float, pair.split(","))) for pair in line.get("points").split())
    assert LEFT < x1 < x2 < WIDTH - RIGHT
    assert (y1, y2) == (HEIGHT - BOTTOM, TOP)


def test_doublings_are_marked_evenly():
    root = drawn(Series("ours", ((250, 0.1), (2000, 0.2))))
    ticks = {text.text: float(text.get("x")) for text in root.iter(f"{SVG}text")}
    assert ticks["500"] - ticks["250"] == pytest.approx(ticks["2,000"] - ticks["1,000"], abs=0.2)


def test_lines_differ_without_colour():
    root = drawn(*(Series(f"way {n}", ((250, n / 10), (500, n / 10))) for n in range(8)))
    dashes = [line.get("stroke-dasharray") for line in root.iter(f"{SVG}polyline")]
    assert len(set(dashes)) == 8
    points = drawn(*(Series(f"way {n}", ((250, n / 10),)) for n in range(4)))
    shapes = {len((mark.get("points") or "").split()) for mark in points.iter() if mark.get("fill")}
    assert {0, 3, 4} <= shapes
    assert [text.text for text in root.iter(f"{SVG}text")][-8:] == [f"way {n}" for n in range(8)]


def test_a_single_point_and_nothing_at_all_can_be_drawn():
    root = drawn(Series("whole", ((15_000, 1.0),)), Series("empty", ()))
    assert not list(root.iter(f"{SVG}polyline"))
    assert len(list(root.iter(f"{SVG}circle"))) == 2  # the point and its legend
    assert drawn().find(f"{SVG}title") is not None
