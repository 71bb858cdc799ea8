"""A target that speaks TLS with a certificate nobody trusts."""

from collections.abc import Iterator

import pytest

from hyperscale.target.process import running


@pytest.fixture(scope="session")
def tls_target() -> Iterator[str]:
    with running(tls=True) as url:
        yield url
