"""Results out of a run and back in: files, and what a team runs already.

`check_writable` before the run, `export` after it, `load` to read a JSON result again. Configs of
reporters stand here by name; a backend is imported when its config is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hyperscale.reporting.formats import FORMATS, Format, check_writable, choose, export
from hyperscale.reporting.load import load

if TYPE_CHECKING:
    from hyperscale.reporting.backends.aws_lambda import AWSLambdaConfig
    from hyperscale.reporting.backends.bigquery import BigQueryConfig
    from hyperscale.reporting.backends.bigtable import BigTableConfig
    from hyperscale.reporting.backends.cassandra import CassandraConfig
    from hyperscale.reporting.backends.cloudwatch import CloudwatchConfig
    from hyperscale.reporting.backends.cosmosdb import CosmosDBConfig
    from hyperscale.reporting.backends.datadog import DatadogConfig
    from hyperscale.reporting.backends.files import CSVConfig, JSONConfig, XMLConfig
    from hyperscale.reporting.backends.gcs import GoogleCloudStorageConfig
    from hyperscale.reporting.backends.graphite import GraphiteConfig
    from hyperscale.reporting.backends.honeycomb import HoneycombConfig
    from hyperscale.reporting.backends.influxdb import InfluxDBConfig
    from hyperscale.reporting.backends.kafka import KafkaConfig
    from hyperscale.reporting.backends.mongodb import MongoDBConfig
    from hyperscale.reporting.backends.mysql import MySQLConfig
    from hyperscale.reporting.backends.newrelic import NewRelicConfig
    from hyperscale.reporting.backends.otlp import OTLPConfig
    from hyperscale.reporting.backends.postgres import PostgresConfig
    from hyperscale.reporting.backends.prometheus import PrometheusConfig
    from hyperscale.reporting.backends.redis import RedisConfig
    from hyperscale.reporting.backends.s3 import S3Config
    from hyperscale.reporting.backends.sqlite import SQLiteConfig
    from hyperscale.reporting.backends.statsd import (
        DogStatsDConfig,
        NetdataConfig,
        StatsDConfig,
        TelegrafStatsDConfig,
    )
    from hyperscale.reporting.backends.telegraf import TelegrafConfig
    from hyperscale.reporting.backends.timescaledb import TimescaleDBConfig
    from hyperscale.reporting.backends.timestream import AWSTimestreamConfig
    from hyperscale.reporting.custom import CustomReporter
    from hyperscale.reporting.registry import ReporterTypes
    from hyperscale.reporting.reporter import Reporter

__all__ = [
    "FORMATS",
    "AWSLambdaConfig",
    "AWSTimestreamConfig",
    "BigQueryConfig",
    "BigTableConfig",
    "CSVConfig",
    "CassandraConfig",
    "CloudwatchConfig",
    "CosmosDBConfig",
    "CustomReporter",
    "DatadogConfig",
    "DogStatsDConfig",
    "Format",
    "GoogleCloudStorageConfig",
    "GraphiteConfig",
    "HoneycombConfig",
    "InfluxDBConfig",
    "JSONConfig",
    "KafkaConfig",
    "MongoDBConfig",
    "MySQLConfig",
    "NetdataConfig",
    "NewRelicConfig",
    "OTLPConfig",
    "PostgresConfig",
    "PrometheusConfig",
    "RedisConfig",
    "Reporter",
    "ReporterTypes",
    "S3Config",
    "SQLiteConfig",
    "StatsDConfig",
    "TelegrafConfig",
    "TelegrafStatsDConfig",
    "TimescaleDBConfig",
    "XMLConfig",
    "check_writable",
    "choose",
    "export",
    "load",
]

_HOMES = {"CustomReporter": "custom", "Reporter": "reporter", "ReporterTypes": "registry"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        from hyperscale.reporting.registry import CONFIGS

        if name not in CONFIGS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = f"backends.{CONFIGS[name].module}"
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
