"""What a question asks for."""

from hypothesis import given
from hypothesis import strategies as st

from memcycle.core.language.questions import asked_slot, choices, focus, is_question, question_language
from memcycle.core.language.tokens import base_stems


def test_slots():
    for question, slot in [
        ("When did Ines open the bakery?", "when"),
        ("What year was the bridge built?", "when"),
        ("In which month does the lease end?", "when"),
        ("Who painted the shed?", "who"),
        ("Whose bike is that?", "who"),
        ("Where does Tomek live?", "where"),
        ("Which city did they fly to?", "where"),
        ("How many canoes does he own?", "how_many"),
        ("How often do you paddle?", "how_many"),
        ("What is the price of the loom?", "how_many"),
        ("How long has she been climbing?", "how_long"),
        ("How many weeks did the repair take?", "how_long"),
        ("Why did Ines move?", "why"),
        ("What is the reason for the delay?", "why"),
        ("How does Tomek feel about it?", "how"),
        ("Did Ines sell the van?", "yes_no"),
        ("And is Tomek married?", "yes_no"),
        ("Would she rather have tea or coffee?", "which"),
        ("Which kayak did he choose?", "which"),
        ("What kind of bread does she bake?", "which"),
        ("What instruments does Tomek play?", "list"),
        ("What are her hobbies?", "list"),
        ("What did Ines buy?", "what"),
        ("In what ways does she help?", "list"),
        ("The lease ends in May.", "other"),
        ("", "other"),
        ("Wann hat Ines das Auto verkauft?", "when"),
        ("Où est la clé de la maison ?", "where"),
        ("¿Cuándo es el cumpleaños de Ana?", "when"),
        ("李雷什么时候搬家？", "when"),
        ("谁是李雷的老师？", "who"),
    ]:
        assert asked_slot(question) == slot, question


def test_languages():
    for text, language in [
        ("Where is the key?", "en"),
        ("Wo ist der Schlüssel?", "de"),
        ("Où est la clé ?", "fr"),
        ("¿Dónde está la llave?", "es"),
        ("Dove è la chiave?", "it"),
        ("钥匙在哪里？", "zh"),
        ("鍵はどこですか", "ja"),
        ("Где ключ?", "ru"),
        ("???", "en"),
        ("Wie heißt Mayas Schwester?", "de"),
        ("Comment s'appelle la sœur de Maya ?", "fr"),
        ("¿Qué le gusta a Maya?", "es"),
        ("Come si chiama la sorella di Maya?", "it"),
        ("Quem é a irmã da Maya?", "pt"),
        ("마야의 언니 이름은 뭐야?", "ko"),
        ("Mayaの姉の名前は?", "ja"),
    ]:
        assert question_language(text) == language, text


def test_a_language_that_nothing_tells_clearly_is_english():
    for text in [
        "Hoe heet de zus van Maya?", "Wie is de zus van Maya?", "Wie heeft Maya geholpen?",
        "Com es diu la germana de la Maya?", "Când s-a mutat Ana la Graz?", "Di mana Ana tinggal?",
        "Hvem er Ana?", "Gdzie mieszka Ana?", "Ana nerede yaşıyor?", "Де живе Ана?", "Къде живее Ана?",
        "Η Άννα πού μένει;", "Who is 安娜?", "What does どこ mean?", "Who sang La La Land?", "Maya's sister?",
        "de la Cruz",
    ]:  # fmt: skip
        assert question_language(text) == "en", text


def test_a_name_in_another_script_leaves_the_slot():
    for text, slot in [("Who is 安娜?", "who"), ("安娜的email是什么?", "what")]:
        assert asked_slot(text) == slot, text


def test_focus():
    for question, noun in [
        ("What colour is the door?", "colour"),
        ("How many old canoes does he own?", "old canoes"),
        ("What kind of bread does she bake?", "bread"),
        ("What is that?", ""),
        ("Why not?", ""),
    ]:
        assert focus(question) == noun, question


def test_choices_are_the_alternatives():
    assert choices("Does Tomek prefer tea or coffee?") == ["tea", "coffee"]
    assert choices("Does he like tea or something else?") == []
    assert choices("Does he like tea?") == []


def test_questions_are_told_from_statements():
    assert [is_question(text) for text in ("Is it?", "why not", "I do.", "什么？", "")] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_irregular_forms_meet_their_base():
    assert base_stems("she went and bought children") == base_stems("she go and buy child")


@given(st.text(max_size=400))
def test_any_text_is_read_the_same_twice(text):
    assert asked_slot(text) == asked_slot(text)
    assert focus(text) == focus(text)
    assert len(choices(text)) in (0, 2)
