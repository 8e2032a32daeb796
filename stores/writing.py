"""What every write of the bank goes through: the views it needs, and one ledger transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from memcycle.core.clock import World
from memcycle.core.errors import StoreError
from memcycle.core.redaction import Redactor
from memcycle.core.scope import Scope
from memcycle.core.settings import Settings
from memcycle.stores.ledger.connection import Ledger
from memcycle.stores.reading import Reading
from memcycle.stores.views import Views
from memcycle.stores.writer import Writer


class Writing(Reading):
    """A bank that may write, unless it was opened without views, for reading its ledger only.

    Attributes:
        redactor: Takes secrets out of whatever is stored or embedded, as the settings say.
    """

    def __init__(self, settings: Settings, world: World, ledger: Ledger, views: Views | None) -> None:
        super().__init__(settings, world, ledger)
        self._views = views
        self.redactor = Redactor(settings.redact)

    def _writable(self) -> Views:
        if self._views is None:
            raise StoreError(f"the memory at {self.settings.home} is open for reading its ledger only")
        return self._views

    def _for_writing(self) -> Views:
        return self._writable().for_writing()

    @contextmanager
    def _write(self, scope: Scope) -> Iterator[Writer]:
        self._for_writing()
        with self.ledger.write(scope) as conn:
            yield Writer(conn, self.world)
