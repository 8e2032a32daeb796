"""One bank a process and home, shared by all graphs and memories of the process."""

import os
import threading
from dataclasses import dataclass
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


@dataclass
class _Shared:
    bank: Bank
    embeddings: "Embeddings | None"
    users: int = 1


_Key = tuple[int, Path]
_lock = threading.Lock()
# By process: connections and locks do not survive a fork.
_open: dict[_Key, _Shared] = {}


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
        shared = _open.get(key)
        if shared is None:
            bank = Bank.open(settings, embeddings=embeddings, world=world, repair=repair)
            bank.may_close = lambda: _leave(key, bank)
            _open[key] = _Shared(bank, embeddings)
            return bank
        _check_same(shared, settings, embeddings)
        shared.users += 1
        return shared.bank


def _leave(key: _Key, bank: Bank) -> bool:
    """Counts one user less; whether that was the last."""
    with _lock:
        shared = _open.get(key)
        if shared is None or shared.bank is not bank:
            return True
        shared.users -= 1
        if shared.users == 0:
            del _open[key]
        return shared.users == 0


def _check_same(shared: _Shared, settings: Settings, embeddings: "Embeddings | None") -> None:
    theirs = shared.bank.settings
    other = [name for name in _STORE_FIELDS if getattr(theirs, name) != getattr(settings, name)]
    if embeddings is not None and embeddings is not shared.embeddings:
        other.append("embeddings")
    if other:
        raise StoreError(
            f"{settings.home} is open in this process with another {', '.join(other)}; use the same settings"
            " or close it first"
        )
