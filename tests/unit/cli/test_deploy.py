"""What stands in `deploy/` and what `dev` starts is held to the program: options and variables
exist and can be read, probes ask for pages there are, addresses and times agree."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from hyperscale.cli.app import app
from hyperscale.cli.dev_cluster import ELECTION, WORKER, Plan, make_credentials
from hyperscale.cli.dev_nodes import DevNode
from hyperscale.config.sections import Reading, Sources
from hyperscale.nodes.gate.settings import SECTIONS as GATE_SECTIONS
from hyperscale.nodes.gate.settings import GateSettings, gate_settings
from hyperscale.nodes.manager.settings import SECTIONS as MANAGER_SECTIONS
from hyperscale.nodes.manager.settings import ManagerSettings, manager_settings
from hyperscale.nodes.member.metrics_page import LIVE, READY, STARTUP
from hyperscale.nodes.member.settings import PORT_DEFAULT
from hyperscale.nodes.worker.settings import WorkerSettings, sections, worker_settings

DEPLOY = Path(__file__).parents[3] / "deploy"
ROLES = ("manager", "worker")
ALL_ROLES = (*ROLES, "gate")
FILES = {"gate": "gates/gate.yaml"}
SECTIONS = {"manager": MANAGER_SECTIONS, "worker": sections(), "gate": GATE_SECTIONS}
CHECKS = {"manager": manager_settings, "worker": worker_settings, "gate": gate_settings}
AnySettings = ManagerSettings | WorkerSettings | GateSettings


def options_of(command: str) -> set[str]:
    group: Any = typer.main.get_command(app)
    return {option for param in group.commands[command].params for option in param.opts}


def reading(role: str, flags: dict[str, object], environ: dict[str, str]) -> Reading:
    return Reading(Sources(flags, environ), SECTIONS[role])


def certificates(folder: Path, role: str, name: str) -> dict[str, object]:
    make_credentials(folder, [DevNode(name, role, 7000, "", [])])
    given: dict[str, object] = {
        "certs": str(folder / "certs"),
        "secret_file": str(folder / "secret"),
    }
    if role == "manager":
        given["manager_secret_file"] = str(folder / "manager-secret")
    return given


def settings(role: str, flags: dict[str, object], environ: dict[str, str]) -> AnySettings:
    check: Callable[[Reading], AnySettings] = CHECKS[role]  # type: ignore[assignment]
    return check(reading(role, flags, environ))


# -- Kubernetes ----------------------------------------------------------------------------------


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))


def pod(role: str) -> dict[str, Any]:
    found: dict[str, Any] = documents(FILES.get(role, f"{role}s.yaml"))[0]["spec"]["template"][
        "spec"
    ]
    return found


def flags_of(role: str) -> dict[str, str]:
    (container,) = pod(role)["containers"]
    command, *words = container["args"]
    assert command == role
    return dict(word.removeprefix("--").split("=", 1) for word in words)


@pytest.mark.parametrize("role", ROLES)
def test_a_pod_is_started_with_options_that_can_be_read(role: str, tmp_path: Path) -> None:
    given = flags_of(role)
    assert {f"--{name}" for name in given} <= options_of(role)
    name = f"hyperscale-{role}-0"
    known = {"$(POD_NAME)": name, "$(POD_IP)": "10.0.0.7"}
    flags: dict[str, object] = {
        option.replace("-", "_"): known.get(value, value) for option, value in given.items()
    }
    read = settings(role, flags | certificates(tmp_path, role, name), {})
    assert (read.node.id, read.node.bind.port) == (name, PORT_DEFAULT)
    assert read.node.data == Path("/data")


@pytest.mark.parametrize("role", ROLES)
def test_a_pod_makes_its_certificate_for_the_cluster_it_joins(role: str) -> None:
    (init,) = pod(role)["initContainers"]
    (script,) = init["args"]
    made = re.search(r"hyperscale certs /certs (.*?);", script, re.DOTALL)
    assert made is not None
    assert set(re.findall(r"--[a-z]+", made[1])) <= options_of("certs")
    given = flags_of(role)
    for name in ("cluster", "env", "dc"):
        assert f"--{name} {given[name]}" in made[1]
    assert f"{role}:$POD_NAME" in made[1]


@pytest.mark.parametrize("role", ALL_ROLES)
def test_probes_ask_for_pages_there_are(role: str) -> None:
    (container,) = pod(role)["containers"]
    ports = {port.get("name"): port["containerPort"] for port in container["ports"]}
    assert flags_of(role)["metrics"] == f"0.0.0.0:{ports['metrics']}"
    asked = {
        kind: (container[kind]["httpGet"]["path"], container[kind]["httpGet"]["port"])
        for kind in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert asked == {
        "startupProbe": (STARTUP, "metrics"),
        "readinessProbe": (READY, "metrics"),
        "livenessProbe": (LIVE, "metrics"),
    }
    assert flags_of(role)["bind"].endswith(f":{PORT_DEFAULT}")
    named = [(p["containerPort"], p["protocol"]) for p in container["ports"]]
    assert {(PORT_DEFAULT, "TCP"), (PORT_DEFAULT, "UDP")} <= set(named)


@pytest.mark.parametrize("role", ALL_ROLES)
def test_what_is_mounted_is_there_and_what_is_used_is_mounted(role: str) -> None:
    spec, (workload, *_) = pod(role), documents(FILES.get(role, f"{role}s.yaml"))
    volumes = {volume["name"] for volume in spec["volumes"]}
    claims = workload["spec"].get("volumeClaimTemplates", [])
    volumes |= {claim["metadata"]["name"] for claim in claims}
    (container,) = spec["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounts.values()) <= volumes
    given = flags_of(role)
    assert {given["certs"], str(Path(given["secret-file"]).parent), given["data"]} <= set(mounts)
    assert "authority" not in mounts.values(), "only the init container may see its key"
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert all(
        one["securityContext"]["readOnlyRootFilesystem"] is True for one in spec["containers"]
    )
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"] == labels


def test_voters_seeds_and_the_service_are_those_that_run() -> None:
    managers, budget = documents("managers.yaml")
    (service,) = documents("service.yaml")
    name = managers["metadata"]["name"]
    pods = [f"{name}-{number}" for number in range(managers["spec"]["replicas"])]
    assert flags_of("manager")["voters"].split(",") == pods
    assert managers["spec"]["serviceName"] == service["metadata"]["name"]
    labels = managers["spec"]["selector"]["matchLabels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels
    for role in ROLES:
        assert flags_of(role)["seed"] == f"{service['metadata']['name']}:{PORT_DEFAULT}"
    assert {port["port"] for port in service["spec"]["ports"]} == {PORT_DEFAULT}
    (kustomization,) = documents("kustomization.yaml")
    found = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")}
    assert set(kustomization["resources"]) == found - {"kustomization.yaml"}


def test_a_gate_is_started_with_what_its_datacenter_says(tmp_path: Path) -> None:
    (kustomization,) = documents("gates/kustomization.yaml")
    (generated,) = kustomization["configMapGenerator"]
    (container,) = pod("gate")["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": generated["name"]}}]
    environ = dict(literal.split("=", 1) for literal in generated["literals"])
    given = flags_of("gate")
    assert {f"--{name}" for name in given} <= options_of("gate")
    flags: dict[str, object] = {name.replace("-", "_"): value for name, value in given.items()}
    read = settings("gate", flags | certificates(tmp_path, "gate", "g1"), environ)
    assert isinstance(read, GateSettings)
    assert (read.node.id, read.gates) == ("g1", ("g1", "g2", "g3"))
    assert list(read.datacenters) == ["eu", "us", "ap"]
    assert len(read.node.seeds) == 3
    assert read.node.advertise == ("203.0.113.1", PORT_DEFAULT)
    gate, service = documents("gates/gate.yaml")
    assert service["spec"]["selector"] == gate["spec"]["selector"]["matchLabels"]


# -- systemd -------------------------------------------------------------------------------------


def unit_of(role: str) -> str:
    return (DEPLOY / "systemd" / f"hyperscale-{role}.service").read_text()


@pytest.mark.parametrize("role", ALL_ROLES)
def test_variables_of_a_unit_can_be_read(role: str, tmp_path: Path) -> None:
    lines = (DEPLOY / "systemd" / f"{role}.env").read_text().splitlines()
    environ = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert all(row.origin in ("default", *environ) for row in reading(role, {}, environ).rows())
    name = environ["HYPERSCALE_NODE_ID"]
    read = settings(role, certificates(tmp_path, role, name), environ)
    assert (read.node.id, read.node.bind.port) == (name, PORT_DEFAULT)
    assert f"ExecStart=/opt/hyperscale/bin/hyperscale {role}\n" in unit_of(role)
    assert f"EnvironmentFile=/etc/hyperscale/{role}.env\n" in unit_of(role)


def test_whoever_stops_a_worker_waits_for_its_drain(tmp_path: Path) -> None:
    flags: dict[str, object] = {"id": "w1", "cluster": "c", "env": "e", "plaintext": True}
    read = settings("worker", flags, {})
    assert isinstance(read, WorkerSettings)
    allowed = re.search(r"^TimeoutStopSec=(\d+)$", unit_of("worker"), re.MULTILINE)
    assert allowed is not None
    for seconds in (int(allowed[1]), pod("worker")["terminationGracePeriodSeconds"]):
        assert seconds > read.drain_s


@pytest.mark.parametrize("role", ALL_ROLES)
def test_systemd_understands_the_unit(role: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze comes with systemd only")
    unit = tmp_path / f"hyperscale-{role}.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit_of(role), flags=re.M))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = [line for line in checked.stderr.splitlines() if unit.name in line]  # not of others
    assert (said, checked.returncode) == ([], 0), checked.stderr


# -- dev -----------------------------------------------------------------------------------------


def test_what_dev_starts_can_be_read(tmp_path: Path) -> None:
    nodes = Plan(managers=3, workers=2, cores=4, port=7100).nodes(tmp_path)
    assert [(one.name, one.role, one.port, one.page) for one in nodes] == [
        ("m1", "manager", 7100, "127.0.0.1:7105"),
        ("m2", "manager", 7101, "127.0.0.1:7106"),
        ("m3", "manager", 7102, "127.0.0.1:7107"),
        ("w1", "worker", 7103, "127.0.0.1:7108"),
        ("w2", "worker", 7104, "127.0.0.1:7109"),
    ]
    make_credentials(tmp_path, nodes)
    assert not (tmp_path / "certs" / "ca-key.pem").exists()
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    for one in nodes:
        read = settings(one.role, as_typed(one.words), WORKER)
        assert str(read.node.metrics) == one.page
        if isinstance(read, ManagerSettings):
            assert read.node.election.lease_s == ELECTION["lease_s"]
            assert read.node.voters == ("m1", "m2", "m3")
        else:
            assert (read.cores, read.drain_s) == (4, 1.0)


def as_typed(words: list[str]) -> dict[str, object]:
    """The flags of a command line, as typer hands them over."""
    group: Any = typer.main.get_command(app)
    given = group.commands[words[0]].make_context(words[0], list(words[1:])).params
    return dict(given)
