"""Seven members as processes: crash, pause, restart, departure; and strangers at the door."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hyperscale.nodes.member.queries import MemberRow
from hyperscale.wire.certificates import Credentials, Pem, make_authority
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.handshake import PROTOCOL
from tests.fixtures.private import write_private

from . import old_release
from .node_cluster import (
    CLUSTER,
    ENV,
    MemberProcess,
    Observer,
    until,
    write_certificate,
)

SECRET = "correct horse battery staple"
NAMES = ("a", "b", "c", "d", "e", "f", "g")


class Cluster:
    """Processes started here end here, whatever happens in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority: Pem = make_authority(CLUSTER)
        self.certs = folder / "certs"
        write_private(folder / "secret", SECRET)
        write_certificate(self.certs, self.authority, "observer", role="client")
        self.observer = Observer(self.credentials("observer"))
        self.processes: list[MemberProcess] = []

    def credentials(self, name: str) -> Credentials:
        return Credentials(
            self.certs / "ca.pem", self.certs / f"{name}.pem", self.certs / f"{name}-key.pem"
        )

    def start(
        self,
        name: str,
        *flags: str,
        bind: str = "127.0.0.1:0",
        role: str = "probe",
        cluster: str = CLUSTER,
        env: str = ENV,
        secret: str = "secret",
        program: Sequence[str] = ("-m", "hyperscale"),
    ) -> MemberProcess:
        if not (self.certs / f"{name}.pem").exists():
            write_certificate(self.certs, self.authority, name, role, cluster, env)
        member = MemberProcess(
            self.folder,
            name,
            *("--certs", "certs", "--secret-file", secret, "--role", role),
            *("--cluster", cluster, "--env", env),
            *flags,
            bind=bind,
            program=program,
        )
        self.processes.append(member)
        return member

    def rows(self, asked: MemberProcess) -> dict[str, MemberRow]:
        return {row.node_id: row for row in self.observer.members(asked.address).rows}

    def all_see(self, asked: list[MemberProcess], name: str, state: str) -> None:
        def agreed() -> bool:
            return all(self.row(one, name).state == state for one in asked)

        until(agreed, f"{name} {state} everywhere")

    def row(self, asked: MemberProcess, name: str) -> MemberRow:
        return self.rows(asked)[name]

    def sees_all_alive(self, asked: MemberProcess, names: Sequence[str] = NAMES) -> bool:
        rows = self.rows(asked)
        return sorted(rows) == sorted(names) and all(
            row.state == "alive" and row.confirmed for row in rows.values()
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        for process in made.processes:
            process.end()


def test_the_life_of_a_cluster(cluster: Cluster) -> None:
    voters = ("--voters", "a,b,c")
    first = cluster.start("a", *voters)
    seed = ("--seed", first.address)
    second = cluster.start("b", *voters, *seed)
    rest = {name: cluster.start(name, *seed) for name in NAMES[3:]}
    members = {"a": first, "b": second, "c": cluster.start("c", *voters, *seed), **rest}

    for member in members.values():
        until(lambda one=member: cluster.sees_all_alive(one), f"{member.name} sees seven alive")
    leader = until(lambda: cluster.observer.members(members["g"].address).leader, "a leader")
    assert leader in ("a", "b", "c")

    victim, others = members["d"], [members[name] for name in NAMES if name != "d"]
    before = cluster.row(first, "d").incarnation
    place = victim.address
    victim.signal(signal.SIGKILL)
    until(lambda: cluster.row(first, "d").state != "alive", "d missed")
    cluster.all_see(others, "d", "dead")
    assert {line["state"] for one in others for line in one.said if line.get("member") == "d"} >= {
        "alive",
        "suspect",
        "dead",
    }
    assert victim.exit_code() == -signal.SIGKILL

    members["d"] = cluster.start("d", *seed, bind=place)
    cluster.all_see(others, "d", "alive")
    assert all(cluster.row(one, "d").incarnation > before for one in others)

    paused = members["e"]
    before = cluster.row(first, "e").incarnation
    paused.signal(signal.SIGSTOP)
    until(lambda: cluster.row(first, "e").state == "suspect", "e suspected")
    paused.signal(signal.SIGCONT)
    awake = [members[name] for name in NAMES if name != "e"]
    cluster.all_see(awake, "e", "alive")
    assert cluster.row(first, "e").incarnation > before
    assert not any(
        line["event"] == "member died" and line["member"] == "e"
        for one in awake
        for line in one.said
    )

    leaving = members.pop("f")
    place = leaving.address
    leaving.signal(signal.SIGTERM)
    assert leaving.exit_code() == 0
    cluster.all_see(list(members.values()), "f", "left")
    assert_free(place)

    for member in members.values():
        member.signal(signal.SIGINT)
    for member in members.values():
        assert member.exit_code() == 0
        assert member.events("left")
        assert not [line for line in member.said if line["event"].startswith("task")]
        assert_free(member.address)


def assert_free(address: str) -> None:
    host, _, port = address.rpartition(":")
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with contextlib.closing(socket.socket(socket.AF_INET, kind)) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
            taken.bind((host, int(port)))


def test_strangers_are_refused_with_the_reason_and_learn_nothing(cluster: Cluster) -> None:
    write_private(cluster.folder / "other-secret", "another horse, no battery")
    member = cluster.start("a")
    seed = ("--seed", member.address)
    by_name = ("--seed", member.address.replace("127.0.0.1", "localhost"))
    strangers = {
        "the cluster secret is another one": cluster.start("s", *seed, secret="other-secret"),
        "role 'worker' cannot connect to 'probe'": cluster.start("w", *by_name, role="worker"),
        "this is cluster 'dev', not 'shop'": cluster.start("x", *seed, cluster="shop"),
        "this is environment 'test', not 'prod'": cluster.start("y", *seed, env="prod"),
    }

    for reason, stranger in strangers.items():
        assert stranger.saying("refused")["reason"] == reason
        assert stranger.events("refused")[0]["by"] == member.address
        assert not [line for line in stranger.said if line["event"].startswith("member ")]

    old = Observer(cluster.credentials("observer"), protocol=(0, 9))
    with pytest.raises(Refused) as refusal:
        old.members(member.address)
    assert refusal.value.code == Reason.WRONG_PROTOCOL
    assert "protocol 0.9 cannot talk to 1." in refusal.value.reason

    assert list(cluster.rows(member)) == ["a"]
    until(
        lambda: (
            {line["reason"] for line in member.events("turned away")}
            >= {"role_not_allowed", "wrong_cluster", "wrong_environment", "wrong_protocol"}
        ),
        "the refusals in the log of the member",
    )
    assert not [line for line in member.said if line["event"].startswith("member ")]


def test_an_old_release_is_refused_and_both_sides_say_why(cluster: Cluster) -> None:
    member = cluster.start("a")
    old = cluster.start("old", "--seed", member.address, program=(old_release.__file__,))
    newer = cluster.start("b", "--seed", old.address)

    said = "protocol {} cannot talk to {}: nodes of one cluster need the same major version"
    ours, theirs = ("{}.{}".format(*each) for each in (PROTOCOL, old_release.PROTOCOL))
    assert old.saying("refused")["reason"] == said.format(theirs, ours)
    assert old.events("refused")[0]["code"] == "wrong_protocol"
    assert newer.saying("refused")["reason"] == said.format(ours, theirs)
    for asked in (member, old):
        turned_away = asked.saying("turned away")
        assert turned_away["reason"] == "wrong_protocol"
    assert list(cluster.rows(member)) == ["a"]
    assert list(cluster.rows(newer)) == ["b"]
    for one in (member, old, newer):
        assert not [line for line in one.said if line["event"].startswith("member ")]


def test_a_voter_whose_disk_fails_ends_and_says_why(cluster: Cluster) -> None:
    names = ("a", "b", "c")
    voters = ("--voters", ",".join(names))
    first = cluster.start("a", *voters)
    members = {"a": first}
    members |= {name: cluster.start(name, *voters, "--seed", first.address) for name in names[1:]}
    for member in members.values():
        until(lambda one=member: cluster.sees_all_alive(one, names), f"{member.name} sees three")
    leader = until(lambda: cluster.observer.members(first.address).leader, "a leader")
    broken = next(name for name in names if name != leader)
    kept = cluster.folder / "data" / broken
    (term,) = until(lambda: list(kept.rglob("term")), "a remembered term")
    term.with_name("term.new").mkdir()  # root may write anywhere, but not to a directory

    members[leader].signal(signal.SIGKILL)

    assert members[broken].exit_code() == 1
    text = members[broken].text
    assert f"{broken} stopped, because its disk failed: " in text
    assert "Is a directory" in text
    assert "replace the disk, then start it again" in text
    assert "Traceback" not in text


def test_a_port_in_use_is_said_in_one_sentence(cluster: Cluster) -> None:
    member = cluster.start("a")
    second = cluster.start("b", bind=member.address)

    assert second.exit_code() == 1
    assert "b cannot start: " in second.text
    assert "Traceback" not in second.text
