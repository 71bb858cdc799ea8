"""People with a cluster: they submit, watch, steer, lose glances_left, crash and come back.

What a person wants outlives the program they use: after a crash of their machine they submit the
same thing again with the same key, and attach.
"""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from hyperscale.cluster.jobs.records import Action
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import UnknownJob
from hyperscale.nodes.client.managers import Managers, endpoint_of
from hyperscale.nodes.client.picture import Picture
from hyperscale.nodes.client.submission import new_job_id
from hyperscale.nodes.protocol.jobs import SubmitJob
from hyperscale.nodes.protocol.keys import check_key
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenarios.cluster_shapes import body_of, draw_shape
from hyperscale.sim.world import World
from hyperscale.wire.identity import Identity

AGAIN_S: Final = 1.0
ERRANDS_MAX: Final = 3
NONCE: Final = "0123456789abcdef"
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class Wish:
    """A job that somebody wants, and what they will do to it."""

    key: str
    shape: str
    body: bytes
    at_s: float
    steering: list[tuple[float, Action, int]] = field(default_factory=list)
    again_s: float | None = None  # submitted once more, this long after the first answer
    asks_again: bool = False  # and may yet make another job of it, if the first was forgotten
    glances: int = 0  # how often they stop watching before the end
    job_id: str = ""  # once it was acknowledged
    told: bool = False  # its end, or that nobody remembers it any more

    def __post_init__(self) -> None:
        check_key(self.key)  # one that managers refuse would be no load, and prove nothing


def draw_wishes(dice: Random, client: str, until_s: float) -> list[Wish]:
    wishes = []
    for number in range(dice.randint(1, ERRANDS_MAX)):
        shape = draw_shape(dice)
        wish = Wish(
            key=f"{client}:{number}:{NONCE}",
            shape=shape,
            body=_encode(body_of(shape, dice)),
            at_s=dice.uniform(0.0, until_s),
            again_s=dice.uniform(0.0, 10.0) if dice.random() < 0.3 else None,
            glances=dice.randint(1, 3) if dice.random() < 0.3 else 0,
        )
        wish.steering = _draw_steering(dice)
        wishes.append(wish)
    return wishes


def draw_long_wishes(dice: Random, client: str) -> list[Wish]:
    """Load that is there for as long as anybody could need it to be lost."""
    body = _encode(body_of("long", dice))
    wish = Wish(f"{client}:0:{NONCE}", "long", body, at_s=dice.uniform(0.0, 5.0))
    if dice.random() < 0.4:
        wish.steering = [(dice.uniform(10.0, 60.0), "cancel", 0)]
    return [wish]


def draw_timed(dice: Random, client: str, until_s: float) -> list[Wish]:
    """Now and then somebody has a job that is quiet, hangs, or has little time."""
    if dice.random() >= 0.4:
        return []
    shape = dice.choice(("hanging", "late", "tight", "tight"))
    body = _encode(body_of(shape, dice))
    key = f"{client}-{shape}:0:{NONCE}"
    return [Wish(key=key, shape=shape, body=body, at_s=dice.uniform(0.0, until_s))]


def _draw_steering(dice: Random) -> list[tuple[float, Action, int]]:
    luck = dice.random()
    if luck < 0.2:
        return [(dice.uniform(0.0, 8.0), dice.choice(("cancel", "cancel", "stop")), 0)]
    if luck < 0.4:
        pause_s = dice.uniform(0.1, 6.0) if dice.random() < 0.5 else dice.uniform(15.0, 30.0)
        return [(dice.uniform(0.3, 3.0), "pause", 0), (pause_s, "resume", 0)]
    if luck < 0.5:
        return [(dice.uniform(0.3, 4.0), "scale", dice.randint(1, 12))]
    return []


class User:
    """One life of a client's machine."""

    def __init__(
        self,
        world: World,
        host: SimHost,
        managers: list[Address],
        wishes: list[Wish],
        picture: type[Picture],
    ) -> None:
        self._world = world
        self._host = host
        self._wishes = wishes
        self._picture = picture
        identity = Identity(
            node_id=host.name,
            incarnation=host.generation,
            role="client",
            cluster_id="default",
            environment_id="dev",
            datacenter="local",
        )
        endpoint = endpoint_of(host, identity, plaintext="anywhere")
        self._cluster = Cluster(host, Managers(endpoint, managers))
        self._views = 0

    def start(self) -> None:
        for wish in self._wishes:
            wish.asks_again = False  # who did so in an earlier life is dead
            if not wish.told:
                self._host.tasks.spawn(f"wish {wish.key}", self._pursue(wish))

    async def _pursue(self, wish: Wish) -> None:
        await self._host.clock.sleep(max(0.0, wish.at_s - self._world.now))
        await self._submit(wish)
        if wish.again_s is not None:
            self._host.tasks.spawn(f"again {wish.key}", self._again(wish))
        if wish.steering:
            self._host.tasks.spawn(f"steer {wish.key}", self._steer(wish))
        while not wish.told:
            job_id = wish.job_id  # asked for again, it may become another one meanwhile
            try:
                await self._watch(wish, job_id)
            except UnknownJob:
                self._observe("unknown", job=job_id)
                wish.told = wish.job_id == job_id
            except HyperscaleError:
                await self._host.clock.sleep(AGAIN_S)

    async def _submit(self, wish: Wish) -> None:
        """With a new id each time, as somebody does who does not remember the first one."""
        while True:
            job_id = new_job_id(self._host.random)
            self._observe("submitting", key=wish.key, job=job_id)
            message = SubmitJob(job_id=job_id, body=wish.body, idempotency_key=wish.key)
            try:
                ack = await self._cluster.submit(message)
            except HyperscaleError:
                await self._host.clock.sleep(AGAIN_S)
                continue
            wish.job_id = ack.job_id
            self._world.coverage[f"job {wish.shape}"] += 1
            if ack.was_duplicate:
                self._world.coverage["submitted twice"] += 1
            self._observe("acked", key=wish.key, job=ack.job_id, duplicate=ack.was_duplicate)
            return

    async def _again(self, wish: Wish) -> None:
        assert wish.again_s is not None
        wish.asks_again = True
        await self._host.clock.sleep(wish.again_s)
        await self._submit(wish)
        wish.asks_again = False

    async def _steer(self, wish: Wish) -> None:
        while wish.steering:
            after_s, action, amount = wish.steering[0]
            await self._host.clock.sleep(after_s)
            while not wish.told:
                try:
                    ack = await self._cluster.steer(wish.job_id, action, amount, self._host.name)
                except HyperscaleError:
                    await self._host.clock.sleep(AGAIN_S)
                    continue
                self._world.coverage[f"{action} {'done' if ack.accepted else 'refused'}"] += 1
                self._observe("steered", job=wish.job_id, action=action, taken=ack.accepted)
                break
            wish.steering.pop(0)

    async def _watch(self, wish: Wish, job_id: str) -> None:
        """Until the end, or until they look away."""
        self._views += 1
        view = f"{self._host.name}/{self._host.generation}.{self._views}"
        glances_left = self._host.random.randint(1, 40) if wish.glances else -1
        picture = self._picture()
        async with aclosing(self._cluster.follow(job_id)) as updates:
            async for update in updates:
                news = picture.apply(update)
                for progress in news.progress:
                    self._observe(
                        "shown",
                        view=view,
                        workflow=progress.window.workflow,
                        requests=progress.requests,
                        failed=progress.failed,
                    )
                if update.final:
                    wish.told = wish.job_id == job_id
                    digest = hashlib.blake2b(update.results, digest_size=8).hexdigest()
                    status = update.view.status if update.view is not None else picture.ended_as
                    self._observe("told", job=job_id, status=status, results=digest)
                    return
                glances_left -= 1
                if glances_left == 0:
                    wish.glances -= 1
                    self._world.coverage["looked away"] += 1
                    return

    def _observe(self, kind: str, **facts: object) -> None:
        self._world.observe(kind, node=self._host.name, **facts)
