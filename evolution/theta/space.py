"""The space that is searched: theta's dimensions, changes to them, and where a loop may start."""

import json
from collections.abc import Iterable
from hashlib import sha256
from math import exp, log
from pathlib import Path
from random import Random
from typing import Any

from memcycle.agents.diagnoser import Change, DimensionView
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, Weights, overridable
from memcycle.core.theta_space import Dimension
from memcycle.evolution.theta.states import Proposal

VERSION = "version"
"""The dimension that is a configuration's name."""
_OF_NO_USE = (VERSION, "reference_date", "extraction.wait", "extraction.tokens")
"""Not searched: a name, a date that the questions decide, and how long to wait for a server."""


def fingerprint(theta: Theta) -> str:
    """What a configuration is known by: equal where all of it but its name is. 16 hex digits."""
    plain = theta.model_dump(mode="json", exclude={VERSION})
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def changed(start: Theta, other: Theta) -> dict[str, list[Any]]:
    """In what another configuration differs, but for its name: old and new value by path."""
    return {path: [old, new] for path, old, new in start.diff(other) if path != VERSION}


def capped(theta: Theta, tokens: int) -> Theta:
    """The configuration with no more tokens of evidence than the limit, for any category of question.

    So the limit is part of it: loaded elsewhere it shows the same evidence.
    """
    paths = ("token_budget", *(f"overrides.{category}.token_budget" for category in theta.overrides))
    changes = {path: tokens for path in paths if (theta.get(path) or 0) > tokens}
    return theta.with_changes(changes)[0] if changes else theta


def writing(theta: Theta) -> dict[str, Any]:
    """The dimensions of writing memory, by path: where one of them changes, conversations are read again."""
    searched = overridable()
    return {path: theta.get(path) for path in Theta.dimensions() if path not in searched and path != VERSION}


def searched() -> dict[str, Dimension]:
    """The dimensions of searching memory, which exploration and random search may move."""
    return {path: one for path, one in overridable().items() if path not in _OF_NO_USE}


def views(theta: Theta) -> list[DimensionView]:
    """Every dimension that may be changed, with its value, as the Diagnoser is shown it."""
    return [
        DimensionView(
            path=path,
            type=one.type,
            low=one.low,
            high=one.high,
            choices=list(one.choices or ()),
            value=theta.get(path),
            description=one.description,
        )
        for path, one in Theta.dimensions().items()
        if path not in _OF_NO_USE
    ]


def with_all(theta: Theta, changes: Iterable[Change]) -> Proposal:
    """A configuration with all changes that can be made, each by itself; the first of a path counts."""
    known, seen = Theta.dimensions(), set[str]()
    done = Proposal(theta={}, applied={}, clamped=[], proposed=[], refused=[])
    for change in changes:
        plain = change.model_dump(mode="json")
        if change.path in seen:
            done["refused"].append({**plain, "why": "changed before in the same round"})
            continue
        seen.add(change.path)
        if change.path not in known and not change.path.startswith("overrides."):
            done["proposed"].append(plain)
            continue
        try:
            changed, clamped = theta.with_changes({change.path: change.value})
        except BadInput as error:
            done["refused"].append({**plain, "why": str(error)})
            continue
        done["clamped"] += [{"path": one.path, "asked": one.asked, "given": one.given} for one in clamped]
        if changed != theta:
            done["applied"][change.path] = changed.get(change.path)
        theta = changed
    done["theta"] = theta.model_dump(mode="json")
    return done


PERTURBED = 4
"""Dimensions that a perturbation moves."""
SPREAD = 0.15
"""Standard deviation of such a move, as a share of the range."""
_WIDE = 100
"""Ranges whose ends differ by such a factor are measured in logarithms."""


def perturbed(theta: Theta, seed: str) -> Theta:
    """The configuration with some dimensions moved; the same for the same seed."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    chosen = random.sample(sorted(searched().items()), PERTURBED)
    changes = {path: _moved(theta.get(path), one, random) for path, one in chosen}
    return theta.with_changes(changes)[0]


def drawn(theta: Theta, seed: str) -> Theta:
    """A configuration drawn from the whole space; what is not searched is as in `theta`."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    changes = {path: _any(one, random) for path, one in sorted(searched().items())}
    return theta.with_changes(changes)[0]


def _moved(value: Any, dimension: Dimension, random: Random) -> Any:
    if dimension.low is None or dimension.high is None or value is None:
        others = [one for one in _choices(dimension) if one != value]
        return random.choice(others) if others else value
    low, high = _scaled(dimension.low, dimension), _scaled(dimension.high, dimension)
    moved = _scaled(float(value), dimension) + random.gauss(0, SPREAD) * (high - low)
    return _back(min(max(moved, low), high), dimension)


def _any(dimension: Dimension, random: Random) -> Any:
    if dimension.low is None or dimension.high is None:
        return random.choice(_choices(dimension))
    low, high = _scaled(dimension.low, dimension), _scaled(dimension.high, dimension)
    return _back(random.uniform(low, high), dimension)


def _choices(dimension: Dimension) -> list[Any]:
    if dimension.type == "bool":
        return [False, True]
    return list(dimension.choices or [dimension.default])


def _is_wide(dimension: Dimension) -> bool:
    return (dimension.high or 0) >= _WIDE * max(dimension.low or 0, 1)


def _scaled(value: float, dimension: Dimension) -> float:
    return log(1 + value) if _is_wide(dimension) else value


def _back(value: float, dimension: Dimension) -> float:
    number = exp(value) - 1 if _is_wide(dimension) else value
    return round(number) if dimension.type == "int" else round(number, 4)


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
