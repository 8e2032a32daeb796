"""Runs that are kept: begun under a thread that is told, resumed by it, and asked about where they wait."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast, get_args

import typer

from memcycle.cli.output import WAITS, is_asked, note
from memcycle.core.entry import Kind
from memcycle.core.errors import BadInput
from memcycle.core.settings import Approval

if TYPE_CHECKING:
    from memcycle.memory import Memory
    from memcycle.results import Answer, Ended, Outcome, PendingApproval, PendingItem, ThreadSummary
    from memcycle.resuming import Decisions

    R = TypeVar("R", Answer, Ended)

ALL = "all"
_KINDS: tuple[str, ...] = get_args(Kind)


class Kept(NamedTuple):
    """What the options say of a run: where it is kept, which one goes on, and the answer to what waits."""

    checkpoints: str | None
    resume: str | None
    approve: str | None
    reject: bool
    approval: Approval | None

    @classmethod
    def of(
        cls,
        checkpoints: str | None,
        resume: str | None,
        approval: Sequence[str] | None,
        approve: str | None,
        *,
        reject: bool,
    ) -> "Kept":
        """These options.

        Raises:
            BadInput: options that do not go together, or a thing to be asked about that is none.
        """
        needs = "--resume" if resume is not None else "--approval" if approval else None
        if needs is not None and checkpoints is None:
            raise BadInput(f"{needs} needs --checkpoints, such as --checkpoints checkpoints.sqlite3")
        if (approve is not None or reject) and resume is None:
            raise BadInput("--approve and --reject answer what a run waits for: name it with --resume THREAD")
        if approve is not None and reject:
            raise BadInput("--approve N rejects the others by itself: leave out --reject")
        wanted = _approval(approval or ())
        if resume is not None and checkpoints is not None and wanted is None:
            wanted = _begun_with(checkpoints, resume)
        return cls(checkpoints, resume, approve, reject, wanted)


def _approval(wanted: Sequence[str]) -> Approval | None:
    unknown = [word for word in wanted if word not in ("delete", "update", *_KINDS)]
    if unknown:
        raise BadInput(f"--approval {unknown[0]}: give delete, update, or a kind ({', '.join(_KINDS)})")
    if not wanted:
        return None
    kinds = tuple(cast("Kind", word) for word in wanted if word in _KINDS)
    return Approval(delete="delete" in wanted, update="update" in wanted, kinds=kinds)


def _begun_with(checkpoints: str, thread_id: str) -> Approval | None:
    """What the run that goes on was to ask about: it asks about that still, without being told again."""
    from memcycle.core.clock import World
    from memcycle.core.settings import Settings
    from memcycle.threads import Threads

    threads = Threads.open(checkpoints, World(), Settings())
    try:
        return threads.approval_of(thread_id)
    finally:
        threads.close()


class Person:
    """Answers what waits: once with what the options say, then at the terminal, if anybody sits there."""

    def __init__(self, kept: Kept) -> None:
        self._given = "reject" if kept.reject else kept.approve

    def __call__(self, pending: "PendingApproval") -> "Decisions | None":
        """The decisions; None where there is nobody to decide."""
        if self._given is not None:
            given, self._given = self._given, None
            return _decided(given, pending)
        _show(pending)
        return [_ask(item) for item in pending.items] if is_asked() else None


def one_run(
    memory: "Memory",
    kept: Kept,
    run: Literal["ask", "end_session"],
    begin: "Callable[[str | None], R]",
    *,
    user: str | None = None,
    session: str | None = None,
) -> "R":
    """Begins a run, or goes on with the one that is named; asks what it waits for as long as one answers.

    Args:
        run, session: What the named one must be, so that none is taken for another.
        begin: Begins it on a thread.

    Raises:
        BadInput: the named one is unknown, another user's, finished, or another kind of run.
    """
    if kept.resume is None:
        result = begin(_told(new_thread(memory)))
    else:
        found = memory.thread(kept.resume, user=user)
        _check(found, run, session)
        check_waits(kept, [found])
        result = cast("R", memory.resume(kept.resume, user=user))
    person = Person(kept)
    while result.pending is not None and result.thread_id is not None:
        decisions = person(result.pending)
        if decisions is None:
            break
        result = cast("R", memory.resume(result.thread_id, decisions, user=user))
    return result


def new_thread(memory: "Memory") -> str | None:
    """An id for a run that begins; None where none is kept."""
    return None if memory.threads is None else memory.threads.new_id()


def _told(thread_id: str | None) -> str | None:
    if thread_id is not None:
        note(f"Thread {thread_id}; if it breaks off, go on with --resume {thread_id}")
    return thread_id


def ingest_thread(memory: "Memory", kept: Kept) -> str | None:
    """The thread of a conversation: the one that is named, else a new one, which is told.

    Raises:
        BadInput: the named one is unknown, another user's, or waits for no answer.
    """
    if kept.resume is None:
        return _told(new_thread(memory))
    found = memory.threads_under(kept.resume)
    if not found:
        raise BadInput(
            f"no thread {kept.resume!r} of an ingest: see that the id, --user and --checkpoints are right"
        )
    check_waits(kept, found)
    return kept.resume


def check_waits(kept: Kept, found: "Sequence[ThreadSummary]") -> None:
    """Refuses an answer where nothing waits."""
    if (kept.approve is not None or kept.reject) and all(one.pending is None for one in found):
        raise BadInput(f"thread {kept.resume!r} waits for no approval: leave out --approve and --reject")


def leave_waiting(result: "Outcome") -> None:
    """Ends a command whose run waits for a person, saying how to answer it."""
    if result.pending is not None:
        note(
            f"Nothing of this is written yet. Answer with --resume {result.thread_id} and --approve all, "
            "--approve 1,3 or --reject, or at a terminal.",
            "yellow",
        )
        raise typer.Exit(WAITS)


def _check(found: "ThreadSummary", run: str, session: str | None) -> None:
    if found.run != run:
        other = {"ask": "`memcycle ask`", "end_session": "the end of a session", "add": "`memcycle ingest`"}
        raise BadInput(f"thread {found.thread_id!r} is a run of {other[found.run]}, which resumes it")
    if session is not None and found.session != session:
        raise BadInput(f"thread {found.thread_id!r} is of session {found.session!r}, not {session!r}")


def _decided(given: str, pending: "PendingApproval") -> "Decisions":
    if given == "reject":
        return "reject"
    if given == ALL:
        return "approve"
    there = [item.n for item in pending.items]
    numbers = [int(word) if word.isdecimal() else word for word in given.replace(" ", "").split(",")]
    for number in numbers:
        if number not in there:
            raise BadInput(
                f"--approve {number}: give {ALL}, or numbers of what waits: {', '.join(map(str, there))}"
            )
    return [{"n": number, "decision": "approve"} for number in numbers]


def _show(pending: "PendingApproval") -> None:
    where = f" in session {pending.session}" if pending.session else ""
    note(f"A person is asked{where}:", "bold")
    for item in pending.items:
        note(f"  {item.n}  {item.action}  {item.kind or ''}".rstrip(), "cyan")
        for name, text in (("before", item.before), ("after", item.after), ("why", item.why)):
            if text:
                note(f"     {name + ':':<8}{text}")
        for said in item.said:
            note(f"     {'said:':<8}{said}")


def _ask(item: "PendingItem") -> dict[str, Any]:
    choices = ["approve", "reject", *(["edit"] if item.after is not None else [])]
    decision = ""
    while decision not in choices:
        decision = typer.prompt(f"{item.n} ({'/'.join(choices)})", err=True).strip().casefold()
    text = typer.prompt("its text", err=True) if decision == "edit" else ""
    return {"n": item.n, "decision": decision, "text": text}
