"""Whether one statement says what another says, or that and a detail more. By words, without a model.

Built for precision: a missed restatement leaves two true statements side by side, a false one takes down a
true memory. So it is not likeness that decides. Two statements that share nearly all their words and differ
in one (walnuts, cashews) are two statements, and so are two with the same words in another order (from Graz
to Oslo), in another tense, or with a word more that changes the sense (almost, refused to, the sister of).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from memcycle.core.language.tokens import (
    IRREGULAR,
    STOPWORDS,
    base_stems,
    per_text,
    stems,
    tokenize,
    unaccented,
    word_set,
)

Relation = Literal["same", "more", "less"]

_LOOSE = word_set(
    """
    a an the this that these those is are am was were be been being have has had having do does did doing
    and of to as who whom which so very just really quite also too
    """
)
"""Function words that one wording has and another has not, of the same statement."""
_PRONOUNS = word_set(
    """
    i me my myself you your yourself he him his himself she her hers herself it its itself we us our
    ourselves they them their themselves
    """
)
_ONE = {"at": "in", "on": "in"}
"""Prepositions of place and time that one wording has in place of another."""
_PAST = word_set("was were had did wasnt werent hadnt didnt")
_CHANGING = word_set(
    """
    not no never none nobody nothing nowhere nor neither cannot without hardly barely scarcely rarely seldom
    dont doesnt didnt isnt arent wasnt werent wont cant couldnt shouldnt wouldnt hasnt havent hadnt mustnt
    neednt aint nicht kein keine keinen keiner nie niemals ne pas jamais nunca jamás non mai não nem inte
    aldrig ikke aldri ei niet geen nooit nigdy не нет никогда
    if unless whether until till when whenever or either than instead rather except only but though although
    may might could would should must can will shall wouldnt
    maybe perhaps possibly probably apparently allegedly supposedly almost nearly partly briefly anymore yet
    again another other different new next last previous former formerly ex fake once twice longer
    half both all every each some many few most several any used dreamt forbade
    """
)
_RULING = frozenset(
    base_stems(
        "hope want wish plan intend try attempt fail refuse decline avoid stop quit cease start begin "
        "consider think believe say claim tell ask doubt deny dream imagine pretend expect suppose seem "
        "cancel postpone delay forget regret forbid prevent offer promise agree decide threaten need worry "
        "joke"
    )
)
"""Words whose addition makes another statement, whatever else is the same; the second in all their forms."""
_NUMBERS = word_set(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    million billion dozen couple first second third fourth fifth sixth seventh eighth ninth tenth
    """
)
_POINTING = word_set("to not of that who which whom")
"""What follows a word that rules the next: refused to sell, a photo of the tin, says that it rained."""
_ENDINGS = re.compile(r"(?:[a-z]?(?:ed|ing)|e?[sd]|ies?|e|y)?\Z")
_PAUSE = re.compile(r"[;:()\[\]{}–—\"“”]|,(?!\d)|\.(?=\s)")
_OWNER = re.compile(r"([^\W_]+)(?:['’]s\b|(?<=s)['’](?!\w))")
_NAMING = word_set("named called titled")
"""With adverbs in -ly the words that may follow right on the one they belong to: a puppy named Pixel. Others
may be the thing meant: walnut cookies."""


class _Word(NamedTuple):
    """A word that counts.

    Attributes:
        content: Whether it is no function word.
        joined: Whether a content word stands right before it, so that both may be one name for one thing;
            a past form before the word of a thing (brought roasted walnuts) makes no name.
        rules: Whether it may turn what follows into something said, wished or pictured.
    """

    form: str
    stem: str
    content: bool
    joined: bool
    rules: bool


class _Statement(NamedTuple):
    words: tuple[_Word, ...]
    stems: frozenset[str]
    content: frozenset[str]
    pronouns: frozenset[str]
    numbers: tuple[str, ...]
    owners: frozenset[str]
    past: bool


def content_of(text: str) -> frozenset[str]:
    """Stems of its content words: of two restatements one holds all that the other holds."""
    return _read(text).content


def restates(text: str, other: str, least: float) -> Relation | None:
    """How `text` relates to `other` where both are one statement, None where they are not.

    Args:
        least: Share of their words, or of their content words, that both must have in common (Jaccard of
            stems, 0 to 1).

    Returns:
        `same`; `more` where `text` says all of `other` and a detail; `less` the other way round.
    """
    one, two = _read(text), _read(other)
    shared = max(_jaccard(one.stems, two.stems), _jaccard(one.content, two.content))
    if not (one.content and two.content) or shared < least:
        return None
    if (one.numbers, one.owners, one.past) != (two.numbers, two.owners, two.past):
        return None
    if not (one.pronouns <= two.pronouns or two.pronouns <= one.pronouns):
        return None
    less, more = (one, two) if len(one.words) <= len(two.words) else (two, one)
    runs = _added(less.words, more.words)
    if runs is None or not all(map(_is_detail, runs)):
        return None
    return "same" if not runs else "more" if more is one else "less"


@per_text(2048)
def _read(text: str) -> _Statement:
    words = [word for piece in _PAUSE.split(text) for word in _words(piece)]
    tokens = tokenize(text)
    return _Statement(
        words=tuple(words),
        stems=frozenset(stems(text)),
        content=frozenset(word.stem for word in words if word.content),
        pronouns=frozenset(tokens) & _PRONOUNS,
        numbers=tuple(sorted(token for token in tokens if token in _NUMBERS or token[:1].isdecimal())),
        owners=frozenset(owner.casefold() for owner in _OWNER.findall(text)),
        past=not _PAST.isdisjoint(tokens),
    )


def _words(piece: str) -> Iterator[_Word]:
    """The words of a stretch of text without a pause."""
    tokens = tokenize(piece)
    around = ["", *tokens, ""]
    for at, (form, stem) in enumerate(zip(tokens, stems(piece), strict=True)):
        before, after = around[at], around[at + 2]
        if form not in _LOOSE and form not in _PRONOUNS:
            past = before in IRREGULAR or before.endswith("ed")
            yield _Word(
                form=_ONE.get(form, form),
                stem=_ONE.get(form, stem),
                content=_is_content(form),
                joined=_is_content(before) and not (past and _is_content(after)),
                rules=after in _POINTING or after.endswith("ing"),
            )


def _is_content(form: str) -> bool:
    return bool(form) and form not in STOPWORDS


def _jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 0.0


def _added(less: Sequence[_Word], more: Sequence[_Word]) -> list[list[_Word]] | None:
    """The runs of words that `more` has beyond `less`; None where it lacks one, or begins with its own."""
    left, runs, known = list(less), list[list[_Word]](), True
    for word in more:
        before, known = known, bool(left) and _is_form(left[0], word)
        if known:
            left.pop(0)
        elif before:
            runs.append([word])
        else:
            runs[-1].append(word)
    return None if left or (runs and runs[0][0] is more[0]) else runs


def _is_form(one: _Word, two: _Word) -> bool:
    """Whether two words are one, inflected; another tense is another word."""
    if one.stem != two.stem:
        return False
    left, right = unaccented(one.form), unaccented(two.form)
    if left == right or not (left.isalpha() and right.isalpha()):
        return True
    if left.endswith("ed") != right.endswith("ed"):
        return False
    shared = min(len(left), len(right))
    at = next((n for n in range(shared) if left[n] != right[n]), shared)
    return bool(_ENDINGS.match(left[at:]) and _ENDINGS.match(right[at:]))


def _is_detail(run: Sequence[_Word]) -> bool:
    """Whether words that were added leave what is said as it is."""
    content = [word for word in run if word.content]
    if not content or not run[-1].content or any(word.form in _CHANGING for word in run):
        return False
    if any(word.rules or not _RULING.isdisjoint(base_stems(word.form)) for word in content):
        return False
    first = content[0]
    return not first.joined or first.form in _NAMING or first.form.endswith("ly")
