"""The score of one datacenter: round trip x load x penalty for what is not well known.

    score = rtt x load x quality_penalty x cooldown           the lower wins

    rtt     = clamp(measured + k_sigma x error)
    load    = 1 + utilisation + queue + circuits + overload, each 0 to 1, at most `load_max`
    quality = samples x error x age, 0 to 1, of the measured round trip

A worse input never lowers it. While distances are not known well enough, `rtt` is 1 for all.
"""

from __future__ import annotations

from hyperscale.cluster.routing.snapshot import Candidate, RoutingSettings


def rtt_upper_s(one: Candidate, settings: RoutingSettings) -> float:
    """A round trip that is rarely exceeded. Not to know it excludes nobody."""
    if one.rtt_s is None:
        estimate_s, error_s = settings.rtt_default_s, settings.rtt_error_default_s
    else:
        estimate_s = one.rtt_s
        error_s = min(settings.error_max_s, max(settings.error_min_s, one.rtt_error_s))
    upper_s = estimate_s + settings.k_sigma * error_s
    return min(settings.rtt_max_s, max(settings.rtt_min_s, upper_s))


def quality(one: Candidate, settings: RoutingSettings) -> float:
    if one.rtt_s is None:
        return 0.0
    samples = min(1.0, one.samples / settings.samples_enough)
    error = min(1.0, settings.error_good_s / max(one.rtt_error_s, 0.001))
    fresh = 1.0 if one.age_s <= settings.ttl_s else settings.ttl_s / one.age_s
    return samples * error * fresh


def quality_penalty(one: Candidate, settings: RoutingSettings) -> float:
    penalty = 1.0 + settings.quality_weight * (1.0 - quality(one, settings))
    return min(settings.quality_penalty_max, penalty)


def load(one: Candidate, settings: RoutingSettings) -> float:
    free = max(0, one.cores_free - one.pending)
    util = 1.0 - min(1.0, free / max(1, one.cores))
    queue = one.queued / (one.queued + settings.queue_smoothing)
    factor = (
        1.0
        + settings.util_weight * util
        + settings.queue_weight * queue
        + settings.circuit_weight * min(1.0, one.managers_open / max(1, one.managers))
        + settings.overload_weight * min(3, max(0, one.load)) / 3
    )
    return min(settings.load_max, factor)


def cooldown(one: Candidate, settings: RoutingSettings) -> float:
    failed = one.failed_s is not None and one.failed_s < settings.cooldown_s
    return settings.cooldown_penalty if failed else 1.0


def knows_distances(
    candidates: tuple[Candidate, ...], settings: RoutingSettings, before: bool
) -> bool:
    """Whether this gate has measured enough for distances to decide. It is judged on the whole: of
    one datacenter alone that is not known well, its own penalty tells."""
    measured = [one for one in candidates if one.rtt_s is not None]
    if not measured or max(one.samples for one in measured) < settings.samples_enough:
        return False
    limit_s = settings.error_for_routing_s * (settings.error_hysteresis if before else 1.0)
    errors = sorted(one.rtt_error_s for one in measured)
    return errors[len(errors) // 2] <= limit_s
