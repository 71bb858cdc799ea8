from __future__ import annotations

from hyperscale.metrics.results import CoreUse
from hyperscale.metrics.saturation import saturation


def core(number: int = 0, workflow: str = "W", **fields: float) -> CoreUse:
    return CoreUse(core=number, workflow=workflow, **fields)


def test_a_generator_that_kept_up_says_nothing():
    assert saturation([core(cpu_mean=0.6, busy_share=0.1, lag_p99_ms=3)]) == ""
    assert saturation([]) == ""


def test_a_busy_core_is_named_with_what_to_do():
    verdict = saturation([core(0, cpu_mean=0.98, busy_share=0.9), core(1, cpu_mean=0.2)])
    assert "1 of 2 cores ran above 90% CPU for 90% of the time" in verdict
    assert "-w" in verdict


def test_a_core_that_workflows_shared_is_one_core():
    uses = [core(0, name, cpu_mean=0.98, busy_share=0.9) for name in ("A", "B", "C")]
    assert "1 of 2 cores" in saturation([*uses, core(1, "A", cpu_mean=0.2)])


def test_a_ramp_that_saturates_towards_its_end_is_found():
    assert "bottleneck" in saturation([core(cpu_mean=0.6, busy_share=0.3)])


def test_a_late_loop_on_an_idle_core_points_at_blocking_code():
    verdict = saturation([core(cpu_mean=0.2, lag_p99_ms=120)])
    assert "120 ms late" in verdict
    assert "blocking" in verdict


def test_arrivals_not_started_are_told_even_when_the_cpu_had_room():
    verdict = saturation([core(cpu_mean=0.2)], dropped=50, iterations=950, open_model=True)
    assert "50 of 1,000 arrivals (5.0%)" in verdict
    assert "max_vus" in verdict


def test_a_busy_core_and_lost_arrivals_are_one_sentence():
    verdict = saturation([core(cpu_mean=0.99)], dropped=50, iterations=950, open_model=True)
    assert "bottleneck" in verdict
    assert "50 of 1,000 arrivals" in verdict


def test_a_closed_model_drops_nothing():
    assert saturation([core()], dropped=50, iterations=950) == ""
