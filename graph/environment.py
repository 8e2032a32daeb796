"""What graphs are built over, and what each of their nodes is given of a run."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from memcycle.agents.roles import OUTPUTS, Roles, run_rules
from memcycle.agents.runner import PROMPTS, ModelRole
from memcycle.core.entry import Entry, Granularity
from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import Approval, Settings
from memcycle.core.theta import Theta
from memcycle.core.theta_space import Category
from memcycle.graph.budget import Purse
from memcycle.graph.context import Context, NobodyNamed, ScopeOf, run_context, run_scope
from memcycle.graph.node import Call
from memcycle.graph.routes import Policy

if TYPE_CHECKING:
    from memcycle.agents.pipeline import Pipeline
    from memcycle.stores.bank import Bank


T = TypeVar("T")

REQUIRED = frozenset({"constructor", "answerer"})
"""Roles that nothing stands in for: where their provider fails the run breaks off, and its turns wait."""
BY_CODE = frozenset(
    {
        "answerability",
        "consolidator",
        "episode_trigger",
        "guide",
        "judge",
        "query_reasoner",
        "retriever",
    }
)
"""Roles that the lean profile asks no model for: turns are searched as they are, the Constructor guides
itself, the Answerer says what is missing and how to look for it, repairs are compared by rules."""


MOST_READ, SCOPES_READ = 1_000, 16
"""Entries of a `Look` before it begins anew, and scopes of which there is one."""

LOOKS = 2
"""Further searches, in the lean profile, for what an answer says is missing."""


@dataclass(frozen=True)
class Made:
    """What makes entries, recorded on each of them: model, version of its prompt, and of the pipeline."""

    scope: Scope
    model: str
    prompt: str | None = None
    pipeline: str = "shipped"


@dataclass
class Look:
    """What was read of a scope for a question, as of one of its changes: each round asks much of it again.

    Attributes:
        entries: By id. shown: turns as they are shown, by id of the entry.
        chosen: What was made of candidates, and of what.
    """

    change: int
    entries: dict[str, Entry] = field(default_factory=dict)
    shown: dict[str, Entry] = field(default_factory=dict)
    chosen: list[tuple[Any, Any]] = field(default_factory=list)

    def once(self, of: Any, make: Callable[[], T]) -> T:
        """What was made of the same before, else what is made of it now."""
        for known, made in self.chosen:
            if known == of:
                return cast("T", made)
        made = make()
        self.chosen = [*self.chosen[-3:], (of, made)]
        return made


@dataclass(frozen=True)
class Env:
    """What the nodes of a graph share: roles, settings, and the bank, opened on first use.

    Attributes:
        open_bank: Gives the bank; called inside nodes only, so that building a graph opens nothing.
        scope_of: Scope from a parent's context; None reads memcycle's own context.
        looks: What questions read last, by scope.
    """

    roles: Roles
    settings: Settings
    open_bank: "Callable[[], Bank]"
    scope_of: ScopeOf | None = None
    looks: dict[str, "Look"] = field(default_factory=dict)

    def run(self, config: RunnableConfig, state: Any = None) -> "GraphRun":
        """The run that is going on, inside a node or a route of it."""
        return GraphRun(self, config, state)


class GraphRun:
    """One run of a graph, as its nodes are given it beside their state."""

    def __init__(self, env: Env, config: RunnableConfig, state: Any = None) -> None:
        self.env, self._config = env, config
        self.settings, self.switches = env.settings, env.settings.switches
        self._owner = (state or {}).get("owner")

    @cached_property
    def context(self) -> Context:
        """What is said from outside for this run."""
        return run_context()

    @property
    def bank(self) -> "Bank":
        """The bank, opened if it was not."""
        return self.env.open_bank()

    @cached_property
    def caller(self) -> Scope:
        """Whose memory, with the session, as the run is told. Raises BadInput where no user is named."""
        return run_scope(self.env.scope_of, self._config)

    @cached_property
    def scope(self) -> Scope:
        """Whose memory, with the session, the run is about: the caller's, unless it ends an idle one."""
        return self.caller if self._owner is None else Scope.model_validate(self._owner)

    def look(self) -> Look:
        """What was read of the scope as it is now."""
        looks, change = self.env.looks, self.bank.change(self.scope)
        known = looks.get(self.scope.key)
        if known is None or known.change != change or len(known.entries) > MOST_READ:
            if len(looks) >= SCOPES_READ:
                looks.pop(next(iter(looks)), None)
            known = looks[self.scope.key] = Look(change)
        return known

    def entries(self, ids: Sequence[str]) -> list[Entry]:
        """Entries of any status by id, in that order; unknown ones left out."""
        known = self.look().entries
        unread = [one for one in ids if one not in known]
        known.update({entry.id: entry for entry in self.bank.get(self.scope, unread)})
        return [known[one] for one in dict.fromkeys(ids) if one in known]

    @cached_property
    def approval(self) -> Approval:
        """What a person is asked about in this run."""
        return self.settings.approval | Approval.of(self.context.approval)

    @property
    def idle_after(self) -> float | None:
        """Seconds of silence after which this run ends another session; None where it ends none."""
        named = self.context.idle_after
        return self.settings.idle_after if named is None else named or None

    def idle_session(self, look: Callable[..., Scope | None]) -> Scope | None:
        """A session of the caller, or of anybody, that has gone idle; never the one that the run is in.

        Args:
            look: `Bank.idle`, or `Bank.take_idle`.
        """
        if self.idle_after is None:
            return None
        since = self.bank.world.now() - timedelta(seconds=self.idle_after)
        try:
            caller = self.caller
        except NobodyNamed:
            return look(since)
        return look(since, caller.base, but=caller)

    @cached_property
    def theta(self) -> Theta:
        """Theta of the settings with the changes of the run's context."""
        theta, changes = self.settings.theta, self.context.theta
        return theta.with_changes(changes)[0] if changes else theta

    @property
    def clamped(self) -> list[str]:
        """What of the context's changes of theta was out of range, in words."""
        return [f"theta {one}" for one in self.settings.theta.with_changes(self.context.theta)[1]]

    def granularities(self, wanted: tuple[Granularity, ...]) -> tuple[Granularity, ...]:
        """Which are searched: those wanted, unless the switches leave a single one."""
        single = self.switches.granularity
        return wanted if single == "all" else (single,)

    def theta_of(self, category: Category | None) -> Theta:
        """Theta as it is for one category of questions."""
        return self.theta if category is None else self.theta.for_category(category)

    def policy(self, category: Category | None = None) -> Policy:
        """What decides on the edges of this run, for one category of questions.

        A Judge by rules is too weak to be believed more than once; a Constructor by rules reads a turn again
        as it read it before.
        """
        theta, roles = self.theta_of(category), self.env.roles
        return Policy(
            theta=theta,
            switches=self.switches,
            retries=min(theta.k_r, 1) if roles.by_rules("judge") else theta.k_r,
            rereads=not roles.by_rules("constructor") and not self.is_lean("constructor"),
            evidence_only=self.context.evidence_only,
            reflections=max(theta.reflection.rounds, LOOKS) if self.is_lean("answerer") else None,
            together=self.is_lean("answerer"),
        )

    def is_lean(self, role: str) -> bool:
        """Whether this role is one on a model that shares calls; what answers without one is always asked."""
        on_model = isinstance(getattr(self.env.roles, role), ModelRole)
        return on_model and not self.settings.asks.get(role, self.settings.profile == "paper")

    def asks(self, role: str) -> bool:
        """Whether this role is asked on its own."""
        return role not in BY_CODE or not self.is_lean(role)

    def now(self) -> datetime:
        """The time this run counts from, in the user's zone."""
        return self.settings.local(self.context.now or self.bank.world.now())

    def call(self, role: str, value: Any, *, optional: bool | None = None) -> Call:
        """A call of a role, with this run's prompts.

        Args:
            optional: Whether the run goes on without an answer; by default as `REQUIRED` says.
        """
        wanted = role not in REQUIRED if optional is None else optional
        runnable, shared = getattr(self.env.roles, role), self.is_lean(role)
        purse = self.purse_of(role)
        return Call(role, runnable, value, self.context.prompts, wanted, OUTPUTS[role], shared, purse)

    def purse_of(self, role: str, scope: Scope | None = None) -> Purse | None:
        """What this role is paid from; None where nothing limits it, or it runs without a model.

        Args:
            scope: Whose; by default of whom the run is about.
        """
        budget = self.settings.budget
        limited = (budget.run.is_set or budget.day.is_set) and not self.env.roles.by_rules(role)
        return Purse(self.settings, self.bank, scope or self.scope) if limited else None

    def ask(self, role: str, value: Any) -> Generator[Call, Any, Any]:
        """A role's output: asked on its own, else by the role's rules."""
        return (yield self.call(role, value)) if self.asks(role) else run_rules(role, value)

    def made(self, role: str) -> Made:
        """What is recorded on entries that this role makes."""
        runnable, pipeline = getattr(self.env.roles, role), self.settings.pipeline
        if not isinstance(runnable, ModelRole):
            return Made(self.scope, self.env.roles.model_name, pipeline=pipeline)
        prompt = runnable.prompt_version({"configurable": {PROMPTS: self.context.prompts}})
        return Made(self.scope, runnable.model_name, prompt, pipeline)


def make_env(
    roles: Roles | None,
    bank: "Bank | Callable[[], Bank] | None",
    settings: Settings | None,
    scope: ScopeOf | None = None,
    pipeline: "Pipeline | Path | str | None" = None,
) -> Env:
    """An environment with defaults filled in: rules, and one shared bank of this process and home.

    Args:
        pipeline: In place of the theta and the switches of the settings, and of roles that are not given.

    Raises:
        BadInput: the settings redact, or wall sessions in, otherwise than the bank, which is what does so;
            or `asks` names no role.
    """
    given = None if callable(bank) else bank
    if given is not None and not hasattr(given, "ledger"):
        raise BadInput(f"bank must be a Bank, as `Memory.bank` is, not a {type(given).__name__}")
    chosen = settings or (Settings.from_env() if given is None else given.settings)
    for name in ("redact", "visibility"):
        if given is not None and getattr(given.settings, name) != getattr(chosen, name):
            raise BadInput(f"settings.{name} is not that of the bank: open the bank with the same settings")
    if pipeline is not None:
        from memcycle.agents.pipeline import pipeline_of

        program = pipeline_of(pipeline)
        roles, chosen = roles or program.roles(), program.over(chosen)
    made = roles or Roles.rules()
    if unknown := sorted(chosen.asks.keys() - set(made.names())):
        raise BadInput(f"settings.asks: no role {unknown[0]!r}; roles are {', '.join(made.names())}")

    def opened() -> "Bank":
        from memcycle.stores.bank import shared_bank

        return shared_bank(chosen) if given is None else given

    return Env(made, chosen, bank if callable(bank) else opened, scope)
