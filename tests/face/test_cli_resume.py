"""`--checkpoints`, `--resume` and approval on the command line."""

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from memcycle import Memory, Roles
from memcycle.agents.rules import RULES
from memcycle.cli import runs as cli_runs
from memcycle.cli.app import app
from tests.scripted import Always

LIVED, MOVED = "I live in Vienna.", "I no longer live in Vienna, I moved to Graz."
AFTER = "I no longer live in Vienna, I moved to Graz."


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMCYCLE_CHECKPOINTS", raising=False)
    return ["--user", "ann", "--checkpoints", str(tmp_path / "runs.sqlite3")]


@pytest.fixture
def moved(chat):
    return chat(
        {"text": LIVED},
        {"session": "2", "text": MOVED, "time": "2024-06-01T12:00:00+00:00"},
        {"session": "3", "text": "I work as a baker.", "time": "2024-07-01T12:00:00+00:00"},
    )


@pytest.fixture
def stopped(cli, runs, moved):
    """The thread of an ingest that waits for a person."""
    done = cli.run("ingest", moved, *runs, "--approval", "update", code=cli_runs.WAITS)
    return thread_of(done)


@pytest.fixture
def at_terminal(monkeypatch):
    monkeypatch.setattr(cli_runs, "is_asked", lambda: True)


def thread_of(done) -> str:
    return re.search(
        r"^Thread (\w+); if it breaks off, go on with --resume \1$", done.stderr, re.MULTILINE
    ).group(1)


def facts(cli) -> list[str]:
    return [row["text"] for row in cli.json("memories", "--user", "ann", "--granularity", "fact")]


def breaks_once(monkeypatch, role: str, error: BaseException) -> dict[str, Always]:
    """The role of all memories opened from here on breaks the first run off."""
    waiting = [error]

    def rule(value):
        if waiting:
            raise waiting.pop()
        return RULES[role](value)

    calls = {name: Always(own) for name, own in RULES.items()} | {role: Always(rule)}
    monkeypatch.setattr(Memory, "roles", property(lambda _: Roles(**calls)))
    return calls


def test_the_thread_is_told_before_the_run_and_in_the_json(cli, runs, small):
    ingested = cli.run("ingest", small, *runs, "--json")
    assert json.loads(ingested.stdout)["thread_id"] == thread_of(ingested)
    asked = cli.run("ask", "What is Ann's dog called?", *runs, "--json")
    assert json.loads(asked.stdout)["thread_id"] == thread_of(asked)
    verified = cli.run("sessions", "--user", "ann", "verify", "1", *runs[2:], "--json")
    assert json.loads(verified.stdout)["thread_id"] == thread_of(verified)


def test_without_checkpoints_no_thread_is_told(cli, small):
    done = cli.run("ingest", small, "--user", "ann", "--json")
    assert "Thread" not in done.stderr
    assert not {"thread_id", "pending"} & json.loads(done.stdout).keys()


def test_a_question_that_broke_off_is_answered_without_asking_again(cli, runs, ingested, monkeypatch):
    calls = breaks_once(monkeypatch, "answerer", RuntimeError("the provider is down"))
    broken = cli.run("ask", "What is Ann's dog called?", *runs, code=1)
    assert "the provider is down" in broken.stderr
    made = {name: len(role.seen) for name, role in calls.items()}
    out = cli.json("ask", *runs, "--resume", thread_of(broken))
    assert "Pixel" in out["answer"]
    assert {name: len(role.seen) for name, role in calls.items()} == {
        **made,
        "answerer": made["answerer"] + 1,
    }


def test_ctrl_c_leaves_a_run_to_resume(cli, runs, ingested, monkeypatch):
    breaks_once(monkeypatch, "answerer", KeyboardInterrupt())
    broken = cli.run("ask", "What is Ann's dog called?", *runs, code=1)
    assert "Pixel" in cli.run("ask", *runs, "--resume", thread_of(broken)).stdout


def test_an_examination_that_broke_off_goes_on(cli, runs, small, monkeypatch):
    cli.run("ingest", small, "--user", "ann", "--no-verify")
    calls = breaks_once(monkeypatch, "grader", RuntimeError("the provider is down"))
    broken = cli.run("sessions", "--user", "ann", "verify", "1", *runs[2:], code=1)
    thread, probed = thread_of(broken), len(calls["prober"].seen)
    verify = ("sessions", "--user", "ann", "verify")
    assert "is of session '1', not '2'" in cli.fails(*verify, "2", *runs[2:], "--resume", thread, code=2)
    ended = json.loads(cli.run(*verify, "1", *runs[2:], "--resume", thread, "--json").stdout)
    assert (ended["session"], ended["status"]) == ("1", "committed")
    assert len(calls["prober"].seen) == probed == 1
    assert "run of the end of a session" in cli.fails("ask", *runs, "--resume", thread, code=2)


def test_an_ingest_shows_what_waits_and_writes_nothing_of_it(cli, runs, moved):
    done = cli.run("ingest", moved, *runs, "--approval", "update", code=cli_runs.WAITS)
    told = [
        "A person is asked in session 2:",
        "1  UPDATE",
        "before: I live in Vienna.",
        f"after:  {AFTER}",
        f"said:   Ann: {MOVED}",
        "--approve all, --approve 1,3 or --reject",
    ]
    for line in told:
        assert line in done.stderr
    assert facts(cli) == ["I live in Vienna."]
    waits = cli.run("ingest", moved, *runs, "--resume", thread_of(done), "--json", code=cli_runs.WAITS)
    assert json.loads(waits.stdout)["pending"]["items"][0]["after"] == AFTER
    assert facts(cli) == ["I live in Vienna."]


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (["--approve", "all"], {AFTER, "I work as a baker."}),
        (["--approve", "1"], {AFTER, "I work as a baker."}),
        (["--reject"], {"I live in Vienna.", "I work as a baker."}),
    ],
    ids=["all", "by number", "rejected"],
)
def test_a_script_answers_by_option_and_the_rest_is_ingested(cli, runs, moved, stopped, answer, left):
    # What Refresher and Constructor propose of one turn is one change: rejected, it is not asked about again.
    args = ["ingest", moved, *runs, "--resume", stopped, *answer, "--json"]
    out = json.loads(cli.run(*args).stdout)
    assert (out["turns"], out["sessions"], out.get("pending")) == (2, 2, None)
    assert left <= set(facts(cli))
    assert ("I live in Vienna." in facts(cli)) == ("I live in Vienna." in left)


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("approve\n", AFTER),
        ("perhaps\nedit\nAnn lives in Linz.\nreject\n", "Ann lives in Linz."),
        ("reject\nreject\n", "I live in Vienna."),
    ],
    ids=["approve", "edit", "reject"],
)
def test_a_person_answers_at_the_terminal(cli, runs, moved, at_terminal, typed, left):
    done = cli.run("ingest", moved, *runs, "--approval", "update", stdin=typed)
    assert "3 turns in 3 sessions" in done.stdout
    assert left in facts(cli)


def test_a_resumed_run_asks_at_the_terminal_too(cli, runs, moved, stopped, at_terminal):
    cli.run("ingest", moved, *runs, "--resume", stopped, stdin="approve\n")
    assert AFTER in facts(cli)


def test_what_was_to_be_approved_is_asked_about_when_it_goes_on_without_the_option(cli, runs, chat):
    again = "I no longer live in Graz, I moved to Linz."
    twice = chat(
        {"text": LIVED},
        {"session": "2", "text": MOVED, "time": "2024-06-01T12:00:00+00:00"},
        {"session": "3", "text": again, "time": "2024-07-01T12:00:00+00:00"},
    )
    thread = thread_of(cli.run("ingest", twice, *runs, "--approval", "update", code=cli_runs.WAITS))
    done = cli.run("ingest", twice, *runs, "--resume", thread, "--approve", "all", code=cli_runs.WAITS)
    assert "A person is asked in session 3:" in done.stderr
    assert AFTER in facts(cli)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--resume", "nope"], "no thread 'nope'"),
        (["--approve", "all"], "name it with --resume THREAD"),
        (["--reject"], "name it with --resume THREAD"),
        (["--resume", "x", "--approve", "all", "--reject"], "leave out --reject"),
        (["--approval", "everything"], "give delete, update, or a kind"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(cli, runs, moved, args, words):
    assert words in cli.fails("ingest", moved, *runs, *args, code=2)


@pytest.mark.parametrize("args", [["--resume", "t"], ["--approval", "update"]])
def test_what_needs_checkpoints_says_so(cli, moved, args, monkeypatch):
    monkeypatch.delenv("MEMCYCLE_CHECKPOINTS", raising=False)
    assert f"{args[0]} needs --checkpoints" in cli.fails("ingest", moved, "--user", "ann", *args, code=2)


def test_a_question_and_a_thread_exclude_each_other(cli, runs, ingested):
    for args in (["ask", *runs], ["ask", "Where?", *runs, "--resume", "t"]):
        assert "one of the two" in cli.fails(*args, code=2)


def test_another_users_thread_is_refused(cli, runs, moved, stopped):
    asked = thread_of(cli.run("ask", "Where does Ann live?", *runs))
    eve = ["--user", "eve", *runs[2:]]
    told = cli.fails("ask", *eve, "--resume", asked, code=2)
    assert f"thread {asked!r} is another user's" in told
    told = cli.fails("ingest", moved, *eve, "--resume", stopped, "--approve", "all", code=2)
    assert f"thread {stopped!r} is another user's" in told
    assert cli.json("memories", "--user", "eve") == []
    assert facts(cli) == ["I live in Vienna."]


def test_a_finished_or_answered_thread_has_nothing_to_resume(cli, runs, moved, stopped):
    asked = thread_of(cli.run("ask", "Where does Ann live?", *runs))
    assert "nothing to resume" in cli.fails("ask", *runs, "--resume", asked, code=2)
    assert "no thread 'nope' in" in cli.fails("ask", *runs, "--resume", "nope", code=2)
    assert "--approve 7: give all, or numbers of what waits: 1" in cli.run(
        "ingest", moved, *runs, "--resume", stopped, "--approve", "7", code=2
    ).stderr  # fmt: skip
    cli.run("ingest", moved, *runs, "--resume", stopped, "--approve", "all")
    told = cli.fails("ingest", moved, *runs, "--resume", stopped, "--approve", "all", code=2)
    assert "waits for no approval" in told


def test_a_forgotten_user_leaves_no_run_behind(cli, runs, small):
    cli.run("ingest", small, *runs)
    thread = thread_of(cli.run("ask", "Where?", *runs))
    cli.run("forget", *runs, "--yes")
    assert f"no thread {thread!r}" in cli.fails("ask", *runs, "--resume", thread, code=2)


def test_the_place_is_read_from_the_environment_and_its_password_never_told(
    cli, small, monkeypatch, tmp_path
):
    monkeypatch.setenv("MEMCYCLE_CHECKPOINTS", f"sqlite:///{tmp_path / 'env.sqlite3'}")
    assert cli.json("ingest", small, "--user", "ann")["thread_id"]
    assert (tmp_path / "env.sqlite3").is_file()
    monkeypatch.setenv("MEMCYCLE_CHECKPOINTS", "postgresql://ann:hunter2@db/runs?nonsense@")
    assert "hunter2" not in cli.fails("ask", "Where?", "--user", "ann", code=2)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("MEMCYCLE_CHECKPOINTS", "postgresql://ann:hunter2@db/runs")
    told = cli.fails("ask", "Where?", "--user", "ann", code=1)
    assert "pip install 'memcycle[postgres]'" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("command", [["ingest"], ["ask"], ["sessions", "verify"]])
def test_the_help_shows_how(cli, command):
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"}).stdout
    assert "--checkpoints" in shown
    assert "--resume THREAD" in shown
