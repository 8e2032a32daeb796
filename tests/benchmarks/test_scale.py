"""A tiny home, measured, and what it is made up of."""

import json
import random

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.scale import LARGEST, main, sizes
from benchmarks.synthetic import Author
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.bank import Bank


def test_sizes_add_up_and_the_first_is_the_largest():
    for entries, users in [(1, 1), (60, 6), (100_000, 1_000), (1_000_000, 2)]:
        made = sizes(entries, users, random.Random(1))
        assert (sum(made), len(made)) == (entries, users), entries
        assert made == sorted(made, reverse=True), entries
        assert made[-1] >= 1, entries
        assert entries != 100_000 or made[0] == LARGEST, entries


def test_memories_are_the_seeds_and_can_be_imported(tmp_path):
    records = list(Author("3").memory("ann", 100))
    assert records == list(Author("3").memory("ann", 100))
    assert records != list(Author("4").memory("ann", 100))
    with Bank.open(Settings(home=tmp_path)) as bank:
        assert bank.import_(Scope(user="ann"), records) == 100


@pytest.mark.slow
def test_a_tiny_home_is_measured_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command = typer.Typer()
    command.command()(main)
    result = CliRunner().invoke(command, ["--entries", "120", "--users", "4", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["entries"], figures["users"]) == (120, 4)
    assert figures["search_ms"]["largest"]["entries"] >= 30
    for group in ("small", "median", "largest"):
        assert 0 < figures["search_ms"][group]["p50"] <= figures["search_ms"][group]["p95"]
    assert figures["insert_per_s"] > figures["insert_and_index_per_s"] > 0
    assert min(figures[name] for name in ("rss_mb", "disk_mb", "open_s")) > 0
    assert not list(tmp_path.glob("memcycle-scale-*"))
    assert CliRunner().invoke(command, ["--entries", "4", "--users", "5"]).exit_code == 2
