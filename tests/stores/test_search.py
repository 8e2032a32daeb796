from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from memcycle.core.entry import new_entry
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta, Views, Weights
from memcycle.core.world import World
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.search import search as search_module
from memcycle.stores.search.request import Filters, Query, SearchRequest
from memcycle.stores.search.search import Search
from memcycle.stores.writer import Writer
from tests.banks import ANN, SAID, open_bank, said

NOW = datetime(2024, 1, 1, tzinfo=UTC)
MAY_7 = datetime(2023, 5, 7, 12, tzinfo=UTC)
DIM = 4
BLANK = np.zeros(DIM, dtype=np.float32)


class Vectors:
    """An embedder that gives the vectors it was told, and otherwise the last axis."""

    id = "told"
    dim = DIM

    def __init__(self):
        self.told = {}
        self.calls = []

    def tell(self, text, *values):
        self.told[text] = np.array([*values, *[0.0] * (DIM - len(values))], dtype=np.float32)

    def embed(self, texts):
        self.calls.append(list(texts))
        default = np.array([0, 0, 0, 1], dtype=np.float32)
        return np.array([self.told.get(text, default if text.strip() else BLANK) for text in texts])


class Index:
    """A vector index that records what it is asked and compares exactly."""

    elsewhere = False

    def __init__(self):
        self.vectors = {}
        self.asked = []

    def at_hand(self):
        return True

    def query(self, scope, vectors, k, granularity, own):
        self.asked.append((scope, len(vectors), k, granularity))
        ids = [key for key in self.vectors if granularity is None or key[0] == granularity]
        return [
            sorted(((key[1], float(self.vectors[key] @ vector)) for key in ids), key=lambda p: -p[1])[:k]
            for vector in vectors
        ]


class Memory:
    """Entries written straight into a ledger, and searches over them."""

    def __init__(self, path):
        self.world = World(now=lambda: NOW, new_id=iter(map(str, range(100_000))).__next__)
        self.ledger = Ledger.open(path / "ledger.sqlite3", self.world)
        self.embedder, self.index = Vectors(), Index()
        self.search = Search(self.ledger, self.index, self.embedder)
        self.written = 0

    def add(
        self, text, *, user="ana", session="1", granularity="raw", vector=None, status="active", **fields
    ):
        self.written += 1
        fields = {
            "observed_at": MAY_7,
            "turns": (f"D{session}:{self.written}",),
            "embedder": "told",
            **fields,
        }
        entry = new_entry(Scope(user=user, session=session), granularity, text, status=status, **fields)
        values = None if vector is None else np.array([*vector, *[0] * (DIM - len(vector))], dtype=np.float32)
        with self.ledger.write() as conn:
            Writer(conn, self.world).insert(entry, values)
        if values is not None and status == "active":
            self.index.vectors[granularity, entry.id] = values
        return entry.id

    def hits(self, *texts, user="ana", session=None, speaker=None, **fields):
        queries = tuple(Query(text=text, speaker=speaker) for text in texts)
        request = SearchRequest(scope=Scope(user=user, session=session), queries=queries, **fields)
        results = self.search.run(request)
        assert len(results) == len(texts)
        return results[0] if len(texts) == 1 else results

    def ids(self, text, **fields):
        return [hit.entry.id for hit in self.hits(text, **fields)]


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path)
    yield memory
    memory.ledger.close()


@pytest.fixture(params=["scanned whole", "through the index"])
def either(memory, monkeypatch, request):
    if request.param == "through the index":
        monkeypatch.setattr(search_module, "SCANNED_WHOLE", -1)
    return memory


def test_scores_are_absolute_cosines_where_no_word_matches(either):
    a = either.add("alpha", vector=(0.99, 0.141))
    b = either.add("beta", vector=(0.7, 0.714))
    c = either.add("gamma", vector=(0.2, 0.98))
    either.embedder.tell("query", 1, 0)
    hits = either.hits("query", k=3)
    assert [hit.entry.id for hit in hits] == [a, b, c]
    assert [hit.score for hit in hits] == pytest.approx([0.99, 0.7, 0.2], abs=1e-3)
    assert either.ids("query", k=2) == [a, b]


def test_a_hit_carries_its_whole_entry_and_the_views_that_found_it(either):
    either.add("I adopted a grey kitten", vector=(1, 0), speaker="Mel", keywords=("pet",))
    either.add("the weather is fine", vector=(0, 1), speaker="Ann")
    either.embedder.tell("Mel kitten", 0.6, 0.8)
    either.embedder.tell("kitten", 0.8, 0.6)
    kitten, weather = either.hits("Mel kitten")
    assert kitten.entry.keywords == ("pet",)
    assert kitten.entry.observed_at == MAY_7
    why = {why.view: (why.rank, round(why.score, 3)) for why in kitten.why}
    assert why["dense"] == (2, 0.6)
    assert why["dense_nameless"] == (1, 0.8)
    assert why["speaker"] == (1, 1.0)
    assert why["bm25"][0] == why["window"][0] == 1
    assert {why.view for why in weather.why} == {"dense", "dense_nameless", "context"}


def test_a_ranking_is_a_search_without_reading_entries(either, monkeypatch):
    for n in range(6):
        granularity = ("raw", "fact", "episode")[n % 3]
        either.add(f"kitten number {n}", vector=(1, n / 10), granularity=granularity, session=str(n))
    either.embedder.tell("kitten", 0.8, 0.6)
    queries = (Query(text="kitten"), Query(text="number 3"))
    request = SearchRequest(scope=Scope(user="ana"), queries=queries, k=4)
    hits = either.search.run(request)
    monkeypatch.setattr(either.ledger, "look", None)
    rankings = either.search.rank(request)
    assert [[(one.id, one.granularity, one.score) for one in ranking.found] for ranking in rankings] == [
        [(hit.entry.id, hit.entry.granularity, hit.score) for hit in found] for found in hits
    ]
    assert [len(found) for found in hits] == [4, 4]
    worst = [ranking.found[-1] for ranking in rankings]
    assert [ranking.why([one]) for ranking, one in zip(rankings, worst, strict=True)] == [
        [found[-1].why] for found in hits
    ]


def test_words_find_what_has_no_vector_and_vectors_what_has_no_word(either):
    words = either.add("the museum of clocks")
    near = either.add("quite different", vector=(1, 0))
    either.add("neither", vector=(0, 0, 1))
    either.embedder.tell("museum", 1, 0)
    assert set(either.ids("museum")) == {words, near}


def test_a_vector_of_another_embedder_says_nothing(either):
    either.add("alpha", vector=(1, 0), embedder="another")
    either.embedder.tell("query", 1, 0)
    assert either.ids("query") == []


@pytest.mark.parametrize("text", ["", "   "])
def test_a_blank_query_has_no_hits(either, text):
    either.add("alpha", vector=(1, 0))
    assert either.ids(text) == []


def test_no_entries_no_hits_and_no_queries_no_lists(memory):
    assert memory.hits("anything") == []
    assert memory.search.run(SearchRequest(scope=Scope(user="ana"), queries=())) == []


@pytest.mark.parametrize(
    "text", ['"', "a OR b AND (", "NEAR(x y)", "🎉", "猫", "\ud800", "%s {0} $x", "w " * 6000]
)
def test_no_query_text_raises(either, text):
    either.add("a party 🎉 for the 猫", vector=(1, 0))
    either.hits(text)


def test_users_are_compared_whole(either):
    mine = either.add("I like tea", user="ana", vector=(1, 0))
    for other in ("ana2", "ana.b@mail.test", "ana:b", "a"):
        either.add("I like tea", user=other, vector=(1, 0))
    either.embedder.tell("tea", 1, 0)
    assert either.ids("tea") == [mine]
    assert either.ids("tea", user="nobody") == []


def test_thousands_of_entries_of_others_change_no_score_by_a_bit(memory):
    for number in range(12):
        memory.add(f"tea and cake {number}", vector=(1, number / 10), speaker="Ann")
    memory.embedder.tell("tea cake 3", 1, 0.2)
    before = [(hit.entry.id, hit.score, hit.why) for hit in memory.hits("tea cake 3")]
    with memory.ledger.write() as conn:
        writer = Writer(conn, memory.world)
        for number in range(2000):
            scope = Scope(user=f"other{number % 7}", session="1")
            entry = new_entry(
                scope, "raw", f"tea tea cake {number}", (f"D1:{number}",), status="active", embedder="told"
            )
            writer.insert(entry, np.array([1, 0, 0, 0], dtype=np.float32))
    assert [(hit.entry.id, hit.score, hit.why) for hit in memory.hits("tea cake 3")] == before
    assert len(before) == 12


def test_both_ways_of_finding_candidates_give_the_same_hits(memory, monkeypatch):
    rng = np.random.default_rng(5)
    for number in range(60):
        granularity = ("raw", "fact", "episode")[number % 3]
        vector = rng.random(DIM)
        vector /= np.linalg.norm(vector)
        memory.add(
            f"tea {number} cake {number % 5}", granularity=granularity, vector=tuple(vector), speaker="Ann"
        )
    memory.embedder.tell("Ann cake 3", 0.5, 0.5, 0.5, 0.5)
    whole = memory.hits("Ann cake 3", "tea", k=10)
    assert memory.index.asked == []
    monkeypatch.setattr(search_module, "SCANNED_WHOLE", -1)
    memory.search = Search(memory.ledger, memory.index, memory.embedder)
    assert memory.hits("Ann cake 3", "tea", k=10) == whole
    [(scope, vectors, k, granularity)] = memory.index.asked
    assert (scope, vectors, granularity) == (Scope(user="ana"), 4, None)
    assert k == Theta().candidates


def test_the_index_is_asked_once_and_told_of_the_one_granularity(memory, monkeypatch):
    monkeypatch.setattr(search_module, "SCANNED_WHOLE", -1)
    memory.add("tea", granularity="fact", vector=(1, 0))
    memory.add("tea", granularity="raw", vector=(1, 0))
    hits = memory.hits("tea", granularities=("fact", "episode"))
    assert [hit.entry.granularity for hit in hits] == ["fact"]
    memory.hits("tea", granularities=("fact",))
    assert [asked[3] for asked in memory.index.asked] == [None, "fact"]


def test_queries_of_a_request_are_embedded_together_and_ranked_apart(either):
    tea = either.add("I like tea", vector=(1, 0))
    cake = either.add("she bakes cake", vector=(0, 1))
    either.embedder.tell("tea", 1, 0)
    either.embedder.tell("cake", 0, 1)
    for_tea, for_cake = either.hits("tea", "cake", k=1)
    assert [for_tea[0].entry.id, for_cake[0].entry.id] == [tea, cake]
    assert len(either.embedder.calls) == 1


def test_staged_entries_are_found_in_every_session_of_their_user(either):
    staged = either.add("I like tea", session="2", vector=(1, 0), status="staged")
    either.embedder.tell("tea", 1, 0)
    for session in ("2", "3", None):
        assert either.ids("tea", session=session) == [staged]
        assert either.ids("tea", session=session, user="bo") == []


def test_a_wall_keeps_staged_entries_in_their_own_session(either):
    either.search = Search(either.ledger, either.index, either.embedder, "session")
    staged = either.add("I like tea", session="2", vector=(1, 0), status="staged")
    either.embedder.tell("tea", 1, 0)
    assert either.ids("tea", session="2") == [staged]
    assert either.ids("tea", session="3") == []
    assert either.ids("tea") == []
    assert either.ids("tea", session="2", user="bo") == []


@pytest.mark.parametrize("asked_in", ["2", "another"])
def test_staged_entries_score_as_when_active(tmp_path, asked_in):
    scores = []
    for status in ("active", "staged"):
        (tmp_path / status).mkdir()
        memory = Memory(tmp_path / status)
        for number in range(6):
            memory.add(f"tea with Bo {number}", vector=(1, number), speaker="Ann")
        for number in range(3):
            memory.add(f"tea cake {number}", session="2", vector=(number, 1), speaker="Bo", status=status)
        memory.embedder.tell("Bo's cake 2", 1, 1)
        hits = memory.hits("Bo's cake 2", session=asked_in)
        scores.append([(hit.entry.id, hit.score, hit.why) for hit in hits])
        memory.ledger.close()
    assert scores[0] == scores[1]
    assert len(scores[0]) == 9


@pytest.mark.parametrize("status", ["superseded", "forgotten"])
def test_what_is_no_longer_valid_is_not_found(either, status):
    either.add("I like tea", vector=(1, 0), status=status)
    assert either.ids("tea", session="1") == []


def test_what_has_expired_is_not_found(either):
    either.add("tea today", vector=(1, 0), expires_at=NOW - timedelta(seconds=1))
    at_last = either.add("tea now", vector=(1, 0), expires_at=NOW)
    later = either.add("tea tomorrow", vector=(1, 0), expires_at=NOW + timedelta(days=1))
    assert set(either.ids("tea")) == {at_last, later}


def test_excluded_entries_make_room_for_others(either):
    first = either.add("tea", vector=(1, 0))
    second = either.add("tea", vector=(0.6, 0.8), turns=("D1:9",))
    either.embedder.tell("tea", 1, 0)
    assert either.ids("tea", k=1) == [first]
    assert either.ids("tea", k=1, exclude=frozenset([first])) == [second]


def test_filters_must_all_hold_and_never_starve_a_search(either):
    for number in range(30):
        either.add(f"tea {number}", vector=(1, 0), speaker="Ann")
    wanted = either.add("cake", vector=(0, 1), speaker="Bo", kind="preference")
    either.add("cake", vector=(0, 1), speaker="Bo", kind="semantic", turns=("D9:9",))
    either.embedder.tell("tea", 1, 0.1)
    narrow = Theta(candidates=10)
    filters = Filters(kinds=("preference",), speakers=("Bo", "Cy"))
    assert either.ids("tea", filters=filters, theta=narrow) == [wanted]
    assert either.ids("tea", filters=Filters(kinds=("working_summary",))) == []
    assert either.ids("tea", filters=filters, user="bo") == []


def test_a_time_window_reads_event_time_before_the_time_of_saying(either):
    said = either.add("tea said", vector=(1, 0))
    happened = either.add("tea happened", vector=(1, 0), event_time=MAY_7 - timedelta(days=365))
    either.add("tea whenever", vector=(1, 0), observed_at=None)
    assert either.ids("tea", filters=Filters(since=MAY_7, until=MAY_7)) == [said]
    assert either.ids("tea", filters=Filters(until=MAY_7 - timedelta(days=1))) == [happened]
    assert either.ids("tea", filters=Filters(since=MAY_7 + timedelta(microseconds=1))) == []


def test_the_asked_speaker_lifts_a_hit_and_hides_none(either):
    ann = either.add("I like green tea", vector=(1, 0), speaker="Ann")
    bo = either.add("I like green tea", vector=(1, 0), speaker="Bo")
    either.embedder.tell("green tea?", 1, 0)
    assert either.ids("green tea?", speaker="Bo") == [bo, ann]
    assert either.ids("green tea?", speaker="ann") == [ann, bo]
    assert either.ids("Does bo like green tea?") == [bo, ann]
    assert set(either.ids("green tea?", speaker="nobody known")) == {ann, bo}


def test_a_staged_speaker_is_known_too(memory):
    bo = memory.add("green tea", session="2", vector=(1, 0), speaker="Bo", status="staged")
    memory.add("green tea", session="2", vector=(1, 0), speaker="Ann", status="staged")
    assert memory.ids("Bo's green tea", session="2")[0] == bo


def test_a_query_that_is_only_a_name_keeps_it(memory):
    memory.add("hello", vector=(1, 0), speaker="Bo")
    memory.hits("Bo?")
    assert memory.embedder.calls == [["Bo?", "Bo?"]]


def test_weights_decide_the_order(either):
    words = either.add("tea tea tea", vector=(0, 1))
    near = either.add("leaves", vector=(1, 0))
    either.embedder.tell("tea", 1, 0)
    lexical_only = Theta(weights=Weights.only(bm25=1))
    dense_only = Theta(weights=Weights.only(dense=1))
    assert either.ids("tea", theta=lexical_only) == [words]
    assert either.ids("tea", theta=dense_only) == [near]
    assert either.ids("tea", theta=Theta(weights=Weights.only())) == []


def test_equal_scores_come_in_order_of_id(either):
    ids = [either.add("tea", vector=(1, 0), turns=(f"D1:{n}",)) for n in range(20)]
    either.embedder.tell("tea", 1, 0)
    assert either.ids("tea", k=10) == sorted(ids)[:10]


def test_a_lexical_candidate_beyond_the_limit_is_not_ranked(memory, monkeypatch):
    monkeypatch.setattr(search_module, "SCANNED_WHOLE", -1)
    for number in range(40):
        memory.add(f"tea {'and more ' * number}")
    assert len(memory.ids("tea", theta=Theta(candidates=10), k=100)) == 10


def test_a_view_finds_its_first_entries_alone(either):
    for n in range(6):
        either.add("the kettle" + " and kettle" * n, turns=(f"D1:{n}",))
    theta = Theta(weights=Weights.only(bm25=1))
    everything = either.ids("kettle", theta=theta)
    assert len(everything) == 6
    assert either.ids("kettle", theta=theta.model_copy(update={"views": Views(lexical=2)})) == everything[:2]
    assert either.ids("kettle", theta=theta.model_copy(update={"views": Views(lexical=0)})) == []


def test_recency_counts_from_the_reference_date(either):
    old = either.add("the kettle sings", observed_at=NOW - timedelta(days=90))
    new = either.add("the kettle sings", observed_at=NOW - timedelta(days=1), session="2")
    theta = Theta(weights=Weights.only(bm25=1, recency=1), half_life_days=10)
    assert either.ids("kettle", theta=theta) == [new, old]
    then = theta.model_copy(update={"reference_date": NOW - timedelta(days=90)})
    scores = {hit.entry.id: hit.score for hit in either.hits("kettle", theta=then)}
    assert scores[old] == scores[new]


# What waits for its session's commit


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(lambda n: said(n, f"secret {n} cat Mimi", session="2"), id="words"),
        pytest.param(lambda n: said(n, "hm", session="2", speaker="Mimi"), id="a name"),
        pytest.param(lambda n: said(n, "hm", session="2", time=SAID + timedelta(days=400)), id="a time"),
        pytest.param(lambda n: said(n + 3, "Mimi the cat died in May", session="1"), id="a late turn"),
    ],
)
def test_what_is_walled_in_weighs_on_nothing(list_index, tmp_path, monkeypatch, whole, secret):
    """Not by its words, its speakers, its time, nor as a neighbour."""
    if not whole:
        monkeypatch.setattr(search_module, "SCANNED_WHOLE", 0)
    with open_bank(tmp_path / "home", visibility="session") as bank:
        _weighs_on_nothing(bank, secret)


def _weighs_on_nothing(bank, secret):
    bank.stage_turns(
        ANN, [said(1, "I went to Linz"), said(2, "My cat is Mimi"), said(3, "Bo saw Wels in May")]
    )
    bank.commit_session(ANN)
    queries = tuple(
        Query(text=text) for text in ("Where is Mimi the cat in May?", "cat", "last year in Linz")
    )
    asked = SearchRequest(scope=ANN.within("other"), queries=queries)

    def found():
        return [[(hit.entry.text, hit.score) for hit in hits] for hits in bank.search(asked)]

    before = found()
    for n in (1, 2, 3):
        turn = secret(n)
        bank.stage_turns(ANN.within(turn.session), [turn])
    assert found() == before
