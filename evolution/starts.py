"""Where evolution begins: the shipped configuration, a file, or one of four that are wrong in a known way."""

from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, Weights

_EPISODES = {"raw": 0.0, "fact": 0.0, "episode": 1.0}
STARTS: dict[str, dict[str, Any]] = {
    "shipped": {},
    # EvolveMem's R0: BM25 alone, five entries, a small context.
    "weak": {
        "weights": Weights.only(bm25=1).model_dump(),
        "views": {"dense": 0, "structured": 0},
        "k": 5,
        "token_budget": 400,
    },
    "dense-wide": {"weights": Weights.only(dense=1).model_dump(), "views": {"lexical": 0}, "k": 100},
    "wrong-weights": {
        "weights": Weights.only(
            bm25=0.2,
            window=0.2,
            context=0.2,
            first_person=3,
            idf_mass=4,
            statement=2,
            importance=2,
            recency=3,
        ).model_dump()
    },
    "episodes": {
        "routing": {"raw": _EPISODES, "fact": _EPISODES, "episode": _EPISODES},
        "weights": Weights.only(bm25=1, dense_nameless=1, idf_mass=10).model_dump(),
        "k": 60,
        "turns_first": 0,
    },
}
"""Differences from the shipped configuration, by name. What is wrong: too little context; the lexical view
has no weight; what has nothing to do with the question outweighs the evidence; every place goes to episodes,
and what is long stands first."""


def start_theta(name: str) -> Theta:
    """The configuration of a start's name, or of a file.

    Raises:
        BadInput: neither a name nor a file that can be read.
    """
    if name in STARTS:
        return Theta(version=name).with_changes(STARTS[name])[0]
    if not Path(name).is_file():
        raise BadInput(f"--start {name!r} is no file and no start; starts are {', '.join(STARTS)}")
    return Theta.load(name)
