"""Public functions refuse what their signatures do not allow, by name."""

from datetime import datetime

import pytest

from memcycle.core.arguments import checked, unknown
from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings


@checked
def told(
    text: str,
    *,
    k: int | None = None,
    names: list[str] | None = None,
    at: datetime | str = "",
    settings: Settings | None = None,
    late: "NeverLoaded | None" = None,  # noqa: F821 - as what is loaded later
    **more: bool,
) -> str:
    return text


@checked
async def awaited(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, r"told: missing a required argument: 'text'; it takes text, k, names"),
        (("x", "y"), {}, "told: too many positional arguments"),
        ((7,), {}, "told: text must be a valid string, not 7"),
        (("x",), {"k": "3"}, "told: k must be a valid integer, not '3'"),
        (("x",), {"k": True}, "told: k must be a valid integer, not True"),
        (("x",), {"names": "ann"}, "told: names must be a valid list, not 'ann'"),
        (("x",), {"names": ["ann", 7]}, r"told: names\[1\] must be a valid string, not 7"),
        (("x",), {"at": 7}, "told: at must be a valid datetime or a valid string, not 7"),
        (("x",), {"settings": {"shards": 2}}, "told: settings must be an instance of Settings, not a dict"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(args, kwargs, why):
    with pytest.raises(BadInput, match=why):
        told(*args, **kwargs)


def test_what_fits_or_cannot_be_told_is_passed_on():
    half = "half a pair: \ud83c"
    assert told(half, k=3, names=["ann"], at="now", settings=Settings(), late=7) == half


async def test_an_awaited_one_is_refused_when_it_is_awaited():
    with pytest.raises(BadInput, match="awaited: text must be a valid string, not a list"):
        await awaited(["x"])


def test_a_value_is_not_shown_at_length():
    with pytest.raises(BadInput) as refused:
        told("x", k="my locker code is 4471, and the key lies under the mat")
    assert str(refused.value).endswith("not a str")


def test_the_nearest_name_is_offered():
    assert unknown("verfy", ["guidance", "verify"]) == "no 'verfy'; did you mean 'verify'?"
    assert unknown("sort", ["user", "kind"]) == "no 'sort'; there are user, kind"
