"""Roles: all of them as one frozen set of runnables; replace any with `dataclasses.replace`."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda

from memcycle.agents.answerability import AnswerabilityInput, AnswerabilityOutput
from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.constructor import ConstructorInput, ConstructorOutput
from memcycle.agents.diagnoser import DiagnoserInput, DiagnoserOutput
from memcycle.agents.episode_trigger import EpisodeTriggerInput, EpisodeTriggerOutput
from memcycle.agents.episode_writer import EpisodeWriterInput, EpisodeWriterOutput
from memcycle.agents.fact_judge import FactJudgeInput, FactJudgeOutput
from memcycle.agents.grader import GraderInput, GraderOutput
from memcycle.agents.guide import GuideInput, GuideOutput
from memcycle.agents.judge import JudgeInput, JudgeOutput
from memcycle.agents.prober import ProberInput, ProberOutput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.refresher import RefresherInput, RefresherOutput
from memcycle.agents.repairer import RepairerInput, RepairerOutput
from memcycle.agents.retriever import RetrieverInput, RetrieverOutput
from memcycle.agents.runner import ModelRole, model_label
from memcycle.agents.verifier import VerifierInput, VerifierOutput
from memcycle.agents.views import RoleOutput
from memcycle.core.errors import BadInput
from memcycle.prompts import PromptSet


def run_rules(name: str, value: Any) -> Any:
    """The output of a role's rules, whatever runs the role."""
    # Imported on first use: the word lists of the rules cost nothing to those who bring models.
    from memcycle.agents.rules import RULES

    return RULES[name](value)


def _rules(name: str) -> Any:
    return field(default_factory=lambda: RunnableLambda(partial(run_rules, name), name=f"{name}_rules"))


@dataclass(frozen=True)
class Roles:
    """One runnable a role, from its input model to its output model. Each defaults to its rules."""

    constructor: Runnable[ConstructorInput, ConstructorOutput] = _rules("constructor")
    episode_trigger: Runnable[EpisodeTriggerInput, EpisodeTriggerOutput] = _rules("episode_trigger")
    episode_writer: Runnable[EpisodeWriterInput, EpisodeWriterOutput] = _rules("episode_writer")
    retriever: Runnable[RetrieverInput, RetrieverOutput] = _rules("retriever")
    judge: Runnable[JudgeInput, JudgeOutput] = _rules("judge")
    fact_judge: Runnable[FactJudgeInput, FactJudgeOutput] = _rules("fact_judge")
    refresher: Runnable[RefresherInput, RefresherOutput] = _rules("refresher")
    guide: Runnable[GuideInput, GuideOutput] = _rules("guide")
    answerability: Runnable[AnswerabilityInput, AnswerabilityOutput] = _rules("answerability")
    query_reasoner: Runnable[QueryReasonerInput, QueryReasonerOutput] = _rules("query_reasoner")
    answerer: Runnable[AnswererInput, AnswererOutput] = _rules("answerer")
    verifier: Runnable[VerifierInput, VerifierOutput] = _rules("verifier")
    prober: Runnable[ProberInput, ProberOutput] = _rules("prober")
    grader: Runnable[GraderInput, GraderOutput] = _rules("grader")
    repairer: Runnable[RepairerInput, RepairerOutput] = _rules("repairer")
    consolidator: Runnable[ConsolidatorInput, ConsolidatorOutput] = _rules("consolidator")
    diagnoser: Runnable[DiagnoserInput, DiagnoserOutput] = _rules("diagnoser")
    model_name: str = "rules"

    def __post_init__(self) -> None:
        for name in self.names():
            if not isinstance(getattr(self, name), Runnable):
                given = type(getattr(self, name)).__name__
                raise BadInput(f"roles: {name} must be a Runnable, as RunnableLambda(...) is, not a {given}")

    @classmethod
    def rules(cls) -> "Roles":
        """All roles without a model: deterministic and extractive."""
        return cls()

    @classmethod
    def from_model(
        cls,
        model: str | BaseChatModel,
        *,
        overrides: Mapping[str, str | BaseChatModel] | None = None,
        prompts: PromptSet | None = None,
        **model_args: Any,
    ) -> "Roles":
        """All roles on a chat model, some on another.

        Args:
            model: `rules`, a name as `open_model` reads it (`openai:NAME`, `anthropic:NAME`, ...), or any
                `BaseChatModel`.
            overrides: Model by role name.
            prompts: Prompts; the shipped ones by default.
            **model_args: For named models: `base_url`, `api_key`, `timeout`, `max_retries`, ...

        Raises:
            ModelUnavailable: unknown model name, missing key or package.
            BadInput: an override for a role that does not exist.
        """
        # Loaded where it is needed: the clients of model servers take a second.
        from memcycle.agents.models import open_models

        roles, overrides = cls(), overrides or {}
        if not isinstance(overrides, Mapping):
            raise BadInput(f"overrides must be a dict from role to model, not a {type(overrides).__name__}")
        unknown = sorted(set(overrides) - set(roles.names()))
        if unknown:
            raise BadInput(f"no role {', '.join(map(repr, unknown))}; roles are {', '.join(roles.names())}")
        models = open_models({role: overrides.get(role, model) for role in roles.names()}, model_args)
        texts = prompts or PromptSet.shipped()
        on_models: dict[str, Any] = {
            role: ModelRole(role, OUTPUTS[role], chat, texts) for role, chat in models.items()
        }
        name = model if isinstance(model, str) else model_label(model)
        return dataclasses.replace(roles, **on_models, model_name=name)

    def by_rules(self, name: str) -> bool:
        """Whether this role runs without a model, by the shipped rules."""
        return getattr(getattr(self, name), "name", None) == f"{name}_rules"

    def names(self) -> list[str]:
        """Names of the roles, in the order of the cycle."""
        return [f.name for f in dataclasses.fields(self) if f.name != "model_name"]


OUTPUTS: dict[str, type[RoleOutput]] = {
    name: get_args(hint)[1] for name, hint in get_type_hints(Roles).items() if name != "model_name"
}
"""Output model by role, in the order of the cycle."""
