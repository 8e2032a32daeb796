"""The verb group of an English clause, in the forms a question has, and the places to cut after it."""

import re
from typing import NamedTuple

from memcycle.agents.rules.phrases import DETERMINERS, PARTICLES, PREPOSITIONS, WORD
from memcycle.agents.rules.verb_forms import base_form
from memcycle.agents.rules.verbs import (
    AUXILIARIES,
    BASE,
    MODALS,
    is_adverb,
    is_finite,
    is_participle,
    is_past,
)
from memcycle.core.language.tokens import word_set

_BE = word_set("is are was were am be been being")
_HAVE = word_set("has have had")
_DO = word_set("does do did")
_DENYING = word_set("never hardly barely rarely neither nor")
_NOT = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall"}
# After these "to" begins an infinitive whatever verb follows, and a word in -ing goes on with the verb group.
_CHAINING = word_set(
    """
    want need plan hope decide try love like start begin continue learn going able excited ready happy agree
    offer manage use get have wish choose prefer intend prepare thrilled stoked keen eager lucky glad nervous
    proud
    """
)
_GOING_ON = word_set(
    "start begin keep enjoy love like hate try stop finish quit consider continue practice go"
)
LEAST_ING = 5
"""Letters of the shortest word taken for a verb in -ing ("thing" is none, "going" is)."""


class Step(NamedTuple):
    """A place at which a statement can be cut to ask for the rest.

    Attributes:
        verbs: The verb group after the auxiliary so far, main verb as a question has it.
        rest: What follows it in the clause; never blank.
        last: The base form of its last verb or predicate adjective.
    """

    verbs: str
    rest: str
    last: str


def denied(word: str) -> str | None:
    """The auxiliary inside "doesn't", None where a word is no such form."""
    folded = word.lower().replace("’", "'")
    return _NOT.get(folded) or (folded[:-3] if folded.endswith("n't") else None)


class Group:
    """Reads the verb group at the head of a clause's body."""

    def __init__(self, body: str, *, many: bool) -> None:
        self.body, self.many = body, many
        self.words = list(WORD.finditer(body))
        self.auxiliary, self.negated, self.copula = "", False, False
        self.verbs: list[str] = []
        self.steps: list[Step] = []
        self.place = 0

    def read(self) -> bool:
        """Whether there is a verb group; then the attributes tell it."""
        if not self._skip_adverbs():
            return False
        word = self._word()
        aux = denied(word)
        self.negated = aux is not None
        self.place += 1
        started = self._auxiliary(aux or word) if aux or word in AUXILIARIES else self._lexical(word)
        if started:
            self._extend()
        return started

    def _word(self, ahead: int = 0) -> str:
        """The word that many places ahead, folded; blank behind the end."""
        place = self.place + ahead
        return self.words[place][0].lower().replace("’", "'") if place < len(self.words) else ""

    def _skip_adverbs(self) -> bool:
        """Drops adverbs before a verb; False where one of them denies or nothing is left."""
        while (word := self._word()) and (is_adverb(word) or word in _DENYING or word == "then"):
            if word in _DENYING:
                return False
            self.negated = self.negated or word == "not"
            self.place += 1
        return bool(self._word())

    def _auxiliary(self, word: str) -> bool:
        """A verb group that begins with an auxiliary, which a question puts before the subject."""
        if not self._skip_adverbs():
            return False
        following = self._word()
        if word in _HAVE and (following == "to" or not is_participle(following)):
            return self._lexical("have" if self.negated else word)
        if word in _DO and not self.negated:
            return self._lexical(word)
        if word in MODALS and (following in AUXILIARIES - {"have", "do", "be"} or is_past(following)):
            return False
        self.auxiliary = word
        self.copula = word in _BE and not self._gerund(following)
        if self.copula:
            self._predicate()
            return True
        self._take()
        return self.verbs[-1] != "been" or self._been()

    def _been(self) -> bool:
        """What "has been" goes on with; "has been quite a ride" is left alone."""
        self._skip_adverbs()
        if self._word() in DETERMINERS | {"quite"}:
            return False
        if self._word().endswith("ing"):
            self._take()
        else:
            self._predicate()
        return True

    def _lexical(self, word: str) -> bool:
        """A main verb without auxiliary, which a question asks with a form of "do"."""
        past = is_past(word) or word in {"had", "did"}
        base = "have" if word in _HAVE else "do" if word in _DO else base_form(word)
        if base is None or not word.isalpha() or word in {"guys", "guyses"}:
            return False
        if not past and not self.negated and self.many != (word == base):
            return False
        if not past and self.many and not is_finite(word):
            return False
        self.auxiliary = "did" if past else "do" if self.many else "does"
        self.verbs.append(base)
        return True

    def _predicate(self) -> None:
        """An adjective or participle after "be" belongs to the verb group: "is excited | about the trip"."""
        word = self._word()
        known = is_participle(word) or self._word(1) in PREPOSITIONS
        if word.isalpha() and known and word not in PREPOSITIONS | DETERMINERS | PARTICLES | {"one", "it"}:
            self._take()

    def _take(self) -> None:
        self.verbs.append(self.words[self.place][0])
        self.place += 1

    def _extend(self) -> None:
        """Goes on through "want | to learn | to play", noting each place that leaves something to ask for."""
        while self._word():
            word, following, last = self._word(), self._word(1), self._last()
            if word in PARTICLES and last and self._adjacent():
                self._take()
                continue
            self._note()
            if last is None:
                return
            if word == "to" and self._infinitive(following, last):
                self._take()
                self._take()
            elif self._gerund(word) and last in _GOING_ON and self._takes(following):
                self._take()
            else:
                return

    def _infinitive(self, following: str, last: str) -> bool:
        """Whether a verb comes after "to": a known one, or any after what calls for a verb."""
        if not following.isalpha() or following in DETERMINERS or is_adverb(following):
            return False
        chained = self.copula or last in _CHAINING or self.verbs[-1] in _CHAINING
        return chained or following in BASE | {"be", "do", "have"}

    def _gerund(self, word: str) -> bool:
        return word.endswith("ing") and len(word) >= LEAST_ING

    def _takes(self, following: str) -> bool:
        """Whether a word in -ing goes on with what follows as a verb does; "camping trips" is a noun."""
        owned = re.search(r"'s?$", following) is not None
        return following in DETERMINERS | PREPOSITIONS | PARTICLES or following.isdecimal() or owned

    def _adjacent(self) -> bool:
        return self.body[self.words[self.place - 1].end() : self.words[self.place].start()].isspace()

    def _note(self) -> None:
        rest = self.body[self.words[self.place].start() :].strip()
        self.steps.append(Step(" ".join(self.verbs), rest, self._last() or "be"))

    def _last(self) -> str | None:
        """The base form of the last verb so far, without its particle."""
        verb = next((verb.lower() for verb in reversed(self.verbs) if verb.lower() not in PARTICLES), None)
        if verb is None:
            return None
        return (base_form(verb[:-3] + "ed") if verb.endswith("ing") else base_form(verb)) or verb
