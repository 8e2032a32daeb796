"""The Constructor over a chunk: what a model cannot take whole is read in parts (EvolveMem 3.1).

What was read stays read, whatever happens to the rest. A refusal for length is never raised: it halves what
is read, down to pieces of a turn's text. In bulk import a failure is tried again first.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memcycle.agents.constructor import ConstructorInput, ConstructorOutput, FactDraft
from memcycle.agents.guide import GuideOutput
from memcycle.agents.provider_errors import may_pass
from memcycle.agents.views import TurnView
from memcycle.core.errors import BudgetUsed, RoleFailed, is_too_long
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.theta import Extraction
from memcycle.graph.environment import GraphRun
from memcycle.graph.node import Call
from memcycle.graph.remember.chunk import shown_tokens

ONCE = Extraction(retries=0, coverage=0)
"""Online somebody waits: a chunk is read once."""
LEAD = 3
"""Turns before an uncovered one, or a part, that are shown beside it."""
LEAST = 100
"""Tokens of the shortest piece of a turn: where a model refuses that, it is not the turn that is too long."""


@dataclass
class Read:
    """What came of reading a chunk, or a part of it.

    Attributes:
        unread: Numbers of the turns that could not be read.
        trouble: In words, why the reply was cut or there is none. error: what the provider raised.
        too_long: Whether the model refused it for its length.
    """

    facts: list[FactDraft] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trouble: str = ""
    error: Exception | None = None
    too_long: bool = False


Reading = Generator[Call | Sequence[Call], Any, Read]


def read(run: GraphRun, value: ConstructorInput, how: Extraction = ONCE) -> Reading:
    """Reads a chunk: whole, else in windows of `how.split` turns; what is too long, in halves.

    A window that was cut keeps its complete facts, as far as no smaller window reads their turns.

    Raises:
        Exception: what the provider raises, but for a refusal for length, where nothing could be read.
    """
    done = yield from _Reader(run, how).read(value)
    if done.error is not None and len(done.unread) == len(value.turns) and not done.facts:
        raise done.error
    done.warnings = list(dict.fromkeys(done.warnings))
    return done


def read_again(
    run: GraphRun, value: ConstructorInput, missing: dict[int, list[str]], how: Extraction
) -> Reading:
    """Reads single turns once more, those before them beside them, told which of their words no fact holds.

    Args:
        value: The chunk as it was read.
        missing: By number of the turn, words that no fact holds.
    """
    near = {n - back for n in missing for back in range(1, LEAD + 1)} - set(missing)
    aimed = value.model_copy(
        update={
            "turns": [turn for turn in value.turns if turn.n in missing],
            "window": [*value.window, *(turn for turn in value.turns if turn.n in near)],
            "guidance": GuideOutput(
                keep=[f"turn {n}: what it says of {', '.join(words)}" for n, words in missing.items()]
            ),
        }
    )
    done = yield from _Reader(run, how).read(aimed)
    if len(done.unread) == len(aimed.turns) and (done.error is not None or done.too_long):
        return Read(warnings=[f"{_span(aimed.turns)} not read again: {done.trouble}"])
    return done


class _Reader:
    """Reads one chunk, and learns by refusals how much the model takes."""

    def __init__(self, run: GraphRun, how: Extraction) -> None:
        self._run, self._how = run, how
        self._refused = 0
        """Tokens of what was refused last; 0 where nothing was."""

    def read(self, value: ConstructorInput, *, is_part: bool = False) -> Reading:
        """A chunk or a part of it, whole or in further parts."""
        too_long = self._refused and _size(value) >= self._refused
        whole = _refusal(value) if too_long else (yield from self._window(value))
        parts = self._parts(value, whole)
        if not parts:
            return whole
        done = Read(trouble=whole.trouble)
        if not is_part:
            done.warnings.append(f"{_span(value.turns)} read in smaller windows: {whole.trouble}")
        passing = False
        for part in parts:
            numbers = {turn.n for turn in part.turns}
            if done.error is not None and self._how is ONCE:
                done.unread += numbers
                continue
            window = yield from self.read(part, is_part=True)
            kept = [fact for fact in whole.facts if window.unread and fact.turn in numbers]
            done.facts += [*kept, *window.facts]
            done.unread += window.unread
            done.warnings += window.warnings
            done.error = done.error or window.error
            passing |= bool(window.unread) and not window.too_long
            if window.error is not None:
                done.warnings.append(f"{_span(part.turns)} not read: {window.trouble}")
        done.too_long = bool(done.unread) and not passing
        if len(value.turns) == 1:
            # What is too long for good does not keep a turn waiting of which other pieces were read.
            waits = passing or len(done.unread) == len(parts)
            done.unread = [value.turns[0].n] if waits else []
        return done

    def _window(self, value: ConstructorInput) -> Reading:
        """What one call reads, tried again with growing waits while that may help."""
        found = Read(unread=[turn.n for turn in value.turns])
        for tried in range(self._how.retries + 1):
            if tried:
                self._run.bank.world.sleep(self._how.wait * 2 ** (tried - 1))
            try:
                output: ConstructorOutput = yield self._run.call("constructor", value)
            except BudgetUsed as used:  # nor does it help to read less
                return replace(found, warnings=[str(used)], trouble="")
            except RoleFailed as failed:
                found = replace(found, warnings=[str(failed)], trouble=failed.brief, error=None)
            except Exception as error:
                if is_too_long(error):
                    self._refused = _size(value)
                    return _refusal(value)
                if not may_pass(error):
                    raise
                found = replace(found, warnings=[], trouble=type(error).__name__, error=error)
            else:
                if not output.cut:
                    return Read(facts=list(output.facts))
                warning = f"the Constructor's reply was cut: {len(output.facts)} complete facts are kept"
                return Read(facts=list(output.facts), warnings=[warning], trouble="the reply was cut")
        return found

    def _parts(self, value: ConstructorInput, whole: Read) -> list[ConstructorInput]:
        """What is read in place of what could not be read whole; nothing where that is no use."""
        turns = value.turns
        if whole.error is not None and self._how is ONCE:
            return []
        if whole.trouble and len(turns) > self._how.split:
            return _windows(value, self._how.split)
        if not whole.too_long:
            return []
        if len(turns) > 1:
            return _windows(value, -(-len(turns) // 2))
        bare = value.model_copy(update={"window": [], "memories": [], "guidance": None})
        if bare != value:
            return [bare]
        halves = _halves(turns[0].text) if approx_tokens(turns[0].text) >= 2 * LEAST else []
        pieces = [turns[0].model_copy(update={"text": half}) for half in halves]
        return [bare.model_copy(update={"turns": [piece]}) for piece in pieces]


def _refusal(value: ConstructorInput) -> Read:
    """What came of what is longer than the model takes."""
    unread = [turn.n for turn in value.turns]
    warnings = [
        f"turn {n} of the chunk: not read, as far as it is longer than the model takes" for n in unread
    ]
    return Read(unread=unread, warnings=warnings, trouble="it is more than the model takes", too_long=True)


def _windows(value: ConstructorInput, size: int) -> list[ConstructorInput]:
    """Windows of so many turns under their own numbers, each after the turns before it.

    They go without guidance, which is of all the turns.
    """
    made = []
    for start in range(0, len(value.turns), size):
        before = [*value.window, *value.turns[:start]]
        window = before[-max(len(value.window), LEAD) :] if start else value.window
        group = value.turns[start : start + size]
        made.append(value.model_copy(update={"turns": group, "window": window, "guidance": None}))
    return made


def _halves(text: str) -> list[str]:
    """A text in two, between sentences where one ends near the middle, else between words."""
    middle = len(text) // 2
    near = text[middle // 2 : middle]
    for mark in ("\n", "。", ". ", "! ", "? ", " "):
        if (place := near.rfind(mark)) >= 0:
            middle = middle // 2 + place + len(mark)
            break
    return [half for half in (text[:middle], text[middle:]) if half.strip()]


def _size(value: ConstructorInput) -> int:
    """Tokens of all that is shown."""
    texts = [turn.text for turn in (*value.turns, *value.window)] + [one.text for one in value.memories]
    return sum(map(shown_tokens, texts))


def _span(turns: Sequence[TurnView]) -> str:
    return f"turns {turns[0].n} to {turns[-1].n} of the chunk"
