"""An asyncio event loop in virtual time.

asyncio's tasks, futures, locks, queues and timeouts run on it unchanged. Nothing here waits: when
no callback is ready the clock jumps to the next timer. Timers due at one instant run in the order
they were set, so a run depends on nothing but its inputs: no selector, no threads, no wall clock.
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
from asyncio import events as asyncio_events
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from hyperscale.sim.events import NEVER, Event
from hyperscale.sim.process import CURRENT, Process

T = TypeVar("T")
Args = TypeVarTuple("Args")

EVENTS_MAX = 50_000_000  # of one run: minutes of real time, so a history that never ends does end
EVENTS_PER_INSTANT_MAX = 500_000  # far above 1,000 nodes acting at once: virtual time stands still
STALE_TIMERS_MIN = 1_024  # cancelled timers are swept out when there are more, and most are stale
CHECK_EVERY_EVENTS = 1_000_000  # limits, and garbage: collected here, not when Python likes


class SimulationStuck(Exception):
    """The simulated world cannot go on: nothing will ever happen again, or time stands still."""


class SimTask(asyncio.Task[T]):
    """Hashes by its number, not its address: sets of tasks, as TaskGroup keeps, iterate in the
    same order in every process."""

    def __init__(
        self,
        serial: int,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        name: object,
        context: Context | None,
    ) -> None:
        self.serial = serial
        super().__init__(
            coro, loop=loop, name=str(name) if name else f"task-{serial}", context=context
        )

    def __hash__(self) -> int:
        return self.serial

    def __eq__(self, other: object) -> bool:
        return self is other


class SimLoop(asyncio.BaseEventLoop):
    def __init__(
        self,
        events_max: int = EVENTS_MAX,
        events_per_instant_max: int = EVENTS_PER_INSTANT_MAX,
    ) -> None:
        super().__init__()
        self.now = 0.0
        """True virtual time, seconds."""
        self.event_count = 0
        self.errors: list[tuple[str, BaseException | None]] = []
        """What reached the exception handler: message and exception."""
        self._events_max = events_max
        self._events_per_instant_max = events_per_instant_max
        self._queue: deque[Event] = deque()
        self._timers: list[tuple[float, int, Event]] = []
        # A method would do the same, with a Python frame for each future.
        self.create_future = partial(asyncio.Future, loop=self)  # type: ignore[method-assign]
        self.rested: asyncio.Future[None] = asyncio.Future(loop=self)
        """Done: what a task is woken with that has slept to the end."""
        self.rested.set_result(None)
        self._timer_serial = 0
        self._task_serial = 0
        self._stale_timers = 0
        self._stop_asked = False
        self._running = False
        self._shut = False
        self._on_error: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None

    # -- what asyncio asks of a loop --------------------------------------------------------

    def time(self) -> float:
        process = CURRENT.get(None)
        return self.now if process is None else process.now()

    def call_soon(
        self,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Any:
        if context is None:
            context = copy_context()
        event = Event(self, callback, args, context, context.get(CURRENT))
        self._queue.append(event)
        return event

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Any:
        if context is None:
            context = copy_context()
        process = context.get(CURRENT)
        event = Event(self, callback, args, context, process, when)
        self.push(when if process is None else process.true_time(when), event)
        return event

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Args], object],
        *args: *Args,
        context: Context | None = None,
    ) -> Any:
        return self.call_soon(callback, *args, context=context)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **_since_python_3_14: object,
    ) -> SimTask[T]:
        self._task_serial += 1
        return SimTask(self._task_serial, coro, self, name, context)

    def run_in_executor(  # type: ignore[override]  # it refuses, whatever it is given
        self, executor: Any, func: Any, *args: Any
    ) -> NoReturn:
        raise RuntimeError("threads have no place in a simulation; use the host's disk or tasks")

    # Asked for every future: a type that answers False costs no Python frame.
    get_debug = bool

    def set_debug(self, enabled: bool) -> None:
        if enabled:
            raise RuntimeError("the simulated loop has no debug mode; print the trace instead")

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._shut

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        self._on_error = handler

    def get_exception_handler(
        self,
    ) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None:
        return self._on_error

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append((str(context.get("message", "")), context.get("exception")))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._on_error is None:
            self.default_exception_handler(context)
        else:
            self._on_error(self, context)

    async def shutdown_asyncgens(self) -> None:
        """Abandoned generators end with the run; asyncio.Runner asks for this."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none; asyncio.Runner asks for this."""

    # -- what the simulator adds ------------------------------------------------------------

    def at(self, true_time: float, callback: Callable[..., object], *args: Any) -> Event:
        """Call back at a true time, outside every process: for the network and the faults."""
        event = Event(self, callback, args, None, None, true_time)
        self.push(true_time, event)
        return event

    def after(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        self.at(self.now + seconds, callback, *args)

    def post(self, process: Process, callback: Callable[..., object], *args: Any) -> None:
        """Call back inside a process as soon as it runs; never when it is dead."""
        self._queue.append(Event(self, callback, args, process.context, process))

    def enter(self, process: Process, callback: Callable[..., object], *args: Any) -> None:
        """The same for the last act of a timer of `at`: nothing else is ready then, so that it
        may as well be done now."""
        if process.running and not self._queue:
            process.context.run(callback, *args)
        else:
            self.post(process, callback, *args)

    def make_ready(self, events: Iterable[Event]) -> None:
        self._queue.extend(events)

    def note_stale_timer(self) -> None:
        self._stale_timers += 1
        if self._stale_timers > STALE_TIMERS_MIN and self._stale_timers * 2 > len(self._timers):
            self._timers[:] = [entry for entry in self._timers if entry[2].call is not None]
            heapify(self._timers)
            self._stale_timers = 0

    def push(self, due: float, event: Event) -> None:
        """A timer, at a true time."""
        self._timer_serial = serial = self._timer_serial + 1
        heappush(self._timers, (due if due > self.now else self.now, serial, event))

    # -- running ----------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done, or until `stop`; then its result, or None."""
        main = asyncio.ensure_future(future, loop=self)
        main.add_done_callback(self._main_done)
        self.run_forever()
        main.remove_done_callback(self._main_done)
        return main.result() if main.done() else None

    def run_forever(self) -> None:
        if self._running or self._shut:
            raise RuntimeError("the loop is closed" if self._shut else "the loop runs already")
        self._running, self._stop_asked = True, False
        collecting = gc.isenabled()
        hooks = sys.get_asyncgen_hooks()
        gc.disable()
        asyncio_events._set_running_loop(self)
        sys.set_asyncgen_hooks(finalizer=self._finish_generator)
        try:
            self._run()
        finally:
            self._running = False
            sys.set_asyncgen_hooks(*hooks)
            asyncio_events._set_running_loop(None)
            if collecting:
                gc.enable()

    def stop(self) -> None:
        """Return from `run_forever` after the current callback."""
        self._stop_asked = True

    def close(self) -> None:
        self._shut = True
        self._queue.clear()
        self._timers.clear()

    def _main_done(self, _future: asyncio.Future[Any]) -> None:
        self.stop()

    def _finish_generator(self, generator: Any) -> None:
        self.create_task(generator.aclose())

    def _run(self) -> None:
        ready, timers = self._queue, self._timers
        count, per_instant = self.event_count, self._events_per_instant_max
        instant_ends = count + per_instant
        try:
            while not self._stop_asked:
                if ready:
                    event = ready.popleft()
                    call = event.call
                    if call is None:
                        continue
                elif timers:
                    due, _, event = heappop(timers)
                    call = event.call
                    if call is None:
                        self._stale_timers -= 1
                        continue
                    if due > self.now:
                        if due == math.inf:
                            self._stuck("only timers at the end of time are left")
                        self.now = due
                        instant_ends = count + per_instant
                    event.due_local = NEVER
                else:
                    self._stuck("nothing is left that could ever happen")
                process = event.process
                if process is not None and not process.running:
                    process.hold(event)
                    continue
                count += 1
                if count > instant_ends or not count % CHECK_EVERY_EVENTS:
                    self._check_limits(count, instant_ends)
                context = event.context
                try:
                    if context is None:
                        call(*event.arguments)
                    else:
                        context.run(call, *event.arguments)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio: to the handler, go on
                    self._report(error, call)
        finally:
            self.event_count = count

    def _check_limits(self, count: int, instant_ends: int) -> None:
        if count > instant_ends:
            self._stuck(f"{self._events_per_instant_max:,} events and no time has passed")
        if count > self._events_max:
            self._stuck(f"the run is longer than {self._events_max:,} events")
        gc.collect()

    def _report(self, error: BaseException, call: Callable[..., object]) -> None:
        name = getattr(call, "__qualname__", type(call).__name__)
        self.call_exception_handler({"message": f"callback {name} raised", "exception": error})

    def _stuck(self, why: str) -> NoReturn:
        waiting = sorted(
            (task for task in asyncio.all_tasks(self) if isinstance(task, SimTask)),
            key=lambda task: task.serial,
        )
        names = ", ".join(task.get_name() for task in waiting[:10])
        more = f" and {len(waiting) - 10} more" if len(waiting) > 10 else ""
        raise SimulationStuck(f"at {self.now:.6f} s {why}; waiting: {names or 'no task'}{more}")
