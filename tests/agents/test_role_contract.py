"""The contract of every role of a `Roles` set. Put another set into `role_set` to run it through this."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

from memcycle.agents.answerability import AnswerabilityInput
from memcycle.agents.answerer import AnswererInput
from memcycle.agents.consolidator import ConsolidatorInput
from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.diagnoser import DiagnoserInput, DimensionView, FailureView
from memcycle.agents.episode_trigger import EpisodeTriggerInput
from memcycle.agents.episode_writer import EpisodeWriterInput
from memcycle.agents.fact_judge import FactJudgeInput, NewFact
from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.agents.guide import GuideInput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.prober import ProberInput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.refresher import ConflictView, RefresherInput
from memcycle.agents.repairer import RepairerInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.verifier import VerifierInput
from memcycle.agents.views import MemoryView, TurnView
from memcycle.prompts import PromptSet

NOW = datetime(2024, 6, 1, 10, tzinfo=UTC)
TEXTS = {
    "plain": [
        "I sold the old loom at the market in Graz last week.",
        "Nice! Who bought it, and for how much?",
    ],
    "emoji": ["🎉🎉🎉", "👩‍👩‍👧 ❤️?"],
    "cjk": ["我昨天在北京买了一辆自行车。", "谁买了自行车？"],
    "rtl": ["اشتريت دراجة أمس.", "متى؟"],
    "markup": ["{}$name %s ```x = 1``` <b>&</b> ' OR 1=1 --", "\\n \" ' [image: a loom]"],
    "blank": [" ", "\n\t"],
    "long": ["I sold a loom in May 2021. " * 75, "word" * 1000],
    "none": [],
}


def turns(texts: list[str]) -> list[TurnView]:
    names = ["Ines", "Tomek"]
    return [
        TurnView(n=n, speaker=names[n % 2], role="human", text=text, time=NOW)
        for n, text in enumerate(texts, 1)
    ]


def memories(texts: list[str]) -> list[MemoryView]:
    """Numbered from 5, so that a role which counts instead of reading numbers is caught."""
    return [
        MemoryView(n=n, granularity="raw", text=text, speaker="Ines", role="human", time=NOW)
        for n, text in enumerate(texts, 5)
    ]


def inputs(texts: list[str]) -> dict[str, Any]:
    """An input for every role, made of the same texts."""
    said, held = turns(texts), memories(texts)
    question = texts[-1] if texts else ""
    new = [NewFact(n=turn.n, text=turn.text, speaker=turn.speaker, turn=turn, near=held) for turn in said]
    conflicts = [ConflictView(memory=one, turn=said[-1]) for one in held]
    # Numbers with gaps: what was answered by nobody is not graded.
    answers = [GradeItem(n=2 * turn.n, question=question, gold=turn.text, answer=question) for turn in said]
    first = said[0] if said else TurnView(n=1, speaker="Ines", role="human", text="", time=NOW)
    return {
        "constructor": ConstructorInput(turns=said, memories=held, now=NOW),
        "episode_trigger": EpisodeTriggerInput(turns=said, new=len(said)),
        "episode_writer": EpisodeWriterInput(turns=said),
        "retriever": RetrieverInput(purpose="recall", items=said, window=said, now=NOW),
        "judge": JudgeInput(purpose="recall", items=said, candidates=held, now=NOW),
        "fact_judge": FactJudgeInput(facts=new, now=NOW),
        "refresher": RefresherInput(conflicts=conflicts, turns=said, now=NOW),
        "guide": GuideInput(turns=said, memories=held, now=NOW),
        "answerability": AnswerabilityInput(question=question, evidence=held, now=NOW),
        "query_reasoner": QueryReasonerInput(
            question=question, gap=question, tried=[question], evidence=held
        ),
        "answerer": AnswererInput(question=question, evidence=held, now=NOW),
        "verifier": VerifierInput(
            question=question, answer=question, answerable=True, evidence=held, candidates=True, now=NOW
        ),
        "prober": ProberInput(turns=said, memories=held, count=3, now=NOW),
        "grader": GraderInput(items=answers),
        "repairer": RepairerInput(
            question=question, gold=first.text, answer="", turns=said, source=first.n, memories=held, now=NOW
        ),
        "consolidator": ConsolidatorInput(text=first.text, turn=first, memories=held, now=NOW),
        "diagnoser": DiagnoserInput(
            objective="recall",
            score=0.5,
            token_budget=500,
            dimensions=[DimensionView(path="k", type="int", low=1, high=200, value=5)],
            failures=[
                FailureView(n=turn.n, pattern="answer format", question=turn.text, answer=turn.text, gold="x")
                for turn in said
            ],
        ),
    }


def shown(value: BaseModel) -> tuple[set[int], set[int]]:
    """Numbers of turns and of memories an input shows."""
    found: tuple[set[int], set[int]] = (set(), set())
    for part in _parts(value):
        if isinstance(part, TurnView):
            found[0].add(part.n)
        if isinstance(part, MemoryView):
            found[1].add(part.n)
    return found


def asked_about(value: BaseModel) -> set[int]:
    """Numbers of the items an input asks about one by one, whatever they are."""
    return {part.n for part in _parts(value) if hasattr(part, "n") and not isinstance(part, MemoryView)}


def _parts(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from _parts(getattr(value, name))
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)


TURN_NUMBERS = {"turn": "one", "after": "one", "related_turns": "many"}
MEMORY_NUMBERS = {
    "memory": "one",
    "other": "one",
    "target": "one",
    "near": "one",
    "relevant": "many",
    "citations": "many",
}


def returned(output: BaseModel, fields: dict[str, str]) -> set[int]:
    """Numbers an output names in these fields."""
    found: set[int] = set()
    for part in _parts(output):
        for name in fields.keys() & type(part).model_fields.keys():
            value = getattr(part, name)
            found |= set(value) if isinstance(value, list) else {value} - {None}
    return found


@pytest.fixture(scope="module")
def role_set() -> Roles:
    return Roles.rules()


def test_every_role_has_an_input_here():
    assert set(inputs([])) == set(OUTPUTS) == set(Roles.rules().names())


def test_a_role_is_one_file_and_its_prompt():
    for role in OUTPUTS:
        module, name = import_module(f"memcycle.agents.{role}"), role.title().replace("_", "")
        assert OUTPUTS[role] is getattr(module, f"{name}Output"), role
        assert type(inputs(TEXTS["plain"])[role]) is getattr(module, f"{name}Input"), role
        assert "Where it fails" in module.__doc__, role
        assert PromptSet.shipped().text(role), role


@pytest.mark.parametrize("role", OUTPUTS)
def test_a_role_gives_its_output_and_only_numbers_it_was_shown(role_set, role):
    for kind, texts in TEXTS.items():
        value = inputs(texts)[role]
        output = getattr(role_set, role).invoke(value)
        assert type(output) is OUTPUTS[role], kind
        turn_numbers, memory_numbers = shown(value)
        assert returned(output, TURN_NUMBERS) <= turn_numbers, kind
        assert returned(output, MEMORY_NUMBERS) <= memory_numbers, kind
        assert returned(output, {"n": "one"}) <= asked_about(value), kind


@pytest.mark.parametrize("role", OUTPUTS)
async def test_a_role_says_the_same_twice_and_awaited(role_set, role):
    value = inputs(TEXTS["plain"])[role]
    runnable = getattr(role_set, role)
    said = runnable.invoke(value)
    assert runnable.invoke(value) == said
    assert await runnable.ainvoke(value) == said


@pytest.mark.parametrize("kind", TEXTS)
def test_a_prober_keeps_to_the_count_and_to_the_turns(role_set, kind):
    value = inputs(TEXTS[kind])["prober"]
    probes = role_set.prober.invoke(value).probes
    assert len(probes) <= value.count
    assert len({probe.question for probe in probes}) == len(probes)
    assert all(probe.question.strip() and probe.answer.strip() for probe in probes)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_grader_grades_each_item_once(role_set, kind):
    value = inputs(TEXTS[kind])["grader"]
    assert [grade.n for grade in role_set.grader.invoke(value).grades] == [item.n for item in value.items]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_repair_is_grounded_in_a_turn_it_was_shown(role_set, kind):
    value = inputs(TEXTS[kind])["repairer"]
    output = role_set.repairer.invoke(value)
    assert (output.op == "ADD_FACT") == (output.fact is not None)
    if output.fact is not None:
        (turn,) = [turn for turn in value.turns if turn.n == output.fact.turn]
        assert turn.role == "human"
        assert output.fact.quote.strip()
        assert output.fact.quote in turn.text


@pytest.mark.parametrize("kind", TEXTS)
def test_a_consolidator_names_the_memory_it_means(role_set, kind):
    output = role_set.consolidator.invoke(inputs(TEXTS[kind])["consolidator"])
    assert (output.decision == "INSERT") == (output.memory is None)
    assert (output.decision == "MERGE") == bool(output.text)
