"""What clients may send."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hyperscale.scheduler.http.requests import JobRequest

PAYLOAD = {"url": "https://shop.example"}


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\x9b2J", "a\nb", "\u007f", "  "])
def test_a_name_that_does_something_on_a_terminal_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="visible characters"):
        JobRequest(name=name, payload=PAYLOAD)


@pytest.mark.parametrize("name", ["nightly run", "夜間　実行", "nächtlich 🌙"])
def test_names_of_all_languages_are_taken(name: str) -> None:
    assert JobRequest(name=name, payload=PAYLOAD).name == name
