"""What is wrong with what is stored in the end: lost, doubled, crossed, or there although forgotten."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from benchmarks.soak.plan import Person, marks, strangers

Fault = Literal["lost", "doubled", "crossed", "not forgotten"]
FAULTS: tuple[Fault, ...] = ("lost", "doubled", "crossed", "not forgotten")


class Finding(NamedTuple):
    """One thing that is wrong. `where` it was seen: the API, a table, the index, an answer."""

    fault: Fault
    user: str
    where: str
    what: str


@dataclass(frozen=True)
class Held:
    """One text that is stored for a user.

    Attributes:
        where: The place it was read from.
        whole: Whether it is one entry that can be recalled, of which there must be one only.
        raw: Whether it is a message as it was said.
    """

    user: str
    where: str
    text: str
    whole: bool = False
    raw: bool = False


def findings(persons: Iterable[Person], held: Iterable[Held], complete: Iterable[str]) -> list[Finding]:
    """Compares what is stored with what must be.

    Args:
        persons: What must be there.
        held: Every text that is stored, of all places.
        complete: The places that must hold every message as it was said, each once.
    """
    known = {person.user: person for person in persons}
    of_place: dict[tuple[str, str], list[Held]] = {}
    found: list[Finding] = []
    for one in held:
        person = known.get(one.user)
        if person is None:
            found.append(Finding("crossed", one.user, one.where, one.text))
            continue
        of_place.setdefault((one.user, one.where), []).append(one)
        found += [Finding("crossed", one.user, one.where, mark) for mark in strangers(one.text, one.user)]
        found += [
            Finding("not forgotten", one.user, one.where, mark) for mark in marks(one.text) & person.gone
        ]
    for person in known.values():
        for where in complete:
            found += _missing(person, where, of_place.get((person.user, where), []))
    for (user, where), texts in of_place.items():
        found += [Finding("doubled", user, where, text) for text in _twice(texts)]
    return found


def _missing(person: Person, where: str, held: list[Held]) -> list[Finding]:
    there = {one.text for one in held if one.raw}
    wanted: Mapping[str, str] = {message.text: mark for mark, (_, message) in person.said.items()}
    return [Finding("lost", person.user, where, wanted[text]) for text in wanted.keys() - there]


def _twice(texts: list[Held]) -> list[str]:
    """Messages that are there twice as said, and entries that say the same: every text has its own mark."""
    told = Counter((one.raw, one.text) for one in texts if one.whole)
    return [text for (_, text), times in told.items() if times > 1]
