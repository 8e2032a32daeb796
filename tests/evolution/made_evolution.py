"""Small conversations with questions, a task over them, and a lab whose scores are made up."""

from datetime import UTC, datetime, timedelta

from langchain_core.runnables import RunnableLambda

from memcycle.agents.diagnoser import Change, DiagnoserOutput, MissedView, ShownView
from memcycle.agents.roles import Roles
from memcycle.core.errors import RoleFailed
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.core.turn import Conversation, Session, Turn, turn_id
from memcycle.evals.dataset import Question, Sample
from memcycle.evolution.lab import Lab
from memcycle.evolution.records import EvolveFolder, QuestionRecord
from memcycle.evolution.task import Task
from memcycle.evolution.theta.space import fingerprint

BEGUN = Theta(token_budget=500)
START = datetime(2024, 5, 1, 9, tzinfo=UTC)
THINGS = ("kite", "beehive", "cello", "canoe", "loom", "kiln")
PLACES = ("roof", "cellar", "garden", "attic", "harbour", "barn")


def conversation(name, shift=0):
    """Six things of two people, each in a place, and a question for each."""
    turns, questions = [], []
    for number, thing in enumerate(THINGS, 1):
        place = PLACES[(number + shift) % len(PLACES)]
        speaker = ("Ann", "Bo")[number % 2]
        turns.append(
            Turn(
                id=turn_id("1", number),
                session="1",
                position=number,
                speaker=speaker,
                text=f"I keep my old {thing} in the {place} next to the window.",
                time=START + timedelta(minutes=number),
            )
        )
        text = f"Where does {speaker} keep the {thing}?"
        category = ("single-hop", "temporal")[number % 2]
        questions.append(Question(f"q{number}", text, f"in the {place}", (turn_id("1", number),), category))
    return Sample(name, Conversation(name, (Session("1", tuple(turns)),)), tuple(questions))


SAMPLES = {name: conversation(name, shift) for shift, name in enumerate(("one", "two", "three"))}
ALL = tuple(f"q{number}" for number in range(1, len(THINGS) + 1))


def task(**changes):
    values = {
        "data": "jsonl",
        "file": "ours.jsonl",
        "sha256": "0" * 64,
        "splits": {"train": {"one": ALL}, "guard": {"two": ALL}, "held_out": {"three": ALL}},
        "objective": {"recall": 1.0},
        "token_budget": 500,
        "facts": "none",
        "start": BEGUN,
        "start_name": "shipped",
        "settings": Settings(shards=2),
    }
    return Task(**(values | changes))


class ScoredLab(Lab):
    """Every question scores what `score(theta, split, memory)` says; notes what is evaluated."""

    def __init__(self, path, score, missed=(), **changes):
        super().__init__(task(**changes), SAMPLES, EvolveFolder(path))
        self.score, self.missed, self.asked = score, missed, []

    def evaluate(self, theta, split, memory=0):
        self.asked.append((fingerprint(theta), split, memory))
        return [
            QuestionRecord(
                conversation=name,
                id=question.id,
                theta=fingerprint(theta),
                memory=memory,
                question=question.question,
                category=question.category,
                gold=question.answer,
                wanted=question.evidence,
                missed=tuple(self.missed),
                shown=ShownView(entries={"raw": 5}, tokens={"raw": 100}, k=5, token_budget=500),
                recall=self.score(theta, split, memory),
            )
            for name, question in self.questions(split)
        ]


def scripted(*replies):
    """Roles whose Diagnoser gives one reply after another, then nothing; and the inputs it saw."""
    left, seen = list(replies), []

    def diagnose(value):
        seen.append(value)
        reply = left.pop(0) if left else DiagnoserOutput()
        if isinstance(reply, RoleFailed):
            raise reply
        return reply

    return Roles(diagnoser=RunnableLambda(diagnose)), seen


def changes(missing="", **values):
    """A Diagnoser's output; paths with a double underscore for each dot."""
    made = [
        Change(path=path.replace("__", "."), value=value, reason="it fails", pattern="outranked")
        for path, value in values.items()
    ]
    return DiagnoserOutput(changes=made, missing_coverage=missing)


def missed(**values):
    return MissedView(**({"rank": 7, "cut": "tokens"} | values))
