"""Which two statements are one: many that look alike and are not."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.restatement import content_of, restates
from memcycle.core.language.tokens import word_set

LONG = "Nora brought a tin of roasted walnuts to the choir rehearsal on Tuesday evening"
HOUSE = "Ann sold the big old house near the river"
INVERSE = {"more": "less", "less": "more", "same": "same", None: None}


def related(one, other, least=0.8):
    found = restates(one, other, least)
    assert restates(other, one, least) == INVERSE[found]
    return found


def test_another_wording():
    for one, other in [
        (LONG, LONG + "."),
        (LONG, LONG.replace("a tin", "the tin").replace("the choir", "a choir")),
        (LONG, LONG.replace("brought", "has brought").replace("rehearsal", "rehearsals")),
        ("Ann bought a blue bowl at the market", "Ann has bought the blue bowl in a market"),
        ("Ann is working at the bank as an engineer", "Ann works at a bank as engineer"),
        (LONG, LONG.replace("a tin", "her tin")),
        ("José lives in the old town", "Jose lives in the old town"),
        ("我喜欢核桃", "我喜欢核桃。"),
    ]:
        assert related(one, other) == "same", one


def test_an_added_detail():
    for less, more in [
        (LONG, LONG.replace("a tin", "a blue tin")),
        (LONG, LONG + " with her sister"),
        (LONG, LONG.replace("Nora", "Nora and Ben")),
        ("Ann has a puppy from the shelter in Graz", "Ann has a puppy named Pixel from the shelter in Graz"),
        ("Ann baked bread for the choir on the hill", "Ann baked brown bread for the choir on the hill"),
        ("Ann moved to the house near the river", "Ann happily moved to the house near the river"),
    ]:
        assert related(less, more) == "less", less


def test_another_statement():
    for one, other in [
        (LONG, LONG.replace("walnuts", "cashews")),
        (LONG, LONG.replace("Nora", "Nina")),
        (LONG, LONG.replace("Tuesday", "Thursday")),
        (LONG, LONG.replace("a tin", "two tins")),
        (LONG, LONG.replace("walnuts", "walnut cookies")),
        (LONG, LONG.replace("walnuts", "walnut flavoured cookies")),
        (LONG, LONG.replace("a tin", "a photo of a tin")),
        (LONG, LONG.replace("the choir rehearsal", "the choir leader rehearsal")),
        (LONG, LONG.replace("Nora", "Nora's sister")),
        (LONG, LONG.replace("Nora", "The sister of Nora")),
        (LONG, LONG.replace("brought", "never brought")),
        (LONG, LONG.replace("brought", "didn't bring")),
        (LONG, "Ben thinks " + LONG),
        (LONG, LONG + " again"),
        (LONG, LONG.replace("to the", "from the")),
        (HOUSE, HOUSE.replace("sold", "almost sold")),
        (HOUSE, HOUSE.replace("sold", "refused to sell")),
        (HOUSE, HOUSE.replace("sold", "regretted selling")),
        (HOUSE, HOUSE + " if it rains"),
        (HOUSE, HOUSE.replace("near", "or the barn near")),
        (HOUSE.replace("the", "her"), HOUSE.replace("the", "his")),
        ("Ann flew from Graz to Oslo", "Ann flew from Oslo to Graz"),
        ("Ann flew from Graz to Oslo", "Ann flew to Graz from Oslo"),
        ("Ann gave Ben a book", "Ben gave Ann a book"),
        ("Ann is a nurse at the hospital", "Ann was a nurse at the hospital"),
        ("Ann works at the bank as an engineer", "Ann worked at the bank as an engineer"),
        ("Ann studies the university", "Ann studies the universe"),
        ("Ann likes tea", "Ann likes green tea"),
        ("我喜欢核桃", "我不喜欢核桃"),
        ("我喜欢核桃", "我喜欢腰果"),
        ("Anna mag Walnüsse sehr gern im Kuchen", "Anna mag Walnüsse nicht sehr gern im Kuchen"),
        ("", ""),
        ("It is what it is", "It is what it is"),
    ]:
        assert related(one, other) is None, one


def test_how_much_they_must_share_is_set():
    assert restates("Ann drank tea", "Ann drank green tea", 0.7) == "less"
    assert restates(LONG, LONG.replace("a tin", "a blue tin"), 0.99) is None


WORDS = sorted(word_set("Ann Ben not sold the old house near river with two three of again in from to her"))


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.data())
def test_of_two_restatements_one_holds_all_content_of_the_other(text, data):
    other = data.draw(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
    found = related(text, other, 0.5)
    if found:
        one, two = content_of(text), content_of(other)
        assert one <= two if found == "less" else two <= one
        assert ("not" in text.split()) == ("not" in other.split())


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_breaks_it(one, other):
    related(one, other)
    assert related(one, one) in ("same", None)
