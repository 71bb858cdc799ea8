"""The page in a real Chromium: what it shows, that it moves by itself, what it lets people do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright import sync_api as playwright

from hyperscale.scheduler.queue.spec import JobSpec
from hyperscale.scheduler.schedules import editing as schedules
from hyperscale.scheduler.schedules.schedule import ScheduleDefinition
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from tests.integration.scheduler.scheduler_process import SchedulerProcess, scheduler_process
from tests.unit.scheduler.worlds import wall_clock

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_MS = 30_000

TOKENS = """
vera viewer a-token-for-the-viewer
olga operator a-token-for-the-operator
anna admin a-token-for-the-administrator
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    with scheduler_process(tmp_path_factory.mktemp("page"), "--command") as running:
        yield running


def opened(browser: Any, url: str, **context: Any) -> Any:
    page = browser.new_context(**context).new_page()
    page.set_default_timeout(WAIT_MS)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on(
        "console",
        lambda line: page.errors.append(line.text) if line.type == "error" else None,
    )
    page.goto(url)
    return page


def test_a_schedule_appears_runs_and_shows_its_output_without_reload(
    browser: Any, scheduler: SchedulerProcess
) -> None:
    page = opened(browser, scheduler.url)
    page.get_by_text("No schedule has a run before it.").wait_for()
    with scheduler.client() as client:
        client.create_schedule(
            id="every-second",
            cron="* * * * * *",
            job={"kind": "command", "payload": {"command": "echo it ran"}},
        )
        page.get_by_role("link", name="every-second").first.wait_for()
        page.get_by_role("link", name="Schedules").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("paused", exact=True).wait_for()
        assert client.schedule("every-second")["paused"] is True
        page.get_by_role("button", name="Run now").click()
        page.locator("#yes").click()
        page.get_by_role("link", name="every-second").click()
        page.get_by_text("completed", exact=True).first.wait_for()
        page.locator("td a", has_text=":").first.click()
        page.locator("pre", has_text="it ran").wait_for()
    assert page.errors == []


def test_a_schedule_is_made_changed_and_filled_on_the_page(
    browser: Any, scheduler: SchedulerProcess
) -> None:
    page = opened(browser, f"{scheduler.url}/#/schedules")
    page.get_by_role("button", name="New schedule").click()
    page.locator("#sid").fill("made-here")
    page.locator("#cron").fill("0 25 * * *")
    page.locator("#means .bad").wait_for()
    page.locator("#cron").fill("0 3 * * *")
    page.locator("#means", has_text="in ").wait_for()
    page.locator("#kind").select_option("command")
    page.locator("#what").fill("echo made here")
    page.locator("#overlap").select_option("queue")
    page.locator("#editor").get_by_role("button", name="Save").click()
    page.get_by_role("link", name="made-here").click()
    with scheduler.client() as client:
        assert client.schedule("made-here")["cron"] == "0 3 * * *"
        page.get_by_role("button", name="Edit").click()
        page.locator("#zone").fill("Europe/Berlin")
        page.locator("#editor").get_by_role("button", name="Save").click()
        page.locator("dd", has_text="Europe/Berlin").wait_for()
        assert client.schedule("made-here")["job"]["payload"] == {"argv": '["echo","made","here"]'}
        page.get_by_role("button", name="Backfill").click()
        page.locator("#from").fill("2024-03-01T00:00")
        page.locator("#until").fill("2024-03-03T00:00")
        page.get_by_role("button", name="Make them").click()
        page.get_by_text("2 made, 0 were there, 0 skipped").wait_for()
        page.get_by_role("link", name="Schedules").click()
        page.get_by_role("link", name="Calendar").click()
        page.locator(".days").get_by_role("link", name="made-here").first.wait_for()
        client.delete_schedule("made-here")
    assert [one for one in page.errors if "422" not in one and "400" not in one] == []


def test_what_is_marked_stays_and_filters_find(browser: Any, scheduler: SchedulerProcess) -> None:
    with scheduler.client() as client:
        for name in ("findable", "other"):
            client.submit_job(name=name, kind="command", payload={"command": "echo x"})
    page = opened(browser, f"{scheduler.url}/#/jobs")
    page.locator("[name=name]").fill("findable")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="findable").wait_for()
    page.get_by_role("link", name="other").wait_for(state="detached")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('main h1'))")
    with page.expect_response("**/overview"):
        pass
    with page.expect_response("**/overview"):
        pass
    assert page.evaluate("String(getSelection())") == "Jobs"
    assert page.errors == []


def test_text_from_jobs_is_never_markup(browser: Any, scheduler: SchedulerProcess) -> None:
    with scheduler.client() as client:
        job = client.submit_job(
            name="<img src=x onerror=alert(1)>",
            kind="command",
            payload={"command": "echo '<script>alert(2)</script>'"},
        )
    page = opened(browser, f"{scheduler.url}/#/jobs/{job['job_id']}")
    page.locator("pre", has_text="<script>alert(2)</script>").wait_for()
    assert "<img src=x" in page.locator("h1").inner_text()
    assert page.locator("main img").count() == 0
    assert page.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["", "schedules", "calendar", "jobs", "workers", "letters"])
def test_every_view_fits_a_phone_in_both_themes(
    browser: Any, scheduler: SchedulerProcess, view: str, scheme: str
) -> None:
    page = opened(
        browser,
        f"{scheduler.url}/#/{view}",
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,
    )
    page.locator("h1").wait_for()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 28)")
    assert page.errors == []


def test_everything_is_stopped_and_goes_on_by_two_buttons(browser: Any, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    with (
        scheduler_process(tmp_path, "--tokens", str(tokens)) as scheduler,
        scheduler.client("a-token-for-the-administrator") as client,
    ):
        page = opened(browser, scheduler.url)
        page.locator("#token").fill("a-token-nobody-has")
        page.get_by_role("button", name="Go on").click()
        page.get_by_text("It does not know the one it was given.").wait_for()
        page.locator("#token").fill("a-token-for-the-administrator")
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="Stop everything").first.click()
        page.locator("#reason").fill("<b>bad</b> deploy")
        page.locator("#stop button[value=yes]").click()
        page.get_by_text("anna stopped everything").wait_for()
        assert client.emergency()["reason"] == "<b>bad</b> deploy"
        assert page.locator("#stopped b").count() == 0
        assert page.get_by_role("button", name="Stop everything").count() == 0
        viewer = opened(browser, scheduler.url)
        viewer.locator("#token").fill("a-token-for-the-viewer")
        viewer.get_by_role("button", name="Go on").click()
        viewer.get_by_text("anna stopped everything").wait_for()
        assert viewer.get_by_role("button", name="Let it go on").count() == 0
        page.get_by_role("button", name="Let it go on").click()
        page.locator("#yes").click()
        page.locator("#stopped").wait_for(state="hidden")
        assert client.emergency()["stopped"] is False


def test_the_printed_address_brings_the_token(browser: Any, tmp_path: Path) -> None:
    with scheduler_process(tmp_path, "--no-worker", guarded=True) as scheduler:
        page = opened(browser, f"{scheduler.url}/#token={scheduler.token()}")
        page.get_by_text("No schedule has a run before it.").wait_for()
        assert page.url == f"{scheduler.url}/#/"
        assert page.errors == []


def test_a_job_that_cannot_be_read_does_not_hide_the_others(browser: Any, tmp_path: Path) -> None:
    """Of an earlier version, which took it."""
    path = tmp_path / "jobs.db"

    async def write() -> None:
        store = Store(await SqliteGround.open(path))
        spec = JobSpec(name="odd", kind="command", payload={"argv": "not json"})
        definition = ScheduleDefinition(name="odd", job=spec, cron="@daily")
        await schedules.add(store, "odd", definition, wall_clock())
        await store.close()

    with ThreadPoolExecutor(1) as thread:  # the browser's calls have a loop in this one
        thread.submit(asyncio.run, write()).result()
    with scheduler_process(tmp_path, "--no-worker") as scheduler:
        page = opened(browser, scheduler.url)
        page.get_by_role("link", name="odd").first.wait_for()
        assert page.errors == []


def test_roles_decide_what_can_be_done(browser: Any, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    with scheduler_process(tmp_path, "--tokens", str(tokens)) as scheduler:
        with scheduler.client("a-token-for-the-operator") as client:
            client.create_schedule(
                id="guarded", cron="@daily", job={"payload": {"url": "http://127.0.0.1:1/"}}
            )
        for token, buttons in (("a-token-for-the-viewer", 0), ("a-token-for-the-operator", 3)):
            page = opened(browser, f"{scheduler.url}/#/schedules")
            page.locator("#token").fill(token)
            page.get_by_role("button", name="Go on").click()
            page.get_by_role("link", name="guarded").wait_for()
            assert page.locator("main button").count() == buttons
