"""`memcycle eval scale` on a tiny home, and what it makes up."""

import json
import random

import pytest
from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.evals.scale import LARGEST, _groups, measure, sizes
from memcycle.evals.synthetic import Author
from memcycle.stores.bank import Bank


@pytest.mark.parametrize(
    ("entries", "users"), [(1, 1), (7, 7), (60, 6), (100_000, 1_000), (300_000, 3_000), (1_000_000, 2)]
)
def test_sizes_add_up_and_the_first_is_the_largest(entries, users):
    made = sizes(entries, users, random.Random(1))
    assert (sum(made), len(made)) == (entries, users)
    assert made == sorted(made, reverse=True)
    assert made[-1] >= 1
    if entries == 100_000:
        assert made[0] == LARGEST
        assert 45 < made[-1] < made[1] < 150


def test_too_few_entries_are_refused():
    with pytest.raises(BadInput, match="10 users need at least 10 entries, not 9"):
        sizes(9, 10, random.Random(1))


def test_memories_are_the_seeds_and_can_be_imported(tmp_path):
    records = list(Author("3").memory("ann", 100))
    assert records == list(Author("3").memory("ann", 100))
    assert records != list(Author("4").memory("ann", 100))
    assert len({record["text"] for record in records}) > 95
    assert {record["granularity"] for record in records} == {"raw", "fact", "episode"}
    with Bank.open(Settings(home=tmp_path)) as bank:
        assert bank.import_(Scope(user="ann"), records) == 100


def test_groups_are_apart_where_there_are_enough_users():
    groups = _groups([str(n) for n in range(1_000)])
    assert [len(group) for group in groups.values()] == [50, 50, 1]
    assert len({user for group in groups.values() for user in group}) == 101
    assert _groups(["one"]) == {"small": ["one"], "median": ["one"], "largest": ["one"]}


def test_a_tiny_home_is_measured(tmp_path):
    told = []
    home = tmp_path / "home"
    made = measure(Settings(home=home), 120, 4, 1, lambda *said: told.append(said))
    figures = made.figures()
    assert (figures["entries"], figures["users"], figures["embedder"]) == (
        120,
        4,
        "wordllama-l2-supercat-256",
    )
    assert list(dict.fromkeys(step for step, *_ in told)) == ["insert", "index", "search", "open"]
    assert made.search["largest"].entries >= 30
    assert made.search["median"].searches == 3 * 4
    for times in made.search.values():
        assert 0 < times.p50 <= times.p95
    assert figures["insert_per_s"] > figures["insert_and_index_per_s"] > 0
    assert figures["insert_and_index_cpu_ms"] == 1000 * made.insert_cpu_s / 120
    assert min(made.insert_cpu_s, made.after_write_ms, made.rss_mb, made.disk_mb, made.open_s) > 0
    with Bank.open(Settings(home=home)) as bank:
        report = bank.check()
    assert (report["outbox"], report["index"]) == (0, {"missing": 0, "stray": 0})


def test_the_command_prints_one_json_value_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["eval", "scale", "--entries", "40", "--users", "2", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert {"entries", "users", "insert_per_s", "search_ms", "rss_mb", "disk_mb", "open_s"} <= set(figures)
    assert {"p50", "p95", "largest_p50"} <= set(figures["search_ms"])
    assert "storing entries (40)" in result.stderr
    assert not list(tmp_path.glob("memcycle-scale-*"))


def test_the_command_prints_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["eval", "scale", "--entries", "40", "--users", "2"])
    assert result.exit_code == 0, result.output
    assert "40 entries, 2 users, wordllama-l2-supercat-256" in result.stdout
    assert "largest user" in result.stdout


def test_the_command_says_what_it_refuses():
    result = CliRunner().invoke(app, ["eval", "scale", "--entries", "4", "--users", "5"])
    assert result.exit_code == 2
    assert "5 users need at least 5 entries" in result.stderr
