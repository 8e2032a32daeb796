"""What a run is told from outside: whose memory, which session, and what to change for this run only."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from memcycle.core.errors import BadInput
from memcycle.core.scope import Scope
from memcycle.core.settings import YEAR, Asked
from memcycle.core.theta import Theta

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

MAIN_SESSION = "main"


class Context(BaseModel):
    """The context schema of every graph: JSON, described, all optional but the user."""

    model_config = ConfigDict(extra="forbid")

    user: str = Field("", description="Whose memory is read and written; also `user_id`. Required.")
    workspace: str = Field(
        "default", description="A second wall inside one user: another project, another agent."
    )
    session: str | None = Field(None, description="The session; by default the thread id, else `main`.")
    k: int | None = Field(None, ge=1, le=200, description="Evidence entries at most, for this run.")
    token_budget: int | None = Field(None, ge=50, description="Tokens of evidence at most, for this run.")
    evidence_only: bool = Field(
        False, description="Stop before the Answerer: recalled evidence, no model answer."
    )
    now: AwareDatetime | None = Field(None, description="The time to count from, for messages without one.")
    prompts: dict[str, str] = Field(
        default_factory=dict, description="Prompt texts by role, for this run only."
    )
    theta: dict[str, Any] = Field(
        default_factory=dict,
        description="Changes of theta by path, such as weights.bm25, or a whole theta, for this run only; "
        "values out of range are clamped.",
    )
    idle_after: float | None = Field(
        None,
        ge=0,
        le=YEAR,
        description="Seconds of silence after which this run ends another session of the user; 0 ends none. "
        "By default as the settings say.",
    )
    approval: tuple[Asked, ...] = Field(
        (),
        description="What a person is asked about in this run, beside what the settings say: delete, update, "
        "or kinds of memory. Needs a checkpointer.",
    )
    bulk: bool = Field(
        False, description="Bulk import: what is read is guarded as theta.extraction says, and takes longer."
    )

    def __init__(self, **given: Any) -> None:
        named = given.pop("user_id", None)  # as graphs of other people write it
        if named not in (None, ""):
            if given.get("user") not in (None, "", named):
                raise BadInput("the context of a run names one user and another user_id: leave one out")
            given["user"] = named
        unknown = [name for name in given if name not in type(self).model_fields]
        if unknown:
            named = ", ".join(type(self).model_fields)
            raise BadInput(f"the context of a run has no {unknown[0]!r}; it may name {named}")
        super().__init__(**given)

    @field_validator("theta")
    @classmethod
    def _known_dimensions(cls, value: dict[str, Any]) -> dict[str, Any]:
        Theta().with_changes(value)
        return value


ScopeOf = Callable[[Any], Scope | Mapping[str, Any]]
"""From a parent's context (its own type, or None) to the scope, or its fields as a mapping; for graphs
embedded in another graph."""


def run_context() -> Context:
    """The context of the running graph; of a parent's own context what is ours by name and fits."""
    given = _given()
    if isinstance(given, Context):
        return given
    held = dict(given) if isinstance(given, Mapping) else {}
    ours = {name: held[name] for name in Context.model_fields if name in held}
    try:
        return Context(**ours)
    except ValidationError as error:
        unfit = {complaint["loc"][0] for complaint in error.errors()}
        return Context(**{name: value for name, value in ours.items() if name not in unfit})


def _given() -> Any:
    # Whoever runs a graph has loaded LangGraph; who only names a context does without that second.
    from langgraph.runtime import get_runtime

    try:
        return get_runtime().context
    except RuntimeError:  # no graph runs
        return None


class NobodyNamed(BadInput):
    """A run of which nobody says whose memory it is about."""


def run_scope(scope_of: ScopeOf | None, config: "RunnableConfig") -> Scope:
    """The scope of the running graph, with its session, as `parent_scope` reads it."""
    session = run_context().session if scope_of is not None else None
    return parent_scope(_given(), config, scope_of, session=session)


USER_KEYS = ("user", "user_id")
SESSION_KEYS = ("session", "session_id")


def parent_scope(
    context: Any,
    config: "RunnableConfig",
    scope_of: ScopeOf | None = None,
    *,
    user: str | None = None,
    workspace: str = "default",
    session: str | None = None,
) -> Scope:
    """The scope, with its session, of a run of somebody else's graph; never from what a model says.

    Args:
        context: The run's context, of any type, or None.
        config: The run's configuration; its thread id is the session where none is named.
        scope_of: Gives the scope from `context`; inside it `langgraph.config.get_config()` gives `config`.
            Without it the context, then the `configurable` part of `config`, is asked for `user` or
            `user_id`, `workspace`, and `session` or `session_id`.
        user, workspace, session: Whose memory, where nobody else names them.

    Raises:
        BadInput: a name that cannot be one. NobodyNamed: nobody is named.
    """
    configurable = config.get("configurable") or {}
    try:
        named = _named(context, configurable, user, workspace) if scope_of is None else scope_of(context)
        scope = Scope.model_validate(named)
        return scope.within(scope.session or session or str(configurable.get("thread_id") or MAIN_SESSION))
    except ValidationError as error:
        raise BadInput(f"the scope does not fit: {error.errors()[0]['msg']}") from error


def _named(context: Any, configurable: Mapping[str, Any], user: str | None, workspace: str) -> Scope:
    if isinstance(context, Context):  # what it does not say the configurable may
        context = context.model_dump(exclude_unset=True)
    named = _first(USER_KEYS, context, configurable)
    named = user if named is None else named
    if named is None:
        raise NobodyNamed(
            "no user is named: run the graph with context={'user': ...} or with a 'user_id' in its "
            "configurable, or pass scope=..., which gives the scope from the context"
        )
    return Scope(
        user=named,
        workspace=_first(("workspace",), context, configurable) or workspace,
        session=_first(SESSION_KEYS, context, configurable),
    )


def _first(keys: tuple[str, ...], *holders: Any) -> Any:
    """The first value under one of the keys, holder after holder; an empty text is none."""
    for holder in holders:
        for key in keys:
            value = holder.get(key) if isinstance(holder, Mapping) else getattr(holder, key, None)
            if value is not None and value != "":
                return value
    return None
