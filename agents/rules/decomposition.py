"""Takes a question for several things apart, by rules: two questions in one, several people, alternatives."""

import re
from collections.abc import Iterator, Sequence

from memcycle.core.language.questions import choices
from memcycle.core.language.tokens import content_stems, strip_names, tokenize

_JOINT = re.compile(
    r",?\s+\band\s+(?=(?:who|whom|whose|what|which|where|when|why|how)\b)|[?;]\s+(?=\w)", re.IGNORECASE
)
_LEAST = 2
"""Content stems with which a question stands alone."""


def sub_questions(question: str, persons: Sequence[str], most: int) -> list[str]:
    """Questions that stand alone and together ask what a question asks, at most so many; [] where it is one.

    Args:
        persons: Persons it names.
    """
    found = [part for part in _parts(question, persons) if part.casefold() != question.casefold()]
    once = list({part.casefold(): part for part in found}.values())
    return once[:most] if len(once) > 1 else []


def _parts(question: str, persons: Sequence[str]) -> Iterator[str]:
    clauses = [clause.strip(" ?") for clause in _JOINT.split(question) if clause.strip(" ?")]
    if len(clauses) > 1:
        first = clauses[0]
        yield first
        for clause in clauses[1:]:
            # "and when was it?" means what the first one asks about.
            alone = len(content_stems(clause)) >= _LEAST
            yield clause if alone else f"{clause} ({_matter(first)})"
        return
    if len(persons) > 1:
        for person in persons:
            others = [other for other in persons if other != person]
            rest = _without_joints(strip_names(question, [*others, person]))
            yield f"{person} {rest}".strip()
        return
    offered = choices(question)
    whole = " or ".join(offered)
    if offered and whole in question:
        for choice in offered:
            yield question.replace(whole, choice)


def _matter(clause: str) -> str:
    """What a clause is about: its words without those of asking."""
    return " ".join(word for word in tokenize(clause) if content_stems(word)) or clause


def _without_joints(text: str) -> str:
    """The text without what joined the names taken out."""
    return " ".join(
        re.sub(r"\b(?:both|and|or|with)\s+(?=(?:and|or|both|have|has|do|does|\W)|$)", "", text).split()
    )
