"""How an answer and a list of found entries are scored.

Answers: token F1 as LoCoMo's own evaluation counts it (Maharana et al., ACL 2024), and BLEU-1. Evidence: the
strict measure, the share of gold turns found, and the lenient one, whether a gold session is among the found
ones. Shares run from 0 to 1.

Both stem by Porter's algorithm. LoCoMo's code takes NLTK's stemmer, which departs from it for a few words
(`tried` becomes `tri` there, like `try`, and `tri` against `try` is no match here); measured over answers
and evidence of LoCoMo's conversations 1 to 5, token F1 is 0.0001 higher here.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

import snowballstemmer

from memcycle.core.entry import Entry, Granularity
from memcycle.core.language.token_count import token_counter
from memcycle.evals.records import LENIENT_KS, Plan, Scores

MULTI_HOP, OPEN_DOMAIN, ADVERSARIAL = "multi-hop", "open-domain", "adversarial"
"""Categories whose answers are scored by rules of their own."""

MANY = 200
"""Entries at most under a budget of tokens alone: more than fit into any."""

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


def counted(turns: Sequence[str], granularity: Granularity) -> tuple[str, ...]:
    """The turns that a found entry counts for: a raw turn, or a fact with a single source turn; else none.

    Without this rule the coarsest entry would win: whoever returns whole sessions finds every turn.

    Args:
        turns: Ids of the entry's source turns.
        granularity: Of the entry.
    """
    single = granularity == "raw" or (granularity == "fact" and len(set(turns)) == 1)
    return tuple(dict.fromkeys(turns)) if single else ()


def counted_turns(entries: Iterable[Entry]) -> list[str]:
    """The distinct turns that entries count for, in their order."""
    return list(dict.fromkeys(turn for entry in entries for turn in counted(entry.turns, entry.granularity)))


def tokens_of(entry: Entry) -> int:
    """Tokens of an entry's text, which is what a budget counts."""
    return token_counter().count(entry.text)


def fitting(found: Sequence[Entry], k: int, budget: int) -> list[Entry]:
    """Of the first k entries those that fit into a budget of tokens, in order.

    An entry that does not fit any more is passed over; a smaller one behind it may still fit.
    """
    taken = []
    for entry in found[:k]:
        tokens = tokens_of(entry)
        if tokens <= budget:
            budget -= tokens
            taken.append(entry)
    return taken


def scores(
    found: Sequence[Entry],
    gold: Collection[str],
    *,
    plan: Plan,
    sessions: Mapping[str, str],
    assembled: Callable[[int, int], Sequence[Entry]] | None = None,
) -> Scores:
    """How a ranked list does on a question.

    Args:
        found: Entries, best first.
        gold: The question's gold turns; none where it has none.
        plan: Gives the ks and the budgets.
        sessions: Session by turn.
        assembled: Chooses what is shown from a number of entries and tokens; by default what fits, in order.
    """
    choose = assembled or (lambda k, budget: fitting(found, k, budget))
    shown = choose(plan.k, plan.token_budget)
    tokens = sum(map(tokens_of, shown))
    if not gold:
        return Scores(tokens=tokens)
    turns = counted_turns(found)
    gold_sessions = {sessions.get(turn, "") for turn in gold}
    recalls = {k: recall(turns[:k], gold) for k in plan.ks}
    return Scores(
        recall={str(k): share for k, share in recalls.items()},
        as_entries={str(k): recall(counted_turns(found[:k]), gold) for k in plan.ks},
        all_evidence={str(k): float(share == 1) for k, share in recalls.items()},
        any_gold={str(k): float(share > 0) for k, share in recalls.items()},
        reciprocal_rank=next((1 / place for place, turn in enumerate(turns, 1) if turn in gold), 0.0),
        recall_at_tokens={
            str(budget): recall(counted_turns(choose(MANY, budget)), gold) for budget in plan.budgets
        },
        session_any={
            str(k): float(any(sessions.get(turn, "") in gold_sessions for turn in turns[:k]))
            for k in LENIENT_KS
        },
        shown=recall(counted_turns(shown), gold),
        tokens=tokens,
    )


def whole_context(turns: Sequence[Entry], gold: Collection[str]) -> Scores:
    """Of showing everything: it has no ranks and no budget."""
    tokens = sum(map(tokens_of, turns))
    return Scores(shown=recall(counted_turns(turns), gold) if gold else None, tokens=tokens)
