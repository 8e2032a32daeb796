"""How property tests draw their examples, and where homes of tests lie.

Examples are the same ones in every run by default, so that a change is not held up by a find that another
one made, and without a deadline, since machines are slow at times. `HYPOTHESIS_PROFILE=explore` draws many
new ones; what it finds is mended and kept as an `@example`.

Homes lie in memory where there is room: each write of a ledger waits for the disk, which took more than half
of a run. `PYTEST_DEBUG_TEMPROOT` names another folder.
"""

import os
import shutil
from pathlib import Path

from hypothesis import HealthCheck, settings

IN_MEMORY = Path("/dev/shm")
ROOM = 2 * 1024**3

if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "explore", max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
