"""The rules Grader: which answers give the gold answer's information, and which do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.agents.rules.grader import grade, grader
from memcycle.core.language.questions import NOTHING, abstains

PET = ("What pet did Ana adopt?", "Ana adopted a cat called Miso")
WHEN = ("When did Ana adopt a cat?", "Ana adopted the cat on 2 May 2024")
MONTH = ("When did Ana move to Porto?", "Ana moved to Porto in May 2023")
WEEK = ("When did Ana row on the Drau?", "Ana rowed on the Drau in the week of 5 June 2023")
NUTS = ("What is Ana allergic to?", "Ana is allergic to walnuts")
CATS = ("How many cats does Ana have?", "Ana has two cats")
WON = ("How many regattas has Ana won?", "Ana has won four regattas")
VEGAN = ("Is Ana vegan?", "No, Ana is not vegan any more")
FISH = ("Does Ana eat fish?", "Yes, Ana eats fish on Fridays")
WHO = ("Who taught Ana to weave?", "Tomek taught Ana to weave")
WHERE = ("Where does Ana work?", "Ana works at the city clinic in Graz")
MEAT = ("What does Ana never eat?", "Ana never eats liver or tripe")
LONG = ("What did Ana buy at the fair?", "Ana bought a blue teapot at the fair, which made her mother happy")
DEED = ("What did Ana do on Sunday?", "Ana repaired the roof of the boat house")
BROTHER = ("What does Ana's brother build?", "Ana's brother builds harpsichords in a barn")
TEA = ("Does Ana drink tea or coffee?", "Ana drinks tea")
YEAR = ("When did Ana learn to dive?", "Ana learned to dive in 2019")
GAVE = ("What did Ana give Tomek?", "Ana gave Tomek a signed map")
FAIR = (
    "What does Ana hope to visit?",
    "Ana hopes to visit a weaving fair to learn about looms and to meet Eva",
)
LASTS = ("How long has Ana been climbing?", "Ana has been climbing for six years")

RIGHT = [
    (PET, "a cat called Miso"),
    (PET, "Ana adopted a cat called Miso."),
    (PET, "ana adopted a cat called miso"),
    (PET, "She adopted a cat. It is called Miso."),
    (PET, "Ana: I adopted a cat called Miso!"),
    (PET, "A cat named Miso, Ana says."),
    (
        PET,
        "Well, there is much to tell. Last spring Ana adopted a cat called Miso from a farm. She loves it.",
    ),
    (PET, "Tom said Ana adopted a cat called Miso"),
    (PET, "Ana adopted a cat called Miso, she can't wait to show it"),
    (("What is Ana's cat called?", PET[1]), "Miso"),
    (WHEN, "2 May 2024"),
    (WHEN, "May 2, 2024"),
    (WHEN, "2024-05-02"),
    (WHEN, "on 2 May"),
    (WHEN, "2 May 2024 (Ana adopted a cat yesterday.)"),
    (WHEN, "Ana adopted a cat on 2 May 2024, can't wait to see it grow"),
    (WHEN, "the day before 3 May 2024"),
    (MONTH, "May 2023"),
    (MONTH, "Ana moved to Porto on 7 May 2023."),
    (MONTH, "in the week of 8 May 2023"),
    (WEEK, "7 June 2023"),
    (WEEK, "the week before 14 June 2023 (Ana rowed on the Drau last week.)"),
    (YEAR, "2019"),
    (YEAR, "in summer 2019"),
    (NUTS, "walnuts"),
    (NUTS, "She is allergic to walnuts."),
    (NUTS, "walnuts and pollen"),
    (CATS, "2"),
    (CATS, "two"),
    (CATS, "Ana has two cats and three dogs."),
    (WON, "Ana won her fourth regatta on Friday."),
    (VEGAN, "No"),
    (VEGAN, "No (Ana is not vegan any more.)"),
    (VEGAN, "Ana isn't vegan."),
    (FISH, "Yes"),
    (FISH, "Yeah, she does."),
    (WHO, "Tomek"),
    (WHO, "It was Tomek who taught her."),
    (WHERE, "the city clinic in Graz"),
    (WHERE, "at the city clinic"),
    (MEAT, "liver and tripe"),
    (MEAT, "Ana never eats liver or tripe"),
    (LONG, "a blue teapot"),
    (LONG, "Ana bought a blue teapot and two mugs at the fair."),
    (DEED, "She repaired the roof of the boat house"),
    (BROTHER, "harpsichords"),
    (BROTHER, "Ana's brother builds harpsichords."),
    (TEA, "tea"),
    (TEA, "She drinks tea"),
    (LASTS, "six years"),
    (GAVE, "Tomek was given a signed map by Ana"),
    (FAIR, "Ana hopes to visit a weaving fair."),
    (("What does Ana drink?", "咖啡和绿茶"), "咖啡和绿茶"),
    (("Was trinkt Ana?", "Ana trinkt gerne Kamillentee"), "Kamillentee trinkt Ana gerne"),
    (("What does Ana send?", "🎉"), "🎉"),
    (("Чем занимается Анна?", "Анна строит лодки"), "Анна строит лодки на Волге"),
    (("מה אנה אוהבת?", "אנה אוהבת תה ירוק"), "אנה אוהבת מאוד תה ירוק"),
]

WRONG = [
    (PET, "a dog called Miso"),
    (PET, "a cat"),
    (PET, "a cat called Pixel"),
    (PET, "Ana adopted a dog called Rex."),
    (PET, "Tom adopted a cat called Miso."),
    (PET, "Tom: I adopted a cat called Miso."),
    (PET, "Ana's brother adopted a cat called Miso."),
    (PET, "Ana did not adopt a cat called Miso."),
    (PET, "Ana wants a horse."),
    (PET, ""),
    (PET, "   \n"),
    (PET, "?"),
    (PET, "Ana has a cat. She met Tom. They had soup. It rained a lot. Her teacher is called Miso."),
    (WHEN, "3 May 2024"),
    (WHEN, "May 2024"),
    (WHEN, "2 May 2023"),
    (WHEN, "on 3 May"),
    (WHEN, "yesterday"),
    (WHEN, "Ana adopted a cat."),
    (WHEN, "2 May 2024 (Tom sold his motorbike to a collector.)"),
    (WHEN, "Ana adopted a cat on 5 May 2024. Ana met Tom on 2 May 2024."),
    (MONTH, "7 June 2023"),
    (MONTH, "2023"),
    (WEEK, "14 June 2023"),
    (YEAR, "2018"),
    (NUTS, "cashews"),
    (NUTS, "Ana is allergic to cashews"),
    (NUTS, "Ana is not allergic to walnuts"),
    (CATS, "three"),
    (CATS, "Ana has three cats and two dogs."),
    (CATS, "Ana has cats."),
    (CATS, "Ana has three cats. She met two friends."),
    (WON, "Ana won her third regatta."),
    (VEGAN, "Yes"),
    (VEGAN, "Ana is vegan."),
    (FISH, "No"),
    (FISH, "Ana doesn't eat fish on Fridays."),
    (WHO, "Ines"),
    (WHO, "Ana taught Tomek to weave"),
    (WHERE, "Linz"),
    (WHERE, "Ana works at the city library in Graz."),
    (MEAT, "Ana eats liver or tripe"),
    (LONG, "two mugs"),
    (LONG, "Ana bought a blue kettle at the fair, which made her mother happy"),
    (DEED, "She painted a door"),
    (BROTHER, "Ana builds harpsichords in a barn."),
    (BROTHER, "violins"),
    (TEA, "coffee"),
    (LASTS, "two years"),
    (GAVE, "Tomek is giving Ana a signed map"),
    (FAIR, "Ana hopes to visit Eva to learn about looms."),
    (LASTS, "a long time"),
    (("What does Ana drink?", "咖啡和绿茶"), "牛奶"),
    (("Hat Ana eine Katze?", "Ana hat keine Katze"), "Ana hat eine Katze"),
    (("Was trinkt Ana?", "Ana trinkt gerne Kamillentee"), "Ana trinkt gerne Kaffee"),
    (("What does Ana send?", "🎉"), "🎈"),
    (("What?", ""), "something"),
    (("What?", "that"), "this"),
]


@pytest.mark.parametrize(("probe", "answer"), RIGHT)
def test_the_information_counts_and_not_its_wording(probe, answer):
    result = grade(GradeItem(n=1, question=probe[0], gold=probe[1], answer=answer))
    assert result.correct, result.why


@pytest.mark.parametrize(("probe", "answer"), WRONG)
def test_other_information_is_wrong_with_the_reason(probe, answer):
    result = grade(GradeItem(n=1, question=probe[0], gold=probe[1], answer=answer))
    assert not result.correct and result.why


@pytest.mark.parametrize(
    "answer",
    [
        *NOTHING.values(),
        "No information.",
        "no relevant information available",
        "I don't know.",
        "Sorry, I cannot answer that.",
        "There is no mention of a cat in memory.",
        "The memory does not say which pet Ana adopted.",
        "Not mentioned.",
        "Unknown",
        "N/A",
        "unanswerable",
        "It cannot be determined.",
        "I have nothing on that.",
    ],
)
def test_an_abstention_is_never_correct(answer):
    assert abstains(answer)
    for gold in ("Ana adopted a cat called Miso", answer):
        assert not grade(GradeItem(n=1, question="What did Ana adopt?", gold=gold, answer=answer)).correct


@pytest.mark.parametrize(
    "answer",
    [
        "No, she sold it.",
        "Nobody knew.",
        "None of the cats is hers.",
        "Ana doesn't know.",
        "nothing new in Graz",
    ],
)
def test_a_denial_is_no_abstention(answer):
    assert not abstains(answer)


def test_a_very_long_answer_is_read_and_one_that_strews_the_words_is_wrong():
    filler = "They spoke of the weather and of soup. " * 500
    held = GradeItem(n=1, question=PET[0], gold=PET[1], answer=f"{filler[:19000]} {PET[1]}.")
    strewn = GradeItem(
        n=1, question=PET[0], gold=PET[1], answer=f"A cat sat. {filler[:19000]} It was called Miso."
    )
    assert grade(held).correct
    assert not grade(strewn).correct


@pytest.mark.parametrize(
    "text",
    [
        "<b>Ana</b> adopted {a} %s cat\\",
        "\x00\x01",
        "a" * 20_000,
        "猫" * 20_000,
        "🎉" * 5_000,
        "קפה " * 4_000,
    ],
)
def test_odd_texts_are_graded_in_every_place(text):
    for question, gold, answer in (
        (text, *PET),
        (PET[0], text, PET[1]),
        (PET[0], PET[1], text),
        (PET[0], text, text),
    ):
        assert grade(GradeItem(n=3, question=question, gold=gold, answer=answer)).n == 3
    assert grade(GradeItem(n=1, question="What?", gold=text, answer=text)).correct


TEXT = st.text(max_size=120) | st.sampled_from(
    [text for pair in (*RIGHT, *WRONG) for text in (pair[0][1], pair[1])]
)


@given(question=TEXT, gold=TEXT)
def test_the_gold_is_its_own_right_answer_unless_it_is_blank(question, gold):
    result = grade(GradeItem(n=1, question=question, gold=gold, answer=gold))
    assert result.correct is (bool(gold.strip()) and not abstains(gold))


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=6), order=st.randoms(use_true_random=False))
def test_items_are_graded_on_their_own_and_each_once(pairs, order):
    items = [GradeItem(n=n, question=q, gold=g, answer=a) for n, (q, g, a) in enumerate(pairs, 1)]
    grades = grader(GraderInput(items=items)).grades
    assert [one.n for one in grades] == [item.n for item in items]
    assert grades == [grade(item) for item in items]
    shuffled = order.sample(items, len(items))
    assert {one.n: one for one in grader(GraderInput(items=shuffled)).grades} == {
        one.n: one for one in grades
    }


def test_an_item_given_twice_has_one_grade():
    item = GradeItem(n=4, question=PET[0], gold=PET[1], answer="Miso the cat")
    assert [one.n for one in grader(GraderInput(items=[item, item])).grades] == [4]
