"""What a run may still ask of models, by run and by day and user: looked at before a role is asked.

Where it is used up the role has failed, and so each node goes on as it does without that role.
"""

import logging
import threading
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from langgraph.runtime import get_runtime

from memcycle.core.errors import BUDGET, BudgetUsed, StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings, Spent

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank

_log = logging.getLogger(__name__)

RUNS = 1000
"""Runs of this process of which it is known at the same time what they used."""

_guard = threading.Lock()


@dataclass
class _Used:
    """What a run used so far."""

    spent: Spent = field(default_factory=lambda: Spent(0, 0))

    def add(self, calls: int, tokens: int) -> None:
        self.spent = Spent(self.spent.calls + calls, self.spent.tokens + tokens)


def _used_here() -> _Used:
    """What the run that is going on used: LangGraph hands its `control` on to all that runs in it."""
    control = get_runtime().control
    if control is None:
        return _Used()
    with _guard:  # of two threads at once each would make its own
        return _used_of(control)


@lru_cache(RUNS)
def _used_of(_: Any) -> _Used:
    return _Used()


class Purse:
    """What one run, and its user today, may still ask of models. Thread-safe; its methods may block."""

    def __init__(self, settings: Settings, bank: "Bank", scope: Scope) -> None:
        """Of the run that is going on: to be made inside one of its nodes."""
        self._run, self._day, self._zone = settings.budget.run, settings.budget.day, settings.zone
        self._bank, self._scope, self._used = bank, scope, _used_here()

    def empty(self) -> str:
        """Why no model may be asked now, in words; nothing where one may."""
        if reached := self._run.reached(self._used.spent):
            return _of_run(reached)
        reached = self._day.reached(self._bank.spent(self._scope, self._today())) if self._day.is_set else ""
        return self._of_today(reached) if reached else ""

    def take(self, role: str) -> None:
        """Puts one call aside.

        Raises:
            BudgetUsed: there is none left. StoreError: what is left cannot be known now.
        """
        with _guard:
            if reached := self._run.reached(self._used.spent):
                raise BudgetUsed(role, _of_run(reached))
            self._used.add(1, 0)
        if self._day.is_set and (reached := self._bank.spend(self._scope, self._today(), _ONE, self._day)):
            with _guard:
                self._used.add(-1, 0)
            raise BudgetUsed(role, self._of_today(reached))

    def settle(self, calls: int, tokens: int) -> None:
        """Counts what was asked for in the end, the call put aside among it."""
        with _guard:
            self._used.add(calls - 1, tokens)
        if not self._day.is_set or (calls, tokens) == _ONE:
            return
        try:
            self._bank.spend(self._scope, self._today(), Spent(calls - 1, tokens))
        except StoreError as error:  # the reply is worth more than its count
            _log.warning("what a model was asked for could not be counted: %s", error)

    def _today(self) -> date:
        return self._bank.world.now().astimezone(self._zone).date()

    def _of_today(self, reached: str) -> str:
        free = datetime.combine(self._today() + timedelta(days=1), time(), self._zone)
        return (
            f"{BUDGET}today is used up ({reached}): memory goes on without a model; "
            f"it is free again at {free:%Y-%m-%d %H:%M} ({self._zone.key})"
        )


_ONE = Spent(1, 0)


def _of_run(reached: str) -> str:
    return (
        f"{BUDGET}this run is used up ({reached}): memory goes on without a model; the next run has its own"
    )
