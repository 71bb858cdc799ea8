"""From pressing enter to the first request on the wire, and the price of the import.

    python benchmarks/startup.py --rounds 10

The clock starts when `hyperscale run` is executed and stops when a bare socket server receives
the first byte of a request: interpreter, imports, test file, child processes and connect included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from contenders import HYPERSCALE
from harness import HERE, Figure, NotMeasured, failed, last_words, note, table

FIRST_REQUEST_S_MAX = 0.5
IMPORT_S_MAX = 0.25
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# What every test file begins with; `import hyperscale` alone is less, as names load on first use.
IMPORT = """
import time
began = time.perf_counter()
from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse
print(time.perf_counter() - began)
"""


# An installed package is compiled once; where that is switched off, each process would do it again.
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class FirstByte:
    """A server that notes when the first request arrived and answers whatever follows."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at: float | None = None
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while connection.recv(65536):
                if self.at is None:
                    self.at = time.perf_counter()
                connection.sendall(ANSWER)


@contextlib.contextmanager
def first_byte_server() -> Iterator[FirstByte]:
    server = FirstByte()
    try:
        yield server
    finally:
        server.listener.close()


def once(folder: Path) -> float:
    command = [HYPERSCALE.path(), "run", str(HERE / "workflows.py"), "Get", "--ui", "none"]
    with first_byte_server() as server:
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "-u", "1", "-i", "1"],
            cwd=folder,
            env={**COMPILED, "BENCH_TARGET": server.url},
            capture_output=True,
            text=True,
            timeout=60,
        )
    if done.returncode:
        said = last_words(done.stderr)
        raise NotMeasured(f"hyperscale ended with exit code {done.returncode}: {said}")
    if server.at is None:
        raise NotMeasured("no request arrived")
    return server.at - began


def first_request(rounds: int) -> Figure:
    what, required = "enter to first request", f"≤ {FIRST_REQUEST_S_MAX:.1f} s"
    try:
        with TemporaryDirectory(prefix="bench-startup-") as folder:
            once(Path(folder))  # compiled modules and disk cache in place, as on a second use
            times = [once(Path(folder)) for _ in range(rounds)]
    except NotMeasured as error:
        return failed(what, required, error)
    return _seconds(what, required, times, FIRST_REQUEST_S_MAX)


def imports(rounds: int) -> Figure:
    what, required = "import of the package", f"≤ {IMPORT_S_MAX:.2f} s"
    command = [sys.executable, "-c", IMPORT]
    times = []
    for _ in range(rounds + 1):
        done = subprocess.run(command, capture_output=True, timeout=60, text=True, env=COMPILED)
        if done.returncode:
            return failed(what, required, last_words(done.stderr))
        times.append(float(done.stdout))
    del times[0]  # it compiled the modules
    return _seconds(what, required, times, IMPORT_S_MAX)


def _seconds(what: str, required: str, times: list[float], limit_s: float) -> Figure:
    middle = statistics.median(times)
    measured = f"{middle:.3f} s ({min(times):.3f}–{max(times):.3f})"
    note(f"  {what}: {measured}")
    return Figure(what, required, measured, middle <= limit_s)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    figures = [first_request(options.rounds), imports(options.rounds)]
    print(table(figures))
    return int(any(figure.ok is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
