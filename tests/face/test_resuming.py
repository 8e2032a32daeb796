"""Runs of a memory that are kept: they go on where they broke off or wait, and only for their own user."""

import asyncio
import inspect
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from memcycle import Memory, Roles, Settings, checkpointer
from memcycle.agents.constructor import ConstructorOutput
from memcycle.agents.rules import RULES
from memcycle.core.errors import BadInput, MemcycleError, StoreError
from memcycle.core.settings import Approval, Verification
from memcycle.core.theta import Switches
from memcycle.core.turn import Conversation, Session, Turn
from memcycle.ingest import ingest
from memcycle.results import Added, Answer, Ended
from tests.banks import START, clock
from tests.fakes import FakeEmbeddings
from tests.hand_clock import HandClock
from tests.scripted import Always

LIVED, MOVED = "I live in Vienna.", "I no longer live in Vienna, I moved to Graz."
TOLD = "I teach pottery at Larkfield school. My sister Eva keeps bees."
ASKED = Approval(update=True, delete=True)
ALL_KINDS = Approval(kinds=("episodic", "semantic", "preference", "project_state", "procedural"))
MISSES_ALL = replace(Roles.rules(), constructor=Always(ConstructorOutput(facts=[])))
"""Roles whose Constructor finds nothing, so that all a session's end proposes is new to whoever is asked."""


class Broken(MemcycleError):
    """What breaks a run off, once."""


class Calls:
    """Roles by rules that count their calls, and break where they are told to."""

    def __init__(self) -> None:
        self.rules = {role: Always(rule) for role, rule in RULES.items()}

    @property
    def roles(self) -> Roles:
        return Roles(**self.rules)

    def breaks_in(self, role: str, error: BaseException | None = None) -> None:
        waiting = [error or Broken(role)]

        def once(value):
            if waiting:
                raise waiting.pop()
            return RULES[role](value)

        self.rules[role].outputs = [once]

    def counts(self) -> Counter[str]:
        return Counter({role: len(one.seen) for role, one in self.rules.items() if one.seen})


def opened(home: Path, checkpoints: Any = "runs.sqlite3", **changes: Any) -> Memory:
    roles, world = changes.pop("roles", None), changes.pop("world", None)
    user = changes.pop("user", "ana")
    return Memory.open(
        settings=Settings(home=home, **{"shards": 2, "user_name": "Ana"} | changes),
        user=user,
        roles=roles,
        world=world or clock(),
        embeddings=FakeEmbeddings(),
        checkpoints=home.parent / checkpoints if isinstance(checkpoints, str) else checkpoints,
    )


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def call(method: Any, *args: Any, **named: Any) -> Any:
    return method(*args, **named)


@pytest.fixture(params=["sync", "async"])
def either_way(request):
    """Calls a method of a memory, or awaits its awaitable form in a loop of its own."""

    def run(method: Any, *args: Any, **named: Any) -> Any:
        if request.param == "sync":
            return method(*args, **named)
        awaitable = getattr(method.__self__, f"a{method.__name__}")

        async def main():
            return await awaitable(*args, **named)

        return asyncio.run(main())

    return run


def texts(memory: Memory, *statuses: str) -> list[str]:
    found = memory.memories(granularity="fact", statuses=statuses or ("active", "staged"))
    return sorted(one.text for one in found)


def waiting(memory: Memory, call=call) -> Added:
    """A run that asks about Ana's move."""
    memory.add(LIVED)
    memory.end_session(verify=False)
    return memory.add(MOVED)


BROKEN = [
    ("add", ("constructor",), lambda memory: (memory.add, TOLD)),
    ("ask", ("answerer",), lambda memory: (memory.ask, "What does Eva keep?")),
    ("end_session", ("grader",), lambda memory: (memory.end_session,)),
]


@pytest.mark.parametrize(("run", "where", "begin"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_run_that_broke_off_goes_on_in_another_process_without_asking_again(
    home, either_way, run, where, begin
):
    calls = Calls()
    with opened(home, roles=calls.roles) as memory:
        if run != "add":
            memory.add(TOLD)
        unbroken = _unbroken(home, run, begin)
        before = calls.counts()
        calls.breaks_in(where[0])
        method, *args = begin(memory)
        with pytest.raises(Broken) as caught:
            either_way(method, *args, thread_id="mine")
        assert "resume('mine')" in "".join(caught.value.__notes__)
        (open_run,) = memory.unfinished()
        assert (open_run.thread_id, open_run.run, open_run.pending) == ("mine", run, None)
    with opened(home, roles=calls.roles) as memory:
        out = either_way(memory.resume, "mine")
        assert out.thread_id == "mine"
        assert out.pending is None
        assert memory.unfinished() == []
        # What broke was called once more; all else as often as in a run that did not break.
        assert calls.counts() - before == unbroken + Counter(where)
        raws = [one.text for one in memory.memories(granularity="raw")]
        assert raws == [TOLD]
        assert len(set(texts(memory))) == len(texts(memory))
    wanted = {"add": Added, "ask": Answer, "end_session": Ended}[run]
    assert type(out) is wanted
    assert {"add": lambda: out.turns == ["Dmain:1"], "ask": lambda: "bees" in out.answer,
            "end_session": lambda: out.status == "committed"}[run]()  # fmt: skip


def _unbroken(home: Path, run: str, begin: Any) -> Counter[str]:
    """The calls of the same run in a memory of its own, unbroken."""
    calls = Calls()
    with opened(home.parent / "unbroken", "unbroken.sqlite3", roles=calls.roles) as memory:
        if run != "add":
            memory.add(TOLD)
        before = calls.counts()
        method, *args = begin(memory)
        method(*args)
        return calls.counts() - before


def test_ctrl_c_leaves_a_run_that_goes_on(home):
    calls = Calls()
    calls.breaks_in("answerer", KeyboardInterrupt())
    with opened(home, roles=calls.roles) as memory:
        memory.add(TOLD)
        with pytest.raises(KeyboardInterrupt):
            memory.ask("What does Eva keep?", thread_id="t")
        assert "bees" in memory.resume("t").answer
        assert calls.counts()["judge"] <= 1


def test_a_broken_run_goes_on_with_the_time_and_the_limits_it_began_with(home):
    calls, days = Calls(), HandClock()
    calls.breaks_in("answerer")
    with opened(home, roles=calls.roles, world=replace(clock(), now=days)) as memory:
        memory.add([TOLD, "Eva has a red barn."], session="other")
        with pytest.raises(Broken):
            memory.ask("What does Eva keep?", k=1, session="other", thread_id="t")
        began = days()
        days.pass_(86_400 * 30)
        out = memory.resume("t")
        assert len(out.evidence) == 1
        assert {value.now for value in calls.rules["answerer"].seen} == {began}
        summary = memory.thread("t")
        assert (summary.begun, summary.session, summary.finished) == (began, "other", True)


def test_every_run_has_a_thread_of_its_own_that_its_result_names(home, either_way):
    with opened(home) as memory:
        results = [
            either_way(memory.add, LIVED),
            either_way(memory.ask, "Where do I live?"),
            either_way(memory.recall, "Where do I live?"),
            either_way(memory.end_session),
            either_way(memory.verify_session, "main"),
        ]
        ids = [one.thread_id for one in results]
        assert len(set(ids)) == len(ids)
        assert all(one.model_dump(mode="json")["thread_id"] == one.thread_id for one in results)
        assert [memory.thread(one).run for one in ids] == ["add", "ask", "ask", "end_session", "end_session"]
        history = [*memory.graphs["recall"].get_state_history({"configurable": {"thread_id": ids[1]}})]
        assert history[0].values["answer"]["answer"] == results[1].answer


def test_without_checkpoints_nothing_is_told_of_threads_and_nothing_can_be_resumed(home):
    with opened(home, None) as memory:
        added = memory.add(LIVED)
        assert added.thread_id is None
        assert not {"thread_id", "pending"} & added.model_dump(mode="json").keys()
        for refused in (
            lambda: memory.resume("t"),
            memory.unfinished,
            lambda: memory.delete_thread("t"),
        ):
            with pytest.raises(BadInput, match=r"open it with checkpoints=\.\.\. to resume them"):
                refused()
        with pytest.raises(BadInput, match=r"open the memory with checkpoints=\.\.\."):
            memory.add(LIVED, thread_id="t")


def test_what_cannot_be_resumed_is_refused_with_the_reason(home):
    with opened(home) as memory:
        done = memory.add(LIVED).thread_id
        memory.threads.saver.put(
            {"configurable": {"thread_id": "theirs", "checkpoint_ns": ""}},
            empty_checkpoint(),
            {"step": 1},
            {},
        )
        for thread, args, reason in (
            ("nope", (), r"no thread 'nope' in .*runs\.sqlite3"),
            (done, (), "nothing to resume: the run of thread .* is finished"),
            (done, ("approve",), "nothing to resume"),
            ("theirs", (), "holds no run of a memory"),
            ("", (), "give a text of 1 to 200 characters"),
            ("a\0b", (), "give a text of 1 to 200 characters"),
            ("x" * 201, (), "give a text of 1 to 200 characters"),
        ):
            with pytest.raises(BadInput, match=reason):
                memory.resume(thread, *args)


def test_a_thread_is_used_once(home):
    with opened(home) as memory:
        memory.add(LIVED, thread_id="t")
        with pytest.raises(BadInput, match="thread 't' has a run already: resume it"):
            memory.ask("Where do I live?", thread_id="t")


@pytest.mark.parametrize("state", ["broken", "waiting"])
def test_no_other_user_or_workspace_goes_on_with_a_run(home, either_way, state):
    calls = Calls()
    with opened(home, roles=calls.roles, approval=ASKED) as memory:
        thread = waiting(memory).thread_id
        if state == "broken":
            calls.breaks_in("answerer")
            thread = "broken"
            with pytest.raises(Broken):
                memory.ask("Where do I live?", thread_id=thread)
        made, kept = calls.counts(), texts(memory)
        decisions = ("approve",) if state == "waiting" else ()
        for other in ({"user": "eve"}, {"user": "Ana"}, {"user": "ana "}):
            with pytest.raises(BadInput, match="is another user's"):
                either_way(memory.resume, thread, *decisions, **other)
            with pytest.raises(BadInput, match="is another user's"):
                either_way(memory.thread, thread, **other)
            with pytest.raises(BadInput, match="is another user's"):
                either_way(memory.delete_thread, thread, **other)
            with pytest.raises(BadInput, match="has a run already"):
                either_way(memory.ask, "Where do I live?", thread_id=thread, **other)
            assert either_way(memory.unfinished, **other) == []
        with pytest.raises(BadInput, match="is of workspace 'default', not 'second'"):
            either_way(memory.resume, thread, *decisions, workspace="second")
        assert (calls.counts(), texts(memory)) == (made, kept)
        assert memory.memories(user="eve") == []
        assert memory.resume(thread, *decisions).thread_id == thread


def test_a_waiting_run_shows_what_was_and_what_would_be_and_writes_nothing(home, either_way):
    with opened(home, approval=ASKED) as memory:
        stopped = waiting(memory, either_way)
        (item,) = stopped.pending.items
        assert (item.action, item.before) == ("UPDATE", "I live in Vienna.")
        assert "Graz" in item.after
        assert item.said == [f"Ana: {MOVED}"]
        assert stopped.pending.session == "main"
        assert stopped.facts == stopped.refreshed == []
        assert texts(memory) == ["I live in Vienna."]
        assert either_way(memory.resume, stopped.thread_id).pending == stopped.pending
        assert [one.pending for one in either_way(memory.unfinished)] == [stopped.pending]


DECISIONS = [
    ("approve", "I no longer live in Vienna, I moved to Graz."),
    ([{"n": 1, "decision": "approve"}], "I no longer live in Vienna, I moved to Graz."),
    (({"n": 1, "decision": "edit", "text": "Ana lives in Linz."},), "Ana lives in Linz."),
]


@pytest.mark.parametrize(("decisions", "text"), DECISIONS, ids=["all", "by number", "edited"])
def test_an_approved_change_is_written_once_by_another_process_and_no_role_is_asked_again(
    home, decisions, text
):
    calls = Calls()
    with opened(home, roles=calls.roles, approval=ASKED) as memory:
        stopped = waiting(memory)
        made = calls.counts()
    with opened(home, roles=calls.roles, approval=ASKED) as memory:
        out = memory.resume(stopped.thread_id, decisions)
        if out.pending is not None:  # what the turn says is proposed again beside an edited text
            out = memory.resume(stopped.thread_id, "reject")
        assert out.pending is None
        assert len(out.refreshed) == 1
        assert texts(memory) == [text]
        assert texts(memory, "superseded") == ["I live in Vienna."]
        asked_before = {"retriever", "judge", "refresher"} & made.keys()
        assert asked_before
        assert all(calls.counts()[role] == made[role] for role in asked_before)
        with pytest.raises(BadInput, match="nothing to resume"):
            memory.resume(stopped.thread_id, decisions)


def test_a_rejected_change_is_not_written(home):
    with opened(home, approval=ASKED) as memory:
        stopped = waiting(memory)
        out = memory.resume(stopped.thread_id, "reject")
        assert "a person rejected it" in {one.why for one in out.rejected}
        assert "I live in Vienna." in texts(memory)
        assert texts(memory, "superseded") == []


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [("yes please", "'yes please' is no decision"), ([{"n": 7, "decision": "approve"}], "the items are 1")],
)
def test_an_answer_that_cannot_be_read_is_refused_and_the_run_still_waits(home, decisions, problem):
    with opened(home, approval=ASKED) as memory:
        thread = waiting(memory).thread_id
        with pytest.raises(BadInput, match=problem):
            memory.resume(thread, decisions)
        assert memory.resume(thread).pending.problem
        assert texts(memory) == ["I live in Vienna."]
        assert memory.resume(thread, "approve").refreshed


def test_an_answer_where_nothing_waits_is_refused(home):
    calls = Calls()
    calls.breaks_in("answerer")
    with opened(home, roles=calls.roles) as memory:
        memory.add(LIVED)
        with pytest.raises(Broken):
            memory.ask("Where do I live?", thread_id="t")
        with pytest.raises(BadInput, match="waits for no approval: resume it without decisions"):
            memory.resume("t", "approve")
        assert memory.resume("t").answer


@pytest.mark.parametrize(
    "other",
    [{}, {"approval": Approval(delete=True)}, {"approval": ASKED, "switches": Switches(refresher=False)}],
    ids=["none", "less", "fewer nodes"],
)
def test_a_change_that_waits_is_not_slipped_past_with_other_settings(home, other):
    with opened(home, approval=ASKED) as memory:
        thread = waiting(memory).thread_id
    with opened(home, **other) as memory:
        with pytest.raises(BadInput, match=r"was begun with other settings: .*(approval|switches)="):
            memory.resume(thread, "approve")
        assert texts(memory) == ["I live in Vienna."]


def test_an_end_that_asks_says_it_is_verifying_and_commits_after_the_answer(home):
    roles = replace(MISSES_ALL, consolidator=Always(RULES["consolidator"]))
    settings = {"approval": ALL_KINDS, "verification": Verification(probes=3)}
    with opened(home, roles=roles, **settings) as memory:
        memory.add(TOLD)
        ended = memory.end_session()
        assert ended.pending is not None
        assert (ended.status, ended.committed) == ("verifying", 0)
        assert memory.session("main").status == "verifying"
        while ended.pending is not None:
            ended = memory.resume(ended.thread_id, "approve")
        assert type(ended) is Ended
        assert (ended.status, ended.repairs > 0) == ("committed", True)
        asked = [one.text for one in roles.consolidator.seen]
        assert len(set(asked)) == len(asked), "it was asked twice about one proposal"
        assert len(set(texts(memory))) == len(texts(memory)) > 0


def test_a_silent_session_whose_end_asks_is_not_ended_anew_while_it_waits(home):
    time = HandClock()
    settings = {"roles": MISSES_ALL, "approval": ALL_KINDS, "idle_after": 60}
    with opened(home, **settings, world=replace(clock(), now=time)) as memory:
        memory.add(TOLD)
        time.pass_(60)
        (ended,) = memory.end_idle().values()
        (end,) = memory.unfinished()
        assert (end.run, end.session) == ("end_session", "main")
        assert end.pending == ended.pending is not None
    with opened(home, **settings, world=replace(clock(), now=time)) as memory:
        time.pass_(61)
        assert memory.end_idle() == {}
        assert [one.thread_id for one in memory.unfinished()] == [end.thread_id]
        while ended.pending is not None:
            ended = memory.resume(ended.thread_id, "approve")
        assert ended.status == "committed"


def test_an_end_within_what_is_said_elsewhere_asks_there_and_is_left_to_it(home):
    time = HandClock()
    settings = {"roles": MISSES_ALL, "approval": ALL_KINDS, "idle_after": 60}
    with opened(home, **settings, world=replace(clock(), now=time)) as memory:
        memory.add(TOLD)
        time.pass_(61)
        added = memory.add("Well, well.", session="later")
        assert (added.pending.session, len(memory.unfinished())) == ("main", 1)
        time.pass_(61)
        assert [scope.session for scope in memory.end_idle()] == ["later"]
        while added.pending is not None:
            added = memory.resume(added.thread_id, "approve")
        assert memory.session("main").status == "committed"


@pytest.mark.parametrize("saver", [InMemorySaver, checkpointer, SqliteSaver], ids=lambda one: one.__name__)
def test_a_saver_or_an_opened_place_is_taken_as_well_as_a_url(home, saver, tmp_path):
    if saver is InMemorySaver:
        kept: Any = InMemorySaver()
    elif saver is checkpointer:
        kept = checkpointer(tmp_path / "own.sqlite3")
    else:
        with checkpointer(tmp_path / "own.sqlite3") as mine:
            _waits_and_goes_on(home, mine)
            assert mine.saver.conn.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0
        return
    _waits_and_goes_on(home, kept)


def _waits_and_goes_on(home: Path, kept: Any) -> None:
    with opened(home, kept, approval=ASKED) as memory:
        thread = waiting(memory).thread_id
    with opened(home, kept, approval=ASKED) as memory:
        assert memory.resume(thread, "approve").refreshed


async def test_nothing_of_a_kept_run_blocks_the_event_loop(home):
    async with opened(home, approval=ASKED) as memory:
        await memory.aadd(LIVED)
        await memory.aend_session(verify=False)
        with blockbuster_ctx():
            stopped = await memory.aadd(MOVED)
            assert await memory.aunfinished()
            assert (await memory.aresume(stopped.thread_id, "approve")).refreshed


@pytest.mark.parametrize("wrong", [7, {"url": "x"}, "mysql://db"])
def test_a_place_that_is_none_is_refused_when_the_memory_is_opened(home, wrong):
    with pytest.raises(BadInput, match="give `memory`, a file"):
        Memory.open(home, user="ana", checkpoints=wrong)
    with Memory.open(home, user="ana") as memory:
        assert memory.memories() == []


def test_a_place_that_cannot_be_used_leaves_the_home_free(home, tmp_path):
    (tmp_path / "runs.sqlite3").mkdir()
    with pytest.raises(StoreError, match="it is a folder"):
        opened(home)
    with opened(home, None) as memory:
        assert memory.memories() == []


def test_a_closed_memory_opens_its_checkpoints_again(home):
    memory = opened(home, approval=ASKED)
    thread = waiting(memory).thread_id
    memory.close()
    assert memory.resume(thread, "approve").refreshed
    memory.close()


def test_approval_without_checkpoints_is_refused_with_the_way_to_give_them(home):
    with pytest.raises(BadInput, match="open the memory with checkpoints"):
        opened(home, None, approval=ASKED)


def test_forgetting_a_user_takes_the_checkpoints_of_that_user_along(home, either_way):
    with opened(home) as memory:
        mine, theirs = memory.add(TOLD).thread_id, memory.add(TOLD, user="eve").thread_id
        second = memory.add(TOLD, workspace="second").thread_id
        either_way(memory.forget_user, "ana", workspace="second")
        assert memory.thread(mine).finished
        with pytest.raises(BadInput, match="no thread"):
            memory.thread(second, workspace="second")
        either_way(memory.forget_user, "ana")
        with pytest.raises(BadInput, match="no thread"):
            memory.thread(mine)
        assert memory.thread(theirs, user="eve").finished
        conn = memory.threads.saver.saver.conn
        owners = {row[0] for row in conn.execute("SELECT DISTINCT thread_id FROM checkpoints")}
        assert owners == {theirs}
        assert {row[0] for row in conn.execute("SELECT DISTINCT thread_id FROM writes")} <= {theirs}


def test_a_deleted_thread_is_gone(home):
    with opened(home) as memory:
        thread = memory.add(TOLD).thread_id
        memory.delete_thread(thread)
        with pytest.raises(BadInput, match="no thread"):
            memory.thread(thread)


def conversation(*said: str) -> Conversation:
    """A session a text."""
    sessions = [
        Session(
            str(n),
            (
                Turn(
                    id=f"D{n}:1",
                    session=str(n),
                    position=1,
                    speaker="Ana",
                    role="human",
                    text=text,
                    time=START,
                ),
            ),
        )
        for n, text in enumerate(said, 1)
    ]
    return Conversation("chat", tuple(sessions))


def test_an_ingest_that_broke_off_goes_on_inside_its_chunk(home):
    calls, told = Calls(), conversation(TOLD, "I row boats in Graz.")
    with opened(home, roles=calls.roles) as memory:
        calls.breaks_in("constructor")
        with pytest.raises(Broken):
            ingest(memory, told, thread_id="file")
        first = calls.counts()
        assert memory.threads_under("file")
        result = ingest(memory, told, thread_id="file")
        assert (result.thread_id, result.turns, result.sessions) == ("file", 2, 2)
        assert memory.unfinished() == []
    unbroken = Calls()
    with opened(home.parent / "other", "other.sqlite3", roles=unbroken.roles) as memory:
        assert ingest(memory, told).thread_id is not None
    assert calls.counts() == unbroken.counts() + Counter(["constructor"])
    assert first["constructor"] == 1


def test_an_ingest_waits_for_a_person_and_goes_on_after_the_answer(home):
    told = conversation(LIVED, MOVED, "I work as a baker.")
    with opened(home, approval=ASKED) as memory:
        stopped = ingest(memory, told, thread_id="file")
        assert (stopped.turns, stopped.sessions) == (1, 1)
        assert "Graz" in stopped.pending.items[0].after
        shown: list[Any] = []

        def decide(pending):
            shown.append(pending)
            return "approve"

        result = ingest(memory, told, thread_id="file", decide=decide)
        assert shown == [stopped.pending]
        assert (result.pending, result.turns, result.sessions) == (None, 2, 2)
        again = ingest(memory, told, thread_id="file", decide=decide)
        assert (again.turns, again.sessions, len(shown)) == (0, 0, 1)


def test_an_ingest_of_another_user_is_not_gone_on_with(home):
    with opened(home) as memory:
        ingest(memory, conversation(TOLD), thread_id="file")
        with pytest.raises(BadInput, match="'file' is another user's"):
            ingest(memory, conversation(TOLD), thread_id="file", user="eve")
        assert memory.memories(user="eve") == []


def test_the_methods_have_their_awaitable_forms():
    for name in ("resume", "thread", "unfinished", "delete_thread"):
        assert inspect.iscoroutinefunction(getattr(Memory, f"a{name}"))
