"""A TLS server on threads and blocking sockets: unlike one on asyncio it sends its alerts."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Talk = Callable[[ssl.SSLSocket], None]


def answering(fact: Callable[[ssl.SSLSocket], str]) -> Talk:
    """Answers every request with something about the connection."""

    def talk(peer: ssl.SSLSocket) -> None:
        while head := peer.recv(65536):
            while not head.endswith(b"\r\n\r\n"):
                head += peer.recv(65536)
            body = fact(peer).encode()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    return talk


@contextmanager
def tls_server(tls: ssl.SSLContext, talk: Talk) -> Iterator[int]:
    """Gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(plain: socket.socket) -> None:
        with suppress(OSError):
            plain.settimeout(10)
            try:
                talk(tls.wrap_socket(plain, server_side=True, suppress_ragged_eofs=True))
            except ssl.SSLError:
                # The alert is on its way; a close with unread bytes would overtake it.
                raw = socket.socket(fileno=plain.detach()) if plain.fileno() >= 0 else plain
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
                raw.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer = listener.accept()[0]
                threading.Thread(target=serve, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
