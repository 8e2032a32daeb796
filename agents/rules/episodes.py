"""Episode trigger and writer without a model (AMA 3.1): cues and word overlap; the densest statements."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from memcycle.agents.episode_trigger import Boundary, EpisodeTriggerInput, EpisodeTriggerOutput
from memcycle.agents.episode_writer import EpisodeWriterInput, EpisodeWriterOutput
from memcycle.agents.rules.content import content
from memcycle.agents.rules.statements import SMALL_TALK, Statement, statements_of, when_of
from memcycle.agents.views import TurnView
from memcycle.core.language.dates import format_time
from memcycle.core.language.names import person_names, places_of
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.small_talk import tells
from memcycle.core.language.tokens import STOPWORDS, content_stems, stems, tokenize

Reason = Literal["topic_shift", "request", "saturation", "gap", "farewell"]
GAP = timedelta(hours=4)
SATURATION = 20
WINDOW, LEAST_LENGTH, LEAST_AFTER, LEAST_WORDS = 4, 5, 2, 7
SHIFT, CUE_BONUS = 0.14, 0.08
"""Cosine of the words before and after a place below which the topic shifts; more with a cue phrase."""
_FAREWELL = re.compile(
    r"\b(?:bye|goodbye|good\s+night|talk\s+(?:to\s+you\s+)?(?:soon|later|again)"
    r"|see\s+(?:you|ya)(?:\s+(?:soon|later|then|around|tomorrow))?|take\s+care|ttyl|catch\s+(?:you|up)\s+later"
    r"|have\s+a\s+(?:good|great|nice)\s+(?:day|night|evening|weekend|one)|gotta\s+(?:go|run)|signing\s+off)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^\W*(?:hey|hi|hello|good\s+(?:morning|afternoon|evening)|yo|long\s+time\s+no)\b", re.IGNORECASE
)
_NEW_TOPIC = re.compile(
    r"\b(?:new\s+topic|(?:let['’]?s|can\s+we)\s+(?:talk\s+about\s+something\s+else|change\s+the\s+(?:topic|subject)"
    r"|switch\s+(?:topics|gears))|chang(?:e|ing)\s+(?:the\s+)?(?:topic|subject)|different\s+(?:topic|subject|question))\b",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"(?:^|[.!?]\s+)(?:please\s+)?(?:(?:remember|save|keep)\s+(?:this|what\s+we)\b(?!\s+(?:is|was)\b)|make\s+a\s+note\b)",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\b(?:by\s+the\s+way|btw|on\s+another\s+note|anyways?|speaking\s+of|oh,?\s+and|guess\s+what"
    r"|(?:what|how)\s+about\s+you|what['’]s\s+(?:new|up)|how['’](?:s|ve)|any\s+(?:fun\s+)?plans|changing\s+topic)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"\[image:[^\]]*\]", re.IGNORECASE)
LEAST_SENTENCES, MOST_SENTENCES = 3, 7
MOST_TOPICS, SHORTEST = 5, 4


def episode_trigger(value: EpisodeTriggerInput) -> EpisodeTriggerOutput:
    """Where episodes end in the open segment: time gap, farewell, request, topic shift, saturation.

    A shift is seen best with two turns or more after it; with one, only where a cue phrase announces it or
    the turn shares no word with what went before.
    """
    turns = value.turns
    words = [Counter(content_stems(_CAPTION.sub(" ", turn.text))) for turn in turns]
    first_allowed = max(1, len(turns) - value.new)
    boundaries: list[Boundary] = []
    start = 0
    for cut in range(1, len(turns) + 1):
        reason = _reason(turns, words, start, cut)
        if reason and cut >= first_allowed:
            boundaries.append(Boundary(after=turns[cut - 1].n, reason=reason))
            start = cut
    return EpisodeTriggerOutput(boundaries=boundaries)


def _reason(turns: Sequence[TurnView], words: Sequence[Counter[str]], start: int, cut: int) -> Reason | None:
    """Why an episode that begins at index `start` ends before index `cut`, None when it goes on."""
    before, after = turns[cut - 1], turns[cut] if cut < len(turns) else None
    if after is not None and after.time - before.time > GAP:
        return "gap"
    if after is not None and _NEW_TOPIC.search(after.text):
        return "request"
    met_again = after is not None and _FAREWELL.search(before.text) and _GREETING.match(after.text)
    if (met_again and cut - start > 1) or _farewell_over(turns[start:cut][-2:], after):
        return "farewell"
    if after is not None and cut - start >= LEAST_LENGTH and _shifts(turns, words, start, cut):
        return "topic_shift"
    if before.role == "human" and _KEEP.search(before.text) and cut - start > 1:
        return "request"
    return "saturation" if cut - start >= SATURATION else None


def _farewell_over(last: Sequence[TurnView], after: TurnView | None) -> bool:
    """Both have said goodbye and nobody goes on doing so."""
    both = all(_FAREWELL.search(turn.text) for turn in last) and len({turn.speaker for turn in last}) > 1
    return both and not (after is not None and _FAREWELL.search(after.text))


def _shifts(turns: Sequence[TurnView], words: Sequence[Counter[str]], start: int, cut: int) -> bool:
    """Whether the words before and after a place have little in common, less than at its neighbours."""
    cue = _CUE.search(turns[cut].text) is not None
    here = _overlap(words, start, cut)
    if len(turns) - cut < LEAST_AFTER and not cue:
        # One turn is little to tell by: it must be long and have no word in common.
        return here == 0 and len(words[cut]) >= LEAST_WORDS
    near = [_overlap(words, start, place) for place in (cut - 1, cut + 1) if start < place < len(turns) - 1]
    return here < SHIFT + CUE_BONUS * cue and (cue or all(here <= other for other in near))


def _overlap(words: Sequence[Counter[str]], start: int, cut: int) -> float:
    """Cosine of the word counts in the windows on both sides of a place."""
    left: Counter[str] = sum(words[max(start, cut - WINDOW) : cut], Counter())
    right: Counter[str] = sum(words[cut : cut + WINDOW], Counter())
    norm = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
    return sum(left[word] * right[word] for word in left) / norm if norm else 0.0


def episode_writer(value: EpisodeWriterInput) -> EpisodeWriterOutput:
    """Who talked about what and when, and the first and densest statements as they were said."""
    turns = value.turns
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    human = [turn for turn in turns if turn.role == "human"]
    said = [(turn, statement) for turn in human for statement in statements_of(turn.text)]
    topics = _topics([_CAPTION.sub(" ", turn.text) for turn in human or turns], speakers)
    body = [_quoted(turn, statement) for turn, statement in _chosen(said)] or _first_words(turns)
    text = " ".join([_opening(turns, speakers, topics), *body])
    return EpisodeWriterOutput(
        title=", ".join(topics[:3]).capitalize() or " and ".join(speakers[:2]),
        text=text,
        topics=topics,
        persons=person_names(text, [turn.speaker for turn in human]),
        locations=places_of(text, speakers),
        keywords=topics,
        importance=round(min(0.8, 0.4 + 0.05 * len(said)), 3),
    )


def _chosen(said: list[tuple[TurnView, Statement]]) -> list[tuple[TurnView, Statement]]:
    """The first statement and those that share most words with the others, in order."""
    words = [content(statement.text) for _, statement in said]
    counts = Counter(word for bag in words for word in bag)
    dense = [sum(counts[word] for word in bag) / math.sqrt(len(bag) or 1) for bag in words]
    most = min(MOST_SENTENCES, max(LEAST_SENTENCES, len(said) // 3))
    best = sorted(range(len(said)), key=lambda place: (place > 0, -dense[place], place))[:most]
    return [said[place] for place in sorted(best)]


def _quoted(turn: TurnView, statement: Statement) -> str:
    """A statement with its speaker, and behind it when it was where its words alone do not tell."""
    when = when_of(statement.text, turn.time)
    day = format_time(when.start, when.precision) if when else ""
    told = not day or day.casefold() in statement.text.casefold()
    return f"{turn.speaker}: {statement.text}" + ("" if told else f" ({day})")


def _opening(turns: Sequence[TurnView], speakers: Sequence[str], topics: Sequence[str]) -> str:
    if not turns:
        return ""
    who = " and ".join(filter(None, (", ".join(speakers[:-1]), speakers[-1])))
    about = f" about {', '.join(topics[:3])}" if topics else ""
    return (
        f"On {format_time(turns[0].time, 'day')}, {who} {'talked' if len(speakers) > 1 else 'spoke'}{about}."
    )


def _first_words(turns: Sequence[TurnView]) -> list[str]:
    """What was said first that tells something, where nothing is stated."""
    spoken = ((turn.speaker, text) for turn in turns for _, _, text in split_sentences(turn.text))
    return next(([f"{speaker}: {text}"] for speaker, text in spoken if tells(text)), [])


def _topics(texts: Sequence[str], speakers: Sequence[str]) -> list[str]:
    """The content words that most turns use, the longer first among equals."""
    names = content(" ".join(speakers))
    seen: Counter[str] = Counter()
    surface: dict[str, Counter[str]] = {}
    for text in texts:
        held: dict[str, str] = {}
        for word in tokenize(text):
            stem = "".join(stems(word)[:1])
            small = word in STOPWORDS or len(word) < SHORTEST or not word.isalpha()
            if not small and stem not in names | SMALL_TALK:
                held[stem] = word
        seen.update(held.keys())
        for stem, word in held.items():
            surface.setdefault(stem, Counter())[word] += 1
    ranked = sorted(seen, key=lambda stem: (-seen[stem] * math.log(1 + len(stem)), stem))[:MOST_TOPICS]
    return [min(surface[stem], key=lambda word: (-surface[stem][word], word)) for stem in ranked]
