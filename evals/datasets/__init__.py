"""The data sets that can be evaluated on, by name."""

from memcycle.evals.dataset import Loader
from memcycle.evals.datasets.jsonl import load_jsonl
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.evals.datasets.longmemeval import load_longmemeval
from memcycle.evals.datasets.membench import load_membench

LOADERS: dict[str, Loader] = {
    "locomo": load_locomo,
    "longmemeval": load_longmemeval,
    "membench": load_membench,
    "jsonl": load_jsonl,
}

__all__ = ["LOADERS"]
