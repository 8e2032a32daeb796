"""Whose memory: user, workspace, session."""

import json
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

MAX_NAME = 512

Visibility = Literal["user", "session"]
"""Where what a session says is found while it goes on: in all sessions of its user, or in it alone."""


class Data(BaseModel):
    """Plain data: it does not change, and has no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scope(Data):
    """Names the owner of a read or a write.

    The base scope drops the session: all sessions of one user and workspace are searched together.
    Scopes are compared whole, never by prefix.
    """

    user: str
    workspace: str = "default"
    session: str | None = None

    @field_validator("user", "workspace", "session", mode="before")
    @classmethod
    def _a_name(cls, value: object, info: ValidationInfo) -> object:
        name = info.field_name
        if value is None and name == "session":
            return value
        if not isinstance(value, str):
            raise ValueError(  # noqa: TRY004 - pydantic reports ValueError
                f"{name} must be text, got {type(value).__name__}; every read and write names a {name}"
            )
        if not value.strip() or "\0" in value or len(value) > MAX_NAME:
            raise ValueError(f"{name} must be 1 to {MAX_NAME} characters, not blank and without NUL")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            at = error.start + 1
            raise ValueError(
                f"{name} must be valid Unicode; its character {at} is a lone surrogate"
            ) from None
        return value

    @property
    def base(self) -> "Scope":
        """The same user and workspace, all sessions."""
        return self if self.session is None else self.model_copy(update={"session": None})

    @property
    def key(self) -> str:
        """JSON array of user and workspace: no joined string of another scope can equal it."""
        return _key(self.user, self.workspace)

    def within(self, session: str) -> "Scope":
        """This scope narrowed to one session (validated)."""
        return Scope(user=self.user, workspace=self.workspace, session=session)


@lru_cache(maxsize=4096)
def _key(user: str, workspace: str) -> str:
    # Cached: every row that is written or looked for names it.
    return json.dumps([user, workspace], ensure_ascii=False)
