"""What one user costs as memory grows: processor time of each call, without a model, and what is still found.

    python -m benchmarks.growth --data locomo10.json --turns 1000 --turns 50000

A user's memory is filled with that many turns and a fact for each, half of its sentence: words of LoCoMo,
from the second round on put together anew from the halves of two turns. Among them stand the notes of
`notes_held.txt`. One process fills a memory, another measures; milliseconds are medians.
"""

import json
import multiprocessing
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.scale import peak_mb
from benchmarks.synthetic import SESSION_TURNS, START
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.turn import turn_id
from memcycle.evals.dataset import Sample
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.memory import Memory
from memcycle.stores.search.request import Query, SearchRequest

USER, WHO = "grown", ("Ada", "Ben")
K, TIMES, ENDS = 10, 20, 3
"""Entries a search for a note shows; how often each call is measured, and a session's end."""
NOTES = Path(__file__).with_name("notes_held.txt")


def measure(data: Path, home: Path, turns: int) -> dict[str, float]:
    """Of a home that was filled: ms of processor time a call, MB of the process, share of notes found."""
    samples = load_locomo(data, zone=UTC)
    chance = random.Random(turns)  # noqa: S311 - for made-up data
    questions = [one.question for sample in samples for one in sample.questions]
    chance.shuffle(questions)
    ask = cycle(questions)
    with Memory.open(home, user=USER) as memory:
        scope, bank = Scope(user=USER), memory.bank

        def search(text: str) -> Sequence[str]:
            request = SearchRequest(scope=scope, queries=(Query(text=text),), k=K)
            [hits] = bank.search(request)
            return [hit.entry.text for hit in hits]

        said = _sentences(samples, chance)
        now = START + timedelta(days=20_000)

        def add(session: str = "now") -> None:
            memory.add([{"role": "user", "content": next(said)}], session=session, now=now)

        notes = [line.split(" | ") for line in NOTES.read_text("utf-8").splitlines()]
        asked = [(note, question) for note, *others in notes for question in others]
        search("Who?")
        memory.ask("Who?")
        add()
        costs = {
            "search": _cost(lambda: search(next(ask))),
            "ask": _cost(lambda: memory.ask(next(ask), now=now)),
            "memories": _cost(lambda: memory.memories(limit=10)),
            "add": _cost(add),
        }
        afterwards = list[float]()
        for _ in range(TIMES):
            add()
            afterwards.append(_cost(lambda: search(next(ask)), 1))
        ends = []
        for number in range(ENDS):
            name = f"end {number}"
            memory.add([{"role": "user", "content": next(said)} for _ in range(SESSION_TURNS)], session=name)
            ends.append(_cost(partial(memory.end_session, name), 1))
        found = sum(note in search(question) for note, question in asked) / len(asked)
    return costs | {
        "search after write": median(afterwards),
        "end session": median(ends),
        "resident MB": peak_mb(),
        "notes found": found,
    }


def _cost(call: Callable[[], Any], times: int = TIMES) -> float:
    """Median milliseconds of processor time, all threads together."""
    spent = []
    for _ in range(times):
        before = process_time()
        call()
        spent.append(1000 * (process_time() - before))
    return median(spent)


def fill(data: Path, home: Path, turns: int) -> None:
    """Makes a home with memory of that many turns."""
    samples, chance = load_locomo(data, zone=UTC), random.Random(turns)  # noqa: S311 - for made-up data
    notes = [line.split(" | ")[0] for line in NOTES.read_text("utf-8").splitlines()]
    places = dict(zip(sorted(chance.sample(range(turns), len(notes))), notes, strict=True))
    records = _records(islice(_sentences(samples, chance), turns), places)
    with Memory.open(home, user=USER) as memory, memory.bank.bulk():
        while some := list(islice(records, 5_000)):
            memory.bank.import_(Scope(user=USER), some)


def _records(sentences: Iterator[str], notes: dict[int, str]) -> Iterator[dict[str, Any]]:
    """Entries as an export holds them, a turn and a fact for each sentence."""
    for number, sentence in enumerate(sentences):
        session, place = divmod(number, SESSION_TURNS)
        text, who = notes.get(number, sentence), WHO[0 if number in notes else number % 2]
        at: datetime = START + timedelta(hours=6 * session, minutes=place)
        turn = turn_id(str(session), place + 1)
        common = {
            "scope": {"user": USER, "workspace": "default", "session": str(session)}, "status": "active",
            "observed_at": at.isoformat(), "speaker": who, "turns": [turn],
        }  # fmt: skip
        role = "human" if who == WHO[0] else "ai"
        yield common | {"granularity": "raw", "text": text, "role": role, "metadata": {"position": place + 1}}
        fact = f"{who} said that {text[: max(20, len(text) // 2)]}"
        about = {"kind": "semantic", "text": fact, "quote": text, "persons": [who]}
        yield common | {"granularity": "fact"} | about


def _sentences(samples: Sequence[Sample], chance: random.Random) -> Iterator[str]:
    """What was said, once as it is, then halves of two turns together, without end."""
    sessions = [session for sample in samples for session in sample.conversation.sessions]
    said = [turn.text for session in sessions for turn in session.turns]
    yield from said
    while True:
        one, other = chance.choice(said).split(), chance.choice(said).split()
        yield " ".join([*one[: len(one) // 2 + 1], *other[len(other) // 2 :]])


def main(
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    turns: Annotated[list[int], typer.Option(min=100, help="Turns stored; several sizes may be given.")],
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a size.")] = False,
) -> None:
    """Measures what calls cost one user of each size, in a made-up home, which is removed afterwards."""
    rows, processes = [], multiprocessing.get_context("spawn")
    for size in turns:
        with tempfile.TemporaryDirectory() as home, processes.Pool(1, maxtasksperchild=1) as process:
            try:
                process.apply(fill, (data, Path(home), size))
                rows.append(process.apply(measure, (data, Path(home), size)))
            except BadInput as error:
                sys.exit(str(error))
        if json_:
            sys.stdout.write(json.dumps({"turns": size} | rows[-1]) + "\n")
    if not json_:
        table = Table("", *(f"{size:,} turns" for size in turns), title="ms of processor time, MB, share")
        for name in rows[0]:
            table.add_row(name, *(f"{row[name]:.3g}" for row in rows))
        Console().print(table)


if __name__ == "__main__":
    typer.run(main)
