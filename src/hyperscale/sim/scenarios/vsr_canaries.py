"""Replicas with the bugs that Viewstamped Replication has had; a checker must catch each."""

from __future__ import annotations

from typing import Final

from hyperscale.ledger.vsr import Group

CANARIES: Final[dict[str, str]] = {}


def plant(group: Group, canary: str) -> None:
    """Change the class of a fresh replica."""
