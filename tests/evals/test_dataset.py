from datetime import UTC
from pathlib import Path

import pytest

from memcycle.core.errors import BadInput
from memcycle.core.turn import Conversation
from memcycle.evals.dataset import Sample, chosen
from memcycle.evals.datasets import LOADERS
from memcycle.evals.datasets.reading import unused

HERE = Path(__file__).parent / "data"
FILES = {"locomo": "locomo.json", "longmemeval": "longmemeval.json", "membench": "membench.json"}


def samples(*names):
    return [Sample(name, Conversation(name, ()), ()) for name in names]


FIVE = samples("conv-7", "conv-9", "4", "conv-2", "conv-1")


def test_samples_are_chosen_by_place_and_by_id():
    for spec, names in [
        (None, ["conv-7", "conv-9", "4", "conv-2", "conv-1"]),
        ("2", ["conv-9"]),
        ("1-3", ["conv-7", "conv-9", "4"]),
        ("5 -", ["conv-1"]),
        # An id is meant before a place; the order is that of the file; each comes once.
        ("4", ["4"]),
        ("conv-1, 1,conv-7", ["conv-7", "conv-1"]),
    ]:
        assert [sample.id for sample in chosen(FIVE, spec)] == names, spec


@pytest.mark.parametrize("spec", ["conv-8", "6", "0", "3-6", "3-2", "", "1,,2", "1;2", "-2"])
def test_what_is_not_there_is_named_with_what_is(spec):
    with pytest.raises(BadInput, match=r"give places 1-5, or an id: conv-7, conv-9, 4, conv-2, conv-1$"):
        chosen(FIVE, spec)


def test_of_many_samples_only_the_first_are_listed():
    with pytest.raises(BadInput, match=r"give places 1-25, or an id: s0, .*, s19 and 5 more$"):
        chosen(samples(*(f"s{n}" for n in range(25))), "x")
    with pytest.raises(BadInput, match="there is none"):
        chosen([], "x")


def test_a_taken_name_is_numbered():
    assert [unused("a", []), unused("a", ["a"]), unused("a", {"a": 1, "a-2": 1})] == ["a", "a-2", "a-3"]


@pytest.mark.parametrize("name", LOADERS)
def test_every_data_set_has_one_shape(name):
    read = LOADERS[name](HERE / FILES.get(name, "own.jsonl"), zone=UTC)
    assert len({sample.id for sample in read}) == len(read) > 0
    for sample in read:
        turns = {turn.id for turn in sample.conversation.turns}
        assert len(turns) == len(sample.conversation.turns) > 0
        assert len({question.id for question in sample.questions}) == len(sample.questions)
        assert all(turns.issuperset(question.evidence) for question in sample.questions)
        assert all(turns.issuperset(fact.turns) for fact in sample.facts)
        assert all(turn.time.utcoffset() is not None for turn in sample.conversation.turns)


@pytest.mark.parametrize("name", LOADERS)
def test_a_file_that_is_not_there_or_of_another_kind_is_named(name, tmp_path):
    with pytest.raises(BadInput, match=r"no such file: .*none\.json"):
        LOADERS[name](tmp_path / "none.json", zone=UTC)
    path = tmp_path / "odd.json"
    path.write_text("7")
    with pytest.raises(BadInput, match=r"odd\.json: "):
        LOADERS[name](path, zone=UTC)
