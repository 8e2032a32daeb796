"""Turns that tell nothing, in several languages, and what must not be taken for one."""

import pytest

from memcycle.core.language.small_talk import asks, is_small_talk, question_of, tells


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "where do i live",
        "Hey, so where does my sister work",
        "What's my favourite food?",
        "Do you remember where I teach",
        "Tell me where I live.",
        "Remind me what I said about Graz.",
        "Wo wohne ich?",
        "wo wohne ich",
        "Dónde vivo",
        "¿Dónde vivo?",
        "Où est-ce que j'habite ?",
        "我住在哪里",
        "我住在哪里？",
        "どこに住んでいますか？",
        "أين أعيش؟",
        "thanks",
        "Thanks so much for the help!",
        "Great!",
        "ok, I see",
        "Hello! Good morning.",
        "Sounds good, thank you. What else is there?",
        "You're welcome!",
        "Danke!",
        "Vielen Dank, alles klar.",
        "merci beaucoup !",
        "Muchas gracias",
        "Grazie mille!",
        "Спасибо большое",
        "谢谢",
        "好的谢谢",
        "ありがとうございます",
        "Děkuji!",
        "👍",
        "I have nothing in memory about that.",
        "I don't know.",
        "Dazu weiß ich nichts.",
        "",
    ],
)
def test_questions_thanks_and_fillers_tell_nothing(text):
    assert not tells(text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz.",
        "i live in graz",
        "Hi, I moved to Graz. Do you know it?",
        "Thanks! My sister keeps geese.",
        "Great, booked for 3 July",
        "when I was young we lived in Oslo",
        "What I love is chess.",
        "Which is why I moved.",
        "Have a dog named Max",
        "am allergic to nuts",
        "Remind me to call Tom on Friday.",
        "Ich wohne in Graz",
        "Als ich klein war, wohnte ich in Graz.",
        "quando ero piccolo vivevo a Roma con la nonna",
        "我住在格拉茨",
        "我什么都吃",
        "채식주의자예요",
        "[image: a dog on a sofa] What do you think?",
        "Yes, twice.",
        "4471",
    ],
)
def test_what_states_something_tells_it(text):
    assert tells(text)


@pytest.mark.parametrize("text", ["Yes.", "No", "Graz.", "Never!", "Ja", "None.", "sí"])
def test_a_word_tells_something_after_a_question(text):
    assert not tells(text)
    assert tells(text, answers=True)


@pytest.mark.parametrize("text", ["Great!", "ok, I see", "Thanks!", "No, thanks.", "Why?", "I don't know."])
def test_small_talk_tells_nothing_after_a_question_either(text):
    assert not tells(text, answers=True)


def test_a_short_reply_needs_its_question_and_a_sentence_does_not():
    before = "Nice to meet you. Have you been to Rome?"
    assert question_of("Yes, twice.", before) == "Have you been to Rome?"
    assert question_of("Yes, I was in Rome twice with my sister.", before) == ""
    assert question_of("Yes, twice.", "I have been to Rome.") == ""
    assert question_of("And you?", before) == ""


def test_only_a_request_to_be_told_something_asks():
    assert asks("Tell me about Graz.")
    assert not asks("I told him about Graz.")


@pytest.mark.parametrize(
    "text",
    [
        "thanks",
        "Hi there!",
        "ok, got it",
        "good morning!",
        "yes please",
        "Vielen Dank!",
        "merci beaucoup",
        "谢谢",
        "👍",
    ],
)
def test_nothing_bears_on_courtesy_alone(text):
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "weekend",
        "good?",
        "Thanks, where do I live?",
        "Graz",
        "ok, I moved to Graz",
        "Danke, wo wohne ich?",
        "天气怎么样",
    ],
)
def test_what_names_or_asks_something_is_no_small_talk(text):
    assert not is_small_talk(text)
