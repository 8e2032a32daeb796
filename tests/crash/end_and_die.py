"""Run by test_crash_session: ends a session again and again, dying where it is told to.

Everything is imported once; each line of standard input, a JSON object `{home, node, moment}`, is then run in
a process of its own (a fork of this one, which never opened anything), and its exit status printed. `node` is
a node of the session graph or `mirror` (between the ledger's commit and the index), `moment` is `before` or
`after` its body; without a node nothing dies. Before a node all earlier ones are checkpointed; after it its
own writes are not.
"""

import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda

from memcycle import build_remember, build_session
from memcycle.agents.answerer import AnswererOutput
from memcycle.agents.consolidator import ConsolidatorOutput
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_writer import EpisodeWriterOutput
from memcycle.agents.grader import Grade, GraderOutput
from memcycle.agents.prober import ProbeDraft, ProberOutput
from memcycle.agents.repairer import RepairerOutput, RepairFact
from memcycle.agents.roles import Roles
from memcycle.agents.rules import RULES
from memcycle.checkpoints import checkpointer
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn, turn_id
from memcycle.core.world import World
from memcycle.graph import wiring
from memcycle.stores.bank import Bank
from memcycle.stores.chroma.mirror import Mirror
from tests.fakes import FakeEmbeddings

USER = {"user": "ana", "session": "1"}
SCOPE = Scope(user="ana", session="1")
SAID = (
    "I am allergic to walnuts.",
    "I sold the old loom to a museum in Graz.",
    "I row boats on Sundays.",
    "I keep two beehives in Linz.",
)
KNOWN = ("Ana rows boats on Sundays",)
ADDED = {
    1: ("Ana is allergic to walnuts", "walnuts"),
    2: ("Ana sold the loom to a museum", "museum"),
    3: ("Ana rows boats on Sundays", "Sundays"),
    4: ("Ana keeps something in Linz", "two beehives"),
}
"""By turn: what the Repairer writes of it, and the answer of its probe. The last does not help."""

NODES = (
    "find_waiting", "close_episode", "apply_episode", "probe", "look_up", "examine", "grade", "repair",
    "consolidate", "write_repair", "roll_back", "maintain", "commit",
)  # fmt: skip


def bank_of(home: Path) -> Bank:
    world = World(now=lambda: datetime(2025, 1, 1, tzinfo=UTC))
    return Bank.open(Settings(home=home, shards=2), embeddings=FakeEmbeddings(), world=world)


def remember(home: Path) -> None:
    """The session as it stands before its end; its last turn is left unread."""
    start = datetime(2024, 5, 1, 9, tzinfo=UTC)
    turns = [
        Turn(
            id=turn_id("1", n),
            session="1",
            position=n,
            speaker="Ana",
            role="human",
            text=text,
            time=start + timedelta(minutes=n),
        )
        for n, text in enumerate(SAID, 1)
    ]
    drafts = [FactDraft(text=text, turn=0) for text in KNOWN]
    roles = Roles(constructor=RunnableLambda(lambda _: ConstructorOutput(facts=drafts)))
    with bank_of(home) as bank:
        value = {"turns": [turn.model_dump(mode="json") for turn in turns[:3]]}
        build_remember(roles, bank).invoke(value, context=USER)
        bank.stage_turns(SCOPE, turns[3:])


def _answer(value: Any) -> AnswererOutput:
    _, wanted = ADDED[_matter(value)]
    held = [view.n for view in value.evidence if wanted in view.text]
    return AnswererOutput(answer=wanted if held else "?", answerable=bool(held), citations=held[:1])


def _matter(value: Any) -> int:
    """The number in a probe's question."""
    return int(value.question[-2])


def _repair(value: Any) -> RepairerOutput:
    fact = RepairFact(
        text=ADDED[_matter(value)][0], turn=value.source, quote=value.turns[value.source - 1].text
    )
    return RepairerOutput(op="ADD_FACT", cause="missing", fact=fact)


def _probes(_: Any) -> ProberOutput:
    return ProberOutput(
        probes=[
            ProbeDraft(question=f"What about Ana and matter {n}?", answer=ADDED[n][1], turn=n) for n in ADDED
        ]
    )


REPLIES = {
    "constructor": lambda _: ConstructorOutput(facts=[]),
    "episode_writer": lambda _: EpisodeWriterOutput(title="News", text="Ana told her news."),
    "prober": _probes,
    "answerer": _answer,
    "grader": lambda value: GraderOutput(
        grades=[Grade(n=item.n, correct=item.gold == item.answer) for item in value.items]
    ),
    "repairer": _repair,
    "consolidator": lambda _: ConsolidatorOutput(decision="INSERT"),
}


def roles(log: Path) -> Roles:
    """Roles that note each call in a file before they answer."""

    def noted(name: str) -> Any:
        def run(value: Any) -> Any:
            with log.open("a") as file:
                file.write(f"{name}\n")
            return REPLIES.get(name, RULES[name])(value)

        return RunnableLambda(run)

    return Roles(**{name: noted(name) for name in RULES})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(node: str, moment: str) -> None:
    """From here on the process dies at this node."""
    if node == "mirror":
        Mirror.drain = lambda *_: die()  # type: ignore[method-assign]
    made = wiring.Node

    def dying(name: str, body: Any, **how: Any) -> Runnable[Any, Any]:
        whole = made(name, body, **how)
        if name != node:
            return whole
        passing = RunnableLambda(lambda value: (die(), value)[1])
        return passing | whole if moment == "before" else whole | passing

    wiring.Node = dying  # type: ignore[misc,assignment]


def end(home: Path) -> None:
    """Ends the session, or goes on with an end that broke off."""
    with bank_of(home) as bank, checkpointer(home / "checkpoints.sqlite3") as saver:
        graph = build_session(roles(home / "calls.txt"), bank).builder.compile(checkpointer=saver)
        thread = {"configurable": {"thread_id": "end"}}
        begun = saver.get(thread) is not None
        graph.invoke(None if begun else {}, thread, context=USER, durability="sync")


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            if job["node"]:
                arm(job["node"], job["moment"])
            end(Path(job["home"]))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
