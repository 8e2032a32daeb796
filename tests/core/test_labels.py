"""Which labels of an entry its words bear out."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.names import borne_out


def test_a_label_is_kept_where_its_words_stand():
    for label, said, kept in [
        ("Graz", "Ana moved to Graz.", True),
        ("GRAZ", "Ana moved to Graz.", True),
        ("Graz", "Ana moved to Linz.", False),
        ("Ann", "She is planning a trip.", False),
        ("Running Club", "She joined two running clubs.", True),
        ("Rowing Club", "She joined two running clubs.", False),
        ("O'Brien", "Mr O'Brien's dog", True),
        ("北京", "我住在北京市", True),
        ("上海", "我住在北京市", False),
        ("$$", "It cost $$", False),
    ]:
        assert borne_out([label], said) == ((label,) if kept else ()), label


def test_it_may_stand_in_any_of_the_texts_and_is_kept_once():
    assert borne_out(["Ana", "Graz", "Ana"], "in Graz", "Ana") == ("Ana", "Graz")


@given(st.lists(st.text(max_size=12), max_size=5), st.text(max_size=40))
def test_nothing_is_added_and_the_order_stays(labels, said):
    kept = borne_out(labels, said)
    assert list(kept) == [label for label in dict.fromkeys(labels) if label in kept]
    assert borne_out(kept, said) == kept
