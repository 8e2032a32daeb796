"""Conversations in processes of their own."""

import pickle

import pytest

from memcycle.core.errors import (
    BadInput,
    EmbeddingFailed,
    MemcycleError,
    ModelUnavailable,
    StoreBusy,
    StoreError,
)
from memcycle.evals.records import Record, StoredConversation
from memcycle.evals.run import Finished, Job, portable, run_jobs
from tests.evals.small_eval import plan, sample


def jobs(path, *names, **changes):
    samples = [sample(name) for name in names]
    whole = plan(*samples, **changes)
    return [Job(whole, one, one.questions, path / one.id) for one in samples]


@pytest.mark.slow
def test_what_workers_do_arrives_here(tmp_path):
    told = []
    run_jobs(jobs(tmp_path, "one", "two", answers=False, baselines=False), 2, told.append)
    assert {event.conversation for event in told if isinstance(event, Finished)} == {"one", "two"}
    assert sum(isinstance(event, StoredConversation) for event in told) == 2
    records = [event for event in told if isinstance(event, Record)]
    assert sorted((record.conversation, record.id) for record in records) == [
        (name, f"q{n}") for name in ("one", "two") for n in range(1, 5)
    ]
    assert all(record.error is None for record in records)


@pytest.mark.slow
def test_an_error_of_a_worker_stops_the_run(tmp_path):
    bad = jobs(tmp_path, "one", "two", facts="openai:any", settings=plan(sample()).settings)
    with pytest.raises(ModelUnavailable, match="needs a key"):
        run_jobs(bad, 2, lambda _: None)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def test_errors_travel_as_kind_and_words():
    import httpx
    import openai

    refused = openai.APIConnectionError(request=httpx.Request("POST", "http://localhost/v1"))
    told = [
        (BadInput("a"), (BadInput, "a")),
        (StoreBusy("b"), (StoreError, "b")),
        (EmbeddingFailed("c"), (StoreError, "c")),
        (MemcycleError("d"), (MemcycleError, "d")),
        (ValueError("e"), (MemcycleError, "ValueError: e")),
    ]
    assert [portable(error) for error, _ in told] == [wanted for _, wanted in told]
    kind, words = portable(refused)
    assert kind is ModelUnavailable
    assert "cannot be reached" in words
    assert pickle.loads(pickle.dumps(portable(refused))) == (kind, words)
