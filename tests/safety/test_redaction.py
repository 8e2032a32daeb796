"""Finding secrets in text: each kind, nothing else, always the same way."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from memcycle import Settings
from memcycle.core.entry import Entry
from memcycle.core.errors import BadInput
from memcycle.core.messages import WORDED, read_messages
from memcycle.core.redaction import ENTRY_FIELDS, SECRET_KINDS, Redact, Redactor, is_card, mark
from tests.banks import fact, said
from tests.safety.secrets_said import HARMLESS, IN_CONTEXT, SECRETS

ALL = Redactor(Redact())
NOW = datetime(2024, 5, 8, tzinfo=UTC)
PAIRS = [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]


@pytest.mark.parametrize(("kind", "secret"), PAIRS)
def test_a_secret_becomes_its_kind(kind, secret):
    for around in ("{}", "Here: {}, keep it.", "«{}»", "a\n{}\nb", "{{{}}}"):
        whole = around.format(secret)
        assert ALL.text(whole) in (around.format(mark(kind)), whole.partition(secret)[0] + mark(kind))


def test_a_secret_is_known_by_the_words_beside_it():
    for kind, around, secret in IN_CONTEXT:
        assert ALL.text(around.format(secret)) == around.format(mark(kind)), kind
        assert (
            ALL.text(f"{around.format(secret)}. That is all.") == f"{around.format(mark(kind))}. That is all."
        ), kind


def test_harmless_text_stays_as_it_is():
    for text in HARMLESS:
        assert ALL.text(text) == text, text


def test_a_number_that_is_none_hides_no_card_that_begins_inside_it():
    assert ALL.text("in 2024 4111 1111 1111 1111 was") == "in 2024 [redacted: card] was"


def test_cards_are_checked_by_issuer_and_luhn():
    for number, known in [
        ("4111111111111111", True),
        ("4111111111111110", False),
        ("378282246310005", True),
        ("30569309025904", True),
        ("0000000000000000", False),
        ("1111111111111117", False),
    ]:
        assert is_card(number) is known, number


def test_only_the_kinds_that_are_wanted():
    said = " ".join(secrets[0] for secrets in SECRETS.values())
    for kind in SECRET_KINDS:
        found = Redactor(Redact(kinds=(kind,))).text(said)
        assert [name for name in SECRET_KINDS if mark(name) in found] == ([kind] if kind in SECRETS else [])
    assert Redactor(None).text(said) == said
    assert Redactor(Redact(kinds=())).text(said) == said


def test_patterns_of_ones_own():
    own = Redact(kinds=(), patterns={"badge": r"\bB-\d{6}\b", "room": r"(?i)room (?P<secret>\w+)"})
    assert Redactor(own).text("B-123456 in room L2, not B-12") == (
        "[redacted: badge] in room [redacted: room], not B-12"
    )
    assert (
        Redactor(own).text("B-１２３\u200b456, Room\u00a0L2")
        == "[redacted: badge], Room\u00a0[redacted: room]"
    )
    assert Redactor(Redact(kinds=(), patterns={"city": "Zürich"})).text("in Zürich") == "in [redacted: city]"


@pytest.mark.parametrize(
    ("patterns", "says"),
    [
        ({"badge": "("}, "'badge'.*no regular expression"),
        ({"badge": r"\d*"}, "'badge'.*no text at all"),
        ({"Badge]": r"\d"}, "'Badge]' is no kind"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_by_name(patterns, says):
    with pytest.raises(ValidationError, match=says):
        Settings(redact=Redact(patterns=patterns))


def test_settings_take_a_switch_or_the_whole():
    for given_, kept in [(True, Redact()), ("true", Redact()), (False, None), ("0", None), (None, None)]:
        assert Settings(redact=given_).redact == kept, given_
        assert Settings().redact is None, given_


def test_the_environment_switches_it_and_an_argument_wins():
    assert Settings.from_env({"MEMCYCLE_REDACT": "true"}).redact == Redact()
    assert Settings.from_env({"MEMCYCLE_REDACT": "true"}, redact=False).redact is None
    with pytest.raises(BadInput, match="redact"):
        Settings.from_env({"MEMCYCLE_REDACT": "perhaps"})


def test_data_is_searched_whole_and_keys_name_secrets():
    value = {
        "password": "x",
        "DB_PASSWORD": "y",
        "api-key": "z",
        "notes": ["my password is hunter2", {"deep": ("sk-proj-abcDEF1234567890abcd", 7, None, True)}],
        "message_id": "4111111111111111",
        "Contraseña": "w",
        "pin": "4471",
        "monkey": "z",
        "spin": "left",
    }
    assert ALL.data(value) == {
        "password": mark("password"),
        "DB_PASSWORD": mark("password"),
        "api-key": mark("api key"),
        "notes": ["my password is [redacted: password]", {"deep": (mark("api key"), 7, None, True)}],
        "message_id": "4111111111111111",
        "Contraseña": mark("password"),
        "pin": mark("password"),
        "monkey": "z",
        "spin": "left",
    }


def test_a_turn_keeps_its_place_and_its_ids():
    turn = said(3, "my password is hunter2", message_id="4111111111111111", speaker="Ann")
    kept = ALL.turn(turn)
    assert kept == turn.model_copy(update={"text": "my password is [redacted: password]"})
    clean = said(3, "hello")
    assert ALL.turn(clean) is clean


def test_all_words_of_an_entry_are_searched():
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    names = dict.fromkeys(("entities", "persons", "locations", "topics", "keywords"), (secret,))
    more = {"title": secret, "quote": secret, "speaker": secret, "metadata": {"note": secret}}
    entry = fact(f"Owns {secret}", "D1:1", **names, **more)
    kept = ALL.entry(entry)
    assert secret not in kept.model_dump_json()
    assert kept.model_dump_json().count(mark("api key")) == 10
    assert ALL.row(json.loads(entry.model_dump_json())) == json.loads(kept.model_dump_json())


def test_what_is_no_entry_is_left_for_its_reader_to_refuse():
    for row in [7, None, "text", ["a"]]:
        assert ALL.row(row) is row, row


PARTS = st.sampled_from(
    [
        *(secret for _, secret in PAIRS),
        *(around.format(secret) for _, around, secret in IN_CONTEXT),
        *(mark(kind) for kind in SECRET_KINDS),
        "[redacted: ", "]", "password", ": ", "=", " is ", "://", "@", "/", "a", "9", "4111 ", "sk-",
        "-----END ", "\n", '"', "é", "Bearer ", "-----BEGIN PRIVATE KEY-----",
    ]
)  # fmt: skip
TEXT = st.lists(PARTS | st.text(max_size=4), max_size=10).map("".join)


@given(TEXT)
def test_what_was_redacted_stays_as_it_is(text):
    once = ALL.text(text)
    assert ALL.text(once) == once
    assert bool(once.strip()) == bool(text.strip())


@given(TEXT, st.sampled_from([r"\w+", r"[^x]", r"(?s).", r"re", r"\[", r"(?P<secret>\d)+"]))
def test_so_it_does_with_any_pattern(text, pattern):
    own = Redactor(Redact(patterns={"mine": pattern}))
    once = own.text(text)
    assert own.text(once) == once


@given(TEXT, st.sampled_from(PAIRS), TEXT)
def test_no_secret_is_left_beside_other_words(before, pair, after):
    kind, secret = pair
    assume(kind != "card")  # digits beside it make another number of it
    whole = f"{before} {secret} {after}"
    assert ALL.text(whole).count(secret) < whole.count(secret)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "a", "token", "message_id"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_data_keeps_its_shape(value):
    once = ALL.data(value)
    assert ALL.data(once) == once
    assert json.loads(json.dumps(once)) == once
    assert type(once) is type(value)


WORDLESS = {
    "id", "scope", "granularity", "kind", "pattern", "role", "turns", "related_turns", "event_time",
    "event_precision", "valid_from", "valid_until", "observed_at", "recorded_at", "expires_at", "importance",
    "confidence", "reinforcement", "access_count", "status", "supersedes", "superseded_by", "embedder",
    "actor", "prompt", "model", "pipeline",
}  # fmt: skip
"""Fields of an entry that hold ids, numbers, times or fixed words."""


def test_every_field_of_an_entry_is_redacted_or_holds_no_words():
    assert WORDLESS.isdisjoint(ENTRY_FIELDS)
    assert WORDLESS | set(ENTRY_FIELDS) == set(Entry.model_fields)


class _Noting(dict):
    """A message that notes which of its keys are asked for by name."""

    def __init__(self, message):
        super().__init__(message)
        self.keys_read = set()

    def get(self, key, default=None):
        self.keys_read.add(key)
        return super().get(key, default)


def test_every_key_that_a_message_is_read_by_is_redacted_or_holds_no_words():
    message = _Noting({"role": "user", "content": "I keep bees."})
    read_messages(message, session="main", zone=UTC, now=NOW)
    assert {"content", "speaker"} <= message.keys_read
    assert message.keys_read - set(WORDED) <= {"role", "type", "response_metadata", "lc"}
