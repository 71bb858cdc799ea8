"""What no file of the repository says: numbers of a document that is not in it, words for which
the glossary has another."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
# "S-47", "B T-22", "DECISIONS 17"; SHA-1 and CVE-2020 are names, F-0 is a key of a test.
_NUMBERS = re.compile(r"\b(?:[A-GST]-[1-9]\d*|DECISIONS ?\d*)\b")
_GONE = re.compile(
    r"\b(?:annex|appetite|casting|courier|desk|doorkeeper|engagement|foreman|homeless|keeper|leash"
    r"|mourn|obituary|office|offstage|onlooker|performer|shelf|soloist|usher)s?\b",
    re.IGNORECASE,
)
_WORDS_OF_NAMES = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


CHANGES = "CHANGELOG.md"  # says what was renamed


def texts() -> Iterator[tuple[str, str]]:
    listed = ["git", "ls-files", "*.py", "*.md", "*.toml", "*.yaml", "*.yml", "Makefile"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).splitlines():
        path = ROOT / name
        if path != Path(__file__) and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def test_no_number_of_a_document_that_is_elsewhere() -> None:
    assert [(name, found) for name, text in texts() for found in _NUMBERS.findall(text)] == []


def test_no_word_that_the_glossary_replaced() -> None:
    found = [
        (name, word)
        for name, text in texts()
        if name != CHANGES
        for word in _GONE.findall(_WORDS_OF_NAMES.sub(" ", text))
    ]
    assert found == []
