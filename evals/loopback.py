"""An OpenAI-style server on the loopback that answers each role as the rules would, after a set time.

    python -m memcycle.evals.loopback --latency-ms 300

What a role is asked is read back out of the prompt (see `memcycle.evals.loopback_roles`), so that a client
goes through all that it does with a real model. Making a reply counts towards the latency, as with a real
one. `GET /v1/served` tells how many replies it gave, and how long they took. It serves until it is ended.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, NamedTuple

import typer

from memcycle.evals.loopback_roles import role_of, rules_reply

Body = dict[str, Any]
MODEL = "openai:loopback"


class Served(NamedTuple):
    """Replies given so far, and the seconds they took together, from reading the request to sending."""

    calls: int
    seconds: float


class QuietServer(ThreadingHTTPServer):
    """An HTTP server for many clients at once that come and go."""

    daemon_threads = True
    request_queue_size = 128  # many tasks connect at once; the default of 5 resets them

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no fault of the server; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def completion(body: Body, message: Body, *, finish: str = "stop", choices: bool = True) -> Body:
    """The payload of a chat completion; tokens are guessed from the length of what was asked and said.

    Args:
        body: The request.
        message: Of the assistant: `content`, `refusal` or `tool_calls`.
        finish: finish_reason. choices: False leaves the message out.
    """
    said = message.get("content") or "".join(
        call["function"]["arguments"] for call in message.get("tool_calls") or []
    )
    read, written = len(json.dumps(body["messages"])) // 4, max(1, len(said) // 4)
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice] if choices else [],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def handler(latency: float) -> type[BaseHTTPRequestHandler]:
    """Answers by the rules, `latency` seconds after a request was read."""
    counting, given = threading.Lock(), [0, 0.0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            with counting:
                calls, seconds = given
            self._send({"calls": calls, "seconds": seconds})

        def do_POST(self) -> None:
            started = time.perf_counter()
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body["role"] = role_of(body)
            reply = json.dumps(rules_reply(body), ensure_ascii=False)
            time.sleep(max(0.0, latency - (time.perf_counter() - started)))
            with counting:
                given[0] += 1
                given[1] += time.perf_counter() - started
            self._send(completion(body, {"content": reply}))

        def _send(self, payload: Body) -> None:
            data = json.dumps(payload).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


@contextmanager
def served(latency: float) -> Iterator[str]:
    """The server in a process of its own, for the length of a `with` block: its base URL."""
    command = [sys.executable, "-m", "memcycle.evals.loopback", "--latency-ms", str(1000 * latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ours
        try:
            if process.stdout is None or not (url := process.stdout.readline().strip()):
                raise RuntimeError("the loopback server did not start; run the command alone to see why")
            yield url
        finally:
            process.terminate()


def served_so_far(url: str) -> Served:
    """What the server at this base URL did so far."""
    with urllib.request.urlopen(f"{url}/served", timeout=10) as reply:  # noqa: S310 - the loopback
        return Served(**json.load(reply))


def main(
    latency_ms: Annotated[float, typer.Option(min=0, help="From reading a request to the reply.")] = 300,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any free one.")] = 0,
) -> None:
    """Serves until it is ended; prints its base URL."""
    server = QuietServer(("127.0.0.1", port), handler(latency_ms / 1000))
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/v1\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    typer.run(main)
