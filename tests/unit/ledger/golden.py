"""Reads the records that were written once and must be readable for ever."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden" / "ledger"


def golden(name: str) -> dict[str, bytes]:
    lines = (FOLDER / name).read_text().splitlines()
    pairs = (line.split(" ", 1) for line in lines if line)
    return {label: bytes.fromhex(text) for label, text in pairs}
