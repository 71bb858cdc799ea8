"""The servers that are put under load, with their own count of what reached them.

nginx when it is installed, because its own cost is known and small; else the target that comes
with Hyperscale. Accuracy always uses the latter, which can wait, freeze and measure itself.

nginx serves the same with TLS on a second port: one certificate and one cipher suite for every
tool, and no session is resumed, so that each new connection is a full handshake for everyone.
"""

from __future__ import annotations

import gzip
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from certificate import write_certificate
from harness import TARGET_CORE, NotMeasured, note, on_core, raise_open_file_limit, wait_for

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3In0.c2lnbmF0dXJl"
LOGIN = json.dumps(
    {
        "token": TOKEN,
        "expires_in": 3600,
        "user": {"id": 7, "name": "ada", "roles": ["admin", "dev"]},
    }
)
PROFILE = json.dumps({"id": 7, "name": "ada", "email": "ada@example.org", "visits": 1024})
CATALOGUE = json.dumps(
    [{"id": n, "name": f"item {n}", "price": n * 7 % 1000, "tags": ["new"]} for n in range(160)]
)  # 10 KB of JSON, a sixth of that compressed
BODY_BYTES = (1_000, 100_000)  # of the files /1000 and /100000

NGINX_CONF = """
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 16000; multi_accept on; }}
http {{
  access_log off;
  sendfile on;
  open_file_cache max=16 inactive=3600s;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
{listen}
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
    ssl_session_tickets off;
    ssl_session_cache off;
    default_type text/plain;
    root {folder}/www;
    location = / {{ return 200 "Hello, World!"; }}
    location = /post {{ return 200 "ok"; }}
    location = /catalogue {{
      if ($http_accept_encoding !~ gzip) {{ return 406; }}
      default_type application/json;
      add_header Content-Encoding gzip;
      try_files /catalogue.gz =404;
    }}
    location = /login {{ default_type application/json; return 200 '{login}'; }}
    location = /me {{
      if ($http_authorization != "Bearer {token}") {{ return 401; }}
      default_type application/json;
      return 200 '{profile}';
    }}
    location = /status {{ stub_status; }}
  }}
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def fetch(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise NotMeasured(f"the target answered {answer.status} to {path}")
    return body


@dataclass(frozen=True)
class Counts:
    """What has reached the target; our own look at it may be among both."""

    requests: int
    connections: int  # open now


class Target:
    """A server, on core 1 unless `cores` says otherwise, alive inside a `with` block."""

    name: str
    scheme = "http"

    def __init__(self) -> None:
        self.port = free_port()  # without TLS; the counts are read here
        self.cores: tuple[int, ...] = (TARGET_CORE,)
        self.folder = tempfile.TemporaryDirectory(prefix="bench-target-")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def counts(self) -> Counts:
        raise NotImplementedError

    def requests(self) -> int:
        return self.counts().requests

    def __enter__(self) -> Self:
        raise_open_file_limit()  # a child inherits it
        folder = Path(self.folder.name)
        log = (folder / "log").open("wb")
        with on_core(*self.cores), log:
            self.process = subprocess.Popen(
                self.command(folder), stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        try:
            wait_for(self._answers, f"the first answer of {self.name}")
        except NotMeasured:
            note((folder / "log").read_text(errors="replace")[-2000:])
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            if self.process.stdin:  # open until now: the embedded target ends when it closes
                self.process.stdin.close()
        self.folder.cleanup()

    def _answers(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise NotMeasured(f"{self.name} did not start")
        try:
            self.counts()
        except OSError:
            return False
        return True


class Nginx(Target):
    name = "nginx"

    def __init__(
        self,
        program: str,
        scheme: str = "http",
        workers: int = 1,
        addresses: int = 1,
        http2: bool = False,
    ) -> None:
        super().__init__()
        self.status_port = free_port() if http2 else self.port  # where HTTP/1.1 is spoken
        self.http2 = http2
        self.program = program
        self.scheme = scheme
        self.workers = workers
        self.addresses = [f"127.0.0.{last}" for last in range(1, addresses + 1)]
        self.tls_port = free_port()
        self.looks = 0  # requests of our own, each in the count it asks for

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def urls(self) -> list[str]:
        """One for each address: each has local ports of its own on the side of the client."""
        port = self.tls_port if self.scheme == "https" else self.port
        return [f"{self.scheme}://{address}:{port}" for address in self.addresses]

    def _listen(self) -> str:
        # Each worker has a queue of its own: the kernel gives all of them as many connections.
        kind = " http2" if self.http2 else ""
        both = [(self.port, kind), (self.tls_port, f" ssl{kind}")]
        if self.http2:
            both.append((self.status_port, ""))
        return "\n".join(
            f"    listen {address}:{port}{tls} backlog=16384 reuseport;"
            for address in self.addresses
            for port, tls in both
        )

    def command(self, folder: Path) -> list[str]:
        write_certificate(folder)
        folder.chmod(0o755)  # nginx started by root gives up its rights before it reads files
        files = folder / "www"
        files.mkdir()
        for size in BODY_BYTES:
            (files / f"{size}").write_bytes(b"x" * size)
        (files / "catalogue.gz").write_bytes(gzip.compress(CATALOGUE.encode()))
        conf = folder / "nginx.conf"
        conf.write_text(
            NGINX_CONF.format(
                folder=folder,
                workers=self.workers,
                listen=self._listen(),
                token=TOKEN,
                login=LOGIN,
                profile=PROFILE,
            )
        )
        return [self.program, "-p", str(folder), "-c", str(conf), "-e", str(folder / "error.log")]

    def counts(self) -> Counts:
        # "Active connections: 1 server accepts handled requests 10 10 27 Reading: ..."
        self.looks += 1
        words = fetch(self.status_port, "/status").decode().split()
        return Counts(requests=int(words[9]), connections=int(words[2]))


class Embedded(Target):
    name = "the embedded target"

    def command(self, folder: Path) -> list[str]:
        options = json.dumps({"port": self.port})
        return [sys.executable, "-P", "-m", "hyperscale.target", options]

    def stats(self) -> Any:
        return json.loads(fetch(self.port, "/stats"))

    def counts(self) -> Counts:
        stats = self.stats()
        return Counts(int(stats["requests"]), int(stats["connections_open"]))


def nginx_program() -> str | None:
    usual = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
    return shutil.which("nginx", path=usual) or shutil.which("nginx")


def find_target(scheme: str = "http") -> Target:
    if program := nginx_program():
        return Nginx(program, scheme)
    if scheme == "https":
        raise NotMeasured("nginx is not installed")
    note("nginx is not installed: the embedded target stands in, and limits every contender sooner")
    return Embedded()


def rate(target: Target, seconds: float) -> float:
    """Requests per second that reached the target between now and `seconds` later."""
    first, began = target.requests(), time.perf_counter()
    time.sleep(seconds)
    last, ended = target.requests(), time.perf_counter()
    return (last - first) / (ended - began)
