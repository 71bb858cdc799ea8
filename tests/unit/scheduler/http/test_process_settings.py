"""Where a scheduler's process listens, from flags, environment and table."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.api.settings import process_settings
from hyperscale.scheduler.http.serving import address_of, bind


def test_flags_beat_the_environment_and_that_beats_the_table() -> None:
    table = {"host": "10.0.0.1", "port": 1, "tls-cert": "a.pem"}
    env = {"HYPERSCALE_SCHEDULER_HOST": "10.0.0.2", "HYPERSCALE_SCHEDULER_PLAIN_HTTP": "yes"}
    settings = process_settings({"port": "3", "host": None}, env, table)
    assert (settings.host, settings.port, settings.tls_cert) == ("10.0.0.2", 3, "a.pem")
    assert settings.plain_http is True


@pytest.mark.parametrize(
    ("flags", "env", "table", "where"),
    [
        ({"port": "99999"}, {}, {}, "--port"),
        ({"port": "x"}, {}, {}, "--port"),
        ({"trace_share": "2"}, {}, {}, "--trace-share"),
        ({}, {"HYPERSCALE_SCHEDULER_PLAIN_HTTP": "maybe"}, {}, "HYPERSCALE_SCHEDULER_PLAIN_HTTP"),
        ({}, {}, {"port": "http"}, "port in [scheduler]"),
    ],
)
def test_a_bad_value_is_told_with_its_place(
    flags: dict[str, object], env: dict[str, str], table: dict[str, object], where: str
) -> None:
    with pytest.raises(BadInput) as refused:
        process_settings(flags, env, table)
    assert refused.value.message.startswith(where)


def test_tls_needs_both_files_and_good_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="belong together"):
        process_settings({"tls_cert": "a.pem"}, {}, {}).tls()
    empty = tmp_path / "empty.pem"
    empty.touch()
    with pytest.raises(BadInput, match="do not serve"):
        process_settings({"tls_cert": str(empty), "tls_key": str(empty)}, {}, {}).tls()


def test_beyond_loopback_plain_http_must_be_asked_for() -> None:
    assert process_settings({}, {}, {}).tls() is None
    with pytest.raises(BadInput, match="unencrypted"):
        process_settings({"host": "0.0.0.0"}, {}, {}).tls()
    assert process_settings({"host": "0.0.0.0", "plain_http": True}, {}, {}).tls() is None


@pytest.mark.parametrize(
    ("host", "called"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", socket.gethostname())]
)
def test_who_listens_everywhere_is_called_by_the_machines_name(host: str, called: str) -> None:
    with bind(host, 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener, None) == f"http://{called}:{port}"
