"""A toy datacenter around the jobs core: managers with one log, workers, clients, and faults.

Everything happens in virtual time and comes from a seed. Managers crash and are deposed, records
are lost or doubtful, messages are lost and repeated, workers die, restart, are cut off, refuse,
fail and hang. After a while the faults stop, and everything must come to its end. What must never
happen is checked while it runs (see jobs_checks).
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import (
    Acknowledge,
    Append,
    CollectReported,
    Command,
    Dispatch,
    Effect,
    MakeResults,
    Start,
    Teardown,
)
from hyperscale.cluster.jobs.inputs import Accepted, CpuUse, Ended, Heard, PartReport
from hyperscale.cluster.jobs.records import JobRecord, Needs, Part, Placement, Submitted
from hyperscale.cluster.jobs.settings import JobSettings
from tests.property.jobs_checks import Checks

SWIM_DEAD_S = 5.0
FENCE_S = 6.0
REPORT_S = 0.5
RATE = 10.0
PRIORITIES = ("auto", "auto", "low", "normal", "high", "exclusive")


@dataclass
class Running:
    """A part on a worker."""

    placement: Placement
    needs: Needs
    state: str = "preparing"
    load_s: float = 0.0
    ran_s: float = 0.0
    todo_s: float = 0.0
    end: Ended | None = None
    torn_down: bool = False

    @property
    def cores(self) -> int:
        return self.placement.cores


@dataclass
class Box:
    """A worker."""

    name: str
    total: int
    incarnation: int = 1
    up: bool = True
    cut_off: bool = False
    parts: dict[Part, Running] = field(default_factory=dict)
    seen: dict[Part, Fence] = field(default_factory=dict)
    contact_at: float = 0.0
    unreached_since: float | None = None

    @property
    def reachable(self) -> bool:
        return self.up and not self.cut_off

    @property
    def free(self) -> int:
        return self.total - len(
            self._cores(*(running.placement for running in self.parts.values()))
        )

    def has_room(self, more: Placement) -> bool:
        placed = [running.placement for running in self.parts.values()]
        return len(self._cores(more, *placed)) <= self.total

    def _cores(self, *placed: Placement) -> set[tuple[str, int]]:
        return {(one.part.job_id, slot) for one in placed for slot in one.slots}


class World:
    def __init__(
        self,
        seed: int,
        *,
        faults: bool = True,
        settings: JobSettings | None = None,
        jobs: int = 6,
        full: bool = False,
    ) -> None:
        """`full`: one job has all cores for a long time, on workers with little to do."""
        self.dice = random.Random(seed)
        self.faults = faults
        self.settings = settings or JobSettings()
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self.log: list[JobRecord] = []
        self.managers = [Jobs(self.settings, random.Random(seed + n)) for n in range(3)]
        self.applied = [0, 0, 0]
        self.alive = [True, True, True]
        self.leader: int | None = None
        self.term = 0
        self.workers = {
            f"w{n}": Box(f"w{n}", self.dice.randint(1, 6)) for n in range(self.dice.randint(2, 5))
        }
        self.checks = Checks({name: box.total for name, box in self.workers.items()})
        self.accepted: set[str] = set()
        # A stream of its own: how busy workers are, and what jobs want with lost load.
        self._moods = random.Random(f"{seed} moods")
        percents = (2,) if full else (2, 8, 30, 70)
        self._core_percent = {name: self._moods.choice(percents) for name in self.workers}
        self.chaos_until = self.dice.uniform(30.0, 90.0) if faults else 0.0
        self._submissions = [self._long_job()] if full else [self._job(n) for n in range(jobs)]

    # -- time ------------------------------------------------------------------------------------

    def after(self, delay_s: float, what: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._order, what))

    def run(self, horizon_s: float = 4_000.0) -> None:
        self._elect(0)
        for record in self._submissions:
            self.after(self.dice.uniform(0, 40.0), lambda r=record: self._submit(r, 0))
            for _ in range(self.dice.choice((0, 0, 1, 2))):
                self.after(self.dice.uniform(1, 60.0), lambda r=record: self._steer(r.job_id))
        for name in self.workers:
            self.after(self.dice.uniform(0, 1), lambda n=name: self._beat(n))
        if self.faults:
            self.after(self.dice.uniform(1, 10), self._fault)
        quiet_since: float | None = None
        while self._queue and self.now < horizon_s:
            deadline = self._deadline()
            if deadline is not None and deadline <= self._queue[0][0]:
                self.now = max(self.now, deadline)
                self._carry(self.leader, self._leading().tick(self.now))
            else:
                self.now, _, what = heapq.heappop(self._queue)
                what()
            done = self._is_done()
            quiet_since = (quiet_since or self.now) if done else None
            if quiet_since is not None and self.now - quiet_since > 10.0:
                break
        self._catch_up_all()
        self.checks.at_end(self)

    def _is_done(self) -> bool:
        return (
            self.now > self.chaos_until
            and all(box.reachable for box in self.workers.values())
            and len(self.accepted) == len(self._submissions)
            and self.checks.all_over(self.accepted)
        )

    def _deadline(self) -> float | None:
        return None if self.leader is None else self._leading().next_deadline()

    def _leading(self) -> Jobs:
        assert self.leader is not None
        return self.managers[self.leader]

    def _lost(self, share: float = 0.1) -> bool:
        return self.now < self.chaos_until and self.dice.random() < share

    def _latency(self) -> float:
        slow = self.now < self.chaos_until and self.dice.random() < 0.05
        return self.dice.uniform(0.5, 2.0) if slow else self.dice.uniform(0.001, 0.05)

    # -- managers --------------------------------------------------------------------------------

    def _elect(self, who: int) -> None:
        self.term += 1
        self.leader = who
        self._catch_up(who)
        self._carry(who, self.managers[who].lead(self.now, self.term))
        for box in self.workers.values():
            if box.unreached_since is not None:
                since = box.unreached_since
                if self.now - since >= SWIM_DEAD_S:
                    self._dead(box.name, box.incarnation)

    def _catch_up(self, who: int) -> None:
        while self.applied[who] < len(self.log):
            record = self.log[self.applied[who]]
            self.applied[who] += 1
            effects = self.managers[who].applied(self.now, record)
            if who == self.leader:
                self._carry(who, effects)

    def _catch_up_all(self) -> None:
        for who, alive in enumerate(self.alive):
            if alive:
                self._catch_up(who)

    def _depose(self) -> None:
        """The leader crashes, or is only replaced."""
        old = self.leader
        if old is None or sum(self.alive) < 2:
            return
        self.leader = None
        if self.dice.random() < 0.5:
            self.managers[old] = Jobs(self.settings, random.Random(self.dice.random()))
            self.applied[old] = 0
            self.alive[old] = False
            self.after(self.dice.uniform(2, 20), lambda: self._revive(old))
        else:
            self.managers[old].follow(self.now)
        alive = [n for n, up in enumerate(self.alive) if up]
        who = self.dice.choice(alive)
        self.after(self.dice.uniform(0.5, 8.0), lambda: self._elect_if_none(who))

    def _elect_if_none(self, who: int) -> None:
        if self.leader is None:
            self._elect(who if self.alive[who] else self.alive.index(True))

    def _revive(self, who: int) -> None:
        self.alive[who] = True
        self._catch_up(who)

    def _carry(self, who: int | None, effects: list[Effect]) -> None:
        if who is None or who != self.leader:
            return
        term = self.term
        core = self.managers[who]
        for effect in effects:
            self.checks.effect(self.now, effect, core)
            match effect:
                case Append(record):
                    self._append(term, record)
                case Dispatch(placement):
                    self._dispatch(term, effect, placement, 0)
                case Start(placement) | Teardown(placement) | Command(placement):
                    self._command(term, effect, placement)
                case Acknowledge(worker, part, fence):
                    if not self._lost():
                        self.after(
                            self._latency(),
                            lambda w=worker, p=part, f=fence: self._acknowledged(w, p, f),
                        )
                case CollectReported(placement):
                    self.after(0.001, lambda p=placement: self._collected(term, p))
                case MakeResults(job_id, status, reason):
                    self.after(
                        0.001,
                        lambda j=job_id, s=status, r=reason: self._with_leader(
                            term, lambda c: c.results_made(self.now, j, s, r, b"results")
                        ),
                    )

    def _with_leader(self, term: int, call: Callable[[Jobs], list[Effect]]) -> None:
        if self.leader is not None and self.term == term:
            self._carry(self.leader, call(self._leading()))

    def _append(self, term: int, record: JobRecord) -> None:
        fate = self.dice.random() if self.now < self.chaos_until else 1.0
        delay = self._latency()
        if fate < 0.05:
            self.after(delay, lambda: self._refuse(term, record, False))
        elif fate < 0.08:
            self.after(delay, lambda: self._refuse(term, record, True))
            if self.dice.random() < 0.5:
                self.after(delay + self._latency(), lambda: self._commit(term, record))
        else:
            self.after(delay, lambda: self._commit(term, record))

    def _refuse(self, term: int, record: JobRecord, maybe: bool) -> None:
        self._with_leader(term, lambda c: c.append_failed(self.now, record, maybe))

    def _commit(self, term: int, record: JobRecord) -> None:
        if self.leader is None or self.term != term:
            return
        self.log.append(record)
        self.checks.committed(self.now, record)
        for who in range(3):
            if who == self.leader:
                self._catch_up(who)
            elif self.alive[who]:
                self.after(self._latency(), lambda w=who: self.alive[w] and self._catch_up(w))
        if isinstance(record, Submitted):
            self.accepted.add(record.job_id)

    # -- clients ---------------------------------------------------------------------------------

    def _job(self, number: int) -> Submitted:
        dice = self.dice
        stretch = self._moods.choice((1, 1, 3))  # long enough to be missed for a while
        names = [f"wf{n}" for n in range(dice.randint(1, 4))]
        needs = []
        for n, name in enumerate(names):
            is_test = dice.random() < 0.75
            by_time = dice.random() < 0.7
            seconds = stretch * dice.uniform(2, 25)
            needs.append(
                Needs(
                    name=name,
                    is_test=is_test,
                    priority=dice.choice(PRIORITIES),
                    depends=tuple(o for o in names[:n] if dice.random() < 0.4),
                    peak_vus=dice.choice((1, 2, 50)),
                    planned_s=seconds if is_test and by_time else None,
                    limit_s=seconds + 60,
                    sets_up=dice.random() < 0.3,
                    tears_down=dice.random() < 0.4,
                )
            )
        return Submitted(
            f"job{number}", 0.0, "test", tuple(needs), 2_000.0, b"", f"key{number}", "digest",
            lost_load=self._moods.choice(("squeeze", "squeeze", "squeeze", "move", "drop")),
        )  # fmt: skip

    def _long_job(self) -> Submitted:
        load = Needs("wf0", True, "auto", (), peak_vus=50, planned_s=200.0, limit_s=260.0)
        return Submitted("job0", 0.0, "test", (load,), 2_000.0, b"", "key0", "digest")

    def _submit(self, record: Submitted, tries: int) -> None:
        if record.job_id not in self.accepted:
            if self.leader is not None:
                answer, effects = self._leading().submit(self.now, record)
                assert isinstance(answer, Accepted) or answer.retry_after_s > 0
                self._carry(self.leader, effects)
            self.after(self.dice.uniform(1, 3), lambda: self._submit(record, tries + 1))
        elif self.dice.random() < 0.3 and tries < 50 and self.leader is not None:
            answer, effects = self._leading().submit(self.now, record)
            assert answer == Accepted(record.job_id, answer.position, duplicate=True)
            self._carry(self.leader, effects)

    def _steer(self, job_id: str) -> None:
        if self.leader is None:
            self.after(2.0, lambda: self._steer(job_id))
            return
        action = self.dice.choice(("cancel", "stop", "pause", "scale"))
        _, effects = self._leading().steer(self.now, job_id, action, 7, "tester")
        self._carry(self.leader, effects)
        if action == "pause":
            self.after(self.dice.uniform(1, 20), lambda: self._resume(job_id))

    def _resume(self, job_id: str) -> None:
        """People insist until it is done."""
        job = self.checks.replicated.jobs.get(job_id)
        if job is not None and job.paused and self.leader is not None:
            _, effects = self._leading().steer(self.now, job_id, "resume")
            self._carry(self.leader, effects)
        if job is None or not job.is_over:
            self.after(3.0, lambda: self._resume(job_id))

    # -- leader to worker ------------------------------------------------------------------------

    def _dispatch(self, term: int, effect: Dispatch, placement: Placement, tries: int) -> None:
        def arrive() -> None:
            if self.term != term or self.leader is None:
                return
            box = self.workers[placement.worker]
            if not box.reachable or self._lost():
                if tries < 2:
                    self._dispatch(term, effect, placement, tries + 1)
                else:
                    self._answer(term, placement, False, False, "unreachable")
                return
            accepted, no_room, reason = self._take(box, placement)
            if self._lost():
                self._dispatch(term, effect, placement, tries + 1)
            else:
                self._answer(term, placement, accepted, no_room, reason)

        self.after(self._latency() + 0.3 * tries, arrive)

    def _answer(
        self, term: int, placement: Placement, accepted: bool, no_room: bool, reason: str
    ) -> None:
        self.after(
            self._latency(),
            lambda: self._with_leader(
                term,
                lambda c: c.dispatch_answered(self.now, placement, accepted, no_room, reason),
            ),
        )

    def _take(self, box: Box, placement: Placement) -> tuple[bool, bool, str]:
        part = placement.part
        if placement.incarnation != box.incarnation:
            return False, False, "another life"
        seen = box.seen.get(part)
        if seen is not None and placement.fence < seen:
            return False, False, "stale"
        if seen == placement.fence:
            return True, False, ""
        old = box.parts.get(part)
        if old is not None and old.state in ("preparing", "prepared"):
            del box.parts[part]
        if self._lost(0.05):
            return False, False, "does not like it"
        if part in box.parts or not box.has_room(placement):
            return False, True, "no room"
        box.seen[part] = placement.fence
        job = self.checks.replicated.jobs[part.job_id]
        running = Running(placement, job.workflows[part.workflow].needs)
        needs = running.needs
        if needs.planned_s is not None:
            running.todo_s = max(0.0, needs.planned_s - placement.resume_at_s)
            running.load_s = placement.resume_at_s
        else:
            running.todo_s = max(0.0, 8.0 - placement.iterations_done / RATE)
        box.parts[part] = running
        life = box.incarnation
        self.after(self.dice.uniform(0.1, 3.0), lambda: self._prepared(box, life, running))
        return True, False, ""

    def _prepared(self, box: Box, life: int, running: Running) -> None:
        if box.incarnation != life or running.state != "preparing":
            return
        if self._lost(0.03):
            self._end(box, running, "failed", "setup raised")
            return
        running.state = "prepared"
        self._tell_prepared(box, life, running)

    def _tell_prepared(self, box: Box, life: int, running: Running) -> None:
        if box.incarnation != life or running.state != "prepared" or not box.up:
            return
        if box.reachable and self.leader is not None and not self._lost(0.2):
            p = running.placement
            _, effects = self._leading().prepared(self.now, p.part, p.fence, box.name, b"ctx")
            self._carry(self.leader, effects)
        self.after(0.7, lambda: self._tell_prepared(box, life, running))

    def _command(self, term: int, effect: Start | Teardown | Command, placement: Placement) -> None:
        def arrive() -> None:
            if self.term != term or self.leader is None:
                return
            box = self.workers[placement.worker]
            if not box.up or box.incarnation != placement.incarnation:
                return
            if not box.reachable or self._lost():
                if self.managers[self.leader].replicated.placement(placement.part) is not None:
                    self.after(0.5, arrive)
                return
            running = box.parts.get(placement.part)
            if running is not None and running.placement.fence == placement.fence:
                self._obey(box, running, effect)

        self.after(self._latency(), arrive)

    def _obey(self, box: Box, running: Running, effect: Start | Teardown | Command) -> None:
        if isinstance(effect, Start):
            if running.state == "prepared":
                running.state = "running"
                self.checks.runs(self.now, box.name, running.placement, self)
        elif isinstance(effect, Teardown):
            running.torn_down = True
        elif effect.action == "cancel":
            if running.state != "ended" and not self._lost(0.1):
                self._end(box, running, "cancelled")
        elif effect.action == "stop":
            if running.state in ("running", "paused"):
                self._end(box, running, "completed")
        elif effect.action == "pause" and running.state == "running":
            running.state = "paused"
        elif effect.action == "resume" and running.state == "paused":
            running.state = "running"

    # -- workers ---------------------------------------------------------------------------------

    def _end(self, box: Box, running: Running, outcome: str, error: str = "") -> None:
        p = running.placement
        running.state = "ended"
        result = f"{p.part}|{p.fence}".encode()
        running.end = Ended(
            p.part, p.fence, box.name, outcome, running.ran_s, int(running.ran_s * RATE),
            result, error,
        )  # fmt: skip

    def _beat(self, name: str) -> None:
        """Twice a second: run, fence, report, resend."""
        box = self.workers[name]
        self.after(REPORT_S, lambda: self._beat(name))
        if not box.reachable and box.unreached_since is None:
            box.unreached_since = self.now
        if box.unreached_since is not None and self.now - box.unreached_since >= SWIM_DEAD_S:
            self._dead(name, box.incarnation)
        if not box.up:
            return
        self._run_parts(box)
        if box.reachable:
            box.contact_at = self.now
            box.unreached_since = None
            self._report(box)
            self._resend(box)
        elif self.now - box.contact_at >= FENCE_S:
            for running in box.parts.values():
                if running.state in ("running", "paused", "prepared", "preparing"):
                    self._end(box, running, "cut off")

    def _run_parts(self, box: Box) -> None:
        for running in list(box.parts.values()):
            if running.state != "running":
                continue
            running.ran_s += REPORT_S
            running.load_s += REPORT_S
            if running.ran_s >= running.todo_s:
                self._end(box, running, "completed")
            elif self._lost(0.003):
                self._end(box, running, "failed", "the workflow raised")

    def _report(self, box: Box) -> None:
        if self.leader is None or self._lost():
            return
        reports = [
            PartReport(
                part,
                r.placement.fence,
                r.state,
                r.load_s,
                int(r.ran_s * RATE),
                b"ctx" if r.state == "prepared" else None,
            )
            for part, r in sorted(box.parts.items())
        ]
        core = self._leading()
        heard = None
        if self.dice.random() >= 0.02:
            heard = core.worker_heard(
                self.now, box.name, box.incarnation, box.free, reports, cpu=self._cpu(box)
            )
        if heard is None:
            heard = core.worker_registered(
                self.now,
                box.name,
                box.incarnation,
                box.total,
                box.free,
                reports,
                life=box.incarnation,
            )
        unwanted, effects = heard
        for part, fence in unwanted:
            running = box.parts.get(part)
            if running is not None and running.placement.fence == fence:
                del box.parts[part]
        self._carry(self.leader, effects)

    def _cpu(self, box: Box) -> CpuUse:
        """Every core of load costs the same there; a process bears what shares its slot."""
        bears = Counter(
            (part.job_id, slot)
            for part, running in box.parts.items()
            if running.state == "running"
            for slot in running.placement.slots
        )
        percent = self._core_percent[box.name]
        return CpuUse(
            min(100.0, percent * bears.total() / box.total),
            min(100.0, percent * max(bears.values(), default=0.0)),
        )

    def _resend(self, box: Box) -> None:
        for part, running in list(box.parts.items()):
            if self.leader is None or running.end is None or self._lost():
                continue
            fence = running.placement.fence
            settled, effects = self._leading().ended(self.now, running.end)
            self._carry(self.leader, effects)
            if settled:
                box.parts.pop(part, None)
                self.checks.settled(part, fence)
            elif running.torn_down and self.leader is not None:
                _, effects = self._leading().torn_down(self.now, part, fence, box.name)
                self._carry(self.leader, effects)

    def _acknowledged(self, worker: str, part: Part, fence: Fence) -> None:
        box = self.workers[worker]
        running = box.parts.get(part)
        if (
            running is not None
            and running.placement.fence == fence
            and running.state == "ended"
            and box.reachable
        ):
            del box.parts[part]

    def _collected(self, term: int, placement: Placement) -> None:
        box = self.workers[placement.worker]
        running = box.parts.get(placement.part)
        same = running is not None and running.placement == placement
        at_s = running.load_s if running is not None and same else placement.resume_at_s
        result = f"{placement.part}|{placement.fence}".encode()
        self._with_leader(term, lambda c: c.part_lost(self.now, placement, Heard(at_s, 5, result)))

    def _dead(self, name: str, incarnation: int) -> None:
        if self.leader is not None:
            effects = self._leading().worker_dead(self.now, name, incarnation)
            self._carry(self.leader, effects)

    # -- faults ----------------------------------------------------------------------------------

    def _fault(self) -> None:
        if self.now >= self.chaos_until:
            for name, box in self.workers.items():
                box.cut_off = False
                if not box.up:
                    self._restart(name)
            return
        self.after(self.dice.uniform(1, 12), self._fault)
        name = self.dice.choice(sorted(self.workers))
        box = self.workers[name]
        kind = self.dice.random()
        if kind < 0.3:
            self._depose()
        elif kind < 0.6 and box.up:
            box.up = False
            box.parts.clear()
            self.after(self.dice.uniform(1, 40), lambda: self._restart(name))
        elif box.up and not box.cut_off:
            box.cut_off = True
            self.after(self.dice.uniform(1, 25), lambda: self._heal(name))

    def _restart(self, name: str) -> None:
        box = self.workers[name]
        if not box.up:
            box.up, box.incarnation = True, box.incarnation + 1
            box.parts, box.seen = {}, {}
            box.contact_at, box.unreached_since = self.now, None

    def _heal(self, name: str) -> None:
        self.workers[name].cut_off = False
