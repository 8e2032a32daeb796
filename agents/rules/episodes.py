"""Episode trigger and Episode writer without a model (AMA 3.1): cues, word overlap, extractive summaries."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from memcycle.agents.episode_trigger import Boundary, EpisodeTriggerInput, EpisodeTriggerOutput
from memcycle.agents.episode_writer import EpisodeWriterInput, EpisodeWriterOutput
from memcycle.agents.rules.labels import keywords_of, locations_of
from memcycle.agents.rules.wording import Worded, listener_of, worded
from memcycle.agents.views import TurnView
from memcycle.core.language.dates import format_time, read_dates
from memcycle.core.language.names import person_names
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import STOPWORDS, content_stems, stems, tokenize, word_set

Reason = Literal["topic_shift", "request", "saturation", "gap", "farewell"]
GAP = timedelta(hours=4)
SATURATION = 20
WINDOW, LEAST_LENGTH, LEAST_AFTER = 4, 5, 2
LEAST_WORDS = 7
SHIFT, CUE_BONUS = 0.14, 0.08
_FAREWELL = re.compile(
    r"\b(?:bye|goodbye|good\s+night|talk\s+(?:to\s+you\s+)?(?:soon|later|again)"
    r"|see\s+(?:you|ya)(?:\s+(?:soon|later|then|around|tomorrow))?"
    r"|take\s+care|ttyl|catch\s+(?:you|up)\s+later|have\s+a\s+(?:good|great|nice)\s+(?:day"
    r"|night|evening|weekend|one)|gotta\s+(?:go|run)|signing\s+off)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^\W*(?:hey|hi|hello|good\s+(?:morning|afternoon|evening)|yo|long\s+time\s+no)\b", re.IGNORECASE
)
_NEW_TOPIC = re.compile(
    r"\b(?:new\s+topic|(?:let['’]?s|can\s+we)\s+(?:talk\s+about\s+something\s+else"
    r"|change\s+the\s+(?:topic|subject)|switch\s+(?:topics|gears))"
    r"|chang(?:e|ing)\s+(?:the\s+)?(?:topic|subject)|different\s+(?:topic|subject|question))\b",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"(?:^|[.!?]\s+)(?:please\s+)?(?:(?:remember|save|keep)\s+(?:this"
    r"|what\s+we)\b(?!\s+(?:is|was)\b)|make\s+a\s+note\b)",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\b(?:by\s+the\s+way|btw|on\s+another\s+note|anyways?|speaking\s+of|oh,?\s+and"
    r"|guess\s+what|what\s+about\s+you|how\s+about\s+you"
    r"|what['’]s\s+(?:new|up)|how['’](?:s|ve)|any\s+(?:fun\s+)?plans|changing\s+topic)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"\[image:[^\]]*\]", re.IGNORECASE)
LEAST_SENTENCES, MOST_SENTENCES = 3, 7
SAME = 0.5


def episode_trigger(value: EpisodeTriggerInput) -> EpisodeTriggerOutput:
    """Where episodes end in the open segment: time gap, farewell, request, topic shift, saturation.

    A shift is seen best with two turns or more after it; with one, only where a cue phrase announces it
    or the turn shares no word with what went before.
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
    before = turns[cut - 1]
    reason = _between(turns, start, cut) if cut < len(turns) else None
    if reason is not None:
        return reason
    if _farewell_over(turns, start, cut):
        return "farewell"
    if cut < len(turns) and cut - start >= LEAST_LENGTH and _shifts(turns, words, start, cut):
        return "topic_shift"
    if before.role == "human" and _KEEP.search(before.text) and cut - start > 1:
        return "request"
    return "saturation" if cut - start >= SATURATION else None


def _between(turns: Sequence[TurnView], start: int, cut: int) -> Reason | None:
    """What the next turn itself shows."""
    before, after = turns[cut - 1], turns[cut]
    if after.time - before.time > GAP:
        return "gap"
    if _NEW_TOPIC.search(after.text):
        return "request"
    met_again = _FAREWELL.search(before.text) and _GREETING.match(after.text) and cut - start > 1
    return "farewell" if met_again else None


def _farewell_over(turns: Sequence[TurnView], start: int, cut: int) -> bool:
    """Both have said goodbye and nobody goes on doing so."""
    last = turns[start:cut][-2:]
    both = (
        len(last) > 1
        and all(_FAREWELL.search(turn.text) for turn in last)
        and last[0].speaker != last[1].speaker
    )
    return both and not (cut < len(turns) and _FAREWELL.search(turns[cut].text))


def _shifts(turns: Sequence[TurnView], words: Sequence[Counter[str]], start: int, cut: int) -> bool:
    """Whether the words before and after a place have little in common, less than at its neighbours."""
    cue = bool(_CUE.search(turns[cut].text))
    here = _overlap(words, start, cut)
    if len(turns) - cut < LEAST_AFTER and not cue:
        # One turn is little to tell by: it must be long and have no word in common.
        return here == 0 and len(words[cut]) >= LEAST_WORDS
    near = [_overlap(words, start, place) for place in (cut - 1, cut + 1) if start < place < len(turns) - 1]
    limit = SHIFT + (CUE_BONUS if cue else 0)
    return here < limit and (cue or all(here <= other for other in near))


def _overlap(words: Sequence[Counter[str]], start: int, cut: int) -> float:
    """Cosine of the word counts in the windows on both sides of a place."""
    left: Counter[str] = sum(words[max(start, cut - WINDOW) : cut], Counter())
    right: Counter[str] = sum(words[cut : cut + WINDOW], Counter())
    norm = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
    return sum(left[word] * right[word] for word in left) / norm if norm else 0.0


def episode_writer(value: EpisodeWriterInput) -> EpisodeWriterOutput:
    """An extractive third-person summary: the most central statements, in order, with their dates."""
    turns = value.turns
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    human = [turn for turn in turns if turn.role == "human"]
    statements = [(turn, item) for turn in human for item in _statements(turn, turns)]
    topics = _topics([_CAPTION.sub(" ", turn.text) for turn in human or turns], speakers)
    chosen = _central(statements, speakers)
    opening = _opening(turns, speakers, topics)
    body = [_dated(item.text, turn) for turn, item in chosen] or _first_words(turns)
    text = " ".join([opening, *body])
    persons = list(dict.fromkeys([*speakers, *person_names(text, speakers)]))
    return EpisodeWriterOutput(
        title=", ".join(topics[:3]).capitalize() or f"{' and '.join(speakers[:2])}",
        text=text,
        topics=topics,
        persons=[
            name for name in persons if any(turn.speaker != name or turn.role == "human" for turn in turns)
        ],
        locations=locations_of(text, persons),
        keywords=keywords_of(" ".join(topics)) or keywords_of(text),
        importance=round(min(0.8, 0.4 + 0.05 * len(statements)), 3),
    )


def _statements(turn: TurnView, turns: Sequence[TurnView]) -> list[Worded]:
    items = worded(turn.text, turn.speaker, listener_of(turn.speaker, turns))
    return [item for item in items if item.stance != "caption" and not item.extra]


def _central(
    statements: list[tuple[TurnView, Worded]], speakers: Sequence[str]
) -> list[tuple[TurnView, Worded]]:
    """Statements whose words the whole episode shares, none saying another again, in order."""
    names = {stem for name in speakers for stem in stems(name)}
    bags = [set(content_stems(item.text)) - names for _, item in statements]
    counts = Counter(stem for bag in bags for stem in bag)
    wanted = min(MOST_SENTENCES, max(LEAST_SENTENCES, len(statements) // 3))

    def weight(place: int) -> float:
        turn, item = statements[place]
        shared = sum(counts[stem] for stem in bags[place]) / math.sqrt(len(bags[place]) or 1)
        own = 1.5 if item.stance in ("own", "elliptic", "rule") else 1.0
        return own * (shared + 2 * bool(read_dates(turn.text[item.begin : item.end], turn.time)))

    chosen: list[int] = []
    for place in sorted(range(len(statements)), key=lambda place: (-weight(place), place)):
        again = any(
            len(bags[place] & bags[other]) > SAME * len(bags[place] | bags[other]) for other in chosen
        )
        if not again and len(chosen) < wanted:
            chosen.append(place)
    return [statements[place] for place in sorted(chosen)]


def _topics(texts: Sequence[str], speakers: Sequence[str]) -> list[str]:
    """The most frequent content words, by number of turns that use them; pairs where they stand together."""
    names = {stem for name in speakers for stem in stems(name)}
    seen: Counter[str] = Counter()
    surface: dict[str, Counter[str]] = {}
    for text in texts:
        held = {}
        for word in tokenize(text):
            stem = (stems(word) or [""])[0]
            if word in STOPWORDS or word in _EMPTY or stem in names or len(word) < 4 or not word.isalpha():  # noqa: PLR2004
                continue
            held[stem] = word
        seen.update(held.keys())
        for stem, word in held.items():
            surface.setdefault(stem, Counter())[word] += 1
    ranked = sorted(seen, key=lambda stem: (-seen[stem] * math.log(1 + len(stem)), stem))
    return [min(surface[stem], key=lambda word: (-surface[stem][word], word)) for stem in ranked[:5]]


_EMPTY = word_set(
    """
    really great good thanks thank awesome amazing cool love like know think want time things thing well
    much make makes made going gonna yeah wow sure keep look looks sounds sound hope glad feel feels
    always never also back still even just take took get getting nice super definitely totally happy
    excited wait hear tell lots something anything everything people right maybe help pretty would could
    might since been have been last next week year years today yesterday lately haha okay hello fun best
    better talk photo image around come came need trying tried there another other these those guess
    long must wonderful incredible proud
    """
)


def _opening(turns: Sequence[TurnView], speakers: Sequence[str], topics: Sequence[str]) -> str:
    who = " and ".join(speakers) if len(speakers) < 3 else f"{', '.join(speakers[:-1])} and {speakers[-1]}"  # noqa: PLR2004
    day = format_time(turns[0].time, "day") if turns else ""
    about = f" about {', '.join(topics[:3])}" if topics else ""
    return f"On {day}, {who} {'talked' if len(speakers) > 1 else 'spoke'}{about}." if turns else ""


def _first_words(turns: Sequence[TurnView]) -> list[str]:
    """What was said first, quoted, where nothing states a fact."""
    for turn in turns:
        pieces = split_sentences(turn.text)
        if pieces:
            return [f"{turn.speaker} said: “{pieces[0][2]}”"]
    return []


def _dated(statement: str, turn: TurnView) -> str:
    """A statement with the reading of its relative words behind them: "yesterday (7 May 2023)"."""
    out, place = [], 0
    for reading in read_dates(statement, turn.time):
        meaning = format_time(reading.start, reading.precision)
        if meaning.casefold() not in reading.text.casefold():
            out += [statement[place : reading.end], f" ({'about ' if reading.approximate else ''}{meaning})"]
            place = reading.end
    return "".join([*out, statement[place:]])
