"""One number for a mix of workflows: `-u`, `--rate`, `--rps` and `-s` shared within a layer.

A total goes to the workflows that are written in its measure (`--rate` to those with a `rate`,
`-u` to those without one), and to all of them where none is. They share it by `weight`, or where
none writes one in the proportion of what they write. Workflows that others depend on and those
with `fixed_vus` stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from hyperscale.errors import BadInput
from hyperscale.workload.load import RampingVUs, Stage
from hyperscale.workload.load_settings import (
    DEFAULT_VUS,
    SHARED,
    Settings,
    parse_rate,
    parse_stages,
    rate_unit,
    whole_number,
)


class Member(NamedTuple):
    """A test workflow of a layer, with what its author set."""

    name: str
    settings: Settings
    weight: float | None = None
    keeps_its_own: bool = False  # others depend on it

    @property
    def shares(self) -> bool:
        return not self.keeps_its_own and "fixed_vus" not in self.settings

    @property
    def has_rate(self) -> bool:
        return "rate" in self.settings

    @property
    def has_rps(self) -> bool:
        return "rps" in self.settings

    @property
    def users(self) -> int:
        """As written; a ramp and a shape count with the most they can have."""
        written: int = self.settings.get("vus", DEFAULT_VUS)
        if "shape" in self.settings:
            written = self.settings.get("max_vus", DEFAULT_VUS)
        elif "stages" in self.settings and not self.has_rate:
            written = RampingVUs(parse_stages(self.settings["stages"])).peak_vus
        return max(1, written)

    @property
    def rate(self) -> float:
        """Per second as written; a ramp counts with its peak."""
        written = self.settings["rate"]
        stages = parse_stages(self.settings.get("stages", [(1, written)]), rate_unit(written))
        return max(parse_rate(written), *(stage.target for stage in stages))

    @property
    def rps(self) -> float:
        return parse_rate(self.settings["rps"], "rps")


def shared_flags(
    layer: Sequence[Member], flags: Settings
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What the flags of a command line mean for each workflow of a layer, and warnings."""
    if "vus" in flags and "vus_each" in flags:
        raise BadInput(
            "the users are given both in all and for each workflow", "leave -u or --vus-each out"
        )
    common = {name: value for name, value in flags.items() if name not in SHARED}
    own = {member.name: dict(common) for member in layer}
    for member in layer:
        if "vus_each" in flags and "fixed_vus" not in member.settings:
            own[member.name]["vus"] = flags["vus_each"]
    sharing = [member for member in layer if member.shares]
    warnings = []
    for name, group, shares in _totals(sharing, flags):
        for member, value in zip(group, shares, strict=True):
            own[member.name][name] = value
        if name == "vus" and flags["vus"] < len(group):
            warnings.append(
                f"{flags['vus']} users are fewer than the {len(group)} workflows that share them: "
                "each gets one"
            )
    return own, warnings


def _totals(
    members: Sequence[Member], flags: Settings
) -> Iterator[tuple[str, Sequence[Member], Sequence[Any]]]:
    """Each total that was given: its name, the workflows it goes to, and what each of them gets."""
    by_users = _Group(members, lambda one: not one.has_rate, lambda one: one.users)
    by_rate = _Group(members, lambda one: one.has_rate, lambda one: one.rate)
    by_rps = _Group(members, lambda one: one.has_rps, lambda one: one.rps)
    if "vus" in flags:
        yield "vus", by_users.members, by_users.whole(whole_number("vus", flags["vus"]))
    if "rate" in flags:
        yield "rate", by_rate.members, by_rate.parts(parse_rate(flags["rate"]))
    if "max_vus" in flags:
        yield "max_vus", by_rate.members, by_rate.whole(whole_number("max_vus", flags["max_vus"]))
    if "rps" in flags:
        yield "rps", by_rps.members, by_rps.parts(parse_rate(flags["rps"], "rps"))
    if "stages" not in flags:
        return
    if "rate" in flags or all(member.has_rate for member in members):
        stages = parse_stages(flags["stages"], rate_unit(flags.get("rate")))
        yield "stages", by_rate.members, _ramps(stages, by_rate.parts)
        if "rate" not in flags:  # where the ramps start, in the unit of their shares
            yield "rate", members, [parse_rate(member.settings["rate"]) for member in members]
    else:
        stages = RampingVUs(parse_stages(flags["stages"])).stages
        yield "stages", by_users.members, _ramps(stages, lambda vus: by_users.whole(int(vus)))


def share(total: int, weights: Sequence[float]) -> list[int]:
    """Whole shares of at least one each: those too light for one get one, the others what is left
    in proportion, the largest remainders rounded up, the first of equals first."""
    parts = [Fraction(weight) for weight in weights]
    found = dict.fromkeys(range(len(parts)), 1)
    heavy, left = list(found), total
    while heavy:
        unit = left / sum(parts[number] for number in heavy)
        light = [number for number in heavy if parts[number] * unit < 1]
        if not light:
            break
        heavy = [number for number in heavy if number not in light]
        left -= len(light)
    if heavy:
        quotas = {number: parts[number] * unit for number in heavy}
        found |= {number: int(quota) for number, quota in quotas.items()}
        spare = left - sum(found[number] for number in heavy)
        by_remainder = sorted(heavy, key=lambda number: found[number] - quotas[number])
        for number in by_remainder[:spare]:
            found[number] += 1
    return list(found.values())


class _Group:
    """The workflows that one total goes to."""

    def __init__(
        self,
        members: Sequence[Member],
        measured: Callable[[Member], bool],
        written: Callable[[Member], float],
    ) -> None:
        chosen = [member for member in members if measured(member)]
        self.members = chosen or list(members)
        if any(member.weight is not None for member in self.members):
            self._weights = [member.weight or 1.0 for member in self.members]
        elif chosen:
            self._weights = [written(member) for member in self.members]
        else:
            self._weights = [member.users for member in self.members]

    def whole(self, total: int) -> list[int]:
        return share(total, self._weights) if total > 0 else [total] * len(self.members)

    def parts(self, total: float) -> list[float]:
        together = sum(self._weights)
        return [total * weight / together for weight in self._weights]


def _ramps(
    stages: Sequence[Stage], share_of: Callable[[float], Sequence[float]]
) -> list[list[tuple[float, float]]]:
    """One ramp for each workflow, all of the same times."""
    targets = [share_of(stage.target) for stage in stages]
    times = [stage.duration_s for stage in stages]
    return [list(zip(times, ramp, strict=True)) for ramp in zip(*targets, strict=True)]
