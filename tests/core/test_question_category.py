"""Categories of questions, by their words alone."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.questions import question_category
from memcycle.core.theta_space import CATEGORIES


def test_categories():
    for question, category in [
        ("When did Ines buy the loom?", "temporal"),
        ("How long has Tomek been rowing?", "temporal"),
        ("Was the fair before or after the flood?", "temporal"),
        ("Wann zog Ines um?", "temporal"),
        ("Would Ines enjoy a canoe trip?", "inference"),
        ("What might Tomek study next?", "inference"),
        ("Which instruments does Ines play?", "multi"),
        ("How many canoes does Tomek own?", "multi"),
        ("What do Ines and Tomek have in common?", "multi"),
        ("Who baked the tart and where was it sold?", "multi"),
        ("Does Tomek own a kayak?", "yes_no"),
        ("Does Ines prefer tea or coffee?", "yes_no"),
        ("Where does Ines live?", "single"),
        ("What is the name of Lea's cat?", "single"),
    ]:
        assert question_category(question) == category, question


@given(st.text(max_size=300))
def test_any_text_has_a_category(text):
    assert question_category(text) in CATEGORIES
