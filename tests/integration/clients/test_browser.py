"""The browser client in a real Chromium, against the embedded target and a scripted server."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import uvloop

from hyperscale.clients import Client, ClientPool
from hyperscale.clients.browser.chromium import NAMES
from hyperscale.target import running
from hyperscale.workload.browser_options import BrowserOptions
from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT
from tests.integration.cli.program import environment

from .scripted import Peer, response, serve, until
from .test_contract import CountingScope, free_port

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, NAMES)), reason="Chromium is missing: apt-get install chromium"
)
PAGE = b"""<!doctype html><title>Shop</title><h1 id=offer>Lamps</h1><img src=/lamp.png>
<input id=amount><button onclick="fetch('/buy', {method: 'POST', body: amount.value})
.then(got => got.text()).then(said => offer.textContent = said)">Buy</button>
<script src=/cached.js></script><iframe src="http://localhost:PORT/inner"></iframe>"""


class VitalsScope(CountingScope):
    def __init__(self) -> None:
        super().__init__()
        self.measured: dict[str, list[float]] = {}

    def measure(self, name: str, kind: MetricKind, value: float) -> None:
        self.measured.setdefault(name, []).append(value)


def browsing(go: object, **options: object) -> None:
    """With a pool of its own, as a generator process has one, and not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(120):
            scope = VitalsScope()
            CURRENT.set(scope)
            shots = options.pop("screenshots", None)
            pool = ClientPool(HTTPOptions(**options), browser=BrowserOptions(screenshots=shots))
            try:
                await pool.start(["browser"])
                await go(pool.client(), scope, pool)  # type: ignore[operator]
            finally:
                await pool.close()

    uvloop.run(bounded())


def chromiums(process: psutil.Process, word: str = "") -> list[psutil.Process]:
    """Below it, with that word in their command line."""
    found = []
    for one in process.children(recursive=True):
        with suppress(psutil.Error):  # it may end just now
            if "chrom" in one.name() and word in " ".join(one.cmdline()):
                found.append(one)
    return found


async def shop(peer: Peer) -> None:
    while request := await peer.request():
        path = request.split(b" ")[1]
        peers.append(path.decode())
        match path:
            case b"/shop":
                port = request.lower().partition(b"host: 127.0.0.1:")[2].partition(b"\r")[0]
                page = PAGE.replace(b"PORT", port)
                await peer.send(response(page, "200 OK", "Content-Type: text/html"))
            case b"/cached.js":
                headers = ("Content-Type: text/javascript", "Cache-Control: max-age=600")
                await peer.send(response(b"window.ready = true", "200 OK", *headers))
            case b"/buy":
                body = request.partition(b"\r\n\r\n")[2]
                await peer.send(response(b"bought " + body))
            case b"/silent":
                await peer.gone()
            case b"/closes":
                peer.reset()
            case _:
                await peer.send(response(b"nothing", "404 Not Found"))


peers: list[str] = []


def test_a_page_and_what_is_done_on_it(tmp_path: Path) -> None:
    async def go(vu: Client, scope: VitalsScope, pool: ClientPool) -> None:
        peers.clear()
        browser = vu.browser
        async with serve(handler=shop) as server:
            got = await browser.goto(f"{server.url}/shop", name="the shop")
            assert (got.ok, got.status, got.url) == (True, 200, f"{server.url}/shop"), got.error
            assert (await browser.fill("#amount", "3")).ok
            assert (await browser.click("text=Buy")).ok
            said = await browser.expect("#offer", "bought")
            assert said.text() == "bought 3", said.error
            assert {"ttfb", "fcp", "lcp"} <= said.vitals.keys()
            picture = await browser.screenshot()
            assert picture.content.startswith(b"\x89PNG"), picture.error
            silent = await browser.goto(f"{server.url}/silent", timeout=2)
            assert silent.outcome is Outcome.TIMEOUT, silent.error
            closed = await browser.goto(f"{server.url}/closes")
            assert closed.outcome is Outcome.RESET, closed.error
            if peers.count("/closes") == 2:  # Chromium repeats it by itself and tells of one
                peers.remove("/closes")
            again = await browser.goto(f"{server.url}/shop")
            assert again.ok, again.error
            gone = await browser.goto(f"http://127.0.0.1:{free_port()}/")
            assert gone.outcome is Outcome.REFUSED, gone.error
            missing = await browser.expect("#nowhere", timeout=0.2, name="nowhere")
            assert missing.outcome is Outcome.TIMEOUT
            await pool.finish(0.1)
        noted = [(kind, method, name) for kind, method, name in scope.noted]
        assert ("browser", "GET", "the shop") in noted
        assert ("browser", "POST", "/buy") in noted
        inner = [result.label.name for result, _ in scope.failures if "inner" in result.target]
        assert inner[0].startswith("localhost:"), "a frame of another site counts as well"
        assert peers.count("/cached.js") == 1, "the second time it came from the cache"
        failed = [
            (one.target.rpartition("/")[2], one.outcome, sent) for one, sent in scope.failures
        ]
        assert ("silent", Outcome.TIMEOUT, True) in failed
        assert ("closes", Outcome.RESET, True) in failed
        assert ("", Outcome.REFUSED, False) in failed
        assert ("nowhere", Outcome.TIMEOUT, False) in failed
        assert len(scope.noted) + sum(sent for _, sent in scope.failures) == len(peers)
        for started, sent, first_byte, ended, *_, bytes_in, bytes_out in scope.rows:
            assert started <= sent <= first_byte <= ended
            assert bytes_in > 0 < bytes_out
        assert scope.connects >= 1
        assert all(value > 0 for value in scope.measured["browser_web_vital_lcp"])

    browsing(go)


def test_each_user_has_cookies_of_its_own_in_one_chromium(tmp_path: Path) -> None:
    async def go(vu: Client, scope: VitalsScope, pool: ClientPool) -> None:
        other = pool.client()
        await vu.browser.goto("/cookies/set?who=me")
        mine, theirs = await vu.browser.goto("/cookies"), await other.browser.goto("/cookies")
        assert (mine.ok, theirs.ok) == (True, True)
        assert "me" in (await vu.browser.expect("body")).text()
        assert "me" not in (await other.browser.expect("body")).text()
        busy = await vu.browser.goto("/status/503")
        assert (busy.outcome, busy.status) == (Outcome.STATUS, 503)
        shots.append(busy.screenshot)
        assert busy.screenshot in busy.error
        every, parts = chromiums(psutil.Process()), chromiums(psutil.Process(), "--type=")
        assert len(every) - len(parts) == 1
        call = asyncio.ensure_future(vu.browser.goto("/delay/60000"))
        stats = pool.client().http
        while "/delay/60000" not in (await stats.get("/stats")).json()["paths"]:
            await stats.get("/delay/50")
        await pool.finish(0.1)
        assert (await call).outcome is Outcome.CANCELLED
        assert scope.failures[-1][0].outcome is Outcome.CANCELLED

    shots: list[str] = []
    with running() as url:
        browsing(go, base_url=url, screenshots=str(tmp_path / "shots"))
    assert Path(shots[0]).read_bytes().startswith(b"\x89PNG")
    assert not chromiums(psutil.Process())


def test_no_chromium_outlives_a_generator_that_is_killed(tmp_path: Path) -> None:
    test = tmp_path / "forever.py"
    test.write_text(
        "from hyperscale import Workflow, step\n"
        "from hyperscale.testing import BrowserResponse\n"
        "class Forever(Workflow):\n"
        "    vus, duration = 1, '10m'\n"
        "    @step()\n"
        "    async def look(self) -> BrowserResponse:\n"
        "        return await self.client.browser.goto('about:blank')\n"
    )
    for number in (signal.SIGKILL, signal.SIGINT):
        child = subprocess.Popen(
            [sys.executable, "-m", "hyperscale", "run", str(test), "-w", "1"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            asyncio.run(stopped(child, number))
        finally:
            child.kill()
            child.wait()


async def stopped(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Until all that the run had started is gone."""
    seen: list[psutil.Process] = []

    def is_browsing() -> bool:
        seen[:] = chromiums(psutil.Process(child.pid))
        return bool(chromiums(psutil.Process(child.pid), "--type=renderer"))

    await until(is_browsing, 60)
    child.send_signal(number)
    await until(lambda: not any(map(lives, seen)), 30)


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
