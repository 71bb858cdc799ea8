"""A simulated world: machines, the network between them, true time, and what is done to them.

One seed fixes everything. Each part draws from its own stream of numbers, so that one more draw
in one of them does not change the dice of the others. Checkers see everything that happens
through `observe`, in true time, without the code under test knowing of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

from hyperscale.sim.checkers import Checker
from hyperscale.sim.disk import CrashDisk, DiskImage
from hyperscale.sim.host import SimHost, is_ip
from hyperscale.sim.loop import SimLoop
from hyperscale.sim.machine import Machine, Main
from hyperscale.sim.network import Fabric
from hyperscale.sim.process import Process
from hyperscale.sim.trace import Trace

T = TypeVar("T")

WALL_AT_START = 1_750_000_000.0
CLOCK_ORIGIN_S_MAX = 10_000.0
# A supervisor starts a process again that gave up by itself.
SUPERVISOR_DELAY_S_MAX = 5.0
STOPPING_SEEN_EVERY_S = 1.0


class World:
    def __init__(
        self,
        seed: int,
        *,
        trace: Trace | None = None,
        checkers: Sequence[Checker] = (),
        forgives: Callable[[str, BaseException], bool] | None = None,
    ) -> None:
        self.seed = seed
        self.loop = SimLoop()
        self.trace = trace or Trace()
        self.coverage: Counter[str] = Counter()
        self.failures: list[str] = []
        self.machines: dict[str, Machine] = {}
        self.names: dict[str, list[str]] = {}
        """Names that `resolve` knows beside those of the hosts: name to IP addresses."""
        self.core: list[str] = []
        """In the liveness phase: the hosts that are up and can reach each other."""
        self.healed_at = 0.0
        """When the liveness phase began; 0.0 before."""
        self.random = self.random_stream("scenario")
        self.network = Fabric(self.loop, self.random_stream("network"), self.trace, self.coverage)
        self.checkers = list(checkers)
        self._listening: dict[str, list[Callable[..., None]]] = {}
        self._forgives = forgives or (lambda _task, _error: False)
        self._graveyard: list[SimHost] = []
        self._supervisor = self.random_stream("supervisor")
        self._over = False
        self.loop.set_exception_handler(self._callback_failed)
        for checker in self.checkers:
            checker.attach(self)

    # -- time and chance ----------------------------------------------------------------------

    @property
    def now(self) -> float:
        """True time in seconds since the world began."""
        return self.loop.now

    def wall(self) -> float:
        return WALL_AT_START + self.loop.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def random_stream(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")

    # -- machines -----------------------------------------------------------------------------

    def add(self, name: str, main: Main) -> Machine:
        """A new machine, switched on: `main(host)` starts at once and again at every restart."""
        assert name not in self.machines, f"there is a host {name} already"
        number = len(self.machines) + 1
        ip = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        machine = Machine(name, ip, DiskImage(self.random_stream(f"disk {name}")), main)
        self.machines[name] = machine
        self.network.by_ip[ip] = machine
        self._boot(machine)
        return machine

    def host(self, name: str) -> SimHost:
        """The running generation of a host."""
        host = self.machines[name].host
        assert host is not None, f"{name} is down"
        return host

    def up(self) -> list[str]:
        return [machine.name for machine in self.machines.values() if machine.up]

    def addresses(self, name: str) -> list[str]:
        if is_ip(name):
            return [name]
        machine = self.machines.get(name)
        return [machine.ip] if machine else self.names.get(name, [])

    def crash(self, name: str, disk: CrashDisk = "kept", for_good: bool = False) -> None:
        """`kept`: the process is killed. `lost-unsynced` and `torn`: the machine loses power.
        With `for_good` neither a supervisor nor the end of the faults starts it again."""
        machine = self.machines[name]
        machine.retired = machine.retired or for_good
        if machine.process is None:
            return
        machine.powered = disk == "kept"
        self._end(machine, silent=not machine.powered)
        torn = machine.disk.crash(disk)
        self.coverage[f"crash-{disk}"] += 1
        if torn:
            self.coverage["torn-file"] += torn
        self.observe("crashed", node=name, disk=disk)

    async def stop(self, name: str, for_good: bool = True) -> bool:
        """A graceful end: the host stops its tasks and closes its ports. False when something
        else ended it first."""
        host, machine = self.host(name), self.machines[name]
        self.observe("stopping", node=name)
        stopping = asyncio.ensure_future(host.stop())
        while not stopping.done():
            await asyncio.wait((stopping,), timeout=STOPPING_SEEN_EVERY_S)
            if machine.host is not host:
                stopping.cancel()  # its tasks will never end
                return False
        await stopping
        if host.tasks.names():
            self.fail("framework", f"{name} stopped and left {host.tasks.names()}")
        machine.retired = machine.retired or for_good
        self._end(machine, silent=False)
        self.observe("stopped", node=name)
        return True

    def restart(self, name: str) -> None:
        """A new generation on what the disk still holds. Nothing happens to a host that is up."""
        machine = self.machines[name]
        machine.retired = False
        if machine.process is not None:
            return
        if not machine.powered:
            machine.powered = True
            self.network.machine_returns(machine)
        self.observe("restarted", node=name)
        self._boot(machine)

    def restart_after(self, name: str, seconds: float) -> None:
        """As a supervisor does; unless it was started, or taken down for good, meanwhile."""
        machine = self.machines[name]
        generation = machine.generation

        def still_wanted() -> None:
            if machine.generation == generation and not machine.retired:
                self.restart(name)

        self.loop.after(seconds, still_wanted)

    def pause(self, name: str, seconds: float) -> None:
        """The process stands still: timers and messages wait and then come all at once."""
        process = self.machines[name].process
        if process is None:
            return
        self.observe("paused", node=name, seconds=seconds)
        process.pause(self.now + seconds)
        self.loop.after(seconds, self._resume_after_pause, name, process)

    def resume(self, name: str) -> None:
        """End a pause now; nothing happens to a host that runs or is down."""
        process = self.machines[name].process
        if process is None or process.running:
            return
        if process.held_count:
            self.coverage["pause"] += 1
        self.observe("resumed", node=name)
        process.resume()

    def set_clock_rate(self, name: str, rate: float) -> None:
        """The monotonic clock of a host runs at its own rate from now on, over restarts."""
        machine = self.machines[name]
        machine.clock_rate = rate
        if machine.process is not None:
            machine.process.set_rate(rate)
        if rate != 1.0:
            self.coverage["clock-drift"] += 1
        self.observe("clock_rate", node=name, rate=rate)

    def step_wall_clock(self, name: str, seconds: float) -> None:
        self.machines[name].wall_offset_s += seconds
        self.coverage["wall-step"] += 1
        self.observe("wall_step", node=name, seconds=seconds)

    def rot(self, name: str) -> None:
        """Flip a bit of something durable on a disk."""
        hit = self.machines[name].disk.rot()
        if hit is not None:
            self.coverage["bit-rot"] += 1
            self.observe("rotted", node=name, path=hit[0], offset=hit[1])

    # -- what checkers see --------------------------------------------------------------------

    def observe(self, kind: str, **facts: Any) -> None:
        """Something happened; checkers with an `on_<kind>` method are called with the facts."""
        if self._over:
            return
        now = self.loop.now
        self.trace.observation(now, kind, facts)
        listening = self._listening.get(kind)
        if listening is None:
            methods = (getattr(checker, f"on_{kind}", None) for checker in self.checkers)
            listening = self._listening[kind] = [method for method in methods if method]
        for method in listening:
            method(now, **facts)

    def fail(self, checker: str, message: str) -> None:
        """The run is over and has failed."""
        if self._over:
            return
        failure = f"{checker}: {message} (at {self.loop.now:.6f} s)"
        self.trace.note(self.loop.now, "", f"FAILED {failure}")
        self.failures.append(failure)
        self.loop.stop()

    def close(self) -> None:
        """End every coroutine that is left; what they still say is not heard."""
        self._over = True
        for machine in self.machines.values():
            if machine.process is not None:
                self._end(machine, silent=True)
        for task in sorted(asyncio.all_tasks(self.loop), key=hash):
            _discard(task)
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end, outside every host; for tests that need no scenario."""
        result: T = self.loop.run_until_complete(work)
        return result

    # -- inside -------------------------------------------------------------------------------

    def _callback_failed(self, _loop: asyncio.AbstractEventLoop, facts: dict[str, Any]) -> None:
        self.fail("framework", f"{facts.get('message')}: {facts.get('exception')!r}")

    def _boot(self, machine: Machine) -> None:
        machine.generation += 1
        name = f"{machine.name}/{machine.generation}"
        random = self.random_stream(f"host {name}")
        origin = random.uniform(0, CLOCK_ORIGIN_S_MAX)
        process = Process(self.loop, name, origin, machine.clock_rate)
        machine.process = process
        host = SimHost(self, machine, process, random, self._reporter(machine, process))
        machine.host = host
        self.loop.post(process, self._start, host, machine)

    def _start(self, host: SimHost, machine: Machine) -> None:
        host.tasks.spawn("main", machine.main(host))

    def _reporter(
        self, machine: Machine, process: Process
    ) -> Callable[[str, BaseException | None], None]:
        def report(task: str, error: BaseException | None) -> None:
            if error is None:
                self.trace.note(self.now, machine.name, f"task {task!r} does not end")
                return
            self.trace.note(self.now, machine.name, f"task {task!r} died: {error!r}")
            if not self._forgives(task, error):
                self.fail("framework", f"task {task!r} of {machine.name} died of {error!r}")
            elif task == "main" and machine.process is process:
                self.coverage["process-exit"] += 1
                self._end(machine, silent=False)
                self.observe("crashed", node=machine.name, disk="kept")
                delay_s = self._supervisor.uniform(0.1, SUPERVISOR_DELAY_S_MAX)
                self.restart_after(machine.name, delay_s)

        return report

    def _end(self, machine: Machine, silent: bool) -> None:
        process, host = machine.process, machine.host
        assert process is not None
        assert host is not None
        process.kill()
        machine.process = machine.host = None
        # Kept until the end: a coroutine that is collected early would run its `finally` blocks.
        self._graveyard.append(host)
        self.network.close_process(machine, process, silent)

    def _resume_after_pause(self, name: str, process: Process) -> None:
        if self.machines[name].process is process and self.now >= process.paused_until:
            self.resume(name)


def _discard(task: asyncio.Task[Any]) -> None:
    """End a coroutine that will never be run again, without asyncio complaining about it."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    try:
        if coroutine is not None:
            coroutine.close()
    except Exception:  # noqa: BLE001,S110 - the run is over; what a dead node thinks of it is not
        pass
