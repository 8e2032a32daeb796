"""Graphs for a development server whose clock a test sets: minutes since Monday, in the file `clock`."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memcycle import Settings, build_memory, build_session
from memcycle.core.world import World
from memcycle.stores.bank import Bank, shared_bank

_settings = Settings.from_env()
_clock = Path(os.environ["MEMCYCLE_HOME"]).parent / "clock"


def _now() -> datetime:
    return datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(minutes=float(_clock.read_text()))


def _bank() -> Bank:
    return shared_bank(_settings, world=World(now=_now))


memory = build_memory(bank=_bank, settings=_settings)
session = build_session(bank=_bank, settings=_settings)
