"""The graphs as `langgraph.json` names them: settings and model from the environment, opened on first use."""

import os

from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.graph.memory import build_memory
from memcycle.graph.recall.graph import build_recall
from memcycle.graph.remember.graph import build_remember
from memcycle.graph.session.graph import build_session

_settings = Settings.from_env()
_roles = Roles.from_model(os.environ.get("MEMCYCLE_MODEL") or "rules")

memory = build_memory(_roles, settings=_settings)
remember = build_remember(_roles, settings=_settings)
recall = build_recall(_roles, settings=_settings)
session = build_session(_roles, settings=_settings)
