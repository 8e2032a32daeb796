"""Words of one concept folded together: who moved says where they live."""

from collections.abc import Iterable

from memcycle.core.language.tokens import stems

_WORDS = {
    "live": "live lives moved relocated resides residence",
    "work": "work works job occupation profession career teaches employed",
    "marri": "married marriage spouse husband wife wedding engaged divorced single relationship",
}
_CONCEPTS = {stem: concept for concept, words in _WORDS.items() for stem in stems(words)}


def by_concept(words: Iterable[str]) -> frozenset[str]:
    """Stems with those of one concept made the same."""
    return frozenset(_CONCEPTS.get(word, word) for word in words)
