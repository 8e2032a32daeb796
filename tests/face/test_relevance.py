"""Where nothing found bears on a message nothing is shown, and no question loses its answer by that."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage

from memcycle import Memory, Settings
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.core.world import World
from memcycle.evals.datasets.jsonl import load_jsonl
from memcycle.integrations.messages import NOTHING, Recall, memory_block
from memcycle.stores.search.request import Query, SearchRequest

ROOT = Path(__file__).resolve().parent.parent.parent
NOTES = [
    line.split(" | ")
    for name in ("notes", "notes_held")
    for line in (ROOT / f"benchmarks/{name}.txt").read_text("utf-8").splitlines()
]
[WORKSHOP] = load_jsonl(ROOT / "evals/conversations/workshop.jsonl", zone=UTC)
SHIPPED = Theta()
NOW = World(now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC))


def opened(home, theta=SHIPPED, **more) -> Memory:
    return Memory(Settings(home=home, theta=theta), user="ann", world=NOW, **more)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A home of 430 turns."""
    with opened(tmp_path_factory.mktemp("home")) as memory:
        fill(memory)
        yield memory


def fill(memory):
    for session in WORKSHOP.conversation.sessions:
        scope = Scope(user="ann", session=session.name)
        memory.bank.stage_turns(scope, session.turns)
        memory.bank.commit_session(scope)


def shown(memory, text):
    return memory.ask(text, evidence_only=True).evidence


@pytest.mark.parametrize("text", ["thanks!", "Hello there", "ok, got it", "Vielen Dank", "谢谢"])
@pytest.mark.parametrize("said", ["I moved to Graz last Friday.", "My dog is called Pixel."])
def test_small_talk_gets_nothing_of_a_memory_of_any_size(tmp_path, workshop, text, said):
    with opened(tmp_path) as memory:
        memory.add(said, session="monday")
        assert shown(memory, text) == []
    assert shown(workshop, text) == []
    assert NOTHING in memory_block(Recall.of(shown(workshop, text)))


GENERAL = (
    "What is superconductivity?",
    "What is utilitarianism?",
    'What is the plural of "octopus"?',
    "What is a closure in JavaScript?",
)


@pytest.mark.parametrize("text", GENERAL)
def test_what_nothing_bears_on_gets_nothing_of_a_large_memory(workshop, text):
    assert shown(workshop, text) == []
    assert workshop.ask(text).answerable is False


@pytest.mark.parametrize("size", [1, 3, 10, 30])
def test_what_nothing_bears_on_gets_nothing_of_a_small_memory(tmp_path, size):
    with opened(tmp_path) as memory:
        for at in range(0, 90, 30):
            told(memory, f"of {at}", NOTES[at : at + size])
            for text in GENERAL:
                assert memory.ask(text, user=f"of {at}", evidence_only=True).evidence == [], text


@pytest.mark.parametrize(
    "text",
    [
        "What is my superconductivity?",
        "utilitarianism",
        "Was ist die Hauptstadt von Peru?",
        "What was the currency of Hungary last Friday?",
    ],
)
def test_who_asks_of_themselves_by_keywords_of_a_time_or_in_another_language_is_shown_what_there_is(
    workshop, text
):
    assert shown(workshop, text)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I moved to Graz.", ("Where do I live?", "Which town is home now?", "any good bakery nearby?")),
        (
            "My dog is called Pixel.",
            ("Who is Pixel?", "What is the name of the dog?", "what's the dog called"),
        ),
        ("We deploy on Thursdays.", ("When is the next deployment?", "Can it go out on a Monday?")),
        ("Vivo en Valencia.", ("¿Dónde vivo?", "Which city is home?")),
        ("I am reading about monads.", ("What is a monad?", "Explain what a monad is.")),
    ],
)
def test_the_only_thing_said_is_found_in_other_words(tmp_path, said, asked):
    with opened(tmp_path) as memory:
        memory.add(said, session="monday")
        for text in asked:
            assert [one.text for one in shown(memory, text)] == [said], text


def test_no_question_with_evidence_goes_without(workshop):
    asked = [one.question for one in WORKSHOP.questions if one.evidence]
    ranked = workshop.bank.rank(
        SearchRequest(scope=Scope(user="ann"), queries=tuple(Query(text=one) for one in asked), telling=True)
    )
    assert len(asked) > 90
    assert [text for text, one in zip(asked, ranked, strict=True) if one.likely < SHIPPED.relevance] == []


def told(memory, user, rows):
    """Notes of a user, in one home."""
    memory.add([HumanMessage(row[0]) for row in rows], user=user, session="s")


@pytest.mark.parametrize("size", [1, 3, 10, 30])
def test_in_a_small_memory_no_question_goes_without(tmp_path, size):
    with opened(tmp_path) as memory:
        for at in range(0, len(NOTES), max(size, 10)):
            rows = NOTES[at : at + size]
            told(memory, f"of {at}", rows)
            asked = [text for row in rows for text in row[1:]]
            request = SearchRequest(
                scope=Scope(user=f"of {at}"), queries=tuple(Query(text=text) for text in asked), telling=True
            )
            ranked = memory.bank.rank(request)
            lost = [t for t, one in zip(asked, ranked, strict=True) if one.likely < SHIPPED.relevance]
            assert lost == []


def test_small_talk_that_is_a_name_in_a_tiny_memory_finds_it(tmp_path):
    with opened(tmp_path) as memory:
        memory.add("My aunt lives in Nice.", session="monday")
        assert [one.text for one in shown(memory, "Nice")] == ["My aunt lives in Nice."]


def test_theta_switches_it_off(tmp_path):
    off, _ = SHIPPED.with_changes({"relevance": 0})
    with opened(tmp_path, off) as memory:
        fill(memory)
        for text in ("What is superconductivity?", "thanks!"):
            assert shown(memory, text)


def test_with_another_embedder_only_small_talk_gets_nothing(tmp_path):
    with opened(tmp_path, embeddings=DeterministicFakeEmbedding(size=16)) as memory:
        fill(memory)
        assert shown(memory, "thanks!") == []
        assert shown(memory, "What is superconductivity?")
