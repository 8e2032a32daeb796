"""What the nodes of a graph close over: roles, settings, and the bank, opened on first use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from memcycle.agents.roles import Roles
from memcycle.agents.runner import PROMPTS, ModelRole
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.graph.context import ScopeOf, run_context, run_scope
from memcycle.graph.node import Call
from memcycle.graph.organisation import AtomicFacts, Made, Organisation

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank


@dataclass(frozen=True)
class Env:
    """Everything a node needs that is not state.

    Attributes:
        bank: Gives the bank; called inside nodes only, so that building a graph opens nothing.
        scope_of: Scope from a parent's context; None reads memcycle's own context.
        version: Version of the pipeline, recorded on what it makes.
    """

    roles: Roles
    settings: Settings
    bank: "Callable[[], Bank]"
    scope_of: ScopeOf | None = None
    organisation: Organisation = field(default_factory=AtomicFacts)
    version: str = "shipped"

    def scope(self, config: RunnableConfig) -> Scope:
        """Scope of this run, with its session."""
        return run_scope(self.scope_of, config)

    def now(self) -> datetime:
        """The time this run counts from."""
        return run_context().now or self.bank().world.now()

    def call(self, role: str, value: Any) -> Call:
        """A call of a role, with this run's prompts."""
        return Call(role, getattr(self.roles, role), value, run_context().prompts)

    def made(self, role: str, scope: Scope) -> Made:
        """What is recorded on entries that this role makes in this run."""
        runnable = getattr(self.roles, role)
        if not isinstance(runnable, ModelRole):
            return Made(scope, self.roles.model_name, self.version)
        prompt = runnable.prompt_version({"configurable": {PROMPTS: run_context().prompts}})
        return Made(scope, runnable.model_name, self.version, prompt)

    @property
    def retries(self) -> int:
        """Retry rounds allowed: a Judge by rules is too weak to be believed more than once."""
        limit = self.settings.theta.k_r
        return min(limit, 1) if self.roles.by_rules("judge") else limit


def make_env(
    roles: Roles | None,
    bank: "Bank | Callable[[], Bank] | None",
    settings: Settings | None,
    scope: ScopeOf | None = None,
    *,
    organisation: Organisation | None = None,
    version: str = "shipped",
) -> Env:
    """An environment with defaults filled in: rules, and one shared bank of this process and home."""
    chosen = settings or (bank.settings if bank is not None and not callable(bank) else Settings.from_env())

    def shared() -> "Bank":
        from memcycle.stores.registry import shared_bank

        return shared_bank(chosen)

    given = bank
    opened: Callable[[], Bank] = shared if given is None else given if callable(given) else (lambda: given)
    return Env(roles or Roles.rules(), chosen, opened, scope, organisation or AtomicFacts(), version)
