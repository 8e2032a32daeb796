"""Names of users, workspaces and sessions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memcycle.core.scope import MAX_NAME, Scope


@pytest.mark.parametrize("field", ["user", "workspace", "session"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("an\ud800a", "must be valid Unicode; its character 3 is a lone surrogate"),
        ("\udfff", "must be valid Unicode; its character 1 is a lone surrogate"),
        ("", f"must be 1 to {MAX_NAME} characters"),
        (" \n", "not blank"),
        ("a\0", "without NUL"),
        ("a" * (MAX_NAME + 1), f"must be 1 to {MAX_NAME} characters"),
        (7, "must be text, got int"),
    ],
)
def test_a_name_that_cannot_be_stored_is_refused(field, name, why):
    with pytest.raises(ValidationError) as failure:
        Scope(**{"user": "ann", field: name})
    assert f"{field} " in str(failure.value)
    assert why in str(failure.value)


def test_only_a_session_may_be_none():
    assert Scope(user="ann", session=None).session is None
    for field in ("user", "workspace"):
        with pytest.raises(ValidationError, match="must be text, got NoneType"):
            Scope(**{"user": "ann", field: None})


@given(st.text(max_size=MAX_NAME))
def test_every_name_is_refused_or_can_be_stored(name):
    try:
        scope = Scope(user=name, session=name)
    except ValidationError:
        return
    assert scope.key.encode().decode() == scope.key
    assert scope.base.within(name) == scope


def test_names_of_any_language_are_kept():
    for name in ("안나", "👩‍👩‍👧", "O'Brien", "a\tb", "e\u0301"):
        assert Scope(user=name).user == name
