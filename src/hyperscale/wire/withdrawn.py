"""Certificates that are good by their signature and are let in no more.

A file names one a line: the serial number of a certificate, as `hyperscale certs list` shows it, or
the id of a node, whose certificates are then all refused. `#` begins a remark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hyperscale.errors import BadInput
from hyperscale.wire.errors import Reason, Refused


@dataclass(frozen=True, slots=True)
class Withdrawn:
    serials: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.nodes)

    def covers(self, node_id: str, serial: int | None) -> bool:
        return node_id in self.nodes or serial in self.serials

    def check(self, node_id: str, serial: int | None) -> None:
        """Raises Refused."""
        if self.covers(node_id, serial):
            raise Refused("", f"the certificate of {node_id} was withdrawn", code=Reason.WITHDRAWN)


def serial_text(serial: int) -> str:
    return f"{serial:x}"


def read_withdrawn(path: Path) -> Withdrawn:
    """Raises BadInput. A word that could be a serial number or a name is taken as both."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the list of refused certificates {path} cannot be read: {error}") from None
    words = [line.partition("#")[0].strip() for line in text.splitlines()]
    wrong = next((word for word in words if len(word.split()) > 1), None)
    if wrong is not None:
        raise BadInput(f"{path} has one serial number or node id a line, not {wrong!r}")
    names = frozenset(filter(None, words))
    serials = (_serial(name) for name in names)
    return Withdrawn(frozenset(serial for serial in serials if serial is not None), names)


def _serial(word: str) -> int | None:
    try:
        return int(word.replace(":", ""), 16)
    except ValueError:
        return None
