"""What a soak's users do, and how what is stored is compared with what must be."""

import pytest

from benchmarks.soak.findings import Held, findings
from benchmarks.soak.holdings import in_files
from benchmarks.soak.plan import LIFE, Person, marks, strangers


def stints(person, count):
    return [person.next_stint() for _ in range(count)]


def test_a_seed_gives_the_same_life_and_another_seed_another():
    assert stints(Person(3), 6) == stints(Person(3), 6)
    assert stints(Person(3), 6) != stints(Person(3, seed=2), 6)


def test_what_must_be_there_follows_from_what_was_done():
    for number in range(20):
        person, said, gone, ever = Person(number), {}, set(), set()
        for stint in stints(person, 3 * LIFE):
            for op in stint.ops:
                said |= {message.mark: message.text for message in op.messages}
                ever |= said.keys()
                if op.kind == "ask":
                    assert {mark for mark in ever if mark in op.without} == gone
                    assert len(op.without.marks) < LIFE
                if op.kind == "forget":
                    gone.add(op.mark)
                    assert said.pop(op.mark)
                if op.kind == "forget_user":
                    gone |= set(said)
                    said = {}
        assert {mark: message.text for mark, (_, message) in person.said.items()} == said
        assert person.gone == gone
        assert gone


def test_nothing_is_asked_that_waits_in_an_open_session_of_another_name():
    late, asked = 0, 0
    for number in range(20):
        open_in: dict[str, str] = {}
        for stint in stints(Person(number), 3 * LIFE):
            for op in stint.ops:
                open_in |= {message.mark: op.session for message in op.messages}
                late += any(session != f"s{stint.n}" for session in open_in.values())
                if op.kind == "end_session":
                    open_in = {mark: name for mark, name in open_in.items() if name != op.session}
                if op.kind == "ask" and op.mark:
                    asked += 1
                    assert open_in.get(op.mark, op.session) == op.session
    assert late
    assert asked


def test_every_kind_of_thing_is_done_and_users_are_forgotten_at_different_times():
    lives = [stints(Person(number), LIFE) for number in range(LIFE)]
    assert {op.kind for life in lives for stint in life for op in stint.ops} == {
        "add",
        "ask",
        "end_session",
        "forget",
        "forget_user",
    }
    ends = [next(n for n, stint in enumerate(life) if stint.ops[-1].kind == "forget_user") for life in lives]
    assert sorted(ends) == list(range(LIFE))


def test_a_mark_is_known_however_it_is_written_and_tells_whose_it_is():
    assert marks("I met Q003x00012, and q004X00001.") == {"Q003x00012", "Q004x00001"}
    assert strangers("I met q003x00012 and Q004x00001.", "user-003") == {"Q004x00001"}


def test_forgotten_marks_are_found_in_any_file(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.bin").write_bytes(b"\xff\x00q001x00001\xfe and Q001X00002, Q001x00009")
    (tmp_path / "b").write_bytes(b"Q001x0000")
    gone = {"Q001x00001", "Q001x00002", "Q001x00003"}
    assert list(in_files(tmp_path, gone)) == [("deep/a.bin", "Q001x00001"), ("deep/a.bin", "Q001x00002")]


@pytest.fixture
def ann():
    person = Person(1)
    person.next_stint()
    person.gone.add("Q001x99999")
    return person


def whole(person, where="API"):
    return [
        Held(person.user, where, message.text, whole=True, raw=True) for _, message in person.said.values()
    ]


def faults(person, held):
    return [(one.fault, one.what) for one in findings([person], held, ("API",))]


def test_what_is_there_as_it_must_be_is_no_finding(ann):
    assert not faults(ann, whole(ann))


def test_a_missing_message_is_lost(ann):
    held = whole(ann)
    lost = marks(held[0].text).pop()
    assert faults(ann, held[1:]) == [("lost", lost)]
    assert faults(ann, [*held[1:], Held(ann.user, "API", held[0].text, whole=True)]) == [("lost", lost)]
    assert faults(ann, [*held[1:], Held(ann.user, "elsewhere", held[0].text, raw=True)]) == [("lost", lost)]


def test_the_same_text_twice_is_doubled_but_not_a_fact_beside_its_turn(ann):
    held = whole(ann)
    fact = Held(ann.user, "API", held[0].text, whole=True)
    assert not faults(ann, [*held, fact])
    assert faults(ann, [*held, fact, fact]) == [("doubled", fact.text)]
    assert faults(ann, [*held, held[0]]) == [("doubled", held[0].text)]


def test_superseded_texts_may_stand_twice(ann):
    old = Held(ann.user, "API", "It was so.")
    assert not faults(ann, [*whole(ann), old, old])


def test_what_belongs_to_somebody_else_is_crossed(ann):
    held = [*whole(ann), Held(ann.user, "events", "I met q002x00001.")]
    assert faults(ann, held) == [("crossed", "Q002x00001")]
    assert faults(ann, [*whole(ann), Held("user-002", "API", "Hello.")]) == [("crossed", "Hello.")]


def test_what_should_be_forgotten_is_found_wherever_it_is(ann):
    held = [*whole(ann), Held(ann.user, "probes", "Who is Q001x99999?")]
    assert faults(ann, held) == [("not forgotten", "Q001x99999")]
