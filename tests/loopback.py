"""An OpenAI-compatible chat completions server on the loopback, scriptable by role.

By default it answers every role as memcycle's rules would, from the prompt alone: it reads the marked
turns and memories back out of the text (`tests.loopback_roles`). So whole runs over HTTP can be compared with
rules runs. In a process of its own, for benchmarks:

    python -m tests.loopback --latency-ms 300

`GET /v1/served` tells how many replies it gave, and how long they took. It serves until it is ended.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.loopback_roles import cases_of, role_of, rules_reply

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


@dataclass
class Reply:
    """One answer of the server.

    Attributes:
        text: Content of the message; None sends null.
        finish: finish_reason.
        status: HTTP status; other than 200 sends `error` as the error message.
        headers: Extra headers.
        raw: Bytes sent instead of a completion. content_type: theirs.
        arguments: Sent as a tool call's argument string instead of content.
        refusal: Sent as the refusal. choices: False sends an empty list.
        content: Sent as is instead of text (content parts).
        cached: Tokens of the prompt that are said to come from the provider's cache.
        hang: Seconds to wait before anything is sent (ended early when the server closes).
    """

    text: str | None = ""
    finish: str = "stop"
    status: int = 200
    error: str = "scripted error"
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json"
    arguments: str | None = None
    refusal: str | None = None
    choices: bool = True
    content: Any = None
    cached: int = 0
    hang: float = 0


Script = str | Reply | dict[str, Any] | Callable[[Body], Any]


def fenced(answer: Any) -> str:
    """JSON in a fence, with prose around."""
    return f"Sure, here you go:\n```json\n{json.dumps(answer)}\n```\nAnything else?"


def prose(answer: Any) -> str:
    """JSON in the middle of a sentence that has brackets of its own."""
    return f"I looked at it [carefully] and {{think}} that {json.dumps(answer)} is right (see [1])."


def trailing_comma(answer: Any) -> str:
    """JSON with commas before its closing brackets."""
    return re.sub(r"(?<=[\]}\"0-9el])(?=[}\]])", ",", json.dumps(answer, indent=1).replace("\n", ""))


def thinking(answer: Any, decoy: Any) -> str:
    """A reasoning block that holds JSON of its own, then the answer."""
    return f"<think>maybe {json.dumps(decoy)}? no</think>\n{json.dumps(answer)}"


def lost_opening(answer: Any, decoy: Any) -> str:
    """The same with the opening mark lost."""
    return f"maybe {json.dumps(decoy)}</think>{json.dumps(answer)}"


def cut(answer: Any, keep: int) -> Reply:
    """The first `keep` characters of the JSON, ended by the token limit."""
    return Reply(json.dumps(answer)[:keep], finish="length")


def rate_limited(milliseconds: int = 1) -> Reply:
    """429 that says when to come again."""
    headers = {"retry-after-ms": str(milliseconds), "retry-after": str(milliseconds / 1000)}
    return Reply(status=429, error="rate limit reached", headers=headers)


def html() -> Reply:
    """A web page where a completion should be."""
    return Reply(raw=b"<html><body>Welcome</body></html>", content_type="text/html")


class ModelServer:
    """The running server.

    Attributes:
        requests: Bodies of all requests, in order of arrival; each with `role` and `headers` added.
        latency: Seconds from reading a request to the reply, at least.
        served: What it did so far.
        formats: Ways of asking it accepts: `json_schema`, `tools`. Others get a 400 that names them.
    """

    def __init__(self, *, latency: float = 0.0, keep: bool = True) -> None:
        """`keep=False` keeps no requests, for runs of many."""
        self.requests: list[Body] = []
        self.latency = latency
        self.served = Served(0, 0.0)
        self._keep = keep
        self.formats = {"json_schema", "tools"}
        self._scripts: dict[str, list[Script]] = defaultdict(list)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = QuietServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def script(self, role: str, *replies: Script) -> None:
        """Adds answers for a role, each used once, in order; after them it answers by the rules.

        An answer is a text, a `Reply`, a dict (sent as JSON), or a function of the request body giving one.
        """
        with self._lock:
            self._scripts[role].extend(replies)

    def of(self, role: str) -> list[Body]:
        """Requests made for a role."""
        return [request for request in self.requests if request["role"] == role]

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def close(self) -> None:
        """Ends what hangs, and the server."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, body: Body) -> Reply:
        role = body["role"]
        refused = self._refused_format(body)
        if refused:
            return Reply(status=400, error=f"{refused} is not supported by this server")
        cases = cases_of(body)
        if cases and self._scripts[role]:
            replies = [self._made(role, one) for one in cases]
            made: Any = {"cases": [{"n": n, "reply": reply} for n, reply in enumerate(replies, 1)]}
            made = next((reply for reply in replies if isinstance(reply, str | Reply)), made)
        else:
            made = self._made(role, body)
        if isinstance(made, Reply):
            return made
        if isinstance(made, str):
            return Reply(made)
        text = json.dumps(made, ensure_ascii=False)
        return Reply(arguments=text) if body.get("tools") else Reply(text)

    def _made(self, role: str, body: Body) -> Any:
        with self._lock:
            script = self._scripts[role].pop(0) if self._scripts[role] else rules_reply
        return script(body) if callable(script) else script

    def _refused_format(self, body: Body) -> str | None:
        if "response_format" in body and "json_schema" not in self.formats:
            return "response_format json_schema"
        return "tool calling" if "tools" in body and "tools" not in self.formats else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._send(Reply(raw=json.dumps(server.served._asdict()).encode()), {})

            def do_POST(self) -> None:
                started = time.perf_counter()
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                body["role"] = role_of(body)
                body["headers"] = dict(self.headers)
                if server._keep:
                    with server._lock:
                        server.requests.append(body)
                reply = server._answer(body)
                time.sleep(max(0.0, server.latency - (time.perf_counter() - started)))
                with server._lock:
                    calls, seconds = server.served
                    server.served = Served(calls + 1, seconds + time.perf_counter() - started)
                if reply.hang and server._closing.wait(reply.hang):
                    self.close_connection = True
                    return
                self._send(reply, body)

            def _send(self, reply: Reply, body: Body) -> None:
                data = reply.raw if reply.raw is not None else json.dumps(_payload(reply, body)).encode()
                self.send_response(reply.status)
                for key, value in {"content-type": reply.content_type, **reply.headers}.items():
                    self.send_header(key, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler


def _payload(reply: Reply, body: Body) -> Body:
    if reply.status != 200:
        return {"error": {"message": reply.error, "type": "invalid_request_error"}}
    message: Body = {"content": reply.text if reply.content is None else reply.content}
    if reply.refusal is not None:
        message = {"content": None, "refusal": reply.refusal}
    if reply.arguments is not None:
        function = {"name": body["role"], "arguments": reply.arguments}
        message = {
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    said = message.get("content") or "".join(
        call["function"]["arguments"] for call in message.get("tool_calls") or []
    )
    # Tokens are guessed from the length of what was asked and said.
    read, written = len(json.dumps(body["messages"])) // 4, max(1, len(said) // 4)
    usage: Body = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if reply.cached:
        usage["prompt_tokens_details"] = {"cached_tokens": reply.cached}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reply.finish}
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice] if reply.choices else [],
        "usage": usage,
    }


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A server for the length of a `with` block."""
    server = ModelServer()
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def served(latency: float) -> Iterator[str]:
    """The server in a process of its own, for the length of a `with` block: its base URL."""
    command = [sys.executable, "-m", "tests.loopback", "--latency-ms", str(1000 * latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not (url := process.stdout.readline().strip()):
                raise RuntimeError("the loopback server did not start; run the command alone to see why")
            yield url
        finally:
            process.terminate()


def served_so_far(url: str) -> Served:
    """What the server at this base URL did so far."""
    with urllib.request.urlopen(f"{url}/served", timeout=10) as reply:
        return Served(**json.load(reply))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--latency-ms", type=float, default=300, help="from reading a request to the reply")
    own = ModelServer(latency=parser.parse_args().latency_ms / 1000, keep=False)
    own.start()
    sys.stdout.write(f"{own.url}\n")
    sys.stdout.flush()
    threading.Event().wait()
