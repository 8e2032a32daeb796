"""One message of a conversation."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

MessageType = Literal["human", "ai", "tool", "system"]


def turn_id(session: str, position: int) -> str:
    """`D{session}:{turn}`, the id of the turn at a 1-based position."""
    return f"D{session}:{position}"


class Turn(BaseModel):
    """A message as it was said, the smallest thing memory rests on.

    Attributes:
        id: `D{session}:{turn}`, unique in its base scope.
        session: The session it belongs to.
        position: 1-based place in the session.
        speaker: Name of who speaks.
        role: Message type. In a chat of two people both are human.
        text: What was said; an image caption stands in it as `[image: ...]`.
        time: When it was said, timezone-aware.
        message_id: The id its source gave it, when it gave one; the identity for ingesting it once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    session: str
    position: int
    speaker: str
    role: MessageType = "human"
    text: str
    time: AwareDatetime
    message_id: str | None = None

    @property
    def is_evidence(self) -> bool:
        """Whether a fact about a person may rest on it: only what a person said."""
        return self.role == "human"
