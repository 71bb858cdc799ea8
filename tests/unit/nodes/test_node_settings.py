"""Where a node's settings come from, and what is said about those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cluster.discovery import DnsName
from hyperscale.errors import BadInput
from hyperscale.nodes.member.settings import NodeSettings, read_settings
from hyperscale.nodes.member.sources import Sources
from hyperscale.runtime.host import Address
from tests.fixtures.private import write_private

PLAIN = {"id": "a", "cluster": "shop", "env": "prod", "plaintext": True}


def read(
    table: dict[str, object] | None = None, environ: dict[str, str] | None = None, **flags: object
) -> NodeSettings:
    return read_settings(Sources({**PLAIN, **flags}, environ or {}, {"node": table or {}}))


def test_a_flag_beats_the_environment_and_that_the_file() -> None:
    table = {"cluster": "file", "env": "file", "dc": "file"}
    env = {"HYPERSCALE_NODE_CLUSTER": "environment", "HYPERSCALE_NODE_ENV": "environment"}

    made = read(table, env, cluster="flag", env=None)

    assert (made.cluster, made.env, made.dc) == ("flag", "environment", "file")


def test_defaults_are_those_of_a_try_on_one_machine() -> None:
    made = read()

    assert made.bind == Address("127.0.0.1", 7_000)
    assert (made.cluster, made.env, made.dc, made.role) == ("shop", "prod", "local", "probe")
    assert made.data == Path("hyperscale-data/a")


def test_every_number_of_a_protocol_is_a_setting() -> None:
    table: dict[str, object] = {
        "membership": {"leave-s": 2, "buddy": False},
        "election": {"lease_s": 2.5},
    }
    env = {"HYPERSCALE_NODE_MEMBERSHIP_PROBE_INTERVAL_S": "0.6"}

    made = read(table, env, set=["membership.indirect_probes=5", "membership.leave_s=1"])

    assert made.membership.leave_s == 1.0
    assert made.membership.probe_interval_s == 0.6
    assert made.membership.indirect_probes == 5
    assert made.membership.buddy is False
    assert made.election.lease_s == 2.5


@pytest.mark.parametrize(
    "name",
    [
        "membership.gossip_interval_s",
        "membership.exchange_interval_s",
        "membership.seed_retry_s",
        "election.ballot_resend_s",
        "election.retry_delay_min_s",
    ],
)
def test_a_duration_of_nothing_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} takes seconds above zero, not 0"):
        read(set=[f"{name}=0"])
    with pytest.raises(BadInput, match=f"{name} takes nothing below zero"):
        read(set=[f"{name}=-1"])


def test_some_durations_may_be_none() -> None:
    assert read(set=["membership.leave_s=0"]).membership.leave_s == 0.0


def test_seeds_are_addresses_names_or_services() -> None:
    made = read(seed=["127.0.0.1:7001,[::1]:7002", "seed.example:9", "srv:_x._tcp.example"])

    assert made.seeds == (("127.0.0.1", 7001), ("::1", 7002))
    assert made.names == (DnsName("seed.example", 9), DnsName("_x._tcp.example", service=True))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"id": ""}, "--id is missing"),
        ({"id": "x" * 65}, "--id takes 1 to 64 characters"),
        ({"id": "wörker"}, "--id takes 1 to 64 characters: letters, digits"),
        ({"id": "../m1"}, "--id takes 1 to 64 characters: letters, digits"),
        ({"dc": "zürich"}, "--dc takes 1 to 32 characters: letters, digits"),
        ({"cluster": ""}, "--cluster is missing: a node needs the cluster it belongs to"),
        ({"env": ""}, "--env is missing: a node needs the environment it belongs to"),
        ({"voters": "a,b,b,a"}, "--voters names a, b more than once"),
        ({"dc": "x" * 33}, "--dc takes 1 to 32 characters"),
        ({"bind": "nowhere:high"}, "'high' is no port"),
        ({"bind": "0.0.0.0:7000"}, "not how others reach this node"),
        ({"bind": "10.0.0.1:7000"}, "--plaintext is for loopback only"),
        ({"plaintext": False}, "needs --certs"),
        ({"certs": "here"}, "exclude each other"),
        ({"certs": "nowhere", "plaintext": False}, "ca.pem does not exist"),
        ({"role": "client"}, "--role takes one of"),
        ({"voters": "b,c"}, "a is not among the voters b, c"),
        ({"log_level": "loud"}, "--log-level takes one of debug, info"),
        ({"secret_file": "nowhere"}, "--secret-file 'nowhere' cannot be read"),
        ({"advertise": "node-1.example"}, "--advertise takes an IP address"),
        ({"set": ["membership.leave_s"]}, "--set takes SECTION.NAME=VALUE"),
        ({"set": ["memberships.leave_s=1"]}, "--set knows no section 'memberships'"),
        ({"set": ["node.bind=x"]}, "--set knows no section 'node'"),
        ({"set": ["membership.leaves_s=1"]}, "membership has no setting 'leaves_s'"),
        ({"set": ["membership.leave_s=soon"]}, "membership.leave_s takes a number, not 'soon'"),
        ({"set": ["membership.leave_s=-1"]}, "nothing below zero"),
        ({"set": ["membership.probe_timeout_s=2"]}, "(--set membership.probe_timeout_s is 2.0)"),
        ({"set": ["election.lease_s=9"]}, "election_delay_min_s must be at least lease_s"),
    ],
)
def test_what_cannot_be_used_is_named(flags: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read(**flags)
    assert words in refusal.value.message


def test_a_slip_of_the_pen_in_the_file_gets_a_hint() -> None:
    with pytest.raises(BadInput) as refusal:
        read({"clustre": "x"})
    assert refusal.value.hint == "did you mean 'cluster'?"


def test_a_weak_secret_is_refused(tmp_path: Path) -> None:
    write_private(tmp_path / "secret", "changeme")
    with pytest.raises(BadInput, match="at least 16"):
        read(secret_file=str(tmp_path / "secret"))


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    write_private(secret, "correct horse battery staple")
    secret.chmod(0o644)
    with pytest.raises(BadInput, match="mode 644") as refusal:
        read(secret_file=str(secret))
    assert refusal.value.hint == f"chmod 600 {secret}"


@pytest.mark.parametrize("shared", ["secret_file", "previous_secret_file"])
@pytest.mark.parametrize("own", ["manager_secret_file", "previous_manager_secret_file"])
def test_what_workers_know_seals_no_election(tmp_path: Path, own: str, shared: str) -> None:
    for name in ("one", "other"):
        write_private(tmp_path / name, "correct horse battery staple")
    with pytest.raises(BadInput, match="holds the same secret as"):
        read(**{own: str(tmp_path / "one"), shared: str(tmp_path / "other")})


def test_a_worker_needs_somebody_to_join() -> None:
    with pytest.raises(BadInput, match="needs seeds or a DNS name"):
        read(role="worker").discovery()


def test_whether_addresses_of_certificates_count_is_a_setting(tmp_path: Path) -> None:
    for name in ("ca.pem", "a.pem", "a-key.pem"):
        (tmp_path / name).write_text("")
    write_private(tmp_path / "secret", "correct horse battery staple")
    given = {"plaintext": False, "certs": str(tmp_path), "secret_file": str(tmp_path / "secret")}
    usual, lax = read(**given), read({"verify-hostname": False}, **given)
    assert usual.credentials is not None
    assert lax.credentials is not None
    assert (usual.credentials.verify_hostname, lax.credentials.verify_hostname) == (True, False)
