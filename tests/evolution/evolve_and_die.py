"""Run by the tests of resuming: evolves in a folder, or grows a tree, and is killed at some question or none.

`python -m tests.evolution.evolve_and_die FOLDER [QUESTION [tree]]`. Each question that is asked is a line of
`asked.txt` beside the folder; a Diagnoser's call is a line of `diagnosed.txt`.
"""

import os
import signal
import sys
from pathlib import Path

from langchain_core.runnables import RunnableLambda

from memcycle.agents.diagnoser import Change, DiagnoserOutput
from memcycle.agents.roles import Roles
from memcycle.core.theta import Theta, Weights
from memcycle.evolution.lab import Asker, Lab
from memcycle.evolution.program.run import run as run_tree
from memcycle.evolution.records import EvolveFolder
from memcycle.evolution.run import run
from memcycle.evolution.theta.space import fingerprint
from tests.evolution.made_evolution import SAMPLES, task
from tests.fakes import FakeEmbeddings

START = Theta(k=1, token_budget=500, weights=Weights.only(dense=1))


def note(path, text):
    with path.open("a") as file:
        file.write(f"{text}\n")


def evolve(path, dies_at=None, *, resume=False):
    """The figures of an evolution of at most three rounds."""
    return _ran(run, path, dies_at, resume=resume)


def grow(path, dies_at=None, *, resume=False):
    """The figures of a tree of at most four versions."""
    return _ran(run_tree, path, dies_at, resume=resume)


def _ran(run, path, dies_at, *, resume):
    real, count = Asker.ask, 0

    def ask(self, question):
        nonlocal count
        count += 1
        if count == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        note(path.parent / "asked.txt", f"{fingerprint(self.theta)} {self.scope.user} {question.id}")
        return real(self, question)

    def diagnose(value):
        note(path.parent / "diagnosed.txt", len(value.tried))
        k = next(one.value for one in value.dimensions if one.path == "k")
        return DiagnoserOutput(changes=[Change(path="k", value=k + 1, reason="more", pattern="outranked")])

    Asker.ask = ask
    try:
        chosen = task(start=START, start_name="one", rounds=3)
        with Lab(chosen, SAMPLES, EvolveFolder(path), embeddings=FakeEmbeddings()) as lab:
            return run(lab, Roles(diagnoser=RunnableLambda(diagnose)), resume=resume)
    finally:
        Asker.ask = real


if __name__ == "__main__":
    done = grow if sys.argv[3:] == ["tree"] else evolve
    done(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
