"""A chat model server on the loopback, and small inputs for roles."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.views import TurnView
from tests.loopback import model_server

TIME = datetime(2024, 3, 12, 9, tzinfo=UTC)


def said(text: str, n: int = 1, role: str = "human", speaker: str = "Ana") -> TurnView:
    return TurnView(n=n, speaker=speaker, role=role, text=text, time=TIME)


def chunk(*texts: str) -> ConstructorInput:
    return ConstructorInput(turns=[said(text, n) for n, text in enumerate(texts, 1)], now=TIME)


@pytest.fixture
def server(socket_enabled):
    with model_server() as running:
        yield running
