"""From a question to its answer without a model, and what is checked before a fact is stored."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.answerability import AnswerabilityInput
from memcycle.agents.answerer import AnswererInput
from memcycle.agents.fact_judge import FactJudgeInput, NewFact
from memcycle.agents.guide import GuideInput
from memcycle.agents.judge import JudgeInput
from memcycle.agents.query_reasoner import QueryReasonerInput
from memcycle.agents.refresher import ConflictView, RefresherInput
from memcycle.agents.retriever import RetrieverInput
from memcycle.agents.rules import RULES
from memcycle.agents.rules.retriever import K_OVERVIEW, K_SINGLE, K_TURN, K_WIDE, sub_questions
from memcycle.agents.verifier import VerifierInput
from memcycle.agents.views import MemoryView
from tests.agents.conftest import said

NOW = datetime(2024, 9, 1, 10, tzinfo=UTC)


def memory(n, speaker, text, day=2, **given):
    time = datetime(2024, 5, day, 10, tzinfo=UTC)
    return MemoryView(
        **{"n": n, "granularity": "raw", "text": text, "speaker": speaker, "role": "human", "time": time}
        | given
    )


CHAT = [
    memory(0, "Ines", "I moved to Graz in 2021 and work as a nurse at the city clinic."),
    memory(1, "Tomek", "How was your weekend? We own three canoes and paddle on the Drau.", 6),
    memory(2, "Tomek", "I sold my loom yesterday.", 11),
    memory(3, "Ines", "What is your favourite food? Mine is ramen.", 12),
]


def answered(question, evidence=CHAT, style="short"):
    return RULES["answerer"](AnswererInput(question=question, evidence=evidence, style=style, now=NOW))


def test_the_statement_that_answers_is_quoted():
    for question, style, answer in [
        (
            "How many canoes does Tomek own?",
            "short",
            "Tomek, 6 May 2024: “We own three canoes and paddle on the Drau.”",
        ),
        ("How many canoes does Tomek own?", "concise", "We own three canoes and paddle on the Drau"),
        ("When did Tomek sell his loom?", "short", "10 May 2024"),
        (
            "When did Tomek sell his loom?",
            "sentence",
            "10 May 2024 (Tomek, 11 May 2024: “I sold my loom yesterday.”)",
        ),
        ("What year did Ines move to Graz?", "short", "2021"),
        ("Does Tomek own canoes or kayaks?", "choice", "canoes"),
        ("Did Tomek sell a loom?", "inferential", "Likely: Tomek, 11 May 2024: “I sold my loom yesterday.”"),
    ]:
        found = answered(question, style=style)
        assert (found.answer, found.answerable, found.extractive) == (answer, True, True), question


def test_a_question_a_wish_and_function_words_answer_nothing():
    for question, evidence in [
        ("Where do I live?", [memory(0, "user", "Where do I live?"), memory(1, "user", "where do i live")]),
        ("What is my favourite food?", [memory(0, "user", "What's my favourite food")]),
        ("What is my favourite food?", [memory(0, "user", "My favourite colour is blue.")]),
        ("Where do I live?", [memory(0, "user", "ok, I see"), memory(1, "user", "Great!")]),
        (
            "Where do I live?",
            [memory(0, "user", "I wish I lived in Paris."), memory(1, "user", "If I lived in Rome...")],
        ),
        ("Where do I live?", [memory(0, "assistant", "You live in Oslo.", role="ai")]),
        ("Do you know where I live?", [memory(0, "assistant", "You live in Oslo.", role="ai")]),
        ("Where do I live?", [memory(0, "user", "```\nI live in a box\n```")]),
        ("Where do I live?", [memory(0, "user", "My sister moved to Oslo.")]),
        ("Where do I live?", [memory(0, "user", "Tom lives in Rome.")]),
        ("Where do I live?", [memory(0, "user", 'As Tom says, "I live in Rome".')]),
        (
            "Did I buy a boat?",
            [memory(0, "user", "I might buy a boat."), memory(1, "user", "Tom bought a boat.")],
        ),
        ("What did Ines sell?", CHAT),
        ("Who won the cup?", CHAT),
        ("Who won the cup?", []),
        ("Where do I live?", [memory(0, "user", "Please forget that I live in Vienna.")]),
    ]:
        found = answered(question, evidence)
        assert (found.answerable, found.answer, found.citations) == (False, "I have nothing on that.", []), (
            question
        )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wo wohne ich?", "Dazu weiß ich nichts."),
        ("Hoe heet de zus van Maya?", "I have nothing on that."),
        ("我住在哪里？", "我没有这方面的记录。"),
    ],
)
def test_it_abstains_in_the_language_of_the_question(question, answer):
    assert answered(question, []).answer == answer


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("¿Dónde vivo?", "Vivo en Madrid."),
        ("Où est-ce que j'habite ?", "J'habite à Lyon."),
        ("Dove vivo?", "Vivo a Roma."),
        ("Wo wohne ich?", "Ich wohne in Wien."),
        ("我住在哪里？", "我住在北京。"),
    ],
)
def test_foreign_words_of_asking_need_not_be_said(question, text):
    assert answered(question, [memory(0, "user", text)]).quote == text
    assert not answered(question, [memory(0, "user", "Ok, ich was que di 什么 quand.")]).answerable


def test_the_topics_of_an_episode_answer_only_what_was_talked_about():
    text = "On 8 May 2024, Ines talked about yacht, buy, lottery. Ines: If I won, I would buy a yacht."
    episode = memory(0, None, text, granularity="episode", role=None)
    assert not answered("What did I buy?", [episode]).answerable
    assert answered("What did we talk about on 8 May?", [episode]).answerable


@pytest.mark.parametrize(
    ("question", "ended", "holds", "quote"),
    [
        ("Where do I live?", "I no longer live in Linz.", "I moved to Graz.", "I moved to Graz."),
        ("Where do I work?", "I quit my job.", "I joined Bosch.", "I joined Bosch."),
        ("Where did I live?", "I no longer live in Linz.", "I moved to Graz.", "I no longer live in Linz."),
        ("Where do I live?", "I no longer live in Linz.", "Tom moved to Graz.", "I no longer live in Linz."),
    ],
)
def test_what_ended_is_answered_with_what_holds_in_its_place(question, ended, holds, quote):
    said_since = [memory(0, "user", ended, 8, score=0.9), memory(1, "user", holds, 9, score=0.2)]
    assert answered(question, said_since).quote == quote


def test_the_assistant_is_quoted_where_it_is_asked_for():
    advice = memory(0, "assistant", "A cello of maple sounds warmer.", role="ai")
    assert answered("Which cello did you recommend?", [advice]).quote == advice.text
    assert not answered("Which cello sounds warmer?", [advice]).answerable


def test_of_equally_fitting_statements_the_newest_holds():
    shifts = [memory(0, "Ines", "I work nights.", 3), memory(1, "Ines", "I work days.", 9)]
    found = answered("When does Ines work?", shifts)
    assert (found.quote, found.citations[0]) == ("I work days.", 1)


DOG = [memory(0, "user", "My dog is called Rex. He is three years old and loves cheese.")]


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What is my dog called?", "My dog is called Rex."),
        ("How old is Rex?", "He is three years old and loves cheese."),
        ("What does Rex love?", "He is three years old and loves cheese."),
    ],
)
def test_the_sentence_that_shows_the_asked_kind_is_quoted(question, quote):
    assert answered(question, DOG).quote == quote


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who bought a boat?", "My brother bought a boat."),
        ("Where does my sister live?", "My sister moved to Oslo."),
        ("Where does Olga live?", "My mother is called Olga and lives in Kyiv."),
        ("Do you know where I live?", "I live in Linz."),
        ("Where do I live?", "Lives in Linz"),
    ],
)
def test_a_statement_about_somebody_else_answers_who_asks_for_them(question, text):
    assert answered(question, [memory(0, "user", text)]).quote == text


def test_all_that_is_listed_is_quoted_and_a_denial_comes_last():
    bowl, mug = (
        memory(0, "Nora", "I made a bowl in my pottery class."),
        memory(1, "Nora", "I made a mug in my class."),
    )
    found = answered("Which things did Nora make in her class?", [bowl, mug])
    assert ("bowl" in found.answer, "mug" in found.answer, found.citations) == (True, True, [0, 1])
    shop = [
        memory(0, "Tomek", "I do not work on the ferries anymore."),
        memory(1, "Tomek", "I work as a mechanic."),
    ]
    assert answered("What does Tomek work as?", shop).quote == "I work as a mechanic."


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("Where do I live?", "I moved to Graz."),
        ("Where does my sister live?", "My sister moved to Oslo."),
        ("What is my name?", "My name is Ann."),
    ],
)
def test_what_holds_answers_before_what_no_longer_does(question, quote):
    said_before = [
        memory(0, "user", "I live in Linz.", current=False, score=0.9),
        memory(1, "user", "I moved to Graz.", 9, score=0.2),
        memory(2, "user", "My sister moved to Oslo.", 9, score=0.5),
        memory(3, "user", "My name is Ann.", 9, score=0.1),
    ]
    assert answered(question, said_before).quote == quote
    assert answered("Where do I live?", said_before[:1]).answer.endswith("“I live in Linz.” (no longer so)")


def test_the_day_of_a_talk_is_no_answer_to_when():
    episode = memory(1, None, "On 5 May 2024, Ines talked about a loom.", granularity="episode", role=None)
    found = answered("When did Ines sell the loom?", [memory(0, "Ines", "I sold the loom."), episode])
    assert found.answer == "Ines, 2 May 2024: “I sold the loom.”"


def test_the_search_decides_between_statements_that_share_as_many_words():
    near = [
        memory(0, "Ines", "I like boats.", score=0.2),
        memory(1, "Ines", "I bought two boats.", score=0.9),
    ]
    assert answered("What about the boats of Ines?", near).citations[0] == 1


@pytest.mark.parametrize("candidates", [False, True])
def test_the_second_look_keeps_what_evidence_holds(candidates):
    given = {"question": "What does Tomek own?", "evidence": CHAT, "candidates": candidates, "now": NOW}
    own = answered(given["question"]).answer
    found = RULES["verifier"](VerifierInput(**given, answer=own, answerable=True))
    assert (found.answer, found.answerable, found.citations) == (own, True, [1])
    wrong = RULES["verifier"](VerifierInput(**given, answer="a zeppelin", answerable=True))
    assert (wrong.answerable, wrong.citations) == (False, [])
    none = RULES["verifier"](VerifierInput(**given, answer="I have nothing on that.", answerable=False))
    assert not none.answerable


def test_a_poor_statement_that_no_longer_holds_is_still_an_answer():
    past = [memory(0, "Ines", "You see, I did not buy any of the boats.", current=False)]
    assert answered("Which old boats does Ines sail?", past).answerable


def test_a_plan_is_the_text_with_its_intent():
    for text, k, intent in [
        ("Where do I teach?", K_SINGLE, "atomic"),
        ("Which cities did I visit?", K_WIDE, "atomic"),
        ("Tell me about Ana", K_OVERVIEW, "abs"),
        ("What happened during the trip?", K_WIDE, "event"),
        ("What exactly is my e-mail?", K_SINGLE, "fine"),
    ]:
        (plan,) = RULES["retriever"](RetrieverInput(purpose="recall", items=[said(text, 1)], now=NOW)).plans
        assert (plan.query, plan.k, getattr(plan.intent, intent)) == (text, k, True), text


def test_a_turn_is_searched_as_it_is_and_a_bare_question_with_what_it_leans_on():
    turn, window = said("I sold it.", 1), [said("The loom is heavy.", 2)]
    (plan,) = RULES["retriever"](RetrieverInput(purpose="remember", items=[turn], now=NOW)).plans
    assert (plan.query, plan.k, plan.speaker) == ("I sold it.", K_TURN, "Ana")
    value = RetrieverInput(purpose="recall", items=[said("And when was that?")], window=window, now=NOW)
    assert RULES["retriever"](value).plans[0].query == "And when was that? (The loom is heavy.)"


def test_a_question_for_several_things_is_taken_apart():
    for question, persons, parts in [
        (
            "Where does Ines work and when did Tomek buy a canoe?",
            ["Ines", "Tomek"],
            ["Where does Ines work", "when did Tomek buy a canoe"],
        ),
        (
            "Do Ines and Tomek both paddle?",
            ["Ines", "Tomek"],
            ["Ines Do both paddle?", "Tomek Do both paddle?"],
        ),
        ("Does Ines like tea or coffee?", ["Ines"], ["Does Ines like tea?", "Does Ines like coffee?"]),
        ("Where does Ines live?", ["Ines"], []),
        ("", [], []),
    ]:
        assert sub_questions(question, persons, 3) == parts, question


@pytest.mark.parametrize(
    ("question", "relevant", "sufficient"),
    [
        ("How many canoes does Tomek own?", [1], True),
        ("When did Tomek sell his loom?", [2], True),
        ("When did Tomek buy his canoes?", [1], False),
        ("Who won the cup?", [], False),
    ],
)
def test_the_judge_wants_the_words_and_the_kind_that_is_asked_for(question, relevant, sufficient):
    item = said(question, speaker="user")
    found = RULES["judge"](JudgeInput(purpose="recall", items=[item], candidates=CHAT, now=NOW))
    assert (found.relevant, found.sufficient, bool(found.missing)) == (relevant, sufficient, not sufficient)


def fact(n, text, day=2, speaker="Ana", **given):
    return memory(n, speaker, text, day, granularity="fact", **given)


def test_a_turn_that_contradicts_an_older_memory_is_a_conflict_and_is_settled_by_the_turn():
    stored, turn = fact(0, "I live in Vienna."), said("I moved to Graz.").model_copy(update={"time": NOW})
    value = JudgeInput(purpose="remember", items=[turn], candidates=[stored, fact(1, "I bake.")], now=NOW)
    (conflict,) = RULES["judge"](value).conflicts
    assert (conflict.memory, conflict.turn) == (0, 1)
    view = ConflictView(memory=stored, turn=turn)
    (edit,) = RULES["refresher"](RefresherInput(conflicts=[view], turns=[turn], now=NOW)).edits
    assert (edit.op, edit.text, edit.turn) == ("UPDATE", "I moved to Graz.", 1)


@pytest.mark.parametrize(
    ("old", "new", "op"),
    [
        (fact(0, "I live in Vienna.", 2), fact(1, "I moved to Graz.", 9), "UPDATE"),
        (fact(0, "I live in Vienna.", 9), fact(1, "I moved to Graz.", 2), "NONE"),
        (fact(0, "I live in Vienna.", 2), fact(1, "I moved to Graz.", 9, "Ben"), "NONE"),
    ],
)
def test_two_memories_are_settled_by_their_times_and_of_one_person(old, new, op):
    found = RULES["refresher"](RefresherInput(conflicts=[ConflictView(memory=old, other=new)], now=NOW))
    assert [edit.op for edit in found.edits] == [op]


def test_a_new_fact_stands_by_its_turn_and_beside_its_nearest():
    for text, turn, near, verdict in [
        ("I teach fencing.", "I teach fencing.", [], (True, "new")),
        ("Ana teaches fencing in Linz", "I teach fencing in Linz.", [], (True, "new")),
        ("Ana teaches ballet in Oslo", "I teach fencing in Linz.", [], (False, "new")),
        ("Ana does not fence", "I fence.", [], (False, "new")),
        ("Ana has 5 foils", "I have 4 foils.", [], (False, "new")),
        ("I teach fencing.", "I teach fencing.", [fact(3, "I teach fencing")], (True, "duplicate")),
        ("I teach fencing.", "I teach fencing.", [fact(3, "I teach fencing", speaker="Ben")], (True, "new")),
        ("I moved to Graz.", "I moved to Graz.", [fact(3, "I live in Linz.")], (True, "conflict")),
        ("I like cashews.", "I like cashews.", [fact(3, "I like walnuts.")], (True, "new")),
    ]:
        shown = said(turn).model_copy(update={"time": NOW})
        new = NewFact(n=1, text=text, speaker="Ana", turn=shown, near=near)
        (found,) = RULES["fact_judge"](FactJudgeInput(facts=[new], now=NOW)).verdicts
        assert (found.supported, found.relation) == verdict, text


def test_guidance_sorts_statements_into_new_known_and_at_odds():
    turn = said("I bake rye bread. I keep bees. I moved to Graz. And you?")
    known = [fact(0, "I keep bees."), fact(1, "I live in Linz.")]
    found = RULES["guide"](GuideInput(turns=[turn], memories=known, now=NOW))
    assert found.keep == ["Ana: I bake rye bread.", "Ana: I moved to Graz."]
    assert found.redundant == ["Ana: I keep bees."]
    assert found.conflicts == ["Ana: I moved to Graz. (memory 1 says: I live in Linz.)"]


@pytest.mark.parametrize(
    ("question", "answerable"), [("What does Tomek own?", True), ("What did Ines sell?", False)]
)
def test_only_what_the_asked_person_says_closes_the_gap(question, answerable):
    found = RULES["answerability"](AnswerabilityInput(question=question, evidence=CHAT, now=NOW))
    assert (found.answerable, bool(found.gap)) == (answerable, not answerable)


def test_no_query_is_asked_twice_until_none_is_left():
    tried = ["When did Tomek sell the loom?"]
    for _ in range(12):
        value = QueryReasonerInput(
            question=tried[0], gap="Tomek: loom", tried=tried, evidence=CHAT, needs_time=True
        )
        query = RULES["query_reasoner"](value).query
        if not query:
            break
        assert query not in tried
        tried.append(query)
    assert query == ""
    assert len(tried) > 3


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where do I live?", "My sister told me that she lives in Rome."),
        ("Where do I live?", "He says he lives in Rome."),
        ("Where do I live?", "According to Ben, he lives in Rome."),
        ("Where do I live?", "Tom said: 'I live in Rome.'"),
        ("Where do I live?", "My boss thinks I live in Rome."),
        ("Where do I live?", "I don't know where I live."),
        ("What is my job?", "My brother told me he works as a baker."),
        ("When did I move to Graz?", "I no longer live in Graz."),
        ("When did I move to Graz?", "I don't live in Graz any more since last May."),
        ("When did I move to Graz?", "I moved away from Graz in May."),
        ("When did I go to Paris?", "I didn't go to Paris last week."),
    ],
)
def test_what_others_say_and_what_did_not_happen_answers_nothing(question, words):
    assert not answered(question, [memory(0, "user", words)]).answerable


@pytest.mark.parametrize(
    ("question", "words", "answer"),
    [
        ("Where does my sister live?", "My sister told me that she lives in Rome.", "Rome"),
        ("Where do I live?", "I told my sister that I live in Rome.", "Rome"),
        ("What am I allergic to?", "The doctor said I am allergic to nuts.", "nuts"),
        (
            "When did I move to Graz?",
            "I moved to Graz in May 2023 because I didn't like Vienna.",
            "May 2023",
        ),
        ("When did I stop living in Graz?", "I no longer live in Graz since May 2023.", "May 2023"),
        ("What did my boss say?", "My boss said she is leaving the company.", "leaving"),
    ],
)
def test_what_others_say_answers_what_is_asked_of_them(question, words, answer):
    assert answer in answered(question, [memory(0, "user", words)]).answer
