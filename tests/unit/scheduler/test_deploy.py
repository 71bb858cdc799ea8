"""What stands in `deploy/scheduler` is held to the program: options and variables exist, and the
settings they make are ones it starts with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from hyperscale.cli.app import app
from hyperscale.config.sections import Reading, Sources
from hyperscale.scheduler.http.settings import SECTIONS
from hyperscale.scheduler.settings import scheduler_settings

DEPLOY = Path(__file__).parents[3] / "deploy" / "scheduler"
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"]
    for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    if one["kind"] == "Deployment"
}


def environment(name: str) -> dict[str, str]:
    lines = (DEPLOY / f"{name}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", ["scheduler", "scheduler-worker"])
def test_the_units_start_what_their_environment_is_for(name: str) -> None:
    said = environment(name)
    own = scheduler_settings(Reading(Sources({}, said), SECTIONS))
    assert own.store == "redis://10.0.0.1:6379/0"
    unit = (DEPLOY / f"hyperscale-{name}.service").read_text()
    assert f"EnvironmentFile=/etc/hyperscale/{name}.env\n" in unit
    assert f"ExecStart=/opt/hyperscale/bin/hyperscale {name.replace('-', ' ')} --log" in unit


@pytest.mark.parametrize("name", PODS)
def test_options_of_the_pods_exist(name: str) -> None:
    group: Any = typer.main.get_command(app)
    known = {option for param in group.commands["scheduler"].params for option in param.opts}
    (container,) = PODS[name]["containers"]
    words = [word.partition("=")[0] for word in container["args"]]
    assert words[0] == "scheduler"
    assert {word for word in words if word.startswith("--")} <= known
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in PODS[name]["volumes"]}


def test_each_worker_pod_tells_where_it_can_be_asked() -> None:
    (container,) = PODS["hyperscale-scheduler-worker"]["containers"]
    (port,) = container["ports"]
    assert f"--address=http://$(POD_IP):{port['containerPort']}" in container["args"]
    (ip,) = [one for one in container["env"] if one["name"] == "POD_IP"]
    assert ip["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
