"""The bank: the one door to storage."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from memcycle.core.clock import World
from memcycle.core.edit import Applied, Edit
from memcycle.core.entry import Entry
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.core.turn import Turn
from memcycle.stores import applying, forgetting, portable, revising, staging, upkeep
from memcycle.stores.ledger import conflicts, meta, sessions
from memcycle.stores.ledger import turns as turn_rows
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.maintaining import Maintaining
from memcycle.stores.views import Views

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from memcycle.stores.mending import Mended
    from memcycle.stores.request import Hit, SearchRequest
    from memcycle.stores.search.search import Ranking

LEDGER_FILE = "ledger.sqlite3"


class Bank(Maintaining):
    """Everything the graphs and the face read (see `Reading`) and write. Thread-safe and synchronous.

    Each write is one ledger transaction under the lock of its base scope; the vector index follows.

    Attributes:
        may_close: Asked by `close`; lets the registry share one bank among several users.
    """

    def __init__(self, settings: Settings, world: World, ledger: Ledger, views: Views | None) -> None:
        super().__init__(settings, world, ledger, views)
        self.may_close: Callable[[], bool] = lambda: True

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        embeddings: "Embeddings | None" = None,
        world: World | None = None,
        read_only: bool = False,
        repair: bool = False,
    ) -> Self:
        """Opens the memory of `settings.home`. The embedder's model and the index load on first need.

        Args:
            embeddings: A LangChain embedder in place of a named one.
            read_only: Only the ledger, beside any writing process; no search.
            repair: Opens also a home of another embedder, for `check` and `reembed`.

        Raises:
            EmbedderMismatch: the home was built with another embedder.
            StoreError: it cannot be opened; says why and what to do.
        """
        world = world or World()
        ledger = Ledger.open(settings.home / LEDGER_FILE, world, read_only=read_only)
        try:
            views = None if read_only else Views.open(settings, world, ledger, embeddings, repair=repair)
            if not read_only and not repair:
                upkeep.revive_lexical(ledger, settings)
        except BaseException:
            ledger.close()
            raise
        return cls(settings, world, ledger, views)

    @property
    def embedder_id(self) -> str:
        """Id of the embedder; when reading only, of the one the vectors come from."""
        if self._views is not None:
            return self._views.vectors.id
        with self.ledger.read() as conn:
            recorded = meta.embedder(conn)
        return recorded[0] if recorded else self.settings.embedder

    @property
    def views(self) -> Views:
        """Embedder and index, for what else is kept in the same home.

        Raises:
            StoreError: the bank is open for reading its ledger only.
        """
        return self._writable()

    @property
    def operator_note(self) -> str | None:
        """What must be run so that forgotten text leaves the Chroma server's files, if any may be there."""
        return self._views.mirror.operator_note if self._views else None

    def close(self) -> None:
        """Frees all files and locks. A shared bank closes with its last user, so each closes it once."""
        if self.may_close():
            if self._views is not None:
                self._views.mirror.close()
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Turns

    def stage_turns(self, scope: Scope, given: Sequence[Turn]) -> list[Turn]:
        """Stores turns and their raw entries, each once, without any model; see `staging.stage`.

        Nothing is lost to a failing embedder: such turns are stored without a vector and get one at commit.
        """
        staging.session_of(scope)
        with self.ledger.read() as conn:
            given = staging.redacted(conn, scope, given, self.redactor)
            fresh = staging.fresh_turns(conn, scope, given)
        vectors = self._for_writing().vectors
        found = vectors.of_all_that_can([turn.text for turn in fresh])
        with self._write(scope) as writer:
            staged = staging.stage(writer, scope, given, found, vectors.id)
        self._writable().read_words()
        return staged

    def mark_turns(self, scope: Scope, ids: Iterable[str], state: str) -> None:
        """Sets the state of turns."""
        with self._write(scope) as writer:
            turn_rows.mark(writer.conn, scope, ids, state)

    def search(self, request: "SearchRequest") -> list[list["Hit"]]:
        """For each query its hits, best first; see `Search.run`."""
        return self._writable().search.run(self._asked(request))

    def rank(self, request: "SearchRequest") -> list["Ranking"]:
        """The same without the entries themselves; see `Search.rank`."""
        return self._writable().search.rank(self._asked(request))

    def _asked(self, request: "SearchRequest") -> "SearchRequest":
        asked = [one.model_copy(update={"text": self.redactor.text(one.text)}) for one in request.queries]
        return request.model_copy(update={"queries": tuple(asked)})

    # Writes

    def apply(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        *,
        turns: Sequence[str] = (),
        state: str | None = None,
        close_segment_at: int | None = None,
        seq: int | None = None,
    ) -> Applied:
        """Applies what the guards allow, in one transaction; the rest is reported with the reason.

        Args:
            turns: Turns whose reading these edits are; they get `state` in the same transaction.
            close_segment_at: Position of the last turn of the scope's session that an episode now covers.
            seq: Which session they stem from; all are refused where it is another one now.

        Raises:
            Exception: what the embedder's provider raises when it cannot be reached; then nothing is changed.
        """
        vectors = self._for_writing().vectors
        edits = [self._redacted(edit) for edit in edits]
        prepared = applying.prepare(vectors, edits)
        with self._write(scope) as writer:
            if sessions.is_another(writer.conn, scope, seq):
                return applying.refused(edits, "its session was forgotten meanwhile")
            applied = applying.apply_edits(writer, scope, prepared, vectors.id)
            if state is not None:
                turn_rows.mark(writer.conn, scope, turns, state)
            if close_segment_at is not None:
                sessions.close_segment(writer.conn, scope, staging.session_of(scope), close_segment_at)
        return applied

    def _redacted(self, edit: Edit) -> Edit:
        if edit.entry is None:
            return edit
        return edit.model_copy(update={"entry": self.redactor.entry(edit.entry)})

    def edit(self, scope: Scope, entry_id: str, text: str, *, actor: str = "user", why: str = "") -> Entry:
        """Replaces an entry by one with another text and returns that; see `revising.revise`."""
        vectors = self._for_writing().vectors
        text, why = self.redactor.text(text), self.redactor.text(why)
        found = vectors.of_all_that_can([text])
        embedder = vectors.id if text in found else None
        with self._write(scope) as writer:
            successor = revising.revise(
                writer, scope, entry_id, text, vector=found.get(text), embedder=embedder, actor=actor, why=why
            )
        self._writable().catch_up()
        return successor

    def undo(self, scope: Scope, entry_id: str, *, actor: str = "user") -> Entry:
        """Takes back the last replacement or deletion in an entry's chain; see `revising.undo`."""
        self._for_writing()
        with self._write(scope) as writer:
            restored = revising.undo(writer, scope, entry_id, actor=actor)
        self._writable().catch_up()
        return restored

    def forget(self, scope: Scope, entry_id: str, *, only: bool = False) -> list[str]:
        """Deletes an entry for good, with its `holders` unless `only`, and wipes their text from all files.

        Of a Chroma server from its collections; `operator_note` says how its files are freed.

        Returns:
            Ids of what was deleted; empty for an unknown id. Safe to repeat.

        Raises:
            StoreError: all is deleted, but the index cannot be wiped now; repeat, or run the doctor.
        """
        mirror = self._for_writing().mirror
        with self._write(scope) as writer:
            doomed = forgetting.doomed(writer.conn, scope, entry_id, only=only)
            if doomed:
                forgetting.forget(writer, scope, doomed)
        mirror.wipe()
        return [one.entry.id for one in doomed]

    def forget_user(self, user: str, workspace: str | None = None) -> int:
        """Deletes everything of a user, in all workspaces unless one is named, and wipes it from all files.

        Of a Chroma server from its collections, as `forget`.

        Returns:
            How many entries were deleted. Safe to repeat.

        Raises:
            StoreError: all is deleted, but the index cannot be wiped now; repeat, or run the doctor.
        """
        mirror = self._for_writing().mirror
        with self.ledger.write() as conn:
            scopes = sessions.scopes_of(conn, user, workspace)
            deleted = sum(forgetting.forget_scope(conn, scope) for scope in scopes)
        mirror.wipe()
        return deleted

    # Sessions

    def queue_conflict(self, scope: Scope, a: str, b: str, why: str) -> None:
        """Leaves a pair of contradicting entries for the next write to settle."""
        with self._write(scope) as writer:
            conflicts.put(writer.conn, scope, a, b, why)

    def settle_conflicts(self, scope: Scope, pairs: Iterable[tuple[str, str]]) -> None:
        """Takes pairs off the queue, after what came of them is written."""
        with self._write(scope) as writer:
            conflicts.settle(writer.conn, scope, pairs)

    # The whole

    def import_(self, scope: Scope, rows: Iterable[Mapping[str, Any]]) -> int:
        """Stores exported entries as the scope's own; see `portable`. All or nothing.

        Returns:
            How many entries were new.

        Raises:
            BadInput: names the record and the field.
        """
        vectors = self._for_writing().vectors
        records = portable.read_records(scope, map(self.redactor.row, rows))
        texts = [one.entry.text for one in records]
        found: dict[str, Any] = {}
        for start in range(0, len(texts), self.settings.bulk_batch):
            found |= vectors.of_all_that_can(texts[start : start + self.settings.bulk_batch])
        with self._write(scope) as writer:
            inserted = portable.insert_records(writer, scope, records, found, vectors.id)
        self._writable().catch_up(self.settings.bulk_batch)
        return inserted

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """For many imports one after another: the vector index follows in large batches, and has at the end.

        Where much comes in, a second process fills it meanwhile (see `Mirror.follow`).

        Everything is stored, and found by searches, as soon as each import returns; what a crash keeps from
        the index is brought in by the next write.
        """
        with self._for_writing().held_back(self.settings.bulk_batch):
            yield

    def drain(self, batch: int | None = None) -> int:
        """Brings the index up to date; see `Mirror.drain`."""
        return self._for_writing().mirror.drain(batch)

    def rebuild(self) -> int:
        """Makes the lexical view and the vector index anew from the ledger; returns the active entries."""
        views = self._for_writing()
        return upkeep.rebuild(self.ledger, self.settings, views.vectors, views.mirror)

    def reembed(self) -> int:
        """Makes every vector anew with the present embedder; returns how many."""
        views = self._for_writing()
        return upkeep.reembed(self.ledger, self.settings, views.vectors, views.mirror)

    def check(self, *, alone: bool = False) -> dict[str, Any]:
        """What the home holds and what is wrong with it; see `upkeep.check`."""
        mirror = self._views.mirror if self._views else None
        return upkeep.check(self.ledger, self.settings, mirror, self.embedder_id, alone=alone)

    def mend(self, *, alone: bool = False) -> "Mended":
        """Puts right what a check finds, as far as that needs no person; see `mending.Mender.run`.

        Args:
            alone: Whether no other process can be examining a session of the home; those under examination
                were broken off then, and are committed unverified.
        """
        from memcycle.stores.mending import Mender

        def commit(scope: Scope, why: str) -> int:
            return self.commit_session(scope, unverified=why)

        views = self._writable()
        views.mirror.claim()
        mender = Mender(self.ledger, self.settings, views, commit, alone=alone)
        return mender.run(lambda: self.check(alone=alone))
