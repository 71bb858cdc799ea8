"""How long keys are remembered and how many, with values per deployment (G-59, G-60)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hyperscale.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencySettings:
    pending_ttl_s: float = 60.0
    """A reservation older than this is looked at: longer than the slowest acceptance of a job."""
    committed_ttl_s: float = 300.0
    rejected_ttl_s: float = 60.0
    retry_window_s: float = 120.0
    """The longest a client goes on retrying. A retry after the answer was forgotten would be a
    second job, so answers are kept longer than this."""
    entries_max: int = 100_000
    sweep_interval_s: float = 10.0
    sweep_slice: int = 250
    """Keys looked at before other work gets its turn: some 0.4 ms."""
    pending_wait_s: float = 30.0
    """A duplicate waits this long for the original's answer."""
    answer_bytes_max: int = 16_384

    def __post_init__(self) -> None:
        seconds = (
            self.pending_ttl_s,
            self.rejected_ttl_s,
            self.retry_window_s,
            self.sweep_interval_s,
        )
        if min(seconds) <= 0 or self.pending_wait_s < 0:
            raise BadInput("The idempotency times must be positive.")
        if min(self.entries_max, self.sweep_slice, self.answer_bytes_max) < 1:
            raise BadInput("entries_max, sweep_slice and answer_bytes_max must be at least 1.")
        if self.committed_ttl_s <= self.retry_window_s:
            raise BadInput(
                f"committed_ttl_s ({self.committed_ttl_s:g}) must be longer than retry_window_s "
                f"({self.retry_window_s:g}).",
                "A retry that comes after its answer was forgotten would start a second job.",
            )


@dataclass(frozen=True, slots=True)
class Profile:
    """Gate and manager together: the manager decides, so it must not forget before the gate."""

    gate: IdempotencySettings
    manager: IdempotencySettings

    def __post_init__(self) -> None:
        for name in ("pending_ttl_s", "committed_ttl_s", "rejected_ttl_s"):
            gate_s, manager_s = getattr(self.gate, name), getattr(self.manager, name)
            if manager_s < gate_s:
                raise BadInput(
                    f"{name} of managers ({manager_s:g}) must not be below that of gates "
                    f"({gate_s:g}).",
                    "Managers are the authority; a gate only remembers their answers.",
                )


def _profile(
    pending_s: tuple[float, float],
    committed_s: tuple[float, float],
    rejected_s: tuple[float, float],
    entries: tuple[int, int],
    sweep_s: tuple[float, float],
    retry_window_s: float,
) -> Profile:
    gate, manager = (
        IdempotencySettings(
            pending_ttl_s=pending_s[side],
            committed_ttl_s=committed_s[side],
            rejected_ttl_s=rejected_s[side],
            entries_max=entries[side],
            sweep_interval_s=sweep_s[side],
            retry_window_s=retry_window_s,
        )
        for side in (0, 1)
    )
    return Profile(gate, manager)


PROFILES: Final[dict[str, Profile]] = {
    "development": _profile((30, 60), (60, 120), (30, 60), (1_000, 10_000), (5, 10), 30),
    "single-datacenter": _profile(
        (60, 120), (300, 600), (60, 120), (100_000, 500_000), (10, 30), 120
    ),
    "multi-datacenter": _profile(
        (120, 300), (600, 1_800), (120, 300), (100_000, 1_000_000), (30, 60), 300
    ),
}
