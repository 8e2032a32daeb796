"""Prober by rules: questions from the session's own sentences, those most worth asking first (MemMA 3.4)."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memcycle.agents.prober import ProbeDraft, ProberInput, ProberOutput
from memcycle.agents.rules.clauses import clause_of
from memcycle.agents.rules.open_questions import about, cloze
from memcycle.agents.rules.probe_dates import answer_of, at
from memcycle.agents.rules.probe_statements import Rivals, Told, base_set, names_in, told_by
from memcycle.agents.rules.shared_topics import Shared
from memcycle.agents.rules.wh_questions import Asked, wh_questions, when_question
from memcycle.core.language.dates import format_time
from memcycle.core.probe import ProbeKind

_LIGHT = base_set(
    "be have do get make take go come want need like love feel think know see try start keep find give use"
    " say tell put let help mean look work hope plan able long new really lot thing stuff time way bit great"
    " good day something others life world kind seem image share show completes themself"
)
_OPEN_COST, _CLOZE_COST, _LAST_COST = 0.2, 0.3, 0.5
"""What a question about a topic, a cloze, and a cloze cut anywhere take from a statement's worth."""
_NEW_KIND, _MUCH_OF_KIND = 0.1, 0.2
MIN_WORTH, MOST_SHARE = 0.4, 0.4
"""Worth below which a stretch is passed over; share of a kind beyond which other kinds go first."""


class Candidate(NamedTuple):
    """A probe that could be made, with its worth and the statement it comes from."""

    draft: ProbeDraft
    worth: float
    place: int


def prober(value: ProberInput) -> ProberOutput:
    """At most `count` probes: spread over the turns, of mixed kinds, each asked for once.

    What a sentence is worth decides, not whether the rules can read it: where no wh-question can be made,
    what was said about its topic is asked for, else how it goes on.
    """
    maker = _Maker(value)
    chosen = _choose(list(maker.candidates()), value)
    return ProberOutput(
        probes=[one.draft for one in sorted(chosen, key=lambda one: (one.draft.turn, one.place))]
    )


class _Maker:
    """Makes the candidates of a session."""

    def __init__(self, value: ProberInput) -> None:
        self.statements = told_by(value.turns)
        self.names = names_in(value.turns)
        self.name_stems = base_set(" ".join(self.names))
        self.rivals = Rivals(self.statements)
        self.shared = Shared(value.memories, self.statements, self.name_stems | _LIGHT)

    def candidates(self) -> Iterator[Candidate]:
        for place, told in enumerate(self.statements):
            for asked, kind, cost in self._asked(place, told):
                draft = self._checked(asked, kind, told)
                if draft is not None:
                    fresh = len(self._content(draft.answer) - self._content(draft.question))
                    yield Candidate(draft, told.worth - cost + 0.02 * min(fresh, 5), place)

    def _asked(self, place: int, told: Told) -> Iterator[tuple[Asked, ProbeKind, float]]:
        """The questions of a statement, one of each kind at most."""
        if told.form != "told":
            asked = _special(told)
            if asked is not None and self._alone(told):
                yield asked, "single-hop", _CLOZE_COST if told.form == "foreign" else 0.0
            return
        clause = clause_of(told.dates.plain, self.names)
        if clause and told.dates.when and (question := when_question(clause)):
            asked = Asked(question, answer_of(told.dates.when, told.turn.speaker), at_end=False)
            if self._specific(asked.question, place):
                yield asked, "temporal", 0.0
        plain = [self._pinned(asked, place, told) for asked in (wh_questions(clause) if clause else ())]
        fitting = [asked for asked in plain if asked is not None]
        yield from self._cross(fitting, told)
        yield from ((asked, "single-hop", cost) for asked, cost in self._plainly(fitting, place, told))

    def _alone(self, told: Told) -> bool:
        """Whether no other image or request of this speaker could be meant by a question for its day."""
        alike = [
            one for one in self.statements if (one.form, one.turn.speaker) == (told.form, told.turn.speaker)
        ]
        return told.form in ("aside", "foreign") or len(alike) == 1

    def _plainly(self, fitting: Sequence[Asked], place: int, told: Told) -> Iterator[tuple[Asked, float]]:
        """The best question that can be made of a statement, and what it costs its worth."""
        if fitting:
            yield fitting[0], 0.0
        elif (asked := self._about(told, None)) is not None:
            yield asked, _OPEN_COST
        else:
            for cost, anywhere in ((_CLOZE_COST, False), (_LAST_COST, True)):
                asked = cloze(told.dates.plain, told.turn.speaker, anywhere=anywhere)
                if asked is not None and self._specific(asked.question, place):
                    yield asked, cost
                    return

    def _cross(self, fitting: Sequence[Asked], told: Told) -> Iterator[tuple[Asked, ProbeKind, float]]:
        """A question that names what earlier memories speak of too and asks for what is new."""
        topics = self.shared.topics(told)
        if not topics:
            return
        asked = next((one for one in fitting if topics & base_set(one.question)), None) or self._about(
            told, topics
        )
        if asked is not None and self.shared.adds(asked.answer, topics):
            yield asked, "cross-session", 0.0 if asked in fitting else _OPEN_COST

    def _about(self, told: Told, wanted: frozenset[str] | None) -> Asked | None:
        return about(told.dates.full, told.turn, self.names, self._rarity, wanted)

    def _rarity(self, topic: str) -> float:
        """1 for a topic only one statement has, less for others; negative where its words say little."""
        content = self._content(topic)
        if not content:
            return -1.0
        rare = 1 / min(max(self.rivals.frequency(stem), 1) for stem in content)
        return rare - 0.5 if rare >= 1 / 2 else -1.0

    def _pinned(self, asked: Asked, place: int, told: Told) -> Asked | None:
        """The question, with the day it happened or was told where it could mean much; else None."""
        if self._specific(asked.question, place) and not self.shared.known(self._content(asked.question)):
            return asked
        if not asked.at_end or not self._content(asked.question):
            return None
        bare = asked.question.rstrip("?")
        if told.dates.when is not None:
            return asked._replace(question=f"{bare} {at(told.dates.when)}?")
        if self._specific(asked.question, place):
            return asked._replace(question=f"{bare}, as told on {format_time(told.turn.time, 'day')}?")
        return None

    def _specific(self, question: str, place: int) -> bool:
        content = self._content(question)
        return bool(content) and not self.rivals.of(content, place)

    def _content(self, text: str) -> frozenset[str]:
        return base_set(text) - self.name_stems - _LIGHT

    def _checked(self, asked: Asked, kind: ProbeKind, told: Told) -> ProbeDraft | None:
        """The probe, where its answer stands in its turn and not in its question."""
        answer, question = " ".join(asked.answer.split()), " ".join(asked.question.split())
        content, common = base_set(answer), self.name_stems
        # Dates that were written out stand in no turn, nor do the words that stand for "we" and "myself".
        written = base_set(told.dates.full) - base_set(told.dates.plain) | base_set("others themself")
        if kind == "temporal":
            written |= _date_stems(told)
        else:
            common |= _LIGHT
        supported = content <= base_set(told.turn.text) | self.name_stems | written
        fresh = content - base_set(question) - common or told.form == "foreign"
        whole = answer.count('"') % 2 == 0 and answer.casefold() not in question.casefold()
        if not supported or not fresh or not whole:
            return None
        return ProbeDraft(question=question, answer=answer, turn=told.turn.n, kind=kind)


def _date_stems(told: Told) -> frozenset[str]:
    when = told.dates.when
    return base_set(format_time(when.start, when.precision)) if when else frozenset()


def _special(told: Told) -> Asked | None:
    """The questions for images, standing requests, asides and foreign sentences."""
    text, speaker = told.dates.full, told.turn.speaker
    day = format_time(told.turn.time, "day")
    if told.form == "image":
        return Asked(f"What does the image show that {speaker} shared on {day}?", text)
    if told.form == "wish":
        return Asked(f"What standing request did {speaker} make on {day}?", text)
    if told.form == "aside":
        return Asked(f"Who or what is {text.split(' is ')[0]}?", text)
    return cloze(text, speaker, foreign=True, anywhere=True)


def _choose(candidates: Sequence[Candidate], value: ProberInput) -> list[Candidate]:
    """The best of each stretch of the session, then the best of what is left; a turn twice only at last."""
    turns = list(dict.fromkeys(one.draft.turn for one in candidates))
    size = max(1, math.ceil(len(turns) / value.count))
    stretches = [set(turns[start : start + size]) for start in range(0, len(turns), size)]
    chosen: list[Candidate] = []
    for stretch in stretches:
        worthy = [one for one in candidates if one.draft.turn in stretch and one.worth >= MIN_WORTH]
        _take(worthy, chosen, value.count, 1)
    asked = {one.draft.turn for one in chosen}
    _take([one for one in candidates if one.draft.turn not in asked], chosen, value.count)
    _take(candidates, chosen, value.count)
    return chosen


def _take(pool: Sequence[Candidate], chosen: list[Candidate], count: int, most: int | None = None) -> None:
    """Adds the best candidates of the pool, no statement and no question twice."""
    left = list(pool)
    most = count if most is None else most
    while left and most and len(chosen) < count:
        kinds = Counter(one.draft.kind for one in chosen)
        best = max(left, key=lambda one: (_wanted(one, kinds, count), -one.place))
        left.remove(best)
        if not any(_same(best, other) for other in chosen):
            chosen.append(best)
            most -= 1


def _wanted(one: Candidate, kinds: Counter[ProbeKind], count: int) -> float:
    """Worth, raised for a kind not asked for yet and lowered for one that has its share."""
    had = kinds[one.draft.kind]
    return one.worth + _NEW_KIND * (had == 0) - _MUCH_OF_KIND * (had >= max(1, MOST_SHARE * count))


def _same(one: Candidate, other: Candidate) -> bool:
    """Whether two probes ask the same or ask for the same."""
    questions = base_set(one.draft.question), base_set(other.draft.question)
    return one.place == other.place or questions[0] == questions[1] or one.draft.answer == other.draft.answer
