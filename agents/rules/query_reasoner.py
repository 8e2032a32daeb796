"""Query-Reasoner without a model: the question in another form, never a query that was tried (MemMA 3)."""

from collections.abc import Iterator

from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.rules.evidence import read_question, speakers_of
from memcycle.core.language.tokens import STOPWORDS, content_stems, stems, strip_names, tokenize

_TIME_WORDS = "yesterday today last week weekend month year ago date"


def query_reasoner(value: QueryReasonerInput) -> QueryReasonerOutput:
    """One new query for the gap; '' when every form of it was tried."""
    parsed = read_question(value.question, speakers_of(value.evidence))
    speaker = value.speaker or next(iter(parsed.persons), None)
    tried = {_key(query) for query in (*value.tried, "")}
    unwanted = {stem for term in value.avoid for stem in stems(term)}
    for query, why in _queries(value, parsed.persons, f"{speaker} " if speaker else ""):
        kept = " ".join(word for word in query.split() if not set(stems(word)) & unwanted)
        if _key(kept) not in tried:
            return QueryReasonerOutput(query=kept, speaker=speaker, why=why)
    return QueryReasonerOutput(query="", why="nothing left to try")


def _queries(value: QueryReasonerInput, persons: tuple[str, ...], named: str) -> Iterator[tuple[str, str]]:
    words, gap = _content(value.question, persons), _content(value.gap, persons)
    if value.needs_time and words:
        yield f"{named}{' '.join(words)} {_TIME_WORDS}", "with words of time"
    if words:
        yield " ".join(words), "without the name"
        yield f"{named}{' '.join(words)}", "with the person's name"
    if new := [word for word in gap if word not in words]:
        yield f"{named}{' '.join(new)}", "the gap alone"
    for word in sorted(words, key=lambda word: (-len(word), word)):
        yield f"{named}{word}", "one word of the question"


def _content(text: str, persons: tuple[str, ...]) -> list[str]:
    """Words that say something, without names; each once."""
    return list(dict.fromkeys(word for word in tokenize(strip_names(text, persons)) if word not in STOPWORDS))


def _key(query: str) -> frozenset[str]:
    return frozenset(content_stems(query))
