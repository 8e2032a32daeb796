"""Counting model calls and tokens by role."""

from typing_extensions import TypedDict


class RoleUsage(TypedDict):
    """Calls and tokens of one role."""

    calls: int
    input_tokens: int
    output_tokens: int


Usage = dict[str, RoleUsage]


def add_usage(left: Usage | None, right: Usage | None) -> Usage:
    """Sum of two counts by role. Neither input is changed."""
    total: Usage = {role: RoleUsage(**count) for role, count in (left or {}).items()}
    for role, count in (right or {}).items():
        seen = total.get(role, RoleUsage(calls=0, input_tokens=0, output_tokens=0))
        total[role] = RoleUsage(
            calls=seen["calls"] + count["calls"],
            input_tokens=seen["input_tokens"] + count["input_tokens"],
            output_tokens=seen["output_tokens"] + count["output_tokens"],
        )
    return total


def count_usage(left: Usage | None, right: Usage | None) -> Usage:
    """The reducer of every graph's `usage` key: nodes return what they used, None starts anew."""
    return {} if right is None else add_usage(left, right)
