"""The election shell on real hosts: real datagrams over loopback, real files, real time."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperscale.cluster.election import ElectionSettings, ElectionState
from hyperscale.errors import BadInput
from hyperscale.nodes.member.election_shell import ElectionPlan, ElectionShell
from hyperscale.runtime.host import Address, File
from hyperscale.runtime.real import RealHost

FAST = ElectionSettings(
    heartbeat_interval_s=0.05,
    lease_s=0.5,
    lease_slack_s=0.02,
    election_delay_min_s=0.5,
    election_delay_max_s=1.0,
    retry_delay_min_s=0.05,
    retry_delay_max_s=0.3,
    ballot_timeout_s=0.3,
    ballot_resend_s=0.05,
)
DEADLINE_S = 30.0


async def until(holds: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DEADLINE_S
    while not holds():
        assert loop.time() < deadline, "waited in vain"
        await asyncio.sleep(0.02)


class Cluster:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.names = ["m1", "m2", "m3"]
        self.voters: dict[str, Address] = {}
        self.hosts: dict[str, RealHost] = {}
        self.shells: dict[str, ElectionShell] = {}
        self.log: list[tuple[str, int]] = []

    async def open(self) -> None:
        probe = RealHost("probe", self.directory / "probe")
        for name in self.names:
            port = await probe.network.bind(Address("127.0.0.1", 0), lambda _data, _from: None)
            self.voters[name] = Address("127.0.0.1", port.address.port)
            port.close()
        await probe.stop()
        for name in self.names:
            await self.start(name)

    async def start(self, name: str) -> None:
        host = RealHost(name, self.directory / name)
        plan = ElectionPlan(
            group="managers",
            node_id=name,
            bind=self.voters[name],
            voters=self.voters,
            settings=FAST,
        )
        shell = ElectionShell(host, plan)
        shell.on_become_leader.append(lambda term: self.log.append((name, term)))
        self.hosts[name], self.shells[name] = host, shell
        await shell.start()

    async def stop(self, name: str) -> None:
        await self.shells.pop(name).stop()
        host = self.hosts.pop(name)
        await host.stop()
        assert host.tasks.names() == []

    async def kill(self, name: str) -> None:
        """No goodbye: the host goes, the shell is not told."""
        self.shells.pop(name)
        await self.hosts.pop(name).stop()

    def agreed_leader(self) -> str | None:
        leaders = {shell.leader for shell in self.shells.values()}
        leader = leaders.pop() if len(leaders) == 1 else None
        return leader if leader in self.shells and self.shells[leader].may_lead() else None


def test_three_voters_elect_fail_over_and_hand_over(tmp_path: Path) -> None:
    async def story() -> None:
        cluster = Cluster(tmp_path)
        await cluster.open()
        await until(cluster.agreed_leader)
        first = cluster.agreed_leader()
        assert first is not None
        term = cluster.shells[first].term

        await cluster.kill(first)
        await until(cluster.agreed_leader)
        second = cluster.agreed_leader()
        assert second not in (None, first)
        assert cluster.shells[second].term > term

        await cluster.start(first)
        await until(lambda: cluster.agreed_leader() and len(cluster.shells) == 3)
        assert cluster.shells[first].term >= term
        leader = cluster.agreed_leader()
        assert leader is not None
        before = cluster.shells[leader].fence()
        await until(lambda: _hand_over(cluster, leader))
        await until(lambda: cluster.agreed_leader() not in (None, leader))
        third = cluster.agreed_leader()
        assert third is not None
        assert cluster.shells[third].fence() > before

        terms = [term for _, term in cluster.log]
        assert len(set(terms)) == len(terms), cluster.log
        for name in list(cluster.shells):
            await cluster.stop(name)

    asyncio.run(story())


def _hand_over(cluster: Cluster, leader: str) -> bool:
    shell = cluster.shells[leader]
    if shell.state is ElectionState.LEADER:
        shell.hand_over(urgent=True)
    return shell.state is not ElectionState.LEADER


def test_noise_is_counted_and_a_failing_hook_disturbs_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        reports: list[str] = []
        host = RealHost("m1", tmp_path, report=lambda name, _error: reports.append(name))
        plan = ElectionPlan(
            group="managers",
            node_id="m1",
            bind=Address("127.0.0.1", 0),
            voters={"m1": Address("127.0.0.1", 1)},
            settings=FAST,
        )
        shell = ElectionShell(host, plan)
        led: list[int] = []

        def broken(_term: int) -> None:
            raise RuntimeError("broken hook")

        shell.on_become_leader += [broken, led.append]
        await shell.start()
        shell._on_datagram(b"noise", Address("127.0.0.1", 9))
        shell._on_datagram(b"x" * 5000, Address("127.0.0.1", 9))
        assert shell.datagrams_ignored == 2
        await until(lambda: led and reports)
        assert (led, reports) == ([1], ["election hook"])
        await shell.stop()
        await shell.failed()
        await host.stop()

    asyncio.run(story())


def test_a_vote_waits_for_a_file_to_be_saved_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That there are no more open files says nothing about the disk."""

    async def story() -> None:
        host = RealHost("m1", tmp_path)
        plan = ElectionPlan(
            group="managers",
            node_id="m1",
            bind=Address("127.0.0.1", 0),
            voters={"m1": Address("127.0.0.1", 1)},
            settings=FAST,
        )
        shell = ElectionShell(host, plan)
        await shell.start()
        open_file, refused = host.disk.open, 0

        async def no_file(path: str) -> File:
            nonlocal refused
            refused += 1
            if refused <= 3:
                raise OSError(errno.EMFILE, "Too many open files", path)
            return await open_file(path)

        monkeypatch.setattr(host.disk, "open", no_file)
        await until(lambda: shell.state is ElectionState.LEADER)
        assert refused > 3
        await shell.stop()
        await host.stop()

    asyncio.run(story())


def test_a_voter_not_on_the_list_is_told_so() -> None:
    with pytest.raises(BadInput, match="m9 is not among the voters of managers"):
        ElectionPlan(group="managers", node_id="m9", bind=Address("127.0.0.1", 0), voters={})
