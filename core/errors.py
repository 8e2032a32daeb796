"""What can go wrong, each with words for the person who meets it."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


KEPT = (
    "What was said is kept and waits to be read: give it again, or end its session; nothing is stored twice."
)
"""Note on an error that is raised once the turns are written, whoever raises it."""


class MemcycleError(Exception):
    """Base of all errors memcycle raises on purpose. `str(error)` says what, where and what to do."""


class BadInput(MemcycleError, ValueError):
    """Input that cannot be read: which record and field, and what was expected."""


class StoreError(MemcycleError):
    """The store cannot be opened, read or written."""


class StoreBusy(StoreError):
    """Another process has what only one may have: for a moment, or the embedded index. Names its pid then."""


class LedgerDamaged(StoreError):
    """The ledger's file is no sound database. Says how to go on."""


class EmbedderMismatch(StoreError):
    """The store was built with another embedder. Names both and the command that re-embeds."""


class EmbeddingFailed(StoreError):
    """The embedder returned no usable vectors (NaN, wrong dimension, wrong count)."""


class UnknownEntry(MemcycleError, KeyError):
    """No entry with this id in this scope."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else "no such entry"


class ModelUnavailable(MemcycleError):
    """A model name, key or server that cannot be used. Never means "no memories"."""


class RoleFailed(MemcycleError):
    """A role's model answered, twice, with something that does not fit its output model.

    Attributes:
        role: As the field of `Roles`.
        why: What was wrong with the last reply. excerpt: how it began, for logs a person reads.
    """

    def __init__(self, role: str, why: str, excerpt: str = "") -> None:
        super().__init__(f"role {role!r} failed: {why}" + (f" (reply began: {excerpt!r})" if excerpt else ""))
        self.role, self.why, self.excerpt = role, why, excerpt

    @property
    def brief(self) -> str:
        """What may be stored: whose role failed, without a word of the reply, which `why` may quote."""
        return f"role {self.role!r} failed"

    def __reduce__(self) -> tuple[type["RoleFailed"], tuple[str, str, str]]:
        return (type(self), (self.role, self.why, self.excerpt))


BUDGET = "the budget of "
"""How the words of a budget that is used up begin."""


class BudgetUsed(RoleFailed):
    """A role that was not asked, since the budget of the run or of the day is used up: `why` says which."""

    def __str__(self) -> str:
        return self.why

    @property
    def brief(self) -> str:
        """All of it: it quotes nobody."""
        return self.why


class PromptError(BadInput):
    """A prompt text that cannot be used. Names the role and the placeholder."""


def first_complaint(error: "ValidationError") -> str:
    """The first complaint of a validation, in one line."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return message if message.startswith(place) else f"{place}: {message}"


def all_complaints(error: "ValidationError", most: int = 5) -> str:
    """The first complaints of a validation, each by its field, without values: fit for a log."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:most]
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in found)


def status_of(error: Exception) -> int | None:
    """The HTTP status of a provider's error, wherever its client keeps it."""
    holders = (error, getattr(error, "response", None))
    found = (getattr(one, name, None) for name in ("status_code", "code") for one in holders)
    return next((int(one) for one in found if isinstance(one, int)), None)


_TOO_LARGE = 413
_REFUSED = (None, 400, 422)
_LENGTH = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too (?:long|large|big|many tokens|many inputs)"
    r"|(?:token|character|length) limit|max(?:imum)?[ _](?:input |sequence |allowed )?(?:tokens|length)"
    r"|(?:exceed|longer than|more than)\w*.{0,60}(?:tokens|characters|context|limit|maximum)",
    re.IGNORECASE | re.DOTALL,
)
_OUTPUT = re.compile(r"max_(?:completion_|output_|new_)?tokens", re.IGNORECASE)
_INPUT = re.compile(r"context|prompt|input|message", re.IGNORECASE)


def is_too_long(error: Exception) -> bool:
    """Whether a model or an embedder refused since it was given more than it can take.

    Told by status and words, in which providers differ; not where only the reply was to be too long.
    """
    status, said = status_of(error), str(error)
    if status == _TOO_LARGE or any(kind.__name__ == "ContextOverflowError" for kind in type(error).__mro__):
        return True
    only_output = _OUTPUT.search(said) is not None and _INPUT.search(said) is None
    return status in _REFUSED and not only_output and _LENGTH.search(said) is not None


def describe_error(error: BaseException) -> str:
    """An error by its kind; by its words only where they are ours and quote nobody."""
    kind = type(error).__name__
    if isinstance(error, StoreError):
        return f"{kind}: {error}"
    if isinstance(error, RoleFailed):
        return f"{kind}: role {error.role!r}"
    status = getattr(error, "status_code", None)
    return f"{kind}: status {status}" if isinstance(status, int) else kind
