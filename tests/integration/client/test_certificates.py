"""Clients that show the right certificate, the wrong one, or none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hyperscale.cli.app import execute
from hyperscale.client import HyperscaleClient
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.client import managers as transport
from hyperscale.wire.certificates import Credentials
from tests.integration.client.scripted import Book, ScriptedManager


@pytest.fixture
def certs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    return made(tmp_path / "certs")


def made(folder: Path, *more: str) -> Path:
    nodes = ["-n", "manager:m1", "-n", "client:client", "-n", "worker:w1"]
    of = ["--cluster", "default", "--env", "dev"]
    assert execute(["certs", str(folder), *of, *nodes, *more]) == 0
    return folder


def of_manager(folder: Path) -> Credentials:
    return Credentials(folder / "ca.pem", folder / "m1.pem", folder / "m1-key.pem")


async def started(manager: ScriptedManager, **options: Any) -> list[str]:
    """What a client says after it has come in."""
    address = await manager.start()
    try:
        async with HyperscaleClient([str(address)], **options) as client:
            return await client.get_datacenters()
    finally:
        await manager.stop()


def test_the_right_one_opens(tmp_path: Path, certs: Path) -> None:
    manager = ScriptedManager(Book(), tmp_path, credentials=of_manager(certs))

    assert asyncio.run(started(manager, certs=certs)) == ["local"]


def test_one_of_another_authority_is_complained_of_at_once(tmp_path: Path, certs: Path) -> None:
    manager = ScriptedManager(Book(), tmp_path, credentials=of_manager(certs))
    with pytest.raises(RunFailed, match="do not accept each other's certificates") as caught:
        asyncio.run(asyncio.wait_for(started(manager, certs=made(tmp_path / "others")), 4))
    assert "--certs" in caught.value.hint


def test_one_the_manager_does_not_trust_is_thought_of(
    tmp_path: Path, certs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We trust the manager, it does not trust us: it hangs up after the handshake, wordless."""
    monkeypatch.setattr(transport, "FIRST_CONTACT_S", 0.5)
    others = made(tmp_path / "others")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name, folder in (("ca", certs), ("client", others), ("client-key", others)):
        (mixed / f"{name}.pem").write_bytes((folder / f"{name}.pem").read_bytes())
    manager = ScriptedManager(Book(), tmp_path, credentials=of_manager(certs))
    with pytest.raises(RunFailed, match="no manager can be reached") as caught:
        asyncio.run(started(manager, certs=mixed))
    assert "certificate" in caught.value.hint


def test_none_at_all_does_not_open(
    tmp_path: Path, certs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "FIRST_CONTACT_S", 0.5)
    manager = ScriptedManager(Book(), tmp_path, credentials=of_manager(certs))
    with pytest.raises(RunFailed, match="no manager can be reached"):
        asyncio.run(started(manager))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "nobody"}, "nobody.pem does not exist"),
        ({"name": "w1"}, "certificate of a worker, not of a client"),
    ],
)
def test_a_certificate_that_is_no_use_is_found_out_before_anything_is_sent(
    certs: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        HyperscaleClient(["127.0.0.1:1"], certs=certs, **options)


def test_another_machine_needs_a_certificate() -> None:
    with pytest.raises(BadInput, match="another machine"):
        HyperscaleClient(["10.1.2.3:7000"])
