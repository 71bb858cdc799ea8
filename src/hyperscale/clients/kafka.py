"""Kafka by aiokafka: produce until the brokers acknowledge, and consume the next record of a topic.

The first call connects by itself before aiokafka does: so it knows how long that takes, and why it
fails, which aiokafka tells nobody. After that the sockets are aiokafka's; bytes are counted of
keys, values and headers.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.io import opening
from hyperscale.clients.messages import arrived, consumed, stamped
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import KafkaResponse
from hyperscale.workload.results import Outcome

REQUEST_BYTES_MAX = 64 * 1024 * 1024  # the brokers say what is too large, not the client
TOPIC_S = 3.0  # how long a cluster may take to make a topic that it makes by itself
LOOK_S = 0.1
STOP_S = 2.0  # for batches under way, when a user ends
ACKS = (0, 1, "all")
STARTS = ("latest", "earliest")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)  # size, kind, version, number, no name
_ANSWER = struct.Struct(">ii")


class KafkaPool(AddressPool):
    kind = "kafka"
    schemes: ClassVar = {"kafka": False, "kafkas": True}
    ports: ClassVar = {"kafka": (False, 9092), "kafkas": (True, 9093)}

    def __init__(self, *args: Any) -> None:
        self.aiokafka = library("aiokafka", "kafka")
        self.errors = library("aiokafka.errors", "kafka")
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)
        self.stopping: set[asyncio.Task[None]] = set()
        # Responses say what failed; aiokafka would write it to the screen besides.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)

    def client(self) -> KafkaClient:
        return KafkaClient(self)

    def failure(self, error: Exception) -> Failure | None:
        errors = self.errors
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
            return Failure(Outcome.TIMEOUT, text)
        if isinstance(error, errors.AuthenticationFailedError | errors.BrokerResponseError):
            return Failure(Outcome.STATUS, text)
        if isinstance(error, errors.AuthenticationMethodNotSupported):
            return Failure(Outcome.STATUS, text)
        if isinstance(error, errors.KafkaConnectionError | errors.NodeNotReadyError):
            return Failure(Outcome.RESET, f"the connection to a broker broke: {error}")
        if isinstance(error, errors.KafkaError):
            return Failure(Outcome.PROTOCOL, text)
        return super().failure(error)

    def settings(self, service: Service) -> dict[str, Any]:
        host, port = service.place
        mechanism = service.query.get("mechanism", "PLAIN")
        if mechanism not in MECHANISMS:
            raise BadInput(f"mechanism is {mechanism!r} but must be one of {', '.join(MECHANISMS)}")
        security = "SSL" if service.secure else "PLAINTEXT"
        made: dict[str, Any] = {
            "bootstrap_servers": f"{f'[{host}]' if ':' in host else host}:{port}",
            "security_protocol": security,
            "ssl_context": self.tls.context(service.host) if service.secure else None,
        }
        if service.user:
            made |= {
                "security_protocol": f"SASL_{security}",
                "sasl_mechanism": mechanism,
                "sasl_plain_username": service.user,
                "sasl_plain_password": service.password,
            }
        return made

    async def close(self) -> None:
        await super().close()
        if self.stopping:
            await asyncio.wait(self.stopping, timeout=2 * STOP_S)


class KafkaClient(AddressClient[KafkaPool, "Session", KafkaResponse]):
    response = KafkaResponse

    async def produce(
        self,
        address: str | URL,
        topic: str,
        data: Any,
        *,
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, Any] | None = None,
        acks: int | str = "all",
        timeout: Any = None,
        name: str | None = None,
    ) -> KafkaResponse:
        """Send a record, until `acks` brokers have it: "all", 1 (the leader) or 0 (nobody is
        asked). Records with the same key go to the same partition."""
        _checked(topic)
        if acks not in ACKS or isinstance(acks, bool):
            raise BadInput(f"acks is {acks!r} but must be 0, 1 or 'all'")
        if partition is not None and (type(partition) is not int or partition < 0):
            raise BadInput(f"partition is {partition!r} but must be a number from 0 on")
        packed = key.encode() if isinstance(key, str) else key
        if not isinstance(packed, bytes | None):
            raise BadInput(f"key is {key!r} but must be text or bytes")
        sent = payload_of(data)
        stamped(headers)

        async def talk(session: Session, call: Call, answer: KafkaResponse) -> None:
            answer.topic = topic
            producer = await session.producer(acks)
            if not await session.knows(topic, partition, answer):
                return
            call.begin()
            lines = [(one, value.encode()) for one, value in stamped(headers).items()]
            size = len(sent) + len(packed or b"") + sum(len(a) + len(b) for a, b in lines)
            done = await producer.send(topic, sent, packed, partition, headers=lines)
            call.wrote(size)
            told = await done
            if told is not None:  # without acks nobody says where it went
                answer.partition, answer.offset = told.partition, told.offset

        return await self._refusable("PRODUCE", address, talk, timeout, name or topic, sent)

    async def subscribe(
        self,
        address: str | URL,
        topic: str,
        *,
        group: str | None = None,
        start: str = "latest",
        timeout: Any = None,
        name: str | None = None,
    ) -> KafkaResponse:
        """Read the topic from now on, or from its "earliest" record, or from where the group is."""
        _checked(topic, group, start)

        async def talk(session: Session, call: Call, answer: KafkaResponse) -> None:
            answer.topic = topic
            if await session.knows(topic, None, answer):
                call.begin()
                await session.consumer(topic, group, start)

        return await self._refusable("SUBSCRIBE", address, talk, timeout, name or topic)

    async def consume(
        self,
        address: str | URL,
        topic: str,
        *,
        group: str | None = None,
        start: str = "latest",
        timeout: Any = None,
        name: str | None = None,
    ) -> KafkaResponse:
        """The next record of a subscription, which is made if it is not there yet."""
        _checked(topic, group, start)

        async def talk(session: Session, call: Call, answer: KafkaResponse) -> None:
            answer.topic = topic
            if not await session.knows(topic, None, answer):
                return
            consumer = await session.consumer(topic, group, start)
            call.begin()
            record = await consumer.getone()
            headers = {one: value.decode("utf-8", "replace") for one, value in record.headers}
            key, value = record.key or b"", record.value or b""
            size = len(key) + len(value) + sum(len(a) + len(b) for a, b in record.headers)
            consumed("kafka", arrived(topic, value, headers, perf_counter(), size), call, answer)
            answer.key, answer.partition, answer.offset = key, record.partition, record.offset

        # What does not come in time may still come: the connection stays.
        return await self._refusable("CONSUME", address, talk, timeout, name or topic, keeps=True)

    async def _refusable(
        self,
        method: str,
        address: str | URL,
        talk: Callable[[Session, Call, KafkaResponse], Awaitable[None]],
        *rest: Any,
        **more: Any,
    ) -> KafkaResponse:
        """What a broker refuses does not end the connection."""
        errors = self._pool.errors

        async def told(session: Session, call: Call, answer: KafkaResponse) -> None:
            try:
                await talk(session, call, answer)
            except errors.BrokerResponseError as error:
                _refuse(answer, error)

        return await self._on(method, address, told, *rest, **more)

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        settings = pool.settings(service)
        where = service.authority
        sock, call.connect = await pool.network.open(service, pool.tls)
        try:
            sock.send(_API_VERSIONS)
            answer = b""
            while len(answer) < _ANSWER.size:
                more = await opening.receive(pool.network.readiness, sock)
                if not more:
                    raise Failure(Outcome.RESET, f"{where} closed the connection")
                answer += more
                if len(answer) >= _ANSWER.size and _ANSWER.unpack_from(answer)[1] != 7:
                    text = f"{where} does not speak Kafka: it sent {answer[:20]!r}"
                    raise Failure(Outcome.PROTOCOL, text)
        except OSError as error:
            raise Failure(Outcome.RESET, f"{where} reset the connection") from error
        finally:
            sock.close()
        session = Session(pool, settings)
        try:
            if service.user:
                await session.log_in(*service.place)
            await session.producer("all")
        except BaseException:
            session.shut()
            raise
        return session


class Session:
    """The producers and consumers of a user. One producer is there from the start: its client knows
    the topics."""

    def __init__(self, pool: KafkaPool, settings: dict[str, Any]) -> None:
        self._pool = pool
        self._settings = settings
        self._producers: dict[int | str, Any] = {}
        self._consumers: dict[tuple[str, str | None], Any] = {}
        self._known: set[str] = set()
        self._turn = asyncio.Lock()
        self.is_open = True

    async def log_in(self, host: str, port: int) -> None:
        """On a connection of its own, to hear what the broker says."""
        connect = library("aiokafka.conn", "kafka").create_conn
        names = ("security_protocol", "ssl_context", "sasl_mechanism")
        login = ("sasl_plain_username", "sasl_plain_password")
        settings = {name: self._settings[name] for name in (*names, *login)}
        (await connect(host, port, **settings)).close()

    async def producer(self, acks: int | str) -> Any:
        made = self._producers.get(acks)
        if made is None:
            async with self._turn:
                made = self._producers.get(acks)
                if made is None:
                    made = self._pool.aiokafka.AIOKafkaProducer(
                        **self._settings, acks=acks, max_request_size=REQUEST_BYTES_MAX
                    )
                    await self._started(made)
                    self._producers[acks] = made
        return made

    async def consumer(self, topic: str, group: str | None, start: str) -> Any:
        made = self._consumers.get((topic, group))
        if made is None:
            async with self._turn:
                made = self._consumers.get((topic, group))
                if made is None:
                    made = self._pool.aiokafka.AIOKafkaConsumer(
                        topic,
                        **self._settings,
                        group_id=group,
                        auto_offset_reset=start,
                        enable_auto_commit=group is not None,
                    )
                    await self._started(made)
                    if group is None and start == "latest":
                        await made.seek_to_end()  # now, not when the first record is asked for
                    self._consumers[topic, group] = made
        return made

    async def _started(self, made: Any) -> None:
        try:
            await made.start()
        except BaseException:
            self._stop(made)
            raise

    async def knows(self, topic: str, partition: int | None, answer: KafkaResponse) -> bool:
        """Whether the cluster has it, or makes it; else the answer says so."""
        client = (await self.producer("all")).client
        errors = self._pool.errors
        if topic not in self._known:
            deadline = perf_counter() + TOPIC_S
            while not client.cluster.partitions_for_topic(topic):
                if topic in client.cluster.unauthorized_topics:
                    _refuse(answer, errors.TopicAuthorizationFailedError(topic))
                    return False
                if perf_counter() > deadline:
                    _refuse(answer, errors.UnknownTopicOrPartitionError(topic))
                    return False
                await client.add_topic(topic)
                if not client.cluster.partitions_for_topic(topic):
                    await asyncio.sleep(LOOK_S)
                    client.force_metadata_update()
            self._known.add(topic)
        if partition is not None and partition not in client.cluster.partitions_for_topic(topic):
            _refuse(answer, errors.UnknownTopicOrPartitionError(f"{topic} has no {partition}"))
        return answer.ok

    def _stop(self, made: Any) -> None:
        """A batch under way may go out; who waits for a broker that is gone waits in vain."""

        async def stop() -> None:
            try:
                async with asyncio.timeout(STOP_S):
                    await made.stop()
            except (TimeoutError, self._pool.errors.KafkaError):
                await (made.client if hasattr(made, "client") else made._client).close()

        task = asyncio.get_running_loop().create_task(stop())
        self._pool.stopping.add(task)
        task.add_done_callback(self._pool.stopping.discard)

    def shut(self) -> None:
        if self.is_open:
            self.is_open = False
            for made in (*self._producers.values(), *self._consumers.values()):
                self._stop(made)


def _refuse(answer: KafkaResponse, error: Any) -> None:
    code = error.message or type(error).__name__
    answer.status = error.errno
    answer.refused(f"{error.errno} {code}: {error.args[0] if error.args else ''}", code)


def _checked(topic: Any, group: Any = None, start: Any = "latest") -> None:
    if not isinstance(topic, str) or not topic:
        raise BadInput(f"{topic!r} is not a topic of Kafka", "write orders")
    if group is not None and (not isinstance(group, str) or not group):
        raise BadInput(f"group is {group!r} but must be a name")
    if start not in STARTS:
        raise BadInput(f"start is {start!r} but must be one of {', '.join(STARTS)}")
