"""What workers are told: parts to run, barriers to open, commands, questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.effects import Command, Dispatch, Start, Teardown
from hyperscale.cluster.jobs.records import Part, Placement
from hyperscale.nodes.manager import dispatch
from hyperscale.nodes.manager.contexts import Contexts
from hyperscale.nodes.manager.retrying_sender import RetryingSender, is_too_large
from hyperscale.nodes.protocol.parts import (
    AskParts,
    DispatchAnswer,
    HeldParts,
    PartAnswer,
    StartPart,
    SteerPart,
    TearDownPart,
)
from hyperscale.wire.errors import WireError

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager

# B-72: three tries, then the part is placed elsewhere.
DISPATCH_ATTEMPTS = 3
# Half a minute of trying: longer than any silence that does not end in a death.
COMMAND_ATTEMPTS = 20
# A worker reports every second.
REACH_AFTER_S = 2.0
# Of a thousand workers of a new leader; a TLS handshake takes some milliseconds.
REACH_AT_ONCE_MAX = 32


class Commands:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.sender = RetryingSender(
            manager.host,
            lambda: manager.node.endpoint,
            "worker",
            self._reached,
            self._unreached,
        )
        self.contexts = Contexts()

    def dispatch(self, effect: Dispatch) -> None:
        manager, placement = self._manager, effect.placement
        job = manager.jobs.job(placement.part.job_id)
        if job is None:
            return
        body = manager.body_of(job)
        facts = next(f for f in body.workflows if f.name == placement.part.workflow)
        parts = len(job.workflows[placement.part.workflow].parts)
        manager.live.follow(facts, placement, fresh=True, parts=parts)
        message = dispatch.dispatch_of(
            body,
            job,
            placement,
            effect.total_cores,
            effect.run_setup,
            manager.leadership.term,
            self.contexts,
        )

        def answered(answer: DispatchAnswer) -> None:
            manager.carry_out(
                manager.jobs.dispatch_answered(
                    manager.now(),
                    placement,
                    answer.accepted,
                    answer.no_room,
                    answer.reason,
                    answer.free_cores,
                )
            )

        def failed(error: WireError | OSError) -> None:
            reason = str(error) or type(error).__name__
            manager.log.warning(
                "dispatch failed", part=str(placement.part), worker=placement.worker, reason=reason
            )
            too_large = is_too_large(error)
            if too_large:
                reason = dispatch.too_large(message)
            manager.carry_out(
                manager.jobs.dispatch_answered(
                    manager.now(), placement, False, reason=reason, for_good=too_large
                )
            )

        self.sender.send(
            ("dispatch", *_names(placement.part)),
            placement.worker,
            message,
            DispatchAnswer,
            answered,
            failed,
            DISPATCH_ATTEMPTS,
        )

    def start(self, effect: Start) -> None:
        placement = effect.placement
        message = StartPart(
            part=placement.part,
            fence=placement.fence,
            term=self._manager.leadership.term,
            context=dispatch.decode_values(effect.context),
            run_age_s=effect.run_age_s,
        )
        self._tell("start", placement, message)

    def command(self, effect: Command) -> None:
        placement = effect.placement
        message = SteerPart(
            part=placement.part,
            fence=placement.fence,
            term=self._manager.leadership.term,
            action=effect.action,
            amount=effect.amount,
            reason=effect.reason,
        )
        # Of what undoes each other only the last may arrive.
        sort = "pace" if effect.action in ("pause", "resume") else effect.action
        self._tell(f"steer {sort}", placement, message)

    def tear_down(self, effect: Teardown) -> None:
        placement = effect.placement
        message = TearDownPart(
            part=placement.part, fence=placement.fence, term=self._manager.leadership.term
        )
        self._tell("tear down", placement, message)

    def ask_parts(self) -> None:
        """Every worker, for all it holds: what nobody speaks of must not be forgotten (D-42)."""
        for worker in sorted(self._manager.jobs.pool.workers):
            message = AskParts(term=self._manager.leadership.term)
            self.sender.send(
                ("scan", worker), worker, message, HeldParts, self._scanned, attempts=1
            )

    def reach(self, worker: str) -> None:
        """Try whether it can be commanded."""
        key = ("reach", worker)
        if self.sender.knows(worker) and not self.sender.is_under_way(key):
            message = AskParts(term=self._manager.leadership.term)
            self.sender.send(key, worker, message, HeldParts, lambda _held: None, attempts=1)

    def reach_doubtful(self) -> None:
        """Those whose reports are late or to whom a command could not be brought, and those that
        have work and no connection, before anybody relies on them."""
        jobs, now = self._manager.jobs, self._manager.now()
        doubtful, unconnected = [], []
        for name, worker in jobs.pool.workers.items():
            if now - worker.heard_at >= REACH_AFTER_S or worker.unreached_since is not None:
                doubtful.append(name)
            elif name in jobs.replicated.by_worker and not self.sender.is_connected(name):
                unconnected.append(name)
        for name in [*doubtful, *unconnected][:REACH_AT_ONCE_MAX]:
            self.reach(name)

    def _reached(self, worker: str) -> None:
        manager = self._manager
        manager.carry_out(manager.jobs.worker_reached(manager.now(), worker))

    def _unreached(self, worker: str, refused: bool) -> None:
        manager = self._manager
        manager.carry_out(manager.jobs.worker_unreached(manager.now(), worker, refused))

    def _scanned(self, held: HeldParts) -> None:
        manager = self._manager
        if not manager.leadership.leads():
            return
        unwanted, effects = manager.jobs.worker_holds(
            manager.now(),
            held.worker,
            held.incarnation,
            [dispatch.report_of(status) for status in held.parts],
        )
        manager.carry_out(effects)
        for part, fence in unwanted:
            self._end_unwanted(held.worker, part, fence)

    def _end_unwanted(self, worker: str, part: Part, fence: Fence) -> None:
        message = SteerPart(
            part=part,
            fence=fence,
            term=self._manager.leadership.term,
            action="cancel",
            reason="nobody waits for it",
        )
        self.sender.send(
            ("unwanted", *_names(part)),
            worker,
            message,
            PartAnswer,
            lambda _answer: None,
            attempts=3,
        )

    def _tell(self, what: str, placement: Placement, message: msgspec.Struct) -> None:
        """Until it is heard. A worker that is gone is recalled with its part."""
        key = (what, *_names(placement.part))
        self.sender.send(
            key,
            placement.worker,
            message,
            PartAnswer,
            lambda _answer: None,
            attempts=COMMAND_ATTEMPTS,
        )


def _names(part: Part) -> tuple[str, ...]:
    return part.job_id, part.workflow, str(part.number)
