"""Results go into a report and come back; anything else is refused with a sentence."""

from __future__ import annotations

import pytest

from hyperscale.errors import BadInput
from hyperscale.ui.html import extract, render
from tests.unit.ui_html.sample import sample


def test_round_trip() -> None:
    results = sample()
    assert extract(render(results)) == results
    assert render(extract(render(results))) == render(results)


@pytest.mark.parametrize("page", ["", "hello", "<html><body><script>1</script></body></html>"])
def test_a_page_of_someone_else(page: str) -> None:
    with pytest.raises(BadInput, match="holds no Hyperscale results"):
        extract(page)


def test_a_damaged_report() -> None:
    html = render(sample())
    cut = html.index('"workflows":')
    with pytest.raises(BadInput, match="cannot be read"):
        extract(html[:cut] + "</script>")


def test_a_report_of_another_version() -> None:
    html = render(sample()).replace("hyperscale.results/1", "hyperscale.results/9")
    with pytest.raises(BadInput, match=r"hyperscale\.results/9"):
        extract(html)
