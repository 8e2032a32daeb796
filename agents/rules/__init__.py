"""Every role without a model: deterministic, no download, and true because it only quotes what was said."""

from collections.abc import Callable
from typing import Any

from memcycle.agents.rules.answerer import answerer
from memcycle.agents.rules.consolidator import consolidator
from memcycle.agents.rules.constructor import constructor
from memcycle.agents.rules.diagnoser import diagnoser
from memcycle.agents.rules.episodes import episode_trigger, episode_writer
from memcycle.agents.rules.grader import grader
from memcycle.agents.rules.judge import fact_judge, judge
from memcycle.agents.rules.meta_thinker import answerability, guide, query_reasoner
from memcycle.agents.rules.prober import prober
from memcycle.agents.rules.refresher import refresher
from memcycle.agents.rules.repairer import repairer
from memcycle.agents.rules.retriever import retriever
from memcycle.agents.rules.verifier import verifier

RULES: dict[str, Callable[[Any], Any]] = {
    "constructor": constructor,
    "episode_trigger": episode_trigger,
    "episode_writer": episode_writer,
    "retriever": retriever,
    "judge": judge,
    "fact_judge": fact_judge,
    "refresher": refresher,
    "guide": guide,
    "answerability": answerability,
    "query_reasoner": query_reasoner,
    "answerer": answerer,
    "verifier": verifier,
    "prober": prober,
    "grader": grader,
    "repairer": repairer,
    "consolidator": consolidator,
    "diagnoser": diagnoser,
}
"""Rules by role name; each maps the role's input model to its output model."""
