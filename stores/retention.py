"""Which entries are to expire: those past a retention limit, the least important first."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from memcycle.core.importance import decayed
from memcycle.core.scope import Scope
from memcycle.core.settings import Retention
from memcycle.stores.ledger.weights import Weighed


class Due(NamedTuple):
    """The id of an entry past a limit, and which limit."""

    id: str
    why: str


def due(
    held: Sequence[Weighed],
    rules: Sequence[Retention],
    scope: Scope,
    now: datetime,
    *,
    exempt: Collection[str] = (),
) -> list[Due]:
    """Entries past the limits that apply to the scope, least important first, each once.

    Each rule counts what the rules before it leave. Importance is as it is now, decayed; of equals the one
    heard of longest ago goes first.

    Args:
        held: All recallable entries of the scope.
        exempt: Ids that stay, and do not count: they push nothing else out.
    """
    left = sorted(held, key=lambda one: _standing(one, now))
    chosen: dict[str, str] = {}
    for rule in rules:
        if rule.user in (None, scope.user) and rule.workspace in (None, scope.workspace):
            over = _over(rule, [one for one in left if _covers(rule, one)], now, exempt)
            chosen |= over
            left = [one for one in left if one.id not in over]
    rank = {one.id: _standing(one, now) for one in held}
    return [Due(one, chosen[one]) for one in sorted(chosen, key=lambda one: rank[one])]


def _standing(one: Weighed, now: datetime) -> tuple[float, float, str]:
    heard = one.heard.timestamp() if one.heard is not None else now.timestamp()
    return decayed(one.importance, one.reinforcement, one.heard, now), heard, one.id


def _covers(rule: Retention, one: Weighed) -> bool:
    return rule.kind in (None, one.kind) and rule.granularity in (None, one.granularity)


def _over(
    rule: Retention, covered: Sequence[Weighed], now: datetime, exempt: Collection[str]
) -> dict[str, str]:
    """Ids past a rule's limits, each with the limit in words. `covered` comes least important first."""
    found: dict[str, str] = {}
    able = [one for one in covered if one.id not in exempt]
    if rule.max_age_days is not None:
        oldest = now - timedelta(days=rule.max_age_days)
        why = f"last said over {rule.max_age_days:g} days ago"
        found |= {one.id: why for one in able if one.heard is not None and one.heard < oldest}
    if rule.max_entries is not None:
        surplus = len(able) - len(found) - rule.max_entries
        why = f"at most {rule.max_entries} of these are kept, and it is among the least important"
        still = [one.id for one in able if one.id not in found]
        found |= dict.fromkeys(still[: max(surplus, 0)], why)
    return found
