"""The tree as data: what is chosen, what is best, how it is drawn."""

import pytest

from memcycle.core.errors import BadInput
from memcycle.evolution.program.nodes import standing_of
from memcycle.evolution.program.tree import Node, Tree, lines, mermaid
from tests.evolution.made_evolution import task


def node(number, parent=None, *, standing="accepted", train=0.5, guard=0.5, **fields):
    return Node(
        number=number,
        parent=parent,
        version=f"{number:012x}",
        folder=f"{number:03}",
        standing=standing,
        train=train,
        guard=guard,
        **fields,
    )


def tree(*nodes):
    return Tree(nodes=nodes)


@pytest.mark.parametrize(
    ("nodes", "chosen"),
    [
        ([node(0)], 0),
        ([node(0), node(1, 0, train=0.6)], 1),
        ([node(0), node(1, 0, train=0.9, standing="discarded")], 0),
        ([node(0), node(1, 0, train=0.6, standing="side branch")], 1),
        # What it gained, it gained by breaking others.
        ([node(0), node(1, 0, train=0.52, broken=40, asked=100)], 0),
        # It was tried five times, another never.
        (
            [node(0), node(1, 0, train=0.6), node(2, 0, train=0.59)]
            + [node(n, 1, standing="discarded") for n in range(3, 8)],
            2,
        ),
        # Of equal gains the broader one.
        (
            [
                node(0, categories={"a": 0.5, "b": 0.5}),
                node(1, 0, train=0.6, categories={"a": 0.7, "b": 0.5}),
                node(2, 0, train=0.6, categories={"a": 0.6, "b": 0.6}),
            ],
            2,
        ),
    ],
)
def test_what_promises_most_is_grown(nodes, chosen):
    assert tree(*nodes).chosen().number == chosen


def test_a_chain_goes_on_from_the_last_accepted_version():
    grown = tree(node(0), node(1, 0, train=0.9), node(2, 1, train=0.4), node(3, 2, standing="side branch"))
    assert grown.chosen(chain=True).number == 2


def test_the_best_is_accepted_and_highest_on_the_guard_split():
    grown = tree(
        node(0), node(1, 0, guard=0.7), node(2, 0, guard=0.7), node(3, 0, guard=0.9, standing="side branch")
    )
    assert grown.best.number == 1
    assert [one.number for one in grown.way(grown.nodes[2])] == [0, 2]


@pytest.mark.parametrize(
    ("guard", "train", "categories", "standing"),
    [
        (0.005, 0.0, {}, "accepted"),
        (0.02, -0.1, {}, "accepted"),
        (0.004, 0.01, {}, "side branch"),
        (-0.01, 0.01, {}, "side branch"),
        (0.0, 0.0, {"temporal": 0.02}, "side branch"),
        (0.0, 0.0, {"temporal": 0.004}, "discarded"),
        (-0.011, 0.2, {"temporal": 0.2}, "discarded"),
        (0.0, -0.1, {}, "discarded"),
    ],
)
def test_what_becomes_of_a_version(guard, train, categories, standing):
    assert standing_of(guard, train, categories, task()) == standing


def test_a_version_is_named_by_number_or_by_its_first_letters():
    grown = tree(node(0), node(1, 0, guard=0.7), node(17, 1))
    assert grown.find(None).number == 1
    assert grown.find("1").number == 1
    assert grown.find("000000000011").number == 17
    for named, words in (("x", "no version"), ("0000", "3 versions")):
        with pytest.raises(BadInput, match=words):
            grown.find(named)


def test_it_is_drawn_parents_first():
    grown = tree(node(0), node(1, 0), node(2, 0, standing="discarded"), node(3, 1))
    assert [(before, one.number) for before, one in lines(grown)] == [
        ("", 0),
        ("├─ ", 1),
        ("│  └─ ", 3),
        ("└─ ", 2),
    ]
    chart = mermaid(grown)
    assert chart.startswith("flowchart TD\n")
    assert "v1 -->" in chart
    assert chart.count("stroke-width:4px") == 1


def test_a_folder_without_a_tree_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"tree\.json"):
        Tree.load(tmp_path)
