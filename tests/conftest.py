"""How property tests draw their examples.

The same ones in every run by default, so that a change is not held up by a find that another one made, and
without a deadline, since machines are slow at times. `HYPOTHESIS_PROFILE=explore` draws many new ones; what
it finds is mended and kept as an `@example`.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile(
    "explore", max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
