"""What no model may do, whatever it answers: pure checks in code (design section 6)."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from memcycle.core.entry import Entry
from memcycle.core.language.tokens import content_stems, stems
from memcycle.core.turn import Turn

_FORGET = re.compile(
    r"\b(forget|delete|remove|erase|wipe|clear|drop|discard|scrub"
    r"|(do not|don't|stop) (remember|keep|stor|sav)\w*"
    r"|verg(iss|esst|essen)|lösch\w*|entfern\w*|oubli\w*|supprim\w*|efface\w*|olvid\w*|borr\w*|elimin\w*"
    r"|dimentica\w*|cancell\w*|esque[cç]\w*|apag\w*)\b|忘|删|刪|消して|消去|削除|잊어|삭제",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s+")


def _folded(text: str) -> str:
    return _SPACE.sub(" ", text.casefold().replace("’", "'")).strip()


def stands_in(span: str, text: str) -> bool:
    """Whether a quoted span stands in a text, case and spacing aside. A blank span does not."""
    folded = _folded(span)
    return bool(folded) and folded in _folded(text)


def requested_deletion(quote: str, turns: Iterable[Turn]) -> Turn | None:
    """The human turn in which the user asks, in the quoted words, that something be forgotten."""
    if not _FORGET.search(quote):
        return None
    return next((turn for turn in turns if turn.is_evidence and stands_in(quote, turn.text)), None)


def support(text: str, turn: Turn) -> float:
    """Share of a statement's content stems that its turn holds (0 to 1); the speaker's name is free."""
    wanted = set(content_stems(text)) - set(stems(turn.speaker))
    return len(wanted & set(stems(turn.text))) / len(wanted) if wanted else 0.0


def best_source(text: str, turns: Sequence[Turn]) -> Turn | None:
    """The human turn that supports a statement best, None where none shares a content word."""
    human = [turn for turn in turns if turn.is_evidence]
    best = max(human, key=lambda turn: support(text, turn), default=None)
    return best if best is not None and support(text, best) > 0 else None


def effective_time(event_time: datetime | None, observed_at: datetime | None) -> datetime | None:
    """The time a statement speaks for: of its event, but never later than it was said."""
    if event_time is None or observed_at is None:
        return event_time or observed_at
    return min(event_time, observed_at)


def is_older(entry: Entry, than: Entry) -> bool:
    """Whether `entry` speaks for an earlier time: older evidence never overwrites newer."""
    mine = effective_time(entry.event_time, entry.observed_at)
    other = effective_time(than.event_time, than.observed_at)
    return mine is not None and other is not None and mine < other
