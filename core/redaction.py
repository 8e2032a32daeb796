"""Taking secrets out of text before it is stored, embedded or shown to a model.

What is found becomes `[redacted: kind]`. The same text always gives the same text, and one that was redacted
stays as it is, so that a message handed in again is still the same message. Patterns find what looks like a
secret, not what is one: they miss some and take some harmless text; see SECURITY.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from memcycle.core.entry import Entry
from memcycle.core.turn import Turn

SecretKind = Literal["private key", "password", "token", "api key", "card"]
SECRET_KINDS: tuple[SecretKind, ...] = get_args(SecretKind)

ENTRY_FIELDS = (
    "text", "title", "quote", "speaker", "entities", "persons", "locations", "topics", "keywords", "metadata",
)  # fmt: skip
"""Fields of an entry that hold words. Ids, names of users and sessions, and times are left alone."""

_IDENTITY = frozenset({"message_id"})
"""Keys of metadata that say which message it is: changed, the same message would be another."""

_KIND = re.compile(r"[a-z0-9][a-z0-9 _-]{0,31}")
Stored = TypeVar("Stored", Turn, Entry)


class Redact(BaseModel):
    """Which secrets are taken out of text; all common kinds by default.

    Attributes:
        kinds: Common kinds: PEM and PGP private keys, passwords in URLs and beside their name, bearer tokens
            and JWTs, API keys of the usual makers and beside their name, payment cards (checked by Luhn).
        patterns: Regular expressions of your own by kind. Of one with a group named `secret` that group is
            taken out, else the whole match.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: tuple[SecretKind, ...] = SECRET_KINDS
    patterns: dict[str, str] = Field(default_factory=dict)

    @field_validator("patterns")
    @classmethod
    def _usable(cls, patterns: dict[str, str]) -> dict[str, str]:
        for kind, pattern in patterns.items():
            if not _KIND.fullmatch(kind):
                raise ValueError(
                    f"{kind!r} is no kind: lower case letters, digits, spaces, - and _, 32 at most"
                )
            try:
                compiled = re.compile(pattern)
            except re.error as error:
                raise ValueError(f"the pattern of {kind!r} is no regular expression: {error}") from error
            if compiled.match(""):
                raise ValueError(
                    f"the pattern of {kind!r} matches no text at all; it would find it everywhere"
                )
        return patterns


class _Rule(NamedTuple):
    """A pattern, and what else must hold of what it finds."""

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


class Redactor:
    """Takes out what a `Redact` names; without one it leaves all text as it is."""

    def __init__(self, redact: Redact | None) -> None:
        own = {} if redact is None else redact.patterns
        kinds = () if redact is None else redact.kinds
        self._rules = [
            *(_Rule(kind, re.compile(pattern)) for kind, pattern in own.items()),
            *(rule for rule in _COMMON if rule.kind in kinds),
        ]
        self._names = [(kind, pattern) for kind, pattern in _NAMES.items() if kind in kinds]
        self._marks = re.compile(f"({'|'.join(re.escape(mark(kind)) for kind in (*own, *SECRET_KINDS))})")

    def text(self, text: str) -> str:
        """The text with its secrets as `[redacted: kind]`."""
        while True:
            # Once more after each change: what stands beside a mark may be a secret only now.
            after = self._once(text)
            if after == text:
                return text
            text = after

    def data(self, value: Any) -> Any:
        """JSON data without the secrets in its texts, and without the text under a key such as `password`."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._value(key, one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.data(one) for one in value)
        return value

    def turn(self, turn: Turn) -> Turn:
        """The turn as it may be stored, at its place and under its id."""
        return _changed(turn, {"text": self.text(turn.text), "speaker": self.text(turn.speaker)})

    def entry(self, entry: Entry) -> Entry:
        """The entry as it may be stored. Its id is not derived anew."""
        return _changed(entry, {name: self.data(getattr(entry, name)) for name in ENTRY_FIELDS})

    def row(self, row: Any) -> Any:
        """An exported entry as it may be stored; what is no object is left for its reader to refuse."""
        if not isinstance(row, Mapping):
            return row
        return {key: self.data(value) if key in ENTRY_FIELDS else value for key, value in row.items()}

    def _value(self, key: Any, value: Any) -> Any:
        if key in _IDENTITY:
            return value
        if isinstance(value, str) and value and not self._marks.fullmatch(value):
            kind = next((kind for kind, name in self._names if name.fullmatch(str(key))), None)
            if kind is not None:
                return mark(kind)
        return self.data(value)

    def _once(self, text: str) -> str:
        for rule in self._rules:
            parts = self._marks.split(text)
            parts[::2] = ["".join(_replaced(rule, part)) for part in parts[::2]]
            text = "".join(parts)
        return text


def mark(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"[redacted: {kind}]"


def is_card(number: str) -> bool:
    """Whether it is the number of a payment card: of a known issuer's length, its last digit right (Luhn)."""
    digits = re.sub(r"[ -]", "", number)
    if not _ISSUED.fullmatch(digits):
        return False
    doubled = (2 * int(digit) if place % 2 else int(digit) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0  # noqa: PLR2004 - two digits


def _changed(stored: Stored, fields: Mapping[str, Any]) -> Stored:
    changed = {name: value for name, value in fields.items() if value != getattr(stored, name)}
    return stored.model_copy(update=changed) if changed else stored


def _replaced(rule: _Rule, text: str) -> Iterator[str]:
    """The parts of a text without marks, what the rule finds in it replaced."""
    at = done = 0
    while found := rule.pattern.search(text, at):
        start, end = found.span("secret" if "secret" in rule.pattern.groupindex else 0)
        if start < end and rule.holds(text[start:end]):
            yield text[done:start]
            yield mark(rule.kind)
            at = done = end
        else:
            at = max(found.end(), at + 1)
    yield text[done:]


def _is_odd(value: str) -> bool:
    """Whether it looks like no word of a sentence: "my password is important" gives nothing away."""
    return bool(re.search(r"[\d_@#$%^&*+=~]|[a-z][A-Z]|\w[!?]\w", value))


_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}"
    r"|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12}"
)
_PASSWORD = r"(?:pass(?:word|wd|phrase|code)|passwort|kennwort|pwd)"  # noqa: S105 - words for one
_KEY = r"(?:(?:api|access|secret|account|auth|private)[ _-]?(?:key|token|secret)|client[ _-]?secret)"
_SET = r"[\"']?\s*[:=]\s*[\"']?"
_SAID = r"\s+(?:is|ist)\s+[\"']?"
_WORD = r"(?P<secret>[^\s\"']{3,}[^\s\"'.,;)])"

_NAMES = {
    "password": re.compile(rf"\w*?{_PASSWORD}", re.IGNORECASE),
    "api key": re.compile(rf"\w*?{_KEY}", re.IGNORECASE),
    "token": re.compile(r"authorization|bearer|(?:refresh|id)[_-]?token", re.IGNORECASE),
}
"""Keys of JSON data whose value is a secret."""

_COMMON = [
    _Rule(
        "private key",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
            re.DOTALL,
        ),
    ),
    _Rule("password", re.compile(r"(?<=://)[^\s:@/]{0,200}:(?P<secret>[^\s/]{1,200})@")),
    _Rule(
        "token",
        re.compile(r"\b(?:bearer|basic)\s+(?P<secret>[a-z0-9._~+/-]{15,}[a-z0-9_~+/-]=*)", re.IGNORECASE),
        _is_odd,
    ),
    _Rule("token", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    _Rule("api key", re.compile(r"\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{16,}"), _is_odd),
    _Rule(
        "api key",
        re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|shpat_)[A-Za-z0-9_-]{16,}"),
    ),
    _Rule("api key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    _Rule("api key", re.compile(r"\bAIza[\w-]{35}")),
    _Rule("api key", re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{10,}")),
    _Rule("api key", re.compile(r"\bSG\.[\w-]{16,}\.[\w-]{16,}")),
    _Rule(
        "api key",
        re.compile(rf"\b{_KEY}(?:{_SET}|{_SAID})(?P<secret>[\w./+~-]{{7,}}[\w/+~-]=*)", re.IGNORECASE),
        _is_odd,
    ),
    _Rule("password", re.compile(rf"{_PASSWORD}{_SET}{_WORD}", re.IGNORECASE)),
    _Rule("password", re.compile(rf"{_PASSWORD}{_SAID}{_WORD}", re.IGNORECASE), _is_odd),
    _Rule(
        "card",
        # A look ahead, so that a number that is none does not hide one which begins inside it.
        re.compile(
            r"(?<!\d)(?=(?P<secret>\d{13,19}|\d{4}([ -])\d{4}\2\d{4}\2\d{1,7}|\d{4}([ -])\d{6}\3\d{4,5})"
            r"(?!\d))\d"
        ),
        is_card,
    ),
]
