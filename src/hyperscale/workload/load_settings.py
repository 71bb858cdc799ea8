"""From the attributes an author sets to a load model, and what command-line flags change in it.

Only attributes that were set count, so that a default never contradicts a choice. `rate`,
`stages`, `iterations`, `iterations_per_vu` and a method `shape` choose the model; none of them
means closed VUs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.arrival_models import default_max_vus
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    Load,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
    Stage,
)
from hyperscale.workload.load_models import MAX_DURATION_S

DEFAULT_VUS = 10
DEFAULT_DURATION = "30s"

COMMON = ("start_time", "warmup", "graceful_stop", "think_time", "pacing", "rps")
NAMES = (
    *("vus", "fixed_vus", "duration", "rate", "max_vus", "stages"),
    *("iterations", "iterations_per_vu", "max_duration"),
    *COMMON,
)
FLAGS = ("vus", "vus_each", "duration", "iterations", "stages", "rate", "max_vus", "rps")
SHARED = frozenset(FLAGS) - {"duration", "iterations"}  # given for a whole mix: see `mix`

_SHAPED = "shape() says how many users there are"
_FIXED = "the users are fixed"
_CONFLICTS = (
    ("rate", "iterations", "a run ends after a number of iterations or starts them at a rate"),
    (
        "rate",
        "iterations_per_vu",
        "a run ends after a number of iterations or starts them at a rate",
    ),
    ("stages", "iterations", "a ramp ends when its stages do, not after a number of iterations"),
    ("stages", "iterations_per_vu", "a ramp ends when its stages do, not after iterations"),
    ("iterations", "iterations_per_vu", "one counts all iterations, the other those of each VU"),
    ("stages", "duration", "the stages have their own durations"),
    ("rate", "pacing", "a rate already says when iterations start"),
    ("rate", "think_time", "a rate already says when iterations start"),
    *(("shape", name, _SHAPED) for name in ("vus", "rate", "stages")),
    *(("shape", name, "it says when it ends") for name in ("iterations", "iterations_per_vu")),
    *(("fixed_vus", name, _FIXED) for name in ("vus", "rate", "stages", "shape")),
)
_NEEDS = (
    ("max_vus", ("rate", "shape"), "it caps the VUs of a rate or of a shape"),
    ("max_duration", ("iterations", "iterations_per_vu"), "it limits a run by iterations"),
)

_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:\s*/\s*(s|m|h))?")
_RATE_UNITS_S = {"s": 1, "m": 60, "h": 3600}

Settings = Mapping[str, Any]


def parse_rate(value: object, what: str = "rate", unit: str = "s") -> float:
    """Iterations per second in `500`, `"500/s"`, `"30000/m"` or `"100/h"`; `unit` where none is
    written."""
    if isinstance(value, str):
        match = _RATE.fullmatch(value.strip())
        if match:
            return float(match[1]) / _RATE_UNITS_S[match[2] or unit]
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value) / _RATE_UNITS_S[unit]
    raise BadInput(
        f"{what} {value!r} is not a rate",
        "write a rate such as '500/s', '30000/m' or a number of iterations per second",
    )


def rate_unit(rate: object) -> str:
    """The unit that a rate is written in, which is also that of its stages."""
    match = _RATE.fullmatch(rate.strip()) if isinstance(rate, str) else None
    return (match[2] if match else None) or "s"


def load_of(settings: Settings) -> Load:
    """The load model of what was set; BadInput in words that follow the workflow's name."""
    _refuse_contradictions(settings)
    common = _common(settings)
    vus = _fixed(settings) if "fixed_vus" in settings else settings.get("vus")
    if "shape" in settings:
        return _shaped(settings, common)
    if "stages" in settings:
        return _ramp(settings, common)
    if "rate" in settings:
        rate = parse_rate(settings["rate"])
        return ArrivalRate(
            rate,
            _duration(settings),
            _max_vus(settings, rate),
            vus=whole_number("vus", vus or 0),
            **common,
        )
    vus = whole_number("vus", DEFAULT_VUS if vus is None else vus)
    if "iterations" in settings or "iterations_per_vu" in settings:
        return _by_iterations(settings, vus, common)
    return ClosedVUs(vus, _duration(settings), **common)


def once(settings: Settings) -> Load:
    """The load of a workflow that is not a test: its steps run once."""
    limit = settings.get("max_duration", MAX_DURATION_S)
    return SharedIterations(1, 1, max_duration_s=parse_duration(limit, "max_duration"))


def override(settings: Settings, flags: Settings) -> dict[str, Any]:
    """`settings` as the flags of a command line change them.

    A flag that chooses a load model replaces the model of the file. `duration` alone stretches or
    shrinks the stages of a ramp to that time, turns iterations into a timed run and limits a shape;
    `vus` alone turns a ramp or a shape into that many VUs for the same time.
    """
    result = dict(settings)
    chosen = flags.keys() & {"rate", "stages", "iterations"}
    if not flags:
        return result
    if "shape" in result and (chosen or "vus" in flags):
        _drop(result, "shape", "max_vus")
    if "iterations" in chosen:
        _drop(result, "rate", "max_vus", "stages", "iterations_per_vu", "duration")
    if "stages" in chosen:
        _drop(result, "iterations", "iterations_per_vu", "max_duration", "duration")
    if "rate" in chosen and "stages" not in chosen:
        _flatten(result)
        _drop(result, "iterations", "iterations_per_vu", "max_duration", "pacing", "think_time")
    if not chosen and "vus" in flags and "rate" not in result:
        _flatten(result)
    if not chosen and "duration" in flags:
        _drop(result, "iterations", "iterations_per_vu", "max_duration")
        if "stages" in result:
            result["stages"] = _stretch(result["stages"], flags["duration"])
            flags = {name: value for name, value in flags.items() if name != "duration"}
    return {**result, **flags}


def _drop(settings: dict[str, Any], *names: str) -> None:
    for name in names:
        settings.pop(name, None)


def _flatten(settings: dict[str, Any]) -> None:
    """Replace stages by their total duration."""
    if "stages" in settings:
        stages = parse_stages(settings.pop("stages"))
        settings["duration"] = math.fsum(stage.duration_s for stage in stages)


def _stretch(stages: Any, duration: object) -> list[tuple[float, Any]]:
    parsed = parse_stages(stages)
    wanted_s = parse_duration(duration)
    total_s = math.fsum(stage.duration_s for stage in parsed)
    return [
        (stage.duration_s * wanted_s / total_s, target)
        for stage, (_, target) in zip(parsed, stages, strict=True)
    ]


def parse_stages(value: object, unit: str = "s") -> tuple[Stage, ...]:
    """Targets are users, or rates per second once read, of `unit` where they name none."""
    hint = "write stages such as [('30s', 100), ('1m', 100), ('10s', 0)]"
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise BadInput(f"stages is {value!r} but must be a list of (duration, target) pairs", hint)
    stages = []
    for number, stage in enumerate(value, 1):
        if not isinstance(stage, Sequence) or isinstance(stage, str) or len(stage) != 2:
            raise BadInput(f"stage {number} is {stage!r} but must be (duration, target)", hint)
        duration_s = parse_duration(stage[0], f"duration of stage {number}")
        target = parse_rate(stage[1], f"target of stage {number}", unit)
        stages.append(Stage(duration_s, target))
    return tuple(stages)


def _shaped(settings: Settings, common: dict[str, Any]) -> Load:
    if "max_vus" in settings:
        common = {**common, "max_vus": whole_number("max_vus", settings["max_vus"])}
    if "duration" in settings:
        common = {**common, "duration_s": _duration(settings)}
    return ShapedVUs(**common)


def _ramp(settings: Settings, common: dict[str, Any]) -> Load:
    stages = parse_stages(settings["stages"], rate_unit(settings.get("rate")))
    vus = whole_number("vus", settings.get("vus", 0))
    if "rate" not in settings:
        return RampingVUs(stages, vus, **common)
    start = parse_rate(settings["rate"])
    cap = _max_vus(settings, max(start, *(stage.target for stage in stages)))
    return RampingRate(stages, cap, start=start, vus=vus, **common)


def _by_iterations(settings: Settings, vus: int, common: dict[str, Any]) -> Load:
    limit = settings.get("max_duration", settings.get("duration"))
    if limit is not None:
        common = {**common, "max_duration_s": parse_duration(limit, "max_duration")}
    if "iterations" in settings:
        iterations = whole_number("iterations", settings["iterations"])
        busy = min(vus, iterations) if iterations > 0 else vus
        return SharedIterations(busy, iterations, **common)
    return PerVUIterations(
        vus, whole_number("iterations_per_vu", settings["iterations_per_vu"]), **common
    )


def _common(settings: Settings) -> dict[str, Any]:
    common: dict[str, Any] = {}
    for name in ("start_time", "warmup", "graceful_stop", "pacing"):
        if name in settings:
            common[f"{name}_s"] = parse_duration(settings[name], name)
    if "think_time" in settings:
        common["think_time_s"] = _think_time(settings["think_time"])
    if "rps" in settings:
        common["rps"] = _rps(settings["rps"])
    return common


def _rps(value: object) -> float:
    rps = parse_rate(value, "rps")
    if not rps:
        raise BadInput("rps is 0 but must be above 0", "leave it out for no limit")
    return rps


def _think_time(value: object) -> tuple[float, float]:
    if isinstance(value, (tuple, list)):
        if len(value) == 2:
            shortest, longest = (parse_duration(part, "think_time") for part in value)
            if shortest <= longest:
                return shortest, longest
        raise BadInput(
            f"think_time is {value!r} but must be a duration or a (shortest, longest) pair",
            "write '1s' or ('1s', '3s')",
        )
    fixed = parse_duration(value, "think_time")
    return fixed, fixed


def _duration(settings: Settings) -> float:
    return parse_duration(settings.get("duration", DEFAULT_DURATION))


def _max_vus(settings: Settings, peak_rate: float) -> int:
    if "max_vus" in settings:
        return whole_number("max_vus", settings["max_vus"])
    return max(default_max_vus(peak_rate), whole_number("vus", settings.get("vus", 0)))


def _fixed(settings: Settings) -> int:
    fixed = whole_number("fixed_vus", settings["fixed_vus"])
    if fixed < 1:
        raise BadInput(f"fixed_vus is {fixed} but must be at least 1")
    return fixed


def whole_number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} is {value!r} but must be a whole number")
    return value


def _refuse_contradictions(settings: Settings) -> None:
    for one, other, why in _CONFLICTS:
        if one in settings and other in settings:
            raise BadInput(
                f"{one} and {other} are both set, but {why}",
                f"set only one; a subclass undoes an inherited one with '{other} = None'",
            )
    for name, partners, why in _NEEDS:
        if name in settings and not any(partner in settings for partner in partners):
            raise BadInput(f"{name} is set without {' or '.join(partners)}, but {why}")
