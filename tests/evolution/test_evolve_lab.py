"""The lab: the real recall graph under a configuration, over conversations that are stored once."""

import pytest

from memcycle.agents.roles import Roles
from memcycle.core.errors import StoreError
from memcycle.core.theta import Theta, Weights
from memcycle.evolution import lab as lab_module
from memcycle.evolution.lab import Asker, Lab
from memcycle.evolution.records import EvolveFolder
from memcycle.evolution.theta.space import capped, fingerprint
from memcycle.memory import Memory
from tests.evolution.made_evolution import SAMPLES, task
from tests.fakes import FakeEmbeddings

FEW = Theta(k=1, weights=Weights.only(bm25=1))


@pytest.fixture
def lab(tmp_path):
    with Lab(task(), SAMPLES, EvolveFolder(tmp_path), embeddings=FakeEmbeddings()) as opened:
        yield opened


@pytest.fixture
def stored(monkeypatch):
    """Names of the conversations that are stored, as that is done."""
    names, real = [], lab_module.store

    def store(memory, sample, *rest):
        names.append(sample.id)
        return real(memory, sample, *rest)

    monkeypatch.setattr(lab_module, "store", store)
    return names


def test_what_is_shown_is_scored_and_what_is_missed_is_explained(lab):
    records = lab.evaluate(Theta(), "train")
    assert [record.recall for record in records] == [1.0] * 6
    assert all(not record.missed and record.held for record in records)
    wrong = Theta(k=1, weights=Weights.only(dense=1))
    failed = [record for record in lab.evaluate(wrong, "train") if record.missed]
    assert failed
    for record in failed:
        [missed] = record.missed
        assert missed.cut == "entries"
        assert missed.rank > 1
        assert missed.views["bm25"] == 1
        assert missed.edges["bm25"] > 0
        assert sum(record.shown.entries.values()) == record.shown.k == 1


def test_a_record_names_the_configuration_it_was_asked_under(lab):
    assert {record.theta for record in lab.evaluate(FEW, "train")} == {fingerprint(FEW)}


def test_records_of_another_configuration_are_refused(lab):
    records = lab.evaluate(FEW, "train")
    lines = lab.folder.evaluation(fingerprint(Theta()), 0, "train")
    for record in records:
        lines.add(record)
    with pytest.raises(StoreError, match=f"holds records of {fingerprint(FEW)}"):
        lab.evaluate(Theta(), "train")


def test_conversations_are_stored_once_over_configurations(lab, stored):
    for theta in (Theta(), FEW, Theta(k=3)):
        lab.evaluate(theta, "train")
    assert stored == ["one"]


def test_a_dimension_of_writing_makes_a_memory_of_its_own(lab, stored):
    lab.evaluate(Theta(), "train")
    lab.evaluate(Theta(saturation_turns=10), "train")
    assert stored == ["one", "one"]


def test_read_anew_is_a_memory_of_its_own(lab, stored):
    lab.evaluate(Theta(), "train", memory=0)
    records = lab.evaluate(Theta(), "train", memory=1)
    assert stored == ["one", "one", "one"], "once, and then twice"
    assert {record.memory for record in records} == {1}


def test_a_shared_shelf_serves_another_run(tmp_path, stored):
    for run in ("a", "b"):
        folder = EvolveFolder(tmp_path / run, tmp_path / "shelf")
        with Lab(task(), SAMPLES, folder, embeddings=FakeEmbeddings()) as opened:
            opened.evaluate(Theta(), "train")
    assert stored == ["one"]


def test_a_question_on_disk_is_not_asked_again(lab, monkeypatch):
    first = lab.evaluate(Theta(), "train")

    def never(*_):
        raise AssertionError("asked again")

    monkeypatch.setattr(Asker, "ask", never)
    assert lab.evaluate(Theta(), "train") == first


def test_no_configuration_shows_more_tokens_than_the_limit(tmp_path):
    limited = task(token_budget=60)
    with Lab(limited, SAMPLES, EvolveFolder(tmp_path), embeddings=FakeEmbeddings()) as opened:
        for record in opened.evaluate(Theta(token_budget=4000), "train"):
            assert 0 < sum(record.shown.tokens.values()) <= 60


def test_the_theta_that_is_handed_over_shows_the_same_evidence_elsewhere(lab):
    theta = capped(Theta(k=4, token_budget=4000, weights=Weights.only(bm25=1, context=1)), 40)
    records = lab.evaluate(theta, "train")
    theta.save(lab.folder.best)
    [stored] = lab._open.values()
    settings = stored.settings.model_copy(update={"theta": Theta.load(lab.folder.best)})
    stored.close()
    with Memory.open(settings=settings, embeddings=FakeEmbeddings(), user="one") as memory:
        for record in records:
            found = memory.recall(record.question)
            assert tuple(one.id for one in found.evidence) == record.evidence
    assert {len(record.evidence) for record in records} <= {2, 3}


def test_answers_are_scored_where_the_objective_needs_them(tmp_path):
    answered = task(objective={"recall": 0.5, "f1": 0.5})
    with Lab(answered, SAMPLES, EvolveFolder(tmp_path), embeddings=FakeEmbeddings()) as opened:
        records = opened.evaluate(Theta(), "train")
    assert all(record.answer and record.f1 is not None for record in records)
    assert max(record.f1 for record in records) > 0.2


def test_no_node_sees_gold(tmp_path):
    """Whatever any role is asked, no gold answer and no id of a gold turn comes with it."""
    seen = []

    def watching(name, role):
        def asked(value):
            seen.append((name, value.model_dump_json()))
            return role.invoke(value)

        from langchain_core.runnables import RunnableLambda

        return RunnableLambda(asked, name=f"{name}_rules")

    rules = Roles.rules()
    watched = Roles(**{name: watching(name, getattr(rules, name)) for name in rules.names()})
    secret = "zqx-gold-answer"
    from dataclasses import replace

    sample = SAMPLES["one"]
    marked = replace(sample, questions=tuple(replace(one, answer=secret) for one in sample.questions))
    answered = task(objective={"recall": 0.5, "f1": 0.5})
    folder = EvolveFolder(tmp_path)
    with Lab(answered, {**SAMPLES, "one": marked}, folder, roles=watched, embeddings=FakeEmbeddings()) as lab:
        lab.evaluate(Theta(), "train")
    assert {name for name, _ in seen} >= {"retriever", "judge", "answerer"}
    assert not [name for name, text in seen if secret in text or "D1:" in text]


def test_a_question_that_crashes_counts_as_wrong(lab, monkeypatch):
    real = Asker._searched

    def searched(self, question, wanted):
        if question.id == "q2":
            raise ValueError("no such thing")
        return real(self, question, wanted)

    monkeypatch.setattr(Asker, "_searched", searched)
    records = {record.id: record for record in lab.evaluate(Theta(), "train")}
    assert records["q2"].recall == 0
    assert records["q2"].error == "ValueError: no such thing"
    assert records["q1"].recall == 1
