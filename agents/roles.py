"""Roles: all of them as one frozen set of runnables; replace any with `dataclasses.replace`."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel

from memcycle.agents.answerer import AnswererInput, AnswererOutput
from memcycle.agents.consolidator import ConsolidatorInput, ConsolidatorOutput
from memcycle.agents.constructor import ConstructorInput, ConstructorOutput
from memcycle.agents.diagnoser import DiagnoserInput, DiagnoserOutput
from memcycle.agents.episodes import TriggerInput, TriggerOutput, WriterInput, WriterOutput
from memcycle.agents.grader import GraderInput, GraderOutput
from memcycle.agents.judge import FactJudgeInput, FactJudgeOutput, JudgeInput, JudgeOutput
from memcycle.agents.meta_thinker import AnswerabilityInput, AnswerabilityOutput, GuideInput, GuideOutput
from memcycle.agents.prober import ProberInput, ProberOutput
from memcycle.agents.query_reasoner import QueryReasonerInput, QueryReasonerOutput
from memcycle.agents.refresher import RefresherInput, RefresherOutput
from memcycle.agents.repairer import RepairerInput, RepairerOutput
from memcycle.agents.retriever import RetrieverInput, RetrieverOutput
from memcycle.agents.verifier import VerifierInput, VerifierOutput

if TYPE_CHECKING:
    from memcycle.prompts import PromptSet

OUTPUTS: dict[str, type[BaseModel]] = {
    "constructor": ConstructorOutput,
    "episode_trigger": TriggerOutput,
    "episode_writer": WriterOutput,
    "retriever": RetrieverOutput,
    "judge": JudgeOutput,
    "fact_judge": FactJudgeOutput,
    "refresher": RefresherOutput,
    "guide": GuideOutput,
    "answerability": AnswerabilityOutput,
    "query_reasoner": QueryReasonerOutput,
    "answerer": AnswererOutput,
    "verifier": VerifierOutput,
    "prober": ProberOutput,
    "grader": GraderOutput,
    "repairer": RepairerOutput,
    "consolidator": ConsolidatorOutput,
    "diagnoser": DiagnoserOutput,
}


def run_rules(name: str, value: Any) -> Any:
    """The output of a role's rules, whatever runs the role."""
    # Imported on first use: the word lists of the rules cost nothing to those who bring models.
    from memcycle.agents.rules import RULES

    return RULES[name](value)


def _rules(name: str) -> Any:
    def run(value: Any) -> Any:
        return run_rules(name, value)

    return field(default_factory=lambda: RunnableLambda(run, name=f"{name}_rules"))


@dataclass(frozen=True)
class Roles:
    """One runnable a role, from its input model to its output model. Each defaults to its rules."""

    constructor: Runnable[ConstructorInput, ConstructorOutput] = _rules("constructor")
    episode_trigger: Runnable[TriggerInput, TriggerOutput] = _rules("episode_trigger")
    episode_writer: Runnable[WriterInput, WriterOutput] = _rules("episode_writer")
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
        prompts: "PromptSet | None" = None,
        **model_args: Any,
    ) -> "Roles":
        """All roles on a chat model, some on another.

        Args:
            model: `openai:NAME`, any `BaseChatModel`, or `rules`.
            overrides: Model by role name.
            prompts: Prompts; the shipped ones by default.
            **model_args: For named models: `base_url`, `api_key`, `timeout`, `max_retries`, ...

        Raises:
            ModelUnavailable: unknown model name, missing key.
            BadInput: an override for a role that does not exist.
        """
        from memcycle.agents.models import roles_on_models

        return roles_on_models(cls(), model, overrides or {}, prompts, model_args)

    def by_rules(self, name: str) -> bool:
        """Whether this role runs without a model, by the shipped rules."""
        return getattr(getattr(self, name), "name", None) == f"{name}_rules"

    def names(self) -> list[str]:
        """Names of the roles, in the order of the cycle."""
        return [f.name for f in dataclasses.fields(self) if f.name != "model_name"]
