"""The Constructor over a chunk, guarded in bulk import: tried again, then in smaller windows (EvolveMem 3.1).

What was read stays read, whatever happens to the rest.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memcycle.agents.constructor import ConstructorInput, ConstructorOutput, FactDraft
from memcycle.agents.guide import GuideOutput
from memcycle.agents.provider_errors import is_too_long, may_pass
from memcycle.agents.views import TurnView
from memcycle.core.entry import same_text
from memcycle.core.errors import RoleFailed
from memcycle.core.theta import Extraction
from memcycle.graph.environment import GraphRun
from memcycle.graph.node import Call

ONCE = Extraction(retries=0, split=200, coverage=0)
"""Online somebody waits: a chunk is read once, as a whole."""
LEAD = 3
"""Turns before an uncovered one that are shown beside it."""


@dataclass
class Read:
    """What came of reading a chunk.

    Attributes:
        unread: Numbers of the turns that could not be read.
    """

    facts: list[FactDraft] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


Reading = Generator[Call | Sequence[Call], Any, Read]


def read(run: GraphRun, value: ConstructorInput, guards: Extraction = ONCE) -> Reading:
    """Reads a chunk; what cannot be taken whole, if it is longer, in windows of `guards.split` turns.

    A window that was cut keeps its complete facts, as far as no smaller window reads their turns.

    Raises:
        Exception: what the provider raises, where nothing of the chunk could be read.
    """
    whole = yield from _window(run, value, guards)
    splits = guards is not ONCE and len(value.turns) > guards.split
    if not splits or not (whole.unread or whole.cut):
        if whole.error is not None:
            raise whole.error
        return whole.read
    done, errors = Read(warnings=[f"{_span(value.turns)} read in smaller windows: {whole.why}"]), []
    for part in _parts(value, guards.split):
        window = yield from _window(run, part, guards)
        numbers = {turn.n for turn in part.turns}
        kept = [fact for fact in whole.read.facts if window.unread and fact.turn in numbers]
        done.facts += [*kept, *window.read.facts]
        done.unread += window.unread
        done.warnings += window.read.warnings
        if window.error is not None:
            errors.append(window.error)
            done.warnings.append(f"{_span(part.turns)} not read: {type(window.error).__name__}")
    if errors and len(done.unread) == len(value.turns) and not done.facts:
        raise errors[0]
    return done


def read_again(
    run: GraphRun, value: ConstructorInput, missing: dict[int, list[str]], guards: Extraction
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
            "guidance": GuideOutput(keep=[_hint(n, words) for n, words in missing.items()]),
        }
    )
    window = yield from _window(run, aimed, guards)
    if window.error is not None:
        return Read(warnings=[f"{_span(aimed.turns)} not read again: {type(window.error).__name__}"])
    return window.read


def new_facts(found: Sequence[FactDraft], known: Sequence[FactDraft], turns: set[int]) -> list[FactDraft]:
    """Those of some turns that are not known yet."""
    said = {same_text(fact.text) for fact in known}
    return [fact for fact in found if fact.turn in turns and same_text(fact.text) not in said]


def _hint(n: int, words: Sequence[str]) -> str:
    return f"turn {n}: what it says of {', '.join(words)}"


@dataclass
class _Window:
    """One window: what was read, or why not.

    Attributes:
        why: In words, where it was cut or not read. error: what the provider raised.
    """

    read: Read
    cut: bool = False
    why: str = ""
    error: Exception | None = None

    @property
    def unread(self) -> list[int]:
        return self.read.unread


def _window(
    run: GraphRun, value: ConstructorInput, guards: Extraction
) -> Generator[Call | Sequence[Call], Any, _Window]:
    """One window, tried again with growing waits while that may help."""
    numbers = [turn.n for turn in value.turns]
    for tried in range(guards.retries + 1):
        try:
            output: ConstructorOutput = yield run.call("constructor", value)
        except RoleFailed as failed:
            found = _Window(Read(unread=numbers, warnings=[str(failed)]), why=failed.brief)
        except Exception as error:
            if guards is ONCE or not (may_pass(error) or is_too_long(error)):
                raise
            found = _Window(Read(unread=numbers), why=type(error).__name__, error=error)
            if is_too_long(error):
                return found
        else:
            said = f"the Constructor's reply was cut: {len(output.facts)} complete facts are kept"
            read = Read(facts=list(output.facts), warnings=[said] if output.cut else [])
            return _Window(read, cut=output.cut, why="the reply was cut" if output.cut else "")
        if tried < guards.retries:
            run.bank.world.sleep(guards.wait * 2**tried)
    return found


def _parts(value: ConstructorInput, size: int) -> Iterator[ConstructorInput]:
    """Windows of so many turns under their own numbers, each after the turns before it."""
    lead = len(value.window)
    for start in range(0, len(value.turns), size):
        before = [*value.window, *value.turns[:start]]
        yield value.model_copy(
            update={
                "turns": value.turns[start : start + size],
                "window": before[-max(lead, LEAD) :] if start else value.window,
            }
        )


def _span(turns: Sequence[TurnView]) -> str:
    return f"turns {turns[0].n} to {turns[-1].n} of the chunk"
