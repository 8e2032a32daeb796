"""Prober without a model: a statement asked for by its rarest words, itself its answer (MemMA 3.4)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum
from typing import NamedTuple

from memcycle.agents.prober import ProbeDraft, ProberInput, ProberOutput
from memcycle.agents.rules.content import content
from memcycle.agents.rules.evidence import ASKING
from memcycle.agents.rules.statements import SMALL_TALK, Statement, statements_of, when_of
from memcycle.agents.views import TurnView
from memcycle.core.language.date_forms import Reading
from memcycle.core.language.dates import format_time, read_dates, without
from memcycle.core.language.tokens import STOPWORDS
from memcycle.core.probe import ProbeKind

_WORD = re.compile(r"[^\W\d_][\w'’-]*[^\W_]")
ASKED, LEAST_LEFT = 3, 2
"""Words that a question names; content words that must be left for its answer."""


class _Candidate(NamedTuple):
    """A statement that can be asked for: the words it is asked by, its turn, and the day it tells of."""

    turn: TurnView
    statement: Statement
    named: tuple[str, ...]
    weight: float
    when: Reading | None


def prober(value: ProberInput) -> ProberOutput:
    """One probe from each stretch of the session: the statement with most to tell there.

    The first that tells of a day is asked for that day; one that speaks of what earlier sessions left, too,
    is a cross-session probe.
    """
    candidates = list(_candidates(value.turns))
    size = max(1, -(-len(value.turns) // value.count))
    best: list[_Candidate] = []
    for start in range(0, len(value.turns), size):
        shown = {turn.n for turn in value.turns[start : start + size]}
        best += sorted((one for one in candidates if one.turn.n in shown), key=lambda one: -one.weight)[:1]
    rest = sorted((one for one in candidates if one not in best), key=lambda one: -one.weight)
    chosen = sorted([*best, *rest][: value.count], key=lambda one: (one.turn.n, one.statement.begin))
    dated = next((one for one in chosen if one.when is not None and not one.when.approximate), None)
    earlier = frozenset[str]().union(*(content(memory.text) for memory in value.memories))
    drafts: dict[str, ProbeDraft] = {}
    for one in chosen:
        draft = _draft(one, earlier, dated=one is dated)
        drafts.setdefault(draft.question.casefold(), draft)
    return ProberOutput(probes=list(drafts.values()))


def _candidates(turns: Sequence[TurnView]) -> Iterator[_Candidate]:
    """The statements of people that say more than they can be asked by, weighed by how much they tell."""
    held = Counter(word for turn in turns for word in content(turn.text))
    for turn in (turn for turn in turns if turn.role == "human"):
        for statement in statements_of(turn.text):
            undated = without(statement.text, read_dates(statement.text, turn.time))
            words = content(undated) - content(turn.speaker)
            named = _rarest(undated, words, held)
            if named and len(words) >= len(named) + LEAST_LEFT:
                # Exactly summed: a set has another order in each process.
                weight = fsum(1 / held[word] for word in words if held[word])
                yield _Candidate(turn, statement, named, weight, when_of(statement.text, turn.time))


def _rarest(text: str, words: frozenset[str], held: Counter[str]) -> tuple[str, ...]:
    """The words of a text that fewest turns hold, as said and in their order; names and nouns come first."""
    places: dict[str, str] = {}
    for word in _WORD.findall(text):
        if word.casefold() not in STOPWORDS and content(word) & words - SMALL_TALK - ASKING:
            places.setdefault(min(content(word)), word)
    most = min(ASKED, len(words) // 2)
    # A name first, then the word that fewest turns hold, the longer of equals: mostly a noun.
    rarest = sorted(places, key=lambda stem: (places[stem].islower(), held[stem], -len(stem), stem))[:most]
    return tuple(word for stem, word in places.items() if stem in rarest)


def _draft(one: _Candidate, earlier: frozenset[str], *, dated: bool) -> ProbeDraft:
    who, about, turn = one.turn.speaker, _listed(one.named), one.turn.n
    if dated and one.when is not None:
        question = f"When was it that {who} told of, with {about}?"
        day = format_time(one.when.start, one.when.precision)
        return ProbeDraft(question=question, answer=day, turn=turn, kind="temporal")
    question = f"What did {who} say about {about}?"
    kind: ProbeKind = "cross-session" if content(" ".join(one.named)) & earlier else "single-hop"
    return ProbeDraft(question=question, answer=one.statement.text, turn=turn, kind=kind)


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
