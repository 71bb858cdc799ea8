"""The browser of one virtual user: `self.client.browser` in a workflow.

A user has a context of its own (cookies, cache, storage) in the Chromium of its process, and one
page in it. What a call does on the page is no request; the requests that the page makes are, each
by itself, told in the step that made the last call (docs/decisions/0047).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

from hyperscale.clients.browser.chromium import chromium_of
from hyperscale.clients.browser.exchanges import Exchanged, Exchanges, outcome_of
from hyperscale.clients.browser.vitals import BINDING, SCRIPT, Vitals
from hyperscale.clients.contract import TIMEOUT_S, Call, ProtocolClient, ProtocolPool
from hyperscale.clients.counting import note
from hyperscale.clients.extras import library
from hyperscale.clients.limits import call_timeout
from hyperscale.clients.net.failures import Failure
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.browser_options import BrowserOptions
from hyperscale.workload.browser_response import BrowserResponse, PageRequest
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT, UNRECORDED, Label, Scope

GRACE_S = 5.0  # for Playwright to say that its time is over before it is told so
SCREENSHOTS_MAX = 50  # kept by a process
SHOT_S = 5.0
ERROR_PAGE, ERROR_PAGE_S = "chrome-error://chromewebdata/", 2.0
_NET_ERROR = re.compile(r"net::ERR_\w+")  # Playwright has no other name for it
Act = Callable[[Any, BrowserResponse, float], Awaitable[None]]
_EVENTS = {
    "requestWillBeSent": Exchanges.will_be_sent,
    "requestWillBeSentExtraInfo": Exchanges.was_sent,
    "requestServedFromCache": Exchanges.of_cache,
    "responseReceived": Exchanges.answered,
    "loadingFinished": Exchanges.finished,
    "loadingFailed": Exchanges.broke,
}


class BrowserPool(ProtocolPool):
    kind = "browser"

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self._api = library("playwright.async_api", "browser")
        self.browser_options = BrowserOptions()
        if self.options.unix_socket or self.options.hosts:
            raise BadInput(
                "the browser looks names up by itself, without http.hosts and http.unix_socket",
                'write BrowserOptions(args=("--host-resolver-rules=MAP shop.example 10.0.0.7",))',
            )
        self._chromium: Any = None
        self.users: set[BrowserClient] = set()
        self.screenshots = 0

    def client(self) -> BrowserClient:
        return BrowserClient(self)

    async def start(self) -> None:
        await self.chromium()

    async def chromium(self) -> Any:
        if self._chromium is None:
            self._chromium = chromium_of(self.network.loop, self.browser_options)
            self._chromium.users += 1
        return await self._chromium.browser()

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, self._api.TimeoutError):
            return Failure(Outcome.TIMEOUT, _first_line(error))
        if isinstance(error, self._api.Error):
            code = _NET_ERROR.search(str(error))
            outcome = outcome_of(code[0]) if code else Outcome.FAILED
            return Failure(outcome, _first_line(error))
        return super().failure(error)

    async def finish(self, seconds: float) -> None:
        await super().finish(seconds)
        await self._end_users()

    async def close(self) -> None:
        await super().close()
        await self._end_users()
        chromium, self._chromium = self._chromium, None
        if chromium is not None:
            chromium.users -= 1
            if not chromium.users:
                await chromium.end()

    async def _end_users(self) -> None:
        await asyncio.gather(*(user.end() for user in list(self.users)))


class BrowserClient(ProtocolClient[BrowserPool]):
    def __init__(self, pool: BrowserPool) -> None:
        super().__init__(pool)
        self._exchanges = Exchanges(self._told)
        self._vitals = Vitals()
        self._scope: Scope = UNRECORDED
        self._opening = asyncio.Lock()
        self._context: Any = None
        self._page: Any = None
        self._line: Any = None  # to the page's DevTools
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failed_before = 0

    # -- what authors call -------------------------------------------------------------------------

    async def goto(
        self,
        url: str | URL,
        *,
        wait_until: str = "load",
        timeout: Any = None,
        name: str | None = None,
    ) -> BrowserResponse:
        """Open a page; `wait_until` is load, domcontentloaded, networkidle or commit."""
        where = URL.checked(url.value if isinstance(url, URL) else url)

        async def act(page: Any, answer: BrowserResponse, limit_ms: float) -> None:
            self._exchanges.main_name = name or (url.value if isinstance(url, URL) else None)
            try:
                got = await page.goto(where, wait_until=wait_until, timeout=limit_ms)
            except self._pool._api.Error as error:
                code = _NET_ERROR.search(str(error))
                if code and outcome_of(code[0]) is not Outcome.CANCELLED:
                    await self._error_page(page)
                raise
            if got is None:  # only a part of the page that is there already
                return
            answer.status = got.status
            if got.status >= 400:
                answer.refused(f"{got.status} {got.status_text}".rstrip())

        return await self._act("GOTO", name or where, act, timeout)

    async def click(
        self, selector: str, *, timeout: Any = None, name: str | None = None
    ) -> BrowserResponse:
        """As a person does: when the element can be seen, stands still and takes clicks."""

        async def act(page: Any, answer: BrowserResponse, limit_ms: float) -> None:
            await page.click(selector, timeout=limit_ms)
            await page.wait_for_load_state("load", timeout=limit_ms)

        return await self._act("CLICK", name or selector, act, timeout)

    async def fill(
        self, selector: str, value: str, *, timeout: Any = None, name: str | None = None
    ) -> BrowserResponse:
        async def act(page: Any, answer: BrowserResponse, limit_ms: float) -> None:
            await page.fill(selector, value, timeout=limit_ms)

        return await self._act("FILL", name or selector, act, timeout)

    async def expect(
        self,
        selector: str,
        text: str | None = None,
        *,
        timeout: Any = None,
        name: str | None = None,
    ) -> BrowserResponse:
        """Wait until the element can be seen, and says that text; the answer has what it says."""

        async def act(page: Any, answer: BrowserResponse, limit_ms: float) -> None:
            found = page.locator(selector)
            if text is not None:
                found = found.filter(has_text=text)
            await found.first.wait_for(state="visible", timeout=limit_ms)
            answer.content = (await found.first.inner_text(timeout=limit_ms)).encode()

        return await self._act("EXPECT", name or selector, act, timeout)

    async def screenshot(
        self, *, full_page: bool = False, timeout: Any = None, name: str | None = None
    ) -> BrowserResponse:
        """The page as PNG, in `content`."""

        async def act(page: Any, answer: BrowserResponse, limit_ms: float) -> None:
            answer.content = await page.screenshot(full_page=full_page, timeout=limit_ms)

        return await self._act("SCREENSHOT", name or "page", act, timeout)

    async def page(self) -> Any:
        """Playwright's page, for whatever else there is to do; its requests count as well."""
        self._scope = CURRENT.get()
        return await self._opened()

    # -- a call --------------------------------------------------------------------------------

    async def _act(self, method: str, target: str, act: Act, timeout: Any) -> BrowserResponse:
        self._scope = CURRENT.get()
        self._failed_before = self._exchanges.failed
        allowed = TIMEOUT_S if timeout is None else call_timeout(timeout)
        until = perf_counter() + allowed

        def response(label: Label) -> BrowserResponse:
            return BrowserResponse(label, target)

        async def talk(call: Call, answer: BrowserResponse) -> None:
            page = await self._opened()
            call.begin()
            try:
                left_ms = max(until - perf_counter(), 0.001) * 1e3
                await act(page, answer, left_ms)
            except self._pool._api.TimeoutError:
                what = f"{method.lower()} {target}"
                answer.fail_with(Outcome.TIMEOUT, f"{what}: not done within {allowed:g} s")
                self._exchanges.cut(Outcome.TIMEOUT, f"{target} was not there in time")
                self._behind(self._line.send("Page.stopLoading"))
            finally:
                answer.url = page.url
            # What its DevTools had to say before this is answered has been told.
            await self._line.send("Network.enable")
            answer.vitals = dict(self._vitals.of_page)
            if not answer.ok:
                await self._picture(answer)

        return await self.call(method, target, response, talk, allowed + GRACE_S)

    def counted(self, answer: Any, is_made: bool) -> None:
        """What failed without a request that did."""
        if answer.outcome is not Outcome.OK and self._exchanges.failed == self._failed_before:
            note(answer.label, answer, False)

    def _told(self, one: Exchanged) -> None:
        """A request of the page is over."""
        pool = self._pool
        request = PageRequest(pool.label(one.method, one.name), one.url)
        request.started, request.sent = one.started, one.sent
        request.first_byte, request.ended = one.first_byte, one.ended
        request.status, request.connect = one.status, one.connect
        request.bytes_in, request.bytes_out = one.bytes_in, one.bytes_out
        request.outcome, request.error = one.outcome, one.error
        before = CURRENT.set(self._scope)
        try:
            note(request.label, request, one.is_sent)
        finally:
            CURRENT.reset(before)
        if pool.trace is not None:
            pool.trace(request)

    async def _error_page(self, page: Any) -> None:
        """Chromium's own comes a moment after the error, and would break off what comes next."""
        with suppress(self._pool._api.Error):
            await page.wait_for_url(ERROR_PAGE, wait_until="commit", timeout=ERROR_PAGE_S * 1e3)

    async def _picture(self, answer: BrowserResponse) -> None:
        """Of what failed, as far as there is something to see."""
        pool = self._pool
        folder = pool.browser_options.screenshots
        if folder is None or pool.screenshots >= SCREENSHOTS_MAX:
            return
        pool.screenshots += 1
        step = re.sub(r"\W+", "-", CURRENT.get().name) or "page"
        file = Path(folder, f"{step}-{os.getpid()}-{pool.screenshots}.png")
        with suppress(pool._api.Error, TimeoutError):
            picture = await self._page.screenshot(timeout=SHOT_S * 1e3)
            _keep(file, picture)
            answer.screenshot = str(file)
            answer.error += f" (seen in {file})"

    # -- the page --------------------------------------------------------------------------------

    async def _opened(self) -> Any:
        if self._page is None or self._page.is_closed():
            async with self._opening:
                if self._page is None or self._page.is_closed():
                    await self._open()
        return self._page

    async def _open(self) -> None:
        pool, options = self._pool, self._pool.options
        if self._context is None:
            browser = await pool.chromium()
            size = pool.browser_options
            self._context = await browser.new_context(
                base_url=options.base_url or None,
                ignore_https_errors=not options.verify,
                proxy=None if options.proxy is None else {"server": options.proxy or "direct://"},
                user_agent=options.user_agent or None,
                viewport={"width": size.width, "height": size.height},
            )
            pool.users.add(self)
            await self._context.expose_binding(BINDING, self._vital)
            await self._context.add_init_script(SCRIPT)
            self._context.on("page", self._another)
        self._page = await self._context.new_page()
        self._line = await self._listen(self._page)

    def _another(self, page: Any) -> None:
        """One that a page has opened."""
        if self._line is not None and page is not self._page:
            self._behind(self._listen(page))

    async def _listen(self, page: Any) -> Any:
        line = await self._context.new_cdp_session(page)
        for name, hear in _EVENTS.items():
            line.on(f"Network.{name}", hear.__get__(self._exchanges))
        await line.send("Network.enable")
        return line

    def _vital(self, source: Any, said: Any) -> None:
        scope = self._scope
        self._vitals.told(said, lambda name, value: scope.measure(name, "distribution", value))

    def _behind(self, work: Awaitable[Any]) -> None:
        async def quietly() -> None:
            with suppress(self._pool._api.Error):
                await work

        task = asyncio.ensure_future(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        if self._context is not None and not self._pool.stopped:
            self._behind(self.end())

    async def end(self) -> None:
        """What is under way was sent, and its answer is of no use any more."""
        self._pool.users.discard(self)
        self._exchanges.cut(Outcome.CANCELLED, "the page was left before the answer came")
        self._vitals.end()
        context, self._context, self._page = self._context, None, None
        if context is not None:
            with suppress(self._pool._api.Error):
                await context.close()


def _keep(file: Path, picture: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(picture)


def _first_line(error: Exception) -> str:
    said = str(error).strip().partition("\n")[0]
    return re.sub(r"^(?:Page|Locator|Frame)\.\w+: ", "", said)
