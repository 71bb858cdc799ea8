"""Where that lies which was written once and must be readable for ever."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden" / "ledger"
