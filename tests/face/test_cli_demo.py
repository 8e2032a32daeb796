"""The demonstration: what it shows, and the JSON it prints."""

from datetime import timedelta

from typer.testing import CliRunner

from memcycle.cli.app import app
from memcycle.cli.demo import QUESTIONS, conversation


def test_the_conversation_is_worth_showing():
    said = conversation()
    assert len(said.sessions) >= 5
    assert {turn.speaker for turn in said.turns} == {"Nora", "Tomas", "Ines"}
    assert any("[image: " in turn.text for turn in said.turns)
    assert said.turns[-1].time - said.turns[0].time > timedelta(days=90)


def test_its_json(cli):
    shown = cli.json("demo")
    assert list(shown) == ["turns", "facts", "episodes", "refreshed", "examined", "questions"]
    assert shown["turns"] == len(conversation().turns)
    assert shown["episodes"] >= 5
    assert shown["refreshed"] >= 1
    examined = shown["examined"]
    assert list(examined) == [
        "probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged",
    ]  # fmt: skip
    assert examined["probes"] >= len(conversation().sessions)
    assert 0 < examined["passed_before"] <= examined["passed_after"] <= examined["probes"]
    assert [item["question"] for item in shown["questions"]] == list(QUESTIONS)
    for item in shown["questions"]:
        assert list(item) == ["question", "answer", "answerable", "evidence"]
        assert all(list(piece) == ["id", "granularity", "text", "turns"] for piece in item["evidence"])
    answers = {item["question"]: item for item in shown["questions"]}
    assert "Lisbon" in answers["Where does Tomas live now?"]["answer"]
    assert "27 February 2024" in answers["When did Nora start her pottery class?"]["answer"]
    assert "Biscuit" in answers["What is Nora's dog called?"]["answer"]
    things = answers["Which things did Nora make in her pottery class?"]["answer"]
    assert "bowl" in things
    assert "mug" in things
    unknown = answers["What car does Ines drive?"]
    assert (unknown["answerable"], unknown["evidence"]) == (False, [])
    assert cli.json("demo") == shown


def test_a_step_a_line_and_nothing_left_behind(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == 0
    assert list(tmp_path.iterdir()) == []
    lines = shown.stdout.splitlines()
    for node in (
        "stage",
        "plan",
        "search",
        "judge",
        "refresh",
        "guide",
        "construct",
        "check",
        "apply",
        "commit",
    ):
        assert any(line.split()[:1] == [node] for line in lines), node
    assert any("CONFLICT" in line for line in lines)
    assert any("SUPERSEDED" in line for line in lines)
    assert "memory was asked" in shown.stdout
    assert "Nothing was repaired: a repair writes a fact that is missing" in shown.stdout
    judged = [line for line in lines if line.split()[:1] == ["judge"]]
    assert not [line for line in judged if "enough" in line]
    assert "extractive" in shown.stdout
    for question in QUESTIONS:
        assert question in shown.stdout
