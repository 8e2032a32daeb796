"""How `Memory` ends sessions, shows how they ended, and ends silent ones."""

import asyncio
import itertools
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memcycle import Memory, Roles, Settings
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.settings import Verification
from memcycle.core.turn import Conversation, Session, Turn
from memcycle.core.world import World
from memcycle.ingest import ingest
from memcycle.results import Ended, SessionSummary
from memcycle.stores.ledger import sessions as session_rows
from memcycle.stores.ledger.sessions import SessionInfo
from tests.hand_clock import HandClock
from tests.scripted import Scripted

START = datetime(2024, 5, 8, 12, tzinfo=UTC)
CHAT = [
    {"role": "user", "name": "Ann", "content": "I moved to Graz last Friday."},
    {"role": "user", "name": "Ann", "content": "My dog is called Pixel."},
    {"role": "user", "name": "Ann", "content": "I work as a baker in a small shop."},
]
COUNTS = ["probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged"]
LISTED = [
    "session", "status", "reason", "part", "turns", "staged", "first", "last", *COUNTS, "committed", "usage",
]  # fmt: skip
BROKEN = RoleFailed("prober", "no JSON in the reply")


def world(now=lambda: START) -> World:
    ids = itertools.count()
    return World(now=now, new_id=lambda: f"id-{next(ids)}", sleep=lambda _: None)


def opened(home, *, now=lambda: START, **changes) -> Memory:
    roles, settings = changes.pop("roles", {}), changes
    return Memory.open(
        settings=Settings(home=home, **settings),
        user="ann",
        roles=replace(Roles.rules(), **roles) if roles else None,
        world=world(now),
    )


@pytest.fixture
def memory(tmp_path):
    with opened(tmp_path / "home") as found:
        yield found


def status(memory, session="main") -> str:
    return memory.session(session).status


def test_an_end_is_reported_and_listed(memory):
    memory.add(CHAT)
    ended = memory.end_session()
    assert (ended.session, ended.status, ended.reason, ended.warnings) == ("main", "committed", "", [])
    assert ended.probes > 0
    assert ended.passed_before + ended.ungraded <= ended.probes
    assert ended.committed == len(memory.memories())
    [listed] = memory.sessions()
    assert list(listed.model_dump()) == LISTED
    assert (listed.part, listed.turns, listed.staged) == (1, 3, 0)
    assert [getattr(listed, name) for name in COUNTS] == [getattr(ended, name) for name in COUNTS]


def test_a_session_shows_its_probes(memory):
    memory.add(CHAT)
    ended = memory.end_session()
    detail = memory.session("main")
    assert list(detail.model_dump()) == [*LISTED, "examined"]
    assert [probe.n for probe in detail.examined] == list(range(1, ended.probes + 1))
    assert all(probe.turn in {"Dmain:1", "Dmain:2", "Dmain:3"} for probe in detail.examined)
    assert sum(probe.verdict == "passed" for probe in detail.examined) == ended.passed_after


def test_every_count_of_the_bank_is_told():
    assert set(SessionInfo.model_fields) - {"report"} <= set(SessionSummary.model_fields)
    told = {"session": "1", "status": "committed", "probes": 2, "another": 1, "episodes": ["e"]}
    assert Ended(**told).model_dump(include={"probes", "episodes"}) == {"probes": 2, "episodes": ["e"]}


def test_a_second_end_does_nothing_and_a_new_verification_does(memory):
    memory.add(CHAT)
    first = memory.end_session()
    again = memory.end_session()
    assert (again.status, again.probes, again.committed) == ("committed", 0, 0)
    verified = memory.verify_session("main")
    assert verified.probes == first.probes
    assert [entry.status for entry in memory.memories()] == ["active"] * first.committed


def test_an_end_without_examination(memory):
    memory.add(CHAT)
    ended = memory.end_session(verify=False)
    assert (ended.status, ended.probes) == ("committed_unverified", 0)
    assert ended.reason
    assert memory.session("main").reason == ended.reason
    assert {entry.status for entry in memory.memories()} == {"active"}
    [unverified] = memory.bank.check()["unverified_sessions"]
    assert (unverified["user"], unverified["session"]) == ("ann", "main")
    assert memory.verify_session("main").status == "committed"
    assert memory.bank.check()["unverified_sessions"] == []


def test_a_failed_role_commits_unverified_and_is_made_up_for(tmp_path):
    with opened(tmp_path / "home", roles={"prober": Scripted(BROKEN)}) as memory:
        memory.add(CHAT)
        ended = memory.end_session()
        assert ended.status == "committed_unverified"
        assert "prober" in ended.reason
        assert ended.warnings
    with opened(tmp_path / "home") as memory:
        assert memory.verify_session("main").probes > 0
        assert (status(memory), memory.session("main").reason) == ("committed", "")


@pytest.mark.parametrize("call", ["session", "verify_session"])
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"session": "other"},
            "'other' of user 'ann' in workspace 'default'; sessions there: main",
        ),
        ({"session": " "}, "session must be 1 to"),
        ({"session": "main", "user": "ben"}, "of user 'ben' in workspace 'default'; sessions there: none"),
        ({"session": "main", "workspace": "work"}, "in workspace 'work'"),
        ({"session": "main", "user": ""}, "user must be"),
    ],
)
def test_what_is_not_there_is_said(memory, call, asked, words):
    memory.add(CHAT)
    with pytest.raises(BadInput, match=words):
        getattr(memory, call)(**asked)
    assert status(memory) == "open"


def test_reading_sessions_beside_a_writer(memory, tmp_path):
    memory.add(CHAT)
    memory.end_session()
    with Memory.open(tmp_path / "home", user="ann", read_only=True) as reader:
        assert reader.sessions() == memory.sessions()
        assert reader.session("main") == memory.session("main")
        with pytest.raises(BadInput, match="reading only"):
            reader.verify_session("main")


async def test_the_awaitable_forms(tmp_path):
    async with opened(tmp_path / "home") as memory:
        await memory.aadd(CHAT)
        ended = await memory.aend_session(verify=False)
        assert ended.status == "committed_unverified"
        assert (await memory.averify_session("main")).status == "committed"
        assert [one.session for one in await memory.asessions()] == ["main"]
        assert (await memory.asession("main")).examined
        with pytest.raises(BadInput, match="no session 'x'"):
            await memory.averify_session("x")
    for name in ("sessions", "session", "verify_session", "end_session"):
        assert getattr(Memory, f"a{name}").__name__ == f"a{name}"


# Ingesting


def conversation(*sessions: str) -> Conversation:
    return Conversation(
        name="chat",
        sessions=tuple(
            Session(
                name=name,
                turns=tuple(
                    Turn(id=f"D{name}:{n}", session=name, position=n, speaker="Ann", text=text, time=START)
                    for n, text in enumerate((f"I keep {name} goats.", "My dog is called Pixel."), 1)
                ),
            )
            for name in sessions
        ),
    )


def test_ingest_counts_what_examinations_found(memory):
    result = ingest(memory, conversation("1", "2"))
    listed = memory.sessions()
    assert [getattr(result, name) for name in COUNTS] == [
        sum(getattr(one, name) for one in listed) for name in COUNTS
    ]
    assert (result.probes > 0, result.unverified) == (True, [])


def test_ingest_without_examination_is_done_all_the_same(memory):
    result = ingest(memory, conversation("1", "2"), verify=False)
    assert (result.sessions, result.probes, result.unverified) == (2, 0, ["1", "2"])
    assert ingest(memory, conversation("1", "2")).sessions == 0
    assert status(memory, "1") == "committed_unverified"


def test_ingest_ends_again_what_was_broken_off(memory):
    ingest(memory, conversation("1"))
    rows = memory.export()
    memory.add(list(conversation("2").sessions[0].turns))
    memory.bank.begin_verification(memory.scope().within("2"))
    assert status(memory, "2") == "verifying"
    result = ingest(memory, conversation("1", "2"))
    assert (result.turns, result.sessions) == (0, 1)
    assert status(memory, "2") == "committed"
    assert [row["id"] for row in memory.export()][: len(rows)] == [row["id"] for row in rows]


def test_the_number_of_probes_is_a_setting(tmp_path):
    with opened(tmp_path / "home", verification=Verification(probes=1)) as memory:
        assert ingest(memory, conversation("1")).probes == 1


# Sessions in which nobody speaks

MINUTE = 60


def silent(home, *sessions, **changes):
    """A memory in which these sessions are silent for as long as it takes, and its clock."""
    clock = HandClock()
    memory = opened(home, now=clock, **{"idle_after": MINUTE, **changes})
    for user, session in sessions:
        memory.add(CHAT, user=user, session=session)
        clock.pass_(1)
    clock.pass_(MINUTE)
    return memory, clock


def test_a_silent_session_is_ended_by_the_next_words_of_its_user(tmp_path):
    memory, _ = silent(tmp_path / "home", ("ann", "monday"))
    with memory:
        memory.ask("What is my dog called?")
        assert status(memory, "monday") == "open"
        memory.add("I have a cat, too.", session="tuesday", user="bo")
        assert status(memory, "monday") == "open"
        memory.add("I have a cat, too.", session="tuesday")
        assert (status(memory, "monday"), status(memory, "tuesday")) == ("committed", "open")
        assert [one.name for one in threading.enumerate() if one.name.startswith("memcycle")] == []


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_scheduler_ends_what_is_silent(tmp_path, awaited):
    memory, clock = silent(tmp_path / "home", ("ann", "a"), ("ann", "b"))
    with memory:
        memory.add(CHAT, session="lively")
        ended = await memory.aend_idle() if awaited else memory.end_idle()
        assert [(scope.session, one.session, one.status) for scope, one in ended.items()] == [
            ("b", "b", "committed"),
        ], "the words in `lively` ended the other"
        assert ended[memory.scope(session="b")].probes > 0
        assert status(memory, "lively") == "open"
        clock.pass_(MINUTE)
        assert [scope.session for scope in memory.end_idle()] == ["lively"]
        assert memory.end_idle() == {}


def test_it_is_one_users_or_everybodys(tmp_path):
    spoken = [("ann", "a"), ("bo", "b"), ("cy", "c")]
    memory, _ = silent(tmp_path / "home", *spoken)
    with memory:
        assert [(one.user, one.session) for one in memory.end_idle()] == [("ann", "a")]
        assert memory.end_idle(user="bo", workspace="another") == {}
        memory.user = None
        assert [(one.user, one.session) for one in memory.end_idle(user="bo")] == [("bo", "b")]
        assert [(one.user, one.session) for one in memory.end_idle()] == [("cy", "c")]
        with pytest.raises(BadInput, match="no user is named"):
            memory.end_idle(workspace="w")


def test_one_that_fails_says_so_holds_up_no_other_and_is_tried_again(tmp_path, monkeypatch, caplog):
    memory, clock = silent(tmp_path / "home", ("ann", "bad"), ("ann", "good"))
    real = memory._end_run

    def breaks(context, **more):
        if context.session == "bad":
            raise ConnectionError("the blue heron nests at dawn")
        return real(context, **more)

    with memory:
        with monkeypatch.context() as patched:
            patched.setattr(memory, "_end_run", breaks)
            bad, good = memory.end_idle().values()
        assert (bad.status, bad.warnings) == (
            "open", ["a session that had gone idle was not ended: ConnectionError"],
        )  # fmt: skip
        assert bad.warnings[0] in caplog.text
        assert "heron" not in caplog.text
        assert (good.status, status(memory, "bad")) == ("committed", "open")
        assert memory.end_idle() == {}
        clock.pass_(MINUTE)
        assert [one.status for one in memory.end_idle().values()] == ["committed"]


def test_what_another_process_left_open_or_went_on_with(tmp_path):
    """Its words stand in the ledger, of which this process heard nothing."""
    memory, clock = silent(tmp_path / "home", ("ann", "left"), ("ann", "lively"), ("ann", "ended"))
    memory.close()
    with opened(tmp_path / "home", now=clock, idle_after=MINUTE) as memory:
        memory.bank.commit_session(memory.scope(session="ended"))
        with memory.bank.ledger.write() as conn:
            session_rows.touch(conn, memory.scope(session="lively"), clock())
        assert [scope.session for scope in memory.end_idle()] == ["left"]


async def test_closing_leaves_sessions_open(tmp_path):
    """To close is no reason to examine what is being said."""
    with opened(tmp_path / "home") as memory:
        memory.add(CHAT)
    async with opened(tmp_path / "home") as memory:
        await asyncio.gather(*(memory.aadd(CHAT, session=name) for name in "ab"))
    with Memory.open(tmp_path / "home", user="ann", read_only=True) as reader:
        assert [one.status for one in reader.sessions()] == ["open"] * 3
        with pytest.raises(BadInput, match="reading only"):
            reader.end_idle()


def test_sessions_end_by_themselves_unless_that_is_switched_off(tmp_path):
    assert Settings().idle_after == 1800
    memory, _ = silent(tmp_path / "home", ("ann", "monday"), idle_after=None)
    with memory:
        assert memory.end_idle() == {}
        memory.add("I have a cat, too.", session="tuesday")
        assert status(memory, "monday") == "open"
