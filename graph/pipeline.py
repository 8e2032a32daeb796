"""A pipeline: roles, prompts, theta and switches as one loadable, versioned object, with its graphs.

Whole pipelines can be compared, and evolved as a tree of runnable versions (MemPro).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput, first_complaint
from memcycle.core.jsonl import read_object, write_object
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches, Theta
from memcycle.graph.context import Context
from memcycle.graph.environment import Env, make_env
from memcycle.graph.memory import memory_graph
from memcycle.graph.recall.graph import recall_graph
from memcycle.graph.remember.graph import remember_graph
from memcycle.graph.session.graph import session_graph
from memcycle.prompts import PromptSet

if TYPE_CHECKING:
    from memcycle.stores.bank import Bank

GraphName = Literal["memory", "remember", "recall", "session"]
GRAPHS: dict[GraphName, Callable[[Env], CompiledStateGraph[Any, Context, Any, Any]]] = {
    "memory": memory_graph,
    "remember": remember_graph,
    "recall": recall_graph,
    "session": session_graph,
}


class PipelineSpec(BaseModel):
    """What a pipeline file holds: JSON, unknown keys refused by name.

    Attributes:
        model: `rules` or a model name for all roles. models: names by role.
        prompts: Prompt texts by role, laid over the shipped ones.
        parent: Version of the pipeline it was made from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "rules"
    models: dict[str, str] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    theta: Theta = Field(default_factory=Theta)
    switches: Switches = Field(default_factory=Switches)
    parent: str | None = None

    @property
    def version(self) -> str:
        """12 hexadecimal digits of what it does: equal for equal pipelines, whoever their parent is."""
        content = self.model_dump(mode="json", exclude={"parent"})
        text = json.dumps([content, _shipped_prompts()], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _shipped_prompts() -> list[str]:
    prompts = PromptSet.shipped()
    return [prompts.version(role) for role in Roles().names()]


@dataclass(frozen=True)
class Pipeline:
    """A runnable pipeline over a bank.

    Attributes:
        spec: What it is made of. roles: the runnables.
        settings: The bank's settings with the spec's theta and switches.
    """

    spec: PipelineSpec
    roles: Roles
    settings: Settings
    bank: "Bank | None" = None

    @classmethod
    def load(
        cls, source: "Path | str | Mapping[str, Any] | PipelineSpec", bank: "Bank", **model_args: Any
    ) -> "Pipeline":
        """A pipeline from a JSON file, a mapping or a spec, over a bank.

        Raises:
            BadInput: unreadable file, or a key or value that does not fit, by name.
            ModelUnavailable: a model that cannot be used. PromptError: a prompt that cannot be used.
        """
        spec = source if isinstance(source, PipelineSpec) else _read_spec(source)
        prompts = PromptSet.shipped().overlay(spec.prompts) if spec.prompts else None
        roles = Roles.from_model(spec.model, overrides=spec.models, prompts=prompts, **model_args)
        settings = bank.settings.model_copy(update={"theta": spec.theta, "switches": spec.switches})
        return cls(spec, roles, settings, bank)

    @property
    def version(self) -> str:
        """The version id, recorded on every entry the pipeline makes."""
        return self.spec.version

    def save(self, path: Path | str) -> None:
        """Writes the spec as JSON, whole or not at all."""
        write_object(Path(path), self.spec.model_dump(mode="json"))

    def graph(self, name: GraphName) -> CompiledStateGraph[Any, Context, Any, Any]:
        """One of its graphs, compiled."""
        return GRAPHS[name](make_env(self.roles, self.bank, self.settings, version=self.version))


def _read_spec(source: "Path | str | Mapping[str, Any]") -> PipelineSpec:
    content = source if isinstance(source, Mapping) else read_object(Path(source))
    try:
        return PipelineSpec.model_validate(content)
    except ValidationError as error:
        where = "pipeline" if isinstance(source, Mapping) else f"pipeline {source}"
        raise BadInput(f"{where}: {first_complaint(error)}") from error
