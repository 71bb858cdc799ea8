"""Which cluster is meant: flags, environment, config file, and a dev cluster found by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hyperscale.cli.app import execute
from hyperscale.errors import BadInput
from hyperscale.nodes.client import dev_file
from hyperscale.nodes.client.settings import addresses_of, read_cluster
from hyperscale.runtime.host import Address

NEVER = 2**22 + 1  # above the largest process id of Linux


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.fixture
def certs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    folder = tmp_path / "certs"
    assert execute(["certs", str(folder), "--cluster", "shop", "--env", "prod", "-n", "client:me",
                    "-n", "client:client", "--dc", "eu-1"]) == 0  # fmt: skip
    return str(folder)


def dev(certs: str, port: int = 7100, pid: int | None = None) -> dev_file.DevCluster:
    return dev_file.DevCluster(
        pid=os.getpid() if pid is None else pid,
        directory=str(Path(certs).parent),
        managers=(("127.0.0.1", port), ("127.0.0.1", port + 1)),
        certs=certs,
    )


def test_flags_are_stronger_than_the_environment_and_that_than_the_file(
    environ: dict[str, str],
) -> None:
    table: dict[str, object] = {"manager": ["127.0.0.3"], "id": "of-file", "environment": "e-file"}
    environ |= {
        "HYPERSCALE_CLUSTER_MANAGER": "127.0.0.2,localhost:9",
        "HYPERSCALE_CLUSTER_ID": "of-env",
    }
    settings = read_cluster({"manager": ["127.0.0.1:8"]}, environ, {"cluster": table})
    assert settings.managers == (Address("127.0.0.1", 8),)
    assert settings.identity.cluster_id == "of-env"
    assert settings.identity.environment_id == "e-file"
    assert settings.identity.role == "client"
    assert settings.credentials is None
    settings = read_cluster({}, environ, {"cluster": table})
    assert settings.managers == (Address("127.0.0.2", 7000), Address("localhost", 9))


def test_a_certificate_says_who_we_are(certs: str, environ: dict[str, str]) -> None:
    flags = {"manager": "10.0.0.1", "certs": certs, "name": "me", "id": "ignored"}
    settings = read_cluster(flags, environ, {})
    assert settings.credentials is not None
    identity = settings.identity
    assert (identity.node_id, identity.cluster_id) == ("me", "shop")
    assert (identity.environment_id, identity.datacenter) == ("prod", "eu-1")


@pytest.mark.parametrize(
    ("flags", "table", "words"),
    [
        ({}, {}, "no manager is named"),
        ({"manager": "10.0.0.1"}, {}, "another machine"),
        ({"manager": "127.0.0.1:x"}, {}, "no port"),
        ({"manager": "127.0.0.1", "certs": "/nowhere"}, {}, "does not exist"),
        ({}, {"managr": "x"}, "no setting 'managr'"),
        ({}, {"certs": []}, "takes text"),
        ({}, {"manager": [1]}, "a list of texts"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    flags: dict[str, Any], table: dict[str, Any], words: str, environ: dict[str, str]
) -> None:
    with pytest.raises(BadInput, match=words):
        read_cluster(flags, environ, {"cluster": table})


@pytest.mark.parametrize(
    ("named", "first"),
    [
        ([], 7100),
        (["127.0.0.1"], 7100),
        (["localhost"], 7100),
        (["127.0.0.1:7101"], 7101),
    ],
)
def test_a_dev_cluster_is_found_by_itself(
    named: list[str], first: int, certs: str, environ: dict[str, str]
) -> None:
    path = dev_file.write(dev(certs), environ)
    assert path.stat().st_mode & 0o777 == 0o600
    settings = read_cluster({"manager": named}, environ, {})
    assert settings.managers[0] == Address("127.0.0.1", first)
    assert len(settings.managers) == 2
    assert settings.credentials is not None
    assert settings.identity.node_id == "client"


def test_a_dev_cluster_is_not_mistaken_for_another(certs: str, environ: dict[str, str]) -> None:
    dev_file.write(dev(certs), environ)
    elsewhere = read_cluster({"manager": "127.0.0.1:9000"}, environ, {})
    assert elsewhere.managers == (Address("127.0.0.1", 9000),)
    assert elsewhere.credentials is None
    dev_file.write(dev(certs, 7200), environ)
    with pytest.raises(BadInput, match="2 hyperscale dev clusters"):
        read_cluster({}, environ, {})
    assert read_cluster({"manager": "127.0.0.1:7200"}, environ, {}).managers[0].port == 7200


def test_word_of_a_dead_cluster_or_open_to_others_is_not_believed(
    certs: str, environ: dict[str, str]
) -> None:
    killed = dev(certs, pid=NEVER)
    path = dev_file.write(killed, environ)
    assert dev_file.living(environ) == []
    assert dev_file.dead(environ) == [killed]
    dev_file.write(dev(certs), environ)
    dev_file.remove(killed, environ)
    assert dev_file.living(environ) == [dev(certs)]
    path.chmod(0o644)
    assert dev_file.living(environ) == []
    path.chmod(0o600)
    path.write_text("{")
    assert dev_file.living(environ) == dev_file.dead(environ) == []


def test_the_place_of_the_word(tmp_path: Path) -> None:
    assert dev_file.folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "hyperscale"
    gone = {"XDG_RUNTIME_DIR": "/nowhere", "XDG_CACHE_HOME": "/cache"}
    assert dev_file.folder(gone) == Path("/cache/hyperscale")
    assert dev_file.folder({}) == Path.home() / ".cache" / "hyperscale"


def test_addresses_may_be_pairs() -> None:
    assert addresses_of(["a", ("b", 1), Address("::1", 2)]) == ("a", "b:1", "[::1]:2")
