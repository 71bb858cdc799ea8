"""The page of a run and the page of a folder in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.metrics.results import encode
from hyperscale.reporting import load
from hyperscale.target.process import running
from tests.integration.web.pages import TEST, chromium, opened, program
from tests.unit.ui.sample import sample_results


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(TEST)
    return path


def test_a_run_is_seen_steered_and_kept(
    browser: Any, target: str, test_file: Path, tmp_path: Path
) -> None:
    results = tmp_path / "results.json"
    words = ["run", str(test_file), "--web", "--web-bind", "127.0.0.1:0", f"--json={results}"]
    with program([*words, "-w", "1"], tmp_path, TARGET=target) as run:
        page = opened(browser, run.url)
        page.locator(".state", has_text="running").wait_for()
        page.locator("tr", has_text="GET pay").get_by_text("100 %").wait_for()
        page.get_by_text("✕ crossed").wait_for()
        # What the test and the target said is text, never markup.
        page.locator("summary", has_text="ValueError").click()
        page.locator("pre", has_text="<img src=x onerror=alert(1)>").first.wait_for()
        assert page.locator("main img").count() == 0
        # Steered by buttons and by keys, each of which shows in what the run says of itself.
        page.get_by_role("button", name="Pause").click()
        page.locator(".state", has_text="paused").wait_for()
        page.keyboard.press("p")
        page.locator(".state", has_text="running").wait_for()
        page.get_by_label("Users the workflow shall have").fill("5")
        page.get_by_role("button", name="Set").first.click()
        page.locator("#events li", has_text="added 2 VUs").wait_for()
        page.keyboard.press("-")
        page.locator("#events li", has_text="removed 1 VU").wait_for()
        # Sorted and filtered.
        page.locator("#steps th button", has_text="Failed").click()
        assert "pay" in page.locator("#steps tbody tr").first.inner_text()
        page.keyboard.press("/")
        page.keyboard.type("brow")
        page.locator("#steps tbody tr").filter(has_text="pay").wait_for(state="detached")
        page.keyboard.press("Escape")
        # A second one at phone width and in the dark has all of it at once.
        phone = opened(
            browser, run.url, viewport={"width": 390, "height": 844}, color_scheme="dark"
        )
        phone.locator("#events li", has_text="removed 1 VU").wait_for()
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        background = phone.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(20, 24, 28)"
        # Every curve and the heat map are drawn.
        assert phone.locator(".throughput path.line.requests").get_attribute("d")
        assert phone.evaluate(
            "(() => { const c = document.querySelector('.heat canvas');"
            "return c.getContext('2d').getImageData(0, 0, c.width, c.height)"
            ".data.some((byte) => byte); })()"
        )
        phone.context.close()
        page.keyboard.press("s")
        page.get_by_role("button", name="Stop gracefully").click()
        page.locator(".verdict h2").wait_for()
        # The end stays for as long as somebody looks at it, with its files.
        with page.expect_download() as download:
            page.get_by_role("link", name="JSON").click()
        told = json.loads(Path(download.value.path()).read_text())
        page.reload()
        page.locator(".verdict h2", has_text="Stopped").wait_for()
        with page.context.expect_page() as report:
            page.get_by_role("link", name="Report", exact=True).click()
        report.value.get_by_role("heading", name="Shop").first.wait_for()
        assert page.errors == phone.errors == []
        page.context.close()
        assert run.ends() == 105
    kept = load(results)
    shown = sum(step["count"] for workflow in told["workflows"] for step in workflow["steps"])
    assert shown == kept.requests > 0


def test_a_folder_shows_compares_and_starts_runs(
    browser: Any, target: str, test_file: Path, tmp_path: Path
) -> None:
    for place, name in enumerate(("monday", "tuesday")):
        sample = sample_results("finished")
        for step in (step for workflow in sample.workflows for step in workflow.steps):
            step.series = []  # no run has such points
        sample.started_at = f"2026-01-0{place + 1}T00:00:00+00:00"
        (tmp_path / f"{name}.json").write_bytes(encode(sample))
    with program(["web", str(tmp_path), "--bind", "127.0.0.1:0"], tmp_path, TARGET=target) as web:
        page = opened(browser, web.url)
        page.locator("tbody tr").nth(1).wait_for()
        for box in page.locator("tbody input").all():
            box.check()
        with page.context.expect_page() as compared:
            page.get_by_role("link", name="Compare 2 runs").click()
        compared.value.get_by_role("heading", name="What changed").wait_for()
        compared.value.close()
        page.get_by_role("link", name="Start", exact=True).click()
        page.locator("#vus").fill("lots")
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator(".empty pre", has_text="lots").wait_for()
        page.get_by_role("link", name="Start", exact=True).click()
        page.locator("#vus").fill("2")
        page.locator("#iterations").fill("40")
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator(".verdict h2").wait_for()
        page.get_by_role("link", name="Report", exact=True).wait_for()
        page.get_by_role("link", name="Runs", exact=True).click()
        page.locator("tbody tr", has_text="shop-").wait_for()
        assert page.locator("tbody tr").count() == 3
        assert page.errors == []
        page.context.close()
    (written,) = tmp_path.glob("shop-*.json")
    assert sum(workflow.iterations for workflow in load(written).workflows) == 40


def test_elsewhere_the_address_brings_the_token_and_the_page_comes_back_by_itself(
    browser: Any, tmp_path: Path
) -> None:
    token = "a-token-for-the-tests"
    words = ["web", str(tmp_path), "--bind", "127.0.0.1:0"]
    with program(words, tmp_path, HYPERSCALE_WEB_TOKEN=token) as web:
        page = opened(browser, web.url)
        page.locator("#connection", has_text="connected").wait_for()
        assert page.url.endswith("#/runs")
        assert token not in page.evaluate("document.cookie")
        place = web.url.partition("://")[2].partition("/")[0]
        stranger = opened(browser, f"http://{place}/")
        stranger.locator("#token").fill("a-token-nobody-has")
        stranger.get_by_role("button", name="Go on").last.click()
        stranger.get_by_text("That was not the one.").wait_for()
        stranger.context.close()
        web.stop()
        page.locator("#connection", has_text="connecting again").wait_for()
        again = ["web", str(tmp_path), "--bind", place]
        with program(again, tmp_path, HYPERSCALE_WEB_TOKEN=token):
            page.locator("#connection", has_text="connected").wait_for()
        page.context.close()
