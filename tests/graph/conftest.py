"""A bank in a temporary home with fake embeddings, a clock that counts, seeded ids."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memcycle import build_recall, build_remember, build_session
from memcycle.agents.roles import Roles
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from tests.fakes import FakeEmbeddings

START = datetime(2024, 5, 1, 9, tzinfo=UTC)
ANA = Scope(user="ana", session="s1")


def world() -> World:
    ticks, ids = itertools.count(), itertools.count()
    return World(
        now=lambda: START + timedelta(days=30, seconds=next(ticks)),
        new_id=lambda: f"id-{next(ids):06d}",
        sleep=lambda seconds: None,
    )


@pytest.fixture
def bank(tmp_path):
    opened = Bank.open(Settings(home=tmp_path / "home", shards=2), embeddings=FakeEmbeddings(), world=world())
    yield opened
    opened.close()


class Cycle:
    """Runs the graphs of one bank with scripted roles."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.day = 0

    def turns(self, *said: str | tuple[str, str], session: str = "s1") -> list[dict[str, Any]]:
        first = self.bank.next_position(ANA.within(session))
        self.day += 1
        made = []
        for n, item in enumerate(said):
            role, text = item if isinstance(item, tuple) else ("human", item)
            speaker = {"human": "Ana", "ai": "Bot", "tool": "tool", "system": "system"}[role]
            made.append(
                Turn(
                    id=f"D{session}:{first + n}",
                    session=session,
                    position=first + n,
                    speaker=speaker,
                    role=role,
                    text=text,
                    time=START + timedelta(days=self.day, minutes=n),
                ).model_dump(mode="json")
            )
        return made

    def remember(
        self, *said, session: str = "s1", settings: Settings | None = None, **roles: Any
    ) -> dict[str, Any]:
        graph = build_remember(replace(Roles.rules(), **roles), self.bank, settings)
        value = {"turns": self.turns(*said, session=session)} if said else {}
        return graph.invoke(value, context={"user": "ana", "session": session})

    def recall(
        self, question: str, settings: Settings | None = None, session: str = "s1", **given: Any
    ) -> dict[str, Any]:
        context = {"user": "ana", "session": session, **given.pop("context", {})}
        graph = build_recall(replace(Roles.rules(), **given), self.bank, settings)
        return graph.invoke({"question": question}, context=context)

    def end(
        self,
        session: str = "s1",
        settings: Settings | None = None,
        verify: bool | None = None,
        **roles: Any,
    ) -> dict[str, Any]:
        graph = build_session(replace(Roles.rules(), **roles), self.bank, settings)
        return graph.invoke({"verify": verify}, context={"user": "ana", "session": session})

    def facts(self) -> list[str]:
        return [entry.text for entry in self.bank.entries(ANA, granularity="fact")]


@pytest.fixture
def cycle(bank):
    return Cycle(bank)
