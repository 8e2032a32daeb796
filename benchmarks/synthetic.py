"""Made-up memories of any size: varied sentences, as an export holds them. The seed decides all."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from memcycle.core.turn import turn_id

SESSION_TURNS = 20
START = datetime(2024, 1, 1, 9, tzinfo=UTC)

_OWN, _OTHER = "Ada", "Ben"
_SYLLABLES = (
    "ba", "be", "bo", "da", "di", "do", "fa", "fi", "ga", "go", "ha", "ji", "ka", "ki", "ko", "la",
    "le", "li", "lo", "ma", "mi", "mo", "na", "ni", "no", "pa", "pe", "ra", "re", "ri", "ro", "sa",
)  # fmt: skip
_WHEN = (
    "yesterday", "last week", "this morning", "on Friday", "in March", "two days ago", "next month",
    "in 2019", "on 3 May 2021", "last summer", "tonight", "every Tuesday",
)  # fmt: skip
_THINGS = (
    "bicycle", "violin", "recipe", "garden", "report", "boat", "novel", "camera", "tent", "printer", "lamp",
    "jacket", "server", "invoice", "puzzle", "ticket", "engine", "carpet", "letter", "window", "battery",
    "kettle", "ladder", "painting", "bread", "soup", "telescope", "keyboard", "bridge", "greenhouse",
)  # fmt: skip
_DID = (
    "bought", "repaired", "lost", "found", "painted", "borrowed", "sold", "planned", "finished", "broke",
    "cleaned", "moved", "described", "ordered", "returned", "compared", "measured", "wrapped", "sketched",
    "explained",
)  # fmt: skip
_LIKE = (
    "old", "blue", "heavy", "quiet", "expensive", "broken", "tiny", "green", "second-hand", "wooden",
    "famous",
)  # fmt: skip
_SAID = (
    "I {did} the {like} {thing} {when} with {name}.",
    "{name} {did} a {thing} in {place} {when}, and I was there.",
    "Did you hear that {name} {did} the {thing}?",
    "My {like} {thing} came from {place}; it cost {number} euros.",
    "We went to {place} {when} because the {thing} was {like}.",
    "I never liked the {thing} that {name} {did}, it is too {like}.",
    "The {thing} in {place} has {number} parts, {name} counted them.",
    "Can you remind me to ask {name} about the {like} {thing} {when}?",
    "{when} I {did} {number} things in {place}, mostly for {name}.",
    "It was {like} in {place}, so {name} and I {did} the {thing} at home.",
)
_NOTED = (
    "{who} {did} the {like} {thing} with {name}.",
    "{name} from {place} {did} a {thing} for {who}.",
    "{who} says the {thing} in {place} is {like}.",
    "{who} paid {number} euros for a {like} {thing}.",
    "{who} wants to see {place} with {name}.",
)
_ASKED = (
    "What did {name} do with the {like} {thing}?",
    "When did we go to {place}?",
    "How much was the {thing} from {place}?",
    "Who {did} the {thing} in {place}?",
    "Where is the {like} {thing} that {name} {did}?",
)


class Author:
    """Writes sentences. Names and places are invented: the vocabulary grows as that of people does."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - made-up text, no secret

    def memory(self, user: str, entries: int) -> Iterator[dict[str, Any]]:
        """That many exported entries of one user: sessions of turns, a fact a turn, an episode at the end."""
        written, session = 0, 0
        while written < entries:
            session += 1
            for record in self._session(user, str(session)):
                yield record
                written += 1
                if written == entries:
                    return

    def question(self) -> str:
        """A question in the words that the memories use."""
        return self._sentence(_ASKED, _OWN)

    def _session(self, user: str, session: str) -> Iterator[dict[str, Any]]:
        begin = START + timedelta(days=int(session), minutes=self._random.randrange(600))
        turns = [turn_id(session, place) for place in range(1, SESSION_TURNS + 1)]
        common = {"scope": {"user": user, "workspace": "default", "session": session}, "status": "active"}
        for place, turn in enumerate(turns, 1):
            who = (_OWN, _OTHER)[place % 2]
            common |= {"observed_at": (begin + timedelta(minutes=place)).isoformat(), "speaker": who}
            said = self._sentence(_SAID, who)
            yield common | {
                "granularity": "raw", "text": said, "role": ("human", "ai")[place % 2], "turns": [turn],
                "metadata": {"position": place},
            }  # fmt: skip
            noted = self._sentence(_NOTED, who)
            yield common | {
                "granularity": "fact", "kind": "semantic", "text": noted, "turns": [turn], "quote": said,
                "persons": [who], "importance": round(self._random.random(), 2),
            }  # fmt: skip
        told = " ".join(self._sentence(_NOTED, who) for who in (_OWN, _OTHER, _OWN))
        yield common | {"granularity": "episode", "text": told, "title": told.split(".")[0], "turns": turns}

    def _sentence(self, forms: tuple[str, ...], who: str) -> str:
        pick = self._random.choice
        return pick(forms).format(
            who=who,
            did=pick(_DID),
            like=pick(_LIKE),
            thing=pick(_THINGS),
            when=pick(_WHEN),
            name=self._name(2),
            place=self._name(3),
            number=self._random.randrange(2, 5000),
        )

    def _name(self, syllables: int) -> str:
        return "".join(self._random.choices(_SYLLABLES, k=syllables)).capitalize()
