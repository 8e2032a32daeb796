"""Words, stems and token counts of a text in any language, without a model or a download.

English is stemmed (Snowball); other alphabets are kept as words. Chinese, Japanese and Korean, and Thai, Lao,
Burmese and Khmer, which are not spaced into words, become character bigrams: they cut what is asked and what
was said alike, which a dictionary does not promise. No function here raises on any text.

`lru_cache` counts entries: a few thousand sentences are a megabyte, as many documents are gigabytes.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import snowballstemmer

CUTTING = "2"
"""Which way `tokenize` cuts texts: another one wherever a text gives other tokens, so that homes follow."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set: long lists stay readable as plain lines."""
    return frozenset(text.split())


F = TypeVar("F", bound=Callable[..., Any])

LONG = 2_000
"""Characters; what is longer is a document, not a saying."""
FEW = 32
"""Documents that are kept: those at hand."""


def per_text(size: int, length: Callable[[Any], int] = len) -> Callable[[F], F]:
    """Caches a function of a text, and of more if it takes more: its last `size` results, of long texts few.

    Args:
        size: Results at most.
        length: Characters of the first argument, where that is more than a text.
    """

    def wrap(read: F) -> F:
        short, long = lru_cache(size)(read), lru_cache(FEW)(read)

        @wraps(read)
        def of(text: Any, *rest: Any) -> Any:
            return (short if length(text) <= LONG else long)(text, *rest)

        return cast("F", of)

    return wrap


STOPWORDS = word_set(
    """
    a about above after again against all also am an and any are aren arent as at be because been before
    being below between both but by can cannot cant could couldnt d did didnt do does doesnt doing don dont
    down during each few for from further had hadnt has hasnt have havent having he hed hell her here heres
    hers herself hes him himself his how hows i id if ill im in into is isnt it its itself ive just ll m me
    more most mustnt my myself no nor not of off on once only or other our ours ourselves out over re s
    same shall shant she shed shes should shouldnt so some such t than that thats the their theirs them
    themselves then there theres these they theyd theyll theyre theyve this those through to too under until
    up us ve very was wasnt we wed were werent weve what whats when whens where wheres which while who whom
    whos whose why whys will with wont would wouldnt you youd youll your youre yours yourself yourselves
    youve
    """
)
"""English function words, as `tokenize` writes them. Months and names (may, mark) are not among them."""

# Combining marks of the scripts whose words contain them; Python's \w leaves them out.
_MARKS = "".join(chr(c) for c in range(0x300, 0x1B00) if unicodedata.category(chr(c)).startswith("M"))
_CHAR = rf"(?:[^\W_]|[{_MARKS}])"
_ASIAN = "".join(
    chr(c)
    for first, last in (
        (0xE00, 0xEFF),
        (0x1000, 0x109F),
        (0x1780, 0x17FF),
        (0xA9E0, 0xA9FF),
        (0xAA60, 0xAA7F),
    )
    for c in range(first, last + 1)
    if unicodedata.category(chr(c))[0] in "LM"
)
"""Letters and marks of Thai, Lao, Burmese and Khmer."""
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    f"\U00020000-\U0003134f{_ASIAN}"
)
_EMOJI = (
    "\u203c\u2049\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001faff"  # all but the skin tones
)
_MAIL = r"[a-z0-9][a-z0-9._%+-]{0,63}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}"

_TOKEN = re.compile(
    rf"""
      (?P<mail>{_MAIL})
    | (?P<code>(?<![^\W_])[a-z](?:\+\+|\#)(?![^\W_]))
    | (?P<unspaced>[{_UNSPACED}]+)
    | (?P<number>(?<!\w)\d+(?:[.,]\d+)+(?!\w))
    | (?P<word>(?:(?![{_UNSPACED}]){_CHAR})+(?:['’ʼ](?:(?![{_UNSPACED}]){_CHAR})+)*)
    | (?P<emoji>[{_EMOJI}])
    """,
    re.VERBOSE,
)
_APOSTROPHE = re.compile(r"['’ʼ]")
_ENGLISH = re.compile(r"[a-z]{3,}\Z")
_PIECE = re.compile(
    rf"(?P<ascii>['’]?[A-Za-z]+)|(?P<digits>\d{{1,3}})|(?P<unspaced>[{_UNSPACED}])|(?P<emoji>[{_EMOJI}])|(?P<word>\w+)|[^\w\s]"
)
_ELISION = 2
"""Longest first part that counts as a prefix of a name or noun: O'Brien, d'Arc, l'homme, qu'il."""
_LONGEST = 64
"""Characters of the longest word that is looked at for its stem."""


_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
"""Hyphens and spaces of no width, joiners, marks of direction: they are no part of a word, and end none."""
_BREAKS = re.compile("[\u00ad\u200b\u2060\ufeff]")
_CONTRACTED = word_set("t s d m re ve ll")


def unbroken(text: str) -> str:
    """The text without hyphens and spaces of no width, which break words that no reader sees broken."""
    return text if text.isascii() else _BREAKS.sub("", text)


def _fold(text: str) -> str:
    """Without case, width, what cannot be seen, and the dot that tells Turkish i's apart."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold())
    return folded.replace("ı", "i").replace("i\u0307", "i")


def unaccented(text: str) -> str:
    """Without accents, which people leave out."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _word(word: str) -> Iterator[str]:
    """Possessives lose their 's; contractions are joined.

    O'Brien is also found as Brien, and a name without the ending that an apostrophe sets off (İzmir'den).
    """
    parts = _APOSTROPHE.split(word)
    if len(parts) > 1 and parts[-1] == "s":
        parts.pop()
    yield "".join(parts)
    if len(parts) > 1 and len(parts[0]) <= _ELISION < len(parts[-1]):
        yield parts[-1]
    elif len(parts) == 2 and len(parts[0]) > _ELISION and parts[1] not in _CONTRACTED:  # noqa: PLR2004 - name and ending
        yield parts[0]


@per_text(4096)
def _tokens(text: str) -> tuple[str, ...]:
    """Cached: one text is taken apart anew by search, Judge and checks, and against many others."""
    return tuple(token for token in _split(text) if token)


def _split(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(_fold(text)):
        found = match.group()
        if match.lastgroup == "word":
            yield from _word(found)
        elif match.lastgroup == "unspaced":
            yield from (found[at : at + 2] for at in range(max(len(found) - 1, 1)))
        elif match.lastgroup == "number":
            yield found.replace(",", "")
        elif match.lastgroup == "mail":
            yield found
            yield from re.split(r"[^a-z0-9]+", found)
        else:
            yield found


def tokenize(text: str) -> list[str]:
    """Tokens in order, casefolded and NFKC-normalised; none holds a space, a quote or a NUL.

    Words lose a possessive 's and inner apostrophes (`don't` -> `dont`); `c++`, `c#` stay whole; an e-mail
    address gives itself and its parts; a run of a script without spaces gives its character bigrams; an emoji
    is one token (skin tones, joiners and variation selectors are dropped).
    """
    return list(_tokens(text))


class _Stemmer(threading.local):
    """A Snowball stemmer a thread: the pure Python one keeps its cursor on itself."""

    def __init__(self) -> None:
        self.stem = snowballstemmer.stemmer("english").stemWord


_STEMMER = _Stemmer()


@lru_cache(maxsize=8192)
def _stem(token: str) -> str:
    if token.isdecimal() and len(token) <= _ELISION:
        return token.lstrip("0") or "0"  # 07 May is 7 May
    plain = token
    if not token.isascii():
        bare = unaccented(token)
        plain = bare if bare.isascii() and bare else token  # José is also typed Jose
    return str(_STEMMER.stem(plain)) if _ENGLISH.match(plain) else plain


def _stemmed(token: str) -> str:
    """What is longer than any word (base64) is left as it is, and not kept in the cache of words."""
    return _stem(token) if len(token) <= _LONGEST else token


def stems(text: str) -> list[str]:
    """The stem of every token, in order: English Snowball for Latin words, other tokens as they are.

    Latin accents are dropped, so that `José` and `Jose` meet; `07` becomes `7`.
    """
    return [_stemmed(token) for token in _tokens(text)]


@per_text(1024)
def distinct_stems(text: str) -> frozenset[str]:
    """`stems`, each once. Cached: one text is asked for many words."""
    return frozenset(stems(text))


def content_stems(text: str) -> list[str]:
    """`stems` without those of English function words; empty for a text of function words only."""
    return [_stemmed(token) for token in _tokens(text) if token not in STOPWORDS]


@per_text(4096)
def approx_tokens(text: str) -> int:
    """About how many tokens a GPT tokenizer (cl100k) makes of the text, without its tables.

    A space-led English word is one token up to eight letters and one more a further five; three digits,
    a character of a script without spaces and a punctuation mark are one each, an emoji is two; other scripts
    take a token for two letters.
    """
    total = 0
    for match in _PIECE.finditer(text):
        size = match.end() - match.start()
        if match.lastgroup == "ascii":
            total += 1 + max(0, size - 4) // 5
        elif match.lastgroup == "word":
            total += (size + 1) // 2
        elif match.lastgroup == "emoji":
            total += 2
        else:
            total += 1
    return total


@lru_cache(maxsize=1024)
def _names_pattern(names: frozenset[str]) -> re.Pattern[str] | None:
    """Whole names before their parts. A name that is also a function word (Will) only with a capital."""
    words = {name for name in names if name.strip()}
    words |= {part for name in words for part in name.split() if len(part) > _ELISION}
    ordered = sorted(words, key=lambda name: (-len(name), name))
    exact = [name for name in ordered if name.casefold() in STOPWORDS]
    loose = [name for name in ordered if name.casefold() not in STOPWORDS]
    either = [re.escape(name) for name in exact] + [f"(?i:{re.escape(name)})" for name in loose]
    return re.compile(rf"(?<!\w)(?:{'|'.join(either)})(?:['’]s)?(?!\w)") if either else None


def strip_names(text: str, names: Iterable[str]) -> str:
    """The text without these names, their parts and their possessives; spaces tidied.

    What a person is asked about says more than who is asked: static vectors find the turn better without
    the name. May come out blank when the text is only a name.
    """
    pattern = _names_pattern(frozenset(names))
    return " ".join((pattern.sub(" ", text) if pattern else text).split())


_FORMS = """
    be was were been am is are; become became; begin began begun; bite bit bitten; blow blew blown; break
    broke broken; bring brought; build built; buy bought; catch caught; choose chose chosen; come came;
    deal dealt; dig dug; do did done; draw drew drawn; drink drank drunk; drive drove driven; eat ate
    eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown; forget forgot
    forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went
    gone; grow grew grown; hang hung; have had has; hear heard; hide hid hidden; hold held; keep kept;
    know knew known; lay laid; lead led; leave left; lend lent; lose lost; make made; mean meant; meet
    met; pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen;
    sell sold; send sent; shake shook shaken; shine shone; shoot shot; show shown; sing sang sung; sink
    sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; stand stood; steal stole stolen;
    stick stuck; strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took
    taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand
    understood; wake woke woken; wear wore worn; weave wove woven; win won; write wrote written; child
    children; man men; woman women; foot feet; tooth teeth; mouse mice; person people; wife wives
"""
IRREGULAR: dict[str, str] = {
    form: base for base, *forms in (group.split() for group in _FORMS.split(";")) for form in forms
}
"""Base form by irregular form, as written ("went": "go"); plurals of nouns are among them."""
_BASE: dict[str, str] = {stem: stems(base)[0] for form, base in IRREGULAR.items() for stem in stems(form)}
CHANGING = frozenset(_BASE.values())
"""Stems whose forms need not begin as they do ("sell": "sold")."""


@per_text(4096)
def base_stems(text: str) -> tuple[str, ...]:
    """The stems of a text with irregular forms brought to their base ("went" and "go" meet); in order.

    Cached: the roles of one question read the same sentences.
    """
    return tuple(based(stems(text)))


def based(words: Iterable[str]) -> list[str]:
    """Stems with those of irregular forms replaced by that of their base."""
    return [_BASE.get(stem, stem) for stem in words]


_WORDS = {
    "live": "live lives moved relocated resides residence",
    "work": "work works job occupation profession career teaches employed",
    "favourit": "favourite favorite",
    "colour": "colour color",
    "marri": "married marriage spouse husband wife wedding engaged divorced single relationship",
}
_CONCEPTS = {stem: concept for concept, words in _WORDS.items() for stem in stems(words)}


def by_concept(words: Iterable[str]) -> frozenset[str]:
    """Stems with those of one concept made the same."""
    return frozenset(_CONCEPTS.get(word, word) for word in words)
