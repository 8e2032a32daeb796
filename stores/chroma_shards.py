"""The collections of the shards, made and looked up when they are needed."""

from contextlib import suppress
from typing import Any

from memcycle.stores.chroma_client import ChromaClient

SPACE: Any = {"hnsw": {"space": "cosine", "ef_search": 400}}
"""With Chroma's own 100, one of ten of the nearest 200 of a granularity is missed at 10,000 entries."""


class Shards:
    """The collections of one client. No safer between threads than that."""

    def __init__(self, client: ChromaClient) -> None:
        self._client = client
        self._found: dict[int, Any] = {}

    def call(self, shard: int, method: str, arguments: dict[str, Any]) -> Any:
        """Calls a method of a shard's collection; None where there is no collection and nothing is put in.

        Another process may have dropped the collection on the server: it is looked up again, once.
        """
        from chromadb.errors import InternalError, NotFoundError

        for attempt in range(2):
            collection = self._collection(shard, create=method in ("add", "upsert"))
            if collection is None:
                break
            try:
                return getattr(collection, method)(**arguments)
            except NotFoundError:
                self._found.pop(shard, None)
                if attempt:
                    raise
            except InternalError:
                self._found.clear()
                self._client.renew()
                raise
            finally:
                self._client.settle()
        return None

    def drop(self, shard: int) -> None:
        """Removes a collection, if there is one."""
        from chromadb.errors import NotFoundError

        with suppress(NotFoundError):
            self._found.pop(shard, None)
            self._client.api.delete_collection(self._name(shard))

    def look_up_again(self) -> None:
        """Forgets what was looked up: the client is about to be closed."""
        self._found.clear()

    def _collection(self, shard: int, *, create: bool) -> Any:
        from chromadb.errors import NotFoundError

        # On a server others look up at the same time, and may forget what was found meanwhile.
        found = self._found.get(shard)
        if found is None:
            name = self._name(shard)
            try:
                found = self._found[shard] = (
                    self._client.api.get_or_create_collection(
                        name, embedding_function=None, configuration=SPACE
                    )
                    if create
                    else self._client.api.get_collection(name, embedding_function=None)
                )
            except NotFoundError:
                return None
        return found

    def _name(self, shard: int) -> str:
        return f"{self._client.prefix}{shard:02d}"
