"""The Chromium of a process: started once, shared by all workflows and users in it.

It is a child of Playwright's driver, which ends it when the pipe to us closes, however we end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from hyperscale.clients.extras import library
from hyperscale.errors import BadInput, RunFailed
from hyperscale.workload.browser_options import BrowserOptions

START_S = 60.0  # on a machine that is busy
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Nothing but what pages ask for, all of it where it is counted: a frame of another site would be a
# target of its own.
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-site-isolation-trials",
    "--disable-sync",
    "--no-first-run",
)


class Chromium:
    """`users` are the pools that have it."""

    def __init__(self, options: BrowserOptions) -> None:
        self._options = options
        self._starting: asyncio.Task[Any] | None = None
        self._playwright: Any = None
        self.users = 0

    async def browser(self) -> Any:
        """Playwright's. Raises BadInput or RunFailed."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> Any:
        api = library("playwright.async_api", "browser")
        try:
            async with asyncio.timeout(START_S):
                self._playwright = await api.async_playwright().start()
                browser = await self._playwright.chromium.launch(
                    executable_path=_executable(self._options, self._playwright),
                    args=[*FLAGS, *_of_root(), *self._options.args],
                    handle_sigint=False,  # a run that is stopped lets pages end first
                    handle_sigterm=False,
                    handle_sighup=False,
                )
                # The first page of a Chromium takes a second longer than the next one.
                context = await browser.new_context()
                await (await context.new_page()).goto("about:blank")
                await context.close()
                return browser
        except (api.Error, TimeoutError) as error:
            said = str(error).strip().partition("\n")[0] or f"it took longer than {START_S:.0f} s"
            raise RunFailed(
                f"Chromium does not start: {said}",
                "run it by hand with --headless; BrowserOptions(args=...) takes flags for it, and "
                "a worker has to do without its sandbox (hyperscale worker --sandbox off)",
            ) from error

    async def end(self) -> None:
        starting, self._starting = self._starting, None
        if starting is None:
            return
        with suppress(Exception, asyncio.CancelledError):  # it may be gone already
            browser = await starting
            await browser.close()
        if self._playwright is not None:
            await self._playwright.stop()
            self._playwright = None


def _of_root() -> tuple[str, ...]:
    """Chromium's sandbox is not for root, which it refuses to start with."""
    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def _executable(options: BrowserOptions, playwright: Any) -> str:
    if options.executable is not None:
        named = Path(options.executable).expanduser()
        if not named.is_file():
            raise BadInput(f"browser.executable {options.executable} is not there")
        return str(named)
    own = str(playwright.chromium.executable_path)
    found = next(filter(None, map(shutil.which, NAMES)), own if Path(own).is_file() else None)
    if found is None:
        raise BadInput(
            "self.client.browser needs Chromium or Chrome, and none is on the path",
            "apt-get install chromium, playwright install chromium, or name it: "
            'browser = BrowserOptions(executable="/opt/chrome/chrome")',
        )
    return found


_running: dict[tuple[asyncio.AbstractEventLoop, BrowserOptions], Chromium] = {}


def chromium_of(loop: asyncio.AbstractEventLoop, options: BrowserOptions) -> Chromium:
    """The one of this process, for whom the options are the same as far as it is concerned."""
    key = (loop, BrowserOptions(executable=options.executable, args=options.args))
    for known in [one for one in _running if one[0].is_closed()]:
        del _running[known]
    return _running.setdefault(key, Chromium(options))
