"""Word lists written as people read them."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set: long lists stay readable as plain lines."""
    return frozenset(text.split())
