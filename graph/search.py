"""Searching for a chunk or a question: plans and verdicts read, one request for all, candidates united."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, Protocol, TypeVar

from memcycle.agents.judge import JudgeOutput
from memcycle.agents.retriever import RetrieverOutput, operator
from memcycle.agents.views import MemoryView, TurnView
from memcycle.core.entry import GRANULARITIES, Entry, Granularity
from memcycle.core.errors import StoreError
from memcycle.core.language.names import entities_of, person_names
from memcycle.core.language.small_talk import tells
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.scope import Scope
from memcycle.core.theta import Theta
from memcycle.core.turn import Turn
from memcycle.graph.environment import GraphRun
from memcycle.graph.states import Candidate, ConflictRef, EvidenceState, Planned, Verdict
from memcycle.stores.search.request import Hit, Query, Ranked, SearchRequest, Why

MOST = 300
"""Candidates of one search at most."""
_RRF = 60

T = TypeVar("T")


def turn_views(turns: Sequence[Turn], first: int = 1) -> list[TurnView]:
    """Turns under the numbers from `first` on."""
    return [TurnView.of(n, turn) for n, turn in enumerate(turns, first)]


def fitting(items: Sequence[T], tokens: int, count: Callable[[T], int]) -> list[T]:
    """As many of them, from the first on, as take so many tokens; the first, however long it is."""
    spent = list(accumulate(map(count, items)))
    return [one for n, one in enumerate(items) if n == 0 or spent[n] <= tokens]


def look_for(
    run: GraphRun,
    texts: Iterable[str],
    granularities: tuple[Granularity, ...],
    k: int,
    scope: Scope | None = None,
) -> list[list[Hit]]:
    """For each text the k stored entries nearest to it, best first: one search for all."""
    return run.bank.search(
        SearchRequest(
            scope=scope or run.scope,
            queries=tuple(Query(text=text) for text in texts),
            granularities=granularities,
            k=k,
            theta=run.theta,
        )
    )


def recent(turns: Sequence[Turn], tokens: int) -> list[Turn]:
    """The last of the turns, as many as have so many tokens: of a window that is for reference only."""
    spent = list(accumulate(approx_tokens(turn.text) for turn in reversed(turns)))
    return [turn for turn, so_far in zip(turns, reversed(spent), strict=True) if so_far <= tokens]


def memory_views(entries: Sequence[Entry]) -> list[MemoryView]:
    """Entries under the numbers from 0 on, in their order."""
    return [MemoryView.of(n, entry) for n, entry in enumerate(entries)]


def as_is(items: Sequence[TurnView], k: int) -> list[Planned]:
    """Plans without a Retriever: each text as it stands, as a single fact."""
    return [Planned(n=item.n, query=item.text, operator="fact", k=k, speaker=None) for item in items]


def read_plans(
    output: RetrieverOutput, items: Sequence[TurnView], k_m: int, warnings: list[str]
) -> list[Planned]:
    """One plan an item: K = max(K_dyn, K_m), an item the Retriever left out as is (AMA 3.2)."""
    plans = of_shown(output.plans, [item.n for item in items], "the Retriever planned for", warnings)
    planned = {
        n: Planned(
            n=n, query=plan.query, operator=operator(plan.intent), k=max(plan.k, k_m), speaker=plan.speaker
        )
        for n, plan in plans.items()
        if plan.query.strip()
    }
    return [planned.get(plan["n"], plan) for plan in as_is(items, k_m)]


def _granularities(run: GraphRun, theta: Theta, planned: Planned, widened: bool) -> tuple[Granularity, ...]:
    exclusive = theta.routing.mode == "exclusive" and not widened
    return run.granularities((planned["operator"],) if exclusive else GRANULARITIES)


def share_out(found: Sequence[Ranked], planned: Planned, k: int, theta: Theta) -> list[Ranked]:
    """The best k with the routed operator's share of each granularity; free places go by score."""
    shares = getattr(theta.routing, planned["operator"])
    left = {name: round(k * getattr(shares, name)) for name in GRANULARITIES}
    taken, rest = [], []
    for one in found:
        if left[one.granularity] > 0:
            left[one.granularity] -= 1
            taken.append(one)
        else:
            rest.append(one)
    chosen = (taken + rest)[:k]
    return sorted(chosen, key=lambda one: (-one.score, one.id))


def find(
    run: GraphRun,
    plans: Sequence[Planned],
    *,
    theta: Theta | None = None,
    widened: bool = False,
    spare: int = 1,
    exclude: Iterable[str] = (),
    telling: bool = False,
    warnings: list[str] | None = None,
) -> list[Candidate]:
    """Candidates of all plans, best first, each entry once: one search request a set of granularities.

    Those of a question in parts are merged by rank, all others by score.

    Args:
        theta: By default that of the run. Recency counts from its reference date, else from the run's time.
        widened: Whether it is a Retry: every granularity, and twice as many (AMA).
        spare: How many times K to find.
        exclude: Ids to leave out. telling: whether turns that tell nothing are left out, and all
            that a plan found where that hardly bears on what is asked (`theta.relevance`).
        warnings: Where words alone are to be looked for if the embedder fails: is told that. Else it raises.
    """
    theta = theta or run.theta
    if theta.reference_date is None:
        theta = theta.model_copy(update={"reference_date": run.context.now})
    groups: dict[tuple[Granularity, ...], list[Planned]] = {}
    for planned in plans:
        groups.setdefault(_granularities(run, theta, planned, widened), []).append(planned)
    times = (2 if widened else 1) * spare
    found: list[list[Candidate]] = []
    for granularities, members in groups.items():
        k = min(max(plan.get("kept", plan["k"]) for plan in members) * times, MOST)
        rankings = run.bank.rank(
            SearchRequest(
                scope=run.scope,
                queries=tuple(Query(text=plan["query"], speaker=plan["speaker"]) for plan in members),
                granularities=granularities,
                k=k * len(granularities),
                theta=theta,
                exclude=frozenset(exclude),
                asked_at=run.now(),
                telling=telling,
                lenient=warnings is not None,
            )
        )
        if warnings is not None and (kind := rankings[0].by_words):
            warnings.append(f"searched by words alone: the embedder failed ({kind})")
        for plan, ranking in zip(members, rankings, strict=True):
            if telling and ranking.likely < theta.relevance:
                continue
            own = min(plan["kept"] * times, MOST) if "kept" in plan else k
            chosen = share_out(ranking.found, plan, own, theta)
            found.append(list(map(_candidate, chosen, ranking.why(chosen))))
    if any(plan.get("part") for plan in plans):
        return by_rank(found)
    return reduce(unite, found, [])


def _candidate(found: Ranked, why: Sequence[Why]) -> Candidate:
    return Candidate(id=found.id, score=round(found.score, 6), why=[one._asdict() for one in why])


def unite(left: Sequence[Candidate], right: Sequence[Candidate]) -> list[Candidate]:
    """Both lists as one, best first, each entry once with its better score."""
    best: dict[str, Candidate] = {}
    for candidate in [*left, *right]:
        known = best.get(candidate["id"])
        if known is None or candidate["score"] > known["score"]:
            best[candidate["id"]] = candidate
    return sorted(best.values(), key=lambda candidate: (-candidate["score"], candidate["id"]))


def by_rank(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Ranked lists as one by the ranks alone (reciprocal rank fusion; Cormack et al., SIGIR 2009), each entry
    once: every list's best comes before any list's second.

    Scores are shares of the best score of all lists, so that later finds can be united with these.
    """
    best = max((one["score"] for found in lists for one in found), default=0.0)
    named: dict[str, Candidate] = {}
    fused: dict[str, float] = {}
    for found in lists:
        for rank, candidate in enumerate(found, 1):
            known = named.get(candidate["id"])
            if known is None or candidate["score"] > known["score"]:
                named[candidate["id"]] = candidate
            fused[candidate["id"]] = fused.get(candidate["id"], 0.0) + 1 / (_RRF + rank)
    scale = best / max(fused.values(), default=1.0)
    merged = [
        Candidate(id=one["id"], score=fused[name] * scale, why=one["why"]) for name, one in named.items()
    ]
    return sorted(merged, key=lambda candidate: (-candidate["score"], candidate["id"]))


def related(run: GraphRun, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The raw turns that candidates refer to (AMA's R_t), just below the candidate that led there."""
    scores = {candidate["id"]: candidate["score"] for candidate in candidates}
    led: dict[str, float] = {}
    for entry in run.entries(list(scores)):
        if entry.granularity == "episode":
            continue
        for turn in (*entry.related_turns, *entry.turns):
            led[turn] = max(led.get(turn, 0.0), scores[entry.id] * 0.9)
    raws = [
        raw
        for raw in run.bank.raw_entries(run.scope, list(led))
        if led[raw.turns[0]] > scores.get(raw.id, 0.0) and tells(raw.text, answers=True)
    ]
    why = {"view": "related", "rank": 1}
    return [
        Candidate(id=raw.id, score=led[raw.turns[0]], why=[{**why, "score": led[raw.turns[0]]}])
        for raw in raws
    ]


def widen(state: EvidenceState, run: GraphRun) -> dict[str, Any]:
    """Retry: adds the turns the candidates refer to; the next search covers every granularity (AMA)."""
    hidden = set(state.get("hidden") or ())
    more = [one for one in related(run, state["candidates"]) if one["id"] not in hidden]
    return {"round": state["round"] + 1, "candidates": unite(state["candidates"], more)}


class _Numbered(Protocol):
    @property
    def n(self) -> int: ...


N = TypeVar("N", bound=_Numbered)


def of_shown(replies: Iterable[N], shown: Collection[int], who: str, warnings: list[str]) -> dict[int, N]:
    """What a role said of the numbers it was shown, by number; of others it is reported, not followed.

    Args:
        who: The role and what it did: "the Grader graded".
    """
    found: dict[int, N] = {}
    for reply in replies:
        if reply.n in shown:
            found[reply.n] = reply
        else:
            warnings.append(f"{who} number {reply.n}, which was not shown")
    return found


def named(n: int | None, shown: Sequence[T], who: str, warnings: list[str]) -> T | None:
    """The memory that a role named by its number; a number that was not shown is reported, not followed."""
    if n is not None and not 0 <= n < len(shown):
        warnings.append(f"{who} named memory {n}, which was not shown")
        return None
    return None if n is None else shown[n]


def read_verdict(
    output: JudgeOutput, shown: Sequence[Entry], turns: Sequence[Turn] = ()
) -> tuple[Verdict, list[str]]:
    """Verdicts by entry and turn id."""
    warnings: list[str] = []

    def entry_id(n: int | None) -> str | None:
        entry = named(n, shown, "the Judge", warnings)
        return None if entry is None else entry.id

    conflicts, numbered = list[ConflictRef](), {n: turn.id for n, turn in enumerate(turns, 1)}
    for conflict in output.conflicts:
        memory, other = entry_id(conflict.memory), entry_id(conflict.other)
        turn = numbered.get(conflict.turn or 0)
        if conflict.turn is not None and turn is None and turns:
            warnings.append(f"the Judge named turn {conflict.turn}, which was not shown")
        if memory and memory != other and (turn or other):
            conflicts.append(ConflictRef(memory=memory, turn=turn, other=other, why=conflict.why))
    relevant = [found for n in dict.fromkeys(output.relevant) if (found := entry_id(n))]
    verdict = Verdict(
        relevant=relevant,
        conflicts=conflicts,
        sufficient=output.sufficient,
        shown=len(shown),
        judged=True,
    )
    return verdict, warnings


_log = logging.getLogger(__name__)


def names_in(question: str, known: Iterable[str] = ()) -> list[str]:
    """Persons, places and things that a question names, in order of appearance.

    Args:
        known: Names known to be of persons; they are found whatever their case.
    """
    persons = person_names(question, known)
    return list(dict.fromkeys((*persons, *entities_of(question, persons))))


def mention(run: GraphRun, question: str, known: Iterable[str] = ()) -> None:
    """Notes the names for the next maintenance. That they cannot be noted now keeps nobody from an answer."""
    names = names_in(question, known)
    if not names:
        return
    try:
        run.bank.mention(run.scope, names)
    except StoreError as error:
        _log.warning("%d names of a question were not noted: %s", len(names), error)
