"""A pipeline as one loadable, versioned object."""

import pytest

from memcycle.core.errors import BadInput, ModelUnavailable, PromptError
from memcycle.core.scope import Scope
from memcycle.graph.context import Context
from memcycle.graph.pipeline import Pipeline, PipelineSpec

ANA = Context(user="ana", session="s1")


def test_saved_and_loaded_it_is_the_same_version(bank, tmp_path):
    spec = PipelineSpec(switches={"guidance": False}, theta={"k": 5})
    Pipeline.load(spec, bank).save(tmp_path / "p.json")
    loaded = Pipeline.load(tmp_path / "p.json", bank)
    assert loaded.spec == spec
    assert loaded.version == spec.version
    assert (loaded.settings.theta.k, loaded.settings.switches.guidance) == (5, False)
    assert loaded.settings.home == bank.settings.home
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_the_version_is_of_what_it_does_not_of_where_it_comes_from():
    base = PipelineSpec()
    assert PipelineSpec(parent="abc").version == base.version
    assert PipelineSpec(theta={"k": 5}).version != base.version
    assert PipelineSpec(prompts={"judge": "x"}).version != base.version


def test_its_version_is_recorded_on_what_it_makes(bank):
    pipeline = Pipeline.load({}, bank)
    pipeline.graph("remember").invoke({"messages": ["I keep two canoes in Bergen."]}, context=ANA)
    facts = bank.entries(Scope(user="ana"), granularity="fact")
    assert facts
    assert {fact.pipeline for fact in facts} == {pipeline.version}


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ({"thetta": {}}, BadInput, "thetta"),
        ({"theta": {"k": 0}}, BadInput, "theta.k"),
        ({"model": "gpt"}, ModelUnavailable, "gpt"),
        ({"prompts": {"judge": "no placeholder"}}, PromptError, "judge"),
        ({"models": {"jugde": "rules"}}, BadInput, "jugde"),
    ],
)
def test_what_does_not_fit_is_named(bank, content, error, words):
    with pytest.raises(error, match=words):
        Pipeline.load(content, bank)


@pytest.mark.parametrize(
    ("text", "words"), [("{", "not JSON"), ("[]", "JSON object"), (None, "no such file")]
)
def test_an_unreadable_file_is_named(bank, tmp_path, text, words):
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput, match=words) as raised:
        Pipeline.load(path, bank)
    assert "p.json" in str(raised.value)
