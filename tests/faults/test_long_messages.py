"""Documents as messages: work grows with their length, not with its square, and what is read is not kept."""

import cProfile
import pstats

import pytest

from memcycle.core.language.tokens import FEW, LONG, per_text
from memcycle.memory import Memory

PLACES = ("Graz", "Porto", "Oslo", "Kyoto", "Quito", "Tartu", "Basel", "Lagos")
THINGS = ("loom", "kettle", "violin", "canoe", "tent", "clock", "lamp", "parrot", "bicycle")


def document(characters: int) -> str:
    """So many sentences, each of which says something new."""
    parts, size = ["My sister Ruth keeps a diary."], 0
    while size < characters:
        n = len(parts)
        made = f"On {n % 28 + 1} May I bought {THINGS[n % 9]} number {n} in {PLACES[n % 8]}, not in Riga."
        parts.append(made)
        size += len(made)
    return " ".join(parts)


def calls_of_an_add(memory: Memory, characters: int) -> int:
    """Functions called, which no other program on the machine changes."""
    profile = cProfile.Profile()
    profile.enable()
    added = memory.add(document(characters), user=f"ann-{characters}")
    profile.disable()
    assert len(added.facts) > characters / 200
    return int(pstats.Stats(profile).total_calls)


def test_twice_the_document_is_twice_the_work(tmp_path):
    with Memory.open(tmp_path / "home") as memory:
        memory.add("What is loaded once.", user="warm")
        short, long = (calls_of_an_add(memory, characters) for characters in (3_000, 12_000))
    # Four times the length: some 4 now, and 13 when each statement read its whole turn again.
    assert long / short < 6


PARTS = (
    "I ", "I am ", "e\u0301", "\u200d", "😀", "😀 x", "http://a.b/c?d=e ", "....", "bees. ",
    "yesterday ", "My ",
)  # fmt: skip


@pytest.mark.parametrize("length", [5_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_a_huge_message_is_asked_about_and_its_session_ends(tmp_path, length):
    """With anything that takes the square of the length this would not end: some of these took minutes."""
    with Memory.open(tmp_path / "home") as memory:
        for user, part in enumerate(PARTS):
            huge = f"I adopted a cat. {part * (length // len(part))}x"
            memory.add(huge, user=f"u{user}", session="s")
            assert memory.ask(huge, user=f"u{user}", session="s").evidence
            memory.end_session("s", user=f"u{user}")
            (raw,) = memory.memories(user=f"u{user}", granularity="raw")
            assert raw.text == huge


def test_a_cache_by_text_counts_long_ones_apart():
    read: list[str] = []

    @per_text(2)
    def first(text: str, place: int = 0) -> str:
        read.append(text)
        return text[place]

    documents = [f"{n:03d}" + "x" * LONG for n in range(FEW)]
    for _ in range(2):
        assert [first("ab"), first("ab", 1), *map(first, documents)] == ["a", "b", *"0" * FEW]
    assert read == ["ab", "ab", *documents]  # each once: long ones push no short one out
    first("c")
    first("ab")
    assert read[-2:] == ["c", "ab"]  # two short ones at most
    first("999" + "x" * LONG)
    first(documents[0])
    assert read[-1] == documents[0]


def test_what_is_read_may_be_more_than_a_text():
    read: list[int] = []

    @per_text(FEW + 2, lambda row: len(row[1]))
    def number(row: tuple[int, str]) -> int:
        read.append(row[0])
        return row[0]

    documents = [(n, "x" * (LONG + 1)) for n in range(FEW + 1)]
    for _ in range(2):
        assert [*map(number, documents), number((99, "short"))] == [*range(FEW + 1), 99]
    assert read == [*range(FEW + 1), 99, *range(FEW + 1)]
