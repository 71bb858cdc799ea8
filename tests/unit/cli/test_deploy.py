"""What stands in `deploy/` and what `dev` starts is held to the program: options exist, values
can be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from hyperscale.cli.app import app
from hyperscale.cli.dev_cluster import ELECTION, MEMBERSHIP, WORKER, Plan, make_credentials
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member import settings as node
from hyperscale.nodes.worker import settings as worker

DEPLOY = Path(__file__).parents[3] / "deploy"


def options_of(command: str) -> set[str]:
    group: Any = typer.main.get_command(app)
    return {option for param in group.commands[command].params for option in param.opts}


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_options_in_the_manifests_exist(role: str) -> None:
    text = (DEPLOY / "kubernetes" / f"{role}s.yaml").read_text()
    started = re.findall(r"^ +- (--[a-z-]+)=", text, re.MULTILINE)
    assert f"- {role}\n" in text
    assert len(started) >= 8
    assert set(started) <= options_of(role)
    certified = re.search(r"hyperscale certs /certs (.*?);", text, re.DOTALL)
    assert certified is not None
    assert set(re.findall(r"--[a-z]+", certified[1])) <= options_of("certs")


def environment(role: str) -> dict[str, str]:
    lines = (DEPLOY / "systemd" / f"{role}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_variables_of_the_units_exist(role: str) -> None:
    known = {node.ENV_PREFIX + name.upper() for name in node.NAMES}
    known |= {worker.ENV_PREFIX + name.upper() for name in worker.NAMES}
    assert set(environment(role)) <= known
    unit = (DEPLOY / "systemd" / f"hyperscale-{role}.service").read_text()
    assert f"ExecStart=/opt/hyperscale/bin/hyperscale {role}\n" in unit
    assert f"EnvironmentFile=/etc/hyperscale/{role}.env\n" in unit


def test_what_dev_starts_can_be_read(tmp_path: Path) -> None:
    nodes = Plan(managers=3, workers=2, cores=4, port=7100).nodes(tmp_path)
    assert [(one.name, one.role, one.port) for one in nodes] == [
        ("m1", "manager", 7100), ("m2", "manager", 7101), ("m3", "manager", 7102),
        ("w1", "worker", 7103), ("w2", "worker", 7104),
    ]  # fmt: skip
    make_credentials(tmp_path, nodes)
    assert not (tmp_path / "certs" / "ca-key.pem").exists()
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    numbers = [f"election.{name}={value}" for name, value in ELECTION.items()]
    numbers += [f"membership.{name}={value}" for name, value in MEMBERSHIP.items()]
    for one in nodes:
        flags = {
            "id": one.name,
            "role": one.role,
            "bind": f"127.0.0.1:{one.port}",
            "certs": str(tmp_path / "certs"),
            "secret_file": str(tmp_path / "secret"),
            "seed": ["127.0.0.1:7100"],
            "voters": "m1,m2,m3" if one.role == "manager" else "",
            "set": numbers,
        }
        read = node.read_settings(flags, {}, {})
        if one.role == "manager":
            assert ManagerSettings(node=read).node.election.lease_s == ELECTION["lease_s"]
        else:
            assert worker.read_worker_settings(read, {"cores": "4"}, WORKER, {}).drain_s == 1.0
