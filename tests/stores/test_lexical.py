import math
import sqlite3
import unicodedata
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcycle.core.language.tokens import stems, tokenize
from memcycle.stores.ledger import full_text, schema
from memcycle.stores.search import lexical
from memcycle.stores.search.lexical import LexicalRow

TABLES = "".join((schema.LEXICAL_WORDS, schema.LEXICAL_TRAITS, schema.LEXICAL_STATS))
MAY_7 = datetime(2023, 5, 7, 13, 56, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)


@pytest.fixture
def conn():
    conn = connect()
    yield conn
    conn.close()


def connect() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:")
    prepare(conn)
    return conn


def prepare(conn: sqlite3.Connection) -> None:
    conn.executescript(TABLES)
    full_text.index_anew(conn)


def row(number, text, *, scope="mine", granularity="raw", **fields):
    return LexicalRow(number, scope, granularity, text, **fields)


def found(conn, query, *, scope="mine", granularity="raw", extra=()):
    """Dated and window score by row. Facts are not known to the index: their view is the window's."""
    [scores] = lexical.score(conn, scope, granularity, [stems(query)], extra)
    assert scores.views[:, 2].tolist() == scores.views[:, 1].tolist()
    return {int(r): tuple(v[:2]) for r, v in zip(scores.rows, scores.views.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I write C++ all day", "C++"),
        ("I write C# all day", "C#"),
        ("Ms O'Brien called", "O'Brien"),
        ("Ms O'Brien called", "o’brien"),
        ("Ms O'Brien called", "brien"),
        ("reach me at bob@x.test", "bob@x.test"),
        ("reach me at bob@x.test", "Bob"),
        ("AND OR NEAR NOT", "NEAR"),
        ("he said no", '"unbalanced said'),
        ("he said no", "said) OR (x"),
        ("he said no", "scope:said* ^said"),
        ("so happy 🎉🎉", "🎉"),
        ("thumbs 👍🏽", "👍"),
        ("我的猫很可爱", "猫很可爱吗"),
        ("昨日図書館で本を借りた", "図書館"),
        ("José likes cafés", "jose cafe"),
        ("she was running", "run"),
    ],
)
def test_a_text_is_found_by_its_own_words(conn, text, query):
    lexical.put(conn, [row(1, text), row(2, "quite unrelated", scope="theirs"), row(3, "nothing here")])
    assert set(found(conn, query)) == {1}


@pytest.mark.parametrize("query", ["", "  ", "?!", "\x00", "\ud800"])
def test_a_query_without_words_finds_nothing(conn, query):
    lexical.put(conn, [row(1, "hello there")])
    assert found(conn, query) == {}


def test_a_very_long_query_finds_its_text(conn):
    lexical.put(conn, [row(1, "needle in it"), row(2, "other things")])
    long = " ".join(f"word{n}" for n in range(1300)) + " needle"
    assert len(long) > 10_000
    assert set(found(conn, long)) == {1}


@settings(max_examples=60)
@given(ANY_TEXT, ANY_TEXT)
def test_any_text_is_taken_and_found_by_each_of_its_words(text, query):
    conn = connect()
    lexical.put(conn, [row(1, text, speaker=query), row(2, query)])
    found(conn, query)
    for token in tokenize(text):
        assert 1 in found(conn, token)
    conn.close()


def test_an_index_outlives_any_number_of_forgets(conn):
    words = [f"word{n}" for n in range(1000)]
    lexical.put(conn, [row(n, " ".join(words[n : n + 10])) for n in range(0, 1000, 10)])
    for number in range(2000, 3100):
        lexical.put(conn, [row(number, "forget this")])
        conn.commit()
        full_text.merge(conn)
        full_text.remove(conn, [number])
        full_text.merge(conn)
        conn.commit()
    assert set(found(conn, "word500")) == {500}
    assert found(conn, "forget") == {}


@pytest.mark.parametrize("worn", [False, True])
def test_no_removed_word_remains_in_a_merged_index(conn, monkeypatch, worn):
    monkeypatch.setattr(full_text, "WORN", 0 if worn else full_text.WORN)
    lexical.put(conn, [row(1, "quibblewick was here"), row(2, "others too")])
    [gone, stays] = [
        full_text.terms(scope, words)
        for scope, words in conn.execute("SELECT scope, words FROM lexical_words ORDER BY row")
    ]
    full_text.remove(conn, [1])
    full_text.merge(conn)
    conn.commit()
    # Where a term begins as the one before it, only the rest of it stands there.
    kept = b"".join(block for (block,) in conn.execute("SELECT block FROM lexical_data"))
    assert all(term[2:].encode() in kept for term in stays)
    assert not any(term[2:].encode() in kept for term in gone)
    assert set(found(conn, "others")) == {2}


BREAKS = {
    "more levels than FTS5 takes": "UPDATE lexical_data SET block = x'00000000' || x'8f51' || x'0000'"
    " || zeroblob(4002) WHERE id = 10",
    "its list of levels gone": "DELETE FROM lexical_data",
    "of a format nobody knows": "UPDATE lexical_config SET v = 99 WHERE k = 'version'",
    "a table of it gone": "DROP TABLE lexical_config",
}


@pytest.mark.parametrize("statement", BREAKS.values(), ids=BREAKS)
def test_a_broken_index_is_told_and_made_anew(tmp_path, statement):
    def opened():
        return sqlite3.connect(tmp_path / "x", isolation_level=None)

    with closing(opened()) as conn:
        prepare(conn)
        lexical.put(conn, [row(1, "hello there")])
        assert not full_text.broken(conn)
        conn.execute(statement)
    with closing(opened()) as beside, closing(opened()) as conn:
        assert full_text.broken(beside)
        conn.execute("BEGIN IMMEDIATE")
        full_text.empty(conn)
        lexical.put(conn, [row(2, "hello again")])
        conn.execute("COMMIT")
        for one in (conn, beside):
            assert not full_text.broken(one)
            assert set(found(one, "hello")) == {2}
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_locked_index_is_not_taken_for_a_broken_one(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as conn:
        prepare(conn)
        conn.execute("BEGIN EXCLUSIVE")
        with (
            closing(sqlite3.connect(tmp_path / "x", timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            full_text.broken(other)


def test_bm25_by_hand(conn):
    lexical.put(conn, [row(1, "red car red"), row(2, "blue car"), row(3, "green house here now")])
    mean, k1, b = 3.0, 0.9, 0.4
    idf = {"red": math.log1p(2.5 / 1.5), "car": math.log1p(1.5 / 2.5)}
    norm = {1: k1 * (1 - b + b * 3 / mean), 2: k1 * (1 - b + b * 2 / mean)}
    one = (idf["red"] * 2 * 1.9 / (2 + norm[1]) + idf["car"] * 1.9 / (1 + norm[1])) / sum(idf.values())
    two = idf["car"] * 1.9 / (1 + norm[2]) / sum(idf.values())
    scores = found(conn, "red car")
    assert one > 1 > two  # a text that holds every term and more is capped
    assert scores[1] == pytest.approx((1.0, 1.0))
    assert scores[2] == pytest.approx((two, two))


def test_a_mean_text_holding_every_term_once_scores_one(conn):
    lexical.put(conn, [row(1, "red car"), row(2, "blue house")])
    assert found(conn, "red car")[1] == pytest.approx((1.0, 1.0))


def test_a_repeated_query_word_counts_once(conn):
    lexical.put(conn, [row(1, "red car"), row(2, "blue car")])
    assert found(conn, "red red red car") == found(conn, "car red")


def test_speaker_and_date_count_in_one_view_and_earlier_turns_in_the_other(conn):
    said = row(1, "yes I did", speaker="Melanie", time=MAY_7, before=("Did you paint?", "The sunrise?"))
    lexical.put(conn, [said, row(2, "something else entirely")])
    for query in ("Melanie", "May 2023", "7 May", "Sunday", "2023"):
        dated, window = found(conn, query)[1]
        assert dated > 0
        assert window == 0
    dated, window = found(conn, "painted sunrise")[1]
    assert dated == 0
    assert window > 0


def test_the_date_reads_in_the_zone_of_the_given_time(conn):
    late = datetime(2023, 4, 30, 23, 30, tzinfo=UTC).astimezone(timezone(timedelta(hours=2)))
    lexical.put(conn, [row(1, "x", time=late)])
    assert found(conn, "May")
    assert not found(conn, "April")


def test_known_is_the_share_of_the_query_that_any_text_holds(conn):
    lexical.put(conn, [row(1, "red car"), row(2, "blue house")])
    queries = [stems(text) for text in ("red car", "red zebra", "zebra", "")]
    full, half, none, empty = lexical.score(conn, "mine", "raw", queries)
    assert full.known == pytest.approx(1.0)
    assert 0 < half.known < 0.5  # the unknown word would be the rarer, heavier one
    assert none.known == empty.known == 0.0


def test_other_scopes_and_granularities_change_no_score_by_a_bit(conn):
    mine = [row(n, f"red car number {n} {'long ' * (n % 7)}", speaker="Ann") for n in range(20)]
    lexical.put(conn, mine)
    query = "red car 7 long Ann"
    before = found(conn, query)
    theirs = [row(100 + n, f"red red car long {n}", scope=f"theirs{n % 9}") for n in range(3000)]
    lexical.put(conn, theirs)
    lexical.put(conn, [row(9000, "red car long", granularity="fact")])
    assert found(conn, query) == before
    assert len(before) == 20


def test_a_scope_never_matches_by_prefix_or_by_query_text(conn):
    lexical.put(conn, [row(1, "red", scope='["ana","default"]'), row(2, "red", scope='["ana2","default"]')])
    assert set(found(conn, "red", scope='["ana","default"]')) == {1}
    token = conn.execute("SELECT scope FROM lexical_words WHERE row = 2").fetchone()[0]
    assert set(found(conn, f"{token} red", scope='["ana","default"]')) == {1}


def test_queries_score_in_company_as_alone(conn):
    lexical.put(conn, [row(n, f"red car {n} green door {n % 3} tree") for n in range(30)])
    queries = [stems(text) for text in ("green tree 2", "red car 1 door", "car", "", "zebra")]
    together = lexical.score(conn, "mine", "raw", queries)
    for query, scores in zip(queries, together, strict=True):
        [alone] = lexical.score(conn, "mine", "raw", [query])
        assert alone.rows.tolist() == scores.rows.tolist()
        assert alone.views.tolist() == scores.views.tolist()
        assert alone.known == scores.known


def test_staged_rows_score_as_if_they_were_in_the_index(conn):
    texts = [row(n, f"red car {n % 4} door", speaker="Ann", before=("a tree",)) for n in range(10)]
    lexical.put(conn, texts[:7])
    apart = found(conn, "red car 2 Ann tree", extra=texts[7:])
    lexical.put(conn, texts[7:])
    assert found(conn, "red car 2 Ann tree") == apart
    assert found(conn, "red car 2 Ann tree", extra=texts[7:]).keys() == apart.keys()


def test_put_replaces_and_remove_and_renew_take_out(conn):
    lexical.put(conn, [row(1, "red car"), row(2, "red door"), row(3, "red tree")])
    lexical.put(conn, [row(1, "blue car")])
    assert set(found(conn, "red")) == {2, 3}
    full_text.remove(conn, [2, 77])
    assert set(found(conn, "red")) == {3}
    full_text.empty(conn)
    assert found(conn, "red") == {}


def test_every_kind_of_character_a_token_can_hold_is_one_term_of_the_index(conn):
    sample = "a+b.c-d_e%f@x.test c++ c# naïve 𝔘nicode Ünïcode 東京 한국 👍 ½ ² ௧"
    lexical.put(conn, [row(1, sample)])
    for stem in stems(sample):
        assert set(found(conn, stem)) == {1}, unicodedata.name(stem[0])


# Traits


TRAITS = {
    "QUESTION": lexical.QUESTION, "FIRST_PERSON": lexical.FIRST_PERSON, "NUMBER": lexical.NUMBER,
    "CAPITAL": lexical.CAPITAL, "TIME": lexical.TIME,
}  # fmt: skip


def test_traits_of_a_text():
    for text, expected in [
        ("Have you seen it?", {"QUESTION"}),
        ("Have you seen it? [image: a photo of a dog]", {"QUESTION"}),
        ("本当ですか？", {"QUESTION"}),
        ("It was fine. Was it? It was.", set()),
        ("I've seen it", {"FIRST_PERSON"}),
        ("that is ours", {"FIRST_PERSON"}),
        ("three of them", {"NUMBER"}),
        ("room 12b", {"NUMBER"}),
        ("a cat", set()),
        ("we stayed in Lisbon", {"FIRST_PERSON", "CAPITAL"}),
        ("Lisbon", set()),
        ("so kind, Bo, and thanks Ann", set()),
        ("it rained yesterday", {"TIME"}),
        ("", set()),
    ]:
        found = lexical.traits_of(text, MAY_7, ("Ann", "Bo", None))
        assert {name for name, flag in TRAITS.items() if found & flag} == expected, text


def test_without_a_time_nothing_says_when():
    assert not lexical.traits_of("it rained yesterday", None, ()) & lexical.TIME
