"""The loopback model's server: a process of its own that answers as the rules do and counts."""

import pytest

from memcycle.evals.loopback import MODEL, served, served_so_far
from memcycle.memory import Memory


@pytest.mark.enable_socket
def test_it_answers_as_the_rules_do_and_counts(tmp_path):
    told = {}
    with served(0.05) as url:
        for name, model in (("rules", "rules"), ("served", MODEL)):
            with Memory.open(
                tmp_path / name, user="ida", model=model, base_url=url, api_key="none"
            ) as memory:
                added = memory.add("I keep bees in Tartu.", now="2024-05-01T10:00:00Z")
                answer = memory.ask("Where does the user keep bees?", now="2024-05-02T10:00:00Z")
                facts = [entry.text for entry in memory.memories(granularity="fact")]
                told[name] = (facts, answer.answer)
        calls = sum(count["calls"] for used in (added, answer) for count in used.usage.values())
        so_far = served_so_far(url)
    assert told["served"] == told["rules"]
    assert so_far.calls == calls > 0
    assert so_far.seconds >= 0.05 * calls
