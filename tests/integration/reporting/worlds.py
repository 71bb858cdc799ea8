"""A backend of each kind, as real as it can be had, and what it has been told by its own count."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import threading
import time
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hyperscale.reporting.registry import config_of
from tests.fixtures import metric_servers
from tests.fixtures.brokers import kafka_mock
from tests.fixtures.cql_server import cql_server
from tests.fixtures.mariadb import mariadb
from tests.fixtures.mongo_server import PASSWORD, USER, mongo_server
from tests.fixtures.redis_at_port import redis_at_port
from tests.fixtures.services import SERVICES, Count, Made, made, service
from tests.integration.clients import postgres_server


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def postgres_url() -> Iterator[str]:
    if not postgres_server.found():
        pytest.skip("no PostgreSQL on this machine")
    port = free_port()
    with postgres_server.postgres_server(port):
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"


def ask_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        asyncpg = pytest.importorskip("asyncpg")
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(ask())


def ask_sqlite(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def ask_mysql(url: str, sql: str) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        asyncmy = pytest.importorskip("asyncmy")
        found: Any = config_of(url)
        connection = await asyncmy.connect(
            host=found.host, port=found.port, user=found.username, password=found.password,
            db=found.database,
        )  # fmt: skip
        try:
            async with connection.cursor() as cursor:
                await cursor.execute(sql)
                return list(await cursor.fetchall())
        finally:
            await connection.ensure_closed()

    return asyncio.run(ask())


RUNS = "select count(*) from hyperscale_runs"


def first(rows: list[tuple[Any, ...]]) -> int:
    return int(rows[0][0] or 0)


@contextmanager
def postgres(folder: Path) -> Iterator[Made]:
    with postgres_url() as url:
        yield config_of(url), lambda: first(ask_postgres(url, RUNS))


@contextmanager
def timescaledb(folder: Path) -> Iterator[Made]:
    sql = "select sum(requests) from hyperscale_points where about = 'workflow'"
    with postgres_url() as url:
        there = url.replace("postgres:", "timescaledb:", 1)
        yield config_of(there), lambda: first(ask_postgres(url, sql))


@contextmanager
def sqlite(folder: Path) -> Iterator[Made]:
    path = folder / "results.db"
    yield config_of(f"sqlite://{path}"), lambda: first(ask_sqlite(path, RUNS))


@contextmanager
def mysql(folder: Path) -> Iterator[Made]:
    with mariadb() as url:
        yield config_of(url), lambda: first(ask_mysql(url, RUNS))


@contextmanager
def cassandra(folder: Path) -> Iterator[Made]:
    with cql_server() as server:
        url = f"cassandra://127.0.0.1:{server.server_address[1]}/load"
        yield config_of(url), lambda: first(server.ask(RUNS))


@contextmanager
def mongodb(folder: Path) -> Iterator[Made]:
    with mongo_server() as server:
        place = {"host": "127.0.0.1", "port": server.server_address[1], "database": "load"}
        config = made("MongoDBConfig", username=USER, password=PASSWORD, **place)
        yield config, lambda: len(server.data.get("hyperscale_runs", []))


@contextmanager
def redis(folder: Path) -> Iterator[Made]:
    with redis_at_port("--databases", "2", password="sésame") as server:
        url = f"redis://:s%C3%A9same@127.0.0.1:{server.port}/0"

        def count() -> int:
            ids = server.client.zrange("hyperscale:runs", 0, -1)
            kept = [server.client.hget(b"hyperscale:run:" + one, "results") for one in ids]
            return sum("workflows" in json.loads(one) for one in kept)

        yield config_of(url), count


@contextmanager
def files(folder: Path, kind: str, read: Callable[[Path], int]) -> Iterator[Made]:
    path = folder / f"results.{kind.lower()}"
    yield made(f"{kind}Config", path=str(path)), lambda: read(path)


def in_json(path: Path) -> int:
    return int("workflows" in json.loads(path.read_bytes()))


def in_csv(path: Path) -> int:
    return int(path.read_text().startswith("workflow,step,"))


def in_xml(path: Path) -> int:
    root = Xml.parse(path).getroot()
    return len(root.findall("workflows")) if root.findall("workflows/item/steps/item") else 0


@contextmanager
def influxdb(folder: Path) -> Iterator[Made]:
    with metric_servers.influxdb() as address:
        query = {"db": "load", "q": "select sum(requests) from hyperscale_workflow"}

        def count() -> int:
            (found,) = metric_servers.ask(f"http://{address}/query", query)["results"]
            return int(found["series"][0]["values"][0][1]) if "series" in found else 0

        yield config_of(f"influxdb://{address}/load"), count


def count_of_series(address: str, query: str) -> Count:
    """Those that a Prometheus has, at a moment that all points of the tests are before."""

    def count() -> int:
        asked = {
            "query": query,
            "time": f"{time.time() + 60:.3f}",
        }  # the last may be of this second
        found = metric_servers.ask(f"http://{address}/api/v1/query", asked)["data"]["result"]
        return sum(int(float(one["value"][1])) for one in found)

    return count


@contextmanager
def prometheus(folder: Path) -> Iterator[Made]:
    with metric_servers.prometheus() as address:
        query = "sum(last_over_time(hyperscale_workflow_requests_total[1h]))"
        yield config_of(f"prometheus-rw://{address}"), count_of_series(address, query)


@contextmanager
def graphite(folder: Path) -> Iterator[Made]:
    """VictoriaMetrics listens to Graphite's lines; Graphite itself is not in CI."""
    with metric_servers.victoria_metrics() as (address, port):
        query = 'sum(sum_over_time({__name__=~"load.hyperscale.nightly.[^.]+.requests"}[1h]))'

        def count() -> int:
            metric_servers.flush(address)
            return count_of_series(address, query)()

        yield config_of(f"graphite://127.0.0.1:{port}/load"), count


@contextmanager
def kafka(folder: Path) -> Iterator[Made]:
    with kafka_mock() as port:
        url = f"kafka://127.0.0.1:{port}/load"
        yield (
            config_of(url),
            lambda: sum(
                one["requests"]
                for one in kafka_messages(port, "load")
                if one["about"] == "workflow"
            ),
        )


def kafka_messages(port: int, topic: str) -> list[dict[str, Any]]:
    """Up to the end of the topic, as its broker knows it."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "test"}
    consumer = Consumer(settings)
    found = []
    try:
        for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            for _ in range(end):
                message = consumer.poll(10)
                assert message is not None
                assert message.error() is None
                found.append(json.loads(message.value() or b"{}"))
    finally:
        consumer.close()
    return found


@contextmanager
def datagrams(name: str, pattern: re.Pattern[str]) -> Iterator[Made]:
    """A server that keeps what is sent to it, and judges each line by the protocol's grammar."""
    line = re.compile(
        r"[\w.-]+(,[\w.-]+=[^,:|\s]+)*:-?[\d.e+-]+\|[cg](\|#[\w.-]+:[^,|]+(,[^|]+)*)?"
    )
    kept: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        listening.bind(("127.0.0.1", 0))

        def count() -> int:
            listening.settimeout(0.2)
            while True:
                try:
                    data = listening.recv(65_536)
                except TimeoutError:
                    break
                assert len(data) <= 1232
                kept.extend(data.decode().split("\n"))
            assert all(map(line.fullmatch, kept)), kept
            return sum(int(found[1]) for text in kept if (found := pattern.match(text)))

        yield made(name, host="127.0.0.1", port=listening.getsockname()[1]), count


def statsd(folder: Path) -> Any:
    return datagrams("StatsDConfig", re.compile(r"hyperscale\.nightly\.[^.]+\.requests:(\d+)\|c$"))


def netdata(folder: Path) -> Any:
    return datagrams("NetdataConfig", re.compile(r"hyperscale\.nightly\.[^.]+\.requests:(\d+)\|c$"))


def dogstatsd(folder: Path) -> Any:
    tagged = re.compile(r"hyperscale\.workflow\.requests:(\d+)\|c\|#.*workflow:Shop")
    return datagrams("DogStatsDConfig", tagged)


def telegraf_statsd(folder: Path) -> Any:
    tagged = re.compile(r"hyperscale\.workflow\.requests,.*workflow=Shop.*:(\d+)\|c$")
    return datagrams("TelegrafStatsDConfig", tagged)


@contextmanager
def telegraf(folder: Path) -> Iterator[Made]:
    """Lines of InfluxDB over TCP: InfluxDB's own parser judges them elsewhere."""
    kept = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def keep() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    while data := connection.recv(65_536):
                        kept.extend(data)

        thread = threading.Thread(target=keep, daemon=True)
        thread.start()
        pattern = re.compile(rb"^hyperscale_workflow,.* requests=(\d+)i,", re.MULTILINE)
        port = listening.getsockname()[1]
        yield (
            made("TelegrafConfig", host="127.0.0.1", port=port),
            lambda: sum(map(int, pattern.findall(bytes(kept)))),
        )
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


STORES: dict[str, Callable[[Path], Any]] = {
    "sqlite": sqlite,
    "postgres": postgres,
    "mysql": mysql,
    "cassandra": cassandra,
    "mongodb": mongodb,
    "redis": redis,
    "json": lambda folder: files(folder, "JSON", in_json),
    "csv": lambda folder: files(folder, "CSV", in_csv),
    "xml": lambda folder: files(folder, "XML", in_xml),
}
LIVE: dict[str, Callable[[Path], Any]] = {
    "influxdb": influxdb,
    "prometheus": prometheus,
    "graphite": graphite,
    "timescaledb": timescaledb,
    "kafka": kafka,
    "statsd": statsd,
    "dogstatsd": dogstatsd,
    "telegraf_statsd": telegraf_statsd,
    "netdata": netdata,
    "telegraf": telegraf,
}
WORLDS = {
    **STORES,
    **LIVE,
    **{name: lambda folder, name=name: service(name, folder) for name in SERVICES},
}
