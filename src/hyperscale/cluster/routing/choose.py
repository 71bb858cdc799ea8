"""The choice of datacenters for one job.

    filter      who cannot run it at all, each with the reason
    bucket      healthy before busy before degraded, whatever the distance; a datacenter without
                as many free cores as the job needs is as good as a busy one
    preference  with `prefer`, within a bucket, those that were named before the others
    score       see `scoring`
    hold        who was chosen for the last wish of this kind stays, unless that has a reason
    order       the chosen first, then the fallback chain

`strict` leaves nothing to choose: exactly those that are named, or none at all.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hyperscale.cluster.datacenters.facts import Health
from hyperscale.cluster.placement.hashing import stable_hash
from hyperscale.cluster.routing import scoring
from hyperscale.cluster.routing.decision import Decision, Scored
from hyperscale.cluster.routing.snapshot import Candidate, Held, Snapshot, Wish

NOT_NAMED: Final = "it was not named"
_WORDS = tuple(health.word for health in Health)


class _Row:
    """A datacenter that may be chosen."""

    __slots__ = ("bucket", "is_named", "one", "parts", "reason", "score", "tie")

    def __init__(self, one: Candidate, snapshot: Snapshot, by_distance: bool) -> None:
        wish, settings = snapshot.wish, snapshot.settings
        self.one = one
        self.bucket = one.health
        self.reason = one.why
        free = one.cores_free - one.pending
        if one.health == Health.HEALTHY and free < wish.cores:
            self.bucket = int(Health.BUSY)
            self.reason = f"{max(0, free)} cores are free, of {wish.cores} that it needs"
        self.is_named = wish.policy == "prefer" and one.name in wish.named
        rtt_s = scoring.rtt_upper_s(one, settings) if by_distance else 1.0
        penalty = scoring.quality_penalty(one, settings) if by_distance else 1.0
        self.parts = (rtt_s, scoring.load(one, settings), penalty, scoring.cooldown(one, settings))
        self.score = self.parts[0] * self.parts[1] * self.parts[2] * self.parts[3]
        self.tie = 0

    @property
    def key(self) -> tuple[int, bool, float, str]:
        return (self.bucket, not self.is_named, self.score, self.one.name)


def choose(snapshot: Snapshot) -> Decision:
    wish = snapshot.wish
    settings = snapshot.settings
    by_distance = scoring.knows_distances(snapshot.candidates, settings, snapshot.by_distance)
    left_out = {
        one.name: why for one in snapshot.candidates if (why := _why_not(one, wish)) is not None
    }
    rows = [
        _Row(one, snapshot, by_distance) for one in snapshot.candidates if one.name not in left_out
    ]
    rows.sort(key=lambda row: row.key)
    if by_distance != snapshot.by_distance:
        snapshot = _rescored(snapshot, rows)
    if wish.policy == "strict":
        chosen, reason, error = _strict(wish, rows, left_out)
    else:
        chosen, reason, error = _best(snapshot, rows, left_out)
    names = {row.one.name for row in chosen}
    ordered = [*chosen, *(row for row in rows if row.one.name not in names)]
    fallback = (
        () if wish.policy == "strict" else tuple(row.one.name for row in ordered[len(chosen) :])
    )
    return Decision(
        chosen=tuple(row.one.name for row in chosen),
        fallback=fallback,
        scored=(*_shown(ordered, names), *_not_shown(snapshot, left_out)),
        worst_health=_WORDS[max((row.bucket for row in chosen), default=0)],
        reason=reason,
        error=error,
        by_distance=by_distance,
        held=_kept(snapshot, chosen),
    )


def _rescored(snapshot: Snapshot, rows: list[_Row]) -> Snapshot:
    """Scores with distances and without them cannot be compared."""
    scores = {row.one.name: row.score for row in rows}
    held = tuple(
        msgspec.structs.replace(one, score=scores.get(one.name, one.score), worse_s=None)
        for one in snapshot.held
    )
    return msgspec.structs.replace(snapshot, held=held)


# -- who cannot run it ---------------------------------------------------------------------------


def _why_not(one: Candidate, wish: Wish) -> str | None:
    if one.name in wish.excluded:
        return "it was excluded"
    if wish.policy == "strict" and wish.named and one.name not in wish.named:
        return NOT_NAMED
    if not one.reachable or not one.managers:
        return one.why or "no manager answers"
    if one.managers_open >= one.managers:
        return "none of its managers answered lately (open circuits)"
    if one.health == Health.UNHEALTHY and not (wish.policy == "strict" and one.name in wish.named):
        return one.why
    return None


def _strict(wish: Wish, rows: list[_Row], left_out: dict[str, str]) -> tuple[list[_Row], str, str]:
    """As they were named, each. What is merely not well is the user's to judge: the job waits."""
    known = {row.one.name: row for row in rows}
    missing = [name for name in wish.named if name not in known]
    if missing:
        why = "; ".join(f"{name}: {left_out.get(name, 'it is not known')}" for name in missing)
        return [], "", why
    return [known[name] for name in wish.named], "they were named", ""


# -- who is the best -----------------------------------------------------------------------------


def _best(
    snapshot: Snapshot, rows: list[_Row], left_out: dict[str, str]
) -> tuple[list[_Row], str, str]:
    wish = snapshot.wish
    wanted = wish.count or len(wish.named) or len(snapshot.candidates) - len(wish.excluded)
    if not rows:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        return [], "", why or "no datacenter is known"
    if wish.count > len(rows):
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        these = "is one" if len(rows) == 1 else f"are {len(rows)}"
        return [], "", f"{wish.count} datacenters are wanted, and there {these} of use; {why}"
    if wanted >= len(rows):
        return rows, "all that are of use", ""
    kept, reasons = _hold(snapshot, rows, wanted)
    names = {row.one.name for row in kept}
    rest = [row for row in rows if row.one.name not in names]
    while len(kept) < wanted:
        found = _first_of_equals(rest, snapshot)
        rest.remove(found)
        kept.append(found)
    if snapshot.held and not reasons:
        reasons.append("as before")
    kept.sort(key=lambda row: row.key)
    return kept, "; ".join(reasons) or "the best by score", ""


def _first_of_equals(rest: list[_Row], snapshot: Snapshot) -> _Row:
    """Of those that are about as good as the best, each job has its own: many gates with the same
    idea of the world would otherwise all send everything to one place."""
    best = rest[0]
    limit = best.score * (1.0 + snapshot.settings.alike)
    equals = []
    for row in rest:
        if row.bucket != best.bucket or row.is_named != best.is_named or row.score > limit:
            break
        equals.append(row)
    if len(equals) == 1:
        return best
    job_id = snapshot.wish.job_id
    return min(equals, key=lambda row: (stable_hash(row.one.name, job_id), row.one.name))


def _hold(snapshot: Snapshot, rows: list[_Row], wanted: int) -> tuple[list[_Row], list[str]]:
    """Those of the last choice that stay, and why the others do not."""
    settings = snapshot.settings
    known = {row.one.name: row for row in rows}
    best_bucket = rows[min(wanted, len(rows)) - 1].bucket  # of a choice without a past
    kept: list[_Row] = []
    reasons: list[str] = []
    for before in snapshot.held[:wanted]:
        row = known.get(before.name)
        if row is None:
            reasons.append(f"{before.name} cannot be chosen any more")
        elif row.bucket > best_bucket and not _is_full_for_a_moment(row, settings.full_confirm_s):
            reasons.append(f"{before.name} is {_WORDS[row.bucket]}")
        elif (before.worse_s or 0.0) >= settings.degraded_confirm_s and _is_worse(
            row, before, snapshot
        ):
            reasons.append(f"{before.name} has {row.score / before.score:.1f} times its score")
        else:
            kept.append(row)
    ages = {one.name: one.held_s for one in snapshot.held}
    names = {row.one.name for row in kept}
    rivals = [row for row in rows if row.one.name not in names]
    for row in sorted(kept, key=lambda row: row.key, reverse=True):
        better = next(iter(rivals[wanted - len(kept) :]), None)
        if better is None or better.key >= row.key:
            continue
        alike = better.bucket == row.bucket and better.is_named == row.is_named
        if alike and better.score > settings.improvement * row.score:
            continue
        if ages[row.one.name] < settings.hold_down_s:
            reasons.append(f"{row.one.name} is held, though {better.one.name} is better")
            continue
        kept.remove(row)
        reasons.append(f"{better.one.name} is better than {row.one.name}")
    return kept, reasons


def _is_full_for_a_moment(row: _Row, confirm_s: float) -> bool:
    return row.bucket == Health.BUSY and row.one.full_s < confirm_s


def _is_worse(row: _Row, before: Held, snapshot: Snapshot) -> bool:
    return row.score >= snapshot.settings.degraded * before.score


def _kept(snapshot: Snapshot, chosen: list[_Row]) -> tuple[Held, ...]:
    """For the next wish of this kind."""
    known = {one.name: one for one in snapshot.held}
    found = []
    for row in chosen:
        before = known.get(row.one.name) or Held(name=row.one.name, held_s=0.0, score=row.score)
        worse_s = (before.worse_s or 0.0) if _is_worse(row, before, snapshot) else None
        found.append(msgspec.structs.replace(before, worse_s=worse_s))
    return tuple(found)


# -- for people ----------------------------------------------------------------------------------


def _shown(ordered: list[_Row], chosen: set[str]) -> list[Scored]:
    return [
        Scored(
            name=row.one.name,
            health=_WORDS[row.bucket],
            score=row.score,
            rtt_s=row.parts[0],
            load=row.parts[1],
            quality_penalty=row.parts[2],
            cooldown=row.parts[3],
            chosen=row.one.name in chosen,
            rank=number,
            reason=row.reason,
        )
        for number, row in enumerate(ordered, 1)
    ]


def _not_shown(snapshot: Snapshot, left_out: dict[str, str]) -> list[Scored]:
    return [
        Scored(name=one.name, health=_WORDS[one.health], reason=left_out[one.name])
        for one in snapshot.candidates
        if one.name in left_out
    ]
