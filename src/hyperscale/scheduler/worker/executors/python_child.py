"""The process in which `python` jobs run, one after another: calls come in and answers go out on
the socket that was its stdin, and a ticket on a second one tells which call to begin (the rest is
in `python_process`). What the callables print is captured, bounded, and sent with the answer.
"""

from __future__ import annotations

import importlib
import io
import os
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeVar

import msgspec

from hyperscale.scheduler.worker.executors.allowed import defined_in
from hyperscale.scheduler.worker.executors.tail import plain

HEAD = struct.Struct("!II")
"""Number and size, before a call and before an answer."""
MOVED = 0
"""In place of a number: the call that runs has written something. Calls count from 1."""
TELL_S = 1.0
"""So often that is told at most."""
TICKET = struct.Struct("!I")
LOG_CHARS = 64 * 1024

T = TypeVar("T")


class Call(msgspec.Struct, frozen=True, array_like=True):
    target: str
    matched: bool
    """Its name fits a pattern: it must be of the module it is named under."""
    args: str
    """JSON, as are `kwargs`; empty: none."""
    kwargs: str
    job_id: str
    token: int


class Returned(msgspec.Struct, frozen=True, array_like=True):
    error: str
    """Empty: it went well."""
    kind: str
    """"" or "permanent" or "transient"."""
    log: str


class _Captured(io.TextIOBase):
    def __init__(self, moved: Callable[[], None]) -> None:
        self._moved = moved
        self._parts: list[str] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * LOG_CHARS:
            self._parts = [self.text()]
            self._size = len(self._parts[0])
        self._moved()
        return len(text)

    def text(self) -> str:
        return plain("".join(self._parts))[-LOG_CHARS:]


_found: dict[str, Callable[..., object]] = {}


def _find(target: str, matched: bool) -> Callable[..., object]:
    if target not in _found:
        module, _, name = target.partition(":")
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        if not callable(value):
            raise TypeError(f"{target} is not callable")
        if matched and not defined_in(module, value):
            raise TypeError(f"{name} is not a function or class of {module}, so a * is not enough")
        _found[target] = value
    return _found[target]


def _decoded(name: str, text: str, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=type_) if text else type_()
    except msgspec.DecodeError as error:
        raise ValueError(f"{name!r} in the payload: {error}") from error


def answer(call: Call, moved: Callable[[], None]) -> Returned:
    captured = _Captured(moved)
    os.environ["HYPERSCALE_JOB_ID"] = call.job_id
    os.environ["HYPERSCALE_FENCING_TOKEN"] = str(call.token)
    with redirect_stdout(captured), redirect_stderr(captured):
        try:
            args = _decoded("args", call.args, list)
            kwargs = _decoded("kwargs", call.kwargs, dict)
            function = _find(call.target, call.matched)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            return Returned(plain(f"{call.target}: {error}"), "permanent", captured.text())
        try:
            value = function(*args, **kwargs)
        except (ConnectionError, TimeoutError) as error:
            return _raised(error, "transient", captured)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a job may raise anything
            return _raised(error, "", captured)
        if value is not None:
            captured.write(f"{value!r}\n"[:LOG_CHARS])
    return Returned("", "", captured.text())


def _raised(error: BaseException, kind: str, captured: _Captured) -> Returned:
    captured.write(traceback.format_exc())
    return Returned(plain(f"{type(error).__name__}: {error}"), kind, captured.text())


class _Answers:
    """Out of this process. A callable's threads may write while an answer is sent, and its forks
    have the socket too: those tell nothing."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._pid = os.getpid()
        self._told_s = time.monotonic()

    def moved(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= TELL_S and os.getpid() == self._pid:
            self._told_s = now_s
            self.send(MOVED, b"")

    def send(self, number: int, body: bytes) -> None:
        with self._sending:
            self._connection.sendall(HEAD.pack(number, len(body)) + body)


def serve(connection: socket.socket, tickets: socket.socket) -> None:
    decoder = msgspec.msgpack.Decoder(Call)
    encoder = msgspec.msgpack.Encoder()
    answers = _Answers(connection)
    calls = connection.makefile("rb")
    while ticket := tickets.recv(TICKET.size):
        (wanted,) = TICKET.unpack(ticket)
        number = 0
        while number != wanted:  # those between were withdrawn
            number, size = HEAD.unpack(calls.read(HEAD.size))
            call = calls.read(size)
        answers.send(number, encoder.encode(answer(decoder.decode(call), answers.moved)))


def main() -> None:
    """The socket moves to a descriptor of its own, so that no print or child can disturb it."""
    connection = socket.socket(fileno=os.dup(0))
    tickets = socket.socket(fileno=int(sys.argv[1]))
    tickets.set_inheritable(False)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    sys.path.insert(0, os.getcwd())
    serve(connection, tickets)


if __name__ == "__main__":
    main()
