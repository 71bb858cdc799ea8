"""Digest authentication (RFC 7616, and RFC 2069 where a server is that old), without any I/O.

A server that wants it answers 401 with challenges. The strongest of them that we can answer is
answered; later requests bring an answer along, counted, until the server wants another nonce.

Headers are text with one character for each byte (Latin-1), as the client reads and writes them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote

_HASHES = ("md5", "sha256", "sha512_256")  # weakest first
_ALGORITHMS = dict(zip(("MD5", "SHA-256", "SHA-512-256"), _HASHES, strict=True))
# A parameter with its value, quoted or not, or a word that is none: a scheme.
_ITEM = re.compile(
    r'[\s,]*(?:([^\s=,"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))|([^\s,]+))', re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Challenge:
    """What a server asks for in one challenge of the scheme Digest."""

    __slots__ = (
        "algorithm",
        "hash",
        "hashes_user",
        "nonce",
        "opaque",
        "qop",
        "realm",
        "session",
        "stale",
        "utf8",
    )

    def __init__(self, parameters: dict[str, str]) -> None:
        """Raises LookupError or ValueError when it cannot be answered."""
        self.realm = _bytes(parameters["realm"])
        self.nonce = _bytes(parameters["nonce"])
        self.opaque = parameters.get("opaque")
        self.algorithm = parameters.get("algorithm", "")
        name = self.algorithm.upper() or "MD5"
        self.session = name.endswith("-SESS")
        self.hash = _ALGORITHMS[name.removesuffix("-SESS")]
        self.digest()  # ValueError where OpenSSL does not have it
        offered = [word.strip().lower() for word in parameters.get("qop", "").split(",")]
        self.qop = next((word for word in ("auth", "auth-int") if word in offered), "")
        if not self.qop and (any(offered) or self.session):  # a session needs a cnonce
            raise LookupError(offered)
        self.stale = parameters.get("stale", "").lower() == "true"
        self.hashes_user = parameters.get("userhash", "").lower() == "true"
        self.utf8 = parameters.get("charset", "").upper() == "UTF-8"

    @property
    def strength(self) -> int:
        return _HASHES.index(self.hash)

    def digest(self, *parts: bytes) -> bytes:
        made = hashlib.new(self.hash, b":".join(parts), usedforsecurity=False)
        return made.hexdigest().encode()


class DigestAuth:
    """Of one virtual user and one server: requests are counted for each nonce.

    `next` is asked before each request, `answer` after each that came back with 401 (or 407, from a
    proxy). `uri` is the request's target as it stands in the request line.
    """

    __slots__ = (
        "_after",
        "_before",
        "_challenge",
        "_cnonce",
        "_count",
        "_key",
        "_make_cnonce",
        "_password",
        "_user",
    )

    def __init__(
        self,
        user: str,
        password: str,
        make_cnonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._user = user.encode()
        self._password = password.encode()
        self._make_cnonce = make_cnonce
        self._challenge: Challenge | None = None

    def answer(
        self,
        challenges: Iterable[str],
        method: str,
        uri: str,
        body: bytes = b"",
        again: bool = False,
    ) -> str | None:
        """The header that these challenges (values of WWW-Authenticate) ask for; None: give up.

        `again` says that the refused request was an answer already: user or password are wrong
        then, unless the server says that only its nonce was too old.
        """
        found = [one for one in _answerable(challenges) if one.stale or not again]
        if not found:
            return None
        # Of equally strong ones the first, which is the server's preference.
        self._accept(max(found, key=lambda one: one.strength))
        return self.next(method, uri, body)

    def next(self, method: str, uri: str, body: bytes = b"") -> str | None:
        """The header for a request; None: the server has not asked for one yet."""
        challenge = self._challenge
        if challenge is None:
            return None
        target = _bytes(uri)
        asked = [method.encode(), target]
        if challenge.qop == "auth-int":
            asked.append(challenge.digest(body))
        shown = counted = b""
        if challenge.qop:
            self._count += 1
            qop = challenge.qop.encode()
            counted = b"%08x:%b:%b:" % (self._count, self._cnonce, qop)
            shown = b', qop=%b, nc=%08x, cnonce="%b"' % (qop, self._count, self._cnonce)
        response = challenge.digest(self._key, challenge.nonce, counted + challenge.digest(*asked))
        header = b'%b, uri="%b", response="%b"%b%b'
        made = header % (self._before, _escaped(target), response, shown, self._after)
        return made.decode("latin-1")

    def _accept(self, challenge: Challenge) -> None:
        known = self._challenge
        if known is None or known.nonce != challenge.nonce:
            self._count = 0
            # One for all requests with a nonce: the key of a session (-sess) depends on it.
            self._cnonce = self._make_cnonce().encode()
        self._challenge = challenge
        self._key = challenge.digest(self._user, challenge.realm, self._password)
        if challenge.session:
            self._key = challenge.digest(self._key, challenge.nonce, self._cnonce)
        self._before = b'Digest %b, realm="%b", nonce="%b"' % (
            self._named(challenge),
            _escaped(challenge.realm),
            _escaped(challenge.nonce),
        )
        self._after = b""
        if challenge.opaque is not None:
            self._after += b', opaque="%b"' % _escaped(_bytes(challenge.opaque))
        if challenge.algorithm:
            self._after += b", algorithm=%b" % _bytes(challenge.algorithm)
        if challenge.hashes_user:
            self._after += b", userhash=true"

    def _named(self, challenge: Challenge) -> bytes:
        if challenge.hashes_user:
            return b'username="%b"' % challenge.digest(self._user, challenge.realm)
        if challenge.utf8 and not self._user.isascii():
            return b"username*=UTF-8''%b" % quote(self._user, safe="").encode()
        return b'username="%b"' % _escaped(self._user)


def _answerable(challenges: Iterable[str]) -> Iterator[Challenge]:
    for value in challenges:
        for scheme, parameters in parse_challenges(value):
            if scheme.lower() != "digest":
                continue
            with suppress(LookupError, ValueError):
                yield Challenge(parameters)


def parse_challenges(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Scheme and parameters of each challenge in a header; what makes no sense is skipped.

    Commas separate challenges as well as parameters: a word without `=` begins a challenge.
    """
    scheme, parameters = "", dict[str, str]()
    at = 0
    while found := _ITEM.match(value, at):
        at = found.end()
        name, quoted, plain, word = found.groups()
        if name is not None:
            text = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(name.lower(), text)
            continue
        if scheme:
            yield scheme, parameters
        scheme, parameters = word, {}
    if scheme:
        yield scheme, parameters


def _bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(data: bytes) -> bytes:
    return data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
