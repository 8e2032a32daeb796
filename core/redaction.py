"""Taking secrets out of text before it is stored, embedded or shown to a model.

What is found becomes `[redacted: kind]`. The same text always gives the same text, and one that was redacted
stays as it is, so that a message handed in again is still the same message. Patterns find what looks like a
secret, not what is one: they miss some and take some harmless text; see SECURITY.md. They look at the text
folded: without invisible characters and accents, every digit, space, dash and quotation mark a plain one.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import Field, field_validator

from memcycle.core.entry import Entry
from memcycle.core.scope import Data
from memcycle.core.turn import Turn, sound, sound_data

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


class Redact(Data):
    """Which secrets are taken out of text; all common kinds by default.

    Attributes:
        kinds: Common kinds: PEM and PGP private keys, passwords and PINs in URLs and beside their name in
            several languages, bearer tokens and JWTs, API keys of the usual makers and beside their name,
            payment cards (checked by Luhn).
        patterns: Regular expressions of your own by kind, searched in the text as it stands and folded. Of
            one with a group named `secret` that group is taken out, else the whole match.
    """

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
                raise ValueError(f"the pattern of {kind!r} matches no text at all: it would do so everywhere")
        return patterns


class _Rule(NamedTuple):
    """A pattern, and what else must hold of what it finds."""

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True
    folds: bool = True


class _Fold(dict[int, str]):
    """What each character is folded to, by its code, as `str.translate` asks."""

    def __missing__(self, code: int) -> str:
        char, kind = chr(code), unicodedata.category(chr(code))
        if kind == "Nd":
            self[code] = str(unicodedata.decimal(char))
        elif kind == "Pd" or char == "\N{MINUS SIGN}":
            self[code] = "-"
        elif kind in ("Pi", "Pf") or char in "„‚":
            self[code] = '"'
        else:
            parts = unicodedata.normalize("NFKD", char)
            bare = "".join(one for one in parts if unicodedata.category(one) not in ("Mn", "Me", "Cf"))
            self[code] = unicodedata.normalize("NFC", bare)  # a Korean syllable is one character again
        return self[code]


_FOLD = _Fold()


class Redactor:
    """Takes out what a `Redact` names; without one it leaves all text as it is."""

    def __init__(self, redact: Redact | None) -> None:
        asked = redact or Redact(kinds=())
        own = [(kind, re.compile(pattern)) for kind, pattern in asked.patterns.items()]
        self._rules = [_Rule(*one, folds=folds) for one in own for folds in (False, True)]
        self._rules += [rule for rule in _COMMON if rule.kind in asked.kinds]
        self._names = {kind: pattern for kind, pattern in _NAMES.items() if kind in asked.kinds}
        kinds = (*asked.patterns, *SECRET_KINDS)
        self._marks = re.compile(f"({'|'.join(re.escape(mark(kind)) for kind in kinds)})")

    def text(self, text: str) -> str:
        """The text with its secrets as `[redacted: kind]`, and without what no store takes (`sound`)."""
        before, text = "", sound(text)
        while before != text:
            # Once more after each change: what stands beside a mark may be a secret only now.
            before, text = text, self._once(text)
        return text

    def data(self, value: Any) -> Any:
        """JSON data without the secrets in its texts, and without the text under a key such as `password`."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {sound_data(key): self._value(key, one) for key, one in value.items()}
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
        worded = (*ENTRY_FIELDS, "log")
        return {key: self.data(value) if key in worded else sound_data(value) for key, value in row.items()}

    def _value(self, key: Any, value: Any) -> Any:
        if key in _IDENTITY:
            return sound_data(value)
        if isinstance(value, str) and value and not self._marks.fullmatch(value):
            folded = str(key).translate(_FOLD)
            for kind, name in self._names.items():
                if name.fullmatch(folded):
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
    digits = re.sub(r"\D", "", number)
    if not _ISSUED.fullmatch(digits):
        return False
    doubled = (2 * int(digit) if place % 2 else int(digit) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0  # noqa: PLR2004 - two digits


def _changed(stored: Stored, fields: Mapping[str, Any]) -> Stored:
    changed = {name: value for name, value in fields.items() if value != getattr(stored, name)}
    return stored.model_copy(update=changed) if changed else stored


def _replaced(rule: _Rule, text: str) -> Iterator[str]:
    """The parts of a text without marks, what the rule finds in it replaced."""
    read = text.translate(_FOLD) if rule.folds and not text.isascii() else text
    places: list[int] | None = None
    at = done = 0
    while found := rule.pattern.search(read, at):
        start, end = found.span("secret" if "secret" in rule.pattern.groupindex else 0)
        if start < end and rule.holds(read[start:end]):
            places = places or _places(text, read)
            yield text[done : places[start]]
            yield mark(rule.kind)
            # What is invisible behind it goes along; a character folded to several goes whole.
            at, done = end, max(places[end], places[end - 1] + 1)
        else:
            at = max(found.end(), at + 1)
    yield text[done:]


def _places(text: str, read: str) -> list[int]:
    """Where in the text each character of its folded form stands, and the end."""
    if read is text:
        return [*range(len(text) + 1)]
    return [*(place for place, char in enumerate(text) for _ in _FOLD[ord(char)]), len(text)]


def _folded(pattern: str) -> re.Pattern[str]:
    """A pattern for folded text; its own words may be written as they are spelled."""
    return re.compile(pattern.translate(_FOLD), re.IGNORECASE)


def _beside(name: str, links: str, value: str) -> re.Pattern[str]:
    """A value that is said behind its name and one of the links."""
    return _folded(f"{name}(?:{links}){value}")


def _is_odd(value: str) -> bool:
    """Whether it looks like no word of a sentence: "my password is important" gives nothing away."""
    return bool(re.search(r"[\d_@#$%^&*+=~]|[a-z][A-Z]|\w[!?]\w", value))


def _is_made_up(value: str) -> bool:
    """Whether it has letters and digits and is no time or ordinal, nor a name such as 1Password."""
    mixed = re.search(r"\d", value) and re.search(r"[^\W\d_]", value)
    return bool(mixed) and not _NUMBERED.fullmatch(value)


_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}"
    r"|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12}"
)
_PASSWORD = (
    r"(?:pass[ _-]?(?:word|wd|phrase|code)|passwort|kennwort|pwd|mot de passe|contraseña|senha"  # noqa: S105 - words for one
    r"|palavra[ -]passe|parola d[\"']ordine|wachtwoord|hasło|пароль|密码|密碼|パスワード|비밀번호)"
)
_PIN = r"(?<![a-z])(?:pin|código pin|code pin|geheimzahl)(?:[ -]?(?:code|number|nummer))?"
_KEY = (
    r"(?:(?:api|access|secret|account|auth|private)[ _-]?(?:key|token|secret|schlüssel)|client[ _-]?secret"
    r"|clé (?:d[\"'])?api|clave (?:de )?api)"
)
_FOR = (
    r"(?:\s+(?:to|for|of|on|at|für|zum|zur|vom|von|pour|de|du|del|para|da|do|di|per|voor)(?:\s+[^\s.!?;:=]+){1,5}?"
    r"|\s*\([^()\n]{1,40}\))"
)
_IS = (
    r"(?:(?:[\"']s|\s+(?:is|was|are|will be|ist|war|lautet|heißt|est|était|es|era|é|è|jest|это)"
    r"|[?,]?\s+(?:it[\"']s|c[\"']est|das ist))"
    r"(?:\s+(?:now|still|just|simply|currently|jetzt|nun|maintenant|ahora))?|\s*[是为為はがは은는이가])"
)
_SET = rf"[\"']?(?:{_IS})?\s*(?:[:=]|[-=]>)\s*"
_SAID = rf"[\"']?(?:{_FOR}\s*[:=]|{_FOR}?{_IS})\s*"
_LOOSE = (
    rf"(?:{_FOR}?(?:\s+(?:is|was|has been|to|changed|set|reset|in|auf|en|a)){{1,3}}"
    r"|(?:\s+\w+){1,2}\s*[:=])?\s+"
)
_AS = "(?:as|is|als|ist|comme|est|como|es)"
_WORD = r"[\"']?(?P<secret>[^\s\"']{3,}[^\s\"'.,;)])"
_NO_LENGTH = r"(?!\S+\s+(?:char|digit|letter|zeichen|stellen|caract))"
_QUOTED = r"[\"'](?P<secret>[^\"'\n]{3,100})[\"']"
_DIGITS = r"[\"']?(?P<secret>\d(?:[ -]?\d){3,11})(?![\w-]|[.,:]\d)"


_NUMBERED = _folded(rf"\d[\d:.,/-]*[a-z]{{0,4}}|.*{_PASSWORD}.*")
_NAMES = {
    "password": _folded(rf"\w*?{_PASSWORD}|{_PIN}"),
    "api key": _folded(rf"\w*?{_KEY}"),
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
        re.compile(
            r"\b(?:(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|shpat_)[A-Za-z0-9_-]{16,}"
            r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b|AIza[\w-]{35}|xox[a-z]-[A-Za-z0-9-]{10,}|SG\.[\w-]{16,}\.[\w-]{16,})"
        ),
    ),
    _Rule(
        "api key",
        _beside(rf"\b{_KEY}", f"{_SET}|{_SAID}", r"[\"']?(?P<secret>[\w./+~-]{7,}[\w/+~-]=*)"),
        _is_odd,
    ),
    _Rule("password", _beside(_PASSWORD, f"{_SET}|{_SAID}", _QUOTED)),
    _Rule("password", _beside(_PASSWORD, _SET, _WORD)),
    _Rule("password", _beside(_PASSWORD, _SAID, _NO_LENGTH + _WORD), _is_odd),
    _Rule("password", _beside(_PASSWORD, _LOOSE, _WORD), _is_made_up),
    _Rule(
        "password",
        _folded(rf"\b(?P<secret>[^\s\"']{{4,64}})[\"']?\s+{_AS}\s+(?:\w{{1,20}}\s+){{0,3}}{_PASSWORD}"),
        _is_made_up,
    ),
    _Rule("password", _beside(_PIN, f"{_SET}|{_SAID}", _DIGITS)),
    _Rule(
        "card", _beside(r"\b(?:cvv2?|cvc2?|security code)", rf"{_SET}|{_SAID}|\s+", r"(?P<secret>\d{3,4})\b")
    ),
    _Rule(
        "card",
        # A look ahead, so that a number that is none does not hide one which begins inside it. The last is a
        # number in groups of any length, where no other digits stand beside it.
        re.compile(
            r"(?<!\d)(?=(?P<secret>\d{13,19}|\d{4}(?:[ ._/-]{1,3}\d{4}){2}[ ._/-]{1,3}\d{1,7}"
            r"|\d{4}[ ._/-]{1,3}\d{6}[ ._/-]{1,3}\d{4,5}"
            r"|(?<![\d+][ ._/-])(?<!\w)\d(?:[ _-]?\d){12,18}(?![ ._/-]?\d))(?!\d))\d"
        ),
        is_card,
    ),
]
