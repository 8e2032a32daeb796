"""From what was found for a question to its scores."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from memcycle.core.entry import Entry
from memcycle.core.language.token_count import token_counter
from memcycle.core.theta import Theta
from memcycle.evals.metrics import all_found, counted, recall, session_any, within_tokens
from memcycle.evals.records import LENIENT_KS, Plan, Scores
from memcycle.graph.recall.evidence import Limits, Piece, assemble
from memcycle.stores.search.request import Hit

MANY = 200
"""Entries at most under a budget of tokens alone: more than fit into any."""


def counted_turns(entries: Iterable[Entry]) -> list[str]:
    """The distinct turns that entries count for, in their order."""
    return list(dict.fromkeys(turn for entry in entries for turn in counted(entry.turns, entry.granularity)))


def scores(
    found: Sequence[Entry],
    gold: Sequence[str],
    *,
    plan: Plan,
    sessions: Mapping[str, str],
    tokens_of: Callable[[Entry], int],
    assembled: Callable[[int, int], Sequence[Entry]] | None = None,
) -> Scores:
    """How a ranked list does on a question.

    Args:
        found: Entries, best first.
        gold: The question's gold turns; none where it has none.
        plan: Gives the ks and the budgets.
        sessions: Session by turn.
        tokens_of: Tokens of an entry as it is shown.
        assembled: Chooses what is shown from a number of entries and tokens; by default what fits, in order.
    """
    choose = assembled or (lambda k, budget: fitting(found, k, budget, tokens_of))
    shown = choose(plan.k, plan.token_budget)
    tokens = sum(map(tokens_of, shown))
    if not gold:
        return Scores(tokens=tokens)
    turns, gold_sessions = counted_turns(found), {sessions.get(turn, "") for turn in gold}
    return Scores(
        recall={str(k): recall(turns[:k], gold) for k in plan.ks},
        as_entries={str(k): recall(counted_turns(found[:k]), gold) for k in plan.ks},
        all_evidence={str(k): float(all_found(turns[:k], gold)) for k in plan.ks},
        recall_at_tokens={
            str(budget): recall(counted_turns(choose(MANY, budget)), gold) for budget in plan.budgets
        },
        session_any={
            str(k): float(session_any([sessions.get(turn, "") for turn in turns[:k]], gold_sessions))
            for k in LENIENT_KS
        },
        shown=recall(counted_turns(shown), gold),
        tokens=tokens,
    )


def fitting(found: Sequence[Entry], k: int, budget: int, tokens_of: Callable[[Entry], int]) -> list[Entry]:
    """The first k entries that fit into a budget of tokens, in order."""
    items = [(tokens_of(entry), (entry.id,)) for entry in found[:k]]
    taken = set(within_tokens(items, budget))
    return [entry for entry in found[:k] if entry.id in taken]


def whole_context(turns: Sequence[Entry], gold: Sequence[str], tokens_of: Callable[[Entry], int]) -> Scores:
    """Of showing everything: it has no ranks and no budget."""
    tokens = sum(map(tokens_of, turns))
    return Scores(shown=recall(counted_turns(turns), gold) if gold else None, tokens=tokens)


def crashed(gold: Sequence[str], plan: Plan) -> Scores:
    """Of a question that crashed: nothing was found."""
    if not gold:
        return Scores()
    nothing = dict.fromkeys(map(str, plan.ks), 0.0)
    return Scores(
        recall=nothing,
        as_entries=nothing,
        all_evidence=nothing,
        recall_at_tokens=dict.fromkeys(map(str, plan.budgets), 0.0),
        session_any=dict.fromkeys(map(str, LENIENT_KS), 0.0),
        shown=0.0,
    )


def tokens_of(entry: Entry) -> int:
    """Tokens of an entry's text, which is what a budget counts."""
    return token_counter().count(entry.text)


def assembled(hits: Sequence[Hit], theta: Theta, *, k: int, token_budget: int) -> list[Entry]:
    """What memcycle shows of what it found, best first, within k entries and a budget of tokens."""
    pieces = [Piece(hit.entry, hit.score) for hit in hits]
    limits = Limits(k=k, token_budget=token_budget, turns_first=theta.turns_first)
    return [piece.entry for piece in assemble(pieces, limits, token_counter().count)]
