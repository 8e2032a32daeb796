"""The rules Repairer: what it writes for a failed probe, and when it writes nothing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.repairer import RepairerInput
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.rules.repairer import repairer
from memcycle.agents.views import MemoryView, TurnView

SAID = datetime(2024, 5, 9, 18, tzinfo=UTC)
TALK = [
    ("Ana", "human", "Hey Tom! Yesterday I adopted a grey cat called Miso from the shelter."),
    ("Tom", "human", "Wow! What did you cook for her first evening?"),
    ("Ana", "human", "Trout with rice!"),
    (
        "Tom",
        "human",
        "My brother Jonas built two canoes last month. He wants to sell one. It costs 900 euros.",
    ),
    ("Ana", "human", "I don't like canoes. Did I tell you that I won the Graz regatta in 2019?"),
    ("helper", "ai", "Ana should see a doctor about her walnut allergy."),
    ("Ana", "human", "[image: a photo of a blue teapot on a shelf]"),
    ("Ana", "human", "Ich habe gestern ein altes Boot gekauft und rot gestrichen, es heisst Seestern."),
    ("Ana", "human", "The loom is gone. I sold the loom to the museum. They paid 40 euros."),
]


def turns(talk=TALK):
    return [
        TurnView(n=n, speaker=speaker, role=role, text=text, time=SAID)
        for n, (speaker, role, text) in enumerate(talk, 1)
    ]


def memory(n, text, granularity="fact", **fields):
    return MemoryView(
        n=n, granularity=granularity, text=text, speaker="Ana", role="human", time=SAID, **fields
    )


def ask(question, gold, source, *memories, talk=TALK):
    return repairer(
        RepairerInput(
            question=question,
            gold=gold,
            answer="",
            turns=turns(talk),
            source=source,
            memories=list(memories),
            now=SAID,
        )
    )


@pytest.mark.parametrize(
    ("question", "gold", "source", "text", "quote"),
    [
        pytest.param(
            "What is Ana's cat called?",
            "Ana adopted a cat called Miso",
            1,
            "Yesterday Ana adopted a grey cat called Miso from the shelter.",
            "Yesterday I adopted a grey cat called Miso from the shelter.",
            id="as the Constructor words it",
        ),
        pytest.param(
            "When did Ana adopt a cat?",
            "Ana adopted a cat on 8 May 2024",
            1,
            "Yesterday Ana adopted a grey cat called Miso from the shelter.",
            "Yesterday I adopted a grey cat called Miso from the shelter.",
            id="a date",
        ),
        pytest.param(
            "What did Ana cook?",
            "Ana cooked trout with rice",
            3,
            "Ana answered “Trout with rice!” to Tom's question “What did you cook for her first evening?”",
            "Trout with rice!",
            id="a short reply beside its question",
        ),
        pytest.param(
            "What did Jonas build?",
            "Tom's brother Jonas built two canoes",
            4,
            "Tom's brother Jonas built two canoes last month. He wants to sell one. It costs 900 euros.",
            "My brother Jonas built two canoes last month. He wants to sell one. It costs 900 euros.",
            id="with the sentences that lean on it",
        ),
        pytest.param(
            "What does Ana dislike?",
            "Ana doesn't like canoes",
            5,
            "Ana doesn't like canoes.",
            "I don't like canoes.",
            id="a denial",
        ),
        pytest.param(
            "Which regatta did Ana win in 2019?",
            "Ana won the Graz regatta",
            5,
            "Ana asked: “Did I tell you that I won the Graz regatta in 2019?”",
            "Did I tell you that I won the Graz regatta in 2019?",
            id="said in a question: quoted",
        ),
        pytest.param(
            "What did Ana share a photo of?",
            "Ana shared a photo of a blue teapot",
            7,
            "Ana shared a photo of a blue teapot on a shelf.",
            "[image: a photo of a blue teapot on a shelf]",
            id="a caption",
        ),
        pytest.param(
            "Was hat Ana gekauft?",
            "Ana hat ein altes Boot gekauft",
            8,
            "Ana: Ich habe gestern ein altes Boot gekauft und rot gestrichen, es heisst Seestern.",
            "Ich habe gestern ein altes Boot gekauft und rot gestrichen, es heisst Seestern.",
            id="another language",
        ),
        pytest.param(
            "What did Ana get for the loom?",
            "Ana sold the loom to the museum for 40 euros",
            9,
            "Ana sold the loom to the museum. They paid 40 euros.",
            "I sold the loom to the museum. They paid 40 euros.",
            id="two sentences in a row",
        ),
    ],
)
def test_what_is_missing_is_written_from_the_source_turn(question, gold, source, text, quote):
    output = ask(question, gold, source)
    assert (output.op, output.cause) == ("ADD_FACT", "missing")
    fact = output.fact
    assert (fact.text, fact.quote, fact.turn, fact.speaker) == (text, quote, source, TALK[source - 1][0])


def test_it_is_the_fact_the_constructor_would_have_stored():
    stored = constructor(ConstructorInput(turns=turns()[:1], now=SAID)).facts[0]
    fact = ask("When did Ana adopt a cat?", "Ana adopted a cat on 8 May 2024", 1).fact
    assert {name: getattr(stored, name) for name in type(fact).model_fields if name != "confidence"} == {
        name: getattr(fact, name) for name in type(fact).model_fields if name != "confidence"
    }
    assert (fact.event_time, fact.event_precision) == (datetime(2024, 5, 8, tzinfo=UTC), "day")
    assert fact.confidence > 0.8 and "Ana" in fact.persons and "miso" in fact.keywords


def test_what_is_quoted_has_less_confidence():
    assert ask("Which regatta did Ana win?", "Ana won the Graz regatta", 5).fact.confidence == 0.5


CAT = ("What is Ana's cat called?", "Ana adopted a cat called Miso", 1)


@pytest.mark.parametrize(
    "stored",
    [
        memory(0, "Ana adopted a grey cat called Miso."),
        memory(0, "Yesterday Ana adopted a grey cat called Miso from the shelter."),
        memory(4, "Last spring it rained. Ana has a cat. The cat is called Miso."),
    ],
    ids=["content", "the same words", "other words"],
)
def test_what_a_stored_fact_says_is_hard_to_find(stored):
    output = ask(*CAT, memory(9, "Ana has a cat."), stored)
    assert (output.op, output.cause, output.fact) == ("NOOP", "hard to find", None)
    assert output.why == f"memory {stored.n} says so"


def test_a_date_is_known_only_where_the_memory_is_of_that_date():
    when = ("When did Ana adopt a cat?", "Ana adopted a cat on 8 May 2024", 1)
    right = memory(
        0, "Ana adopted a cat yesterday.", event_time=datetime(2024, 5, 8, tzinfo=UTC), event_precision="day"
    )
    wrong = right.model_copy(update={"event_time": datetime(2024, 3, 8, tzinfo=UTC)})
    assert ask(*when, right).cause == "hard to find"
    assert ask(*when, wrong).op == "ADD_FACT"
    assert ask(*when, memory(0, "Ana adopted a cat yesterday.")).cause == "hard to find"


@pytest.mark.parametrize(
    "stored",
    [
        memory(0, "Ana adopted a cat."),
        memory(0, "Tom adopted a cat called Miso."),
        memory(0, "Ana did not adopt a cat called Miso."),
        memory(0, "Ana adopted a dog called Miso."),
        memory(0, "Ana adopted a cat called Miso and told Tom so.", "episode"),
        memory(0, TALK[0][2], "raw"),
    ],
    ids=["less", "another person", "a denial", "another thing", "an episode is no fact", "a turn is no fact"],
)
def test_what_no_stored_fact_says_is_missing(stored):
    assert (ask(*CAT, stored).op, ask(*CAT, stored).cause) == ("ADD_FACT", "missing")


@pytest.mark.parametrize(
    ("question", "gold", "source"),
    [
        pytest.param(
            "Which allergy does Ana have?", "Ana has a walnut allergy", 6, id="an assistant said it"
        ),
        pytest.param(
            "What does Ana play?",
            "Ana plays the bassoon in an orchestra",
            1,
            id="the turn says nothing of it",
        ),
        pytest.param("What did Jonas build?", "Jonas built three canoes", 4, id="another number"),
        pytest.param("What does Ana like?", "Ana likes canoes", 5, id="the turn denies it"),
        pytest.param("When did Ana adopt a cat?", "Ana adopted a cat on 3 March 2022", 1, id="another date"),
        pytest.param(
            "What is Ana's cat called?", "Ana adopted a cat called Miso", 99, id="a turn that is not shown"
        ),
        pytest.param("What is Ana's cat called?", "Ana adopted a cat called Miso", 0, id="no turn"),
        pytest.param("What is Ana's cat called?", "  ", 1, id="a blank gold"),
        pytest.param("", "Ana", 1, id="a name alone"),
    ],
)
def test_nothing_is_written_where_the_source_does_not_say_it(question, gold, source):
    output = ask(question, gold, source)
    assert (output.op, output.cause, output.fact) == ("NOOP", "unknown", None)
    assert output.why


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "🎉🎉 Miso 🎉",
        "<b>I</b> adopted {a} %s cat",
        "我昨天收养了一只叫味噌的猫。",
        "אימצתי חתול",
    ],
)
def test_odd_turns_are_read(text):
    output = ask("What did Ana adopt?", text or "a cat", 1, talk=[("Ana", "human", text)])
    if output.fact is not None:
        assert output.fact.quote in text


def test_a_very_long_turn_is_read():
    text = f"{'We spoke of the weather and of soup. ' * 530}I adopted a cat called Miso."
    output = ask(*CAT, talk=[("Ana", "human", text)])
    assert (output.fact.text, output.fact.quote) == (
        "Ana adopted a cat called Miso.",
        "I adopted a cat called Miso.",
    )


WORD = st.sampled_from(
    [
        "I",
        "we",
        "Ana",
        "Tom",
        "adopted",
        "sold",
        "love",
        "a",
        "the",
        "cat",
        "loom",
        "Miso",
        "yesterday",
        "3",
        "not",
        ".",
        "!",
        "?",
        ",",
        "and",
        "in",
        "Graz",
        "🎉",
        "猫",
        "אבא",
    ]
)
SPOKEN = st.lists(WORD, max_size=25).map(" ".join) | st.text(max_size=60)


@settings(max_examples=60)
@given(
    talk=st.lists(
        st.tuples(st.sampled_from(["Ana", "Tom"]), st.sampled_from(["human", "ai", "tool"]), SPOKEN),
        max_size=4,
    ),
    gold=SPOKEN,
    question=SPOKEN,
    source=st.integers(-1, 6),
    stored=st.lists(SPOKEN, max_size=2),
)
def test_a_proposal_rests_on_exact_words_of_the_shown_human_source(talk, gold, question, source, stored):
    memories = [memory(n, text) for n, text in enumerate(stored)]
    output = ask(question, gold, source, *memories, talk=talk)
    assert output == ask(question, gold, source, *memories, talk=talk)
    assert (output.op == "ADD_FACT") is (output.fact is not None)
    if output.fact is not None:
        speaker, role, text = talk[source - 1]
        assert (output.fact.turn, output.fact.speaker, role) == (source, speaker, "human")
        assert output.fact.quote.strip() and output.fact.quote in text
        assert output.cause == "missing"
