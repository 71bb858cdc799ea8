"""Properties: the same cases on every run, so that a failure is the change's; `make soak` looks
for new ones, ten times as many. Wall-clock time judges nothing: a busy machine is no bug.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("soak", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("soak" if os.environ.get("TESTS_SOAK") else "fixed")
