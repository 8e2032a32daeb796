"""What the nodes of a graph close over: roles, settings, and the bank, opened on first use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from memcycle.agents.roles import Roles
from memcycle.agents.runner import PROMPTS, ModelRole
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.theta import Theta
from memcycle.core.theta_space import Category
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

    @property
    def theta(self) -> Theta:
        """Theta of this run: that of the settings with the changes of the run's context."""
        changes = run_context().theta
        return self.settings.theta.with_changes(changes)[0] if changes else self.settings.theta

    def theta_of(self, category: Category | None) -> Theta:
        """Theta of this run as it is for one category of questions."""
        return self.theta if category is None else self.theta.for_category(category)

    def clamped(self) -> list[str]:
        """What of the run's changes of theta was out of range, in words."""
        changes = run_context().theta
        return [f"theta {one}" for one in self.settings.theta.with_changes(changes)[1]] if changes else []

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

    def retries(self, theta: Theta) -> int:
        """Retry rounds allowed: a Judge by rules is too weak to be believed more than once."""
        return min(theta.k_r, 1) if self.roles.by_rules("judge") else theta.k_r


def make_env(
    roles: Roles | None,
    bank: "Bank | Callable[[], Bank] | None",
    settings: Settings | None,
    scope: ScopeOf | None = None,
    *,
    organisation: Organisation | None = None,
    version: str = "shipped",
) -> Env:
    """An environment with defaults filled in: rules, and one shared bank of this process and home.

    Raises:
        BadInput: the settings redact otherwise than the bank, which is what redacts.
    """
    own = bank.settings if bank is not None and not callable(bank) else None
    chosen = settings or own or Settings.from_env()
    if own is not None and own.redact != chosen.redact:
        raise BadInput("settings.redact is not that of the bank: open the bank with the same settings")

    def shared() -> "Bank":
        from memcycle.stores.registry import shared_bank

        return shared_bank(chosen)

    given = bank
    opened: Callable[[], Bank] = shared if given is None else given if callable(given) else (lambda: given)
    return Env(roles or Roles.rules(), chosen, opened, scope, organisation or AtomicFacts(), version)
