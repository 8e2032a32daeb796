"""Query-Reasoner by rules: other words, other persons, never a query that was tried."""

from collections.abc import Iterator

from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.rules.grounding import Asked, known_speakers, read_question
from memcycle.core.language.tokens import STOPWORDS, content_stems, stems, strip_names, tokenize

# Groups of everyday words that chats use for one another; general English, no topic of its own.
_GROUPS = (
    "job work career occupation employer",
    "kid child children son daughter",
    "buy bought purchase get got",
    "begin start began started launch",
    "move moved relocate",
    "trip travel vacation holiday visit journey",
    "wed married marry wedding husband wife partner",
    "like love enjoy favorite fan",
    "movie film show series",
    "book novel read reading",
    "food dish meal cook recipe",
    "pet dog cat puppy kitten",
    "ill sick injury hurt doctor",
    "study school class course degree",
    "win won prize award competition",
    "house home apartment place live",
    "friend buddy colleague",
    "exercise workout gym training sport",
    "money cost price pay paid",
    "car bike drive vehicle",
    "feel felt emotion happy proud",
    "plan planning going hope want",
    "make made create build built",
    "meet met saw see",
    "song music band concert",
    "party celebrate birthday",
)
_NEAR: dict[str, tuple[str, ...]] = {
    stem: tuple(word for word in group.split() if stem not in stems(word))
    for group in _GROUPS
    for stem in stems(group)
}
_TIME_WORDS = "yesterday today last week weekend month year ago date"


def query_reasoner(value: QueryReasonerInput) -> QueryReasonerOutput:
    """One new query for the gap (MemMA section 3); '' when every form of it was tried."""
    asked = read_question(value.question, known_speakers(value.evidence))
    speaker = value.speaker or (asked.persons[0] if asked.persons else None)
    tried = {_key(query) for query in (*value.tried, "")}
    for query, person, why in _candidates(value, asked, speaker):
        kept = _without(query, value.avoid)
        if _key(kept) not in tried:
            return QueryReasonerOutput(query=kept, speaker=person, why=why)
    return QueryReasonerOutput(query="", why="nothing left to try")


def _candidates(
    value: QueryReasonerInput, asked: Asked, speaker: str | None
) -> Iterator[tuple[str, str | None, str]]:
    words = _content(value.question, asked)
    gap = _content(value.gap, asked)
    named = f"{speaker} " if speaker else ""
    if value.needs_time and words:
        yield f"{named}{' '.join(words)} {_TIME_WORDS}", speaker, "with words of time"
    if words:
        yield " ".join(words), speaker, "without the name"
        yield f"{named}{' '.join(words)}", speaker, "with the person's name"
    near = [other for word in words for stem in stems(word) for other in _NEAR.get(stem, ())]
    if near:
        yield f"{named}{' '.join(dict.fromkeys([*words, *near]))}", speaker, "with words of like meaning"
        yield " ".join(dict.fromkeys(near)), speaker, "only words of like meaning"
    new = [word for word in gap if word not in words]
    if new:
        yield f"{named}{' '.join(new)}", speaker, "the gap alone"
    for word in sorted(words, key=lambda word: (-len(word), word)):
        yield f"{named}{word}", speaker, "one word of the question"


def _content(text: str, asked: Asked) -> list[str]:
    """Words that say something, as written but folded, without names; each once."""
    plain = strip_names(text, asked.persons)
    words = [word for word in tokenize(plain) if word not in STOPWORDS and content_stems(word)]
    return list(dict.fromkeys(words))


def _without(query: str, avoid: list[str]) -> str:
    unwanted = {stem for term in avoid for stem in stems(term)}
    return " ".join(word for word in query.split() if not set(stems(word)) & unwanted)


def _key(query: str) -> frozenset[str]:
    return frozenset(content_stems(query))
