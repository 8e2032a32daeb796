"""A01 to A05: duplicates, updates, contradictions, and decisions that are wrong."""

import json
from datetime import UTC, datetime

import pytest

from tests.cases.adapter import FE, facts

KEPT = "Keeps two beehives on the roof"
SHIFTS = "Enjoys night shifts"


def conflict(text: str, turn: int = 1) -> str:
    return json.dumps(
        {"relevant": [], "conflicts": [{"memory": f"#{text}", "turn": turn}], "sufficient": True}
    )


def deletion(text: str, quote: str = "") -> str:
    return json.dumps({"edits": [{"op": "DELETE", "memory": f"#{text}", "quote": quote}]})


def test_a01_an_equal_fact_deletes_nothing(product):
    """The decision step is the Constructor's own edit here; its door by the Refresher is the next test."""
    p = product(constructor=[facts({"text": KEPT, "edit": "DELETE", "target": f"#{KEPT}"})])
    (m1,) = p.knows(KEPT)
    result = p.add({"role": "user", "content": "As I said, two beehives on my roof."})
    assert [(fact.id, fact.text) for fact in p.facts()] == [(m1.id, KEPT)]
    assert [(refused.text, "ignored" in refused.why) for refused in result.rejected] == [(KEPT, True)]


def test_a01_nor_does_the_refresher(product):
    p = product(constructor=[facts(KEPT)], judge=[conflict(KEPT)], refresher=[deletion(KEPT)])
    (m1,) = p.knows(KEPT)
    result = p.add({"role": "user", "content": "As I said, two beehives on my roof."})
    assert [(fact.id, fact.text) for fact in p.facts()] == [(m1.id, KEPT)]
    assert [(refused.text, "no new fact replaces it" in refused.why) for refused in result.rejected] == [
        (KEPT, True)
    ]


@pytest.mark.parametrize("door", ["constructor", "refresher"])
def test_a01_reminding_is_no_request_to_forget(product, door):
    """The whole kind: words of deleting that ask for nothing delete nothing, whoever quotes them."""
    nuts, said = "Is allergic to nuts", "Don't forget I am allergic to nuts, I always forget to say so."
    quote = "forget I am allergic to nuts"
    if door == "constructor":
        p = product(
            constructor=[facts({"text": nuts, "edit": "DELETE", "target": f"#{nuts}", "quote": quote})]
        )
    else:
        p = product(constructor=[facts()], judge=[conflict(nuts)], refresher=[deletion(nuts, quote)])
    (m1,) = p.knows(nuts)
    result = p.add(said)
    assert [fact.id for fact in p.facts()] == [m1.id]
    assert [refused.text for refused in result.rejected] == [nuts]


PARAPHRASES = ("Plays bass clarinet", "Plays the bass clarinet", "Is a bass clarinet player")


def near_each_other(texts) -> dict[str, list[float]]:
    """Unit vectors with a cosine of 0.97 between any two."""
    return {
        text: [0.97**0.5, *(0.03**0.5 if at == n else 0.0 for at in range(31))]
        for n, text in enumerate(texts)
    }


def test_a02_paraphrases_merge(product):
    same = json.dumps({"verdicts": [{"n": 1, "supported": True, "relation": "duplicate", "near": 0}]})
    p = product(
        embeddings=FE(near_each_other(PARAPHRASES)),
        constructor=[facts(text) for text in PARAPHRASES],
        fact_judge=[same, same],
    )
    said = ("I play bass clarinet", "I practised: I play the bass clarinet", "I am a bass clarinet player")
    for day, text in enumerate(said, 1):
        p.add({"role": "user", "content": text}, now=f"2024-05-0{day}T09:00:00Z")
    (memory,) = p.facts()
    assert memory.text.casefold().count("bass clarinet") == 1
    assert memory.turns == ("Dmain:1", "Dmain:2", "Dmain:3")
    assert all(
        text in prompt for text, prompt in zip(PARAPHRASES[1:], p.models["fact_judge"].prompts, strict=False)
    )


def teaching(product):
    p = product(
        constructor=[
            facts("Teaches at Larkfield Primary"),
            facts(
                {
                    "text": "Teaches at Quarry Lane",
                    "edit": "UPDATE",
                    "target": "#Teaches at Larkfield Primary",
                }
            ),
        ]
    )
    p.add("I teach at Larkfield Primary.", session="march", now="2024-03-01T09:00:00Z")
    (m1,) = p.facts()
    p.memory.end_session("march", user="u1")
    p.add("I left Larkfield, I teach at Quarry Lane now.", session="april", now="2024-04-09T09:00:00Z")
    p.memory.end_session("april", user="u1")
    return p, m1


@pytest.mark.argued("no fact with the old value is current; raw turns stay, the outdated one taken down")
def test_a03_the_changed_fact_alone_is_current(product):
    """The case asks for no active row with "Larkfield". That holds of facts; the raw turns stay, as design
    section 6 has it: the turn of a superseded fact is taken down below what is current, not hidden, and
    the newer turn itself says "I left Larkfield". The fact is not shown beside the turn it only repeats.
    """
    p, _ = teaching(product)
    assert p.texts("u1") == ["Teaches at Quarry Lane"]
    found = p.recall("where does the user teach", k=5)
    assert "Quarry Lane" in found[0].text
    assert not [one.text for one in found if one.granularity == "fact" and "Larkfield" in one.text]
    ranks = {one.text: rank for rank, one in enumerate(found)}
    outdated = ranks.get("I teach at Larkfield Primary.", len(found))
    assert outdated > ranks["I left Larkfield, I teach at Quarry Lane now."]


def test_a03_the_old_fact_stays_in_history_with_its_end(product):
    p, m1 = teaching(product)
    closed = next(event for event in p.memory.history(m1.id, user="u1") if event.action == "supersede")
    assert closed.before["text"] == "Teaches at Larkfield Primary"
    ended = datetime.fromisoformat(closed.after["valid_until"])
    assert ended.astimezone(UTC).date().isoformat() == "2024-04-09"
    assert p.memory.get(m1.id, user="u1").valid_until == ended


@pytest.mark.parametrize("door", ["constructor", "refresher"])
def test_a04_a_deletion_does_not_lose_the_new_fact(product, door):
    new = "Dislikes night shifts"
    if door == "constructor":
        p = product(constructor=[facts({"text": new, "edit": "DELETE", "target": f"#{SHIFTS}"})])
    else:
        p = product(constructor=[facts(new)], judge=[conflict(SHIFTS)], refresher=[deletion(SHIFTS)])
    (m1,) = p.knows(SHIFTS)
    p.add("Night shifts wear me out, I can't stand them now.")
    assert p.texts() == [new]
    assert p.memory.get(m1.id, user="u1").status == "superseded"


THREE = ("Rows on the lake", "Keeps geese", "Lives in Graz")


def test_a05_an_unknown_number_is_reported_and_costs_nothing(product):
    p = product(
        constructor=[
            facts(
                {"text": "Trains for a triathlon in June", "edit": "UPDATE", "target": "12"},
                "Swims on Tuesdays",
            )
        ]
    )
    before = p.knows(*THREE)
    result = p.add("I train for a triathlon in June and swim on Tuesdays.")
    assert [p.memory.get(one.id, user="u1") for one in before] == before
    assert p.texts() == sorted([*THREE, "Swims on Tuesdays", "Trains for a triathlon in June"])
    (warning,) = [warning for warning in result.warnings if "12" in warning]
    assert "memory 12" in warning
    assert "Trains for a triathlon in June" in warning


@pytest.mark.parametrize("number", [-1, 12, 10**12])
def test_a05_of_any_role(product, number):
    """The whole kind: a number that was not shown is reported, whichever role names it, not followed."""
    verdict = {"relevant": [number], "conflicts": [{"memory": number, "turn": 1}], "sufficient": True}
    judged = {"n": 1, "supported": True, "relation": "duplicate", "near": number}
    p = product(
        constructor=[facts({"text": "Keeps a dozen geese", "turn": number})],
        judge=[json.dumps(verdict)] * 3,
        fact_judge=[json.dumps({"verdicts": [judged]})],
    )
    before = p.knows(*THREE)
    result = p.add("I keep geese, a dozen of them.")
    assert [p.memory.get(one.id, user="u1") for one in before] == before
    assert "Keeps a dozen geese" in p.texts()
    named = [warning for warning in result.warnings if f"memory {number}" in warning]
    assert any("the Judge, of 'Keeps a dozen geese', named" in warning for warning in named)
    assert len(named) > 1
    assert any(f"turn {number}" in warning for warning in result.warnings)


def test_a05_the_refresher_touches_its_conflict_set_alone(product):
    edits = [{"op": "UPDATE", "memory": 12, "text": "Rows no more"}, {"op": "DELETE", "memory": 2}]
    p = product(
        constructor=[facts()],
        judge=[conflict(THREE[0])],
        refresher=[json.dumps({"edits": edits})],
    )
    before = p.knows(*THREE)
    result = p.add("I stopped rowing on the lake.")
    assert [p.memory.get(one.id, user="u1") for one in before] == before
    assert any("memory 12" in refused.why and refused.text == "Rows no more" for refused in result.rejected)
