"""One bank a process and home, shared by all graphs and memories of the process."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from memcycle.core.errors import StoreError
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.bank import Bank

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_STORE_FIELDS = ("timezone", "embedder", "chroma_url", "shards", "redact")
"""Settings that the store itself depends on; the rest is the graphs' business."""

_lock = threading.Lock()
# By process: connections and locks do not survive a fork.
_banks: dict[tuple[int, Path], Bank] = {}


def shared_bank(
    settings: Settings,
    *,
    embeddings: "Embeddings | None" = None,
    world: World | None = None,
    repair: bool = False,
) -> Bank:
    """The bank of this process for `settings.home`: opened by the first, closed by the last who closes it.

    Args:
        embeddings: A LangChain embedder; must be the same object for all.
        world, repair: Those of the first who asks count (see `Bank.open`).

    Raises:
        StoreError: the home is open in this process with other settings; names them. Or it cannot be opened.
    """
    key = (os.getpid(), settings.home.resolve())
    with _lock:
        bank = _banks.get(key)
        if bank is None or not bank.share():
            bank = Bank.open(settings, embeddings=embeddings, world=world, repair=repair)
            _banks[key] = bank
            return bank
        other = [name for name in _STORE_FIELDS if getattr(bank.settings, name) != getattr(settings, name)]
        if embeddings is not None and embeddings is not bank.embeddings:
            other.append("embeddings")
        if other:
            bank.close()
            raise StoreError(
                f"{settings.home} is open in this process with another {', '.join(other)}; use the same"
                " settings or close it first"
            )
        return bank
