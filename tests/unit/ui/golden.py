"""Compares text with a file under golden/; UPDATE_GOLDEN=1 writes the files anew, for review."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    file = _FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        _FOLDER.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
