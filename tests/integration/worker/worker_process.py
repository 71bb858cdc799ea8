"""A real worker as a process of its own, started from a JSON object on its command line.

SIGUSR1 plants a bug in what it does by the clock.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil

from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.worker.process import serve
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import run

DEADLINE_S = 30.0


class WorkerProcess:
    def __init__(self, folder: Path, seed: tuple[str, int], **settings: Any) -> None:
        told = {"data": str(folder / "w1"), "seed": seed, "settings": settings}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._lines.extend(iter(self._process.stderr.readline, ""))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def text(self) -> str:
        return "".join(self._lines)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def generators(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def exit_code(self) -> int:
        return self._process.wait(DEADLINE_S)

    def end(self) -> None:
        if self.alive:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait(DEADLINE_S)
        self._listener.join(DEADLINE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()


def break_on_signal(worker: Worker) -> None:
    def broken(_now: float) -> None:
        raise KeyError("a bug")

    def break_it() -> None:
        worker.parts.tick = broken  # type: ignore[method-assign]

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, break_it)


def main(text: str) -> None:
    told = json.loads(text)
    node = NodeSettings(
        id="w1",
        bind=Address("127.0.0.1", 0),
        data=Path(told["data"]),
        seeds=(tuple(told["seed"]),),
        role="worker",
    )
    output = logs.configure("stderr", level="info")
    try:
        run(serve(WorkerSettings(node=node, **told["settings"]), break_on_signal))
    finally:
        output.stop()


if __name__ == "__main__":
    main(sys.argv[1])
