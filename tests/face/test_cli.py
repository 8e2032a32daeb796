"""Each command on good input."""

import io
import json
import re
import sys

import pytest
from typer.testing import CliRunner

from memcycle.cli import main
from memcycle.cli.app import app
from memcycle.cli.output import spoken_by
from memcycle.prompts import PromptSet

INGESTED = [
    "turns",
    "sessions",
    "facts",
    "episodes",
    "refreshed",
    "unextracted",
    "reextracted",
    "uncovered",
    "probes",
    "passed_before",
    "passed_after",
    "ungraded",
    "repairs",
    "rolled_back",
    "merged",
    "unverified",
    "rejected",
    "usage",
    "seconds",
]
ASKED = [
    "question",
    "answer",
    "answerable",
    "mode",
    "evidence",
    "tokens",
    "tokens_exact",
    "rounds",
    "usage",
]
COMMANDS = [
    "demo",
    "ingest",
    "ask",
    "memories",
    "edit",
    "undo",
    "history",
    "sessions",
    "session",
    "users",
    "forget",
    "export",
    "import",
    "doctor",
    "maintain",
    "graph",
]


def test_help_breaks_its_lines_where_the_terminal_ends():
    shown = CliRunner().invoke(app, ["sessions", "end", "--help"], env={"COLUMNS": "200"}).stdout
    assert any("does not wait for it. Exits with 3 where a person's" in line for line in shown.splitlines())


def test_version_and_help():
    version = CliRunner().invoke(app, ["--version"])
    assert version.exit_code == 0
    assert re.fullmatch(r"memcycle \d+\.\d+\.\d+\n", version.stdout)
    top = CliRunner().invoke(app, ["--help"])
    assert all(re.search(rf"\b{name}\b", top.stdout) for name in COMMANDS)


def test_every_command_has_examples_home_and_json():
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
        assert "Examples" in shown, name
        assert f"memcycle {name}" in shown, name
        assert "--home" in shown, name
        assert "--json" in shown, name


def test_ingest_then_ask(cli, small):
    result = cli.json("ingest", small, "--user", "ann")
    assert list(result) == INGESTED
    assert (result["turns"], result["sessions"], result["unextracted"]) == (5, 2, 0)
    assert result["facts"] >= 4
    answer = cli.json("ask", "What is Ann's dog called?", "--user", "ann")
    assert list(answer) == ASKED
    assert "Pixel" in answer["answer"]
    assert list(answer["evidence"][0]) == ["id", "granularity", "text", "turns", "event_time", "score", "why"]
    assert any("D1:2" in item["turns"] for item in answer["evidence"])
    assert "Pixel" in cli.run("ask", "What is Ann's dog called?", "--user", "ann").stdout


def test_a_second_ingest_does_nothing_new(cli, small):
    cli.run("ingest", small, "--user", "ann")
    before = cli.run("export", "--user", "ann").stdout
    again = cli.json("ingest", small, "--user", "ann")
    assert [again[key] for key in ("turns", "sessions", "facts", "episodes", "refreshed")] == [0] * 5
    assert "Nothing new" in cli.run("ingest", small, "--user", "ann").stdout
    assert cli.run("export", "--user", "ann").stdout == before


def test_another_file_of_the_same_session_is_not_taken_for_the_first(cli, chat, ingested):
    more = chat({"text": "I bought a red kite today."}, name="more.jsonl")
    assert cli.json("ingest", more, "--user", "ann")["turns"] == 1
    assert cli.json("ingest", more, "--user", "ann")["turns"] == 0
    assert len(cli.json("memories", "--user", "ann", "--granularity", "raw")) == 6


def test_progress_names_what_is_stored(cli, small):
    lines = cli.run("ingest", small, "--user", "ann", "--chunk-turns", "2").stderr.splitlines()
    assert lines == [
        "stored D1:1 to D1:2 (2/5 turns)",
        "stored D1:3 to D1:3 (3/5 turns)",
        "stored D2:1 to D2:2 (5/5 turns)",
    ]
    assert cli.run("ingest", small, "--user", "ann").stderr.startswith("already stored D1:1 to D1:3")


def test_sessions_and_chunks_are_chosen(cli, small):
    assert cli.json("ingest", small, "--user", "ann", "--sessions", "2")["turns"] == 2
    assert cli.json("ingest", small, "--user", "ann", "--sessions", "1-2")["turns"] == 3


def test_locomo_files_are_told_apart(cli, tmp_path):
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "My dog is called Pixel."}],
    }
    path = tmp_path / "data.json"
    path.write_text(
        json.dumps([{"sample_id": name, "conversation": conversation, "qa": []} for name in ("a", "b")])
    )
    assert cli.json("ingest", str(path), "--user", "ann", "--conversation", "b")["turns"] == 1
    assert "a, b" in cli.fails("ingest", str(path), "--user", "ann", code=2)
    assert "'c'" in cli.fails("ingest", str(path), "--user", "ann", "--conversation", "c", code=2)


def test_conversations_of_ones_own_data_set_are_told_apart(cli, tmp_path):
    turn = {"session": "1", "speaker": "Ann", "role": "human", "text": "Hi.", "time": "2024-04-01T10:00:00Z"}
    path = tmp_path / "own.jsonl"
    path.write_text(
        "".join(json.dumps({"id": n, "turns": [turn] * n, "questions": []}) + "\n" for n in (1, 2))
    )
    assert cli.json("ingest", str(path), "--user", "ann", "--conversation", "2")["turns"] == 2
    assert "1, 2" in cli.fails("ingest", str(path), "--user", "ann", code=2)


def test_evidence_only(cli, ingested):
    answer = cli.json("ask", "Where does Ben live?", "--user", "ann", "--evidence-only", "--k", "2")
    assert list(answer) == ASKED
    assert (answer["answer"], answer["mode"]) == (None, "evidence")
    assert len(answer["evidence"]) == 2
    assert "Oslo" in cli.run("ask", "Where does Ben live?", "--user", "ann", "--evidence-only").stdout


def test_memories_are_listed_and_narrowed(cli, ingested):
    everything = cli.json("memories", "--user", "ann")
    assert {entry["granularity"] for entry in everything} == {"raw", "fact", "episode"}
    found = cli.json("memories", "--user", "ann", "--granularity", "raw", "--search", "pixel DOG")
    assert [entry["text"] for entry in found] == ["My dog is called Pixel."]
    assert len(cli.json("memories", "--user", "ann", "--limit", "3")) == 3
    table = cli.run("memories", "--user", "ann", "--limit", "2").stdout
    assert everything[0]["id"][:8] in table
    assert f"2 of {len(everything)}" in table
    assert cli.json("memories", "--user", "nobody") == []
    assert "No such memories" in cli.run("memories", "--user", "nobody").stderr


def test_edit_undo_and_history_by_short_id(cli, ingested):
    [fact] = cli.json("memories", "--user", "ann", "--granularity", "fact", "--search", "pixel")
    edited = cli.json("edit", fact["id"][:8], "Ann's dog is called Voxel.")
    assert edited["supersedes"] == [fact["id"]]
    assert "Voxel" in cli.run("ask", "What is Ann's dog called?", "--user", "ann").stdout
    assert "Pixel" in cli.run("undo", edited["id"][:8], "--user", "ann").stdout
    events = cli.json("history", fact["id"][:8])
    assert {"user"} <= {event["actor"] for event in events}
    told = cli.run("history", fact["id"][:8]).stdout
    assert "Voxel" in told
    assert fact["id"][:8] in told


def test_forget_one(cli, small, ingested):
    [fact] = cli.json("memories", "--user", "ann", "--granularity", "fact", "--search", "pixel")
    asked = cli.run("forget", fact["id"][:8], code=2)
    assert "also held by" in asked.stderr
    assert "--yes" in asked.stderr
    gone = cli.json("forget", fact["id"][:8], "--yes")
    assert gone["forgotten"] == len(gone["ids"]) > 1
    assert cli.json("memories", "--user", "ann", "--all", "--search", "pixel") == []
    assert cli.json("ingest", small, "--user", "ann")["turns"] == 0


def test_forget_user_leaves_no_byte(cli, chat):
    cli.run("ingest", chat({"text": "The password is xyzzyplugh."}), "--user", "ann")
    cli.run("ingest", chat({"text": "I live in Oslo."}), "--user", "ben")
    assert "--yes" in cli.fails("forget", "--user", "ann", code=2)
    assert cli.json("forget", "--user", "ann", "--yes")["forgotten"] > 0
    files = [path for path in cli.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"xyzzyplugh" in path.read_bytes()]
    assert cli.json("memories", "--user", "ben")
    assert cli.json("forget", "--user", "ann", "--yes")["forgotten"] == 0


def test_export_and_import(cli, ingested, tmp_path):
    lines = cli.run("export").stdout
    assert json.loads("[" + ",".join(lines.splitlines()) + "]") == cli.json("export", "--user", "ann")
    file = tmp_path / "ann.jsonl"
    cli.run("export", "--user", "ann", "--output", str(file))
    assert file.read_text() == lines
    [fact] = cli.json("memories", "--user", "ann", "--granularity", "fact", "--search", "pixel")
    told = cli.run("history", fact["id"]).stdout
    cli.home = tmp_path / "other"
    assert cli.json("import", str(file))["imported"] == len(lines.splitlines())
    again = [json.loads(line) for line in cli.run("export", "--user", "ann").stdout.splitlines()]
    for row, copy in zip(map(json.loads, lines.splitlines()), again, strict=True):
        assert [line["action"] for line in copy.pop("log")] == [line["action"] for line in row.pop("log")] + [
            "import"
        ]
        assert copy == row
    assert cli.run("history", fact["id"]).stdout.startswith(told)
    assert cli.json("import", str(file))["imported"] == 0
    assert cli.json("import", str(file), "--user", "ben")["user"] == "ben"
    assert len(cli.json("memories", "--user", "ben")) == len(cli.json("memories", "--user", "ann"))


NAMES = "Zoë Łódź 🐎 Diyarbakır สวัสดี"
NARROW = pytest.mark.parametrize("encoding", ["ascii", "cp1252"])


def printed(monkeypatch, encoding: str, *args: str) -> bytes:
    """What the process writes to its standard output, in bytes."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        patched.setattr(sys, "argv", ["memcycle", *args])
        with pytest.raises(SystemExit) as left:
            main()
        out.flush()
    assert left.value.code in (0, None)
    return out.buffer.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp850", "utf-16"])
def test_data_is_whole_on_any_output(cli, chat, tmp_path, monkeypatch, encoding):
    cli.run("ingest", chat({"text": f"I met {NAMES}."}), "--user", "ann")
    home = ("--home", str(cli.home))
    rows = cli.json("export", "--user", "ann")
    file = tmp_path / "ann.jsonl"
    file.write_bytes(printed(monkeypatch, encoding, "export", "--user", "ann", *home))
    assert cli.json("import", str(file), "--user", "ann", "--home", str(tmp_path / "copy"))[
        "imported"
    ] == len(rows)
    file.write_bytes(printed(monkeypatch, encoding, "export", "--user", "ann", "--json", *home))
    assert cli.json("import", str(file), "--home", str(tmp_path / "list"))["imported"] == len(rows)
    wide = "utf-16" if encoding == "utf-16" else "utf-8"
    for command in (
        ["memories", "--user", "ann"],
        ["history", rows[0]["id"]],
        ["ask", "Whom did I meet?", "-u", "ann"],
    ):
        told = printed(monkeypatch, encoding, *command, "--json", *home).decode(wide)
        assert NAMES in json.dumps(json.loads(told), ensure_ascii=False), command


@NARROW
def test_what_people_read_shows_what_the_output_can(cli, chat, monkeypatch, encoding):
    cli.run("ingest", chat({"text": f"I met {NAMES}."}), "--user", "ann")
    of_ann = ("--user", "ann", "--home", str(cli.home))
    for command in (["memories"], ["ask", "Whom did I meet?"], ["session", "1"]):
        assert b"I met Zo" in printed(monkeypatch, encoding, *command, *of_ann), command
    assert printed(monkeypatch, encoding, "sessions", *of_ann)
    assert printed(monkeypatch, encoding, "doctor", *of_ann[2:])


@NARROW
def test_prompts_and_graphs_are_data_too(tmp_path, monkeypatch, encoding):
    own = f"{PromptSet.shipped().text('query_reasoner')}\n{NAMES}"
    (tmp_path / "query_reasoner.txt").write_text(own, "utf-8")
    folder = str(tmp_path)
    shown = printed(monkeypatch, encoding, "prompts", "show", "query_reasoner", "--folder", folder)
    assert shown.decode().rstrip("\n") == own
    assert f"+{NAMES}" in printed(monkeypatch, encoding, "prompts", "diff", folder).decode().splitlines()
    assert printed(monkeypatch, encoding, "graph", "recall").decode().startswith("---\nconfig")


def test_what_windows_shells_write_is_read(cli, ingested, tmp_path):
    file = tmp_path / "ann.jsonl"
    file.write_text(cli.run("export").stdout, encoding="utf-16")
    assert cli.json("import", str(file), "--user", "ben")["imported"] > 0


def test_users_are_listed_with_what_they_have(cli, chat, ingested):
    assert "Error: no memory at" in CliRunner().invoke(app, ["users", "--home", str(cli.home / "x")]).stderr
    cli.run(
        "ingest", chat({"text": "I row.", "time": "2024-04-01T10:00:00Z"}), "--user", "b\x1bo", "-w", "club"
    )
    ann, bo = cli.json("users")
    assert list(ann) == ["user", "workspace", "sessions", "turns", "entries", "facts", "episodes", "last"]
    assert (ann["user"], ann["workspace"], ann["sessions"], ann["turns"]) == ("ann", "default", 2, 5)
    assert (bo["user"], bo["workspace"], bo["turns"], bo["last"][:10]) == ("b\x1bo", "club", 1, "2024-04-01")
    head, *rows = cli.run("users").stdout.splitlines()
    assert head.split() == ["user", "workspace", "sessions", "turns", "facts", "episodes", "last", "turn"]
    assert rows[1].split()[:4] == ["b\N{REPLACEMENT CHARACTER}o", "club", "1", "1"]
    cli.run("forget", "--user", "ann", "--yes")
    cli.run("forget", "--user", "b\x1bo", "-w", "club", "--yes")
    assert cli.json("users") == []
    assert "Nobody has memory in" in cli.run("users").stderr


def test_doctor(cli, ingested):
    report = cli.json("doctor", "--rebuild", "--reembed")
    assert report["rebuilt"] > 0
    assert report["reembedded"] > 0
    assert cli.run("doctor").stdout
    assert "Pixel" in cli.run("ask", "What is Ann's dog called?", "--user", "ann").stdout


def test_a_stopped_chroma_servers_files_are_freed(cli, ingested):
    def scrub(*args):
        return CliRunner().invoke(app, ["scrub", *args])

    data = cli.home / "chroma"
    assert json.loads(scrub(str(data), "--yes", "--json").stdout) == {"folder": str(data), "left": None}
    assert scrub(str(data), "--yes").stdout == f"Freed {data} of deleted text.\n"
    assert cli.json("doctor")["found"] == []
    wrong, unasked = scrub(str(cli.home), "--yes"), scrub(str(data))
    assert (wrong.exit_code, unasked.exit_code) == (2, 2)
    assert f"{cli.home} holds no chroma.sqlite3: name the folder" in wrong.stderr
    assert "Nobody is here to answer: repeat the command with --yes" in unasked.stderr
    (vectors,) = data.glob("*/length.bin")
    vectors.write_bytes(b"other")
    left = scrub(str(data), "--yes")
    assert left.exit_code == 1
    assert f"left: deleted text may remain at the end of vector files in {data}" in left.stdout


@pytest.mark.parametrize("name", ["memory", "remember", "recall", "session"])
def test_graphs_are_drawn_without_a_home(cli, name):
    drawn = cli.json("graph", name)
    assert drawn["name"] == name
    assert drawn["mermaid"] in cli.run("graph", name).stdout
    assert "graph TD" in drawn["mermaid"]
    if name == "memory":
        assert "subgraph" in drawn["mermaid"]
    assert not cli.home.exists()


def test_stored_text_cannot_steer_the_terminal(cli, chat):
    cli.run("ingest", chat({"text": "[red]bold[/red] \x1b[31mcolour\x1b[0m :smile: {x}"}), "--user", "ann")
    listed = cli.run("memories", "--user", "ann").stdout
    assert "[red]bold[/red] \N{REPLACEMENT CHARACTER}[31mcolour" in listed
    assert "\x1b" not in listed


@pytest.mark.parametrize(
    ("speaker", "granularity", "text", "before"),
    [
        ("Ann", "fact", "I planned a garden.", "Ann: "),
        ("Ann", "fact", "Ann's sister lives in Graz.", ""),
        ("Ann", "raw", "Ann here!", "Ann: "),
        ("Ann", "episode", "They talked.", ""),
        (None, "fact", "It rains.", ""),
    ],
)
def test_a_table_names_who_said_it_unless_the_words_do(speaker, granularity, text, before):
    assert spoken_by(speaker, granularity, text) == before
