"""What the users of a soak do, and what must be there of it: plain sets, nothing of the product.

Every message carries a mark of its own, which names its user. So a text tells whose it is wherever it turns
up, and a message that is lost, doubled or that should be forgotten can be told from every other.
"""

import random
import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["add", "ask", "end_session", "forget", "forget_user"]
KINDS: tuple[Kind, ...] = ("add", "ask", "end_session", "forget", "forget_user")

MARK = re.compile(r"q(\d{3})x\d{5}", re.IGNORECASE)
ADDS, ASKS_BETWEEN = 4, 0.5
"""Adds a session; the chance of a question after each."""
TWICE, REPLY, FORGETS, LATE = 0.2, 0.4, 0.5, 0.2
"""Chances: a message is sent twice at the same time; an assistant replies; a session later something said
before is forgotten; something is said late, in a session that ended."""
LIFE = 5
"""Sessions after which a user is forgotten and begins anew, so that a soak does not grow for ever."""

SAYINGS = (
    "I adopted a {thing} called {mark}.",
    "I moved to {mark} last week.",
    "My sister works at {mark} in {place}.",
    "I met {mark} at the {thing} fair yesterday.",
    "I no longer like the {thing} from {mark}.",
    "I bought a {thing} of the brand {mark} in {place}.",
    "My appointment with Dr. {mark} is on Friday.",
    "I live in {mark} now, not in {place}.",
)
THINGS = ("cat", "loom", "bicycle", "kettle", "violin", "parrot", "lamp", "canoe", "tent", "clock")
PLACES = ("Graz", "Porto", "Oslo", "Kyoto", "Quito", "Tartu", "Basel", "Lagos")


@dataclass(frozen=True)
class Message:
    """One message of a session. `id` is the one its source gives it, so that it may come twice."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    mark: str


@dataclass(frozen=True)
class Gone:
    """Marks that nothing may show any more; small however long a soak is, since it goes with each question.

    Attributes:
        below: Of the user's messages all before the one of this number.
        marks: Single ones after that.
    """

    below: int = 0
    marks: frozenset[str] = frozenset()

    def __contains__(self, mark: str) -> bool:
        return mark in self.marks or int(mark.rpartition("x")[2]) < self.below


@dataclass(frozen=True)
class Op:
    """One thing a user does.

    Attributes:
        messages: Said by an add. twice: they are sent a second time meanwhile.
        mark: What a question is about, or what is to be forgotten.
        without: What no answer may show any more of the user's.
    """

    kind: Kind
    session: str = ""
    messages: tuple[Message, ...] = ()
    twice: bool = False
    mark: str = ""
    without: Gone = Gone()


@dataclass(frozen=True)
class Stint:
    """What a user does in one go: a session, and what comes with it."""

    user: str
    n: int
    ops: tuple[Op, ...]


@dataclass
class Person:
    """A user of the soak: the next thing it does, and what must be there of all it did.

    Attributes:
        said: By mark each message that must be there, with its session.
        gone: Marks that must be nowhere.
        waiting: Marks of what was said late: no other session sees it until that one is ended again.
    """

    number: int
    seed: int = 1
    said: dict[str, tuple[str, Message]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    _stints: int = 0
    _messages: int = 0
    _without: Gone = Gone()

    @property
    def user(self) -> str:
        """The user's name."""
        return f"user-{self.number:03d}"

    def next_stint(self) -> Stint:
        """What comes next; what must be there is changed as if it were done."""
        n = self._stints
        self._stints += 1
        chance = random.Random(f"{self.seed} {self.number} {n}")  # noqa: S311 - for made-up data
        ops: list[Op] = []
        session, earlier = f"s{n}", sorted(self.said)
        for _ in range(ADDS):
            ops.append(self._add(session, chance))
            if chance.random() < ASKS_BETWEEN:
                ops.append(self._ask(session, chance))
        ops.append(Op("end_session", session))
        ops.append(self._ask("", chance))
        if earlier and chance.random() < LATE:
            late = self._add(self.said[chance.choice(earlier)][0], chance)
            self.waiting.update(message.mark for message in late.messages)
            ops.append(late)
        if earlier and chance.random() < FORGETS:
            mark = chance.choice(earlier)
            del self.said[mark]
            self.gone.add(mark)
            self._without = Gone(self._without.below, self._without.marks | {mark})
            ops += [Op("forget", mark=mark), self._ask("", chance)]
        # Users begin at different ages, so that they are not all forgotten at the same time.
        if (n + self.number) % LIFE == LIFE - 1:
            self.gone |= set(self.said)
            self.said.clear()
            self.waiting.clear()
            self._without = Gone(self._messages + 1)
            ops.append(Op("forget_user"))
        return Stint(self.user, n, tuple(ops))

    def _add(self, session: str, chance: random.Random) -> Op:
        made = [self._message("user", chance)]
        if chance.random() < REPLY:
            made.append(self._message("assistant", chance))
        for message in made:
            self.said[message.mark] = (session, message)
        return Op("add", session, tuple(made), twice=chance.random() < TWICE)

    def _message(self, role: Literal["user", "assistant"], chance: random.Random) -> Message:
        self._messages += 1
        mark = f"Q{self.number:03d}x{self._messages:05d}"
        saying = chance.choice(SAYINGS).format(
            mark=mark, thing=chance.choice(THINGS), place=chance.choice(PLACES)
        )
        text = saying if role == "user" else f"So you said something of {mark}, noted."
        return Message(f"m-{mark}", role, text, mark)

    def _ask(self, session: str, chance: random.Random) -> Op:
        # Rules quote an assistant only where they are asked what it said.
        own = {mark for mark, (_, message) in self.said.items() if message.role == "user"}
        seen = sorted(own - self.waiting)
        mark = chance.choice(seen) if seen else ""
        return Op("ask", session, mark=mark, without=self._without)


def marks(text: str) -> set[str]:
    """The marks a text holds, however they are written."""
    return {f"Q{found.group()[1:].lower()}" for found in MARK.finditer(text)}


def strangers(text: str, user: str) -> set[str]:
    """The marks a text holds that are not the user's."""
    return {mark for mark in marks(text) if int(mark[1:4]) != int(user.rpartition("-")[2])}
