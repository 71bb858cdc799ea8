"""One suite for every reporter: what is sent arrives, what is sent twice is there once, and a
backend that is away is told in a sentence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperscale.reporting.config import SECRET
from hyperscale.reporting.points import Meter, Points
from hyperscale.reporting.registry import ENTRIES, ReporterTypes
from hyperscale.reporting.reporter import Reporter
from tests.fixtures.services import SERVICES, Count, Made
from tests.integration.reporting.worlds import LIVE, STORES, WORLDS, free_port
from tests.unit.reporting.growing import growing
from tests.unit.ui.sample import empty_results, sample_results

DEADLINE_S = 30.0
DATAGRAMS = ("statsd", "dogstatsd", "telegraf_statsd", "netdata")  # nobody answers those
ALIASES = {"influxdb2": "influxdb"}


def test_every_reporter_is_in_the_suite() -> None:
    kinds = {ALIASES.get(name, name).replace("aws_", "") for name in WORLDS}
    assert kinds == {kind.value.replace("aws_", "") for kind in ENTRIES}
    assert {*ReporterTypes} - {*ENTRIES} == {ReporterTypes.Custom}


@pytest.fixture(scope="module", params=sorted(WORLDS))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp(request.param)
    with WORLDS[request.param](folder) as made:
        yield made


def course(began_s: float) -> list[Points]:
    """Three seconds and the end of a run that has just been."""
    meter = Meter("20260105T120000Z-0a1b", began_s)
    seen = [growing(seconds) for seconds in (1, 2, 3)] + [growing(4, finished=True)]
    return [meter.take(results, began_s + number) for number, results in enumerate(seen, 1)]


def eventually(count: Count, expected: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while (found := count()) != expected:
        assert time.monotonic() < deadline, f"{found} instead of {expected}"
        time.sleep(0.05)


async def submitted(config: Any, metrics: Any) -> None:
    reporter = Reporter(config)
    await reporter.connect()
    await reporter.submit(metrics)
    await reporter.close()
    await reporter.close()


def test_what_is_sent_arrives(world: Made) -> None:
    config, count = world
    reporter = Reporter(config)
    assert reporter.backend.live != reporter.backend.at_end
    assert asyncio.run(reporter.reach()) is None
    if reporter.backend.live:
        points = course(time.time() - 10)
        asyncio.run(submitted(config, points[:2]))
        asyncio.run(submitted(config, points[2:]))
        eventually(count, growing(4).requests)
    else:
        results = sample_results()
        for _ in range(2):
            asyncio.run(submitted(config, results))
        assert count() == 1


def test_what_was_never_measured_is_sent_as_well(world: Made) -> None:
    config, _ = world
    if Reporter(config).backend.keeps_time:
        assert asyncio.run(Reporter(config).send(empty_results())) is None


def test_one_that_is_away_is_told(world: Made, tmp_path: Path) -> None:
    config, _ = world
    fields = config.__struct_fields__
    if "endpoint_url" in fields:
        away: Any = msgspec.structs.replace(config, endpoint_url=f"http://127.0.0.1:{free_port()}")
    elif "port" in fields:
        away = msgspec.structs.replace(config, port=free_port())
    else:
        (tmp_path / "file").write_text("")
        path = {config.path_field: str(tmp_path / "file" / "results")}
        away = msgspec.structs.replace(config, **path)
    if isinstance(getattr(config, "tcp", None), bool):
        away = msgspec.structs.replace(away, tcp=True)
    error = asyncio.run(Reporter(away).reach())
    assert error is not None
    assert away.shown() in error.message
    secrets = [getattr(away, name) for name in SECRET & {*fields}]
    assert not any(one in error.message for one in secrets if isinstance(one, str) and one)


@pytest.mark.parametrize("name", sorted({*SERVICES} - {"otlp"}))
def test_who_has_no_right_is_told_so(name: str, tmp_path: Path) -> None:
    """The services refuse what is not signed as they want it."""
    with WORLDS[name](tmp_path) as (config, _):
        wrong: dict[str, str] = {}
        for field in ("api_key", "token"):
            if getattr(config, field, ""):
                wrong[field] = "a-wrong-one"
        if hasattr(config, "aws_access_key_id"):
            wrong["aws_access_key_id"] = "AKIAWRONG"
        if hasattr(config, "service_account_json_path"):
            wrong = {"service_account_json_path": "", "token": "a-wrong-one"}
        if name == "cosmosdb":
            wrong = {"database": "another"}
        error = asyncio.run(Reporter(msgspec.structs.replace(config, **wrong)).reach())
    assert error is not None
    assert "HTTP 40" in error.message


def test_kinds() -> None:
    assert not STORES.keys() & LIVE.keys()
