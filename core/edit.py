"""Changes to memory: proposed, applied, refused, recorded."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from memcycle.core.entry import Entry
from memcycle.core.scope import Data

EditOp = Literal["ADD", "UPDATE", "DELETE", "MERGE", "NONE"]
Action = Literal[
    "stage", "add", "update", "supersede", "delete", "merge", "commit", "undo", "forget", "import", "expire"
]


class Edit(Data):
    """One change that guards have allowed and the bank shall apply.

    ADD: insert `entry`; with a `target` of later evidence, as what held before that.
    UPDATE: insert `entry` as successor of `target`, close the predecessor's validity; older evidence than
    `target` goes before it instead.
    MERGE: unite `entry`'s turns into `target` (text unchanged), nothing inserted.
    DELETE: `target` becomes forgotten; only with `quote` (the user's words) or `retention=True`. With
    `asked_in`, the turn in which the user asked for it, it is erased for good, with `also`, what holds their
    words, and that turn.
    NONE: nothing; kept so that the reason is reported.
    """

    op: EditOp
    entry: Entry | None = None
    target: str | None = None
    reason: str = ""
    actor: str = "constructor"
    quote: str | None = None
    retention: bool = False
    also: tuple[str, ...] = ()
    asked_in: str | None = None


class Rejected(Data):
    """A proposal that was not applied: its text, why, and the entry it named if any."""

    text: str
    why: str
    target: str | None = None


class Applied(BaseModel):
    """What one `Bank.apply` did, by entry id.

    Attributes:
        unchanged: Those of `merged` that were so before.
    """

    model_config = ConfigDict(extra="forbid")

    added: list[str] = []
    updated: list[str] = []
    superseded: list[str] = []
    merged: list[str] = []
    deleted: list[str] = []
    unchanged: list[str] = []
    rejected: list[Rejected] = []


class Event(Data):
    """One line of an entry's history: when, by whom, what, before, after, why."""

    id: str
    at: AwareDatetime
    entry_id: str
    action: Action
    actor: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    why: str = ""
