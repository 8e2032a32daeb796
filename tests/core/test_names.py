"""Persons named in a text."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.names import person_names, same_person, without_possessive


def test_names_are_found_in_order():
    for text, known, names in [
        ("When did Ines open the bakery?", (), ["Ines"]),
        ("What is Tomek's favourite tea?", (), ["Tomek"]),
        ("Did Ana and Tomek meet?", (), ["Ana", "Tomek"]),
        ("I had lunch with Maya Lind on Friday.", (), ["Maya Lind"]),
        ("my cousin likes tea", (), []),
        ("We flew to Lisbon in May and stayed in Porto.", ("Ana",), ["Lisbon"]),
        ("Really? That is great!", (), []),
        ("I work at Siemens in Vienna.", (), []),
        ("did ana call?", ("Ana",), ["Ana"]),
        ("Did Meli call?", ("Melisande",), ["Melisande"]),
        ("Where does Ana live?", ("Ana Maria Lopez",), ["Ana Maria Lopez"]),
        ("李雷昨天去了哪里？", ("李雷",), ["李雷"]),
        ("", ("Ana",), []),
    ]:
        assert person_names(text, known) == names, text


def test_each_name_is_given_once_and_as_known():
    assert person_names("Ana? ANA! Did ana write to Ana's boss?", ["Ana"]) == ["Ana"]


def test_same_person():
    for left, right, same in [
        ("Ana", "ana", True),
        ("Ana", "Ana Lopez", True),
        ("Lopez", "Ana Lopez", True),
        ("Ana Lopez", "Ana Bauer", False),
        ("Meli", "Melisande", True),
        ("Jo", "Johanna", False),
        ("Ana", "Tom", False),
        ("", "", False),
        (None, "Ana", False),
    ]:
        assert same_person(left, right) is same, left
        assert same_person(right, left) is same, left


def test_possessives_fall():
    assert [without_possessive(word) for word in ("Ana's", "Ana’s", "Chris'", "Ana")] == [
        "Ana",
        "Ana",
        "Chris",
        "Ana",
    ]


@given(st.text(max_size=300), st.lists(st.text(max_size=12), max_size=4))
def test_any_text_is_read_without_repeats(text, known):
    names = person_names(text, known)
    assert len(names) == len(set(names))
    assert names == person_names(text, known)
    assert all(name.strip() for name in names)
