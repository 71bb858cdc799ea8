"""The process in which `python` jobs run, one after another: requests in on stdin, answers out on
what was stdout. What the callables print is captured, bounded, and sent with the answer.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, BinaryIO

import msgspec

HEAD = struct.Struct("!I")
LOG_CHARS = 64 * 1024


class Call(msgspec.Struct, frozen=True, array_like=True):
    target: str
    args: list[Any]
    kwargs: dict[str, Any]
    job_id: str
    token: int


class Returned(msgspec.Struct, frozen=True, array_like=True):
    error: str
    """Empty: it went well."""
    kind: str
    """"" or "permanent" or "transient"."""
    log: str


class _Captured(io.TextIOBase):
    def __init__(self) -> None:
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
        return len(text)

    def text(self) -> str:
        return "".join(self._parts)[-LOG_CHARS:]


_found: dict[str, Callable[..., object]] = {}


def _find(target: str) -> Callable[..., object]:
    if target not in _found:
        module, _, name = target.partition(":")
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        if not callable(value):
            raise TypeError(f"{target} is not callable")
        _found[target] = value
    return _found[target]


def answer(call: Call) -> Returned:
    captured = _Captured()
    os.environ["HYPERSCALE_JOB_ID"] = call.job_id
    os.environ["HYPERSCALE_FENCING_TOKEN"] = str(call.token)
    with redirect_stdout(captured), redirect_stderr(captured):
        try:
            function = _find(call.target)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            return Returned(f"{call.target}: {error}", "permanent", captured.text())
        try:
            value = function(*call.args, **call.kwargs)
        except (ConnectionError, TimeoutError) as error:
            return _raised(error, "transient", captured)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a job may raise anything
            return _raised(error, "", captured)
        if value is not None:
            captured.write(f"{value!r}\n"[:LOG_CHARS])
    return Returned("", "", captured.text())


def _raised(error: BaseException, kind: str, captured: _Captured) -> Returned:
    captured.write(traceback.format_exc())
    return Returned(f"{type(error).__name__}: {error}", kind, captured.text())


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    decoder = msgspec.msgpack.Decoder(Call)
    encoder = msgspec.msgpack.Encoder()
    while head := requests.read(HEAD.size):
        (size,) = HEAD.unpack(head)
        body = encoder.encode(answer(decoder.decode(requests.read(size))))
        answers.write(HEAD.pack(len(body)) + body)
        answers.flush()


def main() -> None:
    """The pipes move to descriptors of their own, so that no print or child can disturb them."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    sys.path.insert(0, os.getcwd())
    serve(requests, answers)


if __name__ == "__main__":
    main()
