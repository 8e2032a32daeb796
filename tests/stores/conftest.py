"""Banks in temporary homes: over Chroma, and over a list where Chroma is not the point."""

import pytest

from memcycle.stores.chroma import mirror
from tests.banks import ListIndex, open_bank


@pytest.fixture
def list_index(monkeypatch):
    """Every bank of the test keeps its vectors in a list; gives the lists by home."""
    made = {}

    def client(settings, store, *, patience=0.0, fresh=False):
        index = made.setdefault(settings.home, ListIndex(settings))
        if fresh:
            index.held.clear()
        return index

    monkeypatch.setattr(mirror, "open_client", client)
    monkeypatch.setattr(mirror, "ChromaIndex", lambda index, shards, dim: index)
    return made


@pytest.fixture
def bank(tmp_path, list_index):
    with open_bank(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def chroma_bank(tmp_path):
    with open_bank(tmp_path / "home") as opened:
        yield opened
