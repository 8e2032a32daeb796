"""The graphs of evolution as `langgraph.json` names them; the Diagnoser's model from the environment."""

import os

from memcycle.agents.roles import Roles
from memcycle.evolution.evolve import build_evolve
from memcycle.evolution.program.graph import build_program

_roles = Roles.from_model(os.environ.get("MEMCYCLE_MODEL") or "rules")
evolve = build_evolve(_roles)
program = build_program(_roles)
