"""The graphs as `langgraph.json` names them: settings and model from the environment, opened on first use."""

import os

from memcycle.agents.pipeline import pipeline_of
from memcycle.agents.roles import Roles
from memcycle.core.settings import Settings
from memcycle.graph.memory import build_memory
from memcycle.graph.recall.graph import build_recall
from memcycle.graph.remember.graph import build_remember
from memcycle.graph.session.graph import build_session

_settings, _model = Settings.from_env(), os.environ.get("MEMCYCLE_MODEL") or None
_folder = os.environ.get("MEMCYCLE_PIPELINE")
if _folder:
    _pipeline = pipeline_of(_folder)
    _roles, _settings = _pipeline.roles(_model), _pipeline.over(_settings)
else:
    _roles = Roles.from_model(_model or "rules")

memory = build_memory(_roles, settings=_settings)
remember = build_remember(_roles, settings=_settings)
recall = build_recall(_roles, settings=_settings)
session = build_session(_roles, settings=_settings)
