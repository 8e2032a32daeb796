"""A16 to A18: Chroma, vectors and scores, and the walls between users."""

import pytest

from memcycle.core.edit import Edit
from memcycle.core.entry import new_entry
from memcycle.core.errors import BadInput
from memcycle.core.theta import Theta, Weights
from memcycle.stores.search import search
from tests.cases.adapter import FE, facts

METADATA = {"topic": None, "tags": ["home", "pets"], "origin": {"app": "x"}, "score": 0.5, "ok": True}


@pytest.mark.argued(
    "add takes no metadata, entries have typed fields instead; what a row carries beside them comes through "
    "import and the bank; one chromadb version is installed, that is run"
)
@pytest.mark.parametrize(
    "changed", [METADATA, {**METADATA, "score": None}, {"tags": [], "deep": [[{"a": None}]]}]
)
def test_a16_metadata_comes_back_in_its_shape(product, changed):
    """`add` takes no metadata: entries have typed fields instead. What a row carries beside them goes through
    export and import, and stays in the ledger; Chroma is given fixed scalar fields, whatever is in there. So
    there is no update of a key either: a row that says None has None. One chromadb is installed, that is run.
    """
    p = product(constructor=[facts("Keeps geese")])
    p.add("I keep geese.")
    rows = [{**row, "metadata": {**row["metadata"], **changed}} for row in p.memory.export(user="u1")]
    assert p.memory.import_(rows, user="u2") == len(rows)
    for session in {row["scope"]["session"] for row in rows}:
        p.memory.end_session(session, user="u2")
    p.reopen()
    (fact,) = p.facts("u2")
    assert fact.metadata == changed
    assert type(fact.metadata.get("ok", True)) is bool
    assert [text for text, _ in p.search("geese", "u2")] == ["Keeps geese"]


def test_a16_an_update_that_says_none_has_none(product):
    """The verbs of the case at the bank, the door that takes whole entries: ADD, then UPDATE of it."""
    p = product()
    p.add("I keep geese.", session="main")
    scope, bank = p.memory.scope("u1").within("main"), p.memory.bank
    (raw,) = p.stored(granularity="raw")

    def entry(text, metadata):
        said = {"observed_at": raw.observed_at, "speaker": "user", "role": "human"}
        return new_entry(scope, "fact", text, raw.turns, metadata=metadata, **said)

    (old,) = bank.apply(scope, [Edit(op="ADD", entry=entry("Tends geese", METADATA))]).added
    newer = Edit(op="UPDATE", target=old, entry=entry("Tends a flock", {**METADATA, "score": None}))
    (new,) = bank.apply(scope, [newer]).updated
    p.memory.end_session("main", user="u1")
    p.reopen()
    assert p.memory.get(old, user="u1").metadata == METADATA
    kept = p.memory.get(new, user="u1").metadata
    assert kept == {**METADATA, "score": None}
    assert (type(kept["tags"]), type(kept["origin"]), kept["ok"], kept["topic"]) == (list, dict, True, None)
    assert "Tends a flock" in [text for text, _ in p.search("flock")]


Q, A, B, C = "quokka", "alpine", "bramble", "cinder"
UNIT = {Q: [1, 0], A: [0.99, 0.141], B: [0.7, 0.714], C: [0.2, 0.98]}
DENSE = Theta(weights=Weights.only(dense=1))


@pytest.mark.argued("scores come from the ledger's vectors, so there is no distance space to choose")
@pytest.mark.parametrize("through_chroma", [False, True])
@pytest.mark.parametrize("theta", [Theta(), DENSE], ids=["default weights", "dense alone"])
def test_a17_a_score_is_high_where_it_is_near(product, monkeypatch, theta, through_chroma):
    """Scores come from the ledger's vectors; Chroma only hands over candidates, so that the distance space of
    a collection cannot turn them round. Both ways in are run: the scan, and Chroma."""
    if through_chroma:
        monkeypatch.setattr(search, "SCANNED_WHOLE", 0)
    p = product(embeddings=FE(UNIT), settings={"theta": theta})
    p.knows(A, B, C)
    found = p.search(Q, k=3)
    assert [text for text, _ in found] == [A, B, C]
    scores = [score for _, score in found]
    assert len(set(scores)) == 3
    assert all(0 <= score <= 1 for score in scores)
    assert [text for text, _ in p.search(Q, k=3, min_score=0.87)] == [A]
    assert scores == pytest.approx([0.99, 0.7, 0.2], abs=0.01)


USERS = ("ana", "ana2", "ana.b@mail.test", "ana:b")
ODD = (
    "Ana", "ana ", "аna", "ａｎａ", "an%", "_na", "ana\tb", "ana\nb", '["ana", "default"]', "ana' OR '1'='1",
    "../ana", "/etc/ana", "C:\\ana", "ana*", "💚", "إيدا", "a" * 512, "Zoë", "Zoe\u0308",
)  # fmt: skip


def test_a18_users_are_matched_whole(product):
    p = product()
    for user in USERS:
        p.knows(f"Works as the baker of {user}", user=user)
    for user in USERS:
        found = p.recall("anything about the baker", user, k=10)
        assert {one.text for one in found} == {f"Works as the baker of {user}"}
    with pytest.raises(ValueError, match="user"):
        p.recall("anything", "")
    with pytest.raises(ValueError, match="user"):
        p.recall("anything", None)


@pytest.mark.argued("agent is a workspace here, a wall; topic is no filter, kinds, speakers and times are")
def test_a18_several_filters_at_once(product):
    """`recall` takes no filters; the search below it does."""
    p = product()
    p.knows("Works as a baker", user="ana")
    p.knows("Works as a smith", user="ana2")
    kept = {"kinds": ("episodic",), "speakers": ("user",), "since": "2024-01-01T00:00:00Z"}
    assert [text for text, _ in p.search("works", "ana", k=10, **kept)] == ["Works as a baker"]
    assert p.search("works", "ana", k=10, **{**kept, "speakers": ("somebody else",)}) == []
    assert p.recall("works", "ana", workspace="a1") == []


def test_a18_odd_ids_are_ids_like_any_other(product):
    p = product()
    for n, user in enumerate(ODD):
        p.knows(f"Owns canoe {n}", user=user)
    p.reopen()
    for n, user in enumerate(ODD):
        assert p.texts(user) == [f"Owns canoe {n}"], repr(user)
        assert {one.text for one in p.recall("Who owns a canoe?", user, k=10)} == {f"Owns canoe {n}"}
    assert p.memory.forget_user("an%") > 0
    assert [len(p.facts(user)) for user in ODD] == [int(user != "an%") for user in ODD]


@pytest.mark.parametrize("user", [7, ["ana"], {"$ne": ""}, "a\0b", "a" * 513, " "])
def test_a18_what_is_no_name_is_refused(product, user):
    with pytest.raises(BadInput):
        product().add("I keep geese.", user)


@pytest.mark.parametrize("session", ["../x", "a/b:c", "d" * 512, "Дом 1", "x\ny"])
def test_a18_odd_sessions_too(product, session):
    p = product(constructor=[facts("Keeps geese")])
    p.add("I keep geese.", session=session)
    p.memory.end_session(session, user="u1")
    assert p.texts() == ["Keeps geese"]
    assert {one.scope.session for one in p.stored()} == {session}
