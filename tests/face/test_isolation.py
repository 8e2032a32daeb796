"""Two users with the same conversation: nothing of one in any answer, list, export or query of the other."""

import itertools

import numpy as np
import pytest

from memcycle.core.errors import UnknownEntry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.memory import Memory
from memcycle.stores.search.request import Query, SearchRequest
from tests.fakes import FakeEmbeddings

USERS = [
    "ana",
    "ana2",
    "ana:b",
    "ana.b@mail.test",
    '["ana","default"]',
    "ana%",
    "Ana",
    "аna",
    "x" * 200,
    "李",
]
SAID = "I keep two beehives on the roof and my code is {}."


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    settings = Settings(home=tmp_path_factory.mktemp("shared") / "home", shards=1)
    with Memory.open(settings=settings, embeddings=FakeEmbeddings()) as opened:
        for number, user in enumerate(USERS):
            opened.add(SAID.format(f"marker{number}"), user=user)
            opened.add("And I live in Graz.", user=user)
            opened.end_session(user=user)
        yield opened


def others(number: int) -> list[str]:
    return [f"marker{other}" for other in range(len(USERS)) if other != number]


@pytest.mark.parametrize(("number", "user"), list(enumerate(USERS)), ids=[str(n) for n in range(len(USERS))])
def test_nothing_of_another_user_is_seen(memory, number, user):
    seen = [
        memory.ask("What is the code?", user=user).model_dump_json(),
        memory.recall(f"beehives roof code {' '.join(others(number))}", user=user).model_dump_json(),
        *(entry.model_dump_json() for entry in memory.memories(user=user)),
        *map(str, memory.export(user=user)),
    ]
    own = Scope(user=user)
    vectors = np.ones((1, 32), dtype=np.float32)
    ids = {entry.id for entry in memory.memories(user=user)}
    found = memory.bank._views.mirror.query(own, vectors, 50, None)[0]
    assert {name for name, _ in found} <= ids
    assert any(f"marker{number}." in text for text in seen)
    for text, marker in itertools.product(seen, others(number)):
        assert f"{marker}." not in text


def test_no_filter_or_session_widens_a_scope(memory):
    for session in ("main", "ana2", '["ana2","default"]'):
        request = SearchRequest(
            scope=Scope(user="ana", session=session), queries=(Query(text="code marker1"),), k=100
        )
        hits = memory.bank.search(request)[0]
        assert hits
        assert {hit.entry.scope.user for hit in hits} == {"ana"}


def test_an_id_of_another_user_is_unknown(memory):
    entry = memory.memories(user="ana2")[0]
    for act in (
        lambda: memory.edit(entry.id, "mine now", user="ana"),
        lambda: memory.undo(entry.id, user="ana"),
        lambda: memory.get(entry.id, user="ana"),
    ):
        with pytest.raises(UnknownEntry):
            act()
    assert memory.forget(entry.id, user="ana") == []
    assert memory.get(entry.id, user="ana2") == entry


def test_what_a_user_exports_cannot_overwrite_another_user(memory):
    rows = [dict(row, text="stolen") for row in memory.export(user="ana2")]
    memory.import_(rows, user="thief")
    assert {entry.text for entry in memory.memories(user="thief")} == {"stolen"}
    assert "stolen" not in {entry.text for entry in memory.memories(user="ana2")}
