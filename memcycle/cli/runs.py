"""One run of a command: begun or gone on with, and answered by options or at the terminal where it waits."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import typer

from memcycle.cli.options import Checkpoints, Resume, resume_panel
from memcycle.cli.output import WAITS, is_asked, note
from memcycle.core.errors import BadInput

if TYPE_CHECKING:
    from memcycle.core.settings import Approval
    from memcycle.memory import Memory
    from memcycle.results import Answer, Ended, Outcome, PendingApproval, PendingItem, ThreadSummary
    from memcycle.runs import Decisions

    R = TypeVar("R", Answer, Ended)

ALL = "all"
"""What `--approve` takes beside numbers."""


@dataclass(frozen=True)
class RunOptions:
    """What the options say of a run: where it is kept, which one goes on, and the answer to what waits.

    Raises:
        BadInput: options that do not go together.
    """

    checkpoints: Checkpoints = None
    resume: Resume = None
    approval: Annotated[
        list[str] | None,
        resume_panel(
            metavar="WHAT",
            help="Ask a person before an update or delete of a fact, or any change of a kind such as "
            "preference. Repeatable.",
        ),
    ] = None
    approve: Annotated[
        str | None,
        resume_panel(
            metavar="N",
            help="With --resume, approve what waits: all, or numbers such as 1,3; the others are rejected.",
        ),
    ] = None
    reject: Annotated[bool, resume_panel("--reject", help="With --resume, reject all that waits.")] = False

    def __post_init__(self) -> None:
        needs = "--resume" if self.resume is not None else "--approval" if self.approval else None
        if needs is not None and self.checkpoints is None:
            raise BadInput(f"{needs} needs --checkpoints, such as --checkpoints checkpoints.sqlite3")
        if (self.approve is not None or self.reject) and self.resume is None:
            raise BadInput("--approve and --reject answer what a run waits for: name it with --resume THREAD")
        if self.approve is not None and self.reject:
            raise BadInput("--approve N rejects the others by itself: leave out --reject")

    def to_approve(self) -> "Approval | None":
        """What a person is asked about: what is named, else what the run that goes on was begun with.

        Raises:
            BadInput: a thing to be asked about that is none.
        """
        from memcycle.core.settings import Approval, Settings
        from memcycle.core.world import World
        from memcycle.runs import Threads

        if self.approval:
            return Approval.of(self.approval)
        if self.resume is None or self.checkpoints is None:
            return None
        with closing(Threads.open(self.checkpoints, World(), Settings())) as threads:
            return threads.approval_of(self.resume)


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
    begin: "Callable[..., R]",
    *,
    session: str | None = None,
) -> "R":
    """Begins a run, or goes on with the one that is named; asks what it waits for as long as one answers.

    Args:
        run, session: What the named one must be, so that none is taken for another.
        begin: Begins it on the thread `thread_id`.

    Raises:
        BadInput: the named one is unknown, another user's, finished, or another kind of run.
    """
    if options.resume is None:
        result = begin(thread_id=_new_thread(memory))
    else:
        found = memory.thread(options.resume)
        _check(found, run, session)
        check_waits(options, [found])
        result = cast("R", memory.resume(options.resume))
    approver = Approver(options)
    while result.pending is not None and result.thread_id is not None:
        decisions = approver(result.pending)
        if decisions is None:
            break
        result = cast("R", memory.resume(result.thread_id, decisions))
    return result


def _new_thread(memory: "Memory") -> str | None:
    """An id for a run that begins, which is told; None where no runs are kept."""
    thread_id = None if memory.threads is None else memory.threads.world.new_id()
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
