"""What one evaluation run measures, as data: the same plan goes on with a run, another one never does."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memcycle.core.language.token_count import token_counter
from memcycle.core.settings import Settings

KS = (5, 10, 20, 30)
"""Found turns at which recall is given."""

LENIENT_KS = (5, 10)
"""Found turns at which the lenient session-level measure is given."""

BUDGETS = (250, 500, 1000, 2000, 4000)
"""Token budgets at which recall is given."""

NONE, OBSERVATIONS, RULES = "none", "observations", "rules"
"""Where facts come from, beside the name of a model: nowhere, from the data set, from the rules."""

_PACKAGES = ("memcycle", "langgraph", "langchain-core", "chromadb", "wordllama", "numpy")


class Plan(BaseModel):
    """Everything a figure depends on, but the packages' versions. Nothing in a run is drawn at random.

    Attributes:
        data: The kind of data set. file, sha256: its file's name and hash.
        conversations: Ids of those that are measured, in order.
        limit: Questions a conversation at most; None for all.
        facts: Where facts come from: `none`, `observations`, `rules` or a model's name.
        model: Who answers: `rules` or a model's name. judge: who compares that with the gold; None: nobody.
        answers: Whether questions are answered, or evidence alone is searched.
        k, token_budget: Entries and tokens of evidence an answer rests on.
        settings: Theta, switches, embedder and the rest. Its home does not count: each conversation has one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    file: str
    sha256: str
    conversations: tuple[str, ...]
    limit: int | None = Field(None, ge=1)
    facts: str = RULES
    model: str = RULES
    judge: str | None = None
    answers: bool = True
    baselines: bool = True
    k: int = Field(ge=1, le=200)
    token_budget: int = Field(ge=50, le=100_000)
    settings: Settings

    @property
    def ks(self) -> tuple[int, ...]:
        """Found turns at which recall is given: the usual ones and the run's own."""
        return tuple(sorted({*KS, self.k}))

    @property
    def budgets(self) -> tuple[int, ...]:
        """Token budgets at which recall is given: the usual ones and the run's own."""
        return tuple(sorted({*BUDGETS, self.token_budget}))

    def plain(self) -> dict[str, Any]:
        """As JSON, without what does not change a figure."""
        return self.model_dump(mode="json", exclude={"settings": {"home"}})


def versions() -> dict[str, str]:
    """Versions of what a figure depends on, and by what its tokens are counted."""
    found = {"python": python_version(), "tokens": token_counter().name}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a checkout that is not installed
            found[name] = "unknown"
    return found


def first_difference(theirs: Mapping[str, Any], ours: Mapping[str, Any], place: str = "") -> str | None:
    """Where two configurations differ first, in words; None where they are the same."""
    for key in dict.fromkeys((*theirs, *ours)):
        where, left, right = f"{place}{key}", theirs.get(key), ours.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found = first_difference(left, right, f"{where}.")
            if found:
                return found
        elif left != right:
            return f"{where} was {left!r:.80} and is now {right!r:.80}"
    return None
