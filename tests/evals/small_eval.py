"""A tiny data set of our own, in memory, and a run over it without processes or a real embedder."""

from datetime import UTC, datetime, timedelta

from memcycle.core.settings import Settings
from memcycle.core.turn import Conversation, Session, Turn, turn_id
from memcycle.evals.dataset import GivenFact, Question, Sample
from memcycle.evals.folder import RunFolder
from memcycle.evals.records import Plan
from memcycle.evals.run import run, run_conversation
from tests.fakes import FakeEmbeddings

START = datetime(2024, 5, 1, 9, tzinfo=UTC)
SAID = {
    "1": [
        ("Ann", "I keep bees on the roof."),
        ("Bo", "I built a wooden kite."),
        ("Ann", "Lovely weather today."),
    ],
    "2": [("Bo", "My kite won a prize in Linz."), ("Ann", "The bees gave four jars of honey.")],
}
QUESTIONS = (
    Question("q1", "Where does Ann keep bees?", "on the roof", ("D1:1",), "single-hop"),
    Question(
        "q2", "What did Bo build, and what did it win?", "a kite, a prize", ("D1:2", "D2:1"), "multi-hop"
    ),
    Question("q3", "Which boat does Ann sail?", None, ("D1:1",), "adversarial", adversarial=True),
    Question("q4", "What is the mood?", "zestful", (), None),
)
FACTS = (
    GivenFact("Ann keeps bees on the roof.", ("D1:1",), "Ann", "1"),
    GivenFact("Bo's kite won a prize.", ("D1:2", "D2:1"), "Bo", "2"),
)


def sample(name="garden", *, questions=QUESTIONS, facts=FACTS) -> Sample:
    sessions = []
    for number, (session, lines) in enumerate(SAID.items()):
        turns = tuple(
            Turn(
                id=turn_id(session, place),
                session=session,
                position=place,
                speaker=speaker,
                text=text,
                time=START + timedelta(days=number, minutes=place),
            )
            for place, (speaker, text) in enumerate(lines, start=1)
        )
        sessions.append(Session(session, turns))
    return Sample(name, Conversation(name, tuple(sessions)), questions, facts)


def plan(*samples, **changes) -> Plan:
    values = {
        "data": "jsonl",
        "file": "ours.jsonl",
        "sha256": "0" * 64,
        "conversations": tuple(one.id for one in samples),
        "facts": "none",
        "k": 10,
        "token_budget": 500,
        "settings": Settings(shards=2),
    }
    return Plan(**(values | changes))


def in_process(jobs, workers, tell):
    for job in jobs:
        run_conversation(job, tell, embeddings=FakeEmbeddings())


def measured(path, *samples, options=None, **changes):
    """The figures of a run in a folder."""
    chosen = samples or (sample(),)
    return run(plan(*chosen, **changes), chosen, RunFolder(path), run_jobs=in_process, **(options or {}))


def records_of(path):
    return {record.id: record for record in RunFolder(path).records.read()}
