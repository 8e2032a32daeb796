"""What keeps memory in order when a session ends (EvolveMem 3.1, AMA 3.4). No model is asked."""

from collections.abc import Sequence
from typing import NamedTuple

from memcycle.core.scope import Scope
from memcycle.graph.environment import Env


class Maintained(NamedTuple):
    """What was done, as counts.

    Attributes:
        merged: Facts united with one that says the same or more. superseded: working summaries that a later
            one of the same session and topic replaced.
    """

    merged: int
    reinforced: int
    expired: int
    superseded: int


def maintain(env: Env, scope: Scope, turns: Sequence[str]) -> Maintained:
    """Unites what the facts of these turns repeat, renews summaries, reinforces and expires; once or again.

    Args:
        scope: With the session that ends: its staged entries take part.
        turns: Ids of the turns whose facts are new.
    """
    done = env.bank().maintain(scope, turns)
    return Maintained(
        merged=len(done.united),
        reinforced=done.reinforced,
        expired=len(done.expired),
        superseded=len(done.renewed),
    )
