"""A run: what is written down of each question, what it goes on from, what it refuses."""

import json
import re

import pytest

from memcycle.core.errors import BadInput, ModelUnavailable
from memcycle.evals.ask import stops_the_run
from memcycle.evals.datasets import load as load_data
from memcycle.evals.folder import RunFolder
from memcycle.evals.run import Progress
from memcycle.memory import Memory
from memcycle.stores.bank import Bank
from tests.evals.small_eval import QUESTIONS, measured, plan, records_of, sample

GOLDS = ["zestful", "a kite, a prize", "D1:2", "multi-hop", "adversarial"]


def test_each_question_has_one_whole_record(tmp_path):
    figures = measured(tmp_path / "out")
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3", "q4"]
    one = records_of(tmp_path / "out")["q1"]
    assert (one.conversation, one.category, one.gold, one.gold_turns) == (
        "garden",
        "single-hop",
        "on the roof",
        ("D1:1",),
    )
    assert one.turns[0] == one.found[0].turns[0] == "D1:1"
    assert one.found[0].tokens > 0
    assert one.scores.recall["5"] == one.scores.session_any["5"] == 1.0
    assert "roof" in one.answer
    assert one.cited == ("D1:1",)
    assert one.abstained is False
    assert one.search_ms > 0
    assert one.answer_ms > 0
    assert (one.calls, one.tokens, one.verdict, one.error) == (0, 0, None, None)
    assert set(one.baselines) == {"naive_rag", "bm25", "dense", "rrf", "weighted_sum", "full_context"}
    assert (figures["n"], figures["n_evidence"], figures["failed"]) == (4, 2, 0)
    assert figures["recall"]["5"] == 1.0


def test_adversarial_questions_have_nothing_to_find_and_are_right_when_they_abstain(tmp_path):
    figures = measured(tmp_path / "out")
    trap = records_of(tmp_path / "out")["q3"]
    assert trap.gold_turns == ()
    assert trap.scores.recall == {}
    assert trap.f1 == float(trap.abstained)
    assert figures["abstained"]["right"] == float(trap.abstained)
    assert figures["by_category"]["adversarial"]["recall"]["5"] is None


def test_only_the_words_and_the_time_of_a_question_reach_search_and_graph(tmp_path, monkeypatch):
    seen = []
    search, ask = Bank.search, Memory.ask

    def watched_search(self, request):
        seen.append(request.model_dump_json())
        return search(self, request)

    def watched_ask(self, question, **options):
        seen.append(repr((question, options)))
        return ask(self, question, **options)

    watched_ask.__wrapped__ = ask.__wrapped__
    monkeypatch.setattr(Bank, "search", watched_search)
    monkeypatch.setattr(Memory, "ask", watched_ask)
    measured(tmp_path / "out", facts="observations")
    assert len(seen) == 2 * len(QUESTIONS)  # each is searched once, and asked once
    assert not [gold for gold in GOLDS for said in seen if re.search(rf"\b{gold}\b", said)]


def killed_after(what, done):
    def watch(progress):
        if progress.what == what and progress.done == done:
            raise KeyboardInterrupt

    return {"watch": watch}


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path):
    out, told = tmp_path / "out", []
    with pytest.raises(KeyboardInterrupt):
        measured(out, options=killed_after("asking", 2))
    records = out / "records.jsonl"
    torn = records.read_bytes()[:-40]  # the second line was being written
    records.write_bytes(torn)
    resumed = measured(out, options={"watch": told.append, "resume": True})
    assert told == [Progress("asking", "garden", n, 4) for n in (2, 3, 4)]  # the first is not asked again
    whole = measured(tmp_path / "other")
    timeless = ("seconds", "milliseconds")
    assert {k: v for k, v in resumed.items() if k not in timeless} == {
        k: v for k, v in whole.items() if k not in timeless
    }
    before = records.read_bytes()
    measured(out, options={"resume": True})
    assert records.read_bytes() == before  # a finished run asks nothing again


def test_a_home_that_is_gone_is_stored_anew(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        measured(out, options=killed_after("asking", 1))
    folder = RunFolder(out)
    assert folder.home("garden").is_dir()
    folder.drop_homes()
    assert measured(out, options={"resume": True})["recall"]["5"] == 1.0
    assert len((out / "stored.jsonl").read_text().splitlines()) == 2


def test_a_folder_of_another_run_is_refused(tmp_path):
    out = tmp_path / "out"
    measured(out)
    with pytest.raises(BadInput, match="add --resume"):
        measured(out)
    with pytest.raises(BadInput, match=r"plan\.k was 10 and is now 7"):
        measured(out, k=7, options={"resume": True})
    with pytest.raises(BadInput, match=r"plan\.settings\.theta\.k_r was 2 and is now 1"):
        settings = plan(sample()).settings
        theta = settings.theta.model_copy(update={"k_r": 1})
        measured(out, settings=settings.model_copy(update={"theta": theta}), options={"resume": True})


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear to somebody")
    with pytest.raises(BadInput, match=r"other files \(thesis\.tex\)"):
        measured(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "dear to somebody"
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be made"):
        measured(tmp_path / "file")


def test_a_spoiled_record_is_named(tmp_path):
    out = tmp_path / "out"
    measured(out)
    text = (out / "records.jsonl").read_text()
    (out / "records.jsonl").write_text("{}\n" + text)
    with pytest.raises(BadInput, match=r"records\.jsonl: line 1"):
        measured(out, options={"resume": True})


def test_homes_are_deleted_unless_they_are_to_be_kept(tmp_path):
    measured(tmp_path / "a")
    assert not (tmp_path / "a" / "homes").exists()
    measured(tmp_path / "b", options={"keep": True})
    [home] = (tmp_path / "b" / "homes").iterdir()
    assert re.fullmatch(r"[0-9a-f]{16}", home.name)


def test_a_conversations_name_never_becomes_a_path(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.home("../../etc").parent == folder.home("a").parent == tmp_path / "homes"


def test_a_question_that_crashes_counts_as_wrong(tmp_path, monkeypatch):
    ask = Memory.ask

    def crashing(self, question, **options):
        if question.startswith("Where"):
            raise RuntimeError("out of luck")
        return ask(self, question, **options)

    crashing.__wrapped__ = ask.__wrapped__
    monkeypatch.setattr(Memory, "ask", crashing)
    figures = measured(tmp_path / "out", judge="rules")
    broken = records_of(tmp_path / "out")["q1"]
    assert broken.error == "RuntimeError: out of luck"
    assert (broken.f1, broken.bleu1, broken.verdict) == (0.0, 0.0, "WRONG")
    assert broken.scores.recall["5"] == 1.0  # the search itself went well
    assert (figures["n"], figures["failed"]) == (4, 1)
    assert figures["by_category"]["single-hop"]["f1"] == 0.0
    assert "out of luck" in (tmp_path / "out" / "report.md").read_text()


def test_a_search_that_crashes_found_nothing(tmp_path, monkeypatch):
    search = Bank.search

    def crashing(self, request):
        if request.queries[0].text.startswith("Where"):
            raise ZeroDivisionError
        return search(self, request)

    monkeypatch.setattr(Bank, "search", crashing)
    figures = measured(tmp_path / "out")
    broken = records_of(tmp_path / "out")["q1"]
    assert broken.scores.recall == dict.fromkeys(("5", "10", "20", "30"), 0.0)
    assert broken.scores.shown == 0.0
    assert broken.baselines["bm25"].recall["5"] == 1.0
    assert figures["recall"]["5"] == 0.5


def test_a_server_that_is_gone_stops_the_run_and_spoils_no_question(tmp_path, monkeypatch):
    ask = Memory.ask

    def gone(self, question, **options):
        if question.startswith("Which"):
            raise ModelUnavailable("the model server cannot be reached")
        return ask(self, question, **options)

    gone.__wrapped__ = ask.__wrapped__
    with monkeypatch.context() as patched:
        patched.setattr(Memory, "ask", gone)
        with pytest.raises(ModelUnavailable):
            measured(tmp_path / "out")
    assert set(records_of(tmp_path / "out")) == {"q1", "q2"}
    assert measured(tmp_path / "out", options={"resume": True})["failed"] == 0


def test_which_errors_stop_a_run():
    import httpx
    import openai

    from memcycle.core.errors import EmbeddingFailed, RoleFailed, StoreBusy

    request = httpx.Request("POST", "http://localhost")
    stopping = [
        ModelUnavailable("x"),
        StoreBusy("x"),
        openai.APIConnectionError(request=request),
        openai.AuthenticationError("x", response=httpx.Response(401, request=request), body=None),
    ]
    own = [
        EmbeddingFailed("x"),
        RoleFailed("judge", "x"),
        ValueError("x"),
        openai.BadRequestError("too long", response=httpx.Response(400, request=request), body=None),
    ]
    assert all(map(stops_the_run, stopping))
    assert not any(map(stops_the_run, own))


def test_observations_are_stored_as_facts_and_counted_for_their_turn_alone(tmp_path):
    measured(tmp_path / "out", facts="observations")
    [stored] = RunFolder(tmp_path / "out").stored.read()
    assert (stored.turns, stored.facts, stored.refused) == (5, 2, 0)
    record = records_of(tmp_path / "out")["q2"]
    united = [one for one in record.found if len(one.turns) == 2]
    assert united  # found, and yet nothing is found by it:
    assert record.scores.as_entries["5"] == 1.0
    assert set(record.baselines) == {
        "naive_rag", "bm25", "dense", "rrf", "weighted_sum", "facts_only", "full_context",
    }  # fmt: skip
    assert record.baselines["facts_only"].recall["30"] == 0.0
    assert records_of(tmp_path / "out")["q1"].baselines["facts_only"].recall["30"] == 1.0


def test_facts_that_the_data_do_not_ship_are_missed_before_anything_is_made(tmp_path):
    with pytest.raises(BadInput, match="ships no facts"):
        measured(tmp_path / "out", sample(facts=()), facts="observations")
    assert not (tmp_path / "out").exists()


def test_rules_remember_a_conversation_as_ingest_does(tmp_path):
    figures = measured(tmp_path / "out", facts="rules", options={"keep": True})
    [stored] = RunFolder(tmp_path / "out").stored.read()
    assert stored.turns == 5
    assert stored.facts >= 3
    assert figures["recall"]["5"] == 1.0
    assert figures["usage"] == {}


def test_a_search_alone_answers_nothing(tmp_path):
    figures = measured(tmp_path / "out", answers=False, baselines=False)
    assert records_of(tmp_path / "out")["q1"].answer is None
    assert [figures[name] for name in ("f1", "bleu1", "accuracy")] == [None] * 3
    assert figures["abstained"] == {"right": None, "wrong": None}
    assert figures["baselines"] == {}
    assert figures["recall"]["5"] == 1.0
    assert "## Answers" not in (tmp_path / "out" / "report.md").read_text()


def test_several_conversations_are_measured_apart(tmp_path):
    figures = measured(tmp_path / "out", sample("one"), sample("two"))
    assert figures["conversations"] == ["one", "two"]
    assert figures["n"] == 8
    assert figures["recall"]["5"] == 1.0


def test_the_clock_stands_where_the_conversation_ends(tmp_path, monkeypatch):
    asked = []
    ask = Memory.ask

    def watched(self, question, **options):
        asked.append((self._world.now().date().isoformat(), options["now"]))
        return ask(self, question, **options)

    watched.__wrapped__ = ask.__wrapped__
    monkeypatch.setattr(Memory, "ask", watched)
    measured(tmp_path / "out")
    assert set(asked) == {("2024-05-02", None)}


def test_data_are_chosen_and_checked_before_a_run(tmp_path):
    path = tmp_path / "ours.jsonl"
    turn = {
        "session": "1",
        "speaker": "Ann",
        "role": "human",
        "text": "Hello.",
        "time": "2024-05-01T09:00:00Z",
    }
    rows = [
        {"id": "a", "turns": [turn], "questions": [{"question": "One?"}, {"question": "Two?"}]},
        {"id": "b", "turns": [turn], "questions": []},
        {"id": "c", "turns": [], "questions": [{"question": "One?"}]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def load(spec, limit=None):
        from datetime import UTC

        return load_data("jsonl", path, zone=UTC, conversations=spec, limit=limit)

    assert [len(one.questions) for one in load("1-2", limit=1)] == [1, 0]
    with pytest.raises(BadInput, match="no question"):
        load("b")
    with pytest.raises(BadInput, match="'c' has no turn"):
        load(None)
    with pytest.raises(BadInput, match="no conversation 'd'"):
        load("d")
