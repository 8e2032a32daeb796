"""`sessions`, `sessions verify`, `session`, and what other commands say of examinations."""

import io
import json
import shlex
import shutil

import pytest
from rich.console import Console
from typer.testing import CliRunner

from memcycle import Memory
from memcycle.cli import sessions as sessions_page
from memcycle.cli.app import app
from memcycle.core.probe import Attempt, Probe, Repair, SessionReport, probe_id
from tests.loopback import model_server

LISTED = [
    "session", "status", "reason", "part", "turns", "staged", "first", "last", "probes", "passed_before",
    "passed_after", "ungraded", "repairs", "rolled_back", "merged", "committed", "usage",
]  # fmt: skip
PROBE = [
    "id", "session", "part", "n", "kind", "question", "gold", "turn", "memories", "before", "after", "repair",
    "as_before",
]  # fmt: skip
REASON = "role 'prober' failed: \x1b[31mno JSON"
TURN = {"speaker": "Ann", "role": "human", "text": "My dog is called Pixel.", "time": "2024-05-08T12:00:00Z"}


def told_probes(scope, fact) -> list[Probe]:
    """One probe a fate: passed, repaired, rolled back, not repairable, ungraded, its repair undecided."""
    passed, failed = (
        Attempt(answer="Pixel", verdict="passed"),
        Attempt(answer="a cat", verdict="failed", why="no"),
    )
    draft = {"text": "Ann's dog is called Pixel [bold]\x1b]0;x\x07."}
    wrote = Repair(cause="missing", draft=draft, turn="D1:1", decision="INSERT", entry=fact, state="kept")
    undone = wrote.model_copy(
        update={
            "decision": "MERGE",
            "cause": "hard to find",
            "state": "rolled_back",
            "why": "it did not help",
        }
    )
    fates = [
        {"kind": "single-hop", "before": passed},
        {"kind": "temporal", "before": failed, "repair": wrote, "after": passed},
        {"kind": "cross-session", "before": failed, "repair": undone, "after": failed, "as_before": True},
        {
            "before": Attempt(verdict="failed", abstained=True),
            "repair": Repair(state="skipped", decision="NOOP", why="is there"),
        },
        {"before": Attempt(answer="?", why="role 'grader' failed")},
        {"before": failed, "repair": Repair(draft=draft, turn="D1:2")},
    ]
    return [
        Probe(
            **{"kind": "single-hop", **fate},
            id=probe_id(scope, 1, 1, n),
            session="1",
            part=1,
            n=n,
            question=f"What is \x1b[2Jthe dog {n} [red]called[/red]?",
            gold="Pixel",
            turn="D1:1",
        )
        for n, fate in enumerate(fates, 1)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three sessions: examined, committed unverified, open; of user ann."""
    folder = tmp_path_factory.mktemp("made") / "home"
    with Memory.open(folder, user="ann") as memory:
        for name in ("1", "2", "3"):
            said = [{**TURN, "content": f"{text} {name}"} for text in ("My dog is Pixel", "I bake")]
            memory.add(said, session=name)
        scope = memory.scope().within("1")
        fact = memory.memories(granularity="fact")[0].id
        part = memory.bank.begin_verification(scope)
        memory.bank.save_probes(scope, told_probes(scope, fact))
        usage = {"prober": {"calls": 1, "input_tokens": 900, "output_tokens": 80}}
        report = SessionReport(
            probes=6, passed_before=1, passed_after=2, ungraded=1, repairs=1, rolled_back=1, usage=usage
        )
        memory.bank.commit_session(scope, until=part.until, report=report)
        memory.bank.commit_session(memory.scope().within("2"), unverified=REASON)
    return folder


@pytest.fixture
def home(cli, made):
    """A copy of it."""
    shutil.copytree(made, cli.home)
    return cli


def line_of(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_the_list_as_json(home):
    listed = home.json("sessions", "--user", "ann")
    assert [list(one) for one in listed] == [LISTED] * 3
    assert [one["status"] for one in listed] == ["committed", "committed_unverified", "open"]
    assert [one["reason"] for one in listed] == ["", REASON, ""]
    first = listed[0]
    assert (first["passed_before"], first["passed_after"], first["ungraded"]) == (1, 2, 1)
    assert first["usage"]["prober"]["calls"] == 1
    assert (first["staged"], listed[2]["staged"] > 0) == (0, True)


def test_the_list_in_words(home):
    told = home.run("sessions", "--user", "ann").stdout
    assert line_of(told, "committed ").split() == [
        "1", "committed", "2024-05-08", "2", "0", "1", "->", "2", "of", "6", "1", "1", "0", "1",
    ]  # fmt: skip
    assert "not yet" in line_of(told, "open")
    reason = line_of(told, "session 2:")
    assert "role 'prober' failed" in reason
    assert f"memcycle sessions verify 2 --user ann --home {home.home}" in reason


def test_a_session_is_ended_by_name(home):
    ended = home.json("sessions", "end", "3", "--user", "ann")
    assert (ended["session"], ended["status"], ended["committed"] > 0) == ("3", "committed", True)
    assert [one["staged"] for one in home.json("sessions")] == [0, 0, 0]
    again = home.run("sessions", "end", "3").stdout
    assert "session 3" in again
    assert "Memories made active: 0" in again


def test_all_open_sessions_are_ended_with_a_line_for_each(home):
    with Memory.open(home.home, user="ann") as memory:
        memory.add("I teach fencing in Linz.", session="four")
    done = home.run("sessions", "end", "--all", "--json")
    assert [one["session"] for one in json.loads(done.stdout)] == ["3", "four"]
    assert done.stderr.splitlines() == ["Ending session 3 (1 of 2) ...", "Ending session four (2 of 2) ..."]
    assert (
        "No session of user 'ann' in workspace 'default' is open."
        in home.run("sessions", "end", "--all").stderr
    )
    assert home.json("sessions", "end", "--all") == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nope"], "no session 'nope' of user 'ann' in workspace 'default'; sessions there: 1, 2, 3"),
        ([], "name a session to end, or give --all"),
        (["3", "--all"], "name a session to end, or give --all"),
        (["--all", "--checkpoints", "runs", "--resume", "t"], "--resume goes on with the end of one session"),
    ],
)
def test_what_cannot_be_ended_is_said_and_nothing_is_done(home, words, why):
    before = home.json("sessions")
    done = home.run("sessions", "end", *words, code=2)
    assert why in " ".join(done.stderr.split())
    assert home.json("sessions") == before


def test_the_only_user_need_not_be_named(home):
    assert home.json("sessions") == home.json("sessions", "--user", "ann")
    assert home.json("sessions", "--workspace", "work") == []
    assert "No sessions of user 'ben'" in home.run("sessions", "--user", "ben").stderr
    assert home.json("sessions", "--user", "ben") == []


def test_a_narrow_terminal_shows_every_column(home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for waits in (True, False):
        first, second, *rows = home.run("sessions", "--user", "ann").stdout.splitlines()
        shown = {
            "session",
            "status",
            "last",
            "turn",
            "turns",
            "passed",
            "repairs",
            "rolled",
            "back",
            "merged",
        }
        assert set(f"{first} {second}".split()) == shown | {"calls"} | ({"staged"} if waits else set())
        assert "unverified" in " ".join(rows[:4]).split()
        assert all(row[-1:].isdigit() for row in rows if row[:1] in ("1", "2", "3"))
        with Memory.open(home.home, user="ann") as memory:
            memory.bank.commit_session(memory.scope().within("3"))


def test_a_session_that_says_too_little_to_ask_for_says_so(cli, chat):
    why = "no probes{} nothing in it says enough to be asked for"
    told = cli.run("ingest", chat({"text": "Hi!"}), "--user", "ann").stdout
    assert "Remembered 1 turn in 1 session: 0 facts," in told
    assert why.format(":") in cli.run("sessions").stdout
    [name] = [one["session"] for one in cli.json("sessions")]
    assert why.format(",") in cli.run("session", name).stdout
    cli.run("ingest", chat({"text": "Hello."}), "--user", "ben", "--no-verify")
    assert why.format(":") not in cli.run("sessions", "--user", "ben").stdout


def test_a_session_as_json(home):
    detail = home.json("session", "1", "--user", "ann")
    assert list(detail) == [*LISTED, "examined"]
    assert [list(probe) for probe in detail["examined"]] == [PROBE] * 6
    assert detail["examined"][1]["repair"]["decision"] == "INSERT"
    assert home.json("session", "3", "--user", "ann")["examined"] == []


def test_a_session_in_words(home):
    told = home.run("session", "1", "--user", "ann").stdout
    assert "1 -> 2 of 6, 1 ungraded. Repairs: 1 kept, 1 rolled back." in told
    assert "1 model calls, 900 tokens read" in told
    blocks = told.split("probe ")[1:]
    first, repaired, undone, noop, ungraded, undecided = (" ".join(block.split()) for block in blocks)
    assert first.startswith("1 passed single-hop asked What is")
    assert "gold Pixel turn D1:1 Ann: My dog is Pixel 1 before passed Pixel" in first
    assert "before failed a cat (no) repair INSERT " in repaired
    assert "Ann's dog is called Pixel [bold]" in repaired
    assert "(information missing)" in repaired
    assert "after passed Pixel" in repaired
    assert "MERGE" in undone
    assert "ROLLED BACK it did not help after failed" in undone
    assert "stands as before" in undone
    assert "before failed no answer repair NOOP is there" in noop
    assert ungraded.startswith("5 ungraded")
    assert "role 'grader' failed" in ungraded
    assert "repair not decided" in undecided
    assert "from D1:2 Ann: I bake 1" in undecided


def test_nothing_stored_steers_the_terminal_and_a_pipe_gets_no_colours(home):
    for args in ["sessions"], ["session", "1"], ["session", "2"], ["doctor"]:
        told = home.run(*args).stdout
        assert "\x1b" not in told, args
        assert "\x07" not in told, args
        assert "\N{REPLACEMENT CHARACTER}[" in told, args


def test_a_terminal_gets_colours(home, monkeypatch):
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, color_system="standard", markup=False, width=200)
    monkeypatch.setattr(sessions_page, "screen", lambda: console)
    home.run("sessions", "--user", "ann")
    home.run("session", "1", "--user", "ann")
    for coloured in (
        "\x1b[32mcommitted",
        "\x1b[31mcommitted unverified",
        "\x1b[31mfailed",
        "\x1b[1;31m  ROLLED",
    ):
        assert coloured in drawn.getvalue(), coloured
    assert "\x1b[2J" not in drawn.getvalue()


def test_bad_input(home):
    for args, words in [
        (["session", "9", "--user", "ann"], "no session '9' of user 'ann' in workspace 'default'"),
        (["session", " ", "--user", "ann"], "session must be"),
        (["session", "1", "--user", "ben"], "no session '1' of user 'ben'"),
        (["session", "1", "--user", " "], "user must be"),
        (["session", "1", "--workspace", "work"], "workspace 'work'"),
        (["sessions", "--user", ""], "user must be"),
        (["sessions", "verify", "9", "--user", "ann"], "sessions there: 1, 2, 3"),
        (["sessions", "verify", "1", "--user", "ben"], "no session '1' of user 'ben'"),
        (["sessions", "verify", "", "--user", "ann"], "session must be"),
    ]:
        assert words in home.fails(*args, code=2), args


@pytest.mark.parametrize("args", [["sessions"], ["session", "1"], ["sessions", "verify", "1"]])
def test_a_home_that_is_not_there(cli, args):
    assert "no memory at" in cli.fails(*args, "--user", "ann", code=1)
    assert not cli.home.exists()


def test_bad_use(home):
    for args in ["session"], ["sessions", "1"], ["sessions", "verify"]:
        assert home.run(*args, code=2).stdout == "", args


def test_several_users(home):
    with Memory.open(home.home, user="ben") as memory:
        memory.add("I bake.")
    for args in (["sessions"], ["session", "1"], ["sessions", "verify", "1"]):
        assert "--user: ann, ben" in home.fails(*args, code=2)


def test_verify_examines_and_commits(home):
    ended = home.json("sessions", "verify", "2", "--user", "ann")
    assert (ended["session"], ended["status"], ended["reason"]) == ("2", "committed", "")
    assert ended["probes"] == len(home.json("session", "2")["examined"]) > 0
    told = home.run("sessions", "verify", "3", "--user", "ann").stdout
    assert "session 3  committed" in told
    assert f"memcycle session 3 --user ann --home {home.home}" in told
    assert [one["status"] for one in home.json("sessions")] == ["committed"] * 3


def test_what_is_said_before_verify_counts_and_after_it_counts_more(home, monkeypatch, tmp_path):
    monkeypatch.setenv("MEMCYCLE_HOME", str(tmp_path / "nowhere"))
    assert json.loads(home.run("sessions", "--user", "ann", "--json", "verify", "2").stdout)["session"] == "2"
    late = ["verify", "2", "--user", "ann", "--home", str(home.home), "--json"]
    result = CliRunner().invoke(app, ["sessions", "--user", "ben", *late])
    assert json.loads(result.stdout)["status"] == "committed"


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_verify_with_a_model(home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with model_server() as server:
        model = ["--model", "openai:any", "--base-url", server.url]
        ended = home.json("sessions", "verify", "2", "--user", "ann", *model)
    assert ended["usage"]["prober"]["calls"] == 1


def test_reading_works_beside_a_writer(home):
    with Memory.open(home.home, user="ann") as writer:
        writer.add("I bought a kite.", session="4")
        assert [one["session"] for one in home.json("sessions")] == ["1", "2", "3", "4"]
        assert home.json("session", "1")["examined"]


def test_doctor_says_what_to_run(home):
    told = home.run("doctor").stdout
    assert line_of(told, "unverified ").split() == ["unverified", "1"]
    assert f"memcycle sessions verify 2 --user ann --home {home.home}" in line_of(told, "unverified:")
    [report] = home.json("doctor")["unverified_sessions"]
    assert report == {"user": "ann", "workspace": "default", "session": "2", "reason": REASON}


def test_commands_are_quoted_for_the_shell(home):
    command = sessions_page.verify_command("my trip; rm", "an'n", "work", home.home)
    names = """'my trip; rm' --user 'an'"'"'n' --workspace work"""
    assert command == f"memcycle sessions verify {names} --home {home.home}"


def test_forgetting_names_the_probes(home):
    said = home.json("memories", "--granularity", "raw", "--user", "ann")
    turn = next(row for row in said if row["turns"] == ["D1:1"])
    asked = home.run("forget", turn["id"][:8], code=2)
    assert "Probes of sessions that may hold its words" in asked.stderr
    assert "session 1, probe 1  What is \N{REPLACEMENT CHARACTER}[2Jthe dog 1" in asked.stderr
    assert "... and 1 more" in asked.stderr
    assert "6 probes" in asked.stderr
    gone = home.json("forget", turn["id"][:8], "--yes")
    assert gone["probes"] == 6
    assert home.json("session", "1")["examined"] == []


def test_forgetting_without_probes_says_nothing_of_them(home):
    entry = next(row for row in home.json("memories", "--user", "ann") if row["turns"] == ["D3:2"])
    result = home.run("forget", entry["id"][:8], "--yes")
    assert "robe" not in result.stderr + result.stdout


def test_ingest_tells_the_examination(cli, small):
    told = cli.run("ingest", small, "--user", "ann", "--probes", "2").stdout
    listed = cli.json("sessions")
    assert {one["probes"] for one in listed} <= {1, 2}
    probes, passed = (sum(one[name] for one in listed) for name in ("probes", "passed_before"))
    assert f"Examined with {probes} probes: {passed} passed" in told
    assert "repairs kept" in told


def test_ingest_without_examination(cli, small):
    result = cli.json("ingest", small, "--user", "ann", "--no-verify")
    assert (result["probes"], result["unverified"]) == (0, ["1", "2"])
    listed = cli.json("sessions")
    assert {one["status"] for one in listed} == {"committed_unverified"}
    assert {one["staged"] for one in listed} == {0}
    assert "Nothing new" in cli.run("ingest", small, "--user", "ann").stdout
    assert cli.run("ingest", small, "--user", "ann", "--probes", "0", code=2).stdout == ""


def test_a_printed_command_reads_an_id_that_looks_like_an_option_as_an_id(home):
    command = sessions_page.verify_command("--help", "ann", "default", home.home)
    told = home.run(*shlex.split(command)[1:], code=2)
    assert "no session '--help'" in told.stderr
