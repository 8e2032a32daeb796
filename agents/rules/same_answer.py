"""Whether an answer says what a gold answer says beyond its question."""

from difflib import SequenceMatcher

from memcycle.agents.rules.content import counts_of, denies, stems_of, subject_of, words_of
from memcycle.agents.rules.gold import Gold, fits
from memcycle.agents.rules.verbs import AUXILIARIES
from memcycle.core.language.date_forms import another_occasion
from memcycle.core.language.dates import Fixed, fixed_dates, without
from memcycle.core.language.names import same_person
from memcycle.core.language.sentences import split_sentences
from memcycle.core.language.tokens import base_stems

EXACT, ABOUT = 0.75, 0.25
"""Least share of a short answer's words that the gold has; of the gold's that stand beside a bare value."""
WINDOW, MOST_COMPARED = 3, 60
"""Sentences in a row that may say it; words of a statement that are compared in order."""
SPELLED = 5
"""Letters from which on two words are taken for spellings or forms of one."""
_AUXILIARY = frozenset(base_stems(" ".join(AUXILIARIES)))
_TELLING = frozenset(
    base_stems("said told asked mentioned shared thinks says tells explained noted answered replied")
)


def says(gold: Gold, answer: str) -> str:
    """Why an answer does not say what the gold says, '' if it does.

    It must say so within a few sentences in a row: words strewn over a long text say nothing.
    """
    sentences = [text for _, _, text in split_sentences(answer)]
    why = "it does not say so"
    for size in range(1, WINDOW + 1):
        windows = [" ".join(sentences[at : at + size]) for at in range(max(1, len(sentences) - size + 1))]
        verdicts = [_window(gold, window, answer) for window in windows if _holds(gold, window)]
        if "" in verdicts:
            return ""
        if verdicts:
            return verdicts[0]
    return why


def _holds(gold: Gold, window: str) -> bool:
    """Whether a stretch of an answer holds the words of the gold that count."""
    plain = without(window, fixed_dates(window))
    words = stems_of(plain)
    if gold.asks_time or (gold.counts and not gold.weights):
        # The value is compared by itself; beside it only the same matter may stand.
        beside = words - gold.named
        return not beside or _share(beside, gold) >= ABOUT
    if not gold.weights:
        said = (gold.held - gold.named) or frozenset(base_stems(gold.text))
        return bool(said) and said <= words | set(base_stems(window))
    total = sum(gold.weights.values())
    held = sum(weight for stem, weight in gold.weights.items() if stem in words)
    return held >= gold.enough * total or _is_core(gold, words)


def _share(words: frozenset[str], gold: Gold) -> float:
    """Share of the matter of question and gold that these words hold."""
    matter = (gold.held | stems_of(gold.asked.question)) - gold.named
    return len(words & matter) / len(matter) if matter else 1.0


def _is_core(gold: Gold, words: frozenset[str]) -> bool:
    """Whether words are a short answer: the core of the gold, and hardly anything that it lacks."""
    own = words - gold.given
    return (
        bool(gold.core)
        and len(gold.core & own) >= EXACT * len(gold.core)
        and len(own & gold.held) >= EXACT * len(own)
    )


def _window(gold: Gold, window: str, answer: str) -> str:
    """Why a stretch that holds the words of the gold does not say the same, '' if it does."""
    words, names = stems_of(window), gold.named
    # A short answer to "what does she never eat?" leaves the denial to the question.
    left_out = gold.asked.denies and not words & (gold.given - names)
    if not left_out and denies(window, (gold.held | gold.given) - names) != denies(gold.text, words):
        return "one denies what the other states"
    checks = (_other_date(gold, window, answer), _other_number(gold, window), _other_person(gold, window))
    return next((why for why in checks if why), "") or _other_thing(gold, window)


def _other_date(gold: Gold, window: str, answer: str) -> str:
    by = gold.dates[0].start if gold.dates else None
    dates = fixed_dates(window, by=by)
    if gold.asks_time:
        dates = dates or fixed_dates(answer, by=by)
        missed = [one for one in gold.dates if not any(fits(date, one) for date in dates)]
        return "it gives another date, or none" if missed else ""
    apart = dates and gold.dates and not any(_meets(date, one) for date in dates for one in gold.dates)
    return "it is of another date" if apart else ""


def _meets(date: Fixed, other: Fixed) -> bool:
    return not another_occasion(date.start, date.precision, other.start, other.precision)


def _other_number(gold: Gold, window: str) -> str:
    counts = counts_of(without(window, fixed_dates(window)), ones=gold.asked.slot == "how_many")
    numbers = {count.number for count in counts}
    wanted = gold.counts if _is_long(gold, window) else gold.core_counts
    for count in wanted:
        same = {other.number for other in counts if other.noun and other.noun == count.noun}
        if count.number not in (same or numbers):
            return f"it gives another number than {count.number}, or none"
    return ""


def _is_long(gold: Gold, window: str) -> bool:
    """Whether a stretch is more than the words asked for."""
    return not gold.core or len(stems_of(window)) > len(gold.core) + 1


def _other_person(gold: Gold, window: str) -> str:
    """Whether a sentence is about somebody else than the gold ("Ana's brother", "Tom" for "Ana")."""
    subject, wanted = subject_of(window), gold.subject
    if subject is None or not _TELLING.isdisjoint(base_stems(subject.verb)):
        return ""
    known = gold.held | gold.given
    named = (
        any(same_person(subject.name, name) for name in gold.names) or set(base_stems(subject.name)) <= known
    )
    if not named or (subject.noun and subject.noun not in known | set(base_stems(gold.text))):
        return f"it is about {subject.name}"
    if wanted is None or not same_person(subject.name, wanted.name):
        # "Tom was given a book by Ana" is still Ana's deed.
        deed = set(base_stems(wanted.verb)) - _AUXILIARY if wanted else set[str]()
        swapped = bool(deed) and deed <= set(base_stems(window)) and "by" not in window.casefold().split()
        return f"it is about {subject.name}" if swapped else ""
    lost = wanted.noun and wanted.noun not in base_stems(window)
    return f"it is about {subject.name}" if lost else ""


def _other_thing(gold: Gold, window: str) -> str:
    """The one word in whose place the answer has another, where all else is the same (walnuts, cashews)."""
    said = words_of(without(window, fixed_dates(window)))[:MOST_COMPARED]
    order = gold.order[:MOST_COMPARED]
    left, right = [word.stem for word in order], [word.stem for word in said]
    lost = [word for word in order if word.stem not in set(right)]
    lost = lost if len(lost) == 1 else [word for word in lost if word.stem not in gold.given]
    if len(lost) != 1 or lost[0].verb:
        return ""
    for kind, begin, end, start, stop in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        # In its place: between the same words, or before the same words where the answer begins.
        in_place = stop - start == 1 and (end - begin == 1 or start == 0)
        if kind == "replace" and in_place and left[end - 1] == lost[0].stem and right[start] not in left:
            spelled = left[end - 1][:SPELLED] == right[start][:SPELLED]
            return "" if said[start].verb or spelled else f"it has {right[start]} for {lost[0].stem}"
    return ""
