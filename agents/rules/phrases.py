"""English phrases for probes: where they end, whose pronouns stand alone, which words open them."""

import re

from memcycle.agents.rules.verb_forms import base_form
from memcycle.agents.rules.verbs import AUXILIARIES, BASE, is_adverb, is_past
from memcycle.core.language.tokens import word_set

PREPOSITIONS = word_set(
    """
    in on at to from with for of by about into over through around near toward towards against as during
    under
    """
)
DETERMINERS = word_set(
    """
    a an the some any my our his her their your its this that these those another every each both all many
    several few lots more most
    """
)
PARTICLES = word_set("up out off down back away together along forward")
PEOPLE = word_set(
    """
    mom mum mother dad father parents sister sisters brother brothers siblings wife husband partner boyfriend
    girlfriend son sons daughter daughters kids children child baby friend friends family cousin cousins aunt
    uncle grandma grandpa grandmother grandfather niece nephew colleague colleagues coworker coworkers boss
    neighbor neighbors neighbour neighbours teammate teammates coach teacher mentor mentors roommate fiance
    fiancee folks fellow crew gang buddy buddies pal pals peers people person man woman men women guy guys
    girl boy someone somebody everyone students student investors dancers customers clients members leaders
    artist artists musician musicians author doctor therapist veteran veterans volunteers players fans
    """
)
WORD = re.compile(r"[\w'’&-]+")
_DANGLING = re.compile(
    r"\b(?:it|its|it's|this|that's|these|those|there|here|one|ones|he|she|him|her|his|hers|you|your|yours|yourself"
    r"|ya|i|me|my|mine|myself|we|us|our|ours|ourselves)\b|^(?:they|them|their|theirs|that|so|such|not)\b"
    r"|\b(?:them|that|such|them\s+all)$|\bsome\s+to\b|\bmore$|\b(?:of|for|in|on|at|with|about|all|like|do|did|does)\s+(?:that|them)\b",
    re.IGNORECASE,
)
_GROUPS = re.compile(r"\b(?:they|them|their|theirs)\b", re.IGNORECASE)
_CUT = re.compile(
    r",?\s+(?=(?:in|on|at|to|from|with|for|about|during|after|before|by|through|over|and|or|as|where|who|that"
    r"|while|because|near|into|around|like|including|since)\b)|,\s+",
    re.IGNORECASE,
)
MOST_ANSWER, LEAST_ANSWER = 12, 4
"""Words of an answer."""


def dangles(words: str, subject: str) -> bool:
    """Whether words hold a pronoun that nothing in the statement explains."""
    if _DANGLING.search(words):
        return True
    # "their" of a group that is the subject, or of people named before it, is explained.
    group = _GROUPS.search(words)
    return group is not None and " and " not in subject and not names_people(words[: group.start()])


def cut(words: str, most: int) -> str | None:
    """The words up to a phrase's end so that they are at most so many; None where no phrase ends there."""
    if len(words.split()) <= most:
        return words.strip(" ,")
    ends = [match.start() for match in _CUT.finditer(words) if len(words[: match.start()].split()) <= most]
    fitting = [
        end for end in ends if closes(words[:end]) and not is_verbal(words[:end].rsplit(maxsplit=1)[-1])
    ]
    return words[: fitting[-1]].strip(" ,") if fitting else None


def is_verbal(word: str) -> bool:
    """Whether a word may be a verb that what follows belongs to."""
    folded = word.lower()
    return is_past(folded) or folded in BASE or folded.endswith("ing") or base_form(folded) in BASE


def closes(words: str) -> bool:
    """Whether a phrase may end here: not after "to", "the" or "and"."""
    last = words.rsplit(maxsplit=1)[-1].lower() if words.split() else ""
    return (
        bool(last)
        and not is_adverb(last)
        and last not in AUXILIARIES | PREPOSITIONS | DETERMINERS | {"and", "or", "who", "but", "as", "like"}
    )


def names_people(words: str) -> bool:
    """Whether a word for a person or a group is among them."""
    return any(word.lower() in PEOPLE for word in WORD.findall(words))
