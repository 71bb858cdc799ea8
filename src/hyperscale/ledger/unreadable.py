"""Records that a version of Hyperscale before this one wrote, or one after it."""

from __future__ import annotations

from hyperscale.errors import RunFailed

NEWER_HINT = "It was written by a newer version of Hyperscale: start that version, or a newer one."


class UnreadableRecord(RunFailed):
    """A record whose bytes are intact but mean nothing to this version."""
