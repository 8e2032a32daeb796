"""Chroma's failures in words for a person."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from memcycle.core.errors import StoreError

DEFAULT_PORT = 8000


@contextmanager
def chroma_errors(where: str, doing: str) -> Iterator[None]:
    """Gives Chroma's failures as StoreError, without any text of an entry in it."""
    import httpx
    from chromadb.errors import ChromaError, NotFoundError

    try:
        yield
    except NotFoundError:
        raise
    except httpx.TransportError as error:
        raise StoreError(
            f"the Chroma server at {where} does not answer ({type(error).__name__}) while {doing};"
            f" start it with: chroma run --path DIR --port {urlsplit(where).port or DEFAULT_PORT}"
        ) from error
    except (ChromaError, httpx.HTTPError, sqlite3.Error, ValueError, OSError) as error:
        named = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        raise StoreError(
            f"Chroma failed while {doing} in {where} ({named}); the ledger is whole: see that {where} may be"
            " written and its disk has room, then `memcycle doctor --rebuild` makes the index anew"
        ) from error
