"""Base forms of English verbs, for questions with "did" and "does"."""

import re

from memcycle.agents.rules.verbs import BASE, PAST_IRREGULAR, is_past
from memcycle.core.language.tokens import IRREGULAR, word_set

# The same in all tenses, or with a second past form besides the one of the irregular verbs.
_SAME = word_set("put read cut hit set let quit cost hurt shut split spread bet cast beat")
_SECOND = {"learnt": "learn", "dreamt": "dream", "lit": "light", "withdrew": "withdraw", "swore": "swear"}
_DOUBLED = re.compile(
    r"(?:(?P<mark>[bdgkmnprtv])(?P=mark)|(?:trave|cance|contro|labe|mode|patro|counse|signa)ll)$"
)
_KEEPS_DOUBLE = word_set("add err purr putt ebb odd")
# Endings that English does not write without an e, and below those that look alike and are written so.
_WITH_E = re.compile(
    r"""(?:
      [vuz] | [^s]c | (?<![ou])[aeiou]s | [lnr]s | [dlr]g | [^aeiou]ag | (?:ha|ra|le)ng | plung | [^aeiourlw]l
      | [bcdfgptz]r | (?<![aeo])at | creat | (?<![ao])id | ud | [^aeo]ad | [^a]ir | (?:pl|ad|ign|st|sc)or
      | (?:^|[^aeiou])[aiu]r | (?<![ao])in | pon | um | [^e]ap | pl?et | [bc]ut | mot | vot | schedul | compil
      | ^[twp]ast | invit | excit | unit | ignit | breath | bath | ^dy | welcom | (?:^|[^aeiou])i[kmlptv]
    )$""",
    re.VERBOSE,
)
_WITHOUT_E = re.compile(
    r"(?:(?:oc|mur)cur|focus|visit|edit|profit|benefit|exhibit|limit|credit|inherit|spirit|orbit|ruin|cabin"
    r"|mar|bar|sugar|answer|fish|debut|chat|combat|format|cook|look|market|gossip|worship|develop|gallop"
    r"|program|(?:ou|oo|ee|ai|oa|ea|ie)[klmnprt])$"
)
SHORTEST = 2
"""Letters of a trunk in -i that comes of -ie: "tied"."""
_VOWELS = re.compile(r"[aeiouy]+")
_SHORT = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]$")


def base_form(verb: str) -> str | None:
    """The base of a past form or of a present third person: "went" is "go", "baked" "bake", "tries" "try".

    None for an irregular form that the lists do not hold. Regular forms follow English spelling; a base
    form given is returned as it is.
    """
    folded = verb.lower()
    known = IRREGULAR.get(folded) or _SECOND.get(folded)
    if known:
        return known
    if folded in _SAME or folded in BASE:
        return folded
    if folded in PAST_IRREGULAR:
        return None
    if folded.endswith("ed") and is_past(folded):
        return _of_past(folded[:-2])
    return _of_singular(folded)


def _of_past(trunk: str) -> str:
    """The base of a regular past form, given without its "ed"."""
    if trunk.endswith("i"):
        return trunk + "e" if len(trunk) <= SHORTEST else trunk[:-1] + "y"
    if trunk + "e" in BASE or trunk in BASE:
        return trunk if trunk in BASE else trunk + "e"
    if _DOUBLED.search(trunk) and trunk not in _KEEPS_DOUBLE:
        return trunk[:-1]
    if _WITHOUT_E.search(trunk):
        return trunk
    one_syllable = len(_VOWELS.findall(trunk)) == 1
    return trunk + "e" if _WITH_E.search(trunk) or (one_syllable and _SHORT.match(trunk)) else trunk


def _of_singular(verb: str) -> str:
    if re.search(r"[^aeiou]ies$", verb):
        return verb[:-3] + "y"
    if re.search(r"(?:ss|sh|ch|x|zz|o)es$", verb):
        return verb[:-2]
    return verb[:-1] if re.search(r"[^s]s$", verb) else verb
