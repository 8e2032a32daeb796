"""The rules Constructor: what becomes a fact, in which words, with which labels and edits."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcycle.agents.constructor import ConstructorInput, FactDraft
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.rules.verbs import sentence_pattern
from memcycle.agents.views import MemoryView, TurnView

NOW = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
THEN = datetime(2024, 1, 5, 12, 0, tzinfo=UTC)


def turn(text: str, speaker: str = "Ines", n: int = 1, role: str = "human") -> TurnView:
    return TurnView(n=n, speaker=speaker, role=role, text=text, time=NOW)


def facts(*turns: TurnView, memories: list[MemoryView] | None = None) -> list[FactDraft]:
    return constructor(ConstructorInput(turns=list(turns), memories=memories or [], now=NOW)).facts


def texts(text: str) -> list[str]:
    return [fact.text for fact in facts(turn(text))]


def memory(n: int, text: str, time: datetime = THEN) -> MemoryView:
    return MemoryView(n=n, granularity="fact", text=text, speaker="Ines", role="human", time=time)


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("I went to a chess meeting yesterday.", "Ines went to a chess meeting yesterday."),
        ("I work at a bakery in Graz.", "Ines works at a bakery in Graz."),
        ("I'm learning Finnish.", "Ines is learning Finnish."),
        ("I've been painting since May.", "Ines has been painting since May."),
        ("I'd love to see Iceland.", "Ines would love to see Iceland."),
        ("I'd never seen snow before.", "Ines had never seen snow before."),
        ("I don't eat mushrooms.", "Ines doesn't eat mushrooms."),
        ("I really love horses and hate rain.", "Ines really loves horses and hates rain."),
        ("My brother lives with me.", "Ines's brother lives with Ines."),
        ("I no longer live in Graz.", "Ines no longer lives in Graz."),
        ("I no longer eat walnuts at work.", "Ines no longer eats walnuts at work."),
        ("My mom and I bake bread.", "Ines's mom and Ines bake bread."),
        ("We adopted a puppy last week.", "Ines and others adopted a puppy last week."),
        ("Lost my job as a banker yesterday.", "Ines lost Ines's job as a banker yesterday."),
        ("Been rehearsing hard for the play.", "Ines has been rehearsing hard for the play."),
        ("Gonna take a pottery class.", "Ines is going to take a pottery class."),
        ("Thinking about buying a boat.", "Ines is thinking about buying a boat."),
        ("Hey! By the way, I sold the car.", "Ines sold the car."),
        ("Thanks for asking, we got another cat.", "Ines and others got another cat."),
        ("Glad you like it - I painted it in May.", "Ines painted it in May."),
        ("It was cold at the lake, right?", "Ines said it was cold at the lake."),
        ("The market opens at seven.", "Ines said the market opens at seven."),
    ],
)
def test_first_person_becomes_the_speaker(said: str, stated: str) -> None:
    # A name in -s takes a bare apostrophe.
    assert texts(said) == [stated.replace("Ines's", "Ines'")]


@pytest.mark.parametrize(
    "said",
    [
        "Hey Tom! How are you?", "Wow, that's awesome!", "Thanks so much!", "Sounds great!",
        "Do you like tea?",
        "Keep going and never stop dreaming!", "Check out this page.",
        "So glad you liked it!", "Haha",
        "Talk to you soon!",
        "Long time no see!", "You are such a good friend.", "",
    ],
)  # fmt: skip
def test_what_states_nothing_is_left_out(said: str) -> None:
    assert texts(said) == []


@pytest.mark.parametrize("role", ["ai", "tool", "system"])
def test_only_what_a_person_said_becomes_a_fact(role: str) -> None:
    assert facts(turn("I moved to Porto.", role=role)) == []


def test_clauses_with_their_own_subjects_are_two_facts() -> None:
    assert texts("I moved to Porto in May, and my sister opened a cafe there.") == [
        "Ines moved to Porto in May.",
        "Ines' sister opened a cafe there.",
    ]


def test_a_sentence_that_leans_on_the_one_before_is_joined_to_it() -> None:
    assert texts("I climbed a volcano. It took nine hours in the dark.") == [
        "Ines climbed a volcano. It took nine hours in the dark."
    ]


def test_asides_are_facts_of_their_own() -> None:
    found = texts("My brother Tom plays the cello.")
    assert "Tom is Ines' brother." in found
    assert "Ines' brother Tom plays the cello." in found


def test_a_photo_is_a_fact_about_who_shared_it() -> None:
    assert texts("[image: a photo of a red barn]") == ["Ines shared a photo of a red barn."]


def test_the_listener_is_named_where_there_is_one() -> None:
    found = facts(turn("I baked a cake for you."), turn("Thanks!", "Tom", 2))
    assert [fact.text for fact in found] == ["Ines baked a cake for Tom."]


def test_a_short_answer_is_kept_beside_its_question() -> None:
    found = facts(turn("What is your dog called?", "Tom"), turn("Bruno!", n=2))
    assert [fact.text for fact in found] == [
        "Ines answered “Bruno!” to Tom's question “What is your dog called?”"
    ]
    assert found[0].related_turns == [1]
    assert found[0].quote == "Bruno!"


def test_labels() -> None:
    fact = facts(turn("Oh, I visited Lake Bled with Anna Novak two days ago!"))[0]
    assert fact.event_time == datetime(2024, 3, 3, tzinfo=UTC)
    assert fact.event_precision == "day"
    assert fact.quote == "I visited Lake Bled with Anna Novak two days ago!"
    assert fact.persons == ["Ines", "Anna Novak"]
    assert "Lake Bled" in fact.locations
    assert {"Lake Bled", "Anna Novak"} <= set(fact.entities)
    assert fact.pattern == "SVO"
    assert fact.importance > facts(turn("I visited some place then."))[0].importance


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I love old trains.", "preference"),
        ("I live in a small village.", "semantic"),
        ("I went skiing yesterday.", "episodic"),
        ("From now on, answer in German.", "procedural"),
        ("The deadline of the launch was moved to June.", "project_state"),
    ],
)
def test_kinds(said: str, kind: str) -> None:
    assert [fact.kind for fact in facts(turn(said))] == [kind]


@pytest.mark.parametrize(
    ("statement", "pattern"),
    [
        ("Ines slept.", "SV"),
        ("Ines went to Porto.", "SV"),
        ("Ines is a nurse.", "SVC"),
        ("Ines bought a boat.", "SVO"),
        ("Ines gave Tom a book.", "SVOO"),
        ("The news made Ines happy.", "SVOC"),
    ],
)
def test_sentence_patterns(statement: str, pattern: str) -> None:
    assert sentence_pattern(statement) == pattern


def test_the_same_statement_changes_nothing() -> None:
    found = facts(turn("I like cheese."), memories=[memory(3, "Ines likes cheese")])
    assert [(fact.edit, fact.target) for fact in found] == [("NONE", 3)]


def test_what_replaces_a_memory_updates_it() -> None:
    found = facts(
        turn("I moved to Porto."),
        memories=[memory(2, "Ines likes cheese."), memory(5, "Ines lives in Graz.")],
    )
    assert [(fact.edit, fact.target) for fact in found] == [("UPDATE", 5)]


def test_old_news_updates_nothing() -> None:
    found = facts(turn("I moved to Porto in 2010."), memories=[memory(5, "Ines lives in Graz.")])
    assert [(fact.edit, fact.target) for fact in found] == [("ADD", None)]


@pytest.mark.parametrize(
    ("said", "request_"),
    [
        ("Please forget that I am allergic to nuts.", "Please forget that I am allergic to nuts."),
        ("Hi. Can you delete what I told you about nuts?", "Can you delete what I told you about nuts?"),
    ],
)
def test_a_request_to_forget_deletes_and_is_quoted(said: str, request_: str) -> None:
    found = facts(
        turn(said), memories=[memory(1, "Ines likes cheese."), memory(4, "Ines is allergic to nuts.")]
    )
    assert [(fact.edit, fact.target, fact.quote) for fact in found] == [("DELETE", 4, request_)]


@pytest.mark.parametrize(
    "said", ["I will never forget that trip to the nut farm.", "Don't forget about the nuts!"]
)
def test_other_uses_of_forget_delete_nothing(said: str) -> None:
    found = facts(turn(said), memories=[memory(4, "Ines is allergic to nuts.")])
    assert "DELETE" not in [fact.edit for fact in found]


def test_other_languages_are_kept_as_said() -> None:
    assert texts("Ich wohne seit drei Jahren in der Stadt und arbeite in einem Krankenhaus.") == [
        "Ines: Ich wohne seit drei Jahren in der Stadt und arbeite in einem Krankenhaus."
    ]


_SAID = st.sampled_from(
    [
        "I",
        "I'm",
        "my",
        "we",
        "you",
        "and",
        "but",
        ",",
        ".",
        "!",
        "?",
        "-",
        "Tom",
        "love",
        "went",
        "yesterday",
        "[image:",
        "]",
        "was",
        "'d",
        "not",
        "the",
        "cake",
        "it",
        "forget",
    ]
)


@given(st.one_of(st.text(max_size=120), st.lists(_SAID, max_size=15).map(" ".join)))
def test_quotes_stand_in_the_turn_and_nothing_raises(text: str) -> None:
    first = facts(turn(text), turn(text, "Tom", 2))
    assert first == facts(turn(text), turn(text, "Tom", 2))
    for fact in first:
        assert fact.quote in text
        assert fact.text.strip()
