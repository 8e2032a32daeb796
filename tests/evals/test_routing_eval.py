"""Comparing what routing and Retry find."""

import json
from pathlib import Path

from typer.testing import CliRunner

from memcycle.core.theta import Theta
from memcycle.evals import routing

DATA = Path(__file__).parent / "data" / "locomo.json"


def command():
    import typer

    app = typer.Typer()
    app.command()(routing.main)
    return app


def test_the_shipped_routing_is_compared_with_the_paper_and_with_none():
    setups = routing.setups()
    assert setups["shares, Retry"] == Theta()
    assert setups["exclusive"].routing.mode == "exclusive"
    assert [name for name, theta in setups.items() if theta.k_r == 0] == ["shares", "exclusive", "none"]


def test_means_are_over_questions_not_over_conversations():
    one = {name: [(1.0, 0.0, 2.0)] for name in routing.setups()}
    two = {name: [(0.0, 0.0, 1.0), (0.5, 1.5, 1.5)] for name in routing.setups()}
    assert routing.summary([one, two])["none"] == {"recall": 0.5, "recall_at_tokens": 0.5, "rounds": 1.5}


def test_the_command_measures_every_setup():
    run = CliRunner().invoke(
        command(),
        ["--data", str(DATA), "--conversations", "1", "--facts", "observations", "--json"],
    )
    assert run.exit_code == 0, run.output
    figures = json.loads(run.stdout)
    assert figures["conversations"] == ["made-up-1"]
    assert figures["n"] > 0
    assert set(figures["setups"]) == set(routing.setups())
    for values in figures["setups"].values():
        assert 0 < values["recall"] <= 1
        assert 0 < values["recall_at_tokens"] <= 1
        assert values["rounds"] >= 1
    assert figures["setups"]["shares"]["rounds"] == 1


def test_an_unknown_conversation_is_named():
    run = CliRunner().invoke(command(), ["--data", str(DATA), "--conversations", "no-such"])
    assert run.exit_code == 1
    assert "no-such" in run.output
