"""What a call of the browser came to, as the author of a test sees it."""

from __future__ import annotations

from hyperscale.workload.replies import TCPResponse
from hyperscale.workload.results import CallResult, Outcome
from hyperscale.workload.scope import CURRENT, Label


class BrowserResponse(TCPResponse):
    """What was done on a page; the requests of the page are counted, each by itself.

    `status` is that of the page after `goto`, `content` the picture after `screenshot` and what the
    element says after `expect`. `vitals` are those of the page so far, by name, in milliseconds
    (`cls` has no unit).
    """

    __slots__ = ("screenshot", "url", "vitals")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.url = ""
        self.vitals: dict[str, float] = {}
        self.screenshot = ""  # the file of the picture that was kept, if it failed

    def fail_with(self, outcome: Outcome, error: str) -> None:
        self.outcome = outcome
        self.error = error

    def fail(self, reason: str) -> None:
        went_well = self.ok
        CallResult.fail(self, reason)
        if went_well:  # no request is to blame
            CURRENT.get().failed(self.label, self, sent=False)


class PageRequest(TCPResponse):
    """A request that a page made."""

    __slots__ = ()
