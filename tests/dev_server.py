"""The real `langgraph dev` on a free port of this machine, without a key and a network."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.chroma_server import free_port

NOWHERE = "http://127.0.0.1:9"
PATIENCE = 300.0
"""Seconds until a server that does not answer is given up."""


@contextmanager
def served(config: Path, log: Path) -> Iterator[SyncLangGraphClient]:
    """A client of the server of a `langgraph.json`.

    It runs in the folder of the log, where it leaves the memory's home too, as `memory`.
    """
    port, folder = free_port(), log.parent
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--config", str(config)]
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=folder, env=_environment(folder), stdout=out, stderr=out) as process,
    ):
        try:
            _wait_for(url, process, log)
            with get_sync_client(url=url, api_key=None, timeout=PATIENCE) as client:
                yield client
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _environment(home: Path) -> dict[str, str]:
    """No key; what would leave the machine meets a closed port."""
    return {
        "PATH": str(Path(sys.executable).parent),
        "HOME": str(home),
        "MEMCYCLE_HOME": str(home / "memory"),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1",
    }


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/ok", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise AssertionError(log.read_text())
