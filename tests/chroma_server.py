"""`chroma run` on the loopback, in a process of its own: for the soak, and for tests."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from memcycle.core.errors import StoreError

START_SECONDS = 60.0
LOOK_SECONDS = 0.05


class Server(NamedTuple):
    """A server that runs: where it is reached, and its process."""

    url: str
    process: "subprocess.Popen[bytes]"


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chroma_server(folder: Path, *, port: int | None = None) -> Iterator[Server]:
    """A server of its own, for the length of a `with` block.

    Args:
        folder: Where its data and its log are; made if it is not there.
        port: By default a free one.

    Raises:
        StoreError: it does not start; quotes its log.
    """
    folder.mkdir(exist_ok=True)
    port, log = port or free_port(), folder / "server.log"
    command = [str(Path(sys.executable).parent / "chroma"), "run", "--path", str(folder)]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdout=out,
            stderr=out,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        ) as process,
    ):
        try:
            _await_port(port, process, log)
            yield Server(f"http://127.0.0.1:{port}", process)
        finally:
            process.kill()


def _await_port(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(LOOK_SECONDS)
    raise StoreError(f"chroma run does not answer: {log.read_text()[-500:]}")
