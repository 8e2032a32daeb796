"""What examining a session's memory finds and mends, and whether it brings deleted facts back.

    python -m memcycle.evals.sessions --data locomo10.json --conversation conv-26

Three runs over one conversation, each in a home of its own:

- as it is: every session is remembered and ended. Columns, a session a row: `probes` made; `before` and
  `after`, how many of them memory answered before and after repair; `ungraded`, those that could not be
  answered or graded; `repairs`, facts written for failed probes that stayed, merged ones included; `rolled
  back`, those taken back; `merged`, entries united with another that says the same.
- without examination (`Switches(verify=False)`), for recall alone. `Recall`: share of gold turns among the
  first k turns that `ask --evidence-only` cites, as `memcycle.evals.cited` measures it, by category.
- with facts deleted: after the last turn of a session and before its end, a share of its staged facts
  (`facts`), drawn with the seed, is taken out of the ledger without a trace (`deleted`). `asked for`: those a
  probe asks for; `came back`: those of them that a repair brought back, grounded in the same turn (both are
  defined in `memcycle.evals.deleted`). A table says what became of each fact that was asked for; a fact that
  an episode or another fact also states is not missed by its probe, so nothing is repaired.

The benchmark's questions are asked afterwards; probes come from the session's turns alone.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memcycle.core.errors import MemcycleError
from memcycle.core.probe import SessionReport
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches
from memcycle.core.turn import Conversation, Session
from memcycle.evals.cited import evaluate, summary
from memcycle.evals.dataset import Sample, sample_named
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.evals.deleted import Deleted, Outcome, delete_some, outcomes, tally
from memcycle.ingest import Progress, ingest
from memcycle.memory import Memory

FIGURES = ("probes", "passed_before", "passed_after", "ungraded", "repairs", "rolled_back", "merged")
_HEADINGS = ("probes", "before", "after", "ungraded", "repairs", "rolled back", "merged")


@dataclass(frozen=True)
class Spoiled:
    """A session that was ended after some of its facts were deleted."""

    session: str
    report: SessionReport
    deleted: Deleted
    outcomes: tuple[Outcome, ...]

    @property
    def figures(self) -> dict[str, int]:
        """Counts of its deleted facts."""
        fates = [outcome.fate for outcome in self.outcomes if outcome.fate is not None]
        return {
            "facts": self.deleted.facts,
            "deleted": len(self.deleted.gone),
            "asked_for": len(fates),
            "came_back": fates.count("came back"),
        }


def as_it_is(memory: Memory, sample: Sample, k: int) -> tuple[dict[str, SessionReport], dict[str, Any]]:
    """Remembers a sample and asks its questions: the reports by session, and recall at k by category."""
    recall = summary(evaluate(memory, sample, k))
    infos = memory.bank.sessions(Scope(user=sample.id))
    return {info.session: info.report for info in infos}, recall


def spoiled(memory: Memory, sample: Sample, share: float, seed: int) -> list[Spoiled]:
    """Remembers a sample; that share of each session's staged facts is deleted before the session ends."""
    sessions = sample.conversation.sessions
    watched = track(sessions, "deleting", console=Console(stderr=True), transient=True)
    return [_spoiled(memory, Scope(user=sample.id), session, share, seed) for session in watched]


def _spoiled(memory: Memory, base: Scope, session: Session, share: float, seed: int) -> Spoiled:
    scope = base.within(session.name)
    deleted: list[Deleted] = []

    def stored(progress: Progress) -> None:
        if progress.done == progress.total:
            deleted.append(delete_some(memory.bank, scope, share, seed))

    # A conversation of one session: ingest ends it right after it tells that its last chunk is stored.
    ingest(memory, Conversation(session.name, (session,)), user=base.user, on_progress=stored)
    (info,) = memory.bank.sessions(scope)
    return Spoiled(session.name, info.report, deleted[0], tuple(outcomes(memory.bank, scope, deleted[0])))


def counts(reports: Sequence[SessionReport]) -> dict[str, int]:
    """The figures of sessions, summed."""
    return {name: sum(getattr(report, name) for report in reports) for name in FIGURES}


def spoiled_counts(sessions: Sequence[Spoiled]) -> dict[str, Any]:
    """The figures of sessions with deleted facts, summed; `share_back` is None where none is asked for."""
    summed = {
        name: sum(one.figures[name] for one in sessions)
        for name in ("facts", "deleted", "asked_for", "came_back")
    }
    share = summed["came_back"] / summed["asked_for"] if summed["asked_for"] else None
    return {**summed, **counts([one.report for one in sessions]), "share_back": share}


@contextmanager
def _memory(model: str, *, verify: bool = True) -> Iterator[Memory]:
    settings = Settings(switches=Switches(verify=verify))
    with tempfile.TemporaryDirectory() as home, Memory.open(home, model=model, settings=settings) as memory:
        yield memory


def measure(sample: Sample, model: str, k: int, share: float, seed: int) -> dict[str, Any]:
    """All three runs, as JSON-able data."""
    with _memory(model) as memory:
        reports, examined = as_it_is(memory, sample, k)
    with _memory(model, verify=False) as memory:
        _, plain = as_it_is(memory, sample, k)
    with _memory(model) as memory:
        sessions = spoiled(memory, sample, share, seed)
    return {
        "conversation": sample.id,
        "model": model,
        "k": k,
        "sessions": [{"session": name, **counts([report])} for name, report in reports.items()],
        "total": counts(list(reports.values())),
        "recall": {"with the session graph": examined, "without": plain},
        "deleted": {
            "share": share,
            "seed": seed,
            "sessions": [{"session": one.session, **one.figures, **counts([one.report])} for one in sessions],
            "total": spoiled_counts(sessions),
            "fates": tally([outcome for one in sessions for outcome in one.outcomes]),
            "facts": [_shown(outcome) for one in sessions for outcome in one.outcomes],
        },
    }


def _shown(outcome: Outcome) -> dict[str, Any]:
    probe = outcome.asked
    return {
        "turns": list(outcome.fact.turns),
        "fact": outcome.fact.text,
        "fate": outcome.fate,
        "probe": probe.model_dump(mode="json") if probe else None,
    }


def _plain_table(figures: dict[str, Any]) -> Table:
    table = Table(
        "session",
        title=f"Sessions of {figures['conversation']}, {figures['model']}",
        caption="before, after: probes that memory answered before and after repair; repairs: facts written "
        "that stayed; merged: entries united with another that says the same",
    )
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in figures["sessions"]:
        table.add_row(row["session"], *(str(row[name]) for name in FIGURES))
    table.add_section()
    table.add_row("total", *(str(figures["total"][name]) for name in FIGURES))
    return table


def _recall_table(figures: dict[str, Any]) -> Table:
    runs = figures["recall"]
    table = Table("session graph", title=f"Recall: gold turns among the first {figures['k']} cited turns")
    for heading in next(iter(runs.values())):
        table.add_column(heading, justify="right")
    for name, values in runs.items():
        shown = (
            "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
            for value in values.values()
        )
        table.add_row(name.removesuffix(" the session graph"), *shown)
    return table


def _deleted_table(figures: dict[str, Any]) -> Table:
    own = figures["deleted"]
    names = ("facts", "deleted", *FIGURES, "asked_for", "came_back")
    table = Table(
        "session",
        title=f"The same with {own['share']:.0%} of the staged facts deleted before the session ends "
        f"(seed {own['seed']})",
        caption="asked for: deleted facts whose turn and words a probe asks for; came back: those of them "
        "that an active fact of the same turn states again",
    )
    for heading in ("facts", "deleted", *_HEADINGS, "asked for", "came back"):
        table.add_column(heading, justify="right")
    for row in own["sessions"]:
        table.add_row(row["session"], *(str(row[name]) for name in names))
    table.add_section()
    table.add_row("total", *(str(own["total"][name]) for name in names))
    return table


def _fate_table(figures: dict[str, Any]) -> Table:
    own = figures["deleted"]
    total, fates = own["total"], own["fates"]
    missed = total["asked_for"] - sum(count for name, count in fates.items() if name.startswith("not lost"))
    share = "none asked for" if total["share_back"] is None else f"{total['share_back']:.0%} came back"
    table = Table(
        "what became of it",
        title=f"Deleted facts that a probe asks for: {share}",
        caption=f"{total['asked_for']} of {total['deleted']} deleted facts are asked for; nothing else "
        f"answered for {missed} of them",
    )
    table.add_column("facts", justify="right")
    for name, count in fates.items():
        table.add_row(name, str(count))
    return table


def main(
    *,
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversation: Annotated[str, typer.Option(help="Sample id.")] = "conv-26",
    seed: Annotated[int, typer.Option(help="Chooses the facts that are deleted.")] = 7,
    drop: Annotated[float, typer.Option(min=0, max=1, help="Share of each session's facts deleted.")] = 0.2,
    model: Annotated[str, typer.Option(help="`rules`, or openai:NAME.")] = "rules",
    k: Annotated[int, typer.Option(min=1, help="Turns looked at for recall.")] = 10,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with every deleted fact.")] = False,
) -> None:
    """Ends every session of a conversation, as it is and with facts deleted, and prints what was repaired."""
    try:
        figures = measure(sample_named(load_locomo(data, zone=UTC), conversation), model, k, drop, seed)
    except MemcycleError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(1) from None
    if json_:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    Console().print(
        _plain_table(figures), _recall_table(figures), _deleted_table(figures), _fate_table(figures)
    )


if __name__ == "__main__":
    typer.run(main)
