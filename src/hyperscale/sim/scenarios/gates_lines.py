"""Whether a gate may give up a datacenter, judged by the lines there really were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hyperscale.cluster.datacenters.settings import ProbeSettings
from hyperscale.nodes.gate.events import AnyEvent, Lost
from hyperscale.nodes.gate.gate import Gate
from hyperscale.sim.checkers import Checker
from hyperscale.sim.world import World

LOOK_S = 0.25
SURE_S = 3.0  # from when a line is cut until every gate knows
BEFORE_S = 4.0  # all was well for so long before, so that everybody was heard


def observe_losses(gate: Gate, world: World) -> None:
    """Its ledger tells the world when this gate gives a datacenter up."""
    ledger: Any = gate.ledger
    append = ledger.append

    async def appended(job_id: str, event: AnyEvent) -> None:
        if isinstance(event, Lost):
            world.observe("given_up", node=ledger.me, job=job_id, datacenter=event.datacenter)
        await append(job_id, event)

    ledger.append = appended


async def look_at_lines(world: World) -> None:
    while True:
        world.observe("lines")
        await world.sleep(LOOK_S)


class LinesChecker(Checker):
    """Since when each line carries streams, or does not; when each host was last not well."""

    def __init__(
        self,
        gates: Sequence[str],
        managers: Mapping[str, str],
        probes: ProbeSettings,
        lost_s: float,
    ) -> None:
        self.gates = list(gates)
        self.managers = dict(managers)
        self.probes = probes
        self.lost_s = lost_s
        self.ill_at: dict[str, float] = {}
        self.cut_since: dict[tuple[str, str], float | None] = {}
        """Of what the first of the two opens; None: it passes."""
        self.broken_at: dict[tuple[str, str], float] = {}
        """When anything between the two was last stopped."""

    def on_lines(self, at: float) -> None:
        self._look(at)

    def on_paused(self, at: float, node: str, seconds: float) -> None:
        self.ill_at[node] = max(self.ill_at.get(node, 0.0), at + seconds)

    def on_given_up(self, at: float, node: str, job: str, datacenter: str) -> None:
        self._look(at)
        self.judge(at, node, job, datacenter)

    def judge(self, at: float, node: str, job: str, datacenter: str) -> None:
        raise NotImplementedError

    def were_well(self, hosts: Iterable[str], since: float) -> bool:
        return all(self.ill_at.get(host, 0.0) < since for host in hosts)

    def _look(self, at: float) -> None:
        for name in (*self.gates, *self.managers.values()):
            machine = self.world.machines[name]
            if not machine.up or machine.slow is not None:
                self.ill_at[name] = max(self.ill_at.get(name, 0.0), at)
        for gate in self.gates:
            for other in (*self.managers.values(), *self.gates):
                if other != gate:
                    self._look_at_line(at, gate, other)

    def _look_at_line(self, at: float, one: str, other: str) -> None:
        network, key = self.world.network, (one, other)
        pairs = ((one, other), (other, one))
        mine = [network.passes(*pair, one) for pair in pairs]
        self.cut_since[key] = None if all(mine) else (self.cut_since.get(key) or at)
        theirs = [network.passes(*pair, other) for pair in pairs]
        datagrams = [network.datagram_cut(*pair) is None for pair in pairs]
        if not all((*mine, *theirs, *datagrams)):
            self.broken_at[key] = at


class LostWithReason(LinesChecker):
    """No datacenter is given up by a gate whose own line to all of them was cut at one moment, not
    before it has waited for as long as a disaster is doubted."""

    def judge(self, at: float, node: str, job: str, datacenter: str) -> None:
        self.world.coverage["given up"] += 1
        since = [self.cut_since.get((node, one)) for one in self.managers.values()]
        cut = [one for one in since if one is not None]
        if len(cut) < len(since) or max(cut) - min(cut) > LOOK_S:
            return
        self.world.coverage["given up, cut off"] += 1
        waited_s = at - cut[0]
        well = self.were_well((node, *self.managers.values()), cut[0] - BEFORE_S)
        if well and SURE_S < waited_s < self.probes.hold_s - SURE_S:
            self.fail(
                f"{node} gives up {datacenter} for {job}, and is itself cut off from all "
                f"datacenters for {waited_s:.1f} s"
            )


class LostToAll(LinesChecker):
    """Nor by a gate that could have left the job to another, which reached all of them, and it,
    for all that time."""

    def judge(self, at: float, node: str, job: str, datacenter: str) -> None:
        cut = self.cut_since.get((node, self.managers[datacenter]))
        if cut is None or at - cut < self.lost_s:
            return
        since = cut - BEFORE_S
        if not self.were_well((*self.gates, *self.managers.values()), since):
            return
        for other in self.gates:
            lines = [(other, one) for one in self.managers.values()]
            lines += [(other, one) for one in self.gates if one != other]
            if other != node and all(self.broken_at.get(line, 0.0) < since for line in lines):
                self.fail(
                    f"{node} gives up {datacenter} for {job}, which {other} reaches all the time"
                )


def line_checkers(
    gates: Sequence[str], managers: Mapping[str, str], probes: ProbeSettings, lost_s: float
) -> list[Checker]:
    kinds: list[type[LinesChecker]] = [LostWithReason, LostToAll]
    return [kind(gates, managers, probes, lost_s) for kind in kinds]
