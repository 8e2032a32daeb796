"""What errors of a provider mean: which are worth another try, and each in one line for a person."""

import httpx
import openai
import pytest

from memcycle.agents.provider_errors import explain_model_error, may_pass
from memcycle.agents.roles import Roles
from memcycle.core.errors import ModelUnavailable, RoleFailed, is_too_long
from tests.agents.conftest import chunk
from tests.loopback import Reply

REQUEST = httpx.Request("POST", "http://model.test/v1")


def status(code, message="no"):
    response = httpx.Response(code, request=REQUEST)
    return openai.APIStatusError(message, response=response, body=None)


def test_what_may_pass():
    for error, passes in [
        (RoleFailed("constructor", "no JSON"), True),
        (openai.APIConnectionError(request=REQUEST), True),
        (openai.APITimeoutError(request=REQUEST), True),
        (TimeoutError(), True),
        (status(429), True),
        (status(503), True),
        (status(400), False),
        (status(401), False),
        (ValueError("x"), False),
    ]:
        assert may_pass(error) is passes, error


def test_what_was_too_long():
    for error, long in [
        (status(400, "This model's maximum context length is 8192 tokens."), True),
        (status(400, "prompt is too long: 210000 tokens"), True),
        (status(413), True),
        (status(400, "invalid role"), False),
        (status(500, "context length"), False),
        (status(422, "inputs tokens + max_new_tokens must be <= 4096: input is too long"), True),
        (status(400, "the request exceeds the available context size, try increasing it"), True),
        (status(400, "max_tokens is too large: 90000. This model supports at most 16384 tokens"), False),
        (ValueError("Requested tokens (5000) exceed context window of 512"), True),
        (ValueError("no such tool"), False),
    ]:
        assert is_too_long(error) is long, error


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(status=401, error="bad key"), "OPENAI_API_KEY"),
        (Reply(status=403, error="no"), "does not allow"),
        (Reply(status=404, error="no model"), "model name"),
        (Reply(status=429, error="slow"), "rate limit"),
        (Reply(status=500, error="boom"), "5xx"),
        (Reply(status=400, error="image too large"), "image too large"),
        (Reply(hang=30), "in time"),
        (Reply(raw=b"<html>", content_type="text/html"), "base URL"),
    ],
)
def test_provider_errors_in_one_line(server, reply, says):
    server.script("constructor", reply)
    roles = Roles.from_model("openai:small", base_url=server.url, max_retries=0, timeout=0.5)
    with pytest.raises((openai.APIError, ModelUnavailable)) as raised:
        roles.constructor.invoke(chunk("Hello."))
    explained = explain_model_error(raised.value)
    assert explained is not None
    assert says in str(explained)
    assert "\n" not in str(explained)


def test_an_unreachable_server_in_one_line():
    error = openai.APIConnectionError(request=httpx.Request("POST", "http://nowhere.test/v1"))
    assert "nowhere.test cannot be reached" in str(explain_model_error(error))
    assert explain_model_error(ValueError("x")) is None
