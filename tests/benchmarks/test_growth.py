from benchmarks import growth
from memcycle.core.scope import Scope
from memcycle.memory import Memory
from tests.benchmarks.test_speed import data  # noqa: F401 - a data set made up


def test_a_filled_memory_holds_turns_and_facts_and_is_measured(data, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(growth, "TIMES", 2)
    monkeypatch.setattr(growth, "ENDS", 1)
    growth.fill(data, tmp_path, 100)
    with Memory.open(tmp_path) as memory:
        held = memory.bank.entries(Scope(user=growth.USER))
    assert sum(entry.granularity == "raw" for entry in held) == 100
    assert any(entry.granularity == "fact" for entry in held)
    figures = growth.measure(data, tmp_path, 100)
    assert all(value > 0 for value in figures.values())
    assert figures["notes found"] < 1
