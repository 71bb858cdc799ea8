"""Wall-clock time judges nothing here: a busy machine is no bug."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hyperscale", deadline=None)
settings.load_profile("hyperscale")
