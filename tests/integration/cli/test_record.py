"""`hyperscale record`: what a browser was made to do runs as a test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hyperscale.cli.record import capture, until_closed
from hyperscale.importing import imported
from tests.integration.cli.program import assert_refused, hyperscale

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_what_a_browser_did_runs_as_a_test(target: str, tmp_path: Path) -> None:
    def act(context: Any) -> None:
        (page,) = context.pages
        asked = "url => fetch(url, {method: 'POST', body: '{\"item\": 7}'}).then(a => a.status)"
        page.evaluate(asked, f"{target}/echo")
        page.close()
        until_closed(context)

    pytest.importorskip("playwright")
    capture(f"{target}/json", tmp_path / "shop.har", act, shown=False)
    made = imported(tmp_path / "shop.har", tmp_path / "shop.py")
    (tmp_path / "shop.py").write_text(made.source)
    assert ".get(" in made.source
    assert ".post(" in made.source
    ended = hyperscale("run", "shop.py", "-i", 2, "-w", 1, cwd=tmp_path)
    assert ended.code == 0, (ended, made.source)


def test_bad_input_is_a_sentence(tmp_path: Path) -> None:
    assert_refused(hyperscale("record", "shop.example", cwd=tmp_path), "is no URL of a page")
    (tmp_path / "shop_example.py").write_text("")
    ended = hyperscale("record", "http://shop.example/", cwd=tmp_path)
    assert_refused(ended, "shop_example.py exists already")
