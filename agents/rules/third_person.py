"""Rewriting what a person says into statements about that person."""

import re

from memcycle.agents.rules.verbs import BASE, is_adverb, is_participle, singular
from memcycle.core.language.tokens import word_set

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|\W+")
_CLITICS = {"m": "is", "ve": "has", "ll": "will", "re": "are", "s": "is"}
_PLURAL_CLITICS = {"ve": "have", "ll": "will", "re": "are"}
_SLANG = (
    (re.compile(r"\bgonna\b", re.IGNORECASE), "going to"),
    (re.compile(r"\bwanna\b", re.IGNORECASE), "want to"),
    (re.compile(r"\b(?:'ve |have |has )?gotta\b", re.IGNORECASE), "have to"),
    (re.compile(r"\b[Ii]m\b"), "I'm"),
    (re.compile(r"\b[Ii]ve\b"), "I've"),
)
# Only after these is "you" a subject; elsewhere ("lets you move") it is an object.
_SUBJECT_AFTER = word_set(
    """
    and but if when that because so as hope think know guess how what where why who while before after
    since until unless though bet believe sure glad happy wish believe whether or where
    """
)
_NO_VERB = word_set(
    """
    and or but to in on at for of with the a an who that because so if when as from about too there here
    more much well then into by up out back than how what could would myself this it alone today
    """
)
_JOINED = re.compile(
    r"(?:^|[.,;:!?]\s*|\b(?:that|when|if|because|but|so)\s+)"
    r"(?:[A-Z][\w’']+|(?:[Mm]y|[Oo]ur|[Tt]he|[Aa]|[A-Z]\w*['’]s?)\s+(?:\w+\s+)?\w+)\s+and\s*$"
)


_LOOK_BACK = 16
"""Words, and what stands between them: more than "joined" subjects and names have."""


def possessive(name: str) -> str:
    """A name in the possessive."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


class _Walk:
    """One pass over the words of a sentence; remembers whose verb comes next."""

    def __init__(self, speaker: str, listener: str | None) -> None:
        self.speaker, self.listener = speaker, listener
        self.out: list[str] = []
        self.agree = False  # the next verb has a singular subject that was "I" or "you"
        self.present = False  # that subject's last verb was put into the third person
        self.group = False  # "we" was named already
        self.last = ""

    def word(self, word: str) -> str:
        folded = word.lower().replace("’", "'")
        named = self._named(word, folded)
        if named is not None:
            return named
        simple = self._simple(folded)
        if simple is not None:
            self.agree = False
            return simple
        if self.agree:
            return self._verb(word)
        # "I love cats and hate dogs": the second verb agrees as well.
        again = self.present and self.last in {"and", "but", "or"} and folded in BASE
        return singular(word) if again else word

    def _before(self) -> str:
        """What was written last: no whole text for each of its words."""
        return "".join(self.out[-_LOOK_BACK:])

    def _named(self, word: str, folded: str) -> str | None:
        """The name that stands for a pronoun in the place of a subject."""
        base, _, clitic = folded.partition("'")
        if base == "i" and not (word == "i" and self.last == ""):
            return self._subject(self.speaker, clitic)
        if base == "we":
            return self._we(clitic)
        return self._you(clitic) if base == "you" and self.listener is not None else None

    def _simple(self, folded: str) -> str | None:
        """What stands for another form of "I", "we" or "you"."""
        own = possessive(self.speaker)
        words = {"me": self.speaker, "my": own, "mine": own, "myself": "themself", "am": "is"}
        words["us"] = "them" if self.group else f"{self.speaker} and others"
        words |= {"our": "their" if self.group else own, "ours": "theirs", "ourselves": "themselves"}
        if self.listener is not None:
            theirs = possessive(self.listener)
            words |= {"your": theirs, "yours": theirs, "yourself": "themself"}
        return words.get(folded)

    def _subject(self, name: str, clitic: str) -> str:
        joined = _JOINED.search(self._before()) is not None
        if clitic == "d":
            self.agree = False
            return f"{name} 'd"
        if clitic in _CLITICS:
            self.agree, self.present = False, True
            verb = (_PLURAL_CLITICS | {"m": "are"}).get(clitic, "are") if joined else _CLITICS[clitic]
            return f"{name} {'is' if clitic == 're' and not joined else verb}"
        self.agree = not joined
        return name

    def _we(self, clitic: str) -> str:
        name = "they" if self.group else f"{self.speaker} and others"
        self.group, self.agree, self.present = True, False, False
        if clitic == "d":
            return f"{name} 'd"
        return f"{name} {_PLURAL_CLITICS[clitic]}" if clitic in _PLURAL_CLITICS else name

    def _you(self, clitic: str) -> str:
        name = str(self.listener)
        if clitic or (
            self.last in _SUBJECT_AFTER
            or self.last == ""
            or (self.out[-1:] and self.out[-1].strip() in {",", "."})
        ):
            return self._subject(name, clitic)
        self.agree = False
        return name

    def _verb(self, word: str) -> str:
        if is_adverb(word) or word.lower() in _NO_LONGER:
            return word
        self.agree = False
        if (
            self.out
            and self._before().rstrip().endswith((self.speaker, str(self.listener)))
            and not word.isascii()
        ):
            return word
        changed = singular(word) if _may_be_verb(word) else word
        self.present = changed != word
        return changed


_NO_LONGER = {"no", "longer"}
"""Adverb of two words between subject and verb."""


def _may_be_verb(word: str) -> bool:
    return word.lower() not in _NO_VERB


def third_person(text: str, speaker: str, listener: str | None = None) -> str:
    """A sentence with its speaker named instead of "I", verbs agreeing.

    "we" becomes "NAME and others", then "they"; "you" the listener where there is just one. Time words
    stay as said.

    Args:
        text: One sentence.
        speaker: Who says it.
        listener: To whom, None when unknown or several.
    """
    for pattern, plain in _SLANG:
        text = pattern.sub(plain, text)
    walk = _Walk(speaker, listener)
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0].isalnum() or token[0] == "_":
            walk.out.append(walk.word(token))
            walk.last = token.lower()
        else:
            if re.search(r"[.,;:!?()–—-]", token):
                walk.agree = False
            walk.out.append(token)
    return _settle_had("".join(walk.out))


def _settle_had(text: str) -> str:
    """ "NAME 'd" is "had" before a participle, else "would"."""

    def full(match: re.Match[str]) -> str:
        following = match["next"]
        return (
            f" {'had' if is_participle(following) or following == 'better' else 'would'} "
            f"{match['adverb']}{following}"
        )

    return re.sub(r" 'd (?P<adverb>(?:\w+ly |also |always |just |never )*)(?P<next>\w+)", full, text)
