"""Third-person English statements taken apart into subject, verb group and complement, to ask about them."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from memcycle.agents.rules.phrases import DETERMINERS, PARTICLES, PREPOSITIONS, WORD
from memcycle.agents.rules.verb_forms import base_form
from memcycle.agents.rules.verb_groups import Group, Step, denied
from memcycle.agents.rules.verbs import AUXILIARIES, BASE, is_adverb, is_finite, is_past
from memcycle.core.language.tokens import word_set

_PLURALS = word_set("people children kids men women feet mice parents family friends")
_CONDITION = word_set(
    "if when although though unless because since as while once until after before whenever for"
)
_ASIDE = re.compile(r"^(?:just|so|also|then|now|but|and|even)\s*$", re.IGNORECASE)
_PRONOUN = r"(?:it|its|they|he|she|this|that|these|those|there|what|who)"
_END = re.compile(
    rf"""
      \s*(?:[;:()\[\]—–~*|]|-+\s|\s-+|\.{{2,}}|…|[.!?](?:\s|$))
    | ,?\s+(?:because|but|so|which|while|although|though|unless|if|whether|when|whenever|until|cause|cuz|plus
        |even\s+though|since(?!\s+(?:\d|last|the\b|(?:19|20)\d\d))
        |and(?=\s+(?:by|in|if|when|once|at|for|to)\b)|and(?=\s+(?:{_PRONOUN}|then|can|will|would)\b)
        |(?:as|after|before)(?=\s+(?:it|they|he|she|we|I|you|there)\b)|or\s+so)\b
    | ,\s+(?=(?:{_PRONOUN}|especially|like|no|not|too|right|really|just|as|you|for|with|to|at|in|on)\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)  # fmt: skip
_JOINT = re.compile(r"\s*,\s+(?:and\s+|or\s+)?|\s+(?:and|or)\s+", re.IGNORECASE)
_LAST = re.compile(
    r"[\s,]+(?:too|though|as\s+well|lately|recently|again|anymore|either|already|yet|now|right\s+now|these\s+days"
    r"|at\s+all|so\s+much|a\s+lot|btw|lol|haha|tbh|and|or|but|so|just)$",
    re.IGNORECASE,
)
_NO_HEAD = re.compile(r"['’]s?$|ing$")
_ADJECTIVE = re.compile(r"\b(?:a|an|the|my|some|such)\s+[\w-]+$", re.IGNORECASE)
_FINITE = word_set(
    """
    is are was were has had isn't aren't wasn't weren't can't can could would will looks seems makes helps
    gives feels made changed
    """
)
_OPENS_CLAUSE = word_set(
    "that who which what how where when why they it he she there people everyone someone"
)
MOST_SUBJECT, MOST_LEAD = 6, 8
"""Words of a subject with an owner, and of what may stand before the subject."""


class Clause(NamedTuple):
    """The main clause of a statement.

    Attributes:
        subject: As it stands. many: whether it takes plural verbs.
        auxiliary: What a question has before the subject ("did", "has", "isn't" without its "not").
        negated: Whether "not" follows the subject.
        steps: Places to cut, the longest verb group last ("want", "want to run").
        core: The clause in its own order, without what leads in and what comes after it.
        tail: What comes after it, its conjunction included.
        copula: The main verb is a form of "be" followed by no verb.
    """

    subject: str
    auxiliary: str
    negated: bool
    steps: tuple[Step, ...]
    core: str
    tail: str
    copula: bool

    def asks(self, opening: str, ending: str) -> str:
        """A question about this clause: opening, auxiliary, subject and the words given."""
        middle = [opening, self.auxiliary, self.subject, "not" if self.negated else "", ending]
        return " ".join(part for part in middle if part) + "?"


def clause_of(text: str, names: Sequence[str]) -> Clause | None:
    """The first main clause of a third-person statement whose subject is one of `names` or theirs.

    None where the rules do not see such a clause; they rather miss one than read it wrongly.
    """
    found = _subject(text, tuple(names))
    if found is None:
        return None
    begin, end, many = found
    after = text[end:]
    limit = _end_of(after, text[begin:end], tuple(names))
    body = _LAST.sub("", _LAST.sub("", after[:limit])).rstrip(" ,")
    group = Group(body, many=many)
    if not group.read() or not group.steps or _second_verb(group.steps[0].rest, tuple(names)):
        return None
    return Clause(
        text[begin:end].strip(), group.auxiliary, group.negated, tuple(group.steps),
        f"{text[begin:end].strip()} {body.strip()}", after[limit:].strip(" ,"), group.copula,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _named(names: tuple[str, ...]) -> re.Pattern[str] | None:
    known = sorted((name for name in names if name.strip()), key=lambda name: (-len(name), name))
    if not known:
        return None
    one = "(?:" + "|".join(map(re.escape, known)) + r")(?![\w-])"
    return re.compile(
        rf"(?<!\w)(?:(?P<owner>{one}['’]s?)(?=\s)|{one}(?!['’])(?:\s+and\s+(?:others\b|{one}(?!['’])))?)"
    )


def _subject(text: str, names: tuple[str, ...]) -> tuple[int, int, bool] | None:
    """Begin and end of the subject, and whether it is plural."""
    pattern = _named(names)
    match = pattern.search(text) if pattern else None
    if match is None or not _may_lead(text[: match.start()]):
        return None
    if match["owner"]:
        return _owned(text, match.start(), match.end())
    return match.start(), match.end(), " and " in match[0]


def _may_lead(lead: str) -> bool:
    """Nothing, an aside, or a short phrase closed by a comma that states no condition."""
    if not lead.strip(" ,-–—") or _ASIDE.match(lead):
        return True
    words = WORD.findall(lead.lower())
    return (
        bool(words)
        and lead.rstrip().endswith(",")
        and lead.count(",") == 1
        and len(words) <= MOST_LEAD
        and words[0] not in _CONDITION
        and not any(is_finite(word) or word.endswith("ing") for word in words)
    )


def _owned(text: str, begin: int, end: int) -> tuple[int, int, bool] | None:
    """A subject such as "Ana's old friends": up to the first word that can only be its verb."""
    words = [word for word in WORD.finditer(text, end) if not is_adverb(word[0])][: MOST_SUBJECT + 1]
    for before, word in pairwise(words):
        broken = re.search(r"[^\w\s]", text[before.end() : word.start()])
        if broken or _NO_HEAD.search(before[0]) or before[0].lower() in PREPOSITIONS:
            return None
        subject, last, folded = text[begin : before.end()], before[0].lower(), word[0].lower()
        many = " and " in subject or last in _PLURALS or re.search(r"[^s'’]s$", last) is not None
        following = WORD.search(text, word.end())
        noun = following is not None and is_finite(following[0].lower())  # "Ana's dance moves get ..."
        lexical = is_finite(folded) and many == (folded in BASE) and not noun
        if folded in AUXILIARIES or is_past(folded) or denied(folded) or lexical:
            return begin, before.end(), many
    return None


def _end_of(after: str, subject: str, names: tuple[str, ...]) -> int:
    """Where the clause ends: before a conjunction with a clause of its own, a break, or another verb."""
    end = match.start() if (match := _END.search(after)) else len(after)
    pattern = _named(names)
    for joint in _JOINT.finditer(after, 0, end):
        words = WORD.findall(after[joint.end() : joint.end() + 60])
        content = [word for word in words if not is_adverb(word)]
        if not content:
            return joint.start()
        first = content[0].lower()
        verb = is_past(first) or first in AUXILIARIES or (first.endswith("s") and base_form(first) in BASE)
        following = content[1].lower() if len(content) > 1 else ""
        named = pattern.match(after, joint.end()) if pattern else None
        clause = named and not named["owner"] and ("," in joint[0] or is_finite(following))
        goes_on = "," in joint[0] and first.endswith("ing") and not _ADJECTIVE.search(after, 0, joint.start())
        base = " and " in subject or "," in joint[0] or following in DETERMINERS | {"about", "to"}
        bare = following in PARTICLES or (first in BASE and base)
        inner = "," in joint[0] and any(word.lower() in AUXILIARIES for word in content[1:4])
        if verb or clause or goes_on or bare or inner:
            return joint.start()
    return end


def _second_verb(rest: str, names: tuple[str, ...]) -> bool:
    """Whether a complement holds a finite verb without anything that could be its subject.

    Then what looked like the clause's verb was none: "NAME is painting looks fun".
    """
    pattern = _named(names)
    for number, word in enumerate(found := list(WORD.finditer(rest))):
        if word[0].lower().replace("’", "'") in _FINITE:
            before = {one[0].lower() for one in found[:number]}
            return not (before & _OPENS_CLAUSE or (pattern and pattern.search(rest, 0, word.start())))
    return False
