from concurrent.futures import ThreadPoolExecutor

import pytest

from memcycle.core.errors import StoreError
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.stores.bank import shared_bank
from tests.banks import ANN
from tests.fakes import FakeEmbeddings

EMBEDDINGS = FakeEmbeddings()


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home")


def shared(settings, embeddings=EMBEDDINGS):
    return shared_bank(settings, embeddings=embeddings)


def closed(bank):
    try:
        bank.count(ANN)
    except StoreError:
        return True
    return False


def test_one_bank_a_home_until_its_last_user_closes_it(settings, tmp_path, monkeypatch):
    first = shared(settings)
    monkeypatch.chdir(tmp_path)
    second = shared(settings.model_copy(update={"home": settings.home.relative_to(tmp_path)}), None)
    assert first is second
    first.close()
    assert not closed(second)
    second.close()
    assert closed(second)
    with shared(settings) as third:
        assert third is not first
        assert not closed(third)


def test_other_homes_have_other_banks(settings, tmp_path):
    with shared(settings) as one, shared(Settings(home=tmp_path / "other")) as other:
        assert one is not other


@pytest.mark.parametrize(
    ("change", "named"),
    [({"shards": 3}, "shards"), ({"timezone": "Europe/Vienna", "shards": 3}, "timezone, shards")],
)
def test_other_settings_are_refused_by_name(settings, change, named):
    with shared(settings):
        with pytest.raises(StoreError, match=f"another {named};"):
            shared(settings.model_copy(update=change))
        with pytest.raises(StoreError, match="another embeddings"):
            shared(settings, FakeEmbeddings())


def test_settings_of_the_graphs_may_differ(settings):
    with shared(settings) as one, shared(settings.model_copy(update={"theta": Theta(k=3)})) as other:
        assert one is other


def test_threads_that_come_at_once_share(settings):
    with ThreadPoolExecutor(8) as pool:
        banks = list(pool.map(lambda _: shared(settings), range(16)))
    assert len(set(map(id, banks))) == 1
    for bank in banks[:-1]:
        bank.close()
    assert not closed(banks[-1])
    banks[-1].close()
    assert closed(banks[-1])


def test_a_home_that_cannot_be_opened_is_not_kept(settings):
    settings.home.write_text("a file")
    with pytest.raises(StoreError):
        shared(settings)
    settings.home.unlink()
    with shared(settings) as bank:
        assert not closed(bank)
