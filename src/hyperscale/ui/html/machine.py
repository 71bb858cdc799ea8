"""The generator's side: how busy its cores were, and the machine and command behind the numbers."""

from __future__ import annotations

from hyperscale.metrics.results import CoreUse, Results
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Child, Html, join, tag
from hyperscale.ui.html.table import Cell, Column, number, table, words
from hyperscale.ui.totals import generator_cost

# Above this share of a core the generator's own work starts to show in the latencies.
_BUSY = 0.9


def generator(results: Results) -> Html | None:
    if not results.core_use:
        return None
    columns = [
        Column("Core", number=False),
        Column("Workflow", number=False),
        Column("CPU mean"),
        Column("CPU peak"),
        Column("Loop lag p99"),
        Column("Memory"),
    ]
    sentence = (
        results.saturation or "The generator kept up: the latencies are the target's, not its own."
    )
    cost = generator_cost(results)
    return tag(
        "section",
        tag("h2", "Load generator"),
        tag("p", sentence, class_="lead alarm" if results.saturation else "lead"),
        tag("p", f"Making the load took {cost}.") if cost else None,
        table("Use of the generator's cores", columns, [_core(use) for use in results.core_use]),
    )


def _core(use: CoreUse) -> list[Cell]:
    return [
        words(f"{use.core}"),
        words(use.workflow),
        Cell(_meter(use.cpu_mean), use.cpu_mean, _busy(use.cpu_mean)),
        number(numbers.percent(use.cpu_max), use.cpu_max, _busy(use.cpu_max)),
        number(numbers.milliseconds(use.lag_p99_ms), use.lag_p99_ms),
        number(numbers.size(use.rss_mb * 1e6), use.rss_mb),
    ]


def _meter(share: float) -> Html:
    width = max(0.0, min(1.0, share)) * 100
    return join(
        [
            tag("span", tag("i", style=f"width:{width:.0f}%"), class_="meter", aria_hidden="true"),
            numbers.percent(share),
        ]
    )


def _busy(share: float) -> str:
    return "alarm" if share >= _BUSY else ""


def environment(results: Results) -> Html:
    env = results.environment
    facts: list[tuple[str, Child]] = [
        ("Started", results.started_at),
        ("Wall time", numbers.seconds(results.elapsed_s)),
        ("Hyperscale", env.hyperscale),
        ("Python", env.python),
        ("Platform", env.platform),
        ("CPU", f"{env.cpu}, {env.cores} cores".strip(", ") if env.cores else env.cpu),
        ("Workers", str(env.workers) if env.workers else ""),
        ("Host", env.host),
        ("Command", tag("code", env.command) if env.command else ""),
        *((f"Tag {key}", value) for key, value in results.tags.items()),
    ]
    return tag(
        "section",
        tag("h2", "Environment"),
        tag(
            "dl",
            (tag("div", tag("dt", name), tag("dd", fact)) for name, fact in facts if fact),
            class_="facts",
        ),
    )
