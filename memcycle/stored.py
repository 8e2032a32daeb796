"""The half of `Memory` that needs no graph: what is stored, and a person's word over it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from memcycle.core.edit import Event
from memcycle.core.entry import Entry, Granularity, Kind, Status
from memcycle.core.errors import BadInput, UnknownEntry
from memcycle.core.probe import Probe
from memcycle.core.scope import Scope
from memcycle.runs import off_loop
from memcycle.stores.bank import Bank
from memcycle.stores.ledger.probes import refs_of, turns_of
from memcycle.stores.tidying import Maintenance

_CURRENT: tuple[Status, ...] = ("active", "staged")
_NEVER = datetime.max.replace(tzinfo=UTC)


class Stored(ABC):
    """Lists, corrects, erases and moves what a bank holds of a user.

    Attributes:
        user: Whose memory, for calls that name nobody. workspace: likewise.
    """

    def __init__(self, user: str | None, workspace: str) -> None:
        self.user, self.workspace = user, workspace

    @property
    @abstractmethod
    def bank(self) -> Bank:
        """The store, opened if it is not."""

    @abstractmethod
    def _forget_runs(self, user: str, workspace: str | None) -> None:
        """Erases what is kept of a user's runs, where anything is."""

    def memories(
        self,
        *,
        user: str | None = None,
        workspace: str | None = None,
        granularity: Granularity | None = None,
        kind: Kind | None = None,
        search: str | None = None,
        statuses: Sequence[Status] = _CURRENT,
        limit: int | None = None,
    ) -> list[Entry]:
        """What is stored, in the order it was said.

        Args:
            user: Whose memory. workspace: a second wall inside it.
            granularity: Only `raw`, `fact` or `episode`. kind: only this kind.
            search: Only entries whose text holds these words, case aside.
            statuses: By default what recall may find; add `superseded` or `forgotten` to see more.
            limit: Entries at most.
        """
        found = self.bank.entries(
            self.scope(user, workspace), granularity=granularity, kind=kind, statuses=tuple(statuses)
        )
        words = (search or "").casefold().split()
        held = [entry for entry in found if all(word in entry.text.casefold() for word in words)]
        # The bank lists session after session by name; people read by time.
        return sorted(held, key=lambda entry: entry.observed_at or _NEVER)[:limit]

    def get(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> Entry:
        """One entry.

        Raises:
            UnknownEntry: no such entry in this user's memory.
        """
        found = self.bank.get(self.scope(user, workspace), [entry_id])
        if not found:
            raise UnknownEntry(f"no memory {entry_id!r} of this user and workspace")
        return found[0]

    def edit(
        self,
        entry_id: str,
        text: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        why: str = "",
    ) -> Entry:
        """Corrects an entry: a successor with the new text takes its place; the old text stays in history."""
        if not isinstance(text, str) or not text.strip():
            raise BadInput("the new text is blank; to remove a memory, forget it")
        return self.bank.edit(self.scope(user, workspace), entry_id, text.strip(), why=why)

    def undo(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> Entry:
        """Takes back the last change of an entry and gives the entry that holds again."""
        return self.bank.undo(self.scope(user, workspace), entry_id)

    def history(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> list[Event]:
        """Every change of an entry, its predecessors and successors: when, by whom, before, after, why."""
        return self.bank.history(self.scope(user, workspace), entry_id)

    def holders(self, entry_id: str, *, user: str | None = None, workspace: str | None = None) -> list[Entry]:
        """What else holds the words of an entry, and would be forgotten with it."""
        return self.bank.holders(self.scope(user, workspace), entry_id)

    def probes_over(
        self, entries: Sequence[Entry], *, user: str | None = None, workspace: str | None = None
    ) -> list[Probe]:
        """The probes that may hold words of these entries, and are forgotten with them."""
        turns = {turn for entry in entries if entry.granularity == "raw" for turn in entry.turns}
        ids = {entry.id for entry in entries}
        return [
            probe
            for probe in self.bank.probes(self.scope(user, workspace))
            if turns & turns_of(probe) or ids & refs_of(probe)
        ]

    def maintain(
        self, *, user: str | None = None, workspace: str | None = None, dry_run: bool = False
    ) -> Maintenance:
        """Keeps all of a user's memory in order: unites what is said twice, expires what is past its limit.

        Ending a session does this for what is new; this compares everything committed with everything.
        Nothing is erased: `undo` brings back what left, and what it brought back is left alone from then on.

        Args:
            user: Whose memory. workspace: a second wall inside it.
            dry_run: Only say what would be done.
        """
        return self.bank.maintain(self.scope(user, workspace), dry_run=dry_run)

    def forget(
        self,
        entry_id: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        only: bool = False,
    ) -> list[str]:
        """Erases an entry for good, with what else holds its words unless `only`. Gives the ids erased."""
        return self.bank.forget(self.scope(user, workspace), entry_id, only=only)

    def forget_user(self, user: str, *, workspace: str | None = None) -> int:
        """Erases all of a user's memory for good, in every workspace unless one is named. Gives how many.

        The checkpoints of that user's runs go with it, where this memory keeps them.
        """
        self.scope(user, workspace)
        self._forget_runs(user, workspace)
        return self.bank.forget_user(user, workspace)

    def export(self, *, user: str | None = None, workspace: str | None = None) -> list[dict[str, Any]]:
        """Every entry of a user with all fields, as JSON-able dicts that `import_` reads."""
        return list(self.bank.export(self.scope(user, workspace)))

    def import_(
        self, rows: Iterable[Mapping[str, Any]], *, user: str | None = None, workspace: str | None = None
    ) -> int:
        """Stores exported entries as this user's; those already stored stay as they are. Gives how many.

        Raises:
            BadInput: a record that is no entry (its number and field); then nothing is stored.
        """
        return self.bank.import_(self.scope(user, workspace), [dict(row) for row in rows])

    amemories = off_loop(memories)
    aget = off_loop(get)
    aedit = off_loop(edit)
    aundo = off_loop(undo)
    ahistory = off_loop(history)
    aholders = off_loop(holders)
    aprobes_over = off_loop(probes_over)
    amaintain = off_loop(maintain)
    aforget = off_loop(forget)
    aforget_user = off_loop(forget_user)
    aexport = off_loop(export)
    aimport_ = off_loop(import_)

    def scope(self, user: str | None = None, workspace: str | None = None) -> Scope:
        """The scope of a call.

        Raises:
            BadInput: nobody is named, or with a name that cannot be one.
        """
        named = user if user is not None else self.user
        if named is None:
            raise BadInput("no user is named: pass user=... with the call, or to Memory.open")
        try:
            return Scope(user=named, workspace=self.workspace if workspace is None else workspace)
        except ValidationError as error:
            raise BadInput(first_complaint(error)) from error


def first_complaint(error: ValidationError) -> str:
    """The first complaint of a validation, in one line."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return message if place and message.startswith(place) else f"{place}: {message}"
