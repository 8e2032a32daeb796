"""Which failures of a model are worth another try."""

import httpx
import openai
import pytest

from memcycle.agents.provider_errors import is_too_long, may_pass
from memcycle.core.errors import RoleFailed

REQUEST = httpx.Request("POST", "http://model.test/v1")


def status(code, message="no"):
    response = httpx.Response(code, request=REQUEST)
    return openai.APIStatusError(message, response=response, body=None)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (RoleFailed("constructor", "no JSON"), True),
        (openai.APIConnectionError(request=REQUEST), True),
        (openai.APITimeoutError(request=REQUEST), True),
        (TimeoutError(), True),
        (status(429), True),
        (status(503), True),
        (status(400), False),
        (status(401), False),
        (ValueError("x"), False),
    ],
)
def test_what_may_pass(error, passes):
    assert may_pass(error) is passes


@pytest.mark.parametrize(
    ("error", "long"),
    [
        (status(400, "This model's maximum context length is 8192 tokens."), True),
        (status(400, "prompt is too long: 210000 tokens"), True),
        (status(413), True),
        (status(400, "invalid role"), False),
        (status(500, "context length"), False),
        (ValueError("context length"), False),
    ],
)
def test_what_was_too_long(error, long):
    assert is_too_long(error) is long
