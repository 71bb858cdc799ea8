"""Nodes in one process on real sockets: what is hard to see from outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from hyperscale.cluster.election import Envelope, list_digest
from hyperscale.cluster.election.messages import Heartbeat as HeartbeatOfLeader
from hyperscale.cluster.identity import Node as Member
from hyperscale.cluster.membership import Membership, MembershipConfig, Persist
from hyperscale.cluster.membership.messages import Alive
from hyperscale.nodes.member.exchanges import EXCHANGES, Answered, Said, proof_of
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.settings import NodeSettings, read_settings
from hyperscale.nodes.member.shared_port import Channel
from hyperscale.nodes.member.sources import Sources
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.frames import FrameDecoder, encode_frame
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call
from tests.fixtures.datagrams import tell
from tests.fixtures.private import write_private

from .node_cluster import FAST

DEADLINE_S = 20.0


def settings(folder: Path, name: str, **more: object) -> NodeSettings:
    secret = folder / "secret"
    write_private(secret, "correct horse battery staple")
    flags = {"id": name, "bind": "127.0.0.1:0", "plaintext": True, "secret_file": str(secret)}
    of = {"cluster": "shop", "env": "test"}
    given = {**flags, **of, "data": str(folder / name), "set": list(FAST), **more}
    return read_settings(Sources(given))


@contextlib.asynccontextmanager
async def running(made: NodeSettings) -> AsyncIterator[Node]:
    """Ends as a crash does: nobody is told."""
    async with RealHost(made.id, made.data) as host:
        node = Node(host, made)
        await node.start()
        yield node


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - conditions of another node have no event
            await asyncio.sleep(0.01)


def address(node: Node) -> str:
    return str(node.server.address)


def state(node: Node, name: str) -> str:
    member = node.membership.core.member(name)
    return "" if member is None else member.state.name.lower()


def test_nothing_is_left_after_leaving(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a")) as one:
            seeds = [address(one)]
            made = settings(tmp_path, "b", seed=seeds, metrics="127.0.0.1:0", voters="b")
            async with RealHost("b", made.data) as host:
                node = Node(host, made)
                await node.start()
                await until(lambda: state(one, "b") == "alive")
                await until(lambda: node.election is not None and node.election.may_lead())
                await node.stop()
                await until(lambda: state(one, "b") == "left")
                await host.stop()
                assert host.tasks.names() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


def test_a_node_that_lost_its_disk_is_heard_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a")) as one:
            seeds = [address(one)]
            async with running(settings(tmp_path, "b", seed=seeds)) as first_life:
                await until(lambda: state(one, "b") == "alive")
                place = address(first_life)
            await until(lambda: state(one, "b") == "dead")
            fresh = settings(tmp_path, "b", seed=seeds, bind=place, data=str(tmp_path / "new"))
            async with running(fresh) as second_life:
                await until(lambda: state(one, "b") == "alive")
                life = second_life.membership.me.incarnation
                row = one.membership.core.member("b")
                assert row is not None
                await until(lambda: row.rtt_s is not None and row.incarnation == life > 1)

    asyncio.run(story())


def words_of(name: str, cluster: str) -> Membership:
    """A member that is only its voice."""
    place = ("127.0.0.1", 1)
    me = Member(name, 0, "probe", "local", place, place)
    core = Membership(me, MembershipConfig(cluster=cluster), random.Random(1))
    for effect in core.start(0.0):
        assert isinstance(effect, Persist)
        core.persisted(0.0, effect.incarnation)
    return core


def introduced(host: RealHost, node: Node, name: str, **handlers: Any) -> Endpoint:
    theirs = node.endpoint.introduction.identity
    return Endpoint(
        host,
        Introduction(msgspec.structs.replace(theirs, node_id=name)),
        EXCHANGES,
        {Said: handlers["said"]} if handlers else {},
        plaintext="loopback",
    )


def test_who_calls_may_speak_for_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        made = settings(tmp_path, "a")
        async with running(made) as node, RealHost("b", tmp_path / "b") as host:
            peer = Peer(introduced(host, node, "b"), node.server.address)
            for number, (speaker, refused) in enumerate((("b", 0), ("c", 1))):
                voice = words_of(speaker, f"{made.cluster}/{made.env}")
                proof = proof_of(made.secret, "b")
                said = Said(str(number), proof, encode_frame(voice.summary(0.0)))
                answer = await peer.request(said, Answered)
                assert bool(answer.data) is not refused
                await until(lambda: node.membership.counts["refused_impostor"] == refused)  # noqa: B023
            assert node.membership.core.member("b") is not None
            assert node.membership.core.member("c") is None

    asyncio.run(story())


def test_who_is_called_may_speak_for_nobody_else(tmp_path: Path) -> None:
    async def story() -> None:
        made = settings(tmp_path, "a")
        async with running(made) as node, RealHost("b", tmp_path / "b") as host:

            def answer_as_another(call: Call, said: Said) -> Answered:
                (frame,) = [payload for _, payload in decoded(said.data)]
                voice = words_of("c", f"{made.cluster}/{made.env}")
                words, _ = voice.exchanged(0.0, frame)
                assert words is not None
                return Answered(encode_frame(words))

            server = Server(introduced(host, node, "b", said=answer_as_another))
            node.membership.join([await server.start(Address("127.0.0.1", 0))])
            await until(lambda: node.membership.core.counts["exchanges_failed"] >= 1)
            assert node.membership.core.rows == 0

    asyncio.run(story())


def test_no_voter_may_speak_for_another(tmp_path: Path) -> None:
    async def story() -> None:
        made = settings(tmp_path, "a", voters="a,b,c")
        assert made.secret is not None
        async with running(made) as node:
            assert node.election is not None
            heartbeat = Envelope(made.group, "b", list_digest(made.voters), HeartbeatOfLeader(7, 1))
            words = bytes([Channel.ELECTION]) + msgspec.msgpack.encode(heartbeat)
            for name in ("c", "b"):
                assert node.election.leader is None
                await asyncio.to_thread(tell, node.server.address, name, made.secret, words)
                await until(lambda: node.election.datagrams_ignored == 1)
            await until(lambda: node.election.leader == "b")
            assert node.election.datagrams_ignored == 1

    asyncio.run(story())


def decoded(data: bytes) -> FrameDecoder:
    frames = FrameDecoder()
    frames.feed(data)
    return frames


def test_the_page_for_prometheus(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a", metrics="127.0.0.1:0")) as node:
            assert node.metrics_address is not None
            text = await get(*node.metrics_address, "/metrics")
            assert text.startswith("HTTP/1.1 200 OK\r\n")
            assert 'hyperscale_members{state="alive"} 0.0\n' in text
            assert 'hyperscale_admission_shed_total{priority="low"} 0.0\n' in text
            assert (await get(*node.metrics_address, "/")).startswith("HTTP/1.1 404 ")
            assert (await get(*node.metrics_address, "x" * 9_000)).startswith("HTTP/1.1 405 ")

    asyncio.run(story())


def test_health_has_a_page_and_a_status(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a", metrics="127.0.0.1:0")) as node:
            assert node.metrics_address is not None
            assert await page(node, "/health/live") == {"ok": True, "reason": ""}
            node.failure = OSError("the disk is gone")
            node.over.set()
            text = await get(*node.metrics_address, "/health/live")
            assert text.startswith("HTTP/1.1 503 ")
            assert "the disk is gone" in text

    asyncio.run(story())


def test_whoever_is_not_on_this_machine_sees_numbers_and_health_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a", metrics="0.0.0.0:0")) as node:
            assert node.metrics_address is not None
            place = ("127.0.0.1", node.metrics_address.port)
            for path in ("/metrics", "/health/live", "/health/ready"):
                assert (await get(*place, path)).startswith("HTTP/1.1 200 ")
            assert (await get(*place, "/debug/vivaldi/peers")).startswith("HTTP/1.1 404 ")

    asyncio.run(story())


def test_the_pages_for_debugging(tmp_path: Path) -> None:
    async def story() -> None:
        seen = settings(tmp_path, "a", metrics="127.0.0.1:0")
        async with (
            running(seen) as one,
            running(settings(tmp_path, "b", seed=[address(one)])) as two,
        ):
            await until(lambda: one.membership.core.rtt_samples_s("b"))
            mine = await page(one, "/debug/vivaldi/coordinate")
            assert (len(mine["position"]), mine["peer_count"]) == (4, 1)
            assert mine["samples"] >= 1
            assert mine["convergence_status"] in ("converging", "converged")
            (peer,) = await page(one, "/debug/vivaldi/peers")
            assert peer["peer"] == "b"
            assert peer["estimated_rtt_ms"] > 0 < peer["measured_rtt_samples"][-1]
            assert peer["adaptive_timeout_s"] >= seen.membership.probe_timeout_s
            assert await page(one, "/debug/peers/unconfirmed") == []
            ghost = Member("ghost", 1, "worker", "local", ("127.0.0.1", 1), ("127.0.0.1", 1))
            two.membership.core._station.tell(Alive(ghost))
            await until(lambda: one.membership.core.member("ghost"))
            (unheard,) = await page(one, "/debug/peers/unconfirmed")
            assert (unheard["peer"], unheard["role"]) == ("ghost", "worker")
            assert datetime.fromisoformat(unheard["discovered_at"]).tzinfo is not None
            assert 170 < unheard["passive_timeout_remaining"] <= 180 * 10
            assert (unheard["confirmation_attempts"], unheard["age_seconds"] < 10) == (0, True)
            assert unheard["next_attempt_in"] > 0
            changes = await page(one, "/debug/peers/changes")
            told = [(each["peer"], each["change"], each["state"]) for each in changes]
            assert ("b", "joined", "ALIVE") in told
            assert all(datetime.fromisoformat(each["at"]).tzinfo for each in changes)
            assert all(each["via"] for each in changes)

    asyncio.run(story())


async def page(node: Node, path: str) -> Any:
    assert node.metrics_address is not None
    head, _, body = (await get(*node.metrics_address, path)).partition("\r\n\r\n")
    assert "application/json" in head
    return msgspec.json.decode(body)


async def get(host: str, port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    async with asyncio.timeout(DEADLINE_S):
        answer = await reader.read()
    writer.close()
    return answer.decode()


def test_a_membership_hook_that_raises_silences_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        heard: list[str] = []

        def broken(event: object) -> None:
            raise ZeroDivisionError("oh")

        async with running(settings(tmp_path, "a")) as one:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
            one.membership.on_change(broken)
            one.membership.on_change(lambda event: heard.append(event.node.node_id))
            async with running(settings(tmp_path, "b", seed=[address(one)])):
                await until(lambda: "b" in heard)
                assert one.membership.metrics()["callback_errors"] >= 1

    asyncio.run(story())


def test_what_two_nodes_agreed_on_and_how_the_search_went_is_logged(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running(settings(tmp_path, "a")) as one,
            running(settings(tmp_path, "b", seed=[address(one)])) as two,
        ):
            await until(lambda: state(one, "b") == "alive")
            await until(lambda: two.bootstrap and two.bootstrap.state.value == "joined")

    written = logs.configure(tmp_path / "log", level="debug")
    try:
        asyncio.run(story())
    finally:
        written.stop()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    greeted = next(line for line in lines if line["event"] == "greeted")
    assert (greeted["peer"], greeted["role"]) == ("b", "probe")
    assert greeted["protocol"].startswith("1.")
    assert greeted["version"]
    states = [line["state"] for line in lines if line["event"] == "looking for the cluster"]
    assert states[-1] == "joined"
