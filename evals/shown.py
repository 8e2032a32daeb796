"""Evidence as memcycle shows it to whoever answers, and what it costs."""

from collections.abc import Sequence

from memcycle.core.entry import Entry
from memcycle.core.language.token_count import token_counter
from memcycle.core.theta import Theta
from memcycle.graph.assembly import Limits, Piece, assemble
from memcycle.stores.request import Hit


def tokens_of(entry: Entry) -> int:
    """Tokens of an entry's text, which is what a budget counts."""
    return token_counter().count(entry.text)


def assembled(hits: Sequence[Hit], theta: Theta, *, k: int, token_budget: int) -> list[Entry]:
    """What memcycle shows of what it found, best first, within k entries and a budget of tokens."""
    pieces = [Piece(hit.entry, hit.score) for hit in hits]
    limits = Limits(k=k, token_budget=token_budget, turns_first=theta.turns_first)
    return [piece.entry for piece in assemble(pieces, limits, token_counter().count)]
