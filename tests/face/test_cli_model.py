"""The command line with a model: an OpenAI-compatible server on the loopback."""

import json

import pytest

from tests.loopback import Reply, model_server
from tests.loopback_roles import rules_reply

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


def test_a_budget_that_is_used_up_is_one_line_and_costs_no_word(cli, small, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_MAX_CALLS_A_DAY", "1")
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
        told = [
            cli.run("ingest", small, "--user", "ann", *model),
            cli.run("ask", "What is Ann's dog called?", "--user", "ann", *model),
        ]
        assert len(server.requests) == 1
        for result in told:
            assert result.stderr.count("the budget of today is used up (1 of 1 calls)") == 1
        assert len(cli.json("memories", "--user", "ann", "--granularity", "raw")) == 5
        monkeypatch.delenv("MEMCYCLE_MAX_CALLS_A_DAY")
        again = cli.json("ingest", small, "--user", "ann", *model)
        assert again["usage"]["constructor"]["calls"] >= 1
        assert "Pixel" in cli.json("ask", "What is Ann's dog called?", "--user", "ann", *model)["answer"]


def test_what_came_from_the_providers_cache_is_told(cli, small):
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
        cli.run("ingest", small, "--user", "ann", *model)
        question = ("ask", "What is Ann's dog called?", "--user", "ann", *model)
        assert "cache" not in cli.run(*question).stdout
        server.script("answerer", *[lambda body: Reply(json.dumps(rules_reply(body)), cached=64)] * 2)
        assert cli.json(*question)["usage"]["answerer"]["cached"] == 64
        assert "(64 from the provider's cache)" in cli.run(*question).stdout
        assert "cached" not in cli.json(*question)["usage"]["answerer"]


def test_a_server_that_refuses_stores_what_was_said(cli, small):
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
    error = cli.run("ingest", small, "--user", "ann", *model, code=1)
    assert "cannot be reached" in error.stderr.splitlines()[-1]
    assert len(cli.json("memories", "--user", "ann", "--granularity", "raw")) == 3
    again = cli.json("ingest", small, "--user", "ann")
    assert (again["turns"], again["sessions"]) == (5, 2)
