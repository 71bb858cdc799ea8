"""Workers with the bugs that such systems have had; `cluster_bugs` names the checker of each."""

from __future__ import annotations

from typing import Any, Final

from hyperscale.nodes.worker.held_part import HeldPart
from hyperscale.nodes.worker.part_life import Effect as LifeEffect
from hyperscale.nodes.worker.part_life import Kill, Steer
from hyperscale.nodes.worker.runner import Runner
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.nodes.worker.worker import Worker
from hyperscale.sim.host import SimHost


class LeavesAtOnce(Worker):
    async def drain(self) -> None:
        """Nobody waits for what is under way."""


class PausesNothing(Worker):
    """A pause is confirmed, and the load goes on."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def deaf(one: HeldPart, effects: list[LifeEffect]) -> None:
            do(one, [effect for effect in effects if effect != Steer("pause")])

        self.parts._do = deaf  # type: ignore[method-assign]


class Unfenced(Worker):
    """Goes on for ever without its managers."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        self.contact._fence_s = 1e9


class FencedByProbes(Worker):
    """Managers that answer probes are contact, whether or not they could command it."""

    def _look(self) -> None:
        super()._look()
        members = self.node.membership.core.members()
        if any(one.node.role == "manager" and one.live for one in members):
            self.contact.led(self._host.clock.now(), "", 0)


class Outlives(Worker):
    """A cancellation is not heard, however it comes, and generators have no lease."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def deaf(one: HeldPart, effects: list[LifeEffect]) -> None:
            one.running.lease = lambda seconds: None  # type: ignore[method-assign]
            if one.life._halted is not None and one.life._halted[0] == "cancelled":
                effects = [effect for effect in effects if effect != Steer("cancel")]
                effects = [effect for effect in effects if not isinstance(effect, Kill)]
                one.running.close = _nothing  # type: ignore[method-assign]
            do(one, effects)

        self.parts._do = deaf  # type: ignore[method-assign]


class SaysCancelled(Worker):
    """A part that is told to end is said to have ended, and its processes are left alone."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        do = self.parts._do

        def lie(one: HeldPart, effects: list[LifeEffect]) -> None:
            cancel = Steer("cancel")
            do(one, [effect for effect in effects if effect != cancel])
            if cancel in effects:
                one.running.close = _nothing  # type: ignore[method-assign]
                do(one, one.life.over(host.clock.now()))

        self.parts._do = lie  # type: ignore[method-assign]


async def _nothing() -> None:
    pass


class LeaksCores(Worker):
    """One in three times a part ends, its cores stay taken."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        release = self.parts.cores.release
        owners: dict[Any, int] = {}

        def forget(owner: Any, keep: int = 0) -> None:
            number = owners.setdefault(owner, len(owners) + 1)
            if number % 3:
                release(owner, keep)

        self.parts.cores.release = forget  # type: ignore[method-assign]


class TakesAnything(Worker):
    """A part is taken, whatever else uses the cores."""

    def __init__(self, host: SimHost, settings: WorkerSettings, runner: Runner) -> None:
        super().__init__(host, settings, runner)
        self.parts.cores._in_use = lambda: 0  # type: ignore[method-assign]


WORKERS: Final[dict[str, type[Worker]]] = {
    "no-fence": Unfenced,
    "say-cancelled": SaysCancelled,
    "leak-cores": LeaksCores,
    "book-twice": TakesAnything,
    "leave-at-once": LeavesAtOnce,
    "pause-nothing": PausesNothing,
    "fence-by-probes": FencedByProbes,
    "outlive": Outlives,
}
