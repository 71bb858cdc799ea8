"""Code of a test that tries to reach what belongs to its worker, and one who hears how it went.

Each attempt is an expression in the words of an attacker who knows where to look. What it got, or
the error that stopped it, is posted to the listener as JSON.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.integration.cluster.fleet import until

_HEAD = '''
import ctypes
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hyperscale.graph import Workflow, step
from hyperscale.testing import HTTPResponse


def ptrace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    if libc.ptrace(16, pid, None, None):  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.waitpid(pid, 0x40000000)
    libc.ptrace(17, pid, None, None)
    return "attached"


def called(number, *arguments):
    if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "called"


def inherited():
    """Descriptors of files, but for its own, the interpreter's and the streams."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass
    ours = ("socket:", "pipe:", "anon_inode:", "/dev/null", "/proc")
    private = os.environ.get("TMPDIR", "?")
    return {
        number: where
        for number, where in found.items()
        if int(number) > 2 and not where.startswith((*ours, private))
    }


def limit(name):
    import resource

    return resource.getrlimit(getattr(resource, name))[0]


def status(name):
    with open("/proc/self/status") as lines:
        return next(line.split(":")[1].strip() for line in lines if line.startswith(name + ":"))


def tell(attempt):
    try:
        return {"got": repr(attempt())[:2000]}
    except BaseException as error:
        return {"refused": f"{type(error).__name__}: {error}"}
'''

_WORKFLOW = """

class Pries(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def pry(self) -> HTTPResponse:
        told = {name: tell(attempt) for name, attempt in ATTEMPTS.items()}
        return await self.client.http.post(LISTENER, json=told)
"""


def write(folder: Path, listener: str, attempts: Mapping[str, str]) -> Path:
    """A test whose one step makes these attempts: names, and expressions."""
    listed = "".join(f"    {name!r}: lambda: {how},\n" for name, how in attempts.items())
    file = folder / "pries.py"
    text = f"{_HEAD}\n\nATTEMPTS = {{\n{listed}}}\nLISTENER = {listener!r}\n{_WORKFLOW}"
    file.write_text(text)
    return file


class Listener:
    """An HTTP server that keeps the last JSON it was sent."""

    def __init__(self) -> None:
        heard: list[dict[str, Any]] = []

        class Hear(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                heard.append(json.loads(self.rfile.read(length)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._heard = heard
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Hear)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def told(self) -> dict[str, Any]:
        until(lambda: self._heard, "what the code of the test says")
        return self._heard[-1]
