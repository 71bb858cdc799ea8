"""Runs the full view in the terminal it was started in; the test at the other end looks on.

Usage: python -m tests.unit.ui.pty_child SCENARIO. What the keys did goes to stdout, a pipe.
"""

from __future__ import annotations

import asyncio
import fcntl
import signal
import sys
import termios

from hyperscale.ui.live.view import LiveView
from tests.unit.ui.fake_run import FakeRun


def fail_at_third(taken: int) -> None:
    if taken == 3:
        raise RuntimeError("the source broke")


def moving_run(snapshots: int) -> FakeRun:
    """Every frame differs from the last, so that every frame has something to send."""

    def move(taken: int) -> None:
        for workflow in run.now.workflows:
            workflow.elapsed_s = float(taken)
            for step in workflow.steps:
                step.count = taken * 1000

    run = FakeRun(snapshots=snapshots, on_snapshot=move)
    return run


def make_run(scenario: str) -> FakeRun:
    match scenario:
        case "endless" | "keys":
            return FakeRun()
        case "ends":
            return FakeRun(snapshots=3)
        case "long":
            return moving_run(snapshots=300)
        case "breaks":
            return FakeRun(on_snapshot=fail_at_third)
        case "exits":
            return FakeRun(on_snapshot=lambda taken: sys.exit(7) if taken == 3 else None)
    raise ValueError(scenario)


def main() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    scenario = sys.argv[1]
    run = make_run(scenario)
    frames_per_s = 500.0 if scenario == "long" else 50.0
    asyncio.run(LiveView(sys.stderr, frames_per_s=frames_per_s).run(run))
    sys.stdout.write(",".join(run.calls))


if __name__ == "__main__":
    # Whoever started the tests may have had these ignored, as a shell does in the background.
    for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(_number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
