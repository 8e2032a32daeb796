"""Whether facts hold what was said: the keywords of each turn against the facts read from a chunk."""

import re
from collections.abc import Iterable, Sequence

from memcycle.core.language.tokens import content_stems
from memcycle.core.turn import Turn

LEAST_KEYWORDS = 4
"""Keywords below which a turn says too little to be missed ("Sounds great!")."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_TAG = re.compile(r"\[image: [^\]]*\]")


def uncovered(turns: Sequence[Turn], facts: Iterable[str], share: float) -> list[Turn]:
    """The turns of whose keywords the facts hold less than a share (EvolveMem 3.1, coverage).

    Only what a person said can become a fact, and only a turn that says something can be missed. Names of
    speakers are no keywords: facts hold them instead of pronouns.

    Args:
        facts: Texts of all facts of the chunk.
        share: 0 to 1; at 0 nothing is uncovered.
    """
    held = {stem for text in facts for stem in content_stems(text)}
    names = {stem for turn in turns for stem in content_stems(turn.speaker)}
    return [
        turn
        for turn in turns
        if turn.is_evidence
        and len(words := keywords(turn) - names) >= LEAST_KEYWORDS
        and len(words & held) < share * len(words)
    ]


def keywords(turn: Turn) -> set[str]:
    """Stems of the words of a turn that carry content."""
    return set(content_stems(_TAG.sub(" ", turn.text)))


def missing_words(turn: Turn, facts: Iterable[str]) -> list[str]:
    """Words of a turn that carry content and stand in no fact, as said, in order."""
    held = {stem for text in facts for stem in content_stems(text)}
    words = _WORD.findall(_TAG.sub(" ", turn.text))
    return list(dict.fromkeys(word for word in words if set(content_stems(word)) - held))
