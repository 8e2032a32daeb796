"""Run by test_first_use: what a server's first request meets, in a process that has used nothing yet.

Arguments: what is used (`memory`, `remember`, `recall`, `session` or `store`), and, to see that the watch
works, `on the loop`. Home, model and the rest come from the environment, as under `langgraph dev`.
"""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from blockbuster import blockbuster_ctx

CONTEXT = {"user": "ana", "session": "s1"}
SAID = {"messages": ["I play the cello. I live in Graz."]}
HEAVY = ("chromadb", "wordllama", "tokenizers", "sqlite3")
"""Packages whose code, import included, has no business on the loop; Chroma blocks where no one sees it."""
INSIDE = tuple(str(Path("stores", name)) for name in ("ledger", "search", "chroma"))


class Watch:
    """Notes code of the stores that runs on the thread of the event loop."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            own = "stores" in path.parts and any(name in str(path) for name in INSIDE)
            if own or any(name in path.parts for name in HEAVY):
                self.seen.add(f"{path.parent.name}/{path.name}")

    def __enter__(self) -> "Watch":
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


async def use_graph(name: str) -> Any:
    graph = getattr(import_module("memcycle.graph.studio"), name)
    values = {
        "memory": {"messages": [("user", "Where do I live?")], "end_session": True},
        "remember": SAID,
        "recall": {"question": "Where do I live?"},
        "session": {},
    }
    with blockbuster_ctx(), Watch() as watch:
        out = await graph.ainvoke(values[name], context=CONTEXT)
    return out, watch


async def use_store(_: str) -> Any:
    served_store = import_module("memcycle.stores.langgraph_store").served_store
    with blockbuster_ctx(), Watch() as watch:
        async with served_store() as store:
            await store.aput(("ana", "notes"), "1", {"text": "The key hangs behind the stove."})
            out = await store.asearch(("ana",), query="Where is the key?")
            await store.adelete(("ana", "notes"), "1")
    return out, watch


async def use_on_the_loop(_: str) -> Any:
    settings = import_module("memcycle.core.settings").Settings.from_env()
    bank_of = import_module("memcycle.stores.bank").Bank
    with Watch() as watch, bank_of.open(settings) as bank:
        bank.indexes.vectors.of(["Where is the key?"])
        out = bank.indexes.mirror.index().ids() == set()
    return out, watch


if __name__ == "__main__":
    wanted = sys.argv[1]
    use = {"store": use_store, "on the loop": use_on_the_loop}.get(wanted, use_graph)
    result, watched = asyncio.run(use(wanted))
    if not result or watched.seen:
        sys.exit(f"{wanted}: gave {result!r}; on the loop ran {sorted(watched.seen)}")
