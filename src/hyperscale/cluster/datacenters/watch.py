"""All datacenters of a gate: whom to probe, what the answers say, who is reached.

A probe goes to the leader, as far as that is known, or else to a manager of whom no answer is
outstanding. Probes overlap, so an answer to a newer one makes the miss of an older one worthless.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hyperscale.cluster.datacenters.facts import Facts, Health, judge
from hyperscale.cluster.datacenters.reach import TRANSITIONS, Event, Reach
from hyperscale.cluster.datacenters.settings import ProbeSettings
from hyperscale.cluster.datacenters.silence import Verdict, one_event, verdict

Place = tuple[str, int]

SAMPLES_KEPT = 15  # half a minute of round trips
MANAGERS_MAX = 16  # of one datacenter; one that answers is enough


class Probe(NamedTuple):
    datacenter: str
    number: int
    to: Place


class Change(NamedTuple):
    datacenter: str
    before: Reach
    after: Reach
    why: str


@dataclass(slots=True)
class Datacenter:
    name: str
    managers: list[Place]
    reach: Reach = Reach.UNREACHABLE
    since: float = 0.0  # in this state
    heard_at: float | None = None
    silent_from: float | None = None  # the first probe that was missed since then
    failures: int = 0  # in a row
    refused: bool = False  # the last of them by a host that is there
    why_silent: str = ""
    leader: str = ""
    version: str = ""
    tells: bool = True
    facts: Facts | None = None
    facts_at: float = 0.0
    full_since: float | None = None
    samples: int = 0  # since it was reached last
    rtts_s: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES_KEPT))
    next_probe_at: float = 0.0
    number: int = 0
    answered_number: int = 0
    outstanding: dict[int, Place] = field(default_factory=dict)

    @property
    def rtt_s(self) -> float | None:
        return statistics.median(self.rtts_s) if self.rtts_s else None

    @property
    def rtt_error_s(self) -> float:
        """How far round trips are from the middle one, on the average."""
        middle = self.rtt_s
        if middle is None:
            return 0.0
        return statistics.fmean(abs(one - middle) for one in self.rtts_s)


class Watch:
    def __init__(
        self, settings: ProbeSettings, datacenters: Mapping[str, Sequence[Place]], now: float = 0.0
    ) -> None:
        self.settings = settings
        self.datacenters = {
            name: Datacenter(name, list(dict.fromkeys(places)), since=now)
            for name, places in datacenters.items()
        }
        self._witnesses: dict[str, tuple[float, frozenset[str]]] = {}
        self._in_doubt_since: float | None = None
        self._looked_at = now
        self._away_until = now
        self.counts: Counter[str] = Counter()

    # -- probes --------------------------------------------------------------------------------

    def due(self, now: float) -> list[Probe]:
        """To be sent now; each comes back as `answered` or `missed`."""
        found = []
        for one in self.datacenters.values():
            if now >= one.next_probe_at:
                one.next_probe_at = now + self.settings.interval_s
                found.append(self._probe(one))
        return found

    def probe_now(self, now: float, name: str) -> Probe:
        """Because somebody wants to know."""
        one = self.datacenters[name]
        one.next_probe_at = now + self.settings.interval_s
        return self._probe(one)

    def _probe(self, one: Datacenter) -> Probe:
        one.number += 1
        waited_for = set(one.outstanding.values())
        free = [place for place in one.managers if place not in waited_for]
        to = (free or one.managers)[0]
        one.outstanding[one.number] = to
        self.counts["sent"] += 1
        return Probe(one.name, one.number, to)

    def answered(
        self,
        now: float,
        probe: Probe,
        rtt_s: float,
        *,
        leader: str = "",
        leader_at: Place | None = None,
        others: Sequence[Place] = (),
        facts: Facts | None = None,
        version: str = "",
        tells: bool = True,
    ) -> list[Change]:
        """`tells`: False when it lives and does not know what a probe is."""
        one = self.datacenters[probe.datacenter]
        one.outstanding.pop(probe.number, None)
        self.counts["answered"] += 1
        one.answered_number = max(one.answered_number, probe.number)
        one.heard_at, one.failures, one.silent_from, one.refused = now, 0, None, False
        one.why_silent = ""
        one.samples += 1
        one.rtts_s.append(rtt_s)
        one.leader, one.version, one.tells = leader, version, tells
        self._learn(one, probe.to, leader_at, others)
        if facts is not None:
            one.facts, one.facts_at = facts, now
            is_full = facts.cores_free == 0
            one.full_since = (one.full_since or now) if is_full else None
        if one.reach is not Reach.REACHABLE:
            return [self._move(now, one, Event.ANSWERED, f"{_text(probe.to)} answers")]
        return []

    def _learn(
        self, one: Datacenter, who: Place, leader: Place | None, others: Sequence[Place]
    ) -> None:
        """The leader is asked next, or who answered; then the rest."""
        first = who if leader is None else leader
        one.managers = list(dict.fromkeys([first, who, *one.managers, *others]))[:MANAGERS_MAX]

    def missed(self, now: float, probe: Probe, why: str, *, refused: bool = False) -> list[Change]:
        """`refused`: the host answered that nobody listens there."""
        one = self.datacenters[probe.datacenter]
        one.outstanding.pop(probe.number, None)
        self.counts["missed"] += 1
        if len(one.managers) > 1 and one.managers[0] == probe.to:
            one.managers.append(one.managers.pop(0))
        if probe.number < one.answered_number:
            return []
        if one.silent_from is None:
            one.silent_from = now
        one.failures += 1
        one.refused, one.why_silent = refused, why
        enough = max(self.settings.failures, min(len(one.managers), 2 * self.settings.failures))
        if one.reach is Reach.REACHABLE and one.failures >= enough:
            what = f"{one.failures} probes were missed; the last: {why}"
            return [self._move(now, one, Event.MISSED_TOO_OFTEN, what)]
        return []

    def tick(self, now: float) -> list[Change]:
        if now > self._looked_at + self.settings.interval_s:
            self._away_until = now + self.settings.interval_s + self.settings.timeout_s
        self._looked_at = now
        self._look_at_line(now)
        found = []
        for one in self.datacenters.values():
            if one.reach is not Reach.SUSPECTED or now < one.since + self.settings.suspicion_s:
                continue
            if self.line_in_doubt(now):
                self.counts["held"] += 1
                continue
            found.append(self._move(now, one, Event.SILENT_TOO_LONG, one.why_silent))
        return found

    def _move(self, now: float, one: Datacenter, event: Event, why: str) -> Change:
        before = one.reach
        one.reach, one.since = TRANSITIONS[before][event], now
        if one.reach is Reach.UNREACHABLE:
            one.samples = 0
            one.rtts_s.clear()
        self.counts[one.reach.value] += 1
        return Change(one.name, before, one.reach, why)

    # -- what silence means --------------------------------------------------------------------

    def told_by(self, now: float, gate: str, reached: Collection[str]) -> None:
        """Another gate tells whom it reaches."""
        self._witnesses[gate] = (now, frozenset(reached))

    def reached_by(self, now: float, *names: str) -> list[str]:
        """Other gates that reach all of these, by what they told lately."""
        oldest, wanted = now - self.settings.witness_s, set(names)
        told = self._witnesses.items()
        return sorted(gate for gate, (at, reached) in told if at >= oldest and wanted <= reached)

    def silent(self) -> list[str]:
        """Those that were heard before, and missed the last probe without a refusal."""
        return [one.name for one in self.datacenters.values() if self._is_silent(one)]

    def reached(self) -> list[str]:
        """Those that answered the last probe of which the fate is known."""
        every = self.datacenters.values()
        return [one.name for one in every if one.reach is Reach.REACHABLE and not one.failures]

    @staticmethod
    def _is_silent(one: Datacenter) -> bool:
        return one.heard_at is not None and one.failures > 0 and not one.refused

    def _look_at_line(self, now: float) -> None:
        known = [one for one in self.datacenters.values() if one.heard_at is not None]
        since = [one.heard_at for one in known if self._is_silent(one) and one.heard_at is not None]
        if not one_event(len(known), since, self.settings):
            self._in_doubt_since = None
        elif self._in_doubt_since is None:
            self._in_doubt_since = now
            self.counts["line in doubt"] += 1

    def line_in_doubt(self, now: float) -> bool:
        """Most datacenters fell silent at once: it is more likely this gate that is cut off."""
        self._look_at_line(now)
        since = self._in_doubt_since
        return since is not None and now < since + self.settings.hold_s

    def was_away(self, now: float) -> bool:
        """This gate itself stood still, and has not had the time yet to ask everybody again."""
        return now < self._away_until or now > self._looked_at + self.settings.interval_s

    def verdict(
        self, now: float, name: str, others: Collection[str], gates: Collection[str]
    ) -> Verdict:
        """Of a job that hears nothing from there any more, and has waited for as long as it may.
        `others`: the other datacenters where it runs; who is to have it must reach those that we
        reach, or it would soon come back. `gates`: who may have it."""
        if self.was_away(now):
            return Verdict.WAIT
        one = self.datacenters[name]
        ours = set(self.reached()) & set(others)
        return verdict(
            answered=one.reach is Reach.REACHABLE and not one.failures,
            reached_by_other=not {*self.reached_by(now, name, *ours)}.isdisjoint(gates),
            line_in_doubt=self.line_in_doubt(now) and not one.refused,
        )

    # -- how they are --------------------------------------------------------------------------

    def fresh_facts(self, now: float, one: Datacenter) -> Facts | None:
        return one.facts if now <= one.facts_at + self.settings.stale_s else None

    def health(self, now: float, name: str) -> tuple[Health, str]:
        one = self.datacenters[name]
        facts = self.fresh_facts(now, one)
        health, why = judge(one.reach, one.heard_at is not None, facts, one.leader, one.tells)
        if one.why_silent and one.reach is not Reach.REACHABLE:
            why = f"{why}: {one.why_silent}"
        if one.reach is Reach.SUSPECTED and self.line_in_doubt(now):
            why += "; most fell silent at once, so this gate's own line is in doubt"
        return health, why


def _text(place: Place) -> str:
    return f"{place[0]}:{place[1]}"
