"""Times of a person's own zone and calendar, and words that are hard to find, through the doors of a user."""

from datetime import UTC, datetime

import pytest

from memcycle.stores.ledger import full_text, meta
from tests.cases.adapter import facts
from tests.cases.conftest import product  # noqa: F401 - a fixture


def days(p, **given):
    return {fact.text: fact.event_time.date().isoformat() for fact in p.facts(**given) if fact.event_time}


@pytest.mark.parametrize(
    ("zone", "clock", "today"),
    [
        ("Asia/Tokyo", "2025-03-09T23:00Z", "2025-03-10"),
        ("America/Los_Angeles", "2025-03-10T05:00Z", "2025-03-09"),
        ("Pacific/Auckland", "2025-07-09T12:30Z", "2025-07-10"),
        ("UTC", "2025-03-09T23:00Z", "2025-03-09"),
    ],
)
def test_the_clock_is_that_of_the_users_zone(product, zone, clock, today):  # noqa: F811
    p = product(settings={"timezone": zone})
    p.now = datetime.fromisoformat(clock)
    p.add("I bought a kayak today.")
    assert days(p) == {"I bought a kayak today.": today}
    assert p.memory.ask("When did I buy a kayak?", user="u1").answer.startswith(
        f"{int(today[-2:])} {'March' if '-03-' in today else 'July'} 2025"
    )


def test_a_stamp_of_another_zone_is_of_the_users_day(product):  # noqa: F811
    p = product(settings={"timezone": "Pacific/Auckland"})
    for text, stamp in [
        ("I planted a lemon tree today.", "2025-03-09T13:30:00Z"),
        ("I sold my kayak yesterday.", "2025-03-09T08:30:00-05:00"),
        ("I met Ben tonight.", "2025-03-10T02:30:00"),
    ]:
        p.add({"role": "user", "content": text, "timestamp": stamp})
    assert days(p) == {
        "I planted a lemon tree today.": "2025-03-10",
        "I sold my kayak yesterday.": "2025-03-09",
        "I met Ben tonight.": "2025-03-10",
    }


def test_a_model_is_shown_the_users_days(product):  # noqa: F811
    p = product(
        constructor=[facts({"text": "Bought a kayak", "event_time": "2025-03-09"})],
        settings={"timezone": "Asia/Tokyo"},
    )
    p.now = datetime(2025, 3, 9, 23, tzinfo=UTC)
    p.add({"role": "user", "content": "I bought a kayak yesterday.", "timestamp": "2025-03-09T23:00:00Z"})
    assert 'time="2025-03-10T08:00+09:00 Monday"' in p.constructor.said[0]
    (fact,) = p.facts()
    assert fact.event_time.isoformat() == "2025-03-09T00:00:00+09:00"


def test_yesterday_in_a_question_is_of_the_users_zone(product):  # noqa: F811
    p = product(settings={"timezone": "Asia/Tokyo"})
    for text, stamp in [
        ("I mended the red kite.", "2025-03-08T14:00Z"),
        ("I mended the blue kite.", "2025-03-08T16:00Z"),
    ]:
        p.add({"role": "user", "content": text, "timestamp": stamp})
    p.now = datetime(2025, 3, 9, 16, tzinfo=UTC)  # 10 March there
    assert "blue kite" in p.memory.ask("What did I mend yesterday?", user="u1").answer
    assert "red kite" in p.memory.ask("What did I do on 8 March?", user="u1").answer


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("I bought tickets for the concert on 3 July.", "2025-07-03"),
        ("Correction: the flights are on 23 April, not 22 April.", "2025-04-23"),
        ("My exam is on 5 December.", "2025-12-05"),
        ("My sister told me that her results come on 3 November.", "2025-11-03"),
        ("We rented a cabin for 5 December.", "2025-12-05"),
        ("I met her on 3 July.", "2024-07-03"),
        ("My flight left on 3 November.", "2024-11-03"),
    ],
)
def test_what_was_arranged_lies_ahead_and_what_was_done_behind(product, said, day):  # noqa: F811
    p = product()
    p.now = datetime(2025, 2, 2, 9, tzinfo=UTC)
    p.add(said)
    assert days(p) == {said: day}


WEEKS = {
    "2025-01-05": "I baked sourdough bread.",
    "2025-02-20": "I fixed my bicycle.",
    "2025-03-03": "I planted tulips.",
    "2025-03-10": "I painted the fence.",
}


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What did I do in the past 7 days?", {"2025-03-10"}),
        ("What happened in the last two weeks?", {"2025-03-03", "2025-03-10"}),
        ("What did I do in the last 30 days?", {"2025-02-20", "2025-03-03", "2025-03-10"}),
        ("What did I do last month?", {"2025-02-20"}),
        ("What did I do on the first Sunday of January?", {"2025-01-05"}),
        ("What did I do two weeks ago today?", set()),
    ],
)
def test_a_question_of_a_stretch_of_time_alone_is_answered_from_it(product, question, answers):  # noqa: F811
    p = product()
    for day, text in WEEKS.items():
        p.add({"role": "user", "content": text, "timestamp": f"{day}T10:00Z"})
    p.now = datetime(2025, 3, 14, 12, tzinfo=UTC)
    answer = p.memory.ask(question, user="u1")
    assert {day for day, text in WEEKS.items() if text in answer.answer} <= answers
    assert answer.answerable == bool(answers)


def test_a_day_is_counted_from_another_day(product):  # noqa: F811
    p = product()
    p.now = datetime(2025, 3, 13, 12, tzinfo=UTC)  # a Thursday
    for text in [
        "I'm flying to Oslo a week from Friday.",
        "The book club meets on the last Friday of the month.",
        "I saw the dentist a month ago today.",
        "I ran 40 km in the last two weeks.",
    ]:
        p.add(text)
    assert days(p) == {
        "I'm flying to Oslo a week from Friday.": "2025-03-21",
        "The book club meets on the last Friday of the month.": "2025-03-28",
        "I saw the dentist a month ago today.": "2025-02-13",
    }
    asked = p.memory.ask("When did I run 40 km?", user="u1").answer
    assert asked == "27 February 2025 – 13 March 2025"


def test_a_reply_without_a_model_is_in_the_language_of_the_question(product):  # noqa: F811
    p = product()
    p.now = datetime(2025, 3, 13, 12, tzinfo=UTC)
    p.add("Ich wohne mit meiner Katze in Graz.")
    for question, reply in [
        ("Hoe heet de zus van Maya?", ["I have nothing"]),
        ("Wie heißt die Schwester von Maya?", ["Dazu weiß ich nichts."]),
        ("Comment s'appelle la sœur de Maya ?", ["Je n'ai rien à ce sujet."]),
        ("Hvad hedder Mayas søster?", ["I have nothing"]),
        ("Wo wohne ich mit meiner Katze?", ["2025-03-13", "Graz"]),
        ("Who said wohne mit meiner Katze?", ["13 March 2025", "Graz"]),
    ]:
        answer = p.memory.ask(question, user="u1").answer
        assert all(words in answer for words in reply), (question, answer)


UNSPACED = {
    "ฉันเลี้ยงแมวสองตัว": "ฉันเลี้ยงแมวกี่ตัว",
    "พี่สาวของฉันทำงานที่โรงพยาบาลในเชียงใหม่": "พี่สาวทำงานที่ไหน",
    "ฉันแพ้กุ้ง": "ฉันแพ้อะไร",
    "ຂ້ອຍລ້ຽງແມວສອງໂຕ": "ຂ້ອຍລ້ຽງແມວຈັກໂຕ",
    "ເອື້ອຍຂອງຂ້ອຍເຮັດວຽກຢູ່ໂຮງໝໍ": "ເອື້ອຍເຮັດວຽກຢູ່ໃສ",
    "ຂ້ອຍແພ້ກຸ້ງ": "ຂ້ອຍແພ້ຫຍັງ",
    "ខ្ញុំចិញ្ចឹមឆ្មាពីរក្បាល": "ខ្ញុំចិញ្ចឹមឆ្មាប៉ុន្មានក្បាល",
    "បងស្រីខ្ញុំធ្វើការនៅមន្ទីរពេទ្យ": "បងស្រីធ្វើការនៅឯណា",
    "ខ្ញុំរស់នៅភ្នំពេញ": "ខ្ញុំរស់នៅឯណា",
    "ကျွန်တော် ကြောင်နှစ်ကောင် မွေးထားတယ်": "ကြောင်ဘယ်နှစ်ကောင် မွေးထားလဲ",
    "ကျွန်မအစ်မက ဆေးရုံမှာ အလုပ်လုပ်တယ်": "အစ်မက ဘယ်မှာ အလုပ်လုပ်လဲ",
    "ကျွန်တော် ရန်ကုန်မှာ နေတယ်": "ကျွန်တော် ဘယ်မှာ နေလဲ",
}


def test_what_is_said_without_spaces_is_found(product):  # noqa: F811
    p = product()
    for said in UNSPACED:
        p.add(said)
    for said, question in UNSPACED.items():
        p.add(question)  # which answers nothing
        assert said in p.memory.ask(question, user="u1").answer, question
    for question in ("ฉันมีรถสีอะไร", "ဘယ်သူ ကားမောင်းလဲ"):
        assert not p.memory.ask(question, user="u1").answerable


@pytest.mark.parametrize(
    ("said", "question", "shown"),
    [
        ("Teyzem Diyarbakır'da öğretmen.", "DİYARBAKIR'da kim öğretmen?", "Diyarbakır"),
        ("Kardeşim İzmir'den taşındı.", "kardeşim izmir?", "İzmir"),
        ("My co\u00adusin breeds al\u200bpacas.", "What does my cou\u2060sin breed?", "breeds alpacas"),
        ("من در تهران زندگی می\u200cکنم", "من کجا زندگی میکنم؟", "می\u200cکنم"),
        (
            "Ich hei\u00adße Ju\u0308rgen und spiele Dudelsack.",
            "Wer spielt Dudelsack? Jürgen",
            "spiele Dudelsack",
        ),
    ],
)
def test_a_word_is_found_however_it_is_written(product, said, question, shown):  # noqa: F811
    p = product()
    p.add(said)
    p.add("My neighbour plays chess.")
    assert p.stored()[0].text == said
    assert shown in p.memory.ask(question, user="u1").answer


def test_an_index_of_words_that_was_cut_otherwise_is_made_anew_once(product):  # noqa: F811
    p = product()
    p.add("Teyzem Diyarbakır'da öğretmen.")
    p.memory.end_session(user="u1")
    with p.memory.bank.ledger.write() as conn:
        full_text.empty(conn)
        meta.put(conn, meta.CUTTING, "1")
    p.reopen()
    with p.memory.bank.ledger.read() as conn:
        [scope, words] = conn.execute("SELECT scope, words FROM lexical_words").fetchone()
        whole = full_text.match(full_text.terms(scope, words))
        assert conn.execute("SELECT rowid FROM lexical WHERE lexical MATCH ?", (whole,)).fetchone()
    assert p.memory.bank.mend().found == []
