"""The jobs of a round: what is planned, in numbers a target can count, and the test file for it.

One iteration is one request. Its path names the workflow and the user, and its name in the report
the worker's address: so what is reported can be compared with what was served, for each worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Model = Literal["arrivals", "users", "iterations"]

# Between two iterations of a user. Long enough for a busy machine, short beside a second.
PACING_S = 0.1
NAME = "from "

HEAD = """
import socket

from hyperscale import Workflow, depends, step
from hyperscale.testing import HTTPResponse

TARGET = {url!r}


def _own_address():
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.connect(({host!r}, {port}))
        return probe.getsockname()[0]


WORKER = {name!r} + _own_address()
"""

WORKFLOW = """

{depends}class {name}(Workflow):
    {attributes}
    graceful_stop = "{grace_s:g}s"

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get(f"{{TARGET}}/{name}/{{self.vu_id}}", name=WORKER)
"""


@dataclass(frozen=True)
class Load:
    """One workflow. `amount` is arrivals per second, users, or iterations."""

    name: str
    model: Model
    amount: int
    duration_s: float
    users: int = 0
    after: str = ""

    @property
    def planned(self) -> float:
        """Arrivals, iterations, or user-seconds."""
        return self.amount if self.model == "iterations" else self.amount * self.duration_s

    @property
    def users_max(self) -> int | None:
        """Most users at one time; an open model has as many as it takes."""
        return {"arrivals": None, "users": self.amount, "iterations": self.users}[self.model]

    def text(self, grace_s: float) -> str:
        duration = f'duration = "{self.duration_s:g}s"'
        pacing = f'pacing = "{PACING_S:g}s"'
        attributes = {
            "arrivals": [f'rate = "{self.amount}/s"', duration],
            "users": [f"vus = {self.amount}", duration, pacing],
            "iterations": [
                f"vus = {self.users}",
                f"iterations = {self.amount}",
                'max_duration = "60s"',
                pacing,
            ],
        }[self.model]
        return WORKFLOW.format(
            name=self.name,
            depends=f'@depends("{self.after}")\n' if self.after else "",
            attributes="\n    ".join(attributes),
            grace_s=grace_s,
        )

    def sentence(self) -> str:
        what = {
            "arrivals": f"{self.amount} arrivals/s for {self.duration_s:g} s",
            "users": f"{self.amount} users for {self.duration_s:g} s",
            "iterations": f"{self.amount} iterations by {self.users} users",
        }[self.model]
        return f"{self.name}: {what}" + (f" after {self.after}" if self.after else "")


@dataclass(frozen=True)
class Job:
    loads: tuple[Load, ...]
    cancel_at_s: float | None = None  # after its first request

    @property
    def planned_s(self) -> float:
        """From the first request to the last, if nothing happens."""
        return sum(load.duration_s for load in self.loads)

    def text(self, host: str, port: int, grace_s: float) -> str:
        head = HEAD.format(url=f"http://{host}:{port}", host=host, port=port, name=NAME)
        return head + "".join(load.text(grace_s) for load in self.loads)

    def sentence(self) -> str:
        told = "; ".join(load.sentence() for load in self.loads)
        return told if self.cancel_at_s is None else f"{told}; cancelled at {self.cancel_at_s:g} s"
