"""The command line with a model: an OpenAI-compatible server on the loopback."""

import pytest

from tests.loopback import model_server

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


def test_ingest_and_ask_through_a_server(cli, small, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_PROFILE", "paper")
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
        ingested = cli.json("ingest", small, "--user", "ann", *model)
        assert ingested["turns"] == 5
        assert ingested["usage"]["constructor"]["calls"] == 2
        assert ingested["usage"]["constructor"]["input_tokens"] > 0
        answer = cli.json("ask", "What is Ann's dog called?", "--user", "ann", *model)
        assert "Pixel" in answer["answer"]
        assert {"retriever", "judge", "answerer"} <= set(answer["usage"])
        told = cli.run("ask", "What is Ann's dog called?", "--user", "ann", *model).stdout
        assert "model calls" in told


def test_a_server_that_refuses_stores_what_was_said(cli, small):
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
    error = cli.run("ingest", small, "--user", "ann", *model, code=1)
    assert "cannot be reached" in error.stderr.splitlines()[-1]
    assert len(cli.json("memories", "--user", "ann", "--granularity", "raw")) == 3
    again = cli.json("ingest", small, "--user", "ann")
    assert (again["turns"], again["sessions"]) == (5, 2)
