"""What a page that is open costs the run: requests per CPU second with `--web` and a Chromium that
looks, against the same run without; and what the page itself takes with 1,000 steps and an hour.

    python benchmarks/page.py [--rounds 5] [--seconds 8]

CPU time is that of the run's processes from start to end; the browser's and the target's are not in
it. Rounds take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from hyperscale.reporting import load
from hyperscale.target.process import running

TEST = """
import os
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse


class Load(Workflow):
    vus = 64

    @step()
    async def read(self, url: URL = os.environ["TARGET"] + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


def requests_per_cpu_second(test: Path, seconds: int, url: str, browser: Any | None) -> float:
    results, said = test.with_suffix(".json"), test.with_suffix(".txt")
    words = ["run", str(test), "-w", "1", "-d", f"{seconds}s", "--ui", "none", f"--json={results}"]
    words += ["--web", "--web-bind", "127.0.0.1:0"] if browser is not None else []
    with said.open("wb") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", "hyperscale", *words],
            env={**os.environ, "TARGET": url},
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    page = None
    if browser is not None:
        while not (found := re.search(r"http://\S+", said.read_text())):
            time.sleep(0.02)
        page = browser.new_page()
        page.goto(found[0])
        page.locator(".state", has_text="running").wait_for()
        page.locator(".verdict h2").wait_for(timeout=60_000)
        page.close()
    _, _, usage = os.wait4(run.pid, 0)
    return load(results).requests / (usage.ru_utime + usage.ru_stime)


def page_itself(browser: Any) -> None:
    source = Path(__file__).parent / "page_source.py"
    with tempfile.TemporaryDirectory() as directory:
        said = Path(directory) / "said.txt"
        with said.open("wb") as file:
            served = subprocess.Popen([sys.executable, str(source)], stdout=file)
        try:
            while not (found := re.search(r"http://\S+", said.read_text())):
                time.sleep(0.02)
            page = browser.new_page()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})

            def cpu_ms() -> tuple[float, float]:
                told = session.send("Performance.getMetrics")["metrics"]
                seconds = {one["name"]: one["value"] for one in told}
                styled = seconds["LayoutDuration"] + seconds["RecalcStyleDuration"]
                return 1000 * seconds["ScriptDuration"], 1000 * styled

            page.goto(found[0])
            page.locator("table.steps tbody tr").nth(40).wait_for()
            steps_ms = page.evaluate("performance.now()")
            paint_ms = page.evaluate("performance.getEntriesByType('paint')[0].startTime")
            print(f"first paint {paint_ms:.0f} ms, steps and charts {steps_ms:.0f} ms")
            for shown in ("50 rows", "all 1,000 rows"):
                before, begun = cpu_ms(), page.evaluate("hyperscaleSpentMs.length")
                page.wait_for_timeout(10_000)
                after = cpu_ms()
                updates = page.evaluate("hyperscaleSpentMs.length") - begun
                script, styled = ((b - a) / updates for a, b in zip(before, after, strict=True))
                print(f"{shown}: {script:.1f} ms of script an update, {styled:.1f} ms of layout")
                if shown == "50 rows":
                    page.get_by_role("button", name="Show all 1,000").click()
        finally:
            served.kill()
            served.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as directory,
        running() as url,
        sync_playwright() as playwright,
    ):
        test = Path(directory) / "load.py"
        test.write_text(TEST)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        ratios = []
        for number in range(given.rounds):
            order = [None, browser] if number % 2 else [browser, None]
            found = {
                each is not None: requests_per_cpu_second(test, given.seconds, url, each)
                for each in order
            }
            ratios.append(found[True] / found[False])
            print(
                f"without {found[False]:,.0f}, with {found[True]:,.0f} requests per CPU second: "
                f"{ratios[-1]:.3f}"
            )
        print(f"ratio {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
        page_itself(browser)
        browser.close()


if __name__ == "__main__":
    main()
