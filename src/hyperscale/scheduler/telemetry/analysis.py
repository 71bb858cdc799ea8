"""What the logs tell: what is wrong with the whole; `journal` is about one job.

Pure: a journal in, findings out. `doctor` looks at how things are now; this looks at
how they came to be, also when nothing runs any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.telemetry.doctor import (
    LOST_CLAIMS,
    RETRIES_MANY,
    SKEW_S,
    Finding,
    Severity,
    finding,
)
from hyperscale.scheduler.telemetry.journal import LATE_S, Entry, Journal

_STORE_AWAY: Final = frozenset(
    {
        events.STORE_AWAY,
        events.CLAIMS_WAIT,
        events.REPORTS_WAIT,
        events.INTERRUPTED,
        events.AUDIT_LOST,
    }
)
_STANDSTILL: Final = frozenset({events.TICKS_STALLED, events.TERM_BROKEN})

HOUR: Final = 3600 * SECOND
ELECTIONS_MAX: Final = 2
"""In an hour: one for a start, one for a planned restart."""


def diagnose(journal: Journal) -> list[Finding]:
    """Worst first, as `doctor` does."""
    found = [one for look in _LOOKS for one in look(journal)]
    return sorted(found, key=lambda one: (one.severity, one.name))


def _completed_twice(journal: Journal) -> list[Finding]:
    done = Counter(
        one.job
        for one in journal.entries
        if one.event == events.ENDED and one.text("operation_result") == "COMPLETED"
    )
    twice = sorted(job for job, number in done.items() if number > 1)
    return _named(
        twice,
        "completed twice",
        Severity.CRITICAL,
        "accepted as completed more than once",
        "two stores, or one restored from a backup: stop all but one coordinator",
    )


def _claimed_twice(journal: Journal) -> list[Finding]:
    holders = defaultdict(set)
    for one in journal.entries:
        if one.event == events.CLAIMED:
            holders[one.job, one.text("fencing_token")].add(one.text("worker_id"))
    twice = sorted({job for (job, _), workers in holders.items() if len(workers) > 1})
    return _named(
        twice,
        "claimed twice",
        Severity.CRITICAL,
        "given to two workers under one fencing token",
        "do the workers share one store? cancel what the minority runs",
    )


def _stale_reports(journal: Journal) -> list[Finding]:
    jobs = sorted({one.job for one in journal.entries if one.event == events.REFUSED})
    return _named(
        jobs,
        "stale reports",
        Severity.WARNING,
        "reported on by a worker that no longer had the job",
        "a worker paused for longer than its lease: swapping, suspended, or cut off",
    )


def _bouncing(journal: Journal) -> list[Finding]:
    claims = Counter(one.job for one in journal.entries if one.event == events.CLAIMED)
    ended = {one.job for one in journal.entries if one.event == events.ENDED}
    lost = Counter(one.job for one in journal.entries if one.event == events.LOST)
    jobs = sorted(
        job for job, number in lost.items() if number >= LOST_CLAIMS and claims[job] >= LOST_CLAIMS
    )
    return _named(
        [job for job in jobs if job not in ended],
        "bouncing",
        Severity.WARNING,
        f"claimed and lost {LOST_CLAIMS} times or more",
        "it may kill its workers: look at their logs",
    )


def _retry_storm(journal: Journal) -> list[Finding]:
    counted = Counter(one.event for one in journal.entries)
    retries, jobs = counted[events.BACK], counted[events.SUBMITTED]
    if retries < RETRIES_MANY or retries <= jobs:
        return []
    reasons = Counter(one.why for one in journal.entries if one.event == events.BACK)
    why, number = reasons.most_common(1)[0]
    return [
        Finding(
            "retry storm",
            Severity.WARNING,
            f"{retries} retries for {jobs} jobs; {number} of them: {why}",
            "mend what they call, or give the jobs fewer retries",
        )
    ]


def _two_leaders(journal: Journal) -> list[Finding]:
    by_epoch = defaultdict(set)
    for one in journal.entries:
        if one.event == events.LEADING:
            by_epoch[one.text("epoch")].add(one.node)
    both = sorted({node for nodes in by_epoch.values() if len(nodes) > 1 for node in nodes})
    return _named(
        both,
        "two leaders",
        Severity.CRITICAL,
        "led in the same epoch",
        "they do not share one election: stop all, start them with the same --election",
    )


def _elections(journal: Journal) -> list[Finding]:
    won = [one.at for one in journal.entries if one.event == events.LEADING]
    busiest = max((_within(won, begin) for begin in won), default=0)
    if busiest <= ELECTIONS_MAX:
        return []
    return [
        Finding(
            "unsteady lead",
            Severity.WARNING,
            f"the lead was taken {busiest} times within an hour",
            "look at the election service, and whether coordinators are starved of CPU",
        )
    ]


def _within(instants: Sequence[Instant], begin: Instant) -> int:
    return sum(begin <= one < begin + HOUR for one in instants)


def _store_away(journal: Journal) -> list[Finding]:
    away = [one for one in journal.entries if one.event in _STORE_AWAY]
    if not away:
        return []
    nodes = ", ".join(sorted({one.node or one.component for one in away}))
    return [
        Finding(
            "store away",
            Severity.CRITICAL,
            f"{nodes}: the store did not answer {len(away)} times, at first {away[0].why}",
            "what was acknowledged is safe; look at the store at that time",
        )
    ]


def _election_away(journal: Journal) -> list[Finding]:
    nodes = sorted(
        {one.node or "?" for one in journal.entries if one.event == events.ELECTION_AWAY}
    )
    return _named(
        nodes,
        "election away",
        Severity.CRITICAL,
        "the election service did not answer",
        "who cannot reach it does not lead; look at that service and the way to it",
    )


def _standstill(journal: Journal) -> list[Finding]:
    nodes = sorted({one.node or "?" for one in journal.entries if one.event in _STANDSTILL})
    return _named(
        nodes,
        "standstill",
        Severity.CRITICAL,
        "a leader fired and promoted nothing and gave up its term",
        "look at the store; the line itself says what happened",
    )


def _ticks_wait(journal: Journal) -> list[Finding]:
    waits = [one for one in journal.entries if one.event == events.TICKS_WAIT]
    if not waits:
        return []
    return [
        Finding(
            "ticks wait",
            Severity.CRITICAL,
            f"the store refused new jobs {len(waits)} times: {waits[0].why}",
            "let jobs end, or shorten what is kept (`keep` in the settings)",
        )
    ]


def _keys(journal: Journal) -> list[Finding]:
    jobs = sorted({one.job for one in journal.entries if one.event == events.KEY_REUSED})
    return _named(
        jobs,
        "key reused",
        Severity.WARNING,
        "its idempotency key came again with other content",
        "the later submission was refused: give each job a key of its own",
    )


def _cut_off(journal: Journal) -> list[Finding]:
    said = [one.said.get("workers") for one in journal.entries if one.event == events.CUT_OFF]
    names = sorted({str(name) for names in said if isinstance(names, list) for name in names})
    return _named(
        names,
        "cut off",
        Severity.WARNING,
        "answered when asked, though no heartbeat came",
        "the way from there to the store is broken or slow",
    )


def _heartbeats(journal: Journal) -> list[Finding]:
    beats = Counter(one.node for one in journal.entries if one.event == events.HEARTBEAT_LOST)
    found = _named(
        sorted(node or "?" for node in beats),
        "heartbeats lost",
        Severity.WARNING,
        "heartbeats could not be delivered",
        "the way from there to the store is broken or slow",
    )
    if any(one.event == events.MASS_SILENCE for one in journal.entries):
        found.append(
            Finding(
                "mass silence",
                Severity.CRITICAL,
                "most workers fell silent at once",
                "a partition or a stopped store rather than dead workers: correlate their logs",
            )
        )
    return found


def _registrations(journal: Journal) -> list[Finding]:
    names = sorted(
        {
            one.text("worker") or one.text("worker_id")
            for one in journal.entries
            if one.event in (events.REPLACED, events.UNREGISTERED)
        }
    )
    return _named(
        names,
        "id taken",
        Severity.WARNING,
        "two processes wanted this worker's id",
        "two workers were started under one --node on one machine",
    )


def _late(journal: Journal) -> list[Finding]:
    late = [
        f"{one.job} ({one.said['waited_s']} s)"
        for one in journal.entries
        if one.event == events.CLAIMED and _number(one.said.get("waited_s")) > LATE_S
    ]
    return _named(
        late,
        "late",
        Severity.WARNING,
        f"claimed more than {LATE_S:.0f} s after being due",
        "too few slots, or nobody with the capabilities it needs",
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _skew(journal: Journal) -> list[Finding]:
    """A job is claimed after it was submitted and ends after that, whatever the clocks say."""
    first: dict[tuple[str, str], Entry] = {}
    for one in journal.entries:
        first.setdefault((one.job, one.event), one)
    pairs = set()
    for (job, event), later in first.items():
        earlier = first.get(
            (job, {events.CLAIMED: events.SUBMITTED, events.ENDED: events.CLAIMED}.get(event, ""))
        )
        if earlier is not None and (earlier.at - later.at) / SECOND > SKEW_S:
            pairs.add(f"{later.node} behind {earlier.node}")
    return _named(
        sorted(pairs),
        "skewed",
        Severity.WARNING,
        "clocks differ by more than a second",
        "synchronise the clocks (NTP) of workers and coordinators",
    )


def _set_aside(journal: Journal) -> list[Finding]:
    names = sorted(
        {one.text("schedule_id") for one in journal.entries if one.event == events.SET_ASIDE}
    )
    return _named(
        names,
        "set aside",
        Severity.CRITICAL,
        "no tick can be computed",
        "its zone or expression is not known to this version: change the schedule",
    )


def _named(
    subjects: list[str], name: str, severity: Severity, sentence: str, advice: str
) -> list[Finding]:
    return [finding(name, severity, sentence, advice, subjects)] if subjects else []


_LOOKS: Final[tuple[Callable[[Journal], list[Finding]], ...]] = (
    _completed_twice,
    _claimed_twice,
    _stale_reports,
    _bouncing,
    _retry_storm,
    _keys,
    _two_leaders,
    _elections,
    _store_away,
    _election_away,
    _standstill,
    _ticks_wait,
    _heartbeats,
    _cut_off,
    _registrations,
    _late,
    _skew,
    _set_aside,
)
