"""Every example runs as its own docstring says, and reports what the embedded target counted."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperscale.clients.browser.chromium import NAMES
from hyperscale.errors import ExitCode
from hyperscale.target.process import Options, TargetProcess
from tests.fixtures.brokers import kafka_mock, mosquitto, nats_server
from tests.fixtures.echo import echoing
from tests.fixtures.file_servers import ftp_server
from tests.fixtures.graphql_shop import graphql_shop, graphql_shop_h2, seen
from tests.fixtures.mailbox import mailbox
from tests.fixtures.mariadb import mariadb
from tests.fixtures.mongo_server import mongo_server
from tests.fixtures.redis_at_port import redis_at_port
from tests.integration.cli.program import environment, hyperscale

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDED = (ExitCode.PASSED, ExitCode.LOAD_LOST, ExitCode.THRESHOLDS_CROSSED)
OF_THEIR_OWN = {
    "browser.py",
    "file_transfer.py",
    "graphql_http2.py",
    "graphql_shop.py",
    "http3.py",
    "kafka_orders.py",
    "mongodb_shop.py",
    "mqtt_sensors.py",
    "mysql.py",
    "nats_orders.py",
    "postgres.py",
    "rabbitmq_orders.py",
    "redis_cache.py",
    "smtp_mails.py",
    "sse.py",
    "tcp_udp.py",
}  # the target counts something else than requests, or not
FILES = sorted(file.name for file in EXAMPLES.glob("*.py") if file.name not in OF_THEIR_OWN)
FAILS = {("gatling_switch.py", "login")}  # some are meant to

Stats = Callable[[], dict[str, Any]]


@pytest.mark.parametrize("name", FILES)
def test_example_runs(name: str, target: str, stats: Stats, tmp_path: Path) -> None:
    results = run(name, tmp_path, target, "-d", "1s", "-w", 1)

    assert results["warnings"] == []
    assert requests_in(results) == stats()["requests"]
    for workflow in results["workflows"]:
        assert workflow["error"] == ""
        for step in workflow["steps"]:
            assert step["count"] > 0, step["name"]
            assert step["failed"] == 0 or (name, step["name"]) in FAILS, step["errors"]
            assert step["count"] == sum(request["count"] for request in step["requests"])
        for check in workflow["checks"]:
            assert check["failed"] == 0, check


def test_bytes_there_and_back(tmp_path: Path) -> None:
    with echoing() as echo:
        where = f"127.0.0.1:{echo.port}"
        flags = ("-d", "1s", "-o", "out.json")
        ended = hyperscale("run", EXAMPLES / "tcp_udp.py", *flags, cwd=tmp_path, ECHO=where)
        assert ended.code == 0, ended
        (workflow,) = json.loads((tmp_path / "out.json").read_text())["workflows"]
        counts = {step["name"]: step["count"] for step in workflow["steps"]}
        assert counts == {"line": echo.lines, "datagram": echo.datagrams}
        assert echo.lines > 0


def test_queries_over_http2_are_counted_the_same(tmp_path: Path) -> None:
    with graphql_shop_h2() as port:
        where = f"http://127.0.0.1:{port}/"
        results = run("graphql_http2.py", tmp_path, "", "-d", "1s", "-w", 1, GRAPHQL=where)
        (show,) = results["workflows"][0]["steps"]
        assert (show["failed"], show["count"]) == (0, seen["HTTP/2"])
        assert show["count"] > 0


def test_http3_is_counted_by_the_target(tmp_path: Path) -> None:
    with TargetProcess(Options(tls=True)) as target:
        trusted = ssl.create_default_context(cafile=str(target.certificate))
        results = run("http3.py", tmp_path, target.url, "-d", "1s", "-w", 1)
        answer = urllib.request.urlopen(f"{target.url}/stats", timeout=10, context=trusted)
        assert requests_in(results) == json.load(answer)["requests"] > 0
    steps = steps_of(results["workflows"][0])
    assert {step["failed"] for step in steps.values()} == {0}, steps


@pytest.mark.skipif(
    not any(map(shutil.which, NAMES)), reason="Chromium is missing: apt-get install chromium"
)
def test_requests_of_a_browser_are_counted_by_the_target(
    target: str, stats: Stats, tmp_path: Path
) -> None:
    results = run("browser.py", tmp_path, target, "-i", 4, "-w", 1)
    assert requests_in(results) == stats()["requests"] > 0
    (workflow,) = results["workflows"]
    assert {step["failed"] for step in workflow["steps"]} == {0}, workflow["steps"]
    vitals = {metric["name"]: metric["count"] for metric in workflow["metrics"]}
    assert vitals["browser_web_vital_lcp"] >= 4


def test_events_come_to_everybody_in_order(target: str, stats: Stats, tmp_path: Path) -> None:
    results = run("sse.py", tmp_path, target, "-d", "1s", "-w", 1)

    (workflow,) = results["workflows"]
    (tick,) = workflow["steps"]
    counts = {request["method"]: request["count"] for request in tick["requests"]}
    assert counts["SUBSCRIBE"] == stats()["requests"] == 10
    (events,) = workflow["metrics"]
    assert events["name"] == "sse_events_received"
    assert 10 < counts["NEXT"] <= events["value"]
    assert tick["failed"] == 0, tick["errors"]


def test_graphql_counts_the_same(tmp_path: Path) -> None:
    with graphql_shop() as port:
        where = f"http://127.0.0.1:{port}/"
        results = run("graphql_shop.py", tmp_path, "", "-d", "1s", "-w", 1, GRAPHQL=where)
        steps = steps_of(results["workflows"][0])
        assert {name: step["failed"] for name, step in steps.items()} == dict.fromkeys(steps, 0)
        counts = {"item": steps["look"]["count"], "buy": steps["buy"]["count"]}
        assert counts == {name: seen[name] for name in counts}
        assert seen["count"] > 0


def test_files_go_and_come(tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    with ftp_server(served) as port:
        where = f"ftp://me:secret@127.0.0.1:{port}"
        results = run("file_transfer.py", tmp_path, "", "-d", "1s", "-w", 1, FTP=where)
    steps = steps_of(results["workflows"][0])
    assert {step["failed"] for step in steps.values()} == {0}, steps
    assert steps["clean_up"]["count"] > 0


def test_every_mail_arrives(tmp_path: Path) -> None:
    with mailbox() as box:
        where = f"smtp://127.0.0.1:{box.port}"
        results = run("smtp_mails.py", tmp_path, "", "-d", "1s", "-w", 1, SMTP=where)
        steps = steps_of(results["workflows"][0])
        assert {step["failed"] for step in steps.values()} == {0}, steps
        assert sum(step["count"] for step in steps.values()) == len(box.mails) > 0


def test_every_message_of_mqtt_comes_back(tmp_path: Path) -> None:
    with mosquitto("allow_anonymous true") as port:
        where = f"mqtt://127.0.0.1:{port}"
        results = run("mqtt_sensors.py", tmp_path, "", "-d", "1s", "-w", 1, MQTT=where)
        assert_messages(results, "measure", "show", "mqtt_msg_latency")


def test_every_record_of_kafka_comes_back(tmp_path: Path) -> None:
    with kafka_mock() as port:
        where = f"kafka://127.0.0.1:{port}"
        results = run("kafka_orders.py", tmp_path, "", "-d", "2s", "-w", 1, KAFKA=where)
        assert_messages(results, "order", "work", "kafka_msg_latency")


def test_every_message_of_nats_comes_back(tmp_path: Path) -> None:
    with nats_server() as port:
        where = f"nats://127.0.0.1:{port}"
        results = run("nats_orders.py", tmp_path, "", "-d", "1s", "-w", 1, NATS=where)
        assert_messages(results, "order", "work", "nats_msg_latency")


def assert_messages(results: dict[str, Any], sends: str, takes: str, metric: str) -> None:
    """What was sent was taken, and each message told its latency."""
    (workflow,) = results["workflows"]
    steps = steps_of(workflow)
    assert {step["failed"] for step in steps.values()} == {0}, steps
    assert 0 <= steps[sends]["count"] - steps[takes]["count"] <= 10, "one for each user at the end"
    (latency,) = workflow["metrics"]
    assert (latency["name"], latency["count"]) == (metric, steps[takes]["count"])
    assert latency["count"] > 0


def test_redis_counts_the_same(tmp_path: Path) -> None:
    with redis_at_port() as server:
        where = f"redis://127.0.0.1:{server.port}"
        results = run("redis_cache.py", tmp_path, "", "-d", "1s", "-w", 1, REDIS=where)
        counts = {step["name"]: step["count"] for step in results["workflows"][0]["steps"]}
        seen = {"fill": "expire", "look": "get", "buy": "incr"}
        assert counts == {name: server.calls(command) for name, command in seen.items()}
        assert all(step["failed"] == 0 for step in results["workflows"][0]["steps"])


def test_postgres_is_started_by_the_example(tmp_path: Path) -> None:
    assert_transactions(run("postgres.py", tmp_path, "", "-d", "1s", "-w", 1))


def test_documents_of_mongodb(tmp_path: Path) -> None:
    with mongo_server() as server:
        where = f"mongodb://127.0.0.1:{server.server_address[1]}/shop"
        results = run("mongodb_shop.py", tmp_path, "", "-d", "1s", "-w", 1, MONGODB=where)
    steps = steps_of(results["workflows"][0])
    assert {step["failed"] for step in steps.values()} == {0}, steps
    assert steps["look"]["count"] == server.calls["find"] > 0
    told = {request["method"]: request["count"] for request in steps["buy"]["requests"]}
    assert told["COMMITTRANSACTION"] == server.calls["commitTransaction"] > 0
    assert told["UPDATE"] == server.calls["update"]


def test_transactions_of_mysql(tmp_path: Path) -> None:
    with mariadb() as where:
        assert_transactions(run("mysql.py", tmp_path, "", "-d", "1s", "-w", 1, MYSQL=where))


def assert_transactions(results: dict[str, Any]) -> None:
    """Each began and was committed, with two statements between."""
    (bank,) = results["workflows"]
    steps = steps_of(bank)
    assert {step["failed"] for step in steps.values()} == {0}, steps
    told = {request["name"]: request["count"] for request in steps["transfer"]["requests"]}
    assert told["commit"] == told["begin"] > 0
    assert sum(told.values()) == 4 * told["begin"]


def run(name: str, folder: Path, target: str, *words: object, **variables: str) -> dict[str, Any]:
    """With a seed, so that each of the weighted steps is picked, and whether or not the example's
    limits of time hold: however slow the machine is."""
    flags = (*words, "--seed", 1, "-o", "out.json")
    ended = hyperscale("run", EXAMPLES / name, *flags, cwd=folder, TARGET=target, **variables)
    assert ended.code in ENDED, ended
    results: dict[str, Any] = json.loads((folder / "out.json").read_text())
    broken = [one["scope"] for one in results["thresholds"] if not one["passed"]]
    assert all(scope.endswith("_duration") for scope in broken), ended
    return results


def requests_in(results: dict[str, Any]) -> int:
    return sum(
        sum(step["count"] for step in workflow["steps"]) + sum(workflow["unmeasured"].values())
        for workflow in results["workflows"]
    )


def steps_of(workflow: dict[str, Any]) -> dict[str, Any]:
    return {step["name"]: step for step in workflow["steps"]}


def test_the_loop_of_the_locust_quickstart_is_ten_requests(target: str, tmp_path: Path) -> None:
    results = run("locust_quickstart.py", tmp_path, target, "-i", 10, "-w", 1)

    steps = steps_of(results["workflows"][0])
    hello, view, start = steps["hello_world"], steps["view_items"], steps["on_start"]
    assert hello["runs"] + view["runs"] == 10
    assert hello["count"] == 2 * hello["runs"]
    assert [(r["name"], r["count"]) for r in view["requests"]] == [("/items", 10 * view["runs"])]
    assert start["count"] == start["runs"] == results["workflows"][0]["vus_max"]


def test_a_failed_login_ends_the_iteration_of_the_gatling_port(target: str, tmp_path: Path) -> None:
    results = run("gatling_switch.py", tmp_path, target, "-i", 20, "-w", 1)

    (visitor,) = results["workflows"]
    steps = steps_of(visitor)
    refused = steps["login"]["statuses"]["401"]
    assert refused == visitor["stopped_iterations"] == 4
    assert steps["browse"]["count"] == 3 * (20 - refused)
    assert steps["search"]["count"] + steps["order"]["count"] == 20 - refused


def test_both_workflows_of_the_mix_run_at_once_on_one_core(target: str, tmp_path: Path) -> None:
    results = run("mix.py", tmp_path, target, "-u", 5, "-d", "1s", "-w", 1)

    browser, buyer = results["workflows"]
    assert (browser["vus_max"], buyer["vus_max"]) == (4, 1)
    later, earlier = sorted((browser, buyer), key=lambda one: one["started_s"], reverse=True)
    assert later["started_s"] < earlier["started_s"] + earlier["elapsed_s"]


def test_the_k6_port_judges_by_tag_and_group(target: str, tmp_path: Path) -> None:
    results = run("k6_groups.py", tmp_path, target, "-d", "1s", "-w", 1)

    judged = {threshold["scope"]: threshold["actual"] for threshold in results["thresholds"]}
    assert all(actual is not None for actual in judged.values()), judged
    assert "Visit: group_duration{group:buying}" in judged
    (visit,) = results["workflows"]
    pages = [(m["name"], m["tags"], m["count"]) for m in visit["metrics"] if m["tags"]]
    assert pages == [("time_to_first_byte", {"page": "home"}, visit["iterations"])]


def test_slo_is_judged(target: str, tmp_path: Path) -> None:
    words = ("run", EXAMPLES / "slo.py", "-d", "1s", "-w", 1, "-e", "SLO_PATH=/delay/80")
    assert hyperscale(*words, cwd=tmp_path, TARGET=target).code == 99


def test_pytest_runs_the_pytest_example(target: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(tmp_path), str(EXAMPLES / "test_with_pytest.py")],
        cwd=tmp_path,
        env=environment(TARGET=target),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
