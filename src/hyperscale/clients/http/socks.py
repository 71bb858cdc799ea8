"""What is said to a SOCKS5 proxy before it passes bytes on (RFC 1928, RFC 1929), without any I/O.

METHOD ─► AUTH (when the proxy wants the password) ─► REPLY ─► done
METHOD ─► REPLY ─► done
"""

from __future__ import annotations

import ipaddress
from enum import Enum, auto

from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.tunnel import Handshake

_VERSION, _AUTH_VERSION = 5, 1
_NO_AUTH, _PASSWORD, _NONE_ACCEPTED = 0, 2, 0xFF
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REASONS = {
    1: "it failed",
    2: "its rules do not allow it",
    3: "the network cannot be reached from there",
    4: "the host cannot be reached from there",
    5: "the target refused the connection",
    6: "it took too long",
    7: "it does not support CONNECT",
    8: "it does not support this kind of address",
}


class State(Enum):
    METHOD = auto()
    AUTH = auto()
    REPLY = auto()


class Socks5(Handshake):
    """`host` is the name or address that the proxy is asked for."""

    __slots__ = ("_buffer", "_host", "_port", "_state")

    def __init__(self, proxy: Proxy, authority: str, host: str, port: int) -> None:
        super().__init__(proxy, authority)
        self._host = host
        self._port = port
        self._buffer = b""
        self._state = State.METHOD

    def start(self) -> bytes:
        if self._proxy.user is None:
            return bytes((_VERSION, 1, _NO_AUTH))
        return bytes((_VERSION, 2, _NO_AUTH, _PASSWORD))

    def feed(self, data: bytes) -> bytes:
        self._buffer += data
        match self._state:
            case State.METHOD:
                return self._read_method()
            case State.AUTH:
                return self._read_auth()
            case State.REPLY:
                self._read_reply()
        return b""

    def _read_method(self) -> bytes:
        if self._buffer[0] != _VERSION:
            hint = "; did you mean http://?" if self._buffer.startswith(b"H") else ""
            self.not_understood(f"does not speak SOCKS5{hint}")
            return b""
        if len(self._buffer) < 2:
            return b""
        method = self._take(2)[1]
        if method == _NO_AUTH:
            return self._ask()
        if method == _PASSWORD and self._proxy.user is not None:
            self._state = State.AUTH
            user, password = self._proxy.user.encode(), self._proxy.password.encode()
            return b"%c%c%b%c%b" % (_AUTH_VERSION, len(user), user, len(password), password)
        if method == _NONE_ACCEPTED and self._proxy.user is None:
            self.refused("it asks for a user and password")
        elif method == _NONE_ACCEPTED:
            self.refused("it takes no user and password")
        else:
            self.not_understood(f"chose method {method}, which was not offered,")
        return b""

    def _read_auth(self) -> bytes:
        if len(self._buffer) < 2:
            return b""
        if self._take(2)[1] != 0:
            self.refused("it does not accept the user or password")
            return b""
        return self._ask()

    def _ask(self) -> bytes:
        self._state = State.REPLY
        if self._buffer:
            self.not_understood("spoke before it was asked")
            return b""
        return b"%c%c%c%b%b" % (_VERSION, _CONNECT, 0, _address(self._host), _port(self._port))

    def _read_reply(self) -> None:
        data = self._buffer
        if data[0] != _VERSION:
            self.not_understood(f"sent something that is not SOCKS5: {data[:40]!r}")
        elif len(data) > 1 and data[1] != 0:
            self.refused(_REASONS.get(data[1], f"SOCKS error {data[1]}"))
        elif len(data) > 4:
            self._read_bound(data)

    def _read_bound(self, data: bytes) -> None:
        """The address it connects from, which nobody needs; it only has to be there."""
        lengths = {_IPV4: 4, _IPV6: 16, _NAME: 1 + data[4]}
        if data[3] not in lengths:
            self.not_understood(f"sent an unknown kind of address ({data[3]})")
            return
        end = 4 + lengths[data[3]] + 2
        if len(data) > end:
            self.not_understood("sent more than its answer")
        self.done = len(data) >= end

    def _take(self, count: int) -> bytes:
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        name = host.encode("ascii")
        return b"%c%c%b" % (_NAME, len(name), name)
    return b"%c%b" % (_IPV4 if address.version == 4 else _IPV6, address.packed)


def _port(port: int) -> bytes:
    return port.to_bytes(2, "big")
