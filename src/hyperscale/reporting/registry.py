"""All reporters by name: what a URL's scheme and a config class stand for.

A backend's module is imported when it is chosen, and its library when it connects.
"""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from hyperscale.errors import BadInput
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend

_HERE = "hyperscale.reporting.backends"


class ReporterTypes(Enum):
    AWSLambda = "aws_lambda"
    AWSTimestream = "aws_timestream"
    BigQuery = "bigquery"
    BigTable = "bigtable"
    Cassandra = "cassandra"
    Cloudwatch = "cloudwatch"
    CosmosDB = "cosmosdb"
    CSV = "csv"
    Custom = "custom"
    Datadog = "datadog"
    DogStatsD = "dogstatsd"
    GCS = "gcs"
    Graphite = "graphite"
    Honeycomb = "honeycomb"
    InfluxDB = "influxdb"
    JSON = "json"
    Kafka = "kafka"
    MongoDB = "mongodb"
    MySQL = "mysql"
    Netdata = "netdata"
    NewRelic = "newrelic"
    OTLP = "otlp"
    Postgres = "postgres"
    Prometheus = "prometheus"
    Redis = "redis"
    S3 = "s3"
    SQLite = "sqlite"
    StatsD = "statsd"
    Telegraf = "telegraf"
    TelegrafStatsD = "telegraf_statsd"
    TimescaleDB = "timescaledb"
    XML = "xml"


class Entry(NamedTuple):
    config: str
    module: str
    schemes: tuple[str, ...] = ()  # its name, unless given


_T = ReporterTypes
ENTRIES: dict[ReporterTypes, Entry] = {
    _T.AWSLambda: Entry("AWSLambdaConfig", "aws_lambda", ("lambda",)),
    _T.AWSTimestream: Entry("AWSTimestreamConfig", "timestream", ("timestream",)),
    _T.BigQuery: Entry("BigQueryConfig", "bigquery"),
    _T.BigTable: Entry("BigTableConfig", "bigtable"),
    _T.Cassandra: Entry("CassandraConfig", "cassandra"),
    _T.Cloudwatch: Entry("CloudwatchConfig", "cloudwatch"),
    _T.CosmosDB: Entry("CosmosDBConfig", "cosmosdb"),
    _T.CSV: Entry("CSVConfig", "files"),
    _T.Datadog: Entry("DatadogConfig", "datadog"),
    _T.DogStatsD: Entry("DogStatsDConfig", "statsd"),
    _T.GCS: Entry("GoogleCloudStorageConfig", "gcs", ("gs", "gcs")),
    _T.Graphite: Entry("GraphiteConfig", "graphite"),
    _T.Honeycomb: Entry("HoneycombConfig", "honeycomb"),
    _T.InfluxDB: Entry("InfluxDBConfig", "influxdb"),
    _T.JSON: Entry("JSONConfig", "files"),
    _T.Kafka: Entry("KafkaConfig", "kafka"),
    _T.MongoDB: Entry("MongoDBConfig", "mongodb"),
    _T.MySQL: Entry("MySQLConfig", "mysql", ("mysql", "mariadb")),
    _T.Netdata: Entry("NetdataConfig", "statsd"),
    _T.NewRelic: Entry("NewRelicConfig", "newrelic"),
    _T.OTLP: Entry("OTLPConfig", "otlp"),
    _T.Postgres: Entry("PostgresConfig", "postgres", ("postgres", "postgresql")),
    _T.Prometheus: Entry("PrometheusConfig", "prometheus", ("prometheus-rw", "prometheus")),
    _T.Redis: Entry("RedisConfig", "redis"),
    _T.S3: Entry("S3Config", "s3"),
    _T.SQLite: Entry("SQLiteConfig", "sqlite"),
    _T.StatsD: Entry("StatsDConfig", "statsd"),
    _T.Telegraf: Entry("TelegrafConfig", "telegraf"),
    _T.TelegrafStatsD: Entry("TelegrafStatsDConfig", "statsd", ("telegraf-statsd",)),
    _T.TimescaleDB: Entry("TimescaleDBConfig", "timescaledb"),
    _T.XML: Entry("XMLConfig", "files"),
}
SCHEMES = {
    scheme: entry for kind, entry in ENTRIES.items() for scheme in entry.schemes or (kind.value,)
}
CONFIGS = {entry.config: entry for entry in ENTRIES.values()}


def config_class(entry: Entry) -> type[Config]:
    found: type[Config] = getattr(import_module(f"{_HERE}.{entry.module}"), entry.config)
    return found


def config_of(url: str) -> Config:
    """Raises BadInput for a URL of no reporter, or one that does not say enough."""
    scheme, _, rest = url.partition("://")
    entry = SCHEMES.get(scheme.lower())
    if entry is None:
        near = get_close_matches(scheme.lower(), SCHEMES, 1)
        hint = f"did you mean {near[0]}://?" if near else f"there are {', '.join(sorted(SCHEMES))}"
        raise BadInput(f"there is no reporter for {scheme}:// URLs", hint)
    config = config_class(entry)
    if not rest and (config.required or not config.place_field):
        raise BadInput(f"{url} does not say where to send results", f"{scheme}://...")
    return config.from_url(f"{scheme.lower()}://{rest}")


def backend_of(config: Config) -> Backend:
    """Raises BadInput for one whose library is missing, or that lacks a field."""
    config.check()
    backend = config.backend()
    if backend.needs and find_spec(backend.needs.partition(".")[0]) is None:
        raise BadInput(
            f"{config.scheme}:// needs {backend.needs}, which is not installed",
            f"pip install 'hyperscale-loadtest[{backend.extra}]'",
        )
    return backend
