"""Where episodes end, and writing them: shared by remember and session."""

from collections.abc import Generator, Sequence
from typing import Any

from memcycle.agents.episode_trigger import Boundary
from memcycle.agents.episode_writer import EpisodeWriterInput, EpisodeWriterOutput
from memcycle.agents.roles import run_rules
from memcycle.core.edit import Edit
from memcycle.core.entry import Entry, new_entry
from memcycle.core.errors import RoleFailed
from memcycle.core.language.small_talk import asks, tells
from memcycle.core.language.tokens import approx_tokens
from memcycle.core.theta import Theta
from memcycle.core.turn import Turn
from memcycle.graph.environment import GraphRun, Made
from memcycle.graph.node import Call
from memcycle.graph.search import turn_views
from memcycle.graph.states import dumped


def cut(segment: Sequence[Turn], boundaries: Sequence[Boundary], theta: Theta) -> list[list[Turn]]:
    """The finished episodes of a segment, in order: at the boundaries, and where the window saturates.

    A number outside the segment is ignored. Saturation (AMA: 20 turns or 2,000 tokens) closes an episode
    whatever the trigger says.
    """
    ends = {boundary.after for boundary in boundaries}
    finished: list[list[Turn]] = []
    current: list[Turn] = []
    tokens = 0
    for n, turn in enumerate(segment, 1):
        current.append(turn)
        tokens += approx_tokens(turn.text)
        full = len(current) >= theta.saturation_turns or tokens >= theta.saturation_tokens
        if n in ends or full:
            finished.append(current)
            current, tokens = [], 0
    return finished


def tell(turns: Sequence[Turn]) -> bool:
    """Whether turns tell anything that an episode could keep, beyond questions, thanks and fillers."""
    before = [False, *(asks(turn.text) for turn in turns)]
    return any(tells(turn.text, answers=asked) for turn, asked in zip(turns, before, strict=False))


def whole(segment: Sequence[Turn], boundaries: Sequence[Boundary], theta: Theta) -> list[list[Turn]]:
    """All turns of a segment in episodes, as `cut`; a single last turn belongs to the one before."""
    episodes = cut(segment, boundaries, theta)
    rest = list(segment[sum(map(len, episodes)) :])
    if episodes and len(rest) == 1:
        return [*episodes[:-1], [*episodes[-1], *rest]]
    return [*episodes, rest] if rest else episodes


def write(
    run: GraphRun, episodes: Sequence[Sequence[Turn]]
) -> Generator[list[Call], Any, tuple[list[dict[str, Any]], list[str]]]:
    """Edits, as a state holds them, that add what the Episode writer says of each; and warnings.

    Where it fails an episode is written by extraction.
    """
    inputs = [EpisodeWriterInput(turns=turn_views(turns)) for turns in episodes]
    replies = yield [run.call("episode_writer", value) for value in inputs]
    edits, warnings, made = list[Edit](), list[str](), run.made("episode_writer")
    for turns, value, reply in zip(episodes, inputs, replies, strict=True):
        output = reply
        if isinstance(reply, RoleFailed):
            warnings.append(f"episode of {turns[0].id} to {turns[-1].id} written by extraction: {reply}")
            output = run_rules("episode_writer", value)
        edits.append(Edit(op="ADD", entry=_episode(turns, output, made), actor="episode_writer"))
    return dumped(edits), warnings


def _episode(turns: Sequence[Turn], output: EpisodeWriterOutput, made: Made) -> Entry:
    return new_entry(
        made.scope.within(turns[0].session),
        "episode",
        output.text,
        tuple(turn.id for turn in turns),
        title=output.title,
        event_time=turns[0].time,
        event_precision="minute",
        valid_from=turns[0].time,
        observed_at=turns[-1].time,
        persons=tuple(output.persons),
        locations=tuple(output.locations),
        topics=tuple(output.topics),
        keywords=tuple(output.keywords),
        importance=output.importance,
        actor="episode_writer",
        model=made.model,
        prompt=made.prompt,
        pipeline=made.pipeline,
    )
