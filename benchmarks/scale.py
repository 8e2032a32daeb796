"""How memcycle does as a home grows: bulk import, search, memory, disk and opening, at any number of entries.

    python -m benchmarks.scale --entries 100000 --users 1000

The home is made up (see `benchmarks.synthetic`) and temporary. Most users have about as many entries as
each other; the largest has a twentieth of all, at most 5,000. Their entries go in by `Bank.import_` within
`Bank.bulk`, as exported records read from a file.

Searches are those of `Bank.search` as it ships, the embedding of the query included: no question is asked
twice, so none is in the embedder's cache. Those of a group (the smallest users, those around the median, the
largest one) are asked in random order; each user's first one also reads the user's entries from the disk. The
largest user's first search, and a search after a write, are told apart as well.
"""

import json
import multiprocessing
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Literal, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.synthetic import START, Author
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, turn_id
from memcycle.stores.bank import Bank
from memcycle.stores.search.request import Query, SearchRequest

LARGEST_SHARE, LARGEST = 0.05, 5_000
"""Of all entries, and at most."""
USERS, SEARCHES, WRITES = 50, 4, 10
"""Users of a group and searches of each; searches after a write."""
MB = 1_000_000

Group = Literal["small", "median", "largest"]
Tell = Callable[[str], None]
"""Is told what is being done."""


class Times(NamedTuple):
    """Searches of one group, in milliseconds.

    Attributes:
        entries: Of each of its users, the median. searches: how many were measured.
        first: The median of each user's first one.
    """

    entries: int
    searches: int
    p50: float
    p95: float
    first: float


@dataclass(frozen=True)
class Scale:
    """What was measured.

    Attributes:
        insert_s: Seconds until all is stored and found by searches. index_s: further ones until the vector
            index, which only scopes of more than 10,000 entries are searched by, has all as well.
        insert_cpu_s: Processor time of both.
        search: By group. after_write_ms: the largest user's search after a turn was written, the median.
        rss_mb: Memory of the process at most. disk_mb: the home, closed.
        open_s: A new process opens the home and searches it once; Python's own start is left out.
    """

    entries: int
    users: int
    embedder: str
    insert_s: float
    index_s: float
    insert_cpu_s: float
    search: dict[Group, Times]
    after_write_ms: float
    rss_mb: float
    disk_mb: float
    open_s: float

    def figures(self) -> dict[str, object]:
        """The same as plain JSON data."""
        middle, largest = self.search["median"], self.search["largest"]
        return {
            "entries": self.entries,
            "users": self.users,
            "embedder": self.embedder,
            "insert_per_s": self.entries / self.insert_s,
            "insert_and_index_per_s": self.entries / (self.insert_s + self.index_s),
            "insert_and_index_cpu_ms": 1000 * self.insert_cpu_s / self.entries,
            "search_ms": {"p50": middle.p50, "p95": middle.p95, "largest_p50": largest.p50}
            | {group: times._asdict() for group, times in self.search.items()}
            | {"largest_after_write": self.after_write_ms},
            "rss_mb": self.rss_mb,
            "disk_mb": self.disk_mb,
            "open_s": self.open_s,
        }


def sizes(entries: int, users: int, chance: random.Random) -> list[int]:
    """How many entries each user has, the largest first: at least one each.

    Raises:
        BadInput: there are fewer entries than users.
    """
    if entries < users:
        raise BadInput(f"{users} users need at least {users} entries, not {entries}")
    largest = entries if users == 1 else min(int(LARGEST_SHARE * entries), LARGEST, entries - users + 1)
    largest = max(largest, ceil(entries / users))
    weights = [chance.uniform(0.5, 1.5) for _ in range(users - 1)]
    spare, total, given, shared = entries - largest - (users - 1), sum(weights), 0, 0.0
    others = []
    for weight in weights:
        shared += weight
        upto = round(spare * shared / total)
        others.append(1 + upto - given)
        given = upto
    return sorted([largest, *others], reverse=True)


def measure(settings: Settings, entries: int, users: int, seed: int, tell: Tell) -> Scale:
    """Fills `settings.home`, which must be empty, and measures it."""
    chance = random.Random(seed)  # noqa: S311 - for made-up data
    owned = {f"user-{n:06d}": size for n, size in enumerate(sizes(entries, users, chance), 1)}
    asker = Author(f"{seed} asks")
    with Bank.open(settings) as bank:
        insert_s, index_s, insert_cpu_s = _filled(bank, owned, seed, tell)
        groups = _groups(list(owned))
        search = {}
        for group, chosen in groups.items():
            tell(f"searching: {group} users")
            search[group] = _searched(bank, group, {user: owned[user] for user in chosen}, asker, chance)
        after_write = _after_writes(bank, next(iter(owned)), asker)
        embedder = bank.embedder_id
    tell("opening the home in a new process")
    rss = peak_mb()
    disk = sum(path.stat().st_size for path in settings.home.rglob("*") if path.is_file()) / MB
    middle = groups["median"][0]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        open_s = process.submit(open_seconds, settings, middle, asker.question()).result()
    stored = (insert_s, index_s, insert_cpu_s)
    return Scale(entries, users, embedder, *stored, search, after_write, rss, disk, open_s)


def open_seconds(settings: Settings, user: str, question: str) -> float:
    """How long it takes to open a home and search it once."""
    started = perf_counter()
    with Bank.open(settings) as bank:
        _search(bank, user, question)
        return perf_counter() - started


def _filled(bank: Bank, owned: dict[str, int], seed: int, tell: Tell) -> tuple[float, float, float]:
    """Seconds of storing, of bringing the index up to date after it, and of processor time for both.

    What is stored is made up before: that would give the index time which is not counted.
    """
    done, total = 0, sum(owned.values())
    with tempfile.TemporaryFile("w+", encoding="utf-8") as exported:
        for user, size in owned.items():
            exported.write(json.dumps(list(Author(f"{seed} {user}").memory(user, size))) + "\n")
        exported.seek(0)
        cpu, started = _cpu_seconds(), perf_counter()
        with bank.bulk():
            for (user, size), line in zip(owned.items(), exported, strict=True):
                tell(f"storing entries: {done:,} of {total:,}")
                bank.import_(Scope(user=user), json.loads(line))
                done += size
            stored = perf_counter()
            tell("bringing the vector index up to date")
        return stored - started, perf_counter() - stored, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    """Processor time of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _groups(users: Sequence[str]) -> dict[Group, Sequence[str]]:
    """Users of each group, given the largest first."""
    others = users[1:] or users
    middle = max(0, (len(others) - USERS) // 2)
    return {"small": others[-USERS:], "median": others[middle : middle + USERS], "largest": users[:1]}


def _searched(bank: Bank, group: Group, owned: dict[str, int], asker: Author, chance: random.Random) -> Times:
    asked = [user for user in owned for _ in range(USERS * SEARCHES if group == "largest" else SEARCHES)]
    chance.shuffle(asked)
    first: dict[str, float] = {}
    every = []
    for user in asked:
        every.append(1000 * _search(bank, user, asker.question()))
        first.setdefault(user, every[-1])
    p95 = sorted(every)[ceil(0.95 * len(every)) - 1]
    return Times(int(median(owned.values())), len(every), median(every), p95, median(first.values()))


def _after_writes(bank: Bank, user: str, asker: Author) -> float:
    """Milliseconds of a search after a turn was written."""
    scope = Scope(user=user, session="now")
    times = []
    for place in range(1, WRITES + 1):
        turn = Turn(
            id=turn_id("now", place),
            session="now",
            position=place,
            speaker="Ada",
            text=asker.question(),
            time=START,
        )
        bank.stage_turns(scope, [turn])
        times.append(1000 * _search(bank, user, asker.question()))
    return median(times)


def _search(bank: Bank, user: str, question: str) -> float:
    """Seconds of one search."""
    request = SearchRequest(scope=Scope(user=user), queries=(Query(text=question),))
    started = perf_counter()
    bank.search(request)
    return perf_counter() - started


def peak_mb() -> float:
    """Memory of this process at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Bytes on macOS, KiB elsewhere.
    return peak / MB if sys.platform == "darwin" else peak * 1024 / MB


def _show(measured: Scale) -> None:
    table = Table("search, ms")
    for name in ("entries", "searches", "p50", "p95", "a user's first"):
        table.add_column(name, justify="right")
    for group, times in measured.search.items():
        numbers = (f"{value:.1f}" for value in times[2:])
        table.add_row(group, f"{times.entries:,}", str(times.searches), *numbers)
    told = measured.figures()
    Console().print(
        table,
        f"Largest user, just after a write: {measured.after_write_ms:.1f} ms.\n"
        f"Import: {told['insert_per_s']:,.0f} entries/s until stored and searchable,"
        f" {told['insert_and_index_per_s']:,.0f} with the vector index.\n"
        f"{measured.entries:,} entries, {measured.users:,} users, {measured.embedder}:"
        f" {measured.rss_mb:,.0f} MB of memory, {measured.disk_mb:,.0f} MB on disk,"
        f" opened and searched in {measured.open_s:.2f} s.",
        soft_wrap=True,
    )


def main(
    *,
    entries: Annotated[int, typer.Option(min=1, help="Entries of all users together.")] = 100_000,
    users: Annotated[int, typer.Option(min=1, help="One has a twentieth of all, at most 5,000.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Decides what is made up.")] = 1,
    embedder: Annotated[str, typer.Option(help="As in the settings.")] = "wordllama",
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with everything.")] = False,
) -> None:
    """Measures import, search, memory, disk and opening in a made-up home, which is removed afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="memcycle-scale-") as folder,
        Console(stderr=True).status("") as status,
    ):
        settings = Settings(home=Path(folder) / "home", embedder=embedder)
        try:
            measured = measure(settings, entries, users, seed, status.update)
        except BadInput as error:
            sys.stderr.write(f"{error}\n")
            raise typer.Exit(2) from None
    if json_:
        sys.stdout.write(json.dumps(measured.figures()) + "\n")
    else:
        _show(measured)


if __name__ == "__main__":
    typer.run(main)
