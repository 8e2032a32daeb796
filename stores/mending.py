"""Puts right what a check of a home found, each kind by its own step, and checks again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from memcycle.core.errors import StoreError
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores import drift, findings, item_index, upkeep
from memcycle.stores.findings import Finding
from memcycle.stores.ledger import item_vectors, soundness
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.views import Views

BROKEN_OFF = "its end was broken off, or nobody ended it"
"""Why a session that was stuck is committed without having been examined."""

Check = Callable[[], dict[str, Any]]


class Mended(NamedTuple):
    """What came of it.

    Attributes:
        report: Of the last check.
        found: What was wrong before.
        left: What still is, each with why and with what a person can do.
    """

    report: dict[str, Any]
    found: list[Finding]
    left: list[Finding]

    @property
    def mended(self) -> list[Finding]:
        """What was wrong and no longer is."""
        left = {one.name for one in self.left}
        return [one for one in self.found if one.name not in left]


class Mender:
    """Mends one home.

    Args:
        views: Of the bank, claimed for writing.
        commit: Commits a session, unexamined, for a reason.
        alone: Whether no other process can be examining a session of the home.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        views: Views,
        commit: Callable[[Scope, str], object],
        *,
        alone: bool,
    ) -> None:
        self._ledger, self._settings, self._views = ledger, settings, views
        self._commit, self._alone = commit, alone
        self._steps: Mapping[str, Callable[[], object]] = {
            "ledger_indexes": lambda: self._in_ledger(soundness.reindex),
            "wipes_owed": views.mirror.wipe,
            "collections_owed": views.mirror.replace_collections,
            "orphan_sources": lambda: self._in_ledger(soundness.put_sources_right),
            "orphan_links": lambda: self._in_ledger(soundness.drop_lost_links),
            "orphan_item_vectors": lambda: self._in_ledger(item_vectors.drop_orphans),
            "lexical_drift": lambda: upkeep.rebuild_lexical(ledger, settings),
            "without_vector": self._embed_missing,
            "unfit_vectors": self._embed_unfit,
            "stuck_sessions": self._commit_stuck,
            "outbox": self._drain,
            "index_unusable": views.mirror.refill,
            "index_missing": self._align,
            "index_stray": self._align,
            "index_outdated": self._align,
            "index_leftover": self._align,
            "items_missing": self._drop_items,
            "items_stray": self._drop_items,
        }

    def run(self, check: Check) -> Mended:
        """Checks, mends, and checks again, until nothing is found that was not tried. Safe to repeat.

        A damaged ledger is left as it is: to write into it may cost more of it.
        """
        seen: dict[str, Finding] = {}
        why: dict[str, str] = {}
        while True:
            report = check()
            now = findings.found(report)
            fresh = [one for one in now if one.name not in seen]
            seen.update({one.name: one for one in fresh})
            if not fresh or report["damage"]:
                left = [
                    replace(one, remedy=f"{why[one.name]}; {one.remedy}") if one.name in why else one
                    for one in now
                ]
                return Mended(report, list(seen.values()), left)
            for one in fresh:
                if one.name in self._steps:
                    try:
                        self._steps[one.name]()
                    except StoreError as error:
                        why[one.name] = str(error)

    def _in_ledger(self, step: Callable[[Any], None]) -> None:
        with self._ledger.write() as conn:
            step(conn)

    def _drain(self) -> None:
        self._views.mirror.drain(self._settings.bulk_batch)

    def _embed_missing(self) -> None:
        upkeep.embed_missing(self._ledger, self._settings, self._views.vectors)
        self._drain()

    def _embed_unfit(self) -> None:
        upkeep.embed_unfit(self._ledger, self._settings, self._views.vectors)
        self._drain()

    def _commit_stuck(self) -> None:
        with self._ledger.read() as conn:
            waiting = upkeep.stuck(conn, self._ledger.world.now(), alone=self._alone)
        for scope, session in waiting:
            self._commit(scope.within(session), BROKEN_OFF)

    def _align(self) -> None:
        found = drift.compare(self._ledger, self._views.mirror, self._views.vectors.id)
        drift.mend(self._ledger, self._views.mirror, found, self._settings.bulk_batch)

    def _drop_items(self) -> None:
        item_index.drop_collections(self._ledger, self._views.mirror)
