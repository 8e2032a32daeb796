"""What went wrong when a model was asked: whether asking again may help, whether it was shown too much."""

import re

from memcycle.core.errors import RoleFailed

_PASSING = frozenset({408, 409, 425, 429})
_SERVER = 500
_TOO_LARGE = 413
_BAD_REQUEST = 400
_LENGTH = re.compile(
    r"context[ _](?:length|window)|maximum context|too (?:long|large|many tokens)|prompt is too long|"
    r"max(?:imum)?[ _]tokens|token limit",
    re.IGNORECASE,
)
_CONNECTION = re.compile(r"(?:Connection|Connect|Timeout|Read|Write|Protocol)(?:Error|Timeout)?$")


def may_pass(error: Exception) -> bool:
    """Whether the same question may be answered a little later.

    True for a reply that fitted no schema, for a server that was busy, broken or out of reach; not for a
    refused key or a wrong request. Told by status and kind, as all providers' clients have them.
    """
    if isinstance(error, RoleFailed | TimeoutError | ConnectionError):
        return True
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in _PASSING or status >= _SERVER
    return bool(_CONNECTION.search(type(error).__name__))


def is_too_long(error: Exception) -> bool:
    """Whether a model refused since it was shown more than it can take."""
    status = getattr(error, "status_code", None)
    return status == _TOO_LARGE or (status == _BAD_REQUEST and _LENGTH.search(str(error)) is not None)
