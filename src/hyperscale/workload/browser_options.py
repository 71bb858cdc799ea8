"""How the browser of a workflow is: `browser = BrowserOptions(screenshots="out/shots")`."""

from __future__ import annotations

import msgspec

from hyperscale.errors import BadInput


class BrowserOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    executable: str | None = None  # None: a Chromium or Chrome of the path, or of Playwright
    args: tuple[str, ...] = ()  # more flags of its command line
    width: int = 1280
    height: int = 720
    screenshots: str | None = None  # a folder for pictures of what failed, made when needed

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise BadInput(f"browser has a window of {self.width} x {self.height}")
        if isinstance(self.args, str) or not all(isinstance(arg, str) for arg in self.args):
            raise BadInput(
                f"browser.args is {self.args!r} but must be a tuple of flags",
                'write args=("--lang=de",)',
            )
