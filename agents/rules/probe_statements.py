"""What of a session's turns can be asked for: statements in third person, and what each is worth."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from memcycle.agents.rules.labels import importance_of, kind_of
from memcycle.agents.rules.probe_dates import Dated, dated
from memcycle.agents.rules.statements import opener_length
from memcycle.agents.rules.third_person import third_person
from memcycle.agents.rules.verbs import BASE, is_adverb, is_past
from memcycle.agents.rules.wording import Worded, listener_of, worded
from memcycle.agents.views import TurnView
from memcycle.core.entry import same_text
from memcycle.core.language.names import entities_of, person_names
from memcycle.core.language.questions import is_question
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import STOPWORDS, base_stems, content_stems, tokenize, word_set

Form = Literal["told", "aside", "image", "wish", "foreign"]
_NO_STATEMENT = word_set(
    """
    let let's lets hope thanks thank wish glad sounds looks seems congrats congratulations please hey hi hello
    bye don't i'm so happy sorry proud lemme best yeah oh wow aw haha great good nice cool amazing awesome
    """
)
_EVENT = re.compile(
    r"^\W*(?:\w+\W+){0,6}?(?:\w{2,}ed|went|got|took|made|bought|met|won|began|gave|found|has\s+been)\b"
)
_OPINION = re.compile(
    r"\b(?:should|could|might|may|must|so|really|super|totally|truly|definitely|great|amazing|awesome|important"
    r"|inspiring|proud|glad|grateful|thankful|happy|excited|sure|always|everything|things?|stuff|something)\b",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"(?:^|\s)(\S+)(?:\s+\1){3,}")
LEAST_STEMS, MOST_WORDS, PER_OPINION = 2, 60, 0.06


class Told(NamedTuple):
    """A statement of a turn.

    Attributes:
        turn: The turn that holds it.
        form: `told` a sentence in third person, `aside` what it says in passing of somebody ("Tom is ..."),
            `image` what a shared image shows, `wish` a standing request, `foreign` a sentence as said in a
            language whose grammar the rules do not know.
        dates: Its text with its dates settled.
        worth: How much it is worth asking for, about 0 to 1.
        stems: Its content stems, irregular verbs by their base form.
    """

    turn: TurnView
    form: Form
    dates: Dated
    worth: float
    stems: frozenset[str]


def told_by(turns: Sequence[TurnView]) -> list[Told]:
    """The statements of what people said, in order, each once. Questions and greetings are left out.

    Not only what the rules' Constructor makes facts of: its gaps are worth asking for most.
    """
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    unique: dict[str, Told] = {}
    for turn in turns:
        if turn.role == "human":
            for text, form in _texts(turn, listener_of(turn.speaker, turns)):
                told = _told(turn, text, form, speakers)
                if told is not None:
                    unique.setdefault(same_text(text), told)
    return list(unique.values())


def names_in(turns: Sequence[TurnView]) -> list[str]:
    """Speakers, and names that people write with a capital within their sentences."""
    speakers = list(dict.fromkeys(turn.speaker for turn in turns))
    human = [turn.text for turn in turns if turn.role == "human"]
    found = [name for text in human for name in person_names(text, speakers) if _amid(name, text)]
    return list(dict.fromkeys([*speakers, *found]))


def _amid(name: str, text: str) -> bool:
    """Whether a name stands amid a sentence, where a capital means something."""
    return re.search(rf"[a-z],?\s+{re.escape(name)}\b", text) is not None


def base_set(text: str) -> frozenset[str]:
    """Content stems with irregular verbs by their base form, so that a question meets what it asks about."""
    return frozenset(stem for token in tokenize(text) if token not in STOPWORDS for stem in base_stems(token))


def _texts(turn: TurnView, listener: str | None) -> Iterator[tuple[str, Form]]:
    items = worded(turn.text, turn.speaker, listener)
    for item in items:
        yield from _of_item(turn, item, listener)
    for begin, end, sentence in split_sentences(turn.text):
        if not any(item.begin < end and begin < item.end for item in items) and not is_question(sentence):
            yield from _left_over(turn, sentence, listener)


def _of_item(turn: TurnView, item: Worded, listener: str | None) -> Iterator[tuple[str, Form]]:
    span = turn.text[item.begin : item.end]
    if item.text == f"{turn.speaker}: {span}":
        yield span, "foreign"
    elif item.stance == "caption":
        yield span.removeprefix("[image:").removesuffix("]").strip(), "image"
    elif item.stance == "rule":
        yield span, "wish"
    elif item.extra:
        yield item.text, "aside"
    elif item.stance in ("said", "pronoun"):
        for _, _, sentence in split_sentences(span)[:1]:
            yield third_person(sentence, turn.speaker, listener), "told"
    elif item.stance != "elliptic" or _elliptic_well(span):
        for _, _, sentence in split_sentences(item.text)[:1]:
            yield sentence, "told"


def _elliptic_well(span: str) -> bool:
    """ "Moved to Graz", not "Mixed feelings": a participle before a noun is no verb without its subject."""
    words: list[str] = re.findall(r"[\w'’]+", span.lower())[:2]
    if words[0] == "been":
        return words[-1].endswith("ing")
    participle = words[0].endswith("ed") and is_past(words[0])
    last = words[-1]
    return not participle or last in STOPWORDS or last.endswith("ing")


def _left_over(turn: TurnView, sentence: str, listener: str | None) -> Iterator[tuple[str, Form]]:
    """A sentence the Constructor makes nothing of, unless it asks, greets or tells somebody what to do."""
    piece = sentence[opener_length(sentence) :]
    first = re.match(r"[\w'’]+", piece.lower())
    word = first[0].replace("’", "'") if first else ""
    if word and word not in BASE | _NO_STATEMENT and not is_adverb(word):
        yield third_person(piece, turn.speaker, listener), "told"


def _told(turn: TurnView, text: str, form: Form, speakers: Sequence[str]) -> Told | None:
    text = text.strip().rstrip(".!…,;:-–— ")
    words = text.split()
    if words and words[0].lower() in _NO_STATEMENT:
        return None
    if len(words) > MOST_WORDS or len(content_stems(text)) < LEAST_STEMS or _REPEATED.search(text):
        return None
    dates = Dated(text, text, None) if form == "foreign" else dated(text, turn.time)
    if dates is None:
        return None
    return Told(turn, form, dates, _worth(text, dates, form, speakers), base_set(text))


def _worth(text: str, dates: Dated, form: Form, speakers: Sequence[str]) -> float:
    """By names, numbers, dates and events; opinions and praise are worth less."""
    named = [name for name in entities_of(text, speakers) if name not in speakers]
    worth = importance_of(text, kind_of(text), dated=dates.when is not None, named=bool(named))
    worth += 0.15 * (_EVENT.search(text) is not None) - PER_OPINION * len(_OPINION.findall(text))
    return round(worth - (0.3 if form == "image" else 0.0), 3)


class Rivals:
    """Finds what else in a session a question could mean."""

    def __init__(self, statements: Sequence[Told]) -> None:
        self._holders: defaultdict[str, set[int]] = defaultdict(set)
        self._speakers = [told.turn.speaker for told in statements]
        for place, told in enumerate(statements):
            for stem in told.stems:
                self._holders[stem].add(place)

    def of(self, stems: frozenset[str], place: int) -> int:
        """How many other statements of the same speaker hold all of these stems; all of them for none."""
        shared = [self._holders[stem] for stem in stems if stem in self._holders]
        common = set.intersection(*shared) if shared else set(range(len(self._speakers)))
        return sum(other != place and self._speakers[other] == self._speakers[place] for other in common)

    def frequency(self, stem: str) -> int:
        """How many statements hold a stem."""
        return len(self._holders.get(stem, ()))
