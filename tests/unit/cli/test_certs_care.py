"""Certificates after they were made: listed, renewed, withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.certs import certs
from hyperscale.errors import BadInput
from hyperscale.wire.certificates import Credentials, hosts_of, identity_of, validity_of
from hyperscale.wire.withdrawn import Withdrawn, read_withdrawn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    certs(str(tmp_path), ["manager:m1", "worker:w1"], "shop", "prod", "eu-1", ["w1.lan"])
    return tmp_path


def credentials(folder: Path, name: str) -> Credentials:
    return Credentials(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}-key.pem")


def der(folder: Path, name: str) -> bytes:
    import ssl

    return ssl.PEM_cert_to_DER_cert((folder / f"{name}.pem").read_text())


def test_they_last_for_three_months(folder: Path) -> None:
    life_s = validity_of(der(folder, "w1"))
    assert 90 <= (life_s.ends_at - life_s.begins_at) / 86_400 < 90.1


def test_revoked_by_serial_and_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serial = credentials(folder, "w1").validity().serial
    assert certs("revoke", names=[str(folder), "w1", "gone"]) == 0
    withdrawn = read_withdrawn(folder / "refused")
    assert withdrawn.covers("w1", serial)
    assert not withdrawn.covers("w1", 7)
    assert withdrawn.covers("gone", None)
    capsys.readouterr()
    certs("list", names=[str(folder)])
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["w1"].endswith("refused")
    assert f"{serial:x}" in rows["w1"]
    assert rows["m1"].endswith("90 days left")
    assert set(rows) == {"NODE", "m1", "w1"}


def test_a_renewed_one_is_the_same_node_with_another_key(folder: Path) -> None:
    before, key = der(folder, "w1"), (folder / "w1-key.pem").read_bytes()
    assert certs("renew", names=[str(folder), "w1"], days="30") == 0
    after = der(folder, "w1")
    assert identity_of(after) == identity_of(before)
    assert hosts_of(after) == hosts_of(before)
    assert validity_of(after).serial != validity_of(before).serial
    assert (folder / "w1-key.pem").read_bytes() != key
    assert {path.stat().st_mode & 0o777 for path in folder.glob("w1*")} == {0o600}
    credentials(folder, "w1").server_context()


@pytest.mark.parametrize(
    ("action", "names", "sentence"),
    [
        ("renew", ["FOLDER", "w9"], "no certificate of 'w9'"),
        ("renew", ["FOLDER"], "needs the names"),
        ("revoke", ["FOLDER", "a b"], "node id"),
        ("list", ["/nowhere"], r"no ca\.pem"),
    ],
)
def test_mistakes(folder: Path, action: str, names: list[str], sentence: str) -> None:
    words = [str(folder) if name == "FOLDER" else name for name in names]
    with pytest.raises(BadInput, match=sentence):
        certs(action, names=words)


def test_a_list_has_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "refused"
    path.write_text("# all of them\n\n0a:ff\nw1 # stolen\n")
    assert read_withdrawn(path) == Withdrawn(frozenset({0x0AFF}), frozenset({"0a:ff", "w1"}))
    path.write_text("w1 w2\n")
    with pytest.raises(BadInput, match="a line"):
        read_withdrawn(path)
    with pytest.raises(BadInput, match="cannot be read"):
        read_withdrawn(tmp_path / "nothing")
