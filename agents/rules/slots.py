"""Whether a later statement makes an earlier one untrue: a short list of slots that hold one value at a time.

Where a person lives and works, what somebody is called, a favourite, whether one is married, what is liked;
a thing that was sold, a habit that ended; the same sentence denied or with another number. Built to miss
rather than to mislead: of two true statements side by side a reader takes the later, and a true one that is
taken down is lost.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from memcycle.agents.rules.content import COUNTS, content, denies, numbers, own_words, reports
from memcycle.core.entry import same_text
from memcycle.core.language.dates import read_dates
from memcycle.core.language.names import person_names
from memcycle.core.language.sentences import corrects, split_sentences
from memcycle.core.language.tokens import IRREGULAR, STOPWORDS, per_text, tokenize, word_set

_NOW = re.compile(
    r"\b(?:now|nowadays|these days|new|currently|since|instead|any ?more|no longer|correction|actually)\b",
    re.IGNORECASE,
)
_V = (
    r"(?P<value>[^.,;:!?()]+?)(?=\s+(?:and|but|because|since|with|for|when|while|so|after|before|any ?more"
    r"|last|this|in (?:19|20)\d\d)\b|\s*[.,;:!?()]|\s*$)"
)
_PLACE = rf"(?=(?:the )?(?-i:[A-Z])){_V}"
_ALL = r"(?P<value>[^.,;:!?()]+)"
_OWN = r"(?:my|his|her|their|our|the|a|an)"
_NOT = r"(?:no longer|not|n['’]t)"
_STATES: dict[str, tuple[str, ...]] = {
    "home": (rf"(?:live|lives|living|reside|resides|based) (?:[\w-]+ ){{0,6}}?(?:in|at) {_PLACE}",),
    "employer": (rf"(?:works?|working) (?:\w+ ){{0,2}}?(?:at|for) {_PLACE}",),
    "occupation": (rf"works? as (?:an? )?{_V}",),
    "name": (rf"(?:(?:my|['’]s) name is|call me|(?:is|are) (?:called|named)) {_V}",),
    "taste": (rf"(?<!n't )(?<!not )(?:likes?|loves?|enjoys?|adores?) {_ALL}",),
}
"""What holds."""
_CHANGES: dict[str, tuple[str, ...]] = {
    "home": (rf"(?:moved|relocated|emigrated) (?:back )?to {_PLACE}",),
    "employer": (
        rf"(?:joined(?! the\b)|hired by|new job (?:at|with)|started (?:working )?(?:at|for)) {_PLACE}",
    ),
    "occupation": (rf"(?:became|new job as) an? {_V}",),
    "name": (rf"changed {_OWN} name to {_V}",),
    "tie": (
        r"(?:am|is|are|got|['’]m) (?:now |just |newly )?(?P<value>married|divorced|single|engaged)\b(?! in)",
    ),
}
"""What holds from now on."""
_ENDS: dict[str, tuple[str, ...]] = {
    "home": (
        rf"{_NOT} (?:live|lives|living) (?:in|at) {_PLACE}",
        rf"moved (?:away|out|back)? ?(?:from|of) {_PLACE}",
    ),
    "employer": (
        rf"(?:quit|left|lost) {_OWN} (?:\w+ )?job(?: (?:at|with) {_V})?",
        r"(?:(?:was|were|got|been) (?:laid off|fired)|retired)\b(?P<value>)",
        rf"{_NOT} works? (?:at|for) {_V}",
    ),
    "taste": (
        rf"(?:hates?|dislikes?|can['’]t stand) {_ALL}",
        rf"(?:(?:do|does)(?:n['’]?t| not)|no longer) (?:like|love|enjoy)s? {_ALL}",
    ),
    "owned": (rf"(?:sold|gave away|got rid of|donated) (?:{_OWN} )?{_V}",),
    "habit": (
        r"(?:no longer|stopped(?= \w+ing\b)|quit|gave up|cancell?ed)(?! (?:by|at|in|on|for|to|my job)\b)"
        rf" (?:{_OWN} )?{_V}",
        rf"(?:\w+n['’]t|not) {_V} any ?more",
    ),
    "switch": (r"switched from (?P<value>[\w' -]+?) to (?P<to>[\w' -]+)",),
}
"""What holds no more."""
_FORMS = tuple(
    (
        slot,
        re.compile(rf"\b{pattern}" if not pattern.startswith(_NOT) else pattern, re.IGNORECASE),
        change,
        ended,
    )
    for forms, change, ended in ((_ENDS, False, True), (_CHANGES, True, False), (_STATES, False, False))
    for slot, patterns in forms.items()
    for pattern in patterns
)
_FAVOURITE = re.compile(
    r"^(?:\W*(?:and|now|so)\W+)?(?:my|his|her|our|[\w-]+['’]s) (?:(?:new|current) )?favou?rite"
    rf" (?P<noun>[\w -]+?) (?:is|are) (?:now )?{_V}",
    re.IGNORECASE,
)
_HOLDING = re.compile(
    r"\b(?:have|has|own|owns|drive|drives|ride|rides|keep|keeps)\b|['’]ve got\b", re.IGNORECASE
)
_TWO_SENSES = content("running drawing training lifting standing working playing")
_PRESENT = word_set("am is are has does children men women feet teeth mice people wives")
_PAST = word_set("was were had did will would might used")
_LEAD = re.compile(
    r"^\W*(?:(?:well|so|and|but|also|actually|yes|yeah|no|oh|sorry|wait|correction|now)\b\W*)*", re.IGNORECASE
)
_SELF = re.compile(r"(?:I|we)\b|(?:my|our)\s+(?:(?P<noun>[\w-]+))", re.IGNORECASE)
_OTHER = re.compile(
    r"(?:he|she|they|it|this|that|these|those|there|the|his|her|their|its|you|your)\b", re.IGNORECASE
)
_DOER = re.compile(r"(?P<who>[A-Z][a-z]+(?<!ed|ng|.s)) (?P<verb>[a-z]+)\b")
_SELF_NOUNS = word_set("name job home house favourite favorite new current")
_TAKEN_BACK = re.compile(r"\b(?:not|rather than|instead of) (?P<value>[^.,;:!?()]+)", re.IGNORECASE)
_ANY = datetime(2000, 1, 12, tzinfo=UTC)
_CLAUSE = re.compile(r"[,;:]|\b(?:but|and)\b")
MOST_SENTENCES = 4
SPEAKER = "the speaker"
"""Who speaks where nobody knows."""


class Claim(NamedTuple):
    """What a sentence says of a slot. `change`: that this is new. `ended`: that it holds no more."""

    slot: str
    value: frozenset[str]
    change: bool
    ended: bool
    to: frozenset[str] = frozenset()


class _Sentence(NamedTuple):
    """A sentence taken apart. `owner`: whom it is about, '' where its words do not tell."""

    text: str
    owner: str
    claims: tuple[Claim, ...]
    words: frozenset[str]
    lasting: bool
    corrects: bool


def contradiction(new: str, speaker: str | None, old: str, other: str | None) -> str | None:
    """Why the new statement makes the old one untrue, None where it does not; callers compare their times.

    Args:
        speaker: Who said the new one; other: who said the old one.
    """
    stored = list(_sentences(old, other))
    return next(
        (why for one in _sentences(new, speaker) for two in stored if (why := _against(one, two))), None
    )


def slots_of(text: str, speaker: str | None, *, ended: bool) -> frozenset[tuple[str, str]]:
    """Of whom and of which slots a text says that they hold, or that they ended; employer is occupation."""
    return frozenset(
        (one.owner, "occupation" if claim.slot == "employer" else claim.slot)
        for one in _sentences(text, speaker)
        for claim in one.claims
        if claim.ended is ended and claim.slot != "taste"
    )


def _against(new: _Sentence, old: _Sentence) -> str | None:
    if new.owner != old.owner or same_text(new.text) == same_text(old.text):
        return None
    if new.corrects and _put_right(new, old):
        return "a correction"
    if not new.owner:
        return None
    for claim in new.claims:
        if claim.slot in ("owned", "habit", "switch") and _gone(claim, old):
            return "no longer so"
        for known in old.claims:
            if why := _replaced(claim, known):
                return why
    return _other_wording(new, old) if new.lasting and old.lasting else None


def _put_right(new: _Sentence, old: _Sentence) -> bool:
    """Whether a correction is of this statement: what it takes back stands there, with more that it says."""
    if (denied := _TAKEN_BACK.search(new.text)) is None:
        return 2 * len(new.words & old.words) >= len(old.words) > 0
    wrong = content(denied["value"])
    return bool(wrong and wrong <= old.words and (new.words - wrong) & (old.words - wrong))


def _gone(claim: Claim, old: _Sentence) -> bool:
    """Whether the old statement tells of what ended as of something that goes on."""
    if not claim.value or not claim.value <= old.words or not old.lasting or denies(old.text):
        return False
    if any(known.ended for known in old.claims) or claim.value <= _TWO_SENSES or claim.to & old.words:
        return False
    return claim.slot != "owned" or (
        _HOLDING.search(old.text) is not None and _ends_with(old.text, claim.value)
    )


def _ends_with(text: str, value: frozenset[str]) -> bool:
    """Whether a thing is named whole: "a painting" is not, where the text goes on to "a painting studio"."""
    words = [*tokenize(text), "the"]
    return any(content(one) & value and after in STOPWORDS for one, after in pairwise(words))


def _replaced(new: Claim, old: Claim) -> str | None:
    if new.slot == old.slot == "taste":
        return "another taste" if new.ended != old.ended and new.value == old.value else None
    if old.ended or (
        new.slot != old.slot and not (new.ended and {new.slot, old.slot} == {"employer", "occupation"})
    ):
        return None
    if new.ended:
        return "no longer so" if new.value <= old.value else None
    single = new.change or new.slot.startswith("favourite")
    return "another one now" if single and not new.value & old.value else None


def _other_wording(new: _Sentence, old: _Sentence) -> str | None:
    """The same lasting statement denied, or with another number."""
    if read_dates(new.text, _ANY) or read_dates(old.text, _ANY):
        return None
    left, right = numbers(new.text), numbers(old.text)
    if new.words - left - COUNTS != old.words - right - COUNTS:
        return None
    if left == right:
        return "says the opposite" if denies(new.text) != denies(old.text) else None
    counted = (
        _counted(new.text)
        and _counted(new.text) == _counted(old.text)
        and denies(new.text) == denies(old.text)
    )
    return "another number" if counted else None


def _counted(text: str) -> list[str]:
    """What its numbers count, in order; nothing where one of them counts nothing, as in "room 5"."""
    pairs = list(pairwise([*tokenize(text), "the"]))
    counted = [after for word, after in pairs if numbers(word)]
    return [] if any(word in STOPWORDS or numbers(word) for word in counted) else counted


@per_text(2048)
def _sentences(text: str, speaker: str | None) -> tuple[_Sentence, ...]:
    """The first sentences of a text taken apart. Cached, since each new statement meets many stored ones."""
    found = []
    for _, _, sentence in split_sentences(own_words(text))[:MOST_SENTENCES]:
        owner = owner_of(sentence, speaker)
        words = content(sentence) - content(owner.split("'")[0])
        clauses = () if reports(sentence) else _CLAUSE.split(sentence)
        claims = tuple(claim for clause in clauses for claim in _claims(clause))
        found.append(_Sentence(sentence, owner, claims, words, lasts(sentence), corrects(sentence)))
    return tuple(found)


def owner_of(sentence: str, speaker: str | None) -> str:
    """Whom a sentence is about: its speaker, one of theirs ("ana's sister"), or whom it opens with."""
    own = (speaker or SPEAKER).casefold()
    opening = _LEAD.sub("", sentence)
    if match := _SELF.match(opening):
        noun = (match["noun"] or "").casefold()
        return f"{own}'s {noun}" if noun and noun not in _SELF_NOUNS else own
    if _OTHER.match(opening):
        return ""
    named = person_names(opening, [speaker] if speaker else [])
    if named and opening.casefold().startswith(named[0].casefold()):
        owned = re.match(r"['’]s\s+([\w-]+)", opening[len(named[0]) :])
        noun = owned[1].casefold() if owned else ""
        return f"{named[0].casefold()}'s {noun}" if noun and noun not in _SELF_NOUNS else named[0].casefold()
    doer = _DOER.match(opening)  # "Tom bought a boat", not "Bought a boat"
    if doer and not _is_past(doer["who"].casefold()) and _is_past(doer["verb"]):
        return doer["who"].casefold()
    return own


def _claims(clause: str) -> Iterator[Claim]:
    now, denied = _NOW.search(clause) is not None, denies(clause)
    for slot, pattern, change, ended in _FORMS:
        for match in pattern.finditer(clause) if ended or slot == "taste" or not denied else ():
            to = content(match["to"]) if "to" in pattern.groupindex else frozenset[str]()
            value = frozenset([match["value"].casefold()]) if slot == "tie" else content(match["value"] or "")
            yield Claim(slot, value, change or now, ended, to)
    if favourite := _FAVOURITE.search(clause):
        noun = " ".join(sorted(content(favourite["noun"])))
        yield Claim(f"favourite {noun}", content(favourite["value"]), change=True, ended=False)


def lasts(sentence: str) -> bool:
    """Whether a sentence tells of a state or habit, not of one past event."""
    return not any(word in _PAST or _is_past(word) for word in tokenize(sentence))


def _is_past(word: str) -> bool:
    return word not in _PRESENT and (word in IRREGULAR or word.endswith("ed"))
