"""LangGraph's long-term store (`BaseStore`) on the home of a memory.

For `langgraph.json`: `{"store": {"path": "memcycle.stores.langgraph_store.served_store"}}`, with the settings
from `MEMCYCLE_*`. LangGraph's server calls no factory with arguments, and does not hand on its `index` and
`ttl`: a store with those is a variable or a function of a file of your own, `"./store.py:store"`.
"""

from memcycle.stores.langgraph_store.store import MemcycleStore, served_store

__all__ = ["MemcycleStore", "served_store"]
