"""Settings of one memory: where it lives and how it behaves."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from zoneinfo import ZoneInfo

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from memcycle.core.entry import KINDS, Granularity, Kind
from memcycle.core.errors import BadInput, first_complaint
from memcycle.core.redaction import Redact
from memcycle.core.scope import Visibility
from memcycle.core.theta import Part, Switches, Theta, ranged

DEFAULT_HOME = Path(".memcycle")
HALF_AN_HOUR, YEAR = 1800.0, 366 * 86_400
"""Seconds."""
Asked = Literal["delete", "update", Kind]
"""What a person may be asked about, in words."""

_OFF = ("none", "off", "never")
_FROM_ENV = (
    "home", "timezone", "embedder", "chroma_url", "redact", "profile", "visibility", "idle_after", "approval",
)  # fmt: skip


class Verification(Part):
    """How a session's memory is examined when it ends, and so what that costs."""

    probes: int = ranged(5, 1, 50, "questions a session (MemMA J)")
    k: int = ranged(30, 1, 200, "entries each is answered from")
    raw: bool = Field(
        False, description="answer also from raw turns, which would answer all and hide what is missing"
    )
    at_once: int = ranged(5, 1, 50, "questions answered, and repaired, at the same time")
    tokens: int = ranged(300, 50, 100_000, "tokens of entries each is answered from where calls are shared")
    turn_tokens: int = ranged(6000, 100, 200_000, "tokens of turns the Prober reads; more are sampled evenly")


class Approval(Part):
    """What a person is asked about before it is written; nothing by default.

    A graph that asks stops with an interrupt and goes on when it is resumed, so it needs a checkpointer. Not
    asked about are turns and episodes, which only tell what was said, and what maintenance unites: that
    leaves no statement out, and `undo` takes it back.
    """

    delete: bool = Field(False, description="before a fact is deleted")
    update: bool = Field(False, description="before a fact is replaced by another")
    kinds: tuple[Kind, ...] = Field(
        (), description="before a fact of these kinds is written, changed or deleted"
    )

    @classmethod
    def of(cls, asked: Iterable[str]) -> Self:
        """What these words name: `delete`, `update`, or a kind of memory; BadInput where one names none."""
        words = set(asked)
        for word in sorted(words - {"delete", "update", *KINDS}):
            raise BadInput(f"approval of {word!r}: give delete, update, or a kind ({', '.join(KINDS)})")
        kinds = tuple(one for one in KINDS if one in words)
        return cls(delete="delete" in words, update="update" in words, kinds=kinds)

    def __or__(self, other: "Approval") -> Self:
        kinds = tuple(dict.fromkeys((*self.kinds, *other.kinds)))
        return type(self)(delete=self.delete or other.delete, update=self.update or other.update, kinds=kinds)

    @property
    def is_asked(self) -> bool:
        """Whether anything needs approval."""
        return self.delete or self.update or bool(self.kinds)


class Spent(NamedTuple):
    """Calls of models, and tokens they read and wrote."""

    calls: int
    tokens: int


class Limit(NamedTuple):
    """How many at most; None is no limit."""

    calls: int | None
    tokens: int | None

    @property
    def is_set(self) -> bool:
        """Whether anything is limited."""
        return self.calls is not None or self.tokens is not None

    def reached(self, spent: Spent) -> str:
        """Which of them is used up, in words; empty where none is."""
        each = zip(spent._fields, spent, self, strict=True)
        return next((f"{n} of {most} {what}" for what, n, most in each if most is not None and n >= most), "")


class Budget(Part):
    """What models may be asked for; no limit by default. At its end memory goes on without a model.

    A run is one call of a graph with all that runs in it, or of the graph it is a node of. A day is one of
    the user's zone, in all workspaces and processes; it counts from when it is limited. Looked at before a
    role is asked: what was begun is finished, so that a few calls for replies that did not fit, and the
    tokens of calls made side by side, may come on top.
    """

    calls_a_run: int | None = Field(None, ge=0, description="calls of a model in one run")
    tokens_a_run: int | None = Field(None, ge=0, description="tokens read and written in one run")
    calls_a_day: int | None = Field(None, ge=0, description="calls of a model for one user on one day")
    tokens_a_day: int | None = Field(
        None, ge=0, description="tokens read and written for one user on one day"
    )

    @property
    def run(self) -> Limit:
        """Of one run."""
        return Limit(self.calls_a_run, self.tokens_a_run)

    @property
    def day(self) -> Limit:
        """Of one user on one day."""
        return Limit(self.calls_a_day, self.tokens_a_day)


class Retention(Part):
    """How long, or how many, entries of some kind are kept.

    What is past a limit leaves recall at a session's end or by `memcycle maintain`; `undo` brings it back.

    Attributes:
        kind, granularity, user, workspace: Which entries; None is all.
    """

    kind: Kind | None = None
    granularity: Granularity | None = None
    user: str | None = None
    workspace: str | None = None
    max_age_days: float | None = Field(
        None, gt=0, le=100_000, description="days since one was last said before it expires"
    )
    max_entries: int | None = Field(
        None, ge=0, description="of each user and workspace; the least important expire first"
    )

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.max_age_days is None and self.max_entries is None:
            raise ValueError("retention needs max_age_days, max_entries or both")
        return self


class Settings(Part):
    """Plain data; an explicit argument always wins over the environment.

    Attributes:
        home: Directory of the ledger and the embedded index.
        timezone: IANA name of the user's zone: of the clock, of naive times and of days, so that "today" of a
            stamp in UTC is a day of it. The default, UTC, is no zone of a user: a time that comes with an
            offset is then of a day there.
        embedder: `wordllama` (in the wheel, default), `minilm` (Chroma's ONNX model) or the id of a
            LangChain `Embeddings` handed to `Memory.open(embeddings=...)`.
        chroma_url: `http://host:port` of a `chroma run` server; None is the embedded index.
        shards: Collections the entries are spread over by a hash of the base scope.
        serving_batch: Upserts a batch while serving, which keep the interpreter for some 15 ms. bulk_batch:
            the same in bulk import.
        lock_timeout: Seconds to wait for another process to let go of the embedded index, where it is needed.
        retention: Limits on what is kept; none by default.
        profile: `lean`, as shipped: roles on a model share calls, or run in code where code knows the answer.
            `paper`: each is asked on its own, as the papers have it. Both are the same graphs.
        asks: By role, whether it is asked on its own whatever the profile says: `{"judge": True}`.
        budget: How much models may be asked for, by run and by day and user; no limit by default.
        approval: What a person is asked about before it is written, also in words such as `delete,update`;
            nothing by default.
        redact: Secrets taken out of all text before it is stored, embedded or shown to a model; True is the
            common kinds, None (default) none. What was stored before stays as it is.
        visibility: Where what a session says is found before the session has ended: `user` in all sessions
            of its user and workspace, at once; `session` in that session alone.
        idle_after: Seconds without a new turn, a year at most, after which a session is ended: by what is
            said next in another, one session each time, or by `Memory.end_idle`. None never does.
        pipeline: Version of what remembers and recalls, recorded on every entry that is made. Set by
            `Pipeline.over`.
    """

    home: Path = DEFAULT_HOME
    timezone: str = "UTC"
    embedder: str = "wordllama"
    chroma_url: str | None = None
    shards: int = Field(default=32, ge=1, le=1024)
    serving_batch: int = Field(default=25, ge=1, le=5000)
    bulk_batch: int = Field(default=1000, ge=1, le=5000)
    lock_timeout: float = Field(default=3.0, ge=0, le=60)
    user_name: str = "user"
    assistant_name: str = "assistant"
    answer_style: Literal["short", "sentence"] = "short"
    visibility: Visibility = "user"
    idle_after: float | None = Field(default=HALF_AN_HOUR, gt=0, le=YEAR, allow_inf_nan=False)
    profile: Literal["lean", "paper"] = "lean"
    asks: dict[str, bool] = Field(default_factory=dict)
    budget: Budget = Field(default_factory=Budget)
    verification: Verification = Field(default_factory=Verification)
    retention: tuple[Retention, ...] = ()
    approval: Approval = Field(default_factory=Approval)
    redact: Redact | None = None
    theta: Theta = Field(default_factory=Theta)
    switches: Switches = Field(default_factory=Switches)
    pipeline: str = "shipped"

    if not TYPE_CHECKING:  # so that a type checker sees the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise BadInput(f"settings: {first_complaint(error)}") from None

    @field_validator("home", mode="before")
    @classmethod
    def _a_path(cls, value: Any) -> Any:
        if isinstance(value, str | Path) and (not str(value).strip() or "\0" in str(value)):
            raise ValueError("a folder must be named, without NUL in it")
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"timezone {value!r} is not an IANA zone name such as Europe/Vienna") from error
        return value

    @field_validator("approval", mode="before")
    @classmethod
    def _in_words(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        return Approval.of(value) if isinstance(value, list | tuple) else value

    @field_validator("idle_after", mode="before")
    @classmethod
    def _switched_off(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip().lower() in _OFF else value

    @field_validator("redact", mode="before")
    @classmethod
    def _switched(cls, value: Any) -> Any:
        if isinstance(value, str | bool):
            return Redact() if TypeAdapter(bool).validate_python(value) else None
        return value

    @property
    def zone(self) -> ZoneInfo:
        """The zone of naive times."""
        return ZoneInfo(self.timezone)

    def local(self, time: datetime) -> datetime:
        """An aware time in the user's zone; as it is where none is set."""
        return time if self.timezone == "UTC" else time.astimezone(self.zone)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ, **explicit: Any) -> Self:
        """Settings from `MEMCYCLE_HOME`, `_TIMEZONE`, `_EMBEDDER`, `_CHROMA_URL`, `_REDACT` (true or false),
        `_PROFILE`, `_VISIBILITY` (user or session), `_IDLE_AFTER` (seconds, or none), `_APPROVAL` (words
        by commas), and `_MAX_CALLS_A_DAY` and so on for each field of `Budget`. Explicit values win.
        """

        def named(keys: Iterable[str], prefix: str) -> dict[str, Any]:
            found = {key: env.get(f"{prefix}{key.upper()}") for key in keys}
            return {key: value for key, value in found.items() if value}

        limits = named(Budget.model_fields, "MEMCYCLE_MAX_")
        given = {key: value for key, value in explicit.items() if value is not None}
        return cls(**{**named(_FROM_ENV, "MEMCYCLE_"), **({"budget": limits} if limits else {}), **given})
