"""Cutting a text into sentences without losing its places, and the words that make one deny."""

import re

from memcycle.core.language.tokens import word_set

_ABBREVIATIONS = word_set(
    """
    mr mrs ms dr prof st jr sr vs etc e.g i.e approx dept est inc ltd no vol fig jan feb mar apr jun jul
    aug sep sept oct nov dec a.m p.m u.s u.k ph.d
    """
)
NEGATION = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|nowhere|without|cannot|neither|nor|hardly)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words by which an English sentence denies something."""
_CORRECTING = re.compile(
    r"^\W*(?:(?:sorry|oh|ah|wait|no|oops|well)\W+)*(?:correction|i was wrong|i meant|i misspoke|my mistake"
    r"|actually|korrektur|ich meinte|rectificati(?:on|f)|je voulais dire|correcci[oó]n|quise decir|correzione"
    r"|volevo dire)\b"
    r"|\b(?:not|nicht|pas|non?) (?:(?:on|in|at|for|the|am|im|le|la|el|il) )*[^\W_][^,;]{0,30}?,? "
    r"(?:but|sondern|mais|sino|ma|bensì) \S"
    r"|\bnot (?:(?:on|in|at|the) )*(?=\w*\d)\S+(?: \w+)?[,;:] \S"
    r"|, (?:and )?not (?:(?:on|in|at|the) )*\S+(?: \S+)?\W*$",
    re.IGNORECASE,
)
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
"""Code in a message."""
_CAPTION = re.compile(r"\[image:[^\]]*\]", re.IGNORECASE)
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d"
# A run of points or of emoji is looked at once, from where it begins; from each of its places it would cost
# the square of its length.
_END = re.compile(
    rf"(?:(?<![.!?…])[.!?…]++[\"'”’)\]]*(?:\s*[{_EMOJI}]+)?(?=\s|$)|[。！？]+[」』”]?"
    rf"|(?<=\S)(?:(?<![{_EMOJI}])|(?<=\A[{_EMOJI}])|(?=\s))\s*[{_EMOJI}]++(?=\s+[A-Z]|\s*$)|\n+)"
)
_LAST_WORD = re.compile(r"([\w.]+)\.$")
_NEXT = re.compile(r"\s*(\S?)")
_LOOK_BACK = 64
"""Characters before a point that are read for its word: longer than any abbreviation, and no whole text."""


def split_sentences(text: str) -> list[tuple[int, int, str]]:
    """The sentences of a text as `(begin, end, text[begin:end])`, without surrounding white space.

    A point after an abbreviation or an initial, in a number or an address, does not end a sentence;
    an image caption `[image: ...]` is a piece of its own; a line break and an emoji before a capital
    end one. Everything but white space is in exactly one sentence.
    """
    pieces: list[tuple[int, int]] = []
    place = 0
    for caption in _CAPTION.finditer(text):
        pieces += _split(text, place, caption.start())
        pieces.append(caption.span())
        place = caption.end()
    pieces += _split(text, place, len(text))
    return [(begin, end, text[begin:end]) for begin, end in pieces]


def corrects(text: str) -> bool:
    """Whether a sentence of a text takes back what was said: "Correction: ...", "not the 22nd, the 23rd"."""
    return any(_CORRECTING.search(sentence) for _, _, sentence in split_sentences(text))


def _split(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    cuts = [match.end() for match in _END.finditer(text, begin, end) if not _goes_on(text, begin, match)]
    spans = zip([begin, *cuts], [*cuts, end], strict=True)
    return [trimmed for span in spans if (trimmed := _trim(text, *span))]


def _goes_on(text: str, begin: int, match: re.Match[str]) -> bool:
    """Whether a point is part of a word, or what follows begins in lower case after "..."."""
    mark, follows = match[0], _NEXT.match(text, match.end())
    after = follows[1] if follows else ""
    if mark == ".":
        word = _LAST_WORD.search(text, max(begin, match.end() - _LOOK_BACK), match.end())
        if word is None:
            return False
        name = word[1].lower()
        last = name.rsplit(".", 1)[-1]
        if name in _ABBREVIATIONS or (
            len(last) == 1 and last.isalpha() and word[1][-1].isupper() and name != "i"
        ):
            return not (name in ("a.m", "p.m", "etc") and after.isupper())
    return mark.startswith(("..", "…")) and after.islower()


def _trim(text: str, begin: int, end: int) -> tuple[int, int] | None:
    piece = text[begin:end]
    if not piece.strip():
        return None
    return begin + len(piece) - len(piece.lstrip()), begin + len(piece.rstrip())
