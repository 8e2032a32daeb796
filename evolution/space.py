"""The space that is searched: theta's dimensions, changes to them, and a configuration's fingerprint."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from memcycle.agents.diagnoser import Change, DimensionView
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, overridable
from memcycle.core.theta_space import Dimension

VERSION = "version"
_OF_NO_USE = (VERSION, "reference_date", "extraction.wait")
"""Not searched: a name, a date that the questions decide, and how long to wait for a server."""


@dataclass(frozen=True)
class Applied:
    """What became of changes; all of it plain data but `theta`.

    Attributes:
        theta: The configuration with them.
        applied: What is another now, by path.
        clamped: Values that were out of range: path, asked, given.
        proposed: Changes to what is no dimension, kept as wishes.
        refused: Changes whose value does not fit, with the reason.
    """

    theta: Theta
    applied: dict[str, Any] = field(default_factory=dict)
    clamped: list[dict[str, Any]] = field(default_factory=list)
    proposed: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)


def fingerprint(theta: Theta) -> str:
    """What a configuration is known by: equal where all of it but its name is. 16 hex digits."""
    plain = theta.model_dump(mode="json", exclude={VERSION})
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


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


def with_all(theta: Theta, changes: Iterable[Change]) -> Applied:
    """A configuration with all changes that can be made, each by itself; the first of a path counts."""
    done = Applied(theta)
    known, seen = Theta.dimensions(), set[str]()
    for change in changes:
        plain = change.model_dump(mode="json")
        if change.path in seen:
            done.refused.append({**plain, "why": "changed before in the same round"})
            continue
        seen.add(change.path)
        if change.path not in known and not change.path.startswith("overrides."):
            done.proposed.append(plain)
            continue
        try:
            changed, clamped = done.theta.with_changes({change.path: change.value})
        except BadInput as error:
            done.refused.append({**plain, "why": str(error)})
            continue
        done.clamped.extend({"path": one.path, "asked": one.asked, "given": one.given} for one in clamped)
        if changed != done.theta:
            done.applied[change.path] = changed.get(change.path)
        done = Applied(changed, done.applied, done.clamped, done.proposed, done.refused)
    return done
