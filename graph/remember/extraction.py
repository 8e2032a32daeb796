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
    """What came of reading a chunk, or a window of it.

    Attributes:
        unread: Numbers of the turns that could not be read.
        trouble: In words, why the reply was cut or there is none. error: what the provider raised.
    """

    facts: list[FactDraft] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    trouble: str = ""
    error: Exception | None = None


Reading = Generator[Call | Sequence[Call], Any, Read]


def read(run: GraphRun, value: ConstructorInput, how: Extraction = ONCE) -> Reading:
    """Reads a chunk; what cannot be taken whole, if it is longer, in windows of `how.split` turns.

    A window that was cut keeps its complete facts, as far as no smaller window reads their turns.

    Raises:
        Exception: what the provider raises, where nothing of the chunk could be read.
    """
    whole = yield from _window(run, value, how)
    if how is ONCE or len(value.turns) <= how.split or not whole.trouble:
        if whole.error is not None:
            raise whole.error
        return whole
    done, errors = Read(warnings=[f"{_span(value.turns)} read in smaller windows: {whole.trouble}"]), []
    for part in _parts(value, how.split):
        window = yield from _window(run, part, how)
        numbers = {turn.n for turn in part.turns}
        kept = [fact for fact in whole.facts if window.unread and fact.turn in numbers]
        done.facts += [*kept, *window.facts]
        done.unread += window.unread
        done.warnings += window.warnings
        if window.error is not None:
            errors.append(window.error)
            done.warnings.append(f"{_span(part.turns)} not read: {window.trouble}")
    if errors and len(done.unread) == len(value.turns) and not done.facts:
        raise errors[0]
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
    window = yield from _window(run, aimed, how)
    if window.error is not None:
        return Read(warnings=[f"{_span(aimed.turns)} not read again: {window.trouble}"])
    return window


def new_facts(found: Sequence[FactDraft], known: Sequence[FactDraft], turns: set[int]) -> list[FactDraft]:
    """Those of some turns that are not known yet."""
    texts = {same_text(fact.text) for fact in known}
    return [fact for fact in found if fact.turn in turns and same_text(fact.text) not in texts]


def _window(run: GraphRun, value: ConstructorInput, how: Extraction) -> Reading:
    """One window, tried again with growing waits while that may help."""
    numbers = [turn.n for turn in value.turns]
    for tried in range(how.retries + 1):
        try:
            output: ConstructorOutput = yield run.call("constructor", value)
        except RoleFailed as failed:
            found = Read(unread=numbers, warnings=[str(failed)], trouble=failed.brief)
        except Exception as error:
            if how is ONCE or not (may_pass(error) or is_too_long(error)):
                raise
            found = Read(unread=numbers, trouble=type(error).__name__, error=error)
            if is_too_long(error):
                return found
        else:
            if not output.cut:
                return Read(facts=list(output.facts))
            warning = f"the Constructor's reply was cut: {len(output.facts)} complete facts are kept"
            return Read(facts=list(output.facts), warnings=[warning], trouble="the reply was cut")
        if tried < how.retries:
            run.bank.world.sleep(how.wait * 2**tried)
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
