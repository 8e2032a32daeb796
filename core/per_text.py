"""Caches of what is read out of texts, bounded by the length of the texts too.

`lru_cache` counts entries: a few thousand sentences are a megabyte, as many documents are gigabytes.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

LONG = 2_000
"""Characters; what is longer is a document, not a saying."""
FEW = 32
"""Documents that are kept: those at hand."""


def per_text(size: int, length: Callable[[Any], int] = len) -> Callable[[F], F]:
    """Caches a function of a text, and of more if it takes more: its last `size` results, of long texts few.

    Args:
        size: Results at most.
        length: Characters of the first argument, where that is more than a text.
    """

    def wrap(read: F) -> F:
        short, long = lru_cache(size)(read), lru_cache(FEW)(read)

        @wraps(read)
        def of(text: Any, *rest: Any) -> Any:
            return (short if length(text) <= LONG else long)(text, *rest)

        return cast("F", of)

    return wrap
