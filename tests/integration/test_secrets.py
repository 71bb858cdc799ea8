"""Every artifact of a run, here and on a cluster, searched for every secret the run had.

The target answers with a failure that repeats all it was sent, and the test's own code puts its
secrets into exceptions, checks and context. Names of variables are there; values are nowhere.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zstandard

from tests.integration.cli.program import hyperscale
from tests.integration.cluster.fleet import Fleet

MARKED, KEY, PASSWORD = "TOPSECRET-marked", "TOPSECRET-key", 'TOPSECRET "pw" &3'
# Secret by their place alone: nobody marked them.
BEARER, COOKIE, URL_PASSWORD, PLAIN = "HUSH-bearer", "HUSH-cookie", "HUSH-url", "HUSH-plain"
NEEDLES = (
    *("TOPSECRET", "HUSH", "TOPSECRET".encode("utf-16-le").decode("latin-1")),
    *(base64.b64encode(f"{user}:TOPSECRET".encode()).decode()[4:-4] for user in ("a", "ab", "abc")),
)
ZSTANDARD_FRAME = b"\x28\xb5\x2f\xfd"

TEST = """
from urllib.parse import quote

from hyperscale import Provide, Use, Workflow, check, depends, secret, state, step
from hyperscale.testing import URL, HTTPResponse

KEY, MARKED, PASSWORD = secret("API_KEY"), secret("MARKED"), secret("DB_PASSWORD")
HOST = "{host}"
KNOWN = f"http://ada:{{quote(PASSWORD)}}@{{HOST}}/a?q={{KEY}}"
UNMARKED = f"http://ada:{password}@{{HOST}}/b?access_token={bearer}"


class First(Workflow):
    vus = 2
    {length}
    think_time = "50ms"

    def setup(self) -> None:
        self.context["auth"] = "Bearer " + KEY

    @step()
    async def marked(self, url: URL = KNOWN) -> HTTPResponse:
        headers = {{"X-Marked": MARKED, "X-Auth": self.context["auth"]}}
        return await self.client.http.post(url, headers=headers, json={{"pw": PASSWORD}})

    @step()
    async def placed(self, url: URL = UNMARKED) -> HTTPResponse:
        headers = {{"Authorization": "Bearer {bearer}", "Cookie": "sid={cookie}"}}
        return await self.client.http.post(url, headers=headers, json={{"password": "{bearer}"}})

    @step()
    async def raises(self) -> HTTPResponse:
        raise RuntimeError("x" * 270 + f" refused {{MARKED}} {{KEY}} {{PASSWORD!r}}")

    @check()
    async def checks(self, marked: HTTPResponse) -> None:
        assert not marked, marked.text()

    @state("Second")
    def key(self) -> Provide[str]:
        return KEY

    def teardown(self) -> None:
        raise RuntimeError(KEY)


@depends("First")
class Second(Workflow):
    vus = 1
    iterations = 1

    @state("First")
    def handed_on(self, key: str = "") -> Use[str]:
        return key

    @step()
    async def last(self) -> HTTPResponse:
        assert self.handed_on() == KEY
        return await self.client.http.get(f"http://{{HOST}}/c/{{KEY}}")
"""


class Repeats(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"{self.path}\n{self.headers}\n".encode() + sent
        self.send_response(500)
        self.send_header("Set-Cookie", f"sid={COOKIE}; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Repeats) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def write_test(folder: Path, host: str, length: str) -> tuple[Path, list[object]]:
    """The file, and how its secrets are given."""
    unmarked = {"password": URL_PASSWORD, "bearer": BEARER, "cookie": COOKIE}
    file = folder / "private_test.py"
    file.write_text(TEST.format(host=host, length=length, **unmarked))
    env_file = folder / "private.env"
    env_file.write_text(f"# of the database\nDB_PASSWORD='{PASSWORD}'\n")
    env_file.chmod(0o600)
    flags = ["-e", f"API_KEY={KEY}", "-e", f"PLAIN={PLAIN}"]
    return file, [*flags, "--secret", "MARKED", "--env-file", env_file]


def leaks(folder: Path) -> list[str]:
    """Which files hold which needle, as they are or within a zstandard frame."""
    found = []
    for file in folder.rglob("*"):
        if file.name.startswith("private") or not file.is_file():
            continue
        data = file.read_bytes()
        for text in (data, *unpacked(data)):
            where = {needle: text.find(needle.encode("latin-1")) for needle in NEEDLES}
            found += [
                f"{file.relative_to(folder)}: ...{text[max(0, at - 60) : at + 40]!r}"
                for at in where.values()
                if at >= 0
            ]
    return found


def unpacked(data: bytes) -> Iterator[bytes]:
    start = data.find(ZSTANDARD_FRAME)
    while start >= 0:
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[start:])
        start = data.find(ZSTANDARD_FRAME, start + 1)


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(f"a {MARKED}")
    (tmp_path / "packed").write_bytes(b"head" + zstandard.compress(MARKED.encode() * 100))
    (tmp_path / "basic").write_bytes(base64.b64encode(f"ada:{MARKED}".encode()))
    assert {leak.partition(":")[0] for leak in leaks(tmp_path)} == {"plain", "packed", "basic"}


def test_nothing_of_a_run_holds_a_secret(tmp_path: Path, host: str) -> None:
    file, given = write_test(tmp_path, host, "iterations = 2")
    outputs = [word for end in ("json", "html", "csv", "xml") for word in ("-o", f"out.{end}")]
    for name, words in {
        "run": ["-v", "--debug", "--http-debug=full", *outputs],
        "once": ["--once"],
        "quiet": ["-q", "--host", f"http://ada:{URL_PASSWORD}@{host}"],
    }.items():
        ended = hyperscale("run", file, *given, *words, cwd=tmp_path, MARKED=MARKED)
        (tmp_path / f"{name}.out").write_text(ended.out)
        (tmp_path / f"{name}.err").write_text(ended.err)
        assert ended.code in (0, 1), ended
    assert leaks(tmp_path) == []
    assert "Authorization: ***" in (tmp_path / "run.err").read_text()
    assert "shown as ***" in (tmp_path / "run.err").read_text()
    results = (tmp_path / "out.json").read_text()
    for name in (
        "-e 'API_KEY=***' -e 'PLAIN=***' --secret MARKED",
        "***API_KEY***",
        "***MARKED***",
    ):
        assert name in results


def test_what_keeps_a_run_from_starting_names_the_variable_only(tmp_path: Path) -> None:
    broken = "from hyperscale import secret\nraise ValueError('not ' + secret('API_KEY'))\n"
    (tmp_path / "private_test.py").write_text(broken)
    words = ("run", "private_test.py", "-e", f"API_KEY={KEY}", "--debug")
    ended = hyperscale(*words, cwd=tmp_path)
    assert ended.code == 2
    assert "not ***API_KEY***" in ended.err
    assert "TOPSECRET" not in ended.err + ended.out


def test_nothing_of_a_cluster_holds_a_secret_and_a_restart_loses_none(
    tmp_path: Path, host: str
) -> None:
    file, given = write_test(tmp_path, host, 'duration = "6s"')
    with Fleet(tmp_path, managers=1, workers=0, tls=True) as fleet:
        fleet.add_worker("w1", "--log-level", "debug", cores=1)
        fleet.start()
        ended = fleet.hyperscale("submit", file, "--detach", *given, MARKED=MARKED)
        assert ended.code == 0, ended
        job = ended.out.strip()
        fleet.wait_until_running(job)
        fleet["m1"].kill()
        fleet["m1"].start()
        view = fleet.wait_for_end(job)
        assert view.status == "completed", view
        results = fleet.results(job)
        assert "API_KEY=***" in results["environment"]["command"]
        last = next(one for one in results["workflows"] if one["name"] == "Second")
        assert last["steps"][0]["statuses"] == {"500": 1}, last
        for words in (
            ("attach", job, "-o", "out.json", "-o", "out.html"),
            ("results", job),
            ("status", job),
            ("jobs",),
            ("logs", job),
            ("workers",),
        ):
            ended = fleet.hyperscale(*words)
            (tmp_path / f"{words[0]}.out").write_text(ended.out + ended.err)
        for node in fleet.nodes.values():
            node.end()
        assert leaks(tmp_path) == []
        assert "***API_KEY***" in (tmp_path / "out.json").read_text()
