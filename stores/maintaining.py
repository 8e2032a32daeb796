"""The half of the bank that keeps what is stored in order: duplicates, reinforcement, retention."""

from collections.abc import Iterable, Sequence

from memcycle.core.entry import Entry
from memcycle.core.scope import Scope
from memcycle.stores import retracting, tidying
from memcycle.stores.committing import Committing
from memcycle.stores.ledger import mentions
from memcycle.stores.tidying import Maintenance


class Maintaining(Committing):
    """Unites, reinforces, expires and takes back entries. Nothing is erased: `undo` brings back what left."""

    def retract(self, scope: Scope, writes: Iterable[tuple[str, str]], *, actor: str) -> list[str]:
        """Takes back what `actor` last wrote to each entry (id, why); see `retracting.retract`. Idempotent.

        Returns:
            Ids of the entries that changed.
        """
        with self._write(scope) as writer:
            changed = retracting.retract(writer, scope, writes, actor=actor)
        self._writable().catch_up()
        return changed

    def unite(self, scope: Scope, pairs: Sequence[tuple[str, str]], *, actor: str, why: str) -> list[str]:
        """Lets the first entry of each pair stand for the second, which says the same or less. Idempotent.

        The first gets the sources of both and the greater importance; the second is superseded by it. A pair
        of which one is not recallable, or that is of two granularities, is passed over.

        Returns:
            Ids of the second ones that were united.
        """
        with self._write(scope) as writer:
            dropped = [
                drop for keep, drop in pairs if tidying.unite(writer, scope, keep, drop, actor=actor, why=why)
            ]
        self._writable().catch_up()
        return dropped

    def mention(self, scope: Scope, names: Iterable[str]) -> None:
        """Notes that a question named somebody or something, for `reinforce`: one small write.

        Raises:
            StoreError: it cannot be written now.
        """
        # Only the ledger: a process that merely asks must not take the index from the one that writes.
        with self.ledger.write(scope) as conn:
            mentions.put(conn, scope, names)

    def reinforce(self, scope: Scope) -> int:
        """Lets active entries count for more whose persons or entities were named, and forgets the mentions.

        0.05 a mention, up to 0.3 (EvolveMem 3.1). One transaction, so that no mention counts twice.

        Returns:
            How many entries.
        """
        with self._write(scope) as writer:
            return tidying.reinforce(writer.conn, scope)

    def expire(self, scope: Scope, *, dry_run: bool = False) -> list[Entry]:
        """Takes out of recall what is past a limit of `settings.retention`.

        Looked at are the active entries of the base scope and the staged ones of the scope's session. What
        somebody brought back with `undo` stays, and pushes nothing else out.

        Args:
            dry_run: Only say what would expire.

        Returns:
            The entries as they stood, least important first.
        """
        with self.ledger.read() as conn:
            found = tidying.expired(conn, scope, self.settings, self.world.now())
        if found and not dry_run:
            with self._write(scope) as writer:
                found = [one for one in found if tidying.expire(writer, scope, one)]
            self._writable().catch_up()
        return [one.entry for one in found]

    def maintain(
        self, scope: Scope, turns: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> Maintenance:
        """Unites facts that say the same, renews working summaries, reinforces and expires. Idempotent.

        Args:
            scope: With a session, its staged entries and its summaries are looked at, too.
            turns: Compare only the facts of these turns with the others; None compares all.
            dry_run: Only say what would be done.
        """
        with self.ledger.read() as conn:
            planned = tidying.plan(conn, scope, self.settings, self.world.now(), turns)
        if dry_run:
            return planned
        with self._write(scope) as writer:
            done = tidying.carry_out(writer, scope, planned)
        self._writable().catch_up()
        return done
