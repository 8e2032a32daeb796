"""The evolve graph as `langgraph.json` names it; the Diagnoser's model from the environment."""

import os

from memcycle.agents.roles import Roles
from memcycle.evolution.evolve import build_evolve

evolve = build_evolve(Roles.from_model(os.environ.get("MEMCYCLE_MODEL") or "rules"))
