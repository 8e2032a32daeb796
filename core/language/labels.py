"""Names and keywords that the words of a statement bear out."""

from collections.abc import Iterable

from memcycle.core.language.tokens import distinct_stems, stems

NAMES = ("entities", "persons", "locations", "keywords")
"""The labels of an entry that are taken from words."""


def borne_out(labels: Iterable[str], *said: str) -> tuple[str, ...]:
    """The labels whose words all stand in what is said, in any inflection; each once.

    A label taken from elsewhere, such as another turn or the fact that this one replaces, would outlive the
    words that it comes from when those are forgotten, and be found under a name that it does not speak of.
    """
    held = [distinct_stems(text) for text in said]

    def stands(label: str) -> bool:
        return all(any(stem in words for words in held) for stem in stems(label) or [label])

    return tuple(dict.fromkeys(label for label in labels if stands(label)))
