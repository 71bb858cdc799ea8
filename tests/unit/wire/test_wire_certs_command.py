"""`hyperscale certs` writes what it says, privately, and never twice."""

import ssl
from functools import partial
from pathlib import Path

import pytest

from hyperscale.cli.certs import certs as command
from hyperscale.errors import BadInput
from hyperscale.wire.certificates import CertificateIdentity, Credentials, identity_of

certs = partial(command, cluster="shop", environment="prod")


def test_an_authority_and_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certs"
    made = certs(str(folder), ["manager:m1", "worker:w1"], datacenter="eu-1", host=["m1.lan"])
    assert made == 0
    said = capsys.readouterr().out
    assert "m1.pem, m1-key.pem  manager in eu-1, cluster shop, environment prod" in said
    assert sorted(path.name for path in folder.iterdir()) == [
        "ca-key.pem",
        "ca.pem",
        "m1-key.pem",
        "m1.pem",
        "manager-secret",
        "secret",
        "w1-key.pem",
        "w1.pem",
    ]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    Credentials(folder / "ca.pem", folder / "m1.pem", folder / "m1-key.pem").server_context()
    der = ssl.PEM_cert_to_DER_cert((folder / "w1.pem").read_text())
    assert identity_of(der) == CertificateIdentity("worker", "shop", "prod", "eu-1", "w1")


def test_groups_of_clients_stay_when_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certs(str(tmp_path), ["client:ada"], group=["shop", "operators", "shop"])
    assert "client in local, cluster shop, environment prod, groups shop, operators" in (
        capsys.readouterr().out
    )

    def groups() -> tuple[str, ...]:
        der = ssl.PEM_cert_to_DER_cert((tmp_path / "ada.pem").read_text())
        return identity_of(der).groups

    before = (tmp_path / "ada.pem").read_bytes()
    assert groups() == ("shop", "operators")
    command("renew", names=[str(tmp_path), "ada"])
    assert (tmp_path / "ada.pem").read_bytes() != before
    assert groups() == ("shop", "operators")
    capsys.readouterr()
    command("list", names=[str(tmp_path)])
    assert "shop operators" in capsys.readouterr().out


def test_more_nodes_later_under_the_same_authority(tmp_path: Path) -> None:
    certs(str(tmp_path), ["manager:m1"])
    authority = (tmp_path / "ca.pem").read_bytes()
    certs(str(tmp_path), ["gate:g1"])
    assert (tmp_path / "ca.pem").read_bytes() == authority
    Credentials(tmp_path / "ca.pem", tmp_path / "g1.pem", tmp_path / "g1-key.pem").client_context()


def test_nothing_is_replaced(tmp_path: Path) -> None:
    certs(str(tmp_path), ["manager:m1"])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(BadInput, match="exists already"):
        certs(str(tmp_path), ["worker:w1", "manager:m1"])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_one_directory_holds_one_cluster(tmp_path: Path) -> None:
    certs(str(tmp_path), cluster="shop")
    with pytest.raises(BadInput, match="belongs to cluster 'shop', not 'bank'"):
        certs(str(tmp_path), ["manager:m1"], cluster="bank")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"node": ["m1"]}, "--node takes ROLE:NAME"),
        ({"node": ["king:m1"]}, "--node takes ROLE:NAME"),
        ({"node": ["worker:../m1"]}, "--node takes letters"),
        ({"node": ["worker:ca"]}, "authority's own files"),
        ({"node": ["client:ada", "worker:w1"], "group": ["shop"]}, "--group is for clients"),
        ({"node": ["client:ada"], "group": ["a,b"]}, "--group takes letters"),
        ({"node": ["client:ada"], "group": [f"g{n}" for n in range(9)]}, "at most 8 groups"),
        ({"cluster": "a/b"}, "--cluster takes letters"),
        ({"days": "never"}, "--days takes a number"),
        ({"cluster": "c" * 46}, "--cluster takes at most 45 characters"),
        ({"node": ["worker:" + "w" * 65]}, "--node takes at most 64 characters"),
        ({"node": ["worker:w1"], "host": ["bücher.example"]}, "--host takes an address or a name"),
    ],
)
def test_mistakes(tmp_path: Path, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        certs(str(tmp_path / "certs"), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "certs").exists()


def test_half_an_authority_is_not_completed(tmp_path: Path) -> None:
    certs(str(tmp_path))
    (tmp_path / "ca-key.pem").unlink()
    with pytest.raises(BadInput, match="exists already"):
        certs(str(tmp_path), ["manager:m1"])
