"""What a filter of a store's search lets through. Values are compared here: user text never becomes SQL."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value has all that a filter names.

    A plain wanted value must be equal; of an object, each named part; of a list, each element in its place. A
    missing key counts as None, which has no order. Numbers are ordered as numbers, also when one of the two
    is written as text; two texts, such as dates, as texts.

    Raises:
        ValueError: unknown operator; names those there are.
    """
    return all(_agrees(value.get(key), part) for key, part in (wanted or {}).items())


def _agrees(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_agrees(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _ORDER:
        raise ValueError(f"unsupported operator {name!r} in a filter; there are {', '.join(OPERATORS)}")
    if isinstance(value, str) and isinstance(operand, str):
        return _ORDER[name](value, operand)
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and _ORDER[name](left, right)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
