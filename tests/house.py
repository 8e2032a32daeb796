"""The house measured: `python -m tests.house` prints its figures and fails where a limit is passed.

Rooms are the top-level folders, and the command line, which stands on all others. What counts is what is
installed (and `benchmarks`, apart): every non-empty Python file, each line of it. The longest chain is that
of modules loading each other; imports inside functions and for type checkers are counted in a figure beside.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOORS: Mapping[str, int] = {
    "core": 0,
    "prompts": 1,
    "agents": 2,
    "stores": 2,
    "graph": 3,
    "memcycle": 4,
    "evals": 5,
    "evolution": 6,
    "memcycle/cli": 7,
}
"""A room may import rooms of lower floors, and of its own; `agents` and `stores` do not know each other.

What measures and tunes memcycle does it through its public face, as a user would; only the command line
knows both.
"""
ROOMS = tuple(FLOORS)

LIMITS: Mapping[str, int] = {
    # Once 36,000: words at once in every session, several processes on one home, files of other programs,
    # logs in exports, a user's own days and calendar, messages and replies of any size and make need more.
    # Requests to forget, and what a change bears on, are told by their words in six languages; evidence is
    # told from small talk in as many. Sessions end by themselves: in graphs, for a scheduler, by command.
    # Arguments are refused by name. Words are written before anything is asked, once however often given, and
    # anew when edited. Roles share calls in the lean profile. Calls and tokens are held to a budget. What
    # a search counted anew is kept, or found by an index. A find that bears on nothing is not shown.
    # Versions of the program are folders, and grow as a tree; files of other programs are read as chats;
    # a page shows memory.
    "installed lines": 41_500,
    "benchmark lines": 2_500,
    "modules": 215,
    "longest chain": 18,
    "classes over files": 0,
    "imports upwards": 0,
    "import cycles": 0,
}
SHORT = 60
"""A file under this many lines is named: it may belong to the one it serves."""


@dataclass(frozen=True)
class Module:
    """One file: its dotted name, room, lines, and what it imports when it is loaded."""

    name: str
    room: str
    path: Path
    lines: int
    imports: frozenset[str]
    late: frozenset[str]
    """What it names only inside functions or for type checkers."""
    bases: tuple[tuple[str, str], ...]
    """Pairs (class, dotted name of a base that is ours)."""


@dataclass(frozen=True)
class House:
    """All modules of the installed packages, and the lines of the benchmarks beside them."""

    modules: Mapping[str, Module]
    benchmark_lines: int = field(default=0)

    def lines(self, room: str) -> int:
        """Lines of a room."""
        return sum(one.lines for one in self.modules.values() if one.room == room)

    def figures(self) -> dict[str, int]:
        """What is limited, by name."""
        return {
            "installed lines": sum(one.lines for one in self.modules.values()),
            "benchmark lines": self.benchmark_lines,
            "modules": len(self.modules),
            "longest chain": len(self.chain()),
            "classes over files": len(self.stacked()),
            "imports upwards": len(self.upwards()),
            "import cycles": len(self.cycles()),
        }

    def chain(self, *, late: bool = False) -> list[str]:
        """The longest way down from module to module; a cycle counts with all its modules.

        Args:
            late: Also by imports inside functions and for type checkers.
        """
        knots = {name: knot for knot in self._knots(late=late) for name in knot}

        @cache
        def below(knot: tuple[str, ...]) -> tuple[str, ...]:
            further = {knots[to] for name in knot for to in self._down(name, late=late)} - {knot}
            return knot + max((below(one) for one in further), key=len, default=())

        return list(max((below(knot) for knot in set(knots.values())), key=len, default=()))

    def cycles(self) -> list[tuple[str, ...]]:
        """Groups of modules that import each other."""
        return [knot for knot in self._knots(late=False) if len(knot) > 1]

    def stacked(self) -> list[tuple[str, str, str]]:
        """Classes that are the only heir of a class in another file: one class that was cut in two.

        A base that several classes stand on, an error, a model or a protocol, is shared on purpose.
        """
        heirs: dict[str, list[tuple[str, str]]] = {}
        for one in self.modules.values():
            for name, base in one.bases:
                heirs.setdefault(base, []).append((one.name, name))
        return sorted(
            (*only[0], base)
            for base, only in heirs.items()
            if len(only) == 1 and base.rpartition(".")[0] != only[0][0]
        )

    def upwards(self) -> list[tuple[str, str]]:
        """Imports of a higher floor, or between two rooms of one floor."""
        return sorted(
            (one.name, to)
            for one in self.modules.values()
            for to in one.imports
            if self.modules[to].room != one.room and FLOORS[self.modules[to].room] >= FLOORS[one.room]
        )

    def foreign_bases(self) -> list[tuple[str, str, str]]:
        """Classes with a base in another room's file."""
        return sorted(
            (one.name, name, base)
            for one in self.modules.values()
            for name, base in one.bases
            if self.modules[base.rpartition(".")[0]].room != one.room
        )

    def short(self) -> list[tuple[int, str]]:
        """Files of fewer than `SHORT` lines, shortest first, but for `__init__` and `__main__`."""
        return sorted(
            (one.lines, one.name)
            for one in self.modules.values()
            if one.lines < SHORT and not one.path.name.startswith("__")
        )

    def _down(self, name: str, *, late: bool) -> frozenset[str]:
        one = self.modules[name]
        return one.imports | one.late if late else one.imports

    def _knots(self, *, late: bool) -> list[tuple[str, ...]]:
        """Strongly connected groups (Tarjan)."""
        order: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        found: list[tuple[str, ...]] = []

        def visit(name: str) -> None:
            order[name] = low[name] = len(order)
            stack.append(name)
            for to in sorted(self._down(name, late=late)):
                if to not in order:
                    visit(to)
                    low[name] = min(low[name], low[to])
                elif to in stack:
                    low[name] = min(low[name], order[to])
            if low[name] == order[name]:
                at = stack.index(name)
                found.append(tuple(sorted(stack[at:])))
                del stack[at:]

        for name in sorted(self.modules):
            if name not in order:
                visit(name)
        return found


def measure(root: Path = ROOT) -> House:
    """The house as its files stand."""
    paths = {
        _dotted(path.relative_to(root)): path
        for room in ROOMS
        if "/" not in room
        for path in _files(root / room)
    }
    modules = {name: _module(name, path, root, set(paths)) for name, path in paths.items()}
    bench = sum(_count(path) for path in _files(root / "benchmarks"))
    return House(modules, bench)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if _count(path))


def _count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    parts = parts if parts[0] == "memcycle" else ("memcycle", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(name: str, path: Path, root: Path, known: set[str]) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    loading = [node for node in _loaded(tree.body) if isinstance(node, ast.Import | ast.ImportFrom)]
    bound = {
        one.asname or one.name: f"{node.module}.{one.name}"
        for node in loading
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    imports = _targets(loading, known) - {name}
    every = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    late = _targets(every, known) - imports - {name}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bound |= {node.name: f"{name}.{node.name}" for node in classes}
    bases = tuple(
        (node.name, bound[base])
        for node in classes
        for base in (_name(one) for one in node.bases)
        if bound.get(base, "").rpartition(".")[0] in known
    )
    folder = path.relative_to(root).parent.as_posix()
    room = max((one for one in ROOMS if f"{folder}/".startswith(f"{one}/")), key=len)
    if name == "memcycle.__main__":  # `python -m memcycle`, which is the command line
        room = "memcycle/cli"
    return Module(name, room, path, _count(path), imports, late, bases)


def _targets(nodes: Iterable[ast.Import | ast.ImportFrom], known: set[str]) -> frozenset[str]:
    """The modules of the house that these statements name."""
    named: set[str] = set()
    for node in nodes:
        for one in node.names:
            full = f"{node.module}.{one.name}" if isinstance(node, ast.ImportFrom) else one.name
            named.add(full if full in known or isinstance(node, ast.Import) else str(node.module))
    return frozenset(named & known)


def _loaded(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is loaded."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _loaded(getattr(node, inner, []))


def _name(base: ast.expr) -> str:
    return _name(base.value) if isinstance(base, ast.Subscript) else ast.unparse(base)


def broken(figures: Mapping[str, int]) -> list[str]:
    """The limits that are passed, in words."""
    return [
        f"{name}: {figures[name]:,}, at most {most:,}"
        for name, most in LIMITS.items()
        if figures[name] > most
    ]


def main() -> int:
    """Prints the figures; 1 where a limit is passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument("--files", action="store_true", help="each file with its lines")
    chosen = parser.parse_args()
    house = measure()
    figures = house.figures()
    too_much = broken(figures)
    if chosen.json:
        rooms = {room: house.lines(room) for room in ROOMS}
        report = {"figures": figures, "rooms": rooms, "chain": house.chain(), "broken": too_much}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        return 1 if too_much else 0
    out = [f"{'room':<12}{'modules':>9}{'lines':>9}"]
    for room in ROOMS:
        count = sum(one.room == room for one in house.modules.values())
        out.append(f"{room:<12}{count:>9}{house.lines(room):>9,}")
    out += ["", *(f"{name:<20}{figures[name]:>8,}   at most {most:,}" for name, most in LIMITS.items())]
    late = len(house.chain(late=True))
    out += [
        "",
        f"longest chain of imports ({late} with those inside functions and for type checkers):",
        *(f"  {name}" for name in house.chain()),
    ]
    for title, rows in (
        ("classes over files", house.stacked()),
        ("imports upwards", house.upwards()),
        ("import cycles", house.cycles()),
        ("bases in another room's file", house.foreign_bases()),
        (f"files under {SHORT} lines", house.short()),
    ):
        out += ["", f"{title}: {len(rows)}", *("  " + "  ".join(map(str, row)) for row in rows)]
    if chosen.files:
        ordered = sorted(house.modules.values(), key=lambda one: -one.lines)
        out += ["", *(f"{one.lines:>6}  {one.name}" for one in ordered)]
    out += ["", *(f"over the limit: {one}" for one in too_much)] if too_much else []
    sys.stdout.write("\n".join(out) + "\n")
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
