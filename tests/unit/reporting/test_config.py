"""Where results go, as a URL says it and as a test says it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import hyperscale.reporting
from hyperscale.errors import BadInput
from hyperscale.reporting import InfluxDBConfig, PostgresConfig
from hyperscale.reporting.config import SECRET
from hyperscale.reporting.registry import CONFIGS, SCHEMES, backend_of, config_class, config_of


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("postgres://ada:s%40cret@db:5433/load?sslmode=require",
         {"host": "db", "port": 5433, "username": "ada", "password": "s@cret", "database": "load",
          "options": {"sslmode": "require"}}),
        ("postgres://[::1]/load", {"host": "::1", "port": 5432, "database": "load"}),
        ("sqlite:///var/a.db", {"database_path": "/var/a.db"}),
        ("sqlite://a.db", {"database_path": "a.db"}),
        ("INFLUXDB://h:80/b?organization=o&secure=true",
         {"host": "h", "port": 80, "database": "b", "organization": "o", "secure": True}),
        ("s3://Bucket/a/b?region-name=eu&endpoint_url=http://h:1",
         {"bucket": "Bucket", "prefix": "a/b", "region_name": "eu", "endpoint_url": "http://h:1"}),
        ("statsd://", {"host": "localhost", "port": 8125}),
        ("redis://:secret@h/3", {"password": "secret", "database": 3}),
        ("bigtable://shop/main/load", {"project_name": "shop", "place": "main/load"}),
        ("prometheus-rw://h/mimir/push", {"path": "mimir/push"}),
    ],
)  # fmt: skip
def test_urls(url: str, fields: dict[str, Any]) -> None:
    config = config_of(url)
    assert {name: getattr(config, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("url", "sentence", "hint"),
    [
        ("oracle://a/b", "there is no reporter for oracle:// URLs", "there are bigquery, "),
        ("influx://h/db", "there is no reporter for influx:// URLs", "did you mean influxdb://?"),
        ("influxdb://h", "influxdb:// needs database", "influxdb://...?database=..."),
        ("influxdb://h/a?organisation=a", "influxdb:// knows no parameter organisation",
         "did you mean organization?"),
        ("influxdb://h/a?secure=maybe", "influxdb://: secure: Expected `bool`", ""),
        ("s3://bucket", "s3:// needs aws_access_key_id", "set AWS_ACCESS_KEY_ID"),
        ("s3://", "s3:// does not say where to send results", "s3://..."),
        ("statsd://h:99999", "statsd://: the port is no number", ""),
        ("statsd://h/path", "statsd:// has no path, and the URL gives one", ""),
        ("statsd://ada@h", "statsd:// has no username, and the URL gives one", ""),
        ("gs://bucket", "gs:// needs credentials", "set GOOGLE_APPLICATION_CREDENTIALS"),
        ("bigtable://shop/main?token=t", "bigtable:// needs an instance and a table", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_sentence(
    url: str, sentence: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(BadInput) as caught:
        backend_of(config_of(url))
    assert caught.value.message.startswith(sentence), caught.value.message
    assert caught.value.hint.startswith(hint), caught.value.hint


def test_a_field_of_the_wrong_type_is_refused() -> None:
    wrong: Any = "5432"
    with pytest.raises(BadInput, match="PostgresConfig: port: Expected `int`, got `str`"):
        PostgresConfig(port=wrong)


def test_the_environment_fills_in_what_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLUX_TOKEN", "from-the-environment")
    assert InfluxDBConfig(database="a").token == "from-the-environment"
    assert InfluxDBConfig(database="a", token="said").token == "said"


def test_equal_configs_are_one() -> None:
    assert config_of("postgres://ada@db/load") == PostgresConfig(
        host="db", username="ada", database="load"
    )


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_nobody_sees_a_secret(name: str) -> None:
    cls = config_class(CONFIGS[name])
    assert getattr(hyperscale.reporting, name) is cls
    assert cls.scheme in SCHEMES
    texts = {f.name for f in msgspec.structs.fields(cls) if f.type is str} & SECRET
    config = cls(**{field: f"hidden-{field}" for field in texts})
    assert "hidden-" not in config.shown()
    assert "hidden-" not in config.masked(f"wrong: {[*config.secrets()]}")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperscale.reporting.registry.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"needs asyncpg, which is not installed") as caught:
        backend_of(config_of("postgres://h/db"))
    assert caught.value.hint == "pip install 'hyperscale-loadtest[postgres]'"
