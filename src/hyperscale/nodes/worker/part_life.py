"""The life of one part on its worker, as a machine that is told what happens and says what to do.

It holds no code, no process and no clock. Whatever happens, it reaches GONE: each state has a time
after which it waits no longer (but for a pause, which managers end, or their silence does). A part
that is told to end is asked first, killed after a grace, and given up after another, so that its
cores always come back.

    PREPARING -> PREPARED -> RUNNING <-> PAUSED -> ENDING -> ENDED -> TEARING -> GONE
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hyperscale.cluster.jobs.records import Action, Outcome


class LifeState(Enum):
    PREPARING = "preparing"
    PREPARED = "prepared"
    RUNNING = "running"
    PAUSED = "paused"
    ENDING = "ending"
    ENDED = "ended"
    TEARING = "tearing down"
    GONE = "gone"


class LifeTrigger(Enum):
    READY = "ready"  # the code is loaded, setup() has run
    BROKEN = "broken"  # it could not be prepared
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"  # iterations may finish
    HALT = "halt"  # at once
    OVER = "over"  # the load has ended
    GIVE_UP = "give up"  # it was killed and still does not answer
    TEAR_DOWN = "tear down"
    RELEASE = "release"  # torn down, or nobody will ask for it


_S, _T = LifeState, LifeTrigger
TRANSITIONS: Final[Mapping[LifeState, Mapping[LifeTrigger, LifeState]]] = {
    _S.PREPARING: {
        _T.READY: _S.PREPARED,
        _T.BROKEN: _S.ENDED,
        _T.STOP: _S.ENDING,
        _T.HALT: _S.ENDING,
    },
    _S.PREPARED: {_T.START: _S.RUNNING, _T.STOP: _S.ENDED, _T.HALT: _S.ENDED},
    _S.RUNNING: {
        _T.PAUSE: _S.PAUSED,
        _T.STOP: _S.ENDING,
        _T.HALT: _S.ENDING,
        _T.OVER: _S.ENDED,
    },
    _S.PAUSED: {
        _T.RESUME: _S.RUNNING,
        _T.STOP: _S.ENDING,
        _T.HALT: _S.ENDING,
        _T.OVER: _S.ENDED,
    },
    # READY and BROKEN: it was told to end before it was prepared.
    _S.ENDING: {
        _T.HALT: _S.ENDING,
        _T.READY: _S.ENDED,
        _T.BROKEN: _S.ENDED,
        _T.OVER: _S.ENDED,
        _T.GIVE_UP: _S.ENDED,
    },
    _S.ENDED: {_T.TEAR_DOWN: _S.TEARING, _T.RELEASE: _S.GONE},
    _S.TEARING: {_T.RELEASE: _S.GONE},
    _S.GONE: {},
}
LIVE: Final = (_S.PREPARING, _S.PREPARED, _S.RUNNING, _S.PAUSED, _S.ENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTimeouts:
    """Seconds; see `WorkerSettings`."""

    prepare_s: float
    start_wait_s: float
    kill_grace_s: float
    cut_grace_s: float
    teardown_s: float
    hold_s: float


# -- effects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TellReady:
    pass


@dataclass(frozen=True, slots=True)
class Begin:
    pass


@dataclass(frozen=True, slots=True)
class Steer:
    action: Action
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Kill:
    pass


@dataclass(frozen=True, slots=True)
class TellEnd:
    """Tell how it ended. No outcome: what the running part says; without `answered` it has said
    nothing."""

    outcome: Outcome | None = None
    reason: str = ""
    answered: bool = True


@dataclass(frozen=True, slots=True)
class RunTeardown:
    pass


@dataclass(frozen=True, slots=True)
class TellTornDown:
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Free:
    """Nothing of it is needed any more: processes and cores."""


Effect = TellReady | Begin | Steer | Kill | TellEnd | RunTeardown | TellTornDown | Free


class PartLife:
    """`deadline` is when `tick` has something to do; None: only others can move it."""

    def __init__(
        self, now: float, *, limit_s: float, tears_down: bool, vus: int, timeouts: PartTimeouts
    ) -> None:
        """`limit_s` is of load, pauses left out; 0: none. `vus` are the whole workflow's."""
        self.state = LifeState.PREPARING
        self.deadline: float | None = now + timeouts.prepare_s
        self._limit_s = limit_s
        self._limit_left_s = limit_s
        self._tears_down = tears_down
        self._timeouts = timeouts
        self._began_at = now
        self._vus = vus
        self._halted: tuple[Outcome, str] | None = None
        self._killed = False
        self._prepared = False

    @property
    def live(self) -> bool:
        """Load may run, or may still come to run."""
        return self.state in LIVE

    # -- what the running part does -----------------------------------------------------------

    def ready(self, now: float) -> list[Effect]:
        self._prepared = True
        if self.state is LifeState.PREPARING:
            self._move(LifeTrigger.READY)
            self.deadline = now + self._timeouts.start_wait_s
            return [TellReady()]
        return self._end(now, LifeTrigger.READY, answered=False)

    def broken(self, now: float) -> list[Effect]:
        return self._end(now, LifeTrigger.BROKEN)

    def over(self, now: float) -> list[Effect]:
        return self._end(now, LifeTrigger.OVER)

    def torn_down(self, now: float, warning: str) -> list[Effect]:
        if self.state is not LifeState.TEARING:
            return []
        self._move(LifeTrigger.RELEASE)
        return [TellTornDown(warning), Free()]

    # -- what managers say -------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Repeated until it is confirmed, so only the first one in time means anything."""
        if self.state is not LifeState.PREPARED:
            return []
        self._move(LifeTrigger.START)
        self._resume_limit(now)
        return [Begin()]

    def steer(self, now: float, action: Action, amount: int, reason: str) -> list[Effect]:
        """`amount` of a scaling is how many VUs the workflow shall have, so that a repeated word
        changes nothing; the running part is told the change."""
        if action == "cancel":
            return self.halt(now, "cancelled", reason, self._timeouts.kill_grace_s)
        if action == "stop":
            return self._stop(now)
        if action == "pause" and self.state is LifeState.RUNNING:
            self._limit_left_s -= now - self._began_at
            self.deadline = None
            self._move(LifeTrigger.PAUSE)
            return [Steer("pause")]
        if action == "resume" and self.state is LifeState.PAUSED:
            self._move(LifeTrigger.RESUME)
            self._resume_limit(now)
            return [Steer("resume")]
        if action == "scale" and self.state in (LifeState.RUNNING, LifeState.PAUSED):
            change, self._vus = amount - self._vus, amount
            return [Steer("scale", change)] if change else []
        if action == "rate" and self.state in (LifeState.RUNNING, LifeState.PAUSED):
            return [Steer("rate", amount)]
        return []

    def tear_down(self, now: float) -> list[Effect]:
        if self.state is not LifeState.ENDED:
            return []
        self._move(LifeTrigger.TEAR_DOWN)
        self.deadline = now + self._timeouts.teardown_s
        return [RunTeardown()]

    def kept(self, now: float) -> None:
        """Managers are there, and none has said yet whether it is needed for teardown."""
        if self.state is LifeState.ENDED:
            self.deadline = now + self._timeouts.hold_s

    def settled(self, now: float) -> list[Effect]:
        """A quorum holds how it ended, and nobody will ask for its teardown."""
        if self.state is not LifeState.ENDED:
            return []
        self._move(LifeTrigger.RELEASE)
        return [Free()]

    def unwanted(self, now: float, reason: str) -> list[Effect]:
        """Nobody waits for it: end it, and do not keep it."""
        if self.live:
            self._tears_down = False
            return self.halt(now, "cancelled", reason, self._timeouts.kill_grace_s)
        return self.settled(now)

    # -- what the worker finds ---------------------------------------------------------------

    def cut_off(self, now: float, reason: str) -> list[Effect]:
        return self.halt(now, "cut off", reason, self._timeouts.cut_grace_s)

    def halt(self, now: float, outcome: Outcome, reason: str, grace_s: float) -> list[Effect]:
        """End at once. Who says it first decides what it is called; who is in a hurry may hurry
        it on."""
        if not self.live:
            return []
        if self._halted is None:
            self._halted = (outcome, reason)
        if self.state is LifeState.PREPARED:
            return self._end(now, LifeTrigger.HALT, answered=False)
        known = self.deadline if self.state is LifeState.ENDING else None
        self._move(LifeTrigger.HALT)
        self.deadline = now + grace_s if known is None else min(known, now + grace_s)
        return [] if self._killed else [Steer("cancel")]

    def tick(self, now: float) -> list[Effect]:
        if self.deadline is None or now < self.deadline:
            return []
        timeouts = self._timeouts
        if self.state is LifeState.PREPARING:
            reason = f"it was not prepared within {timeouts.prepare_s:g} s"
            return self._kill_now(now, reason)
        if self.state is LifeState.PREPARED:
            reason = f"it was not started within {timeouts.start_wait_s:g} s"
            return self.halt(now, "cut off", reason, timeouts.cut_grace_s)
        if self.state is LifeState.RUNNING:
            reason = f"it did not end within its limit of {self._limit_s:g} s"
            return self.halt(now, "failed", reason, timeouts.kill_grace_s)
        if self.state is LifeState.ENDING:
            if not self._killed:
                self._killed = True
                self.deadline = now + timeouts.kill_grace_s
                return [Kill()]
            return self._end(now, LifeTrigger.GIVE_UP, answered=False)
        if self.state is LifeState.ENDED:
            self._move(LifeTrigger.RELEASE)
            return [Free()]
        assert self.state is LifeState.TEARING
        self._move(LifeTrigger.RELEASE)
        warning = f"teardown() did not return within {timeouts.teardown_s:g} s"
        return [Kill(), TellTornDown(warning), Free()]

    # -- within ------------------------------------------------------------------------------

    def _stop(self, now: float) -> list[Effect]:
        """Iterations finish within the engine's graceful stop; the limit holds all the same."""
        if self.state in (LifeState.PREPARING, LifeState.PREPARED):
            self._halted = self._halted or ("cancelled", "it was stopped before its load began")
        if self.state is LifeState.PREPARED:
            return self._end(now, LifeTrigger.STOP, answered=False)
        if self.state not in (LifeState.PREPARING, LifeState.RUNNING, LifeState.PAUSED):
            return []
        if self.state is LifeState.PAUSED:
            self._resume_limit(now)
        self._move(LifeTrigger.STOP)
        if self.deadline is None:
            self.deadline = now + self._timeouts.hold_s
        return [Steer("stop")]

    def _kill_now(self, now: float, reason: str) -> list[Effect]:
        self._halted = self._halted or ("failed", reason)
        self._move(LifeTrigger.HALT)
        self._killed = True
        self.deadline = now + self._timeouts.kill_grace_s
        return [Kill()]

    def _resume_limit(self, now: float) -> None:
        self._began_at = now
        self.deadline = now + max(0.0, self._limit_left_s) if self._limit_s else None

    def _end(self, now: float, trigger: LifeTrigger, *, answered: bool = True) -> list[Effect]:
        if trigger not in TRANSITIONS[self.state]:
            return []
        self._move(trigger)
        halted = self._halted
        told: list[Effect] = [
            TellEnd(None, "", answered) if halted is None else TellEnd(*halted, answered)
        ]
        if self._tears_down and self._prepared and not self._killed:
            self.deadline = now + self._timeouts.hold_s
            return told
        self._move(LifeTrigger.RELEASE)
        return [*told, Free()]

    def _move(self, trigger: LifeTrigger) -> None:
        """The only place where the state changes."""
        self.state = TRANSITIONS[self.state][trigger]
        if self.state is LifeState.GONE:
            self.deadline = None
