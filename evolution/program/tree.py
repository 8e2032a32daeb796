"""A tree of versions: what each came from, how it did, which is grown next (MemPro, arXiv 2606.00619)."""

from collections.abc import Iterator, Sequence
from math import fsum
from pathlib import Path
from typing import Any, Literal

from memcycle.agents.diagnoser import Value
from memcycle.core.errors import BadInput
from memcycle.core.jsonl import read_object
from memcycle.core.scope import Data

Standing = Literal["accepted", "side branch", "discarded"]
FILE = "tree.json"
GAIN, BROKEN, BREADTH, CHILD = 0.5, 0.2, 0.02, 0.02
"""What counts beside a version's own score when one is chosen to grow: its gain over its parent; against it
the share of questions it broke; the share of categories that gained; against it each child it has."""


class Node(Data):
    """A version in the tree.

    Attributes:
        number: In the order they were made, the root 0. folder: name of its folder.
        edit: What it changed, by path. direction: the failures this answers. why: the reasons.
        train, guard: Its scores, 0 to 1. categories: by category of training questions.
        fixed, broken: Training questions that do better, and worse, than under the parent.
        assessment: In words what came of it.
        tokens: Of evidence a training question, in the mean. calls: of models, for both splits.
    """

    number: int
    parent: int | None = None
    version: str
    folder: str
    standing: Standing
    edit: dict[str, Value] = {}
    direction: str = ""
    why: tuple[str, ...] = ()
    train: float
    guard: float
    categories: dict[str, float] = {}
    fixed: int = 0
    broken: int = 0
    asked: int = 0
    assessment: str = ""
    tokens: float = 0.0
    calls: int = 0

    @property
    def score(self) -> float:
        """The mean of both splits that a tree may look at."""
        return (self.train + self.guard) / 2


class Tree(Data):
    """All versions, in the order they were made; none is ever taken out."""

    nodes: tuple[Node, ...] = ()

    @classmethod
    def load(cls, folder: Path) -> "Tree":
        """The tree in the folder of an evolution.

        Raises:
            BadInput: there is none.
        """
        if not (folder / FILE).is_file():
            raise BadInput(f"{folder} holds no {FILE}: `memcycle program evolve` grows a tree there")
        return cls.model_validate(read_object(folder / FILE))

    def with_node(self, node: Node) -> "Tree":
        """This tree with one more version."""
        return Tree(nodes=(*self.nodes, node))

    def parent(self, node: Node) -> Node | None:
        """What a version was made from."""
        return None if node.parent is None else self.nodes[node.parent]

    def children(self, node: Node) -> list[Node]:
        """What was made from a version."""
        return [one for one in self.nodes if one.parent == node.number]

    def way(self, node: Node) -> list[Node]:
        """From the root to a version, both included."""
        above = self.parent(node)
        return [*(self.way(above) if above else ()), node]

    @property
    def best(self) -> Node:
        """The accepted version with the highest score on the guard split, of equals the first."""
        return max((one for one in self.nodes if one.standing == "accepted"), key=lambda one: one.guard)

    def find(self, named: str | None) -> Node:
        """The best version; or that of a number, or the beginning of one's version.

        Raises:
            BadInput: no such version, or several.
        """
        if named is None:
            return self.best
        found = [
            one for one in self.nodes if str(one.number) == named or one.version.startswith(named.casefold())
        ]
        exact = [one for one in found if str(one.number) == named]
        if len(exact or found) != 1:
            raise BadInput(
                f"{named!r} names {'no version' if not found else f'{len(found)} versions'} of this tree; "
                f"give a number from 0 to {len(self.nodes) - 1}"
            )
        return (exact or found)[0]

    def worth(self, node: Node) -> float:
        """How much a version promises as the base of the next."""
        above = self.parent(node)
        if above is None:
            gain, breadth = 0.0, 0.0
        else:
            gain = node.score - above.score
            gained = [node.categories[name] > value for name, value in above.categories.items()]
            breadth = sum(gained) / len(gained) if gained else 0.0
        terms = (
            node.score,
            GAIN * gain,
            -BROKEN * node.broken / max(node.asked, 1),
            BREADTH * breadth,
            -CHILD * len(self.children(node)),
        )
        return fsum(terms)

    def chosen(self, *, chain: bool = False) -> Node:
        """What the next version is made from: any that was not discarded, by its worth.

        Args:
            chain: The last accepted one instead, whatever it promises: the paper's ablation.
        """
        if chain:
            return [one for one in self.nodes if one.standing == "accepted"][-1]
        return max((one for one in self.nodes if one.standing != "discarded"), key=self.worth)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return self.model_dump(mode="json")


def lines(tree: Tree) -> Iterator[tuple[str, Node]]:
    """The tree as text: what stands before each version, and the version, parents before children."""

    def below(node: Node, before: str) -> Iterator[tuple[str, Node]]:
        own = tree.children(node)
        for child in own:
            last = child is own[-1]
            yield before + ("└─ " if last else "├─ "), child
            yield from below(child, before + ("   " if last else "│  "))

    yield "", tree.nodes[0]
    yield from below(tree.nodes[0], "")


_STYLES = {"accepted": "stroke:#2a7", "side branch": "stroke:#a80", "discarded": "stroke:#999,color:#999"}


def mermaid(tree: Tree) -> str:
    """The tree as a Mermaid flowchart, the best version drawn thick."""
    drawn = ["flowchart TD"]
    for node in tree.nodes:
        drawn.append(f'  v{node.number}["{node.number}: {node.guard:.3f}"]')
        if node.parent is not None:
            drawn.append(f'  v{node.parent} -->|"{node.direction}"| v{node.number}')
        thick = ",stroke-width:4px" if node == tree.best else ""
        drawn.append(f"  style v{node.number} {_STYLES[node.standing]}{thick}")
    return "\n".join(drawn) + "\n"


def edits_from(tree: Tree, node: Node) -> Sequence[Node]:
    """The versions whose edits a new one from this base should know: those on the way to it, and its own
    children."""
    return [*tree.way(node)[1:], *tree.children(node)]
