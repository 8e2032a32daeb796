"""What a statement is about: its kind, persons, places, entities, keywords and weight."""

import re
from collections.abc import Iterable

from memcycle.core.entry import Kind
from memcycle.core.language.date_forms import MONTHS, WEEKDAYS
from memcycle.core.language.names import without_possessive
from memcycle.core.language.tokens import STOPWORDS, content_stems, tokenize

_PREFERENCE = re.compile(
    r"^\S+(?:\s+and\s+(?:others|\S+)|['’]s?\s+\w+)?(?:\s+(?:doesn't|does not|don't|really"
    r"|also|still|both|just|always|absolutely))*\s+(?:likes?|loves?|hates?|prefers?|enjoys?"
    r"|dislikes?|adores?|can't stand"
    r"|(?:is|are)\s+(?:\w+\s+)?(?:a\s+(?:\w+\s+)?fan\s+of|into|fond\s+of|passionate\s+about"
    r"|obsessed\s+with))\b|\bfavou?rites?\b",
    re.IGNORECASE,
)
_PROJECT = re.compile(
    r"\b(?:deadline|sprint|milestone|deploy(?:ed|ment|ing)?|release[ds]?|ticket"
    r"|pull request|repo(?:sitory)?|branch|bug|backlog"
    r"|roadmap|migration|prototype|codebase|build)\b.*\b(?:is|was|are|were|has|have|moved"
    r"|done|due|finished|fixed|blocked"
    r"|works?|uses?|needs?|switched|merged|shipped)\b",
    re.IGNORECASE,
)
_STABLE = re.compile(
    r"^\S+(?:\s\S+)?\s(?:and others\s)?(?:is|are|has|have|owns?|lives?|works?|studies|study"
    r"|teaches|knows?|believes?|speaks?|comes from|was born"
    r"|(?:is|has been) (?:married|allergic|engaged|single|vegan|vegetarian))\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:is|are|has been|have been)\s+(?:\w+ly\s+)?(?:\w+ing|excited|stoked|thrilled"
    r"|nervous|happy|sad|tired|going|thinking)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|around|visit(?:ed|ing)?|toured|across"
    r"|of)\s+(?:the\s+)?(?P<place>[A-Z][\w’'-]*(?:[ ,]+[A-Z][\w’'-]*)*)"
)
_PLAIN_PLACE = re.compile(
    r"\b(?:in|at|to|from|near)\s+(?:the|a|an|(?:\w+['’]s?))\s+"
    r"(?P<place>(?:[\w-]+\s){0,2}?(?:park|beach|museum|school|gym|lake|mountains?|"
    r"church|hospital|cafe|café|restaurant|library|studio|shelter|forest|office|airport"
    r"|university|college|market|mall|"
    r"theater|theatre|zoo|farm|hotel|center|centre|garden|stadium))\b"
)
_NUMBER = re.compile(
    r"\b\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred"
    r"|thousand|million)\b",
    re.IGNORECASE,
)
_CALENDAR = frozenset(MONTHS) | frozenset(WEEKDAYS)
MAX_KEYWORDS, SHORTEST = 10, 3


def kind_of(text: str) -> Kind:
    """The kind of a third-person statement, by its verb."""
    if re.match(r"^\S+(?:\s\S+)? asked: ", text):
        return "procedural"
    if _PREFERENCE.search(text):
        return "preference"
    if _PROJECT.search(text):
        return "project_state"
    return "semantic" if _STABLE.match(text) and not _PASSING.search(text) else "episodic"


def locations_of(text: str, persons: Iterable[str] = ()) -> list[str]:
    """Places named after a preposition of place; no gazetteer, so some names of events are among them."""
    known = {part.casefold() for name in persons for part in name.split()}
    found = []
    for match in _PLACE.finditer(text):
        place = without_possessive(match["place"].rstrip(", "))
        first = place.split()[0].casefold().rstrip(",")
        if first not in known | _CALENDAR | STOPWORDS and not match[0].startswith("of"):
            found.append(place)
    found += [match["place"] for match in _PLAIN_PLACE.finditer(text)]
    return list(dict.fromkeys(found))


def keywords_of(text: str) -> list[str]:
    """Content words in order, each once, at most ten."""
    words = [word for word in tokenize(text) if word not in STOPWORDS and len(word) >= SHORTEST]
    return list(dict.fromkeys(words))[:MAX_KEYWORDS]


def importance_of(text: str, kind: Kind, *, dated: bool, named: bool) -> float:
    """0.3 to 0.9: up for numbers, names, dates, preferences and length."""
    score = 0.35 + 0.1 * dated + 0.1 * named + 0.1 * bool(_NUMBER.search(text))
    score += 0.15 * (kind in ("preference", "procedural")) + 0.1 * (kind in ("semantic", "project_state"))
    score += min(len(content_stems(text)), 8) * 0.0125
    return round(min(score, 0.9), 3)
