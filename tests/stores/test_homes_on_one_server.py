"""Several homes, and several processes of one home, on one Chroma server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memcycle.core.scope import Scope
from memcycle.stores.bank import Bank
from memcycle.stores.ledger import meta
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, open_bank, said, texts
from tests.chroma_server import chroma_server

pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as (url, _):
        yield url


def told(bank: Bank, text: str, scope: Scope = ANN) -> None:
    bank.stage_turns(scope, [said(1, text, session=str(scope.session))])
    bank.commit_session(scope)


def found(bank: Bank, query: str) -> list[str]:
    (hits,) = bank.search(SearchRequest(scope=ANN.base, queries=[Query(text=query)], k=5))
    return texts([hit.entry for hit in hits])


def store_of(bank: Bank) -> str | None:
    with bank.ledger.read() as conn:
        return meta.get(conn, meta.STORE)


def test_nothing_crosses_between_homes(server: str, tmp_path: Path) -> None:
    with (
        open_bank(tmp_path / "one", chroma_url=server) as one,
        open_bank(tmp_path / "two", chroma_url=server) as two,
    ):
        told(one, "my dog is called Pixel")
        told(two, "my dog is called Rufus")
        assert (found(one, "dog"), found(two, "dog")) == (
            ["my dog is called Pixel"],
            ["my dog is called Rufus"],
        )
        for bank in (one, two):
            assert bank.check()["index"] == {"missing": 0, "stray": 0}
        two.rebuild()
        two.forget_user("ann")
        assert (found(one, "dog"), found(two, "dog")) == (["my dog is called Pixel"], [])
        assert one.check()["index"] == {"missing": 0, "stray": 0}
        assert store_of(one) != store_of(two)


def test_banks_of_one_home_share_its_collections_and_keep_its_id(server: str, tmp_path: Path) -> None:
    with (
        open_bank(tmp_path, chroma_url=server) as one,
        open_bank(tmp_path, chroma_url=server) as two,
    ):
        told(one, "my dog is called Pixel")
        told(two, "my cat is called Rufus", Scope(user="ann", session="2"))
        assert (
            set(found(one, "called"))
            == set(found(two, "called"))
            == {
                "my dog is called Pixel",
                "my cat is called Rufus",
            }
        )
        store = store_of(one)
    with open_bank(tmp_path, chroma_url=server) as again:
        assert len(found(again, "called")) == 2
        assert store_of(again) == store
        again.reembed()
        assert store_of(again) == store
