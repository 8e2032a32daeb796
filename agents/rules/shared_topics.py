"""What a session speaks of that earlier memories speak of too: the ground of cross-session probes."""

from collections import Counter
from collections.abc import Sequence

from memcycle.agents.rules.probe_statements import Told, base_set
from memcycle.agents.views import MemoryView
from memcycle.core.language.tokens import content_stems

SHARE, LEAST_RARE, MOST_HERE, SHORTEST = 0.25, 2, 4, 4
"""A topic is rare when at most this share of the memories (or two) and four statements here speak of it."""


class Shared:
    """Topics shared between a session's statements and earlier memories.

    Args:
        memories: What earlier sessions left.
        statements: Those of this session.
        common: Stems that are no topic: names of the speakers and light words.
    """

    def __init__(
        self, memories: Sequence[MemoryView], statements: Sequence[Told], common: frozenset[str]
    ) -> None:
        self._held = [base_set(memory.text) for memory in memories]
        earlier = Counter(stem for held in self._held for stem in held)
        here = Counter(stem for told in statements for stem in told.stems)
        most = max(LEAST_RARE, SHARE * len(memories))
        self._rare = frozenset(
            stem
            for stem, count in earlier.items()
            if count <= most and 0 < here[stem] <= MOST_HERE and stem not in common and len(stem) >= SHORTEST
        )

    def topics(self, told: Told) -> frozenset[str]:
        """Stems of the rare things a statement shares with memories."""
        return told.stems & self._rare

    def adds(self, answer: str, topics: frozenset[str]) -> bool:
        """Whether an answer says more than every memory of these topics."""
        content = frozenset(content_stems(answer))
        return all(len(content - held) > 1 for held in self._held if held & topics)

    def known(self, stems: frozenset[str]) -> bool:
        """Whether one memory holds all of these stems, so that a question with them could mean it."""
        return any(stems <= held for held in self._held)
