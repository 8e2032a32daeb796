"""Whether two statements speak of the same matter: of one subject, and of one slot of it or one thing.

"Lives in Linz" and "Moved to Graz" do; "Rents a flat by the canal" and "Bought a kettle for the flat by the
canal" do not. By words, without a model. Built to say no in doubt: two statements of one matter that are not
seen to be stand side by side, while a true one that is taken for the old form of another is lost.
"""

import re
from itertools import product, starmap
from typing import NamedTuple

from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import function_words
from memcycle.core.language.sentences import NEGATION, split_sentences
from memcycle.core.language.tokens import IRREGULAR, base_stems, per_text, tokenize, word_set

_TRADES = (
    "teacher|nurse|doctor|engineer|baker|pilot|chef|cook|clerk|lawyer|dentist|manager|developer|programmer"
    "|designer|architect|accountant|journalist|writer|editor|scientist|plumber|electrician|carpenter|waiter"
    "|waitress|cashier|driver|mechanic|librarian|consultant|professor|photographer|therapist|vet|farmer"
    "|gardener|tailor|barista|bartender|translator|secretary|analyst|student"
)
_SLOTS = {
    slot: re.compile(rf"(?:\S+\s+){{0,3}}?\W*(?:{pattern})(?!\w)", re.IGNORECASE)
    for slot, pattern in {
        "home": r"(?:liv(?:e|es|ed|ing)|resid(?:es?|ed|ing)|based|settled)(?: \S+){0,3} (?:in|at|on|near|by)"
        r"|home(?: ?town)? is|address is|(?:rents?|renting|bought) an? (?:\w+ )?(?:flat|apartment"
        r"|house|room|studio)"
        r"|(?:moved|moving|moves|relocat\w+|emigrated)(?: \w+)? (?:to|from|out|in|away|back|into)"
        r"(?! the \w+ (?:team|department|shift|group|class|office))"
        r"|wohn(?:e|t|te)|leb(?:e|t|te)|zieht|zog|\w*gezogen|habit(?:e|ait)|(?:dé|em)ménag\w+|(?:vis|vit) à"
        r"|viv[eoí]a?|mud[éó]|mudad[oa]|abit[aoi]|trasferit[oa]|mor[ao] em|mudou|mudei|woont?",
        "work": r"works?|worked|working|job|employ(?:ed|er)|hired|laid off|fired|retired?|unemployed"
        r"|promoted|profession"
        r"|resigned|teach(?:es)?|taught|joined (?=(?-i:[A-Z]))"
        rf"|(?:is|am|was|['’]m|became|as) an? (?:[\w-]+ ){{0,2}}?(?:{_TRADES})"
        r"|arbeite(?:t|te)?|angestellt|kündig\w+|travaill\w+|trabaj\w+|lavor(?:o|a|ava|ato)"
        r"|trabalh\w+|werkt?",
        "tie": r"single|(?:re)?married|divorced|engaged|widowed|separated|dating|dates|broke up"
        r"|split up|boyfriend"
        r"|girlfriend|fianc[ée]e?|verheiratet|geschieden|marié\w*|divorcé\w*|casad[oa]|divorciad[oa]"
        r"|sposat[oa]",
        "diet": r"(?:is|am|went|became|turned|['’]m|a|no longer) (?:vegan|vegetarian|pescatarian)"
        r"|eats? (?:\w+ )?meat"
        r"|vegetarier(?:in)?|veganer(?:in)?|végétarien\w*",
        "name": r"(?:is|am|are) (?:now )?(?:called|named)|goes by|name is|heißt?e?|s['’]appelle"
        r"|se llama|si chiama",
        "age": r"(?:is|am|turned|turns|['’]m) \d+(?= years old|[.!]*$)",
        "commute": r"commut\w+|(?:drives?|cycles?|bikes?|walks?|takes? the \w+|goes) to (?:work"
        r"|school|the office)",
        "car": r"driv(?:es?|ing) an? (?!\w+ (?:to|for)\b)",
        "study": r"stud(?:y|ies|ying)(?! for)|major(?:s|ing)? in|enrolled in|studiert?e?|étudie"
        r"|estudia|studia",
        "smoking": r"smok(?:es?|ing|er)|raucht?e?|(?:nicht)?raucher(?:in)?|fume|fum[oa]",
    }.items()
}  # fmt: skip
"""What holds one value at a time, by the words that tell of it at the beginning of a statement."""

_ENDING = re.compile(
    r"\b(?:no longer|any ?more|instead|rather than|stopp?(?:ed|s|ing)?|quits?|gave up|gives up"
    r"|given up|cancell?ed"
    r"|sold|changed?|switched|replaced|swapped|traded|ended|lost|left|moved|dropped|returned"
    r"|got rid of|gave away"
    r"|broke|finished|postponed|rescheduled|correction|wrong|died|used to|went (?:up|down)|rose|fell"
    r"|increased"
    r"|kein\w*|nicht|statt(?:dessen)?|verkauft|aufgehört|plus|pas|jamais|vendu|arrêté|nunca|ya no|no|dej[éó]"
    r"|vend[íi][óo]?|non|più|mai|smesso|venduto)\b",
    re.IGNORECASE,
)
"""Words of what ends, or takes another's place: then the thing alone tells the matter, not what is said."""
_NOW = re.compile(
    r"\b(?:now|nowadays|these days|currently|instead|jetzt|nun|inzwischen|maintenant|désormais|ahora"
    r"|adesso|ora"
    r"|agora)\b",
    re.IGNORECASE,
)
_ASIDE = word_set(
    """
    because while when since so and but than named called which who whose where every each daily today tonight
    yesterday tomorrow last next this again often weil während wenn seit und aber jeden jede heute morgen
    gestern parce pendant quand depuis et mais chaque hier demain porque mientras cuando desde y pero cada
    hoy ayer mañana perché mentre quando e ma ogni oggi ieri domani
    """
)
_PREPOSITIONS = word_set(
    """
    in at to of from on onto into over under through for with about during after before by near as until per
    für mit über nach vor bei am im auf an zu von aus pour avec sur après avant chez à au dans de du para con
    sobre en per nel nella da di
    """
)
"""What follows them is a circumstance where the thing was named before."""
_BEING = word_set("is am are was were be been ist sind war est sont es son è sono é")
_CHANGING = word_set(
    "moved changed rose fell increased decreased died ended broke became went costs cost wird wurde"
)
"""What they follow is what is spoken of: "the deadline moved"."""
_HAVING = word_set("has have had having hat habe tiene tengo ha ho tem tenho")
_VAGUE = frozenset(
    base_stems(
        "favourite favorite new old current own really very just still now currently recently lately back "
        "first longer anymore always usually often sometimes never instead go went up down "
        "year month week day time one two three four five six seven eight nine ten"
    )
)
_DENYING = word_set(
    "kein keine keinen keinem keiner mehr nicht no not never ne pas plus jamais non più mai más ya nunca"
)
_LEFT = re.compile(
    r"\b(?:(?:switched|changed|moved|upgraded)\b.* from|instead of|rather than|statt|au lieu d[eu']"
    r"|en (?:vez|lugar) de|invece (?:di|del\w*))\s+(?P<what>(?:\S+\s*){1,3})",
    re.IGNORECASE,
)
_RELATIONS = word_set(
    """
    mother father mom mum dad parents sister brother son daughter child children kid kids baby twin
    wife husband partner girlfriend boyfriend fiancé fiancée ex friend boss colleague coworker
    neighbour neighbor roommate flatmate uncle aunt cousin niece nephew grandmother grandfather
    grandma grandpa family schwester bruder mutter vater frau mann freund freundin tochter sohn sœur
    frère mère père femme mari ami amie fille fils hermana hermano madre padre esposa esposo amigo
    amiga hija hijo sorella fratello moglie marito figlia figlio
    """
)
_LEAD = re.compile(
    r"^\W*(?:(?:well|so|and|but|also|actually|yes|yeah|oh|correction|now|currently|recently|sorry)\b\W*)*",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:(?P<owner>my|our|his|her|their|the user['’]s|mein\w*|unser\w*|ma|mon|mi|mia|mio"
    r"|[\w.-]+(?: [A-Z][\w.-]*)?['’]s) )?"
    r"(?:(?:younger|older|little|big|best|late) )?(?P<noun>[^\W\d]+)(?: (?P<name>(?-i:[A-Z])\w+))?",
    re.IGNORECASE,
)
_IS_NAMED = re.compile(r"\W*(?:is|was|heißt|ist|est|es|è) (?:now )?[A-Z]")
_USER = re.compile(r"(?:the )?(?:user|speaker)(?:['’]s)?\b|(?:i|we|ich|je|yo|io)\b|j['’]", re.IGNORECASE)
_OTHERS = re.compile(r"(?:he|she|they|er|il|elle|él|ella|lui|lei)\b", re.IGNORECASE)
_ME = "(me)"
MOST, LONGEST = 4, 400
"""Sentences of a statement that are looked at, and characters of each."""


class Statement(NamedTuple):
    """A sentence taken apart.

    Attributes:
        whose: Whom it is about: `(me)` for who speaks, else names or relations; `?` for a pronoun.
        head: What is said: a verb, `be`, `have`, or what one is ("allergic"). things: of what.
        main: Which of these words names the matter: "kettle" of a red kettle.
        slots: Of those that hold one value at a time. left: words of what was left for another.
    """

    whose: frozenset[str]
    head: str
    things: frozenset[str]
    main: str
    slots: frozenset[str]
    left: frozenset[str]
    ending: bool
    now: bool

    @property
    def words(self) -> frozenset[str]:
        """What is said and of what, without circumstances."""
        return self.things | {self.head}


def same_matter(new: str, speaker: str | None, old: str, other: str | None) -> bool:
    """Whether a new statement speaks of what an old one speaks of, so that it may take its place.

    Args:
        speaker: Who said the new one; other: who said the old one.
    """
    return any(starmap(_bears_on, product(_read(new, speaker), _read(old, other))))


def statement_of(text: str, speaker: str | None) -> Statement | None:
    """A text's first sentence, which its `speaker` says; None of a text without any."""
    return next(iter(_read(text, speaker)), None)


def same_slot(one: str, speaker: str | None, two: str, other: str | None) -> bool:
    """Whether two statements tell of one subject what can have one value at a time only."""
    pairs = product(_read(one, speaker), _read(two, other))
    return any(left.slots & right.slots and left.whose & right.whose for left, right in pairs)


def _bears_on(new: Statement, old: Statement) -> bool:
    if not new.whose & old.whose:
        return False
    if new.slots & old.slots or old.main in new.left:
        return True
    if new.head and new.head == old.head:
        named = old.main in new.things and new.main in old.things
        alone = not (new.things and old.things) and new.head not in ("be", "have")
        return named or alone or new.now
    return new.ending and old.main in new.words and new.main in old.words


@per_text(2048)
def _read(text: str, speaker: str | None) -> tuple[Statement, ...]:
    """Cached: a new statement is held against one stored one after another."""
    return tuple(_statement(one[:LONGEST], speaker) for _, _, one in split_sentences(text)[:MOST])


def _statement(sentence: str, speaker: str | None) -> Statement:
    whose, rest = _subject(_LEAD.sub("", sentence), speaker)
    small = function_words(sentence) | whose | frozenset(tokenize(speaker or "")) | _DENYING
    head, things = _said(rest, small)
    left = _LEFT.search(rest)
    slots = {slot for slot, pattern in _SLOTS.items() if pattern.match(rest)}
    if any("'s " in one for one in whose) and _IS_NAMED.match(rest):
        slots.add("who it is")
    return Statement(
        whose=whose,
        head=head,
        things=frozenset(things),
        main=things[-1] if things else head,
        slots=frozenset(slots),
        left=frozenset(base_stems(left["what"])) if left else frozenset(),
        ending=bool(_ENDING.search(rest) or NEGATION.search(rest)),
        now=_NOW.search(sentence) is not None,
    )


def _subject(opening: str, speaker: str | None) -> tuple[frozenset[str], str]:
    """Whom a sentence is about, and the sentence without them."""
    found = _SUBJECT.match(opening)
    if found and found["noun"].casefold() in _RELATIONS:
        owner = re.sub(r"['’]s$", "", found["owner"] or "")
        owner = "" if "'" not in (found["owner"] or "").replace("’", "'") or _is_me(owner, speaker) else owner
        names = [found["name"].casefold()] if found["name"] else []
        return frozenset([f"{owner.casefold()}'s {found['noun'].casefold()}", *names]), opening[found.end() :]
    if user := _USER.match(opening):
        return frozenset([_ME]), opening[user.end() :].lstrip()
    if others := _OTHERS.match(opening):
        return frozenset(["?"]), opening[others.end() :].lstrip()
    named = person_names(opening, [speaker] if speaker else [])
    first, second = [*opening.split()[:2], "", ""][:2]
    if named and opening.casefold().startswith(named[0].casefold()) and not _is_past(first.casefold()):
        name = named[0]
    elif re.fullmatch(r"[A-Z][a-z]+(?<!ed|ng|.s)", first) and _is_past(second) > _is_past(first.casefold()):
        name = first  # "Tom bought a boat", not "Bought a boat" or "Got married"
    else:
        return frozenset([_ME]), opening
    whose = _ME if _is_me(name, speaker) else name.casefold()
    return frozenset([whose]), re.sub(r"^['’]s\b", "", opening[len(name) :]).lstrip()


def _is_me(name: str, speaker: str | None) -> bool:
    return name.casefold() in ("user", "the user") or same_person(name, speaker)


def _is_past(word: str) -> bool:
    return word.islower() and (word in IRREGULAR or word.endswith("ed"))


def _said(rest: str, small: frozenset[str]) -> tuple[str, list[str]]:
    """What is said, and of what, without `small` words; what follows the first thing is a circumstance."""
    head, things, before = "", list[str](), None
    for word, stem in zip(tokenize(rest), base_stems(rest), strict=True):
        if (word in _ASIDE or (word in _PREPOSITIONS and things)) and head:
            break
        if word in _PREPOSITIONS and head and before is None:
            before = [head]
        if word in _BEING or word in _HAVING or (head and word in _CHANGING):
            kind = "have" if word in _HAVING else "be"
            if head:
                return kind, before or [head, *things]
            head = "" if kind == "be" else kind
        elif word in small or stem in _VAGUE or word[0].isdigit():
            continue
        elif not head:
            head = stem
        else:
            things.append(stem)
    return head, things
