"""The rules Answerer: values by slot, quotes, citations, and when it has nothing."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.answerer import AnswererInput
from memcycle.agents.rules.answerer import answerer
from memcycle.agents.views import MemoryView

NOW = datetime(2024, 9, 1, 10, tzinfo=UTC)


def day(number, month=5):
    return datetime(2024, month, number, 10, tzinfo=UTC)


def memory(n, speaker, text, time, granularity="raw", **fields):
    return MemoryView(
        n=n, granularity=granularity, text=text, speaker=speaker, role="human", time=time, **fields
    )


CHAT = [
    memory(0, "Ines", "I moved to Graz in 2021 and work as a nurse at the city clinic.", day(2)),
    memory(1, "Tomek", "My sister Lea adopted a grey cat called Pixel yesterday.", day(3)),
    memory(2, "Ines", "I have been climbing for six years. My favourite rock is the Peilstein.", day(4)),
    memory(3, "Tomek", "We own three canoes and paddle every weekend on the Drau.", day(6)),
    memory(4, "Ines", "Went to the pottery fair last week, bought a blue teapot and two mugs.", day(10, 6)),
    memory(5, "Tomek", "I am not vegetarian any more.", day(11, 6)),
    memory(6, "Ines", "What did you cook for the party?", day(12, 6)),
    memory(7, "Tomek", "Mushroom risotto and a lemon tart!", day(12, 6)),
    memory(
        8, "Ines", "I no longer live in Graz, I live in Linz now because my new job is there.", day(20, 7)
    ),
]


def ask(question, evidence=CHAT, **fields):
    return answerer(AnswererInput(question=question, evidence=evidence, now=NOW, **fields))


@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        ("When did Tomek's sister adopt a cat?", "2 May 2024", 1),
        ("When did Ines go to the pottery fair?", "the week before 10 June 2024", 4),
        ("What year did Ines move to Graz?", "2021", 0),
        ("Who adopted a cat?", "Lea", 1),
        ("What is the name of Lea's cat?", "Pixel", 1),
        ("How many canoes does Tomek own?", "three", 3),
        ("How often does Tomek paddle?", "every weekend", 3),
        ("How long has Ines been climbing?", "six years", 2),
        ("Is Tomek vegetarian?", "No", 5),
        ("Does Tomek own canoes or kayaks?", "canoes", 3),
    ],
)
def test_the_asked_value_is_read_from_the_evidence(question, answer, cited):
    output = ask(question)
    assert output.answerable and output.extractive
    assert output.answer == answer
    assert output.citations[0] == cited
    assert output.quote in CHAT[cited].text


@pytest.mark.parametrize(
    ("question", "words", "cited"),
    [
        ("What did Ines buy at the pottery fair?", "blue teapot", 4),
        ("What did Tomek cook for the party?", "risotto", 7),
        ("Where does Ines live?", "Linz", 8),
        ("What does Ines work as?", "nurse", 0),
    ],
)
def test_open_questions_get_a_span_of_the_best_sentence(question, words, cited):
    output = ask(question)
    assert words in output.answer
    assert output.citations[0] == cited
    assert output.answer in output.quote


@pytest.mark.parametrize(
    "question",
    [
        "How long has Tomek been climbing?",
        "What did Tomek buy at the pottery fair?",
        "Where does Ines paddle on weekends?",
        "What is Tomek's blood type?",
        "What is Priya's job?",
    ],
)
def test_it_has_nothing_where_the_person_never_said_so(question):
    output = ask(question)
    assert not output.answerable
    assert output.answer == "I have nothing on that."
    assert (output.citations, output.quote) == ([], "")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Wann hat Ines Geburtstag?", "Dazu weiß ich nichts."),
        ("Où est la clé de la maison ?", "Je n'ai rien à ce sujet."),
        ("¿Cuándo es el cumpleaños de Ana?", "No tengo nada sobre eso."),
        ("李雷什么时候搬家？", "我没有这方面的记录。"),
    ],
)
def test_it_abstains_in_the_language_of_the_question(question, sentence):
    assert ask(question).answer == sentence


def test_sentence_style_gives_the_sentence_and_its_speaker():
    output = ask("How many canoes does Tomek own?", style="sentence")
    assert output.answer == "Tomek: We own three canoes and paddle every weekend on the Drau."
    dated = ask("When did Tomek's sister adopt a cat?", style="sentence")
    assert dated.answer.startswith("2 May 2024 (Tomek: My sister Lea")


def facts(*rows):
    return [memory(n, "Ines", text, time, "fact", **fields) for n, (text, time, fields) in enumerate(rows)]


def test_of_two_facts_the_newest_wins():
    evidence = facts(
        ("Ines works for Alto.", day(1), {"event_time": day(1), "event_precision": "day"}),
        ("Ines works for Brava.", day(9, 7), {"event_time": day(9, 7), "event_precision": "day"}),
    )
    assert "Brava" in ask("Who does Ines work for?", evidence).answer


def test_superseded_facts_rank_last():
    evidence = facts(
        ("Ines works at the mill.", day(9, 7), {"current": False}),
        ("Ines works at the clinic.", day(1), {}),
    )
    output = ask("Where does Ines work?", evidence)
    assert "clinic" in output.answer and output.citations == [1]


def test_a_fact_without_words_of_time_answers_with_its_event_time():
    evidence = facts(
        ("Ines adopted a dog.", day(9, 7), {"event_time": day(1, 3), "event_precision": "month"})
    )
    assert ask("When did Ines adopt a dog?", evidence).answer == "March 2024"


def test_lists_join_values_of_several_memories():
    evidence = [
        memory(0, "Ines", "I play the cello in a quartet.", day(1)),
        memory(1, "Ines", "On Sundays I play the zither.", day(2)),
    ]
    output = ask("What instruments does Ines play?", evidence)
    assert "cello" in output.answer and "zither" in output.answer
    assert sorted(output.citations) == [0, 1]


def test_what_a_question_names_must_be_in_the_answer_to_it():
    """The kind behind "Yes" to any city, and the date of one move for another."""
    moves = [
        memory(0, "Ana", "I moved to Linz yesterday.", day(5, 3), current=False),
        memory(1, "Ana", "I moved to Vienna yesterday.", day(5, 6)),
    ]
    assert ask("When did Ana move to Linz?", moves).answer == "4 March 2024"
    assert ask("When did Ana move to Vienna?", moves).answer == "4 June 2024"
    assert ask("Where does Ana live?", moves).answer == "Vienna"
    assert ask("Does Ana live in Vienna?", moves).answer == "Yes"
    assert ask("Does Ana live in Linz?", moves).answer == "No"
    assert not ask("Does Ana live in Paris?", moves).answerable


def test_a_list_names_a_thing_once_though_a_turn_and_its_fact_both_say_it():
    evidence = [
        memory(0, "Nora", "I made a tall vase in my pottery class.", day(5)),
        memory(1, "Nora", "Nora made a tall vase in Nora's pottery class.", day(5), granularity="fact"),
        memory(2, "Nora", "I made a blue bowl in my pottery class.", day(7)),
    ]
    answer = ask("Which things did Nora make in her pottery class?", evidence).answer
    assert (answer.count("vase"), answer.count("bowl")) == (1, 1)
