"""What gates expect of the store of their jobs, whichever it is: real gates, a real etcd."""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.ledger.etcd.store import PART_BYTES
from hyperscale.ledger.vsr import NotPrimary, Unknown
from hyperscale.nodes.gate.etcd_ledger import EtcdLedger
from hyperscale.nodes.gate.events import Begun, Commanded, Completed, Created, Ended, Told
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.job_ledger import JobLedger, job_id_of
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.settings import GateSettings, LedgerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.jobs import SteerJob
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.target.certificate import write_certificate
from tests.integration.client.test_dev import free_ports
from tests.integration.scheduler.etcd_cluster import EtcdCluster, etcd_cluster

NAMES = ("g1", "g2", "g3")
TIMES = {"lease_s": 4.0, "heartbeat_s": 1.0, "retry_s": 0.3, "view_change_s": 4.0}
DEADLINE_S = 120.0
Story = Callable[["Gates"], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as made:
        yield made


class QuietGate(Gate):
    """What its owner would do with a job is for other tests."""

    async def start(self) -> None:
        self.owner.run = self.retention.run = asyncio.Event().wait  # type: ignore[assignment]
        await super().start()


class Gates:
    def __init__(self, folder: Path, ledger: LedgerSettings, cluster: str) -> None:
        self._folder, self._settings, self._cluster = folder, ledger, cluster
        first = free_ports(len(NAMES))
        self._places = {name: ("127.0.0.1", first + at) for at, name in enumerate(NAMES)}
        self.running: dict[str, tuple[RealHost, Gate]] = {}

    async def start(self, name: str) -> None:
        host = RealHost(name, self._folder / name)
        node = NodeSettings(
            id=name, bind=Address(*self._places[name]), seeds=tuple(self._places.values()),
            data=self._folder / name, role="gate", cluster=self._cluster,
        )  # fmt: skip
        nowhere = {"eu": (Address("127.0.0.1", 1),), "us": (Address("127.0.0.1", 1),)}
        settings = GateSettings(
            node=node, gates=NAMES, datacenters=nowhere, ledger=self._settings, commit_s=5.0
        )
        gate = QuietGate(host, settings)
        try:
            await gate.start()
        except BadInput:
            await host.stop()
            raise
        self.running[name] = (host, gate)

    async def stop(self, name: str) -> None:
        host, gate = self.running.pop(name)
        await gate.stop()
        await host.stop()

    def __getitem__(self, name: str) -> JobLedger:
        return self.running[name][1].ledger

    def jobs(self, job_id: str) -> list[GateJob | None]:
        return [gate.ledger.jobs.job(job_id) for _, gate in self.running.values()]

    def owner(self, job_id: str) -> str:
        return next((name for name in self.running if self[name].owns(job_id)), "")

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110 - nobody tells; the story has a deadline
            await asyncio.sleep(0.05)

    async def made(self, job_id: str, body: bytes = b"") -> str:
        """Who owns it."""
        while not self.owner(job_id):
            for name in self.running:
                await self[name].begin(job_id)
            await asyncio.sleep(0.05)
        name = self.owner(job_id)
        await surely(self[name], job_id, created(body))
        await self.until(lambda: all(self.jobs(job_id)))
        return name


async def surely(ledger: JobLedger, job_id: str, *events: Any) -> None:
    for event in events:
        await ledger.append_surely(job_id, event)


def created(body: bytes = b"", digest: str = "d") -> Created:
    return Created("shop", body, {"eu": 0, "us": 0}, digest)


def command(number: int) -> Commanded:
    return Commanded(SteerJob(job_id="j", action="scale", amount=number, command_id=str(number)))


def amounts(job: GateJob | None) -> list[int]:
    return [] if job is None else [int(one.steer.amount) for one in job.commands]


Play = Callable[[Story], None]


@pytest.fixture(params=["vsr", "etcd"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    if request.param == "vsr":
        return playing(tmp_path, LedgerSettings(**TIMES))
    return playing(tmp_path, in_etcd(request.getfixturevalue("etcd")))


def in_etcd(etcd: EtcdCluster) -> LedgerSettings:
    return LedgerSettings(**TIMES, store="etcd", etcd=etcd.address)


def _cluster_of(folder: Path) -> str:
    """Of each test its own, for they share an etcd."""
    return hashlib.blake2b(folder.name.encode(), digest_size=6).hexdigest()


@asynccontextmanager
async def gates_in(folder: Path, ledger: LedgerSettings) -> AsyncIterator[Gates]:
    made = Gates(folder, ledger, _cluster_of(folder))
    try:
        for name in NAMES:
            await made.start(name)
        yield made
    finally:
        for name in list(made.running):
            await made.stop(name)


def playing(folder: Path, ledger: LedgerSettings) -> Play:
    def play(story: Story) -> None:
        async def run() -> None:
            async with asyncio.timeout(DEADLINE_S), gates_in(folder, ledger) as gates:
                await story(gates)

        asyncio.run(run())

    return play


def test_what_the_owner_appends_every_gate_reads_once_and_in_order(play: Play) -> None:
    async def story(gates: Gates) -> None:
        owner = await gates.made("j")
        assert [gates[name].owns("j") for name in NAMES].count(True) == 1
        await asyncio.gather(*(surely(gates[owner], "j", command(n % 5)) for n in range(10)))
        await surely(gates[owner], "j", Begun(("eu",)), Begun(("us",)))
        await gates.until(lambda: all(len(amounts(job)) == 5 for job in gates.jobs("j")))
        assert len({tuple(amounts(job)) for job in gates.jobs("j")}) == 1
        assert gates[owner].jobs.job("j").begun == Begun(("eu",))  # type: ignore[union-attr]

    play(story)


def test_who_does_not_own_a_job_appends_nothing(play: Play) -> None:
    async def story(gates: Gates) -> None:
        owner = await gates.made("j")
        for name in set(NAMES) - {owner}:
            with pytest.raises(NotPrimary):
                await gates[name].append("j", command(1))
        with pytest.raises(NotPrimary):
            await gates[owner].append("nobodys", command(1))
        assert amounts(gates[owner].jobs.job("j")) == []

    play(story)


def test_a_job_that_is_handed_over_goes_on_elsewhere(play: Play) -> None:
    async def story(gates: Gates) -> None:
        first = await gates.made("j")
        await surely(gates[first], "j", command(1))
        gates[first].hand_over("j")
        await gates.until(lambda: gates.owner("j") not in ("", first))
        with pytest.raises(NotPrimary):
            await gates[first].append("j", command(7))
        await surely(gates[gates.owner("j")], "j", command(1), command(2))
        await gates.until(lambda: all(amounts(job) == [1, 2] for job in gates.jobs("j")))

    play(story)


def test_everything_is_read_again_after_a_restart_of_all(play: Play) -> None:
    async def story(gates: Gates) -> None:
        told = Told("eu", 5, 1.0), Told("eu", 9, 2.0), Told("us", 3, 2.0), Ended("us", "completed")
        await surely(gates[await gates.made("j")], "j", command(1), *told)
        for name in NAMES:
            await gates.stop(name)
        for name in NAMES:
            await gates.start(name)
        await gates.until(lambda: gates.owner("j"))
        await surely(gates[gates.owner("j")], "j", command(1), command(2))
        await gates.until(lambda: all(amounts(job) == [1, 2] for job in gates.jobs("j")))
        for job in gates.jobs("j"):
            assert job is not None
            assert {name: one.requests for name, one in job.told.items()} == {"eu": 9}
            assert set(job.ends) == {"us"}

    play(story)


def test_a_key_is_one_job_until_it_is_forgotten(play: Play) -> None:
    async def story(gates: Gates) -> None:
        job_id = job_id_of("shop:1:0123456789abcdef")
        owner = await gates.made(job_id)
        for name in NAMES:  # submitted again, through each
            await gates[name].begin(job_id)
        assert gates.owner(job_id) == owner
        await surely(gates[owner], job_id, created(digest="another"))
        assert {job.submitted.digest for job in gates.jobs(job_id) if job} == {"d"}
        ends = Ended("eu", "completed"), Ended("us", "completed")
        await surely(gates[owner], job_id, *ends, Completed("completed", "", b"{}"))
        await gates.until(lambda: all(job and job.is_over for job in gates.jobs(job_id)))
        await gates[owner].forget(job_id)
        await gates.until(lambda: not any(gates.jobs(job_id)))

    play(story)


# -- etcd alone ------------------------------------------------------------------------------------


def test_a_gate_that_lost_its_lease_and_does_not_know_changes_nothing(
    etcd: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(gates: Gates) -> None:
        stale = await gates.made("j")
        ledger = gates[stale]
        assert isinstance(ledger, EtcdLedger)
        # It renews nothing, hears nothing of owners, and believes in its lease.
        monkeypatch.setattr(ledger, "_apply_owner", lambda held, change: None)
        ledger._has_resigned, ledger._until = True, float("inf")
        await ledger._store.revoke(ledger._lease)
        await gates.until(lambda: any(gates[n].owns("j") for n in NAMES if n != stale))
        assert ledger.owns("j")
        with pytest.raises(NotPrimary):
            await ledger.append("j", command(1))
        assert not ledger.owns("j")

    playing(tmp_path, in_etcd(etcd))(story)


def test_what_was_committed_without_an_answer_is_there_once(
    etcd: EtcdCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(gates: Gates) -> None:
        ledger = gates[await gates.made("j")]
        assert isinstance(ledger, EtcdLedger)
        append, lost = ledger._store.append, [0, 1]

        async def loses_answers(*given: Any) -> int | None:
            number = await append(*given)
            if lost:
                raise Unknown(f"answer {lost.pop()} is lost")
            return number

        monkeypatch.setattr(ledger._store, "append", loses_answers)
        with pytest.raises(Unknown):
            await ledger.append("j", command(1))
        with pytest.raises(Unknown):
            await ledger.append("j", command(2))
        await surely(ledger, "j", command(2), command(1), command(3))
        await gates.until(lambda: all(amounts(job) == [1, 2, 3] for job in gates.jobs("j")))

    playing(tmp_path, in_etcd(etcd))(story)


def test_a_job_larger_than_etcds_requests_is_kept_until_it_is_over(
    etcd: EtcdCluster, tmp_path: Path
) -> None:
    body = bytes(range(256)) * (5 * PART_BYTES // 256) + b"end"

    async def story(gates: Gates) -> None:
        owner = await gates.made("j", body)
        assert {job.submitted.body for job in gates.jobs("j") if job} == {body}
        await gates[owner].forget("j")
        await gates.until(lambda: not any(gates.jobs("j")))
        await gates.made("j", b"anew")
        assert {job.submitted.body for job in gates.jobs("j") if job} == {b"anew"}

    playing(tmp_path, in_etcd(etcd))(story)


def test_while_etcd_is_away_nobody_owns_and_then_it_goes_on(
    etcd: EtcdCluster, tmp_path: Path
) -> None:
    async def story(gates: Gates) -> None:
        owner = await gates.made("j")
        etcd.signal(0, signal.SIGSTOP)
        try:
            with pytest.raises(Unknown, match="etcd: no answer in time"):
                await gates[owner].append("j", command(1))
            await gates.until(lambda: not gates.owner("j"))
            with pytest.raises(Unknown, match="no lease in etcd"):
                await gates["g1"].begin("another")
        finally:
            etcd.signal(0, signal.SIGCONT)
        await gates.until(lambda: gates.owner("j"))
        await surely(gates[gates.owner("j")], "j", command(1), command(2))
        await gates.until(lambda: all(amounts(job) == [1, 2] for job in gates.jobs("j")))

    playing(tmp_path, in_etcd(etcd))(story)


def test_a_user_of_these_keys_alone_and_tls_are_enough(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "127.0.0.1")
    name = _cluster_of(tmp_path)
    with etcd_cluster(tmp_path / "etcd", 1, files) as etcd:
        keys = f"hyperscale-gates/{name}/dev"
        for words in (
            ("user", "add", "root:top"),
            ("user", "grant-role", "root", "root"),
            ("role", "add", "gates"),
            ("role", "grant-permission", "gates", "readwrite", f"{keys}/", f"{keys}0"),
            ("user", "add", "gates:secret"),
            ("user", "grant-role", "gates", "gates"),
            ("auth", "enable"),
        ):
            etcd.control(*words)
        settings = LedgerSettings(
            **TIMES, store="etcd", etcd=etcd.address, etcd_user="gates", etcd_password="secret",
            etcd_ca=str(files[0]),
        )  # fmt: skip

        async def story(gates: Gates) -> None:
            owner = await gates.made("j", bytes(2 * PART_BYTES))
            await gates.stop(owner)
            await gates.until(lambda: gates.owner("j"))
            await surely(gates[gates.owner("j")], "j", command(1))
            await gates.until(lambda: all(amounts(job) == [1] for job in gates.jobs("j")))

        playing(tmp_path, settings)(story)


def test_an_etcd_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    nowhere = LedgerSettings(**TIMES, store="etcd", etcd="etcd://127.0.0.1:1")
    with pytest.raises(BadInput, match=r"cannot be read from etcd://127\.0\.0\.1:1"):
        playing(tmp_path, nowhere)(lambda gates: asyncio.sleep(0))
