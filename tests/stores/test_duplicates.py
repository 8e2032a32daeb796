"""Which facts are one, and which of two stands for both."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memcycle.stores.duplicates import alike, relation, union, unions
from tests.banks import SAID, fact

LONG = "Nora brought a tin of roasted walnuts to the choir rehearsal in the old church"
DETAIL = LONG.replace("a tin", "a blue tin")
LATER = SAID + timedelta(days=40)


def entry(text=LONG, *turns, **fields):
    return fact(text, *(turns or ("D1:1",)), **{"speaker": "Nora"} | fields)


def dropped(one, other):
    found = [union(one, other, 0.8), union(other, one, 0.8)]
    assert found[0] == found[1]
    return found[0].drop if found[0] else None


def test_the_more_important_stands_for_both():
    weak, strong = entry(importance=0.4), entry(LONG.replace("a tin", "the tin"), importance=0.6)
    assert dropped(weak, strong) == weak


def test_of_equals_the_earlier():
    later = entry(LONG.replace("a tin", "the tin"), "D2:1", observed_at=LATER)
    assert dropped(entry(), later) == later


def test_the_one_that_says_more_whatever_it_counts():
    less, more = entry(importance=0.9), entry(DETAIL, importance=0.1, observed_at=LATER)
    assert dropped(less, more) == less


def test_of_another_speaker_or_occasion_it_is_another_fact():
    for fields in [
        {"speaker": "Ben"},
        {"event_time": SAID - timedelta(days=1)},
        {"kind": "working_summary"},
        {"granularity": "episode"},
    ]:
        assert relation(entry(), entry(DETAIL, **fields), 0.8) is None, fields


def test_the_same_dates_are_the_same_occasion():
    day = SAID - timedelta(days=3)
    first = entry(event_time=day, event_precision="day")
    assert relation(first, entry(DETAIL, event_time=day, event_precision="day"), 0.8) == "less"
    assert relation(first, entry(DETAIL, event_time=day, event_precision="week"), 0.8) is None
    assert relation(entry(event_time=SAID), entry(DETAIL), 0.8) == "less"


def test_yesterday_is_another_day_when_said_on_another():
    one, other = (entry(f"{text} yesterday") for text in (LONG, DETAIL))
    assert relation(one, other, 0.8) == "less"
    assert relation(one, other.model_copy(update={"observed_at": LATER}), 0.8) is None
    unknown = [one.model_copy(update={"observed_at": None}), other.model_copy(update={"observed_at": None})]
    assert relation(*unknown, 0.8) is None


def test_what_a_person_corrected_is_never_dropped():
    corrected = entry(LONG.replace("a tin", "the tin"), importance=0.1, actor="user", supersedes=("x",))
    plain = entry(importance=0.9)
    assert dropped(plain, corrected) == plain
    assert dropped(entry(DETAIL), corrected) is None
    assert dropped(corrected, corrected.model_copy(update={"id": "y", "text": LONG})) is None


def test_a_chain_ends_in_one():
    the = LONG.replace("a tin", "the tin")
    made = [(LONG, 0.5), (the, 0.9), (DETAIL, 0.2)]
    facts = [entry(text, f"D1:{n}", importance=weight) for n, (text, weight) in enumerate(made)]
    found = unions(alike(facts), 0.8)
    assert {one.drop.id for one in found} == {facts[0].id, facts[1].id}
    assert found[-1].keep.id == facts[2].id
    assert unions(alike([facts[2]]), 0.8) == []


def test_pairs_taken_apart_stay_apart():
    pair = entry(), entry(DETAIL)
    assert unions([pair], 0.8, separated=[frozenset(one.id for one in pair)]) == []


WORDS = ["Ann", "sold", "house", "river", "green", "old", "Graz", "likes", "tea"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9, unique=True).map(
    lambda words: "the ".join(f"{word} " for word in words).strip()
)


@given(st.lists(st.tuples(TEXT, st.sampled_from([0.2, 0.5, 0.9])), min_size=2, max_size=8))
def test_no_pair_is_missed_and_none_is_left(made):
    facts = [entry(text, f"D1:{n}", importance=weight) for n, (text, weight) in enumerate(made)]
    every = [(one, other) for at, one in enumerate(facts) for other in facts[:at]]
    found = unions(alike(facts), 0.6)
    assert found == unions(every, 0.6)
    gone = {one.drop.id for one in found}
    assert len(gone) == len(found)
    left = [one for one in facts if one.id not in gone]
    assert unions(alike(left), 0.6) == []
