"""A server that asks for Digest authentication and checks the answers, written from RFC 7616.

It shares no code with the client; curl is let in by the same checks.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

USER, PASSWORD = 'Jäsøn "Doe" \\', "Secret, or: not? ✓"
REALM = 'http-auth "at" exämple\\org'
_NAMES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}


class DigestServer(ThreadingHTTPServer):
    """`algorithm` and `qop` as the challenge has them; a nonce is good for `uses` requests."""

    daemon_threads = True

    def __init__(self, algorithm: str, qop: str, userhash: bool = False, uses: int = 1000) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.algorithm, self.qop, self.userhash, self.uses = algorithm, qop, userhash, uses
        self.nonces: dict[str, int] = {}
        self.refused: list[str] = []
        self.seen = 0
        self.unasked = 0

    def h(self, text: bytes) -> str:
        name = self.algorithm.upper().removesuffix("-SESS") or "MD5"
        return hashlib.new(_NAMES[name], text).hexdigest()

    def challenge(self, stale: bool) -> bytes:
        nonce = f"n{len(self.nonces)}/+="
        self.nonces[nonce] = 0
        realm = REALM.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        made = b'Digest realm="%b", nonce="%b", opaque="op,aque"' % (realm, nonce.encode())
        if self.qop:
            made += b', qop="%b"' % self.qop.encode()
        if self.algorithm:
            made += b", algorithm=%b" % self.algorithm.encode()
        if self.userhash:
            made += b", userhash=true, charset=UTF-8"
        return made + (b", stale=TRUE" if stale else b"")

    def check(self, header: bytes, method: str, target: str, body: bytes) -> tuple[bool, str]:
        """Whether it is right, and if not why: "stale" asks for another nonce."""
        scheme, _, rest = header.partition(b" ")
        item = rb'([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))'
        if scheme != b"Digest" or not re.fullmatch(rb"%b(?:, ?%b)*" % (item, item), rest):
            return False, "it cannot be read"
        pairs = re.findall(item, rest)
        given = {k.decode(): re.sub(rb"\\(.)", rb"\1", q) or p for k, q, p in pairs}
        user = USER.encode()
        realm = REALM.encode()
        name = given.get("username", b"")
        if "username*" in given:
            name = unquote(given["username*"].decode().removeprefix("UTF-8''")).encode()
        if given.get("userhash") == b"true":
            if name.decode() != self.h(user + b":" + realm):
                return False, "the hashed name is wrong"
        elif name != user:
            return False, f"the name is {name!r}"
        if given.get("opaque") != b"op,aque" or given.get("realm") != realm:
            return False, "opaque or realm are not what was sent"
        if given.get("uri") != target.encode():
            return False, "uri is not the request's"
        if given.get("algorithm", b"").decode() != self.algorithm:
            return False, "another algorithm"
        nonce = given["nonce"].decode()
        if nonce not in self.nonces:
            return False, "an unknown nonce"
        key = self.h(b":".join((user, realm, PASSWORD.encode())))
        if self.algorithm.upper().endswith("-SESS"):
            key = self.h(b":".join((key.encode(), given["nonce"], given["cnonce"])))
        asked = f"{method}:{target}".encode()
        if given.get("qop") == b"auth-int":
            asked += b":" + self.h(body).encode()
        middle = given["nonce"]
        if self.qop:
            if given["qop"].decode() not in self.qop:
                return False, "a qop that was not offered"
            middle = b":".join((given["nonce"], given["nc"], given["cnonce"], given["qop"]))
            if int(given["nc"], 16) <= self.nonces[nonce] or len(given["nc"]) != 8:
                return False, f"nc {given['nc']!r} was used before"
        right = self.h(b":".join((key.encode(), middle, self.h(asked).encode())))
        if given["response"].decode() != right:
            return False, "the response is wrong"
        self.nonces[nonce] += 1
        if self.nonces[nonce] > self.uses:
            return False, "stale"
        return True, ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: DigestServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen += 1
        header = self.headers.get("Authorization", "").encode("latin-1")
        right, why = False, ""
        if header:
            right, why = self.server.check(header, self.command, self.path, body)
        else:
            self.server.unasked += 1
        if right:
            self.send_response(200)
        else:
            if why and why != "stale":
                self.server.refused.append(why)
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x, y"')
            challenge = self.server.challenge(why == "stale").decode("latin-1")
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def digest_server(
    algorithm: str, qop: str, userhash: bool = False, uses: int = 1000
) -> Iterator[DigestServer]:
    server = DigestServer(algorithm, qop, userhash, uses)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
