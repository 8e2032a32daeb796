"""Diagnoser by rules: what follows from the places and signals of what was missed, alone.

Failures without them (blanked ones, say) ask for nothing. A signal's weight moves by what missed turns have
more of it than the best others that were found: the slope of a pairwise ranking loss (RankNet, Burges et al.,
ICML 2005, without the sigmoid). What stood before missed turns stood there by the signals with weight, so a
negative difference over missed turns alone is no news: a weight shrinks only where the turns that were shown
do not rest on its signal either.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, sqrt
from statistics import fmean, median, pstdev
from typing import NamedTuple

from memcycle.agents.diagnoser import (
    TAKEN_BACK,
    Change,
    DiagnoserInput,
    DiagnoserOutput,
    FailureView,
    MissedView,
    Pattern,
    Value,
)
from memcycle.core.theta import SIGNALS_OF_VIEW

WEIGHTS = "weights."
SURE, LEAST = 2.0, 0.02
"""How many standard errors from 0, and how far, a mean difference of a signal is no chance."""
TELLING = 0.05
"""Mean difference of shown turns from which a signal without weight is worth one."""
MOST_STEPS = 8
"""Steps of weights a round at most."""
MOST = 12
"""Changes a round at most."""
HEARD, FEWEST = 0.05, 3
"""Share and number of failures from which a pattern asks for something."""
NEAR, SEEN = 10, 0.2
"""A view without weight found a turn that is among its first so many; it counts where so large a share is."""
FIRST_STEP = 0.5
"""Length of the steps of weights, before any was taken back."""
DEEP = 200
"""Entries a view speaks for where it is opened."""
FILLED = 0.85
"""Share of the token budget below which tokens are left."""
EPISODES = 0.05
"""What is left to episodes where they drown the rest."""
Asked = Iterator[tuple[str, Value, str]]
"""Changes that one pattern asks for: path, value and reason."""


def diagnoser(value: DiagnoserInput) -> DiagnoserOutput:
    """Changes by failure pattern, the most frequent pattern first (EvolveMem 3.3, without a model)."""
    seen = _Seen(value)
    found: dict[str, Change] = {}
    for pattern in sorted(seen.failures, key=lambda name: -len(seen.failures[name])):
        if pattern in _ANSWERS:
            for path, new, why in _ANSWERS[pattern](seen, seen.failures[pattern], seen.missed_of(pattern)):
                found.setdefault(path, Change(path=path, value=new, reason=why, pattern=pattern))
    for change in _weights(seen):
        found.setdefault(change.path, change)
    wanted = [change for change in found.values() if seen.is_news(change)]
    # Of a bundle that did harm the surest part may help.
    kept = min(MOST, max(1, ceil(len(wanted) * 0.5**seen.taken_back)))
    return DiagnoserOutput(changes=wanted[:kept], missing_coverage=_missing(seen))


class _Seen:
    """The input, made ready: values by path, failures by pattern that are frequent enough to be heard.

    Attributes:
        taken_back: Rounds in a row that were taken back, the last included.
    """

    def __init__(self, value: DiagnoserInput) -> None:
        self.value = value
        self.now = {one.path: one.value for one in value.dimensions}
        least = max(FEWEST, HEARD * len(value.failures))
        by_pattern: dict[Pattern, list[FailureView]] = {}
        for failure in value.failures:
            by_pattern.setdefault(failure.pattern, []).append(failure)
        self.failures = {name: own for name, own in by_pattern.items() if len(own) >= least}
        outcomes = [one.outcome for one in reversed(value.tried)]
        self.taken_back = next((at for at, one in enumerate(outcomes) if one != TAKEN_BACK), len(outcomes))

    def number(self, path: str, otherwise: float = 0.0) -> float:
        found = self.now.get(path, otherwise)
        return float(found) if isinstance(found, int | float) else otherwise

    def missed_of(self, pattern: Pattern) -> list[MissedView]:
        return [one for failure in self.failures.get(pattern, ()) for one in failure.missed]

    def is_shallow(self, path: str) -> bool:
        return self.number(path, DEEP) < DEEP

    def is_news(self, change: Change) -> bool:
        """Whether it changes something, and was not taken back before."""
        harmful = (one.changes for one in self.value.tried if one.outcome == TAKEN_BACK)
        known = self.now.get(change.path)
        return change.value != known and not any(
            change.path in changes and changes[change.path] == change.value for changes in harmful
        )


def _count(seen: _Seen, failures: Sequence[FailureView]) -> str:
    return f"{len(failures)} of {len(seen.value.failures)} failures"


def _too_little(seen: _Seen, failures: Sequence[FailureView], missed: Sequence[MissedView]) -> Asked:
    """More entries while tokens are left; more tokens up to the limit; then cheaper forms."""
    limit, shown = seen.value.token_budget, [failure.shown for failure in failures]
    spent = median(sum(one.tokens.values()) for one in shown)
    budget = median(min(one.token_budget, limit) for one in shown)
    k = median(one.k for one in shown)
    by_entries = sum(one.cut == "entries" for one in missed)
    if by_entries and spent < FILLED * limit:
        reach = median(one.rank for one in missed if one.rank is not None)
        yield (
            "k",
            ceil(max(1.5 * k * limit / max(spent, 1.0), reach, 2 * k)),
            f"{by_entries} wanted turns come after the {k:g} entries that are kept, while "
            f"{limit - spent:.0f} tokens are left; half of them within {reach:g}",
        )
    # Tokens, or the places that more tokens will fill next, end before what is missed.
    by_tokens = any(one.cut == "tokens" for one in missed) or seen.number("token_budget") < limit
    if budget < limit and by_tokens:
        why = f"{_count(seen, failures)}: the budget of {budget:g} tokens is below the limit"
        yield "token_budget", limit, why
    yield from _cheaper(seen, missed)


def _cheaper(seen: _Seen, missed: Sequence[MissedView]) -> Asked:
    cut = [one for one in missed if one.cut == "tokens"]
    told = sum(one.facts > 0 for one in cut)
    first = seen.number("turns_first")
    if cut and told >= len(cut) / 2 and first > HEARD:
        why = f"tokens end before {len(cut)} wanted turns, {told} of which a shorter fact tells"
        yield "turns_first", round(first / 2, 3), why


def _drowned(seen: _Seen, failures: Sequence[FailureView], missed: Sequence[MissedView]) -> Asked:
    """Less room for episodes and whole turns."""
    shown = [failure.shown.tokens for failure in failures]
    spent = sum(sum(tokens.values()) for tokens in shown) or 1
    share = sum(tokens.get("episode", 0) for tokens in shown) / spent
    if share > EPISODES:
        why = f"{_count(seen, failures)}: episodes take {share:.0%} of the tokens"
        for operator in ("raw", "fact", "episode"):
            yield from _less_episodes(seen, f"routing.{operator}", why)
    else:
        yield from _cheaper(seen, missed)


def _less_episodes(seen: _Seen, place: str, why: str) -> Asked:
    episode, raw, fact = (seen.number(f"{place}.{name}") for name in ("episode", "raw", "fact"))
    if episode <= EPISODES:
        return
    raw, fact = (raw, fact) if raw + fact > 0 else (0.6, 0.4)
    scale = (1 - EPISODES) / (raw + fact)
    for name, given in (("episode", EPISODES), ("raw", raw * scale), ("fact", fact * scale)):
        yield f"{place}.{name}", round(given, 3), why


def _blind(seen: _Seen, _: Sequence[FailureView], missed: Sequence[MissedView]) -> Asked:
    """Weight for the views that find what is missed, and depth for them to speak."""
    weights = [seen.number(WEIGHTS + name) for names in SIGNALS_OF_VIEW.values() for name in names[:3]]
    usual = [weight for weight in weights if weight > 0]
    mean = sum(usual) / len(usual) if usual else 1.0
    for family, names in list(SIGNALS_OF_VIEW.items())[:2]:
        for name in names:
            near = sum(one.views.get(name, NEAR + 1) <= NEAR for one in missed)
            if near < SEEN * len(missed):
                continue
            why = f"{name} has {near} of {len(missed)} wanted turns among its first {NEAR}"
            if seen.number(WEIGHTS + name) == 0:
                yield WEIGHTS + name, round(mean, 3), why
            if seen.number(f"views.{family}", DEEP) < NEAR:
                yield f"views.{family}", DEEP, why


def _entity(seen: _Seen, _: Sequence[FailureView], missed: Sequence[MissedView]) -> Asked:
    """What others said of the matter: search without the name too. The speaker's weight follows its edges."""
    others = sum(one.edges.get("speaker", 0.0) < 0 for one in missed)
    if others > len(missed) / 2 and seen.now.get("swap.on") is False:
        why = f"{others} of {len(missed)} wanted turns are not of the person who is asked about"
        yield "swap.on", True, why


def _unfound(seen: _Seen, failures: Sequence[FailureView], missed: Sequence[MissedView]) -> Asked:
    """Wider views; other forms of the question."""
    if not missed:
        return
    why = f"{_count(seen, failures)}: nothing that was found holds the wanted turns"
    for path in filter(seen.is_shallow, (*(f"views.{family}" for family in SIGNALS_OF_VIEW), "candidates")):
        yield path, DEEP, why
    if sum(failure.wanted > 1 for failure in failures) > len(failures) / 2:
        yield "decomposition.on", True, f"{why}, several each"


def _abstained(seen: _Seen, failures: Sequence[FailureView], _: Sequence[MissedView]) -> Asked:
    """A second look where the evidence was there."""
    if any(failure.wanted and failure.answer for failure in failures):
        why = (
            f"{_count(seen, failures)}: the wanted turns were shown, and the answer was that nothing is known"
        )
        yield "reflection.rounds", int(seen.number("reflection.rounds")) + 1, why
        if seen.now.get("verification") == "off":
            yield "verification", "multi_candidate", why


def _format(seen: _Seen, failures: Sequence[FailureView], _: Sequence[MissedView]) -> Asked:
    """Shorter answers where they are too long, stricter ones where they are not."""
    lengths = [
        (len(one.answer.split()), len(one.gold.split())) for one in failures if one.answer and one.gold
    ]
    longer = sum(said > 2 * gold for said, gold in lengths)
    if lengths:
        why = f"{_count(seen, failures)} with all evidence shown; {longer} answers are twice as long as gold"
        yield "answer_style", "concise" if longer > len(lengths) / 2 else "strict", why


_ANSWERS: dict[Pattern, Callable[[_Seen, Sequence[FailureView], Sequence[MissedView]], Asked]] = {
    "too little context": _too_little,
    "drowned": _drowned,
    "view blind": _blind,
    "wrong entity": _entity,
    "nothing retrieved": _unfound,
    "abstained wrongly": _abstained,
    "answer format": _format,
}
_PATTERNS: dict[str, Pattern] = {
    "speaker": "wrong entity",
    "date": "wrong time",
    "time_expression": "wrong time",
}
"""By signal the pattern that its weight answers."""


class _Edge(NamedTuple):
    """A mean difference, -1 to 1, that asks for something; by how many standard errors it is no chance."""

    mean: float
    sure: float
    whose: str


def _steps(seen: _Seen) -> list[tuple[str, _Edge, Change]]:
    """The most certain steps of weights, each with its signal, and the difference that asks for it."""
    # Those without differences say nothing.
    told = [one.edges for failure in seen.value.failures for one in failure.missed if one.edges]
    held = {one.signal: one.edge for one in seen.value.held}
    weights = {path: seen.number(path) for path in seen.now if path.startswith(WEIGHTS)}
    if len(told) < FEWEST:
        return []
    total = sum(weights.values()) or 1.0
    size = FIRST_STEP * 0.5**seen.taken_back
    found: list[tuple[str, _Edge, Change]] = []
    for path, weight in weights.items():
        signal = path.removeprefix(WEIGHTS)
        edge = _edge([edges.get(signal, 0.0) for edges in told], held.get(signal, 0.0), weight)
        if edge is None:
            continue
        # At most halved: one round's failures never show all that a signal gets right.
        given = round(max(weight + size * total * edge.mean, weight / 2), 3)
        pattern = _PATTERNS.get(signal, "view blind" if weight == 0 else "outranked")
        way = "more" if edge.mean > 0 else "less"
        reason = f"{edge.whose} have {abs(edge.mean):.2f} {way} {signal} than the best others"
        found.append((signal, edge, Change(path=path, value=given, pattern=pattern, reason=reason)))
    return sorted(found, key=lambda one: -one[1].sure)[:MOST_STEPS]


def _edge(edges: Sequence[float], rests: float, weight: float) -> _Edge | None:
    """What differences of missed turns ask for, `rests` being that of the shown ones; None for nothing."""
    mean, error = fmean(edges), pstdev(edges) / sqrt(len(edges))
    sure = abs(mean) / error if error else SURE
    against = rests < -LEAST if mean > 0 else rests > LEAST or weight == 0
    if abs(mean) >= LEAST and sure >= SURE and not against:
        return _Edge(mean, sure, f"{len(edges)} missed turns")
    if weight == 0 and mean >= 0 and rests >= TELLING:
        return _Edge((mean + rests) / 2, 1.0, "wanted turns, missed and shown,")
    return None


def _weights(seen: _Seen) -> Iterator[Change]:
    """What is wanted has more, or less, of a signal than what stood before it."""
    found, fusion = _steps(seen), seen.now.get("fusion")
    if found and fusion in ("sum", "rrf"):
        names = ", ".join(signal for signal, _, _ in found[:3])
        why = f"fusion {fusion} reads no weights, and {names} tell wanted turns from others"
        yield Change(path="fusion", value="linear", pattern=found[0][2].pattern, reason=why)
    for signal, edge, change in found:
        yield change
        family = next((name for name, signals in SIGNALS_OF_VIEW.items() if signal in signals), None)
        if family and edge.mean > 0 and seen.is_shallow(f"views.{family}"):
            yield change.model_copy(update={"path": f"views.{family}", "value": DEEP})


def _missing(seen: _Seen) -> str:
    """Wanted turns that no view found and no fact was read from, where facts are read at all."""
    missed = seen.missed_of("nothing retrieved")
    lacking = sum(one.rank is None and one.facts == 0 for one in missed)
    read = any(one.facts for failure in seen.value.failures for one in failure.missed)
    if not missed or not read or lacking <= len(missed) / 2:
        return ""
    return f"{lacking} wanted turns are found by no view, and no fact was read from them"
