"""A pipeline as a folder: read, written, run, and told by what it makes."""

import runpy

import pytest

from memcycle.agents.pipeline import FILE, NOTE, Pipeline
from memcycle.core.errors import BadInput, ModelUnavailable, PromptError
from memcycle.core.settings import Settings
from memcycle.graph import studio
from memcycle.graph.memory import build_memory
from memcycle.memory import Memory
from memcycle.prompts import PromptSet

OWN = PromptSet.shipped().text("judge") + "\nBe strict."
SOME = Pipeline(theta={"k": 5}, switches={"guidance": False}, prompts={"judge": OWN}, parent="abc")


def test_written_and_read_it_is_the_same(tmp_path):
    SOME.save(tmp_path / "a", note="# Fewer entries")
    assert Pipeline.load(tmp_path / "a") == SOME
    assert (tmp_path / "a" / NOTE).read_text() == "# Fewer entries"
    assert (tmp_path / "a" / "prompts" / "judge.txt").read_text() == OWN


def test_a_folder_that_holds_one_is_kept(tmp_path):
    SOME.save(tmp_path)
    with pytest.raises(BadInput, match="holds a pipeline"):
        Pipeline().save(tmp_path)
    assert Pipeline.load(tmp_path) == SOME


def test_the_version_is_of_what_it_does():
    base = Pipeline()
    assert Pipeline(parent="abc").version == base.version
    assert Pipeline(theta={"version": "other"}).version == base.version
    changed = [{"theta": {"k": 5}}, {"switches": {"verify": False}}, {"prompts": {"judge": OWN}}]
    versions = {Pipeline(**one).version for one in [*changed, {"model": "openai:x"}]}
    assert len(versions | {base.version}) == 5


def facts(memory):
    return [one for one in memory.memories(user="ana") if one.granularity == "fact"]


@pytest.fixture
def folder(tmp_path):
    SOME.save(tmp_path / "version")
    return tmp_path / "version"


@pytest.mark.parametrize("way", ["argument", "environment"])
def test_a_memory_runs_it_and_entries_say_so(tmp_path, folder, monkeypatch, way):
    if way == "environment":
        monkeypatch.setenv("MEMCYCLE_PIPELINE", str(folder))
    given = {"pipeline": folder} if way == "argument" else {}
    with Memory.open(tmp_path / "home", **given) as memory:
        assert (memory.settings.theta.k, memory.settings.switches.guidance) == (5, False)
        memory.add("I keep two canoes in Bergen.", user="ana")
        assert {fact.pipeline for fact in facts(memory)} == {SOME.version}


def test_settings_that_are_given_leave_the_environment_out(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_PIPELINE", str(folder))
    with Memory.open(settings=Settings(home=tmp_path / "home")) as memory:
        memory.add("I keep two canoes in Bergen.", user="ana")
        assert {fact.pipeline for fact in facts(memory)} == {"shipped"}


def test_a_graph_runs_it(tmp_path, folder):
    settings = Settings(home=tmp_path / "home")
    graph = build_memory(settings=settings, pipeline=folder)
    graph.invoke({"messages": [("user", "I keep two canoes in Bergen.")]}, context={"user": "ana"})
    with Memory.open(settings=settings) as memory:
        assert {fact.pipeline for fact in facts(memory)} == {SOME.version}


def test_the_server_runs_it(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_PIPELINE", str(folder))
    monkeypatch.setenv("MEMCYCLE_HOME", str(tmp_path / "home"))
    graph = runpy.run_path(studio.__file__)["remember"]
    graph.invoke({"messages": [("user", "I keep two canoes in Bergen.")]}, context={"user": "ana"})
    with Memory.open(tmp_path / "home") as memory:
        assert {fact.pipeline for fact in facts(memory)} == {SOME.version}


def test_what_is_named_wins_over_what_it_holds():
    own = Pipeline(model="openai:a", models={"judge": "openai:b"}, prompts={"judge": OWN})
    assert own.filled_in(None, {"guide": "openai:c"})[:2] == (
        "openai:a",
        {"judge": "openai:b", "guide": "openai:c"},
    )
    assert own.filled_in("rules", None)[:2] == ("rules", {})
    shipped = PromptSet.shipped()
    laid = own.filled_in(None, None, {"guide": shipped.text("guide") + "\nShort."})[2]
    assert laid.text("judge") == OWN
    assert laid.text("guide").endswith("Short.")
    assert own.filled_in(None, None, shipped)[2] is shipped
    assert Pipeline().filled_in(None, None) == ("rules", {}, None)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("{", BadInput, "not JSON"),
        ("[]", BadInput, "JSON object"),
        (None, BadInput, "no pipeline.json there"),
        ('{"thetta": {}}', BadInput, "thetta"),
        ('{"theta": {"k": 0}}', BadInput, "theta.k"),
        ('{"prompts": {"judge": "x"}}', BadInput, "prompts/ROLE.txt"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(tmp_path, text, error, words):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(error, match=words) as raised:
        Pipeline.load(tmp_path)
    assert str(tmp_path) in str(raised.value)


def test_a_prompt_or_a_model_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "prompts").mkdir()
    (tmp_path / FILE).write_text('{"model": "gpt"}')
    with pytest.raises(ModelUnavailable, match="gpt"):
        Memory.open(tmp_path / "home", pipeline=tmp_path)
    (tmp_path / "prompts" / "judge.txt").write_text("no placeholder")
    with pytest.raises(PromptError, match="judge"):
        Pipeline.load(tmp_path)
