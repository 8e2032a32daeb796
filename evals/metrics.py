"""How an answer and a list of found turns are scored.

Answers: token F1 as LoCoMo's own evaluation counts it (Maharana et al., ACL 2024), and BLEU-1. Evidence: the
strict measure, the share of gold turns found, and the lenient one, whether a gold session is among the found
ones. All are pure functions; shares run from 0 to 1.

Both stem by Porter's algorithm. LoCoMo's code takes NLTK's stemmer, which departs from it for a few words
(`tried` becomes `tri` there, like `try`, and `tri` against `try` is no match here); measured over answers
and evidence of LoCoMo's conversations 1 to 5, token F1 is 0.0001 higher here.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import snowballstemmer

from memcycle.core.entry import Granularity

MULTI_HOP, OPEN_DOMAIN, ADVERSARIAL = "multi-hop", "open-domain", "adversarial"
"""Categories whose answers are scored by rules of their own."""

NOT_MENTIONED = ("not mentioned", "no information available")
"""An answer with one of these, in any case of letters, abstains."""

_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WHOLE = 2
"""Words up to this length are their own stems."""

# Words with inner marks (3:30, 10,000, self-care) stay whole; n't, 's and the like stand alone.
_BLEU_TOKEN = re.compile(r"\w+(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|\w+(?:(?:[-/.&]|[,:](?=\d))\w+)*|[^\w\s]")


def token_f1(prediction: str, gold: str, category: str | None) -> float:
    """Token F1 of an answer by the rules of its category, 0 to 1.

    - multi-hop: both are lists divided by commas; the mean over the golds of the best F1 that any part of the
      answer reaches.
    - open-domain: of the gold only what stands before the first `;` counts.
    - adversarial: 1 for an answer that abstains, else 0; there is no gold.
    - any other category, or none: F1 of the tokens.

    Args:
        prediction: The answer.
        gold: The gold answer; of no account for an adversarial question.
        category: Its name. Pass `ADVERSARIAL` for a question that is adversarial whatever its category.
    """
    if category == ADVERSARIAL:
        return float(abstains(prediction))
    if category == MULTI_HOP:
        golds = gold.split(",")
        return math.fsum(max(_f1(part, one) for part in prediction.split(",")) for one in golds) / len(golds)
    return _f1(prediction, gold.partition(";")[0] if category == OPEN_DOMAIN else gold)


def abstains(prediction: str) -> bool:
    """Whether an answer says, in LoCoMo's words, that nothing of the kind was mentioned."""
    return any(words in prediction.lower() for words in NOT_MENTIONED)


def _f1(prediction: str, gold: str) -> float:
    found, wanted = _stemmed(prediction), _stemmed(gold)
    same = (Counter(found) & Counter(wanted)).total()
    return 2 * same / (len(found) + len(wanted)) if same else 0.0


def _stemmed(text: str) -> list[str]:
    """Stems of a text in lower case, without articles and punctuation; `top-notch` is one word."""
    bare = text.lower().translate(_PUNCTUATION)
    return [_stem(word) for word in _ARTICLES.sub(" ", bare).split()]


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    # A stemmer keeps the word it works on: one a call, so that threads never share it.
    return word if len(word) <= _WHOLE else str(snowballstemmer.stemmer("porter").stemWord(word))


def bleu1(prediction: str, gold: str) -> float:
    """BLEU-1 of an answer against one gold, 0 to 1 (Papineni et al., ACL 2002).

    The share of the answer's tokens that are in the gold, each as often as it stands there, times the brevity
    penalty. Tokens are words in lower case and marks of punctuation, close to NLTK's `word_tokenize`, by
    which other memory systems report this figure.
    """
    found, wanted = (_BLEU_TOKEN.findall(text.lower()) for text in (prediction, gold))
    same = (Counter(found) & Counter(wanted)).total()
    if not same:
        return 0.0
    brevity = 1.0 if len(found) > len(wanted) else math.exp(1 - len(wanted) / len(found))
    return brevity * same / len(found)


def recall(found: Iterable[str], gold: Collection[str]) -> float:
    """Share of the gold turns that were found.

    Raises:
        ValueError: no gold turn; such a question has no recall and is to be left out.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError("recall needs at least one gold turn")
    return len(wanted & set(found)) / len(wanted)


def all_found(found: Iterable[str], gold: Collection[str]) -> bool:
    """Whether every gold turn was found.

    Raises:
        ValueError: no gold turn.
    """
    return recall(found, gold) == 1


def session_any(found: Iterable[str], gold: Collection[str]) -> bool:
    """Whether any gold session is among the sessions of what was found: the lenient measure.

    Args:
        found: Names of the sessions of the found turns.
        gold: Names of the sessions of the gold turns.

    Raises:
        ValueError: no gold session.
    """
    if not gold:
        raise ValueError("session_any needs at least one gold session")
    return not set(gold).isdisjoint(found)


def counted(turns: Sequence[str], granularity: Granularity) -> tuple[str, ...]:
    """The turns that a found entry counts for: a raw turn, or a fact with a single source turn; else none.

    Without this rule the coarsest entry would win: whoever returns whole sessions finds every turn.

    Args:
        turns: Ids of the entry's source turns.
        granularity: Of the entry.
    """
    single = granularity == "raw" or (granularity == "fact" and len(set(turns)) == 1)
    return tuple(dict.fromkeys(turns)) if single else ()


def within_tokens(items: Iterable[tuple[int, Sequence[str]]], budget: int) -> list[str]:
    """The turns of the items that fit into a budget, each once, in order.

    An item that does not fit any more is passed over; a smaller one behind it may still fit.

    Args:
        items: Tokens and turns of each found item, best first.
        budget: Tokens in all.
    """
    taken: dict[str, None] = {}
    left = budget
    for tokens, turns in items:
        if tokens <= left:
            left -= tokens
            taken.update(dict.fromkeys(turns))
    return list(taken)
