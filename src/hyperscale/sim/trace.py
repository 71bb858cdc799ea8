"""The timeline of a run: who said what to whom, what changed, what was done to the world.

Everything recorded goes into a running hash, so two runs can be compared byte for byte without
keeping them; lines for people are made only when somebody reads along.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import Any

FLUSH_PARTS = 96  # some 30 datagrams: still in the processor's cache when they are hashed
NODE_COLUMN = 10
_TIME = struct.Struct("<d")
_TIMES = struct.Struct("<dd")


class Trace:
    def __init__(
        self,
        sink: Callable[[str], None] | None = None,
        describe: Callable[[bytes], str] | None = None,
    ) -> None:
        """`sink` takes each line; `describe` says in words what a datagram holds."""
        self._sink = sink
        self._describe = describe or printable
        self._hash = hashlib.blake2b(digest_size=16)
        self._parts: list[bytes] = []
        self._pairs: dict[tuple[str, str], bytes] = {}

    def message(self, at: float, source: str, target: str, data: bytes, fate: str) -> None:
        """A datagram that goes nowhere, and why."""
        self._add(_TIME.pack(at), f"{source}>{target} {fate} ".encode(), data)
        if self._sink is not None:
            said = f"→ {target}: {self._describe(data)} ({len(data)} B, {fate})"
            self._line(at, source, said)

    def sent(self, at: float, source: str, target: str, data: bytes, takes_s: float) -> None:
        """A datagram on its way. Nothing is formatted unless somebody reads: this is the most
        frequent line of all."""
        pair = self._pairs.get((source, target))
        if pair is None:
            pair = self._pairs[source, target] = f"{source}>{target} ".encode()
        self._add(_TIMES.pack(at, takes_s), pair, data)
        if self._sink is not None:
            said = f"→ {target}: {self._describe(data)} ({len(data)} B, {takes_s * 1e3:.3f} ms)"
            self._line(at, source, said)

    def note(self, at: float, node: str, text: str) -> None:
        self._add(_TIME.pack(at), f"{node} {text}\n".encode())
        if self._sink is not None:
            self._line(at, node, text)

    def observation(self, at: float, kind: str, facts: Mapping[str, Any]) -> None:
        node = str(facts.get("node", ""))
        rest = " ".join(f"{k}={canonical(v)}" for k, v in facts.items() if k != "node")
        self.note(at, node, f"{kind} {rest}".rstrip())

    def digest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def _add(self, *parts: bytes) -> None:
        kept = self._parts
        kept += parts
        if len(kept) > FLUSH_PARTS:
            self._flush()

    def _flush(self) -> None:
        self._hash.update(b"".join(self._parts))
        self._parts.clear()

    def _line(self, at: float, node: str, text: str) -> None:
        assert self._sink is not None
        self._sink(f"{at:12.6f}  {node:<{NODE_COLUMN}}  {text}")


def canonical(value: object) -> str:
    """Text that is the same in every process: sets have no order of their own."""
    if type(value) is str:
        return value
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(canonical(item) for item in value)) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {canonical(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(canonical(item) for item in value) + ")"
    return str(value)


def printable(data: bytes) -> str:
    """The beginning as text, other bytes as dots."""
    shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data[:40])
    return shown + ("…" if len(data) > 40 else "")
