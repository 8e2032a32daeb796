"""What the rules know of English verbs: agreement, tense, and which objects a verb takes."""

import re
from typing import Literal

from memcycle.core.entry import Pattern
from memcycle.core.language.tokens import word_set

MODALS = word_set("can could will would shall should may might must ought")
AUXILIARIES = MODALS | word_set("am is are was were be been being have has had do does did")
# Past forms that do not end in -ed, and forms that are the same in all tenses ("put", "read").
PAST_IRREGULAR = word_set(
    """
    went had did was were got came took made saw met won lost left bought found gave told said spent
    began became felt heard kept knew ran sat sent taught thought wrote ate drove flew held broke chose
    fell grew sang swam spoke stood slept paid built caught drank drew dug fed fought forgot froze hid
    hung laid led lent lit meant rode rang rose shook shot shone sold stole stuck struck swore threw
    understood woke wore withdrew learnt dreamt put read cut hit set let quit cost hurt shut split
    spread bet cast beat
    """
)
_PARTICIPLES = word_set(
    """
    been gone done seen taken given known written eaten driven had got gotten become come
    """
)
_NOT_PAST = word_set(
    """
    need feed succeed proceed exceed embed speed heed bleed breed shed wed seed exceed
    """
)
BASE = word_set(
    """
    like love hate prefer enjoy want need hope wish think believe know feel guess miss appreciate
    remember live work study teach play run go make take get have do see say tell ask use try plan read
    write cook bake paint draw dance sing swim hike bike travel visit watch listen eat drink sleep drive
    own keep help support volunteer spend start stop finish learn look seem sound become find give show
    buy sell pay train practice practise collect bring call meet talk chat share care worry hear
    understand speak wake move stay grow build create design organize organise host join lead manage
    dream love adore value cherish admire consider recommend suggest agree disagree
    """
)
STATE = word_set("like love hate prefer enjoy want need miss appreciate wish adore dislike")
_LINKING = word_set(
    """
    am is are was were be been being become becomes became seem seems seemed feel feels felt look looks
    looked sound sounds sounded taste tastes smell smells remain remains stay stays stayed get gets got
    """
)
_GIVING = word_set(
    """
    give gives gave given send sends sent show shows showed shown tell tells told teach teaches taught
    buy buys bought offer offers offered lend lends lent bring brings brought cook cooked make made
    write wrote
    """
)
_NAMING = word_set(
    """
    make makes made call calls called name names named find finds found keep keeps kept consider
    considers considered elect elected paint painted leave left
    """
)
_BARE = word_set(
    """
    go goes went gone come came arrive arrived sleep slept run ran walk walked swim swam travel travels
    traveled travelled live lives lived work works worked move moved sit sat stand stood fall fell die
    died happen happened talk talked chat chatted volunteer volunteers volunteered wait waited cry cried
    laugh laughed hike hiked
    """
)
_PREPOSITIONS = word_set(
    """
    in on at to from with for of by about into over under after before during through around near back
    home there here up down out off away together
    """
)
_SKIPPED = word_set(
    """
    not never also always just still really often usually already only even finally recently actually
    definitely totally probably sometimes both all now currently ever once again soon kinda sort
    """
)
Object = Literal["none", "complement", "one", "two", "object_complement"]


def is_adverb(word: str) -> bool:
    """Whether a word may stand between subject and verb."""
    folded = word.lower()
    return folded in _SKIPPED or (
        folded.endswith("ly") and folded not in {"fly", "rely", "apply", "reply", "supply"}
    )


def is_past(word: str) -> bool:
    """Whether a word reads as a past form."""
    folded = word.lower()
    return folded in PAST_IRREGULAR or (folded.endswith("ed") and len(folded) > 3 and folded not in _NOT_PAST)  # noqa: PLR2004


def is_participle(word: str) -> bool:
    """Whether a word may follow "had" in a perfect tense."""
    return word.lower() in _PARTICIPLES or is_past(word)


def singular(verb: str) -> str:
    """The verb as it stands after a singular third person; past forms and modals stay as they are."""
    folded = verb.lower().replace("’", "'")
    special = {
        "am": "is", "are": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't",
        "aren't": "isn't", "weren't": "wasn't", "dont": "doesn't",
    }  # fmt: skip
    if folded in special:
        return special[folded]
    stays = folded in MODALS or "'" in folded or is_past(folded) or folded.endswith("ing")
    if stays or folded in AUXILIARIES or not folded.isalpha():
        return verb
    if re.search(r"(?:s|sh|ch|x|z|o)$", folded):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", folded) else verb + "s"


def is_finite(word: str) -> bool:
    """Whether a lower-case word is a verb form of the lists or reads as a past form."""
    if word in AUXILIARIES or is_past(word) or word in _LINKING | _GIVING | _NAMING | _BARE:
        return True
    return word in BASE or any(word == singular(base) for base in (word[:-1], word[:-2]) if base in BASE)


def sentence_pattern(statement: str) -> Pattern | None:
    """One of the five English sentence patterns (AMA 3.1), None where no verb is known.

    Taken from the first main verb and what follows it; complements and objects are told by word
    lists, so a rare verb counts as SVO when a noun follows.
    """
    words = re.findall(r"[\w'’-]+", statement.lower())
    place = next((n for n, word in enumerate(words) if n and is_finite(word)), None)
    if place is None:
        return None
    while place + 1 < len(words) and words[place] in AUXILIARIES and (_verb_follows(words, place)):
        place += 1
        while place + 1 < len(words) and is_adverb(words[place]):
            place += 1
    verb, rest = words[place], [word for word in words[place + 1 :] if not is_adverb(word)]
    if verb in _LINKING and rest:
        return "SVC"
    if not rest or rest[0] in _PREPOSITIONS or verb in _BARE:
        return "SV"
    if verb in _GIVING and _two_objects(rest):
        return "SVOO"
    if verb in _NAMING and _object_complement(verb, rest):
        return "SVOC"
    return "SVO"


def _verb_follows(words: list[str], place: int) -> bool:
    following = next((word for word in words[place + 1 :] if not is_adverb(word)), "")
    if words[place] in {"is", "are", "was", "were", "been", "be"}:
        return following.endswith("ing") or following == "being"
    return is_finite(following) or following in BASE or words[place] in MODALS or following.endswith("ed")


def _two_objects(rest: list[str]) -> bool:
    determiners = {
        "a",
        "an",
        "the",
        "some",
        "his",
        "her",
        "their",
        "my",
        "your",
        "that",
        "how",
        "what",
        "about",
    }
    return (
        len(rest) > 1 and rest[0] not in determiners and rest[1] in determiners | {"to"} and rest[1] != "to"
    )


def _object_complement(verb: str, rest: list[str]) -> bool:
    if verb in {"call", "calls", "called", "name", "names", "named", "elect", "elected"}:
        return len(rest) > 1
    feeling = re.compile(
        r"(?:ful|ous|able|ible|ed|y|ive|less|happy|feel|sad|proud|safe|better|great|good|easy" r"|hard)$"
    )
    return any(feeling.search(word) for word in rest[1:4])
