"""The full view: asks for a snapshot four times a second, draws it, listens to the keys.

It shares a core with the load generator on small machines, so its cost is bounded by design: few
frames, only changed lines sent, plots drawn again only when the timeline grows, no waiting for the
terminal. A key press is answered at once, between frames.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from hyperscale.metrics.results import Results
from hyperscale.ui import plot
from hyperscale.ui.keys import Keyboard, is_foreground_terminal
from hyperscale.ui.live.charts import Charts
from hyperscale.ui.live.controls import Controls
from hyperscale.ui.live.guard import restored_at_exit
from hyperscale.ui.live.layout import compose
from hyperscale.ui.live.pages import Pages
from hyperscale.ui.live.scene import Scene
from hyperscale.ui.live.screen import Screen
from hyperscale.ui.live.source import Source
from hyperscale.ui.output import Output
from hyperscale.ui.window import RateWindow

FRAMES_PER_S = 4.0
_REPAINT_S = 2.0  # heals what other processes wrote onto the screen
_MESSAGE_S = 3.0
# A terminal takes some kilobytes at a time; the rest follows after this, then twice as long, ...
_FLUSH_S = 0.004


class LiveView:
    def __init__(
        self,
        stream: TextIO,
        *,
        frames_per_s: float = FRAMES_PER_S,
        environ: Mapping[str, str] | None = None,
        page: str = "",
    ) -> None:
        environ = os.environ if environ is None else environ
        self._screen = Screen(stream, environ)
        self._pen = choose_pen(stream, environ)
        self._period_s = 1.0 / frames_per_s
        self._pages = Pages()
        self._page = page
        self._charts = Charts()
        self._windows: dict[str, RateWindow] = {}
        self._frames = 0
        self._repainted = 0.0
        self._message = ("", 0.0)
        self._wake = asyncio.Event()

    def over(self) -> None:
        self._wake.set()

    async def run(self, source: Source) -> None:
        controls = Controls(source, self._pages)

        def on_key(key: str) -> None:
            if answer := controls.press(key):
                self._message = (answer, time.monotonic() + _MESSAGE_S)
            self._wake.set()

        keyboard = Keyboard(on_key)

        def restore() -> None:
            keyboard.close()
            self._screen.leave()

        with restored_at_exit(restore):
            while True:
                results = source.results()
                if _may_draw():
                    self._screen.enter()
                    keyboard.open(asyncio.get_running_loop())
                    self._frame(results, keyboard.opened)
                else:
                    restore()
                if results.state == "finished":
                    return
                await self._until_next()

    async def _until_next(self) -> None:
        """Until the next frame is due or a key was pressed; meanwhile the last frame gets out."""
        self._wake.clear()
        deadline = time.monotonic() + self._period_s
        pause_s = _FLUSH_S
        while (left := deadline - time.monotonic()) > 0 and not self._wake.is_set():
            if not self._screen.owes:
                pause_s = left
            try:
                async with asyncio.timeout(min(pause_s, left)):
                    await self._wake.wait()
            except TimeoutError:
                self._screen.flush()
            pause_s *= 2

    def _frame(self, results: Results, keyboard: bool) -> None:
        now = time.monotonic()
        for workflow in results.workflows:
            self._windows.setdefault(workflow.name, RateWindow()).add(now, workflow.requests)
        message, until = self._message
        scene = Scene(
            results=results,
            index=self._pages.index(results),
            recent_rates={name: window.per_second for name, window in self._windows.items()},
            keyboard=keyboard,
            message=message if now < until else "",
            spin=self._frames,
            pen=self._pen,
            page=self._page,
        )
        if now - self._repainted >= _REPAINT_S:
            self._repainted = now
            self._screen.forget()
        size = self._screen.size()
        self._screen.paint(compose(scene, self._charts, *size), size)
        self._frames += 1


def choose_pen(stream: TextIO, environ: Mapping[str, str]) -> plot.Pen:
    if not Output(stream, environ).unicode:
        return plot.ASCII
    # The console fonts of Linux have blocks but no braille.
    return plot.BLOCKS if environ.get("TERM") == "linux" else plot.BRAILLE


def _may_draw() -> bool:
    """Not while the shell has us in the background: the terminal is somebody else's then."""
    try:
        fd = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return True
    return not os.isatty(fd) or is_foreground_terminal(fd)
