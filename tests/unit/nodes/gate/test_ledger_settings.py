"""Where gates keep their jobs, as an operator says it."""

from __future__ import annotations

import pytest

from hyperscale.config.sections import Reading, Sources
from hyperscale.errors import BadInput
from hyperscale.nodes.gate.settings import SECTIONS, LedgerSettings

ETCD = {"store": "etcd", "etcd": "10.0.0.1:2379"}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"store": "redis"}, "takes vsr or etcd, not 'redis'"),
        ({"store": "etcd"}, "nothing says where that is"),
        ({"etcd": "10.0.0.1:2379"}, "nothing says that jobs are kept there"),
        ({"etcd_key": "key.pem"}, "nothing says that jobs are kept there"),
        (ETCD | {"etcd": "10.0.0.1"}, "'10.0.0.1' is not an etcd member's HOST:PORT"),
        (ETCD | {"etcd": "redis://10.0.0.1:1"}, "is not the address of an etcd"),
        (ETCD | {"etcd": ","}, "names no member"),
        (ETCD | {"etcd_user": "gates"}, "belong together"),
        (ETCD | {"etcd_password": "TOPSECRET"}, "belong together"),
        (ETCD | {"etcd_ca": "ca.pem"}, "need TLS"),
        (ETCD | {"etcd": "etcds://h:1", "etcd_cert": "c.pem"}, "belong together"),
        (ETCD | {"etcd": "gates:TOPSECRET@h:1"}, "'h:1' is not"),
    ],
)
def test_half_of_it_is_refused_with_a_sentence(said: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        LedgerSettings(**said)  # type: ignore[arg-type]
    assert "TOPSECRET" not in refused.value.message + refused.value.hint


def test_the_password_is_shown_to_nobody() -> None:
    environ = {f"HYPERSCALE_LEDGER_{name.upper()}": text for name, text in ETCD.items()}
    environ |= {
        "HYPERSCALE_LEDGER_ETCD_USER": "gates",
        "HYPERSCALE_LEDGER_ETCD_PASSWORD": "TOPSECRET",
    }
    reading = Reading(Sources(environ=environ), SECTIONS)
    settings = reading.build("ledger", LedgerSettings)
    assert settings.access.password == "TOPSECRET"
    assert "TOPSECRET" not in repr(reading.rows()) + repr(settings) + repr(settings.access)
