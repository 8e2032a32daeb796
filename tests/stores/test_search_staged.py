"""What waits for its session's commit is searched in that session, and weighs on no other search."""

from datetime import timedelta

import pytest

from memcycle.stores.search import search
from memcycle.stores.search.request import Query, SearchRequest
from tests.banks import ANN, SAID, said


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(lambda n: said(n, f"secret {n} cat Mimi", session="2"), id="words"),
        pytest.param(lambda n: said(n, "hm", session="2", speaker="Mimi"), id="a name"),
        pytest.param(lambda n: said(n, "hm", session="2", time=SAID + timedelta(days=400)), id="a time"),
        pytest.param(lambda n: said(n + 3, "Mimi the cat died in May", session="1"), id="a late turn"),
    ],
)
def test_what_waits_in_another_session_weighs_on_nothing(bank, monkeypatch, whole, secret):
    """Not by its words, its speakers, its time, nor as a neighbour."""
    if not whole:
        monkeypatch.setattr(search, "SCANNED_WHOLE", 0)
    bank.stage_turns(
        ANN, [said(1, "I went to Linz"), said(2, "My cat is Mimi"), said(3, "Bo saw Wels in May")]
    )
    bank.commit_session(ANN)
    queries = tuple(
        Query(text=text) for text in ("Where is Mimi the cat in May?", "cat", "last year in Linz")
    )
    asked = SearchRequest(scope=ANN.within("other"), queries=queries)

    def found():
        return [[(hit.entry.text, hit.score) for hit in hits] for hits in bank.search(asked)]

    before = found()
    for n in (1, 2, 3):
        turn = secret(n)
        bank.stage_turns(ANN.within(turn.session), [turn])
    assert found() == before
