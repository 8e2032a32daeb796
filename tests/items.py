"""Items for tests of the LangGraph store."""

from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.langgraph_store import MemcycleStore
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock

PEOPLE = ("people",)


def fake(**config):
    """An index configuration whose texts are like others by their words."""
    return {"embed": FakeEmbeddings()} | config


def keys(found) -> list[str]:
    return [one.key for one in found]


def open_store(home, now: HandClock, **config) -> MemcycleStore:
    return MemcycleStore(Settings(home=home), index=fake(), world=World(now=now), **config)
