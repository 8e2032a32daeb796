"""Where checkpoints are kept, by URL: what is refused, and that no password is told."""

import asyncio
import logging
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from memcycle import Memory, checkpointer
from memcycle.core.errors import BadInput, StoreError

SECRET = "hunter2!"
URL = "postgresql://ann:hunter2%21@db.example:5433/runs"
CONFIG = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
EXTRA = ("psycopg", "psycopg_pool", "langgraph.checkpoint.postgres")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("url", ["memory", "memory://"])
def test_memory_is_one_saver_for_both_faces_and_keeps_what_it_has(url):
    kept = checkpointer(url)
    assert kept.place == "memory"
    with kept as saver:
        assert type(saver) is InMemorySaver
        saver.put(CONFIG, empty_checkpoint(), {"step": 4}, {})

    async def again():
        async with kept as found:
            return (await found.aget_tuple(CONFIG)).metadata["step"]

    assert asyncio.run(again()) == 4


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("runs.sqlite3", "runs.sqlite3"),
        ("sqlite:///runs.sqlite3", "runs.sqlite3"),
        ("sqlite:///a%20b?c/runs.sqlite3", "a%20b?c/runs.sqlite3"),
        ("sqlite:////data/runs.sqlite3", "/data/runs.sqlite3"),
        ("./memory", "memory"),
        (Path("memory"), "memory"),
    ],
)
def test_a_file_is_named_plainly_or_by_url(url, path, tmp_path):
    assert checkpointer(url).place == str(tmp_path / path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/runs",
        ":memory:",
        "sqlite:///:memory:",
        "memory://here",
        f"mysql://ann:{SECRET}@db/runs",
        f"{SECRET}{SECRET}{SECRET}://db",
    ],
)
def test_another_url_is_refused_with_the_forms_that_are_read(url):
    with pytest.raises(
        BadInput, match="`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/DATABASE`"
    ) as caught:
        checkpointer(url)
    assert f"{SECRET}{SECRET}{SECRET}" not in str(caught.value)
    assert f":{SECRET}" not in str(caught.value)


def test_a_server_is_shown_without_its_password():
    for url, place in [
        (URL, "postgresql://ann@db.example:5433/runs"),
        ("postgres://ann:a:b:c@db/runs", "postgresql://ann@db/runs"),
        (f"postgresql://db/runs?user=ann&password={SECRET}&sslpassword={SECRET}", "postgresql://db/runs"),
        (
            f"postgresql://ann:{SECRET}@[::1]:5432,other:5433/runs",
            "postgresql://ann@[::1]:5432,other:5433/runs",
        ),
        ("postgresql://", "postgresql:///"),
        ("postgresql:///runs?host=/var/run", "postgresql:///runs"),
    ]:
        assert checkpointer(url).place == place, url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hun@ter@db/runs",
        "postgresql://ann:hun/ter@db/runs",
        "postgresql://ann:hun?ter@db/runs",
        "postgresql://ann:hun#ter@db/runs",
        "postgresql://ann:hun",
        "postgresql://db:5432x/hun",
        "postgresql://ann@db/hun/ter",
    ],
)
def test_a_server_url_that_could_be_read_wrongly_is_refused_unquoted(url):
    with pytest.raises(BadInput, match=r"the PostgreSQL URL cannot be read: write .*@ as %40") as caught:
        checkpointer(url)
    assert "hun" not in str(caught.value)
    assert "ter" not in str(caught.value).replace("postgres", "").replace("characters", "")


@pytest.mark.parametrize("missing", EXTRA)
def test_without_the_extra_it_says_how_to_install_it(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(StoreError, match=r"need the extra `postgres`: pip install 'memcycle\[postgres\]'"):
        checkpointer(URL).__enter__()


def test_a_memory_without_the_extra_says_so_when_it_is_opened(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match="need the extra"):
        Memory.open(tmp_path / "home", user="ann", checkpoints=URL)


class Driver:
    """Stands in for psycopg and LangGraph's savers; `error` is what connecting raises."""

    class Error(Exception):
        pass

    def __init__(self, error: str = "", pool_error: str = "") -> None:
        self.made: list[str] = []
        self.error, self.pool_error = error, pool_error

    def modules(self) -> dict[str, Any]:
        rows = SimpleNamespace(dict_row="rows as dicts")
        psycopg = SimpleNamespace(Error=self.Error, connect=self._connect, rows=rows, __path__=[])
        savers = SimpleNamespace(PostgresSaver=self._saver(), __path__=[])
        return {
            "psycopg": psycopg,
            "psycopg.rows": rows,
            "psycopg_pool": SimpleNamespace(ConnectionPool=self._pool()),
            "langgraph.checkpoint.postgres": savers,
        }

    def _connect(self, url: str, **options: Any) -> Any:
        assert (url, options["autocommit"], options["row_factory"]) == (URL, True, "rows as dicts")
        if self.error:
            raise self.Error(self.error)
        driver = self

        class Connection:
            tries = 0

            def __enter__(self):
                return self

            def __exit__(self, *_):
                driver.made.append("connection closed")

            def execute(self, query: str, values: tuple[int, ...]):
                assert "pg_try_advisory_lock" in query
                Connection.tries += 1
                driver.made.append("lock")
                return SimpleNamespace(fetchone=lambda: {"held": Connection.tries > 1})

        return Connection()

    def _saver(self) -> Any:
        driver = self

        class Saver(InMemorySaver):
            def __init__(self, conn: Any) -> None:
                super().__init__()

            def setup(self) -> None:
                driver.made.append("tables")

        return Saver

    def _pool(self) -> Any:
        driver = self

        class Pool:
            check_connection = "check"

            def __init__(self, url: str, **options: Any) -> None:
                assert (url, options["open"], options["check"]) == (URL, False, "check")

            def open(self, **_: Any) -> None:
                if driver.pool_error:
                    raise driver.Error(driver.pool_error)

            def close(self) -> None:
                driver.made.append("pool closed")

        return Pool


def with_driver(monkeypatch, driver: Driver) -> None:
    for name, module in driver.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("memcycle.checkpoints.time.sleep", lambda _: driver.made.append("waited"))


def test_a_server_is_prepared_by_one_process_at_a_time_and_its_pool_closed(monkeypatch):
    driver = Driver()
    with_driver(monkeypatch, driver)
    with checkpointer(URL):
        assert driver.made == ["lock", "waited", "lock", "tables", "connection closed"]
    assert driver.made[-1] == "pool closed"


@pytest.mark.parametrize("where", ["error", "pool_error"])
def test_a_failed_connection_is_told_without_the_password(where, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    words = f'server at "db.example" failed: {SECRET} and hunter2%21 in {URL}'
    with_driver(monkeypatch, Driver(**{where: words}))
    with pytest.raises(
        StoreError, match=r"cannot keep checkpoints in postgresql://ann@db\.example:5433/runs"
    ) as caught:
        checkpointer(URL).__enter__()
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "hunter2" not in told
    assert "*** and ***" in told
