"""Import of anything: entries of the importing user alone, or one error and nothing stored."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcycle.core.entry import Entry
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.turn import sound, sound_data
from memcycle.stores.search.request import Query, SearchRequest
from memcycle.stores.writer import united
from tests.banks import ANN, add, apply, open_bank, said

FIELDS = sorted(Entry.model_fields)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), JSON, max_size=6) | JSON, max_size=4
)
SCOPES = st.fixed_dictionaries(
    {"user": st.sampled_from(["ann", "victim", "", 7]) | JSON},
    optional={"workspace": JSON, "session": st.sampled_from(["1", None]) | JSON, "x": JSON},
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two users with memories; what they export."""
    with open_bank(tmp_path_factory.mktemp("import") / "home") as bank:
        for user in ("ann", "victim"):
            scope = Scope(user=user, session="1")
            bank.stage_turns(scope, [said(1, "I live in Graz."), said(2, "I keep bees.")])
            apply(bank, scope, [add("Lives in Graz", "D1:1", scope=scope)])
            bank.commit_session(scope)
        yield bank


MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def everything(bank, user):
    return list(bank.export(Scope(user=user)))


def imported(bank, rows) -> int | None:
    """Imports as `thief`; None where it was refused, and then nothing is there that was not."""
    victim, before = everything(bank, "victim"), everything(bank, "thief")
    try:
        count = bank.import_(Scope(user="thief"), rows)
    except BadInput as error:
        assert "record" in str(error)
        assert everything(bank, "thief") == before
        count = None
    assert everything(bank, "victim") == victim
    assert {row["scope"]["user"] for row in everything(bank, "thief")} <= {"thief"}
    return count


@MANY
@given(rows=ROWS)
def test_any_rows_are_entries_or_refused_whole(home, rows):
    imported(home, rows)


@MANY
@given(field=st.sampled_from(FIELDS), value=JSON, scope=SCOPES, which=st.integers(0, 5))
def test_so_are_exported_rows_with_any_field_changed(home, field, value, scope, which):
    rows = everything(home, "victim")
    changed = dict(rows[which % len(rows)], **{field: scope if field == "scope" else value})
    count = imported(home, [*rows, changed])
    if count is not None:
        assert imported(home, [*rows, changed]) == 0, "the same again is nothing new"


@MANY
@given(ids=st.lists(st.sampled_from(["", "x", "victim's"]), min_size=3, max_size=3))
def test_an_id_of_another_users_is_made_anew(home, ids):
    theirs = [row["id"] for row in everything(home, "victim")]
    rows = [
        {**row, "id": theirs[0] if name == "victim's" else name, "text": f"stolen {n} {name}"}
        for n, (row, name) in enumerate(zip(everything(home, "victim"), ids, strict=False))
    ]
    imported(home, rows)
    assert not {row["id"] for row in everything(home, "thief")} & set(theirs)


@MANY
@given(text=st.text(max_size=30), metadata=st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_what_is_exported_is_read_back_as_it_was(home, text, metadata):
    row = {
        "scope": {"user": "any", "session": "9"},
        "granularity": "fact",
        "text": text,
        "metadata": metadata,
    }
    count = imported(home, [row])
    if count:
        (mine,) = [one for one in everything(home, "thief") if one["text"] == sound(text)]
        assert mine["metadata"] == sound_data(metadata)


def test_numbers_that_json_does_not_have_are_refused_not_dropped(home):
    row = {
        "scope": {"user": "any", "session": "9"},
        "granularity": "fact",
        "text": "x",
        "metadata": {"a": math.inf},
    }
    with pytest.raises(BadInput, match="record 1: not plain JSON"):
        home.import_(Scope(user="thief"), [row])


IDS = st.lists(st.sampled_from("abcdef"), max_size=6)


@given(IDS, IDS, IDS)
def test_turns_unite_each_once_ones_own_first(one, two, three):
    both = united(one, two)
    assert len(both) == len(set(both))
    assert set(both) == {*one, *two}
    assert united(both, two) == united(both, one) == both
    assert united(both, three) == united(one, united(two, three))
    assert both[: len(dict.fromkeys(one))] == tuple(dict.fromkeys(one))


SYNTAX = [
    "graz", '"', "'", "*", "(", ")", "OR", "AND", "NOT", "NEAR", "scope:", "own^2", "^", "-", "{", "}", ":",
    "--", ";", "%", "_", "\\", "victim", "bees", "蜜蜂", "+", ",",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from([*SYNTAX, "\0", "\n", "\ud800"]) | st.text(max_size=4), max_size=8).map(
    " ".join
)


@MANY
@given(text=HOSTILE, speaker=st.none() | HOSTILE)
def test_no_query_is_syntax_or_finds_anothers(home, text, speaker):
    request = SearchRequest(scope=ANN, queries=(Query(text=text, speaker=speaker), Query(text="bees")), k=50)
    hits, plain = home.search(request)
    assert {hit.entry.scope.user for hit in (*hits, *plain)} == {"ann"}
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert "I keep bees." in [hit.entry.text for hit in plain]
