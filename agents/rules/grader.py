"""Grader by rules: whether an answer holds what the gold answer says beyond the question (MemMA 3.4)."""

import re

from memcycle.agents.grader import Grade, GradeItem, GraderInput, GraderOutput
from memcycle.agents.rules.gold import read_gold
from memcycle.agents.rules.same_answer import says
from memcycle.core.entry import same_text
from memcycle.core.language.dates import fixed_dates
from memcycle.core.language.questions import abstains
from memcycle.core.language.sentences import NEGATION

_YES = re.compile(r"^\W*(?:yes|yeah|yep|yup|correct|right|indeed)\b", re.IGNORECASE)
_NO = re.compile(r"^\W*(?:no|nope)\b(?![\s-]+(?:one|longer|more)\b)", re.IGNORECASE)
MOST_READ = 20_000
"""Characters of an answer that are read."""


def grader(value: GraderInput) -> GraderOutput:
    """One grade an item, each on its own.

    Built to notice a missing memory. It compares content words: a right answer holds most of what the gold
    says beyond its question, names weighing more than verbs and than what trails after the main clause, or is
    the short answer that the gold's clause contains. Its dates lie in the gold's, its numbers and its denial
    are the gold's, and it is about the same person. The gold but for one word is about another thing.

    It is no judge of meaning. Synonyms, conclusions and other languages' grammar are beyond it: it then says
    wrong, which costs a needless repair at most. What it calls correct may say more than the gold, or mean
    something else in the same words.
    """
    first = {item.n: item for item in reversed(value.items)}
    return GraderOutput(grades=[grade(first[n]) for n in dict.fromkeys(item.n for item in value.items)])


def grade(item: GradeItem) -> Grade:
    """The grade of one answer, with the reason where it is wrong."""
    why = _wrong(item.question, item.gold, item.answer[:MOST_READ])
    return Grade(n=item.n, correct=not why, why=why)


def _wrong(question: str, gold: str, answer: str) -> str:
    if not answer.strip() or not gold.strip():
        return "a blank answer" if gold.strip() else "nothing to compare with"
    if abstains(answer):
        return "it says that nothing is known"
    if same_text(answer) == same_text(gold):
        return ""
    dated = fixed_dates(answer)
    wanted = read_gold(question, gold, dated[0].start if dated else None)
    if wanted.asked.slot == "yes_no":
        told, said = (_agrees(text, denied=wanted.asked.denies) for text in (gold, answer))
        if told != said:
            return "one says yes, the other no"
        if _YES.match(answer) or _NO.match(answer):
            return ""
    return says(wanted, answer)


def _agrees(text: str, *, denied: bool) -> bool:
    """Whether a text says yes to a question, which may itself deny."""
    if _YES.match(text) or _NO.match(text):
        return _YES.match(text) is not None
    return (NEGATION.search(text) is not None) == denied
