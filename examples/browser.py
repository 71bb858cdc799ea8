"""A browser: a person logs in, with the vitals of the pages that are seen.

pip install 'hyperscale-loadtest[browser]'    # and Chromium: apt-get install chromium
hyperscale demo --serve
hyperscale run examples/browser.py
"""

import os

from hyperscale import HTTPOptions, Workflow, step
from hyperscale.testing import BrowserOptions, BrowserResponse


class Visitor(Workflow):
    vus = 2
    duration = "10s"
    http = HTTPOptions(base_url=os.environ.get("TARGET", "http://127.0.0.1:8080"))
    browser = BrowserOptions(screenshots="shots")  # of what failed
    thresholds = ["browser_req_failed: rate < 1%", "browser_web_vital_lcp: p(75) < 2.5s"]

    async def flow(self):
        await self.open()
        await self.log_in()

    @step()
    async def open(self) -> BrowserResponse:
        return await self.client.browser.goto("/form")

    @step()
    async def log_in(self) -> BrowserResponse:
        browser = self.client.browser
        await browser.fill("input[name=user]", "ada")
        await browser.fill("input[name=password]", "secret")
        await browser.click("button, input[type=submit]")
        return await browser.expect("body", "token")
