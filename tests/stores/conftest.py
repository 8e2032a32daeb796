"""Banks in temporary homes: over Chroma, and over a list where Chroma is not the point."""

import pytest

from memcycle.stores.chroma_index import ChromaIndex
from tests.banks import ListIndex, open_bank


@pytest.fixture
def list_index(monkeypatch):
    """Every bank of the test keeps its vectors in a list."""
    made = {}

    def opened(settings, world, dim, *, fresh=False):
        index = made.setdefault(settings.home, ListIndex(settings))
        if fresh:
            index.held.clear()
        return index

    monkeypatch.setattr(ChromaIndex, "open", staticmethod(opened))
    return made


@pytest.fixture
def bank(tmp_path, list_index):
    with open_bank(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def chroma_bank(tmp_path):
    with open_bank(tmp_path / "home") as opened:
        yield opened
