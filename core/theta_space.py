"""Theta as a flat space of dimensions: what there is, and what fits."""

import difflib
import math
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel

from memcycle.core.errors import BadInput

Category = Literal["temporal", "inference", "multi", "yes_no", "single"]
"""A time is asked for; a likely conclusion; several facts at once; yes or no; one fact."""
CATEGORIES: tuple[Category, ...] = get_args(Category)


OVERRIDES = "overrides"
Kind = Literal["int", "float", "bool", "choice", "time", "text"]


@dataclass(frozen=True)
class Dimension:
    """One dimension of a configuration.

    Attributes:
        type: `int` and `float` have a range, `choice` has choices (None may be one), `bool` is a switch;
            `time` and `text` are free: a time with its zone, or None; a name.
        low, high: Bounds, both allowed; None where there are none.
        choices: What may be chosen.
    """

    type: Kind
    low: float | None
    high: float | None
    choices: tuple[Any, ...] | None
    default: Any
    description: str


class Clamped(NamedTuple):
    """A value that was out of range, or no whole number: what was asked for, and what was given."""

    path: str
    asked: Any
    given: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.asked} is out of range, {self.given} is used"


class Space:
    """The dimensions of a configuration by path, and those of them that a category of questions may override.

    A path is that of a dimension, such as `weights.bm25`, or `overrides.CATEGORY.PATH`.
    """

    def __init__(self, model: BaseModel, fixed: tuple[str, ...]) -> None:
        """The space of a frozen model, whose values are the defaults; `fixed` begin paths not overridden."""
        self.dimensions = dict(_walk(model, ""))
        self.overridable = {path: one for path, one in self.dimensions.items() if not path.startswith(fixed)}

    def dimension(self, path: str) -> Dimension:
        """The dimension at a path, or the one that it overrides; BadInput where there is none."""
        if not is_override(path):
            if path not in self.dimensions:
                raise BadInput(_unknown(path, [*self.dimensions, OVERRIDES]))
            return self.dimensions[path]
        category, _, inner = path.removeprefix(f"{OVERRIDES}.").partition(".")
        if category not in CATEGORIES:
            raise BadInput(f"{path}: no category {category!r}; categories are {', '.join(CATEGORIES)}")
        if inner not in self.overridable:
            raise BadInput(f"{path}: {_unknown(inner, self.overridable)}")
        return self.overridable[inner]

    def fitted(self, path: str, asked: Any, *, exact: bool = False) -> Any:
        """The value nearest to what is asked for: numbers in range, rounded where whole ones are needed.

        Args:
            exact: Whether a number that would have to be brought into its range is refused.

        Raises:
            BadInput: no such path, a value of another type, or none of the choices.
        """
        dimension = self.dimension(path)
        if dimension.type in ("int", "float"):
            given = _number(path, asked, dimension)
            if exact and not is_same(asked, given):
                whole = "a whole number " if dimension.type == "int" else ""
                raise BadInput(
                    f"{path}: expected {whole}from {dimension.low:g} to {dimension.high:g}, got {asked!r}"
                )
            return given
        if dimension.type == "time":
            return _time(path, asked)
        kind, wanted = (bool, "true or false") if dimension.type == "bool" else (str, "text")
        if dimension.choices is not None:
            wanted = "one of " + ", ".join("null" if one is None else str(one) for one in dimension.choices)
        if not (isinstance(asked, kind) if dimension.choices is None else asked in dimension.choices):
            raise BadInput(f"{path}: expected {wanted}, got {asked!r}")
        return asked

    def complaints(self, content: Mapping[str, Any]) -> list[str]:
        """What is wrong with the content of a file, nested or by path, key by key."""
        found = []
        for path, value in flattened(content).items():
            try:
                self.fitted(path, value, exact=True)
            except BadInput as error:
                found.append(str(error))
        return found


def is_override(path: str) -> bool:
    """Whether a path is that of an override, of whatever dimension."""
    return path.startswith(f"{OVERRIDES}.")


def _walk(model: BaseModel, prefix: str) -> Iterator[tuple[str, Dimension]]:
    for name, field in type(model).model_fields.items():
        value, path = getattr(model, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from _walk(value, f"{path}.")
        elif not isinstance(value, Mapping):
            kind, choices = _kind(field.annotation)
            low = next((float(one.ge) for one in field.metadata if isinstance(one, Ge)), None)  # type: ignore[arg-type]
            high = next((float(one.le) for one in field.metadata if isinstance(one, Le)), None)  # type: ignore[arg-type]
            yield path, Dimension(kind, low, high, choices, value, field.description or "")


def _kind(annotation: Any) -> tuple[Kind, tuple[Any, ...] | None]:
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        kind, choices = _kind(next(one for one in get_args(annotation) if one is not type(None)))
        return kind, None if choices is None else (None, *choices)
    plain: dict[Any, Kind] = {bool: "bool", int: "int", float: "float", str: "text"}
    return plain.get(annotation, "time"), None


def _unknown(path: str, known: Iterable[str]) -> str:
    """What is said of a path that is no dimension: the nearest one is offered."""
    if path == OVERRIDES:
        return f"{path}: expected an object with a category of questions as key"
    near = difflib.get_close_matches(path, list(known), n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else "; `memcycle theta show` lists what there is"
    return f"{path} is unknown{hint}"


def _number(path: str, asked: Any, dimension: Dimension) -> int | float:
    no_number = isinstance(asked, float) and math.isnan(asked)
    if isinstance(asked, bool) or not isinstance(asked, int | float) or no_number:
        raise BadInput(f"{path}: expected a number, got {asked!r}")
    low = -math.inf if dimension.low is None else dimension.low
    high = math.inf if dimension.high is None else dimension.high
    # Compared before it is converted: a whole number may be too large for a float.
    within = low if asked < low else high if asked > high else asked
    return round(within) if dimension.type == "int" else float(within)


def _time(path: str, asked: Any) -> datetime | None:
    if asked is None:
        return None
    try:
        read = datetime.fromisoformat(asked) if isinstance(asked, str) else asked
    except ValueError:
        read = None
    if not isinstance(read, datetime) or read.tzinfo is None:
        raise BadInput(f"{path}: expected a time with its zone, such as 2024-05-08T10:00:00+02:00")
    return read


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of a dimension are the same; a whole float is the number it says."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


GONE = frozenset({"maxsim", "token_vectors"})
"""What former versions had a name for, and there is no longer: it is left out."""


def flattened(changes: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by path; inner mappings are walked, keys may be paths themselves."""
    flat: dict[str, Any] = {}
    for key, value in changes.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{path}.")
        elif path.rpartition(".")[2] not in GONE:
            flat[path] = value
    return flat


def tree(values: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of `flattened`; overrides keep their paths, and those of None are left out."""
    root: dict[str, Any] = {OVERRIDES: {}}
    for path, value in values.items():
        *parents, name = path.split(".", 2 if is_override(path) else -1)
        at = root
        for parent in parents:
            at = at.setdefault(parent, {})
        if value is not None or not is_override(path):
            at[name] = value
    return root
