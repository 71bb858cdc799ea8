"""Who may call whom, who belongs together, and what a certificate says about it."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from hyperscale.wire.certificates import (
    CertificateIdentity,
    Credentials,
    Pem,
    authority_cluster,
    identity_of,
    make_authority,
    make_node,
)
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.identity import Identity, check_role, check_same_cluster

SPECIFIED = ("client", "gate", "manager", "worker")
# Rows call columns, in the order above.
MATRIX = {
    "client": "-x--",
    "gate": "xxx-",
    "manager": "xxxx",
    "worker": "--x-",
}


@pytest.mark.parametrize("caller", SPECIFIED)
@pytest.mark.parametrize("target", SPECIFIED)
def test_role_matrix(caller: str, target: str) -> None:
    if MATRIX[caller][SPECIFIED.index(target)] == "x":
        check_role(caller, target)
    else:
        with pytest.raises(Refused, match=f"role '{caller}' cannot connect to '{target}'"):
            check_role(caller, target)


def test_a_client_calls_a_manager_only_where_there_are_no_gates() -> None:
    check_role("client", "manager", gateless=True)
    with pytest.raises(Refused):
        check_role("client", "worker", gateless=True)
    with pytest.raises(Refused):
        check_role("worker", "gate", gateless=True)


def test_bare_members_keep_to_themselves() -> None:
    check_role("probe", "probe")
    check_role("client", "probe")
    for role in SPECIFIED:
        with pytest.raises(Refused):
            check_role("probe", role)


def me() -> Identity:
    return Identity(
        node_id="m1",
        incarnation=1,
        role="manager",
        cluster_id="shop",
        environment_id="prod",
        datacenter="eu-1",
    )


def test_isolation_names_both_sides() -> None:
    check_same_cluster("shop", "prod", me())
    with pytest.raises(Refused, match="this is cluster 'shop', not 'bank'") as caught:
        check_same_cluster("bank", "prod", me())
    assert caught.value.code == Reason.WRONG_CLUSTER
    with pytest.raises(Refused, match="this is environment 'prod', not 'staging'") as caught:
        check_same_cluster("shop", "staging", me())
    assert caught.value.code == Reason.WRONG_ENVIRONMENT


def der(pem: Pem) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.certificate.decode())


def test_a_certificate_says_who_its_holder_is() -> None:
    authority = make_authority("shop")
    identity = CertificateIdentity("worker", "shop", "prod", "eu-1")
    shown = identity_of(der(make_node(authority, identity, "w 1/ü")))
    assert shown == replace(identity, node_id="w 1/ü")
    assert authority_cluster(authority) == "shop"


@pytest.mark.parametrize(
    "groups", [tuple(f"g{number}" for number in range(9)), ("a b",), ("g" * 65,)]
)
def test_groups_that_no_manager_could_pass_on_are_refused(groups: tuple[str, ...]) -> None:
    identity = CertificateIdentity("client", "shop", "prod", "eu-1", groups=groups)
    with pytest.raises(Refused, match="more than 8 groups, or one that is no name"):
        identity_of(der(make_node(make_authority("shop"), identity, "ada")))


def test_a_certificate_that_says_less_or_more_is_refused() -> None:
    authority = make_authority("shop")

    class Two(CertificateIdentity):
        def uris(self) -> list[str]:
            return [*super().uris(), "hyperscale://role/gate"]

    class None_(CertificateIdentity):
        def uris(self) -> list[str]:
            return ["https://example.com/"]

    class TwoNodes(CertificateIdentity):
        def uris(self) -> list[str]:
            return [*super().uris(), "hyperscale://node/w2"]

    for odd in (
        Two("worker", "shop", "prod", "eu-1"),
        None_("worker", "shop", "prod", "eu-1"),
        TwoNodes("worker", "shop", "prod", "eu-1"),
        CertificateIdentity("king", "shop", "prod", "eu-1"),
    ):
        with pytest.raises(Refused, match="does not name one role") as caught:
            identity_of(der(make_node(authority, odd, "w1")))
        assert caught.value.code == Reason.WRONG_CERTIFICATE
    for other in (der(authority), b"", b"\x30\x82garbage"):
        with pytest.raises(Refused, match="does not name one role"):
            identity_of(other)


def test_contexts_are_tls_1_3_and_mutual(tmp_path: Path) -> None:
    authority = make_authority("shop")
    node = make_node(authority, CertificateIdentity("worker", "shop", "prod", "eu-1"), "w1")
    paths = [tmp_path / name for name in ("ca.pem", "w1.pem", "w1-key.pem")]
    for path, content in zip(
        paths, (authority.certificate, node.certificate, node.key), strict=True
    ):
        path.write_bytes(content)
    strict = Credentials(*paths)
    for context in (strict.server_context(), strict.client_context()):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3
        assert context.verify_mode is ssl.CERT_REQUIRED
    assert strict.client_context().check_hostname
    assert not Credentials(*paths, verify_hostname=False).client_context().check_hostname
