"""Grader without a model: whether an answer holds the gold's content words, numbers and dates (MemMA 3.4)."""

import re

from memcycle.agents.grader import Grade, GradeItem, GraderInput, GraderOutput
from memcycle.agents.rules.content import COUNTS, content, denies, numbers, share
from memcycle.core.entry import same_text
from memcycle.core.language.date_forms import lies_in
from memcycle.core.language.dates import fixed_dates, without
from memcycle.core.language.names import person_names, same_person
from memcycle.core.language.questions import abstains, asked_slot

HELD = 0.6
"""Share of the gold's words beyond its question that an answer must hold."""
MOST_READ = 20_000
_QUOTED = re.compile(r"(?:[^(“]{0,60}\()?(?P<who>[^,:“(]{1,60})(?:,[^:“]{1,40})?: “")
"""How an answer names whose words it quotes."""
_YES = re.compile(r"^\W*(?:yes|yeah|yep|yup|correct|right|indeed)\b", re.IGNORECASE)
_NO = re.compile(r"^\W*(?:no|nope)\b(?![\s-]+(?:one|longer|more)\b)", re.IGNORECASE)


def grader(value: GraderInput) -> GraderOutput:
    """One grade an item, each on its own.

    Built to notice a missing memory, no judge of meaning: synonyms and conclusions are beyond it, and then it
    says wrong, which costs a needless repair at most. What it calls correct may say more than the gold.
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
    if asked_slot(question) == "yes_no" and (_YES.match(gold) or _NO.match(gold)):
        agrees = _says_yes(gold, question) == _says_yes(answer, question)
        return "" if agrees else "one says yes, the other no"
    return _other_person(question, gold, answer) or _differs(question, gold, answer)


def _says_yes(text: str, question: str) -> bool:
    if _YES.match(text) or _NO.match(text):
        return _YES.match(text) is not None
    return denies(text) == denies(question)


def _other_person(question: str, gold: str, answer: str) -> str:
    """An answer that names only people whom neither question nor gold names is about somebody else."""
    wanted = f"{question} {gold}"
    asked, said = person_names(wanted), _QUOTED.match(answer)
    named = [said["who"].strip()] if said else person_names(answer, asked)
    known = [one for one in named if one.casefold() in wanted.casefold()]
    strangers = named and not known and not any(same_person(one, other) for one in named for other in asked)
    return f"it is about {named[0]}" if asked and strangers else ""


def _differs(question: str, gold: str, answer: str) -> str:
    near = next((one.start for one in fixed_dates(answer)), None)
    wanted, answered = fixed_dates(gold, by=near), fixed_dates(answer, by=near)
    if not all(
        any(lies_in(own.start, own.precision, one.start, one.precision) for own in answered) for one in wanted
    ):
        return "another date, or none"
    plain, rest = without(gold, wanted), without(answer, answered)
    asked = content(question)
    words = (content(plain) - asked - COUNTS) or (frozenset() if wanted else content(plain) - COUNTS)
    if missing := numbers(plain) - numbers(question) - numbers(rest):
        return f"it lacks {min(missing)}"
    if not words:
        return ""
    if denies(plain) != denies(rest):
        return "one denies what the other says"
    said = content(rest)
    short = said - asked
    # A short right answer stands in the gold's clause: "Linz" for "She teaches fencing in Linz".
    if share(words, said) >= HELD or (short and short <= words and len(short) > len(words) / 4):
        return ""
    return f"it lacks {min(words - said)}"
