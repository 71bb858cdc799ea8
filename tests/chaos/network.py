"""Network namespaces joined by a bridge, and cuts between them: by pair, direction and protocol.

All of it lives in a user namespace, so it needs no rights, and in namespaces of processes and of
mounts, so it ends with the process that made it. A cut is a rule of nftables where a packet
arrives: connections stay open and hear nothing, as on a network that has lost its way. A cut may
also take only some of the packets, or answer TCP with a reset as a firewall does.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.chaos.schedule import Edge, Loss, Protocol

Cut = tuple[Edge, Protocol, Loss]

UNSHARE = (
    *("unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork"),
    *("--kill-child", "--mount-proc"),
)
PROGRAMS = ("unshare", "nsenter", "ip", "nft", "mount")
NET = "10.77.0"
OURS = f"{NET}.1"  # of the bridge, from which a round looks at everybody; nobody cuts it off
TRIAL = """
ip link add bridge0 type bridge
ip link add one type veth peer name other
nft add table inet cuts
mount -t tmpfs -o size=1m tmpfs /tmp
"""


def reason_to_skip() -> str:
    """Why there can be no namespaces on this machine; empty: there can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"no namespaces without {', '.join(missing)}"
    tried = subprocess.run(
        [*UNSHARE, "sh", "-ec", TRIAL], capture_output=True, text=True, check=False
    )
    if tried.returncode == 0:
        return ""
    return "no network namespaces: " + (tried.stderr.strip().splitlines() or ["not allowed"])[-1]


class Network:
    """The first name gets the address .11, the next .12, ..."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._hosts = {name: f"{NET}.{number}" for number, name in enumerate(names, 11)}
        self._cuts: list[Cut] = []

    def build(self) -> None:
        self._folder.mkdir()
        _do("ip", "link", "set", "lo", "up")
        _do("ip", "link", "add", "bridge0", "type", "bridge")
        _do("ip", "address", "add", f"{OURS}/24", "dev", "bridge0")
        _do("ip", "link", "set", "bridge0", "up")
        for name, host in self._hosts.items():
            place = self._folder / name
            place.touch()
            _do("unshare", f"--net={place}", "true")
            _do(
                *("ip", "link", "add", f"to-{name}", "type", "veth"),
                *("peer", "name", "eth0", "netns", str(place)),
            )
            _do("ip", "link", "set", f"to-{name}", "master", "bridge0", "up")
            _do(*self.inside(name), "ip", "address", "add", f"{host}/24", "dev", "eth0")
            _do(*self.inside(name), "ip", "link", "set", "eth0", "up")
            _do(*self.inside(name), "ip", "link", "set", "lo", "up")

    def host(self, name: str) -> str:
        return self._hosts[name]

    def name(self, host: str) -> str:
        return next((name for name, one in self._hosts.items() if one == host), host)

    def inside(self, name: str) -> Sequence[str]:
        return ("nsenter", f"--net={self._folder / name}") if name in self._hosts else ()

    def cut(self, edges: Iterable[Edge], protocol: Protocol, loss: Loss) -> None:
        self._change([*self._cuts, *((edge, protocol, loss) for edge in edges)])

    def heal(self, edges: Iterable[Edge], protocol: Protocol, loss: Loss) -> None:
        """Another cut of the same edge stays."""
        left = list(self._cuts)
        for edge in edges:
            left.remove((edge, protocol, loss))
        self._change(left)

    def _change(self, cuts: list[Cut]) -> None:
        before, self._cuts = self._cuts, cuts
        for name in {edge[1] for edge, *_ in before + cuts}:
            subprocess.run(
                [*self.inside(name), "nft", "-f", "-"],
                input=self._rules(name),
                text=True,
                check=True,
            )

    def _rules(self, hearer: str) -> str:
        rules = "\n".join(
            f"ip saddr {self._hosts[speaker]} {rule}"
            for (speaker, to), protocol, loss in self._cuts
            if to == hearer
            for rule in _fates(protocol, loss)
        )
        return f"""
table inet cuts
delete table inet cuts
table inet cuts {{
chain arriving {{
type filter hook input priority 0; policy accept;
{rules}
}}
}}
"""


def _fates(protocol: Protocol, loss: Loss) -> Iterable[str]:
    match = f"meta l4proto {'{ tcp, udp }' if protocol == 'both' else protocol}"
    if loss == "reset":
        if protocol != "udp":
            yield "meta l4proto tcp reject with tcp reset"
        if protocol != "tcp":
            yield "meta l4proto udp drop"
    elif loss == "all":
        yield f"{match} drop"
    else:
        yield f"{match} numgen random mod 100 < {loss} drop"


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
