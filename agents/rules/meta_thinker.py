"""Meta-Thinker and Query-Reasoner without a model (MemMA 3): what a chunk says that is new, what a question
still lacks, and the question in another form, never a query that was tried."""

from collections.abc import Iterator

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.rules.content import Stated, says_all
from memcycle.agents.rules.evidence import gap_of, passages, read_question, speakers_of
from memcycle.agents.rules.judge import claims_of
from memcycle.agents.rules.slots import contradiction
from memcycle.agents.rules.statements import statements_of
from memcycle.core.entry import same_speaker
from memcycle.core.language.tokens import STOPWORDS, content_stems, stems, strip_names, tokenize

_TIME_WORDS = "yesterday today last week weekend month year ago date"


def guide(value: GuideInput) -> GuideOutput:
    """Every statement of the chunk, sorted into new, known and at odds with memory."""
    keep: list[str] = []
    redundant: list[str] = []
    conflicts: list[str] = []
    for turn in (turn for turn in value.turns if turn.role == "human"):
        near = [
            (memory, claim)
            for memory in value.memories
            if memory.speaker is None or same_speaker(memory.speaker, turn.speaker)
            for claim in claims_of(memory)
        ]
        for statement in statements_of(turn.text):
            said = f"{turn.speaker}: {statement.text}"
            new = Stated(statement.text, turn.speaker, turn.time)
            if any(says_all(Stated(claim, memory.speaker, memory.time), new) for memory, claim in near):
                redundant.append(said)
                continue
            keep.append(said)
            conflicts += [
                f"{said} (memory {memory.n} says: {claim})"
                for memory, claim in near
                if contradiction(statement.text, turn.speaker, claim, memory.speaker)
            ][:1]
    return GuideOutput(keep=keep, redundant=redundant, conflicts=conflicts)


def answerability(value: AnswerabilityInput) -> AnswerabilityOutput:
    """The blocking-gap test: what content words of the question nothing of the asked person holds."""
    parsed = read_question(value.question, speakers_of(value.evidence, value.window), value.now)
    gap = gap_of(parsed, passages(parsed, value.evidence))
    if gap is None:
        return AnswerabilityOutput(answerable=True, why="what is asked stands in the evidence")
    return AnswerabilityOutput(
        answerable=False,
        gap=gap.words,
        speaker=parsed.persons[0] if parsed.persons else None,
        needs_time=parsed.slot in ("when", "how_long"),
        why=gap.why,
    )


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
