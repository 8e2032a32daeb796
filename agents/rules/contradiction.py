"""Whether a new statement makes a stored one untrue: only on patterns that rarely mislead.

Built for precision: a missed contradiction leaves two dated statements side by side, a false one takes
down a true memory.
"""

from collections.abc import Callable

from memcycle.agents.rules.claims import Claim, Parsed, parse
from memcycle.core.language.tokens import content_stems, stems, word_set

_DETERMINER = word_set("a an the her his their my its some")
_HOLDING = word_set("has have owns own drives drive rides ride keeps keep")
_TWO_SENSES = frozenset(stems("running drawing training lifting standing working playing"))
_VERBAL = 1


def contradiction(new: str, old: str) -> str | None:
    """Why the new third-person statement contradicts the stored one, None when it does not.

    Directed: `new` is taken to be said later. Callers compare event times.
    """
    stored = parse(old)
    return next((why for left in parse(new) for right in stored if (why := _sentence(left, right))), None)


def _sentence(left: Parsed, right: Parsed) -> str | None:
    if left.content == right.content and left.numbers == right.numbers and left.negated == right.negated:
        return None
    for claim in left.claims:
        for other in right.claims:
            if claim.who == other.who and (why := _claims(claim, other, right)):
                return why
        if (
            claim.ended
            and claim.who.split("'")[0] == right.subject.casefold()
            and (why := _ended(claim, left, right))
        ):
            return why
    if not (left.dated or right.dated):
        return _denied(left, right) or _number(left, right)
    return None


def _claims(new: Claim, old: Claim, right: Parsed) -> str | None:
    if old.ended and not (new.slot == old.slot == "taste"):
        return None
    job = {"employer", "occupation", "taught"}
    if new.ended and new.slot == "employer" and old.slot in job:
        fits = not new.value or new.value <= right.content
        return "the job ended" if fits and right.current else None
    if new.slot != old.slot:
        return None
    check: Callable[[Claim, Claim], str | None] | None = {
        "home": _home, "employer": _replaced, "occupation": _replaced, "taught": _replaced, "tie": _tie,
        "favourite": _favourite, "taste": _taste,
    }.get(new.slot)  # fmt: skip
    return check(new, old) if check else None


def _home(new: Claim, old: Claim) -> str | None:
    if new.ended:
        return "no longer lives there" if new.value & old.value else None
    return "lives elsewhere now" if new.change and not new.value & old.value else None


def _replaced(new: Claim, old: Claim) -> str | None:
    return "changed work" if new.change and not new.ended and not new.value & old.value else None


def _tie(new: Claim, old: Claim) -> str | None:
    if new.ended:
        return (
            "the relationship ended"
            if old.value & set(stems("girlfriend boyfriend someone engaged"))
            else None
        )
    partner = frozenset(stems("girlfriend boyfriend someone"))
    return None if new.value == old.value or new.value & partner or old.value & partner else "another status"


def _favourite(new: Claim, old: Claim) -> str | None:
    return None if new.value & old.value else "another favourite"


def _taste(new: Claim, old: Claim) -> str | None:
    return "opposite taste" if new.ended != old.ended and new.value == old.value else None


def _ended(claim: Claim, left: Parsed, right: Parsed) -> str | None:
    """A stopped habit, a sold thing, what was switched from: does the old statement say it goes on?"""
    if not claim.value or right.negated or not right.current or any(other.ended for other in right.claims):
        return None
    if not claim.value <= right.content or claim.slot not in ("habit", "owned", "switch"):
        return None
    if claim.slot == "owned":
        return "no longer owned" if _HOLDING & set(right.words[1:4]) else None
    if claim.slot == "habit" and len(claim.value) == _VERBAL and not _same_use(claim, right):
        return None
    # "switched from tea to coffee" does not end a statement that is about coffee too.
    return (
        "no longer"
        if claim.slot == "habit"
        or not (left.content - claim.value)
        & right.content - {right.subject.casefold()} - set(stems(right.subject))
        else None
    )


def _same_use(claim: Claim, right: Parsed) -> bool:
    """ "stopped running" ends "runs every morning", not "runs a bakery"."""
    if not claim.value & _TWO_SENSES:
        return True
    for place, word in enumerate(right.words):
        if set(content_stems(word)) == claim.value:
            return right.words[place + 1 : place + 2] == () or right.words[place + 1] not in _DETERMINER
    return False


def _denied(left: Parsed, right: Parsed) -> str | None:
    same = left.content == right.content and len(left.content) > 1 and left.numbers == right.numbers
    return (
        "says the opposite"
        if same and left.negated != right.negated and left.current and right.current
        else None
    )


def _number(left: Parsed, right: Parsed) -> str | None:
    """The same present statement with another number."""
    same = left.content == right.content and len(left.content) > 1 and left.negated == right.negated
    counted = len(left.numbers) == len(right.numbers) > 0 and left.numbers != right.numbers
    return "another number" if same and counted and left.current and right.current else None
