"""The simulated network: datagrams by address, and the conditions every message meets.

A datagram meets, in order: a cut, loss, duplication, delay. Streams (see `streams`) meet the
same cuts and delays but lose nothing: a lost segment only costs a retransmission. Each fault that
really touches a message is counted, so a run can tell which faults it has seen.
"""

from __future__ import annotations

import errno
from collections import Counter, deque
from collections.abc import Callable, Iterator
from random import Random

from hyperscale.runtime.host import Address
from hyperscale.sim.links import Cut, Link
from hyperscale.sim.loop import SimLoop
from hyperscale.sim.machine import Machine
from hyperscale.sim.process import Process
from hyperscale.sim.streams import STREAM_BREAKS_AFTER_S, Connection, SimListener
from hyperscale.sim.trace import Trace

EPHEMERAL_PORT_FIRST = 40_000
DATAGRAM_BYTES_MAX = 65_507  # what UDP over IPv4 can carry
LOOPBACK_S = 0.00002
RETRANSMIT_S = 0.2  # the least a kernel waits before it sends a lost segment again
ANYWHERE = ("", "0.0.0.0", "::")
# What a socket holds unread: Linux's default of 208 KiB, of which even a small one takes 768 bytes.
UNREAD_MAX = 277


class SimDatagrams:
    """A bound port of one generation of a host."""

    def __init__(
        self,
        fabric: Fabric,
        machine: Machine,
        process: Process,
        address: Address,
        on_datagram: Callable[[bytes, Address], None],
    ) -> None:
        self._fabric = fabric
        self.address = address
        self.machine = machine
        self.process = process
        self.on_datagram = on_datagram
        self._unread: deque[tuple[bytes, Address]] = deque()
        self._reading = False

    def send(self, to: Address, data: bytes) -> None:
        if not self.process.dead:
            self._fabric.send(self, to, data)

    def close(self) -> None:
        self._fabric.unbind(self)
        self._unread.clear()

    def arrive(self, data: bytes, source: Address) -> None:
        """Into the socket. As a real loop does, the process reads one and then looks at its
        timers; the next one comes when the work for this one is done."""
        if len(self._unread) >= UNREAD_MAX:
            self._fabric.coverage["socket-full"] += 1
            return
        self._unread.append((data, source))
        if not self._reading:
            self._reading = True
            self._fabric.loop.post(self.process, self._read)

    def _read(self) -> None:
        self._fabric.loop.after(self._fabric.datagram_cost_s, self._worked)
        if self._unread:
            self.on_datagram(*self._unread.popleft())

    def _worked(self) -> None:
        self._reading = bool(self._unread)
        if self._reading:
            self._fabric.loop.post(self.process, self._read)


class Fabric:
    """Everything between the machines of a world."""

    def __init__(self, loop: SimLoop, random: Random, trace: Trace, coverage: Counter[str]) -> None:
        self.loop = loop
        self.random = random
        self.trace = trace
        self.coverage = coverage
        self.default = Link()
        self.route: Callable[[str, str], Link] | None = None
        """Names of two hosts to the link between them; None means `default` everywhere."""
        self.stream_breaks_after_s = STREAM_BREAKS_AFTER_S
        self.datagram_cost_s = 0.0
        """How long a process works on each datagram; 0: no time, and none waits unread."""
        self.by_ip: dict[str, Machine] = {}
        self.connections: dict[Connection, None] = {}
        self._cuts: list[Cut] = []
        self._held: list[tuple[str, str, Callable[[], None]]] = []
        self._ports: dict[Address, SimDatagrams] = {}
        self._listeners: dict[Address, SimListener] = {}
        self._next_port = EPHEMERAL_PORT_FIRST
        self._busy_until: dict[tuple[str, str], float] = {}
        self._last_arrival: dict[tuple[str, str], float] = {}

    # -- conditions ---------------------------------------------------------------------------

    def link(self, source: str, target: str) -> Link:
        return self.default if self.route is None else self.route(source, target)

    def cut(self, cut: Cut) -> Cut:
        self._cuts.append(cut)
        for connection in list(self.connections):
            connection.conditions_changed()
        return cut

    def heal(self, cut: Cut) -> None:
        if cut in self._cuts:
            self._cuts.remove(cut)
            self._conditions_improved()

    def heal_all(self) -> None:
        self._cuts.clear()
        self._conditions_improved()

    def stream_cut(self, source: str, target: str, caller: str) -> Cut | None:
        """What stops bytes of a stream between two hosts, one of which has opened it."""
        for cut in self._cuts:
            if cut.stops_stream(source, target, caller):
                return cut
        return None

    def passes(self, source: str, target: str, caller: str) -> bool:
        """Whether bytes of a stream would get from one host to another."""
        return source == target or self.stream_cut(source, target, caller) is None

    def datagram_cut(self, source: str, target: str) -> Cut | None:
        for cut in self._cuts:
            if cut.stops_datagram(source, target):
                return cut
        return None

    def delay(self, source: Machine, target: Machine, size: int) -> float:
        """Seconds from one machine to another for one packet that is not lost."""
        if source is target:
            return LOOPBACK_S
        link = self.default if self.route is None else self.route(source.name, target.name)
        seconds, tail = link.latency.sample(self.random)
        if tail:
            self.coverage["latency-tail"] += 1
        if source.slow is not None or target.slow is not None:
            for slow in (source.slow, target.slow):
                if slow is not None:
                    seconds += slow.sample(self.random)[0]
                    self.coverage["slow-node"] += 1
        if link.bytes_per_s is not None:
            pair = (source.name, target.name)
            free_at = max(self._busy_until.get(pair, 0.0), self.loop.now)
            self._busy_until[pair] = free_at + size / link.bytes_per_s
            seconds += self._busy_until[pair] - self.loop.now
        return seconds

    def retransmissions(self, source: Machine, target: Machine) -> float:
        """Extra seconds a stream segment takes because its packets get lost."""
        loss = 0.0 if source is target else self.link(source.name, target.name).loss
        seconds, wait = 0.0, RETRANSMIT_S
        while loss and wait < 10.0 and self.random.random() < loss:
            seconds += wait
            wait *= 2
            self.coverage["loss"] += 1
        return seconds

    def _conditions_improved(self) -> None:
        held, self._held = self._held, []
        for source, target, release in held:
            if self.datagram_cut(source, target) is None:
                release()
            else:
                self._held.append((source, target, release))
        for connection in list(self.connections):
            connection.conditions_changed()

    # -- datagrams ----------------------------------------------------------------------------

    def send(self, port: SimDatagrams, to: Address, data: bytes) -> None:
        now, source = self.loop.now, port.machine
        target = self.by_ip.get(to.host)
        if target is None or len(data) > DATAGRAM_BYTES_MAX:
            self.trace.message(now, source.name, str(to), data, "undeliverable")
            return
        if target is source:
            self._deliver_after(LOOPBACK_S, port, target, to, data)
            return
        cut = self.datagram_cut(source.name, target.name) if self._cuts else None
        if cut is not None:
            self.coverage[cut.kind] += 1
            self.trace.message(
                now, source.name, target.name, data, "held" if cut.holds else "cut off"
            )
            if cut.holds:
                self._held.append(
                    (source.name, target.name, lambda: self._pass(port, target, to, data))
                )
            return
        self._pass(port, target, to, data)

    def _pass(self, port: SimDatagrams, target: Machine, to: Address, data: bytes) -> None:
        source, random = port.machine, self.random
        link = self.link(source.name, target.name)
        if link.loss and random.random() < link.loss:
            self.coverage["loss"] += 1
            self.trace.message(self.loop.now, source.name, target.name, data, "lost")
            return
        self._deliver_after(self.delay(source, target, len(data)), port, target, to, data)
        if link.duplicate and random.random() < link.duplicate:
            self.coverage["duplicate"] += 1
            self._deliver_after(self.delay(source, target, len(data)), port, target, to, data)

    def _deliver_after(
        self, seconds: float, port: SimDatagrams, target: Machine, to: Address, data: bytes
    ) -> None:
        now = self.loop.now
        self.trace.sent(now, port.machine.name, target.name, data, seconds)
        pair, arrival = (port.machine.name, target.name), now + seconds
        if arrival < self._last_arrival.get(pair, 0.0):
            self.coverage["reorder"] += 1
        self._last_arrival[pair] = arrival
        self.loop.at(arrival, self._deliver, port.address, to, data)

    def _deliver(self, source: Address, to: Address, data: bytes) -> None:
        port = self._ports.get(to)
        if port is None:
            return
        if self.datagram_cost_s:
            port.arrive(data, source)
        else:
            self.loop.enter(port.process, port.on_datagram, data, source)

    # -- ports --------------------------------------------------------------------------------

    def bind(
        self,
        machine: Machine,
        process: Process,
        address: Address,
        on_datagram: Callable[[bytes, Address], None],
    ) -> SimDatagrams:
        own = self._own_address(machine, address, self._ports)
        port = self._ports[own] = SimDatagrams(self, machine, process, own, on_datagram)
        return port

    def unbind(self, port: SimDatagrams) -> None:
        if self._ports.get(port.address) is port:
            del self._ports[port.address]

    def add_listener(self, machine: Machine, address: Address, listener: SimListener) -> Address:
        own = self._own_address(machine, address, self._listeners)
        self._listeners[own] = listener
        return own

    def listener(self, address: Address) -> SimListener | None:
        return self._listeners.get(address)

    def remove_listener(self, listener: SimListener) -> None:
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    def ephemeral(self, machine: Machine) -> Address:
        self._next_port += 1
        return Address(machine.ip, self._next_port)

    def connections_of(self, machine: Machine) -> Iterator[Connection]:
        return (link for link in list(self.connections) if link.touches(machine))

    def close_process(self, machine: Machine, process: Process, silent: bool) -> None:
        """A process is gone: its ports close, its streams break now or, with `silent`, when the
        other side gives up waiting."""
        for port in [port for port in self._ports.values() if port.process is process]:
            self.unbind(port)
        for listener in [own for own in self._listeners.values() if own.process is process]:
            self.remove_listener(listener)
        for connection in self.connections_of(machine):
            connection.abandoned_by(machine, silent)

    def abort_streams(self, machine: Machine, process: Process) -> None:
        for connection in self.connections_of(machine):
            connection.abort(process)

    def machine_returns(self, machine: Machine) -> None:
        """A rebooted kernel knows none of the old streams and says so."""
        for connection in self.connections_of(machine):
            connection.abandoned_by(machine, silent=False)

    def _own_address(
        self,
        machine: Machine,
        address: Address,
        taken: dict[Address, SimDatagrams] | dict[Address, SimListener],
    ) -> Address:
        if address.host not in (*ANYWHERE, machine.ip, machine.name):
            raise OSError(errno.EADDRNOTAVAIL, f"{address} is not an address of {machine.name}")
        own = self.ephemeral(machine) if address.port == 0 else Address(machine.ip, address.port)
        if own in taken:
            raise OSError(errno.EADDRINUSE, f"{own} is in use")
        return own
