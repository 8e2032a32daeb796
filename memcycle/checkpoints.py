"""Opens LangGraph's checkpointers by URL: in memory, in a SQLite file, in PostgreSQL."""

import os
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from memcycle.checkpoints_kind import Checkpointer
from memcycle.checkpoints_postgres import PostgresCheckpoints
from memcycle.checkpoints_sqlite import SqliteCheckpoints
from memcycle.core.errors import BadInput

__all__ = ["FORMS", "Checkpointer", "MemoryCheckpoints", "checkpointer"]

FORMS = "`memory`, a file, `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`"
"""What names a place for checkpoints, in words."""


def checkpointer(url: str | os.PathLike[str]) -> Checkpointer[Any, Any]:
    """A place that graphs write their checkpoints to, so that a run that died resumes where it was.

    `with` gives a saver for `invoke` and `stream`, `async with` one for `ainvoke` and `astream`; both read
    the same place. What is opened, and what can go wrong, is said by the class of each kind
    (`MemoryCheckpoints`, `SqliteCheckpoints`, `PostgresCheckpoints`).

    What runs were given and gave lies there too, and forgetting memories does not reach it: the saver's
    `delete_thread` does.

    Args:
        url: `memory`, for tests and for one process; a file or `sqlite:///FILE` (`sqlite:////FILE` where it
            begins with a slash), which several processes may use at once; or `postgresql://...`, with the
            extra `postgres`.

    Raises:
        BadInput: a URL that cannot be read, without a word of it that may be a password.

    Example:
        >>> with checkpointer("checkpoints.sqlite3") as saver:
        ...     graph = build_memory(roles, bank).builder.compile(checkpointer=saver)
        ...     graph.invoke(value, {"configurable": {"thread_id": "1"}}, context={"user": "ann"})
    """
    if not isinstance(url, str):
        return SqliteCheckpoints(url)
    scheme, separator, rest = url.partition("://")
    if url == "memory" or (separator and scheme == "memory" and not rest):
        return MemoryCheckpoints()
    if not separator:
        return SqliteCheckpoints(_file(url))
    if scheme == "sqlite" and rest.startswith("/"):
        return SqliteCheckpoints(_file(rest.removeprefix("/")))
    if scheme in ("postgresql", "postgres"):
        return PostgresCheckpoints(url)
    raise BadInput(f"checkpoints cannot be kept in a URL that begins so: {scheme!r:.20}://; give {FORMS}")


def _file(path: str) -> str:
    if path.strip() in ("", ":memory:"):
        raise BadInput(f"{path!r} names no file for checkpoints; give {FORMS}")
    return path


class MemoryCheckpoints(Checkpointer[InMemorySaver, InMemorySaver]):
    """Checkpoints in this process and object; they are gone with it. One saver serves sync and async."""

    def __init__(self) -> None:
        super().__init__("memory")
        self._kept = InMemorySaver()

    def _open(self) -> InMemorySaver:
        return self._kept

    def _close(self, saver: InMemorySaver) -> None:
        """Kept, to be opened again."""

    async def _aopen(self) -> InMemorySaver:
        return self._kept

    async def _aclose(self, saver: InMemorySaver) -> None:
        """Kept, to be opened again."""
