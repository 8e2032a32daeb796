"""How the rules phrase what they found, in each style; always in the words of the evidence."""

import re
from collections.abc import Callable

from memcycle.agents.answerer import Style
from memcycle.agents.rules.grounding import Asked, Passage, stem_set
from memcycle.core.language.questions import choices

_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_NUMBER = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_JOINED = re.compile(r"\s*(?:,\s*and|;|,)\s+")
_POLAR = re.compile(r"(yes|no)\b", re.IGNORECASE)


def styled(style: Style, text: str, asked: Asked, best: Passage) -> str:
    """An answer as a style wants it.

    Args:
        text: The answer as it was found.
        best: The passage it rests on most.
    """
    return _STYLES[style](text, asked, best) if style in _STYLES else text


def _sentence(text: str, _: Asked, best: Passage) -> str:
    """The sentence the answer stands in, with who said it; the answer before it where it is another."""
    quoted = _said(best)
    return quoted if text in best.text else f"{text} ({quoted})"


def _explained(text: str, _: Asked, best: Passage) -> str:
    return f"{text}, since {_said(best)}" if text != best.text else _said(best)


def _verified(text: str, _: Asked, best: Passage) -> str:
    return f"{text} ({', '.join(_source(best)) or 'said in memory'})"


def _said(best: Passage) -> str:
    speaker = best.memory.speaker if best.memory.granularity == "raw" else None
    return f"{speaker}: {best.text}" if speaker else best.text


def _source(best: Passage) -> list[str]:
    time = best.memory.time
    return [part for part in (best.memory.speaker, f"{time:%Y-%m-%d}" if time else None) if part]


def _strict(text: str, _asked: Asked, _best: Passage) -> str:
    digits = _NUMBER.sub(lambda found: str(_NUMBERS.index(found.group().lower())), text)
    return _JOINED.sub(", ", digits).strip(" .!?")


def _likely(text: str, _: Asked, best: Passage) -> str:
    polar = _POLAR.match(text)
    if polar is None:
        return f"Likely {text}" if text != best.text else f"Likely: {_said(best)}"
    rest = text[polar.end() :].strip(" ,.:;")
    return f"Likely {polar.group().lower()}" + (f", {rest}" if rest else f", since {_said(best)}")


def _alternative(text: str, asked: Asked, _: Passage) -> str:
    said = stem_set(text)
    named = [choice for choice in choices(asked.question) if not said.isdisjoint(stem_set(choice))]
    return named[0] if len(named) == 1 else text


_STYLES: dict[Style, Callable[[str, Asked, Passage], str]] = {
    "sentence": _sentence,
    "explanatory": _explained,
    "verifying": _verified,
    "strict": _strict,
    "inferential": _likely,
    "choice": _alternative,
}
"""Those that say more, or other, than the words that were found."""
