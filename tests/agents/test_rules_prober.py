"""The rules Prober: which questions are made of a session's turns, and that their answers stand in it."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.agents.constructor import ConstructorInput
from memcycle.agents.prober import ProbeDraft, ProberInput
from memcycle.agents.rules.clauses import clause_of
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.rules.open_questions import cloze
from memcycle.agents.rules.probe_dates import dated
from memcycle.agents.rules.prober import prober
from memcycle.agents.rules.verb_forms import base_form
from memcycle.agents.rules.wh_questions import wh_questions, when_question
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.language.questions import is_question
from memcycle.core.language.tokens import content_stems

NOW = datetime(2024, 5, 8, 10, tzinfo=UTC)
DATES = re.compile(
    r"(?:the (?:week|weekend) of )?(?:\d+ )?(?:[A-Z]\w+ |winter |summer |spring |autumn )?\d{4}"
)
OPEN_WORDS = re.compile(r"\b(?:I|me|my|we|our|you|your|this|it)\b")
TALK = [
    ("Ines", "Hi Tomek! How was your week?"),
    ("Tomek", "Good! I sold the old loom at the market in Graz last Friday."),
    ("Ines", "Nice. My sister gave me a silver flute for my birthday."),
    ("Tomek", "I have three goats, and I want to build a wooden stable for them."),
    ("Ines", "I moved to Linz because the rent in Vienna was too high."),
    ("Tomek", "My brother works at a bakery near the station."),
    ("Ines", "I am learning to restore antique clocks with an old watchmaker."),
    ("Tomek", "We watched a documentary about glaciers yesterday."),
]


def turn(text: str, speaker: str = "Ines", n: int = 1, role: str = "human") -> TurnView:
    return TurnView(n=n, speaker=speaker, role=role, text=text, time=NOW)


def talk(*said: tuple[str, str]) -> list[TurnView]:
    return [turn(text, speaker, n) for n, (speaker, text) in enumerate(said, 1)]


def probes(
    turns: list[TurnView], count: int = 5, memories: list[MemoryView] | None = None
) -> list[ProbeDraft]:
    return prober(ProberInput(turns=turns, memories=memories or [], count=count, now=NOW)).probes


def memory(text: str, n: int = 0) -> MemoryView:
    return MemoryView(n=n, granularity="fact", text=text, speaker="Ines", role="human", time=NOW)


def asked(statement: str) -> list[tuple[str, str]]:
    clause = clause_of(statement, ["Ines", "Tomek"])
    return [one[:2] for one in wh_questions(clause)] if clause else []


@pytest.mark.parametrize(
    ("statement", "question", "answer"),
    [
        (
            "Ines adopted a cat called Miso from the shelter",
            "What did Ines adopt?",
            "a cat called Miso from the shelter",
        ),
        ("Ines sold the loom", "What did Ines sell?", "Ines sold the loom"),
        ("Ines went to a jazz concert in Graz", "Where did Ines go?", "to a jazz concert in Graz"),
        (
            "Ines is excited about the long trip to Iceland",
            "What is Ines excited about?",
            "the long trip to Iceland",
        ),
        (
            "Ines wants to learn the art of weaving",
            "What does Ines want to learn?",
            "the art of weaving",
        ),
        (
            "Ines has been painting portraits of old sailors",
            "What has Ines been painting?",
            "portraits of old sailors",
        ),
        (
            "Ines and others visited a castle on a hill",
            "What did Ines and others visit?",
            "a castle on a hill",
        ),
        ("Ines's sister gave Ines a silver flute", "What did Ines's sister give Ines?", "a silver flute"),
        (
            "Ines met Tomek's friend at the railway museum",
            "Who did Ines meet?",
            "Tomek's friend at the railway museum",
        ),
        ("Tomek has three goats", "How many goats does Tomek have?", "Tomek has three goats"),
        (
            "Ines doesn't eat mushrooms from the forest",
            "What does Ines not eat?",
            "mushrooms from the forest",
        ),
        (
            "Ines moved to Linz because the rent in Vienna was too high",
            "Why did Ines move to Linz?",
            "because the rent in Vienna was too high",
        ),
        ("Ines's favourite dish is potato soup", "What is Ines's favourite dish?", None),
        (
            "Ines has lived in Linz for two years",
            "How long has Ines lived in Linz?",
            "Ines has lived in Linz for two years",
        ),
        (
            "Ines started collecting the stamps of old ships",
            "What did Ines start collecting?",
            "the stamps of old ships",
        ),
    ],
)
def test_statements_become_questions(statement: str, question: str, answer: str | None) -> None:
    found = dict(asked(statement))
    if answer is None:  # not asked for: the rules see no noun phrase there
        assert question not in found
    else:
        # A gap shorter than a clause is answered by the whole clause.
        assert found[question] in (answer, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "Ines never eats fish at home",
        "If Ines goes to Linz, Tomek stays",
        "The market opens at seven",
        "Ines loves it",
        "Ines thinks Tomek will win",
        "Ines is painting looks like fun",
        "Ines",
        "",
    ],
)
def test_no_question_where_grammar_or_sense_would_break(statement: str) -> None:
    assert asked(statement) == []


@pytest.mark.parametrize(
    ("form", "base"),
    [
        ("went", "go"), ("baked", "bake"), ("stopped", "stop"), ("tried", "try"), ("tied", "tie"),
        ("visited", "visit"), ("created", "create"), ("called", "call"), ("travelled", "travel"),
        ("changed", "change"), ("belonged", "belong"), ("explored", "explore"), ("added", "add"),
        ("argued", "argue"), ("danced", "dance"), ("encouraged", "encourage"), ("explained", "explain"),
        ("teaches", "teach"), ("studies", "study"), ("uses", "use"), ("goes", "go"), ("put", "put"),
        ("focused", "focus"), ("dyed", "dye"), ("love", "love"), ("fixed", "fix"), ("shared", "share"),
    ],
)  # fmt: skip
def test_base_forms(form: str, base: str) -> None:
    assert base_form(form) == base


def test_irregular_base_forms() -> None:
    assert base_form("rang") == "ring"
    assert base_form("withdrew") == "withdraw"
    assert base_form("rode") == "ride"
    assert base_form("overslept") == "overslept"  # no past form to the rules, so no question with "did"


@pytest.mark.parametrize(
    ("text", "plain", "full"),
    [
        ("Ines sold the loom yesterday", "Ines sold the loom", "Ines sold the loom on 7 May 2024"),
        ("Last week, Ines sold it", "Ines sold it", "In the week of 29 April 2024, Ines sold it"),
        (
            "Ines has skied since last winter",
            "Ines has skied since winter 2023",
            "Ines has skied since winter 2023",
        ),
        (
            "Ines moved in March 2021 to Linz",
            "Ines moved to Linz",
            "Ines moved in March 2021 to Linz",
        ),
    ],
)
def test_dates_are_taken_out_or_written_out(text: str, plain: str, full: str) -> None:
    found = dated(text, NOW)
    assert found is not None
    assert (found.plain, found.full) == (plain, full)


def test_a_relative_date_that_cannot_be_written_out_makes_no_statement() -> None:
    assert dated("Ines liked yesterday's concert", NOW) is None


def test_when_is_asked_of_what_happened_not_of_what_lasts() -> None:
    happened = clause_of("Ines sold the loom", ["Ines"])
    lasts = clause_of("Ines loves the loom", ["Ines"])
    assert happened is not None
    assert lasts is not None
    assert when_question(happened) == "When did Ines sell the loom?"
    assert when_question(lasts) is None


def test_a_date_is_answered_absolutely_first() -> None:
    (probe,) = [p for p in probes(talk(*TALK)) if p.kind == "temporal" and p.turn == 2]
    assert probe.question == "When did Tomek sell the old loom at the market in Graz?"
    assert probe.answer == "3 May 2024 (Tomek: “last Friday”)"


def test_probes_are_spread_mixed_and_stand_alone() -> None:
    found = probes(talk(*TALK))
    assert len(found) == 5
    assert len({probe.turn for probe in found}) == 5
    assert [probe.turn for probe in found] == sorted(probe.turn for probe in found)
    assert {probe.kind for probe in found} == {"single-hop", "temporal"}
    for probe in found:
        assert not OPEN_WORDS.search(probe.question), probe.question
        assert re.search(r"\b(?:Ines|Tomek)\b", probe.question)
        assert probe.question.endswith("?")
        assert len(probe.answer.split()) >= 4


def test_the_same_turns_give_the_same_probes() -> None:
    assert probes(talk(*TALK)) == probes(talk(*TALK))


def test_a_shared_rare_thing_makes_a_cross_session_probe_about_what_is_new() -> None:
    earlier = [memory("Ines bought a telescope."), memory("Tomek likes tea.", 1)]
    turns = talk(("Ines", "I took the telescope to a dark valley near Murau."), ("Tomek", "Great!"))
    (probe,) = [p for p in probes(turns, memories=earlier) if p.kind == "cross-session"]
    assert "telescope" in probe.question + probe.answer
    assert "valley near Murau" in probe.answer
    assert probe.turn == 1


def test_what_memory_holds_already_is_no_cross_session_probe() -> None:
    earlier = [memory("Ines took the telescope to a dark valley near Murau.")]
    turns = talk(("Ines", "I took the telescope to a dark valley near Murau."), ("Tomek", "Great!"))
    assert all(probe.kind != "cross-session" for probe in probes(turns, memories=earlier))


def test_questions_greetings_assistants_and_tools_are_not_probed() -> None:
    turns = [
        turn("Hello there! How are you today?", n=1),
        turn("Did you sell the silver flute in Vienna?", n=2),
        turn("The capital of Styria is Graz, a city of 300,000 people.", "bot", 3, role="ai"),
        turn("The ferry to Bornholm leaves at nine from pier four.", "search", 4, role="tool"),
        turn("Bye, see you soon!", n=5),
    ]
    assert probes(turns) == []


def test_a_sentence_the_constructor_makes_nothing_of_is_probed_too() -> None:
    said = talk(
        ("Ines", "You played the Brahms sonata in Salzburg with a broken string."),
        ("Tomek", "Thanks!"),
    )
    assert constructor(ConstructorInput(turns=said, now=NOW)).facts == []
    (probe, *_) = probes(said)
    assert probe.turn == 1
    assert "Tomek" in probe.question
    assert "sonata" in probe.answer


def test_two_sentences_that_fit_one_question_are_told_apart() -> None:
    turns = talk(
        ("Ines", "I painted a portrait of a tired sailor."),
        ("Tomek", "I fed the goats."),
        ("Ines", "I painted the ceiling of the old chapel."),
    )
    assert "What did Ines paint?" not in {probe.question for probe in probes(turns)}


def test_a_repeated_sentence_is_asked_for_once() -> None:
    found = probes(talk(*[("Ines", "I sold the old loom at the market.")] * 6))
    assert len({probe.question for probe in found}) == len(found)
    assert len({probe.turn for probe in found}) == 1


def test_a_short_session_gives_fewer_probes() -> None:
    assert 1 <= len(probes(talk(("Ines", "I sold the old loom at the market.")), count=9)) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "Ayer compré una bicicleta roja en el mercado de Granada con mi hermana.",
        "Gestern habe ich auf dem Markt in Graz mit meiner Schwester ein rotes Fahrrad gekauft.",
        "我昨天在北京的一家小店里买了一辆红色的自行车。",
        "اشتريت أمس دراجة حمراء من السوق القديم في دمشق مع أختي.",
        "Вчера я купила красный велосипед на рынке вместе со своей сестрой.",
    ],
)
def test_other_languages_are_asked_how_a_sentence_goes_on(text: str) -> None:
    (probe,) = probes([turn(text)], count=1)
    assert probe.answer in text
    assert probe.answer not in probe.question
    assert "Ines" in probe.question


@pytest.mark.parametrize(
    "texts",
    [
        ["🎉🎉🎉", "👩‍👩‍👧 ❤️?"],
        ["{}$name %s ```x = 1``` <b>&</b> ' OR 1=1 --", "\\n \" ' [image: a loom]"],
        [" ", "\n\t"],
        ["I sold a loom in May 2021. " * 750, "word" * 5000],
        ["very " * 400 + "much", "a, " * 500],
        ["[image: ]", "[image: a photo of a loom in a shed]"],
        [],
    ],
)
def test_odd_turns_break_nothing(texts: list[str]) -> None:
    turns = [turn(text, n=n) for n, text in enumerate(texts, 1)]
    for probe in probes(turns):
        assert 1 <= probe.turn <= len(turns)
        assert len(probe.question) + len(probe.answer) < 600


def test_a_cloze_is_cut_before_a_phrase_and_never_shows_its_answer() -> None:
    found = cloze("Ines restored the organ of the chapel with two friends", "Ines", anywhere=False)
    assert found is not None
    assert found.question.startswith("What completes what Ines said: “Ines restored the organ")
    assert found.answer.split()[0] in {"of", "with"}
    assert cloze("Ines restored it with them", "Ines", anywhere=False) is None
    assert cloze("Too short here", "Ines", anywhere=True) is None


WORDS = (
    "I my we you Ines Tomek sold went to the a market in Graz yesterday last week three goats because and who"
    " is was has been painting want it them . , ! ? - “ ” 's doesn't never Miso called May 2021 since for"
    " 图书馆 🎉 über"
)
words = st.sampled_from(WORDS.split(" "))
sentences = st.lists(words, max_size=14).map(" ".join) | st.text(max_size=60)


@settings(max_examples=120, deadline=None)
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["Ines", "Tomek", "Ana Lu", "用户"]), sentences, st.sampled_from(["human", "ai"])
        ),
        max_size=6,
    ),
    held=st.lists(sentences, max_size=3),
    count=st.integers(1, 6),
)
def test_any_turns_give_supported_probes(
    said: list[tuple[str, str, str]], held: list[str], count: int
) -> None:
    turns = [turn(text, speaker, n * 3, role) for n, (speaker, text, role) in enumerate(said, 1)]
    found = probes(turns, count, [memory(text, n) for n, text in enumerate(held)])
    by_number = {one.n: one for one in turns}
    names = set(content_stems(" ".join(one.speaker for one in turns))) | {"other", "themself"}
    assert len(found) <= count
    assert len({probe.question for probe in found}) == len(found)
    for probe in found:
        source = by_number[probe.turn]
        assert source.role == "human"
        assert not is_question(source.text) or "." in source.text or "!" in source.text
        assert probe.answer.strip()
        assert probe.answer.casefold() not in probe.question.casefold()
        if probe.kind != "temporal":
            dates = set(content_stems(" ".join(DATES.findall(probe.answer))))
            unsaid = set(content_stems(probe.answer)) - set(content_stems(source.text)) - names - dates
            assert not unsaid, (probe, source.text)


_DATES = re.compile(
    r"(?:the (?:week|weekend) of )?(?:\d+ )?(?:[A-Z]\w+ |winter |summer |spring |autumn )?\d{4}"
)


def test_an_image_is_asked_for_only_where_it_is_the_only_one() -> None:
    one = talk(("Ines", "Look! [image: a photo of a loom in a wooden shed]"))
    two = [*one, turn("[image: a drawing of a goat on a hill]", n=2)]
    assert [probe.question for probe in probes(one)] == [
        "What does the image show that Ines shared on 8 May 2024?"
    ]
    assert probes(two) == []


def test_a_standing_request_is_asked_for() -> None:
    (probe, *_) = probes([turn("From now on, answer in short German sentences.")])
    assert probe.question == "What standing request did Ines make on 8 May 2024?"
    assert "short German sentences" in probe.answer
