"""What a person asks of a run on the page, checked, and done through its source."""

from __future__ import annotations

from typing import Literal

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import WorkflowResult
from hyperscale.ui import text
from hyperscale.ui.live.source import Source

VUS_MAX = 10_000_000
PERCENT_MAX = 10_000


class Command(msgspec.Struct, frozen=True):
    action: Literal["pause", "resume", "scale", "rate", "stop", "kill"]
    workflow: str = ""  # empty: the only one under way
    vus: int = 0  # users it shall have,
    delta: int = 0  # or so many more or fewer: right also before the last change has shown
    percent: int = 0  # of its present rate


def decode(body: bytes) -> Command:
    try:
        return msgspec.json.decode(body, type=Command)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"that cannot be asked of a run: {error}") from None


def steer(source: Source, command: Command) -> str:
    """Does it, and says so in a few words. Raises BadInput."""
    match command.action:
        case "pause":
            source.pause()
            return "pausing"
        case "resume":
            source.resume()
            return "resuming"
        case "scale":
            return _scale(source, command)
        case "rate":
            return _rate(source, command)
        case "stop":
            source.stop()
            return "stopping after the iterations under way"
        case "kill":
            source.kill()
            return "stopping now"


def _scale(source: Source, command: Command) -> str:
    workflow = _under_way(source, command.workflow)
    if workflow.open_model:
        raise BadInput(f"{workflow.name} makes its load by arrivals", "change its rate instead")
    if command.delta and abs(command.delta) <= VUS_MAX:
        delta = max(command.delta, 1 - workflow.vus)
        if not delta:
            raise BadInput("1 user is the least", "stop the run to have none at all")
        source.scale(delta, workflow.name)
        words = f"adding {text.count(delta)}" if delta > 0 else f"removing {text.count(-delta)}"
        return f"{workflow.name}: {words}"
    if not 1 <= command.vus <= VUS_MAX:
        raise BadInput(
            f"users are a number from 1 to {VUS_MAX:,}", "stop the run to have none at all"
        )
    if delta := command.vus - workflow.vus:
        source.scale(delta, workflow.name)
    return f"{workflow.name}: {text.count(command.vus)} users"


def _rate(source: Source, command: Command) -> str:
    workflow = _under_way(source, command.workflow)
    if not workflow.open_model:
        raise BadInput(f"{workflow.name} makes its load by users", "change their number instead")
    if not 1 <= command.percent <= PERCENT_MAX:
        raise BadInput(f"a rate is changed to 1 to {PERCENT_MAX:,} % of what it is")
    source.change_rate(command.percent / 100, workflow.name)
    return f"{workflow.name}: {command.percent} % of its rate"


def _under_way(source: Source, name: str) -> WorkflowResult:
    found = [w for w in source.results().workflows if w.state in ("running", "paused")]
    named = [w for w in found if name in ("", w.name)]
    if len(named) != 1:
        what = f"{name} is not under way" if name else "say which workflow"
        raise BadInput(what, f"under way: {', '.join(w.name for w in found) or 'none'}")
    return named[0]
