"""What clients, managers and workers say to each other, one module per subject."""

from __future__ import annotations

import msgspec


class Fields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The shape of all messages between nodes: named fields, the default ones left out."""
