"""A real `chroma run` on the loopback, for tests."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chroma_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A `chroma run` of its own: its address and its process."""
    port = free_port()
    command = [str(Path(sys.executable).parent / "chroma"), "run", "--path", str(folder)]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        ) as process,
    ):
        try:
            wait_for_port(port, process, folder / "server.log")
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.kill()


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"chroma run does not answer: {log.read_text()}")
