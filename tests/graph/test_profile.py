"""Profiles: how often a model is asked for the same work, and that nothing is lost where it is asked less."""

import itertools
from typing import Any

import pytest

from memcycle import Memory, Settings, build_recall
from memcycle.core.errors import BadInput
from memcycle.core.probe import Usage
from tests.fakes import FakeEmbeddings
from tests.graph.conftest import world
from tests.rules_model import RulesModel, roles_on

THINGS = (
    "loom kettle tandem cello ladder sled kayak stove clock globe lamp desk tent drum anvil quilt piano "
    "saddle barrel canoe"
)
DID = itertools.cycle(["I repaired", "My sister painted", "I sold", "My sister borrowed", "I found"])
PLACES = itertools.cycle(["Graz", "Linz", "Porto", "Lyon", "Turin", "Ghent", "Basel"])
TALK = [
    f"{did} the {thing} in {place}." for thing, did, place in zip(THINGS.split(), DID, PLACES, strict=False)
]

PLAUSIBLE = RulesModel(failing=7, sure=True)
"""Answers probes with their gold answers, but for one in seven, and every question."""


@pytest.fixture
def opened(tmp_path):
    memories: list[Memory] = []

    def opened(model: RulesModel = PLAUSIBLE, **given: Any) -> Memory:
        settings = Settings(home=tmp_path / f"home{len(memories)}", shards=2, **given)
        memories.append(
            Memory.open(
                settings=settings,
                roles=roles_on(model),
                embeddings=FakeEmbeddings(),
                user="ana",
                world=world(),
            )
        )
        return memories[-1]

    yield opened
    for memory in memories:
        memory.close()


def calls(*usages: Usage) -> int:
    return sum(count["calls"] for usage in usages for count in usage.values())


def session(memory: Memory, size: int, verify: bool | None = None) -> int:
    """Calls of a session of twenty turns, fed so many at a time, with its end."""
    parts = [TALK[first : first + size] for first in range(0, len(TALK), size)]
    added = [memory.add(part, session="s1").usage for part in parts]
    return calls(*added, memory.end_session("s1", verify=verify).usage)


@pytest.mark.parametrize(
    ("size", "verify", "most"), [(20, None, 6), (20, False, 2), (2, None, 8), (1, None, 8)]
)
def test_a_session_is_read_and_examined_in_few_calls(opened, size, verify, most):
    assert 1 <= session(opened(), size, verify) <= most
    assert session(opened(profile="paper"), size, verify) > most


def test_a_question_is_one_call_and_evidence_none(opened):
    memory = opened()
    session(memory, 20)
    assert calls(memory.ask("Who repaired the loom?").usage) == 1
    assert calls(memory.recall("Who repaired the loom?").usage) == 0


def test_what_is_missing_is_looked_for_as_the_answer_says(opened):
    memory = opened(RulesModel(sure=False))
    session(memory, 20)
    answer = memory.ask("Who bought the loom?")
    assert (answer.answerable, answer.rounds, calls(answer.usage)) == (False, 3, 3)


def test_turns_are_found_before_a_model_has_read_them(opened):
    memory = opened()
    added = memory.add("I keep my spare key under the anvil.", session="s1")
    assert (calls(added.usage), added.facts, added.waiting) == (0, [], 1)
    assert "anvil" in memory.recall("Where is my spare key?", session="s2").evidence[0].text
    ended = memory.end_session("s1", verify=False)
    assert calls(ended.usage) == 1
    assert [one.granularity for one in memory.memories() if one.granularity == "fact"] == ["fact"]


@pytest.mark.parametrize("said", ["Please remember that I sold it.", "Vergiss die Leiter.", "Actually, two."])
def test_who_asks_memory_is_read_at_once(opened, said):
    assert calls(opened().add(said, session="s1").usage) > 0


def test_a_single_role_overrides_the_profile(opened):
    memory = opened(asks={"judge": True})
    session(memory, 20)
    assert set(memory.ask("Who repaired the loom?").usage) == {"judge", "answerer"}
    paper = opened(profile="paper", asks={"retriever": False})
    session(paper, 20)
    assert "retriever" not in paper.ask("Who repaired the loom?").usage


def test_a_role_that_does_not_exist_is_named():
    with pytest.raises(BadInput, match="no role 'jugde'; roles are constructor"):
        build_recall(settings=Settings(asks={"jugde": True}))
