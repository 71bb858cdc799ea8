"""A certificate that is withdrawn while its node is connected, and one that is exchanged."""

from __future__ import annotations

import signal
import socket
import ssl
from pathlib import Path

import pytest

from hyperscale.runtime.real import run
from hyperscale.wire.certificates import Credentials, Pem, make_authority, validity_of
from hyperscale.wire.errors import Disconnected, Reason, Refused
from hyperscale.wire.withdrawn import Withdrawn
from tests.fixtures.private import write_private
from tests.integration.cluster.node_cluster import MemberProcess, until, write_certificate
from tests.integration.security.test_doors import metrics
from tests.integration.wire.nodes import Answer, Ask, credentials, introduction
from tests.integration.wire.test_wire_door import caller, door


@pytest.fixture(scope="module")
def authority() -> Pem:
    return make_authority("shop")


def test_a_withdrawn_certificate_is_shown_out_and_kept_out(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        stolen = credentials(tmp_path / "w", authority, "worker")
        async with door(tmp_path, tls=tls) as (host, server):
            endpoint = server._endpoint
            connection = await caller(host, server, introduction("worker"), stolen).connection()
            endpoint.withdraw(Withdrawn(serials=frozenset({stolen.validity().serial})))
            await connection.wait_closed()
            with pytest.raises(Refused, match="worker-1 was withdrawn") as refused:
                await caller(host, server, introduction("worker"), stolen).connection()
            assert refused.value.code == Reason.WITHDRAWN
            new = credentials(tmp_path / "n", authority, "worker")
            peer = caller(host, server, introduction("worker"), new)
            assert (await peer.request(Ask("hi"), Answer)).text == "hi!"
            endpoint.withdraw(Withdrawn(nodes=frozenset({"worker-1"})))
            with pytest.raises((Refused, Disconnected)):
                await caller(host, server, introduction("worker"), new).connection()

    run(main())


def test_nobody_calls_a_withdrawn_node(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        worker = credentials(tmp_path / "w", authority, "worker")
        async with door(tmp_path, tls=tls) as (host, server):
            peer = caller(host, server, introduction("worker"), worker)
            withdrawn = Withdrawn(serials=frozenset({tls.validity().serial}))
            peer._endpoint.withdraw(withdrawn)
            with pytest.raises(Refused, match="manager-1 was withdrawn"):
                await peer.connection()

    run(main())


def shown(address: str) -> int:
    """The serial number of the certificate that a node shows."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        context.wrap_socket(plain) as sealed,
    ):
        der = sealed.getpeercert(binary_form=True)
        assert der is not None
        return validity_of(der).serial


def test_a_node_reads_both_again_on_a_signal(tmp_path: Path) -> None:
    authority = make_authority("dev")
    for name in ("a", "b"):
        write_certificate(tmp_path / "certs", authority, name)
    write_private(tmp_path / "secret", "a secret of at least thirty-two characters")
    (tmp_path / "refused").write_text("")
    whose = ("--cluster", "dev", "--env", "test", "--certs", "certs", "--secret-file", "secret")
    more = ("--refused", "refused", "--metrics", "127.0.0.1:0")
    first = MemberProcess(tmp_path, "a", *whose, *more)
    second = None
    try:
        second = MemberProcess(tmp_path, "b", *whose, "--seed", first.address)
        page = str(first.saying("ready")["metrics"])
        until(lambda: 'members{state="alive"} 1' in metrics(page), "both are members")
        before = shown(first.address)
        assert "expires" not in metrics(page, "/health/ready")
        write_certificate(tmp_path / "certs", authority, "a", days=0.01)
        stolen = Credentials(
            tmp_path / "certs" / "ca.pem", tmp_path / "certs" / "b.pem", tmp_path / "b-key.pem"
        ).validity()
        (tmp_path / "refused").write_text(f"{stolen.serial:x}  # b\n")
        first.signal(signal.SIGHUP)
        assert first.saying("reloaded")["refused"] == 1
        assert shown(first.address) != before
        assert "its certificate expires in 0.0 days" in metrics(page, "/health/ready")
        first.saying("certificate expires")
        second.end()
        second = MemberProcess(tmp_path, "b", *whose, "--seed", first.address)  # calls at once
        until(lambda: 'turned_away_total{reason="withdrawn"}' in metrics(page), "b is kept out")
        assert "hyperscale_certificate_expires_timestamp_seconds" in metrics(page)
        (tmp_path / "certs" / "a.pem").write_text("no certificate")
        (tmp_path / "refused").write_text("two words\n")
        first.signal(signal.SIGHUP)
        first.saying("certificate not reloaded")
        first.saying("refused certificates not reloaded")
        assert shown(first.address) != before
        assert "hyperscale_certificates_refused 1" in metrics(page)
    finally:
        first.end()
        if second is not None:
            second.end()
