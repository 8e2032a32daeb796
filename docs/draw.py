"""Draws the graphs into `docs/graphs/`: `python docs/draw.py`. Needs Graphviz's `dot`.

Each picture holds the source it was made from, by which a test sees whether its graph has changed since.
"""

import subprocess
from pathlib import Path

from langchain_core.runnables.graph import Edge

import memcycle

NAMES = ("memory", "remember", "recall", "session")
FOLDER = Path(__file__).parent / "graphs"
STYLE = (
    'node [shape=box, style="rounded,filled", fillcolor="#f2f0ff", color="#9370db", fontname="sans-serif"]',
    'edge [color="#555555", fontname="sans-serif", fontsize=11]',
    'bgcolor="white"',
)


def source(name: str) -> str:
    """A graph in Graphviz's language, as it runs."""
    graph = getattr(memcycle, f"build_{name}")().get_graph()
    ends = [f'"{one}" [label="{one.strip("_")}", shape=ellipse]' for one in ("__start__", "__end__")]
    edges = sorted(
        f'"{one.source}" -> "{one.target}" [label="{one.data or ""}", style={_style(one)}]'
        for one in graph.edges
    )
    return "\n".join((f"digraph {name} {{", *STYLE, *ends, *edges, "}"))


def _style(edge: Edge) -> str:
    return "dashed" if edge.conditional else "solid"


def draw(name: str) -> None:
    """Writes the picture of a graph."""
    dot = source(name)
    made = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True)  # noqa: S607
    picture = made.stdout[made.stdout.index("<svg") :]
    (FOLDER / f"{name}.svg").write_text(f"<!-- {dot}\n-->\n{picture}", encoding="utf-8")


if __name__ == "__main__":
    for name in NAMES:
        draw(name)
