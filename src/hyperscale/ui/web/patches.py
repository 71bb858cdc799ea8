"""What the page is told: sections that are replaced whole, points of the timelines and numbers of
the steps that are replaced one by one. A message says what changed since the one before; put
together they are all there is to know, which whoever comes later is told in one message.
"""

from __future__ import annotations

import msgspec

from hyperscale.metrics.results import Point, Results, StepResult
from hyperscale.ui.web.sections import sections

Raw = msgspec.Raw
_encode = msgspec.json.Encoder().encode


class Patch(msgspec.Struct, omit_defaults=True):
    fresh: bool = False  # what was known before is of no use any more
    set: dict[str, Raw] = {}
    points: dict[str, dict[str, Raw]] = {}  # by workflow and moment
    gone: dict[str, list[str]] = {}  # moments that are part of a wider interval now
    steps: dict[str, dict[str, Raw]] = {}  # by workflow and place

    def __bool__(self) -> bool:
        return bool(self.fresh or self.set or self.points or self.gone or self.steps)


class Whole:
    """Patches put together."""

    def __init__(self) -> None:
        self._known = Patch()

    def add(self, patch: Patch) -> None:
        if patch.fresh:
            self._known = Patch()
        known = self._known
        known.set.update(patch.set)
        for name, moments in patch.gone.items():
            for moment in moments:
                known.points.get(name, {}).pop(moment, None)
        for kept, changed in ((known.points, patch.points), (known.steps, patch.steps)):
            for name, items in changed.items():
                kept.setdefault(name, {}).update(items)

    def patch(self) -> Patch:
        return msgspec.structs.replace(self._known, fresh=True)


class Changes:
    """Of a run, from one look at it to the next."""

    def __init__(self) -> None:
        self._sections: dict[str, bytes] = {}
        self._points: dict[str, dict[str, Point]] = {}
        self._steps: dict[str, list[bytes]] = {}
        self._begun = False

    def since(self, results: Results) -> Patch:
        patch = Patch(fresh=not self._begun)
        self._begun = True
        for name, value in sections(results).items():
            encoded = _encode(value)
            if self._sections.get(name) != encoded:
                self._sections[name] = encoded
                patch.set[name] = Raw(encoded)
        for workflow in results.workflows:
            self._series(patch, workflow.name, workflow.series)
            self._numbers(patch, workflow.name, workflow.steps)
        return patch

    def _series(self, patch: Patch, name: str, series: list[Point]) -> None:
        before = self._points.get(name, {})
        now = self._points[name] = {f"{point.at_s:g}": point for point in series}
        # Points at rest are the same objects from one look to the next.
        changed = {
            moment: Raw(_encode(point))
            for moment, point in now.items()
            if (known := before.get(moment)) is not point and known != point
        }
        gone = [moment for moment in before if moment not in now]
        if changed:
            patch.points[name] = changed
        if gone:
            patch.gone[name] = gone

    def _numbers(self, patch: Patch, name: str, steps: list[StepResult]) -> None:
        before = self._steps.get(name, [])
        now = self._steps[name] = [_encode(_row(step)) for step in steps]
        changed = {
            str(place): Raw(row)
            for place, row in enumerate(now)
            if place >= len(before) or before[place] != row
        }
        if changed:
            patch.steps[name] = changed


def _row(step: StepResult) -> tuple[float, ...]:
    """In the order of STEP_NUMBERS in steps.js."""
    service, response = step.service, step.response
    return (
        step.count,
        round(step.rate, 3),
        step.failed,
        step.unsent,
        *(round(ms, 4) for ms in (service.mean_ms, service.p50_ms, service.p95_ms)),
        *(round(ms, 4) for ms in (service.p99_ms, service.max_ms, response.p99_ms)),
        step.bytes_in,
        round(step.duration.p95_ms, 4),
    )
