"""Each kind of bad input: one line that says what to do, an exit code, nothing written."""

import json

import pytest

from memcycle.cli import options


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["no such file"]),
        ("", ["empty"]),
        ("not json", ["record 1", "JSON"]),
        ('{"session": "1"}', ["record 1", "'speaker'"]),
        ('["a"]', ["a list of 1, the first str", "ChatGPT", '{"session": "1"']),
        (b"caf\xe9", ["UTF-8"]),
    ],
)
def test_files_that_cannot_be_read(cli, tmp_path, content, words):
    path = tmp_path / "chat.jsonl"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    error = cli.fails("ingest", str(path), "--user", "ann", code=2)
    assert all(word in error for word in words), error
    assert str(path) in error
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": "yesterday"}, ["record 2", "turn D1:2", "'time'", "ISO 8601"]),
        ({"role": "boss"}, ["record 2", "'role'"]),
        ({"text": None}, ["record 2", "'text'"]),
        ({"session": "x" * 600}, ["record 2", "'session'"]),
    ],
)
def test_a_bad_record_stores_nothing_of_the_file(cli, chat, change, words):
    error = cli.fails("ingest", chat({}, change), "--user", "ann", code=2)
    assert all(word in error for word in words), error
    assert not cli.home.exists()


def test_empty_conversations(cli, chat):
    assert "empty" in cli.fails("ingest", chat({"text": " "}), "--user", "ann", code=2)
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--sessions", "7"], "no session"),
        (["--sessions", "3-1"], "no session"),
        (["--sessions", "x"], "1-3"),
        (["--conversation", "conv-99"], "no conversation 'conv-99'"),
        (["--format", "locomo"], "not LoCoMo"),
        (["--timezone", "Mars/Base"], "timezone"),
        (["--user", " "], "user"),
    ],
)
def test_bad_options(cli, small, args, words):
    assert words in cli.fails("ingest", small, "--user", "ann", *args, code=2)
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("model", "words"), [("gpt4", "unknown model 'gpt4'"), ("openai:gpt-4o-mini", "OPENAI_API_KEY")]
)
def test_models_that_cannot_be_used(cli, small, model, words):
    assert words in cli.fails("ingest", small, "--user", "ann", "--model", model, code=1)
    assert not cli.home.exists()


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.enable_socket
def test_a_server_that_is_not_there(cli, ingested, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    options = ["--user", "ann", "--model", "openai:any", "--base-url", "http://127.0.0.1:9"]
    assert "cannot be reached" in cli.fails("ask", "Where does Ben live?", *options, code=1)


def test_a_home_that_cannot_be_used(cli, small, tmp_path):
    cli.home = tmp_path / "file"
    cli.home.write_text("x")
    assert "another one" in cli.fails("ingest", small, "--user", "ann", code=1)
    assert cli.home.read_text() == "x"


@pytest.mark.parametrize(
    "args",
    [["memories", "--user", "ann"], ["export", "--user", "ann"], ["history", "0123456789"]],
)
def test_a_home_that_is_not_there(cli, args):
    assert "no memory at" in cli.fails(*args, code=1)
    assert not cli.home.exists()


@pytest.mark.parametrize(
    "args", [["ask"], ["ask", "Who?"], ["ingest"], ["nothing"], ["ask", "Who?", "--user", "ann", "--k", "0"]]
)
def test_bad_use(cli, args):
    assert cli.run(*args, code=2).stdout == ""


def test_ids(cli, small, ingested, monkeypatch):
    entry = cli.json("memories", "--user", "ann")[0]
    assert "6 letters" in cli.fails("history", entry["id"][:5], code=2)
    assert "no memory 'ffffffffffff'" in cli.fails("edit", "ffffffffffff", "x", code=1)
    monkeypatch.setattr(options, "LEAST", 0)
    assert "begins" in cli.fails("history", "", code=2)
    cli.run("ingest", small, "--user", "ben")
    error = cli.fails("history", entry["id"][:8], code=2)
    assert "--user" in error
    assert "ann, ben" in error
    assert cli.json("history", entry["id"][:8], "--user", "ann")
    assert "no memory" in cli.fails("history", entry["id"][:8], "--user", "ben", code=1)


def test_forget_what(cli):
    assert "--user" in cli.fails("forget", code=2)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", ["no entries"]),
        ("[1]", ["record 1"]),
        ("{", ["record 1", "JSON"]),
        ('{"id": "a"}', ["record 1", "scope.user"]),
        ('{"id": "a", "scope": {"user": "ann", "workspace": "default"}}', ["record 1"]),
    ],
)
def test_imports_that_cannot_be_read(cli, tmp_path, rows, words):
    path = tmp_path / "rows.jsonl"
    path.write_text(rows)
    error = cli.fails("import", str(path), code=2)
    assert all(word in error for word in words), error


def test_one_bad_row_stores_none(cli, ingested, tmp_path):
    rows = cli.json("export")
    rows[-1]["importance"] = 7
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    error = cli.fails("import", str(path), "--user", "ben", code=2)
    assert f"record {len(rows)}" in error
    assert "importance" in error
    assert cli.json("memories", "--user", "ben") == []


def test_a_turn_file_is_not_imported_nor_an_export_ingested(cli, small, ingested, tmp_path):
    path = tmp_path / "rows.jsonl"
    cli.run("export", "--output", str(path))
    assert "memcycle import" in cli.fails("ingest", str(path), "--user", "ben", code=2)
    assert "scope.user" in cli.fails("import", small, code=2)


def test_tracebacks_on_request(cli, monkeypatch):
    monkeypatch.setenv("MEMCYCLE_DEBUG", "1")
    result = cli.run("forget", code=1)
    assert "forget what?" in str(result.exception)


def test_nothing_is_destroyed_without_an_answer(cli, ingested, monkeypatch):
    monkeypatch.setattr("memcycle.cli.output.is_asked", lambda: True)
    refused = cli.run("forget", "--user", "ann", code=1, stdin="n\n")
    assert "Nothing was changed" in refused.stderr
    assert cli.json("memories", "--user", "ann")
    assert "Erased" in cli.run("forget", "--user", "ann", stdin="y\n").stdout


def test_mistakes_of_ours_are_one_line_too(cli, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("memcycle.cli.memories.open_memory", broken)
    assert "ZeroDivisionError: by zero (set MEMCYCLE_DEBUG=1" in cli.fails(
        "memories", "--user", "ann", code=1
    )


def test_a_file_as_home_is_said_to_be_one(cli):
    cli.home.write_text("x")
    assert "is a file" in cli.fails("memories", "--user", "ann", code=1)
    assert "is a file" in cli.fails("ask", "Where?", "--user", "ann", code=1)
