"""One run of a command: begun or gone on with, and answered by options or at the terminal where it waits."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import typer

from memcycle.cli.output import WAITS, is_asked, note
from memcycle.core.errors import BadInput
from memcycle.core.settings import Approval

if TYPE_CHECKING:
    from memcycle.memory import Memory
    from memcycle.results import Answer, Ended, Outcome, PendingApproval, PendingItem, ThreadSummary
    from memcycle.runs import Decisions

    R = TypeVar("R", Answer, Ended)

ALL = "all"
"""What `--approve` takes beside numbers."""


class RunOptions(NamedTuple):
    """What the options say of a run: where it is options, which one goes on, and the answer to what waits."""

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
    ) -> "RunOptions":
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
        wanted = Approval.of(approval) if approval else None
        if resume is not None and checkpoints is not None and wanted is None:
            wanted = _begun_with(checkpoints, resume)
        return cls(checkpoints, resume, approve, reject, wanted)


def _begun_with(checkpoints: str, thread_id: str) -> Approval | None:
    """What the run that goes on was to ask about: it asks about that still, without being told again."""
    from memcycle.core.settings import Settings
    from memcycle.core.world import World
    from memcycle.runs import Threads

    threads = Threads.open(checkpoints, World(), Settings())
    try:
        return threads.approval_of(thread_id)
    finally:
        threads.close()


class Approver:
    """Answers what waits: once with what the options say, then at the terminal, if anybody sits there."""

    def __init__(self, options: RunOptions) -> None:
        self._given = "reject" if options.reject else options.approve

    def __call__(self, pending: "PendingApproval") -> "Decisions | None":
        """The decisions; None where there is nobody to decide."""
        if self._given is not None:
            given, self._given = self._given, None
            return _decided(given, pending)
        _show(pending)
        return [_ask(item) for item in pending.items] if is_asked() else None


def begin_or_resume(
    memory: "Memory",
    options: RunOptions,
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
    if options.resume is None:
        result = begin(_new_thread(memory))
    else:
        found = memory.thread(options.resume, user=user)
        _check(found, run, session)
        check_waits(options, [found])
        result = cast("R", memory.resume(options.resume, user=user))
    approver = Approver(options)
    while result.pending is not None and result.thread_id is not None:
        decisions = approver(result.pending)
        if decisions is None:
            break
        result = cast("R", memory.resume(result.thread_id, decisions, user=user))
    return result


def _new_thread(memory: "Memory") -> str | None:
    """An id for a run that begins, which is told; None where no runs are kept."""
    thread_id = None if memory.threads is None else memory.threads.new_id()
    if thread_id is not None:
        note(f"Thread {thread_id}; if it breaks off, go on with --resume {thread_id}")
    return thread_id


def ingest_thread(memory: "Memory", options: RunOptions) -> str | None:
    """The thread of a conversation: the one that is named, else a new one, which is told.

    Raises:
        BadInput: the named one is unknown, another user's, or waits for no answer.
    """
    if options.resume is None:
        return _new_thread(memory)
    found = memory.threads_under(options.resume)
    if not found:
        raise BadInput(
            f"no thread {options.resume!r} of an ingest: see that the id, --user and --checkpoints are right"
        )
    check_waits(options, found)
    return options.resume


def check_waits(options: RunOptions, found: "Sequence[ThreadSummary]") -> None:
    """Refuses an answer where nothing waits."""
    if (options.approve is not None or options.reject) and all(one.pending is None for one in found):
        raise BadInput(f"thread {options.resume!r} waits for no approval: leave out --approve and --reject")


def exit_if_waiting(result: "Outcome") -> None:
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
