"""Sentence boundaries and their places."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.sentences import split_sentences


def test_boundaries() -> None:
    for text, sentences in [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("I met Dr. Adler at 5 p.m. yesterday. Nice.", ["I met Dr. Adler at 5 p.m. yesterday.", "Nice."]),
        ("It cost $3.50. See www.a.test now.", ["It cost $3.50.", "See www.a.test now."]),
        ("Well... it rained.", ["Well... it rained."]),
        ("Well... It rained.", ["Well...", "It rained."]),
        ("She said “Go!” Then left.", ["She said “Go!”", "Then left."]),
        ("So good 😀 We won 🎉", ["So good 😀", "We won 🎉"]),
        ("one\ntwo\n\nthree", ["one", "two", "three"]),
        ("Look! [image: a dog. And a cat] Cute?", ["Look!", "[image: a dog. And a cat]", "Cute?"]),
        ("今天好。明天见！", ["今天好。", "明天见！"]),
        ("   ", []),
    ]:
        assert [sentence for _, _, sentence in split_sentences(text)] == sentences, text


@given(st.text(max_size=200))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    place = 0
    for begin, end, sentence in split_sentences(text):
        assert text[begin:end] == sentence == sentence.strip()
        assert sentence
        assert not text[place:begin].strip()
        place = end
    assert not text[place:].strip()


def test_emoji_a_text_begins_with_are_a_piece_where_there_are_several():
    assert [piece for *_, piece in split_sentences("😀😀 Hello there")] == ["😀😀", "Hello there"]
    assert [piece for *_, piece in split_sentences("😀 Hello there")] == ["😀 Hello there"]
