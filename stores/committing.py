"""The half of the bank that ends sessions: examined, then committed in one transaction."""

from memcycle.core.scope import Scope
from memcycle.stores import staging
from memcycle.stores.ledger import entries
from memcycle.stores.writing import Writing


class Committing(Writing):
    """Examines and commits sessions."""

    def commit_session(self, scope: Scope) -> int:
        """Makes the session's staged entries active, in one transaction, then brings the index up to date.

        Returns:
            How many entries became active. Idempotent.
        """
        vectors = self._for_writing().vectors
        staging.session_of(scope)
        with self.ledger.read() as conn:
            bare = [one for one in entries.staged(conn, scope) if one.entry.embedder is None]
        found = vectors.of_all_that_can([one.entry.text for one in bare])
        missing = {one.row: found[one.entry.text] for one in bare if one.entry.text in found}
        with self._write(scope) as writer:
            activated = staging.commit(writer, scope, missing, vectors.id)
        self._writable().catch_up()
        return activated
