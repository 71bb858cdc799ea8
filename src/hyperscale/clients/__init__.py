"""Clients: a call becomes bytes, bytes become a result.

A process makes one `ClientPool` per workflow and takes one `Client` per virtual user from it;
`self.client` in a workflow is that client, with an attribute per protocol. HTTP is there from the
start; the others are made, and their libraries imported, by their first use.
"""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hyperscale.clients.http.client import HTTPClient
from hyperscale.clients.http.origin_pool import OriginPool
from hyperscale.clients.http.pool import HTTPPool
from hyperscale.clients.http.upload import of_file
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.workload.arguments import URL, Auth, Data, File, Headers, OptimizedArgument, Params
from hyperscale.workload.browser_options import BrowserOptions
from hyperscale.workload.email import Email
from hyperscale.workload.folders import FileGlob
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.protos import Protos

if TYPE_CHECKING:
    from hyperscale.clients.browser.client import BrowserClient
    from hyperscale.clients.contract import ProtocolClient, ProtocolPool
    from hyperscale.clients.ftp import FTPClient
    from hyperscale.clients.graphql import GraphQLClient
    from hyperscale.clients.grpc.client import GRPCClient
    from hyperscale.clients.http2.client import HTTP2Client
    from hyperscale.clients.http3.client import HTTP3Client
    from hyperscale.clients.kafka import KafkaClient
    from hyperscale.clients.mongodb.client import MongoDBClient
    from hyperscale.clients.mqtt.client import MQTTClient
    from hyperscale.clients.mysql import MySQLClient
    from hyperscale.clients.nats.client import NATSClient
    from hyperscale.clients.postgres import PostgresClient
    from hyperscale.clients.rabbitmq.client import RabbitMQClient
    from hyperscale.clients.redis import RedisClient
    from hyperscale.clients.smtp import SMTPClient
    from hyperscale.clients.sse import SSEClient
    from hyperscale.clients.ssh import SCPClient, SFTPClient
    from hyperscale.clients.tcp import TCPClient
    from hyperscale.clients.udp import UDPClient
    from hyperscale.clients.websocket.client import WebSocketClient

__all__ = ["Client", "ClientPool", "HTTPClient"]

# The pool of each protocol beside HTTP, and the schemes of its URLs.
PROTOCOLS = {
    "http2": ("hyperscale.clients.http2.client", "HTTP2Pool", ()),
    "http3": ("hyperscale.clients.http3.client", "HTTP3Pool", ()),
    "browser": ("hyperscale.clients.browser.client", "BrowserPool", ()),
    "grpc": ("hyperscale.clients.grpc.client", "GRPCPool", ("grpc", "grpcs")),
    "tcp": ("hyperscale.clients.tcp", "TCPPool", ("tcp", "tls")),
    "udp": ("hyperscale.clients.udp", "UDPPool", ("udp",)),
    "ftp": ("hyperscale.clients.ftp", "FTPPool", ("ftp", "ftps")),
    "graphql": ("hyperscale.clients.graphql", "GraphQLPool", ()),
    "graphqlh2": ("hyperscale.clients.graphql", "GraphQLH2Pool", ()),
    "mysql": ("hyperscale.clients.mysql", "MySQLPool", ("mysql", "mariadb")),
    "postgres": ("hyperscale.clients.postgres", "PostgresPool", ("postgresql", "postgres")),
    "kafka": ("hyperscale.clients.kafka", "KafkaPool", ("kafka", "kafkas")),
    "mongodb": ("hyperscale.clients.mongodb.client", "MongoDBPool", ("mongodb", "mongodbs")),
    "mqtt": ("hyperscale.clients.mqtt.client", "MQTTPool", ("mqtt", "mqtts")),
    "nats": ("hyperscale.clients.nats.client", "NATSPool", ("nats", "natss")),
    "rabbitmq": ("hyperscale.clients.rabbitmq.client", "RabbitMQPool", ("amqp", "amqps")),
    "redis": ("hyperscale.clients.redis", "RedisPool", ("redis", "rediss")),
    "scp": ("hyperscale.clients.ssh", "SCPPool", ("scp",)),
    "sftp": ("hyperscale.clients.ssh", "SFTPPool", ("sftp",)),
    "smtp": ("hyperscale.clients.smtp", "SMTPPool", ("smtp", "smtps")),
    "sse": ("hyperscale.clients.sse", "SSEPool", ("sse", "sses")),
    "websocket": ("hyperscale.clients.websocket.client", "WebSocketPool", ("ws", "wss")),
}


class Client:
    """What one virtual user calls with: its own connections and cookies."""

    __slots__ = ("__dict__", "_pool", "http")
    if TYPE_CHECKING:
        browser: BrowserClient
        ftp: FTPClient
        grpc: GRPCClient
        graphql: GraphQLClient
        graphqlh2: GraphQLClient
        mysql: MySQLClient
        kafka: KafkaClient
        mongodb: MongoDBClient
        mqtt: MQTTClient
        nats: NATSClient
        postgres: PostgresClient
        http2: HTTP2Client
        http3: HTTP3Client
        rabbitmq: RabbitMQClient
        redis: RedisClient
        scp: SCPClient
        sftp: SFTPClient
        smtp: SMTPClient
        sse: SSEClient
        tcp: TCPClient
        udp: UDPClient
        websocket: WebSocketClient

    def __init__(self, pool: ClientPool, http: HTTPClient) -> None:
        self._pool = pool
        self.http = http

    def close(self) -> None:
        self.http.close()
        for client in self.__dict__.values():
            client.close()


class _FirstUse:
    """A protocol that a user has not used yet; its client then stands in its place."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, client: Client, owner: object) -> ProtocolClient[Any]:
        pool = client._pool.protocol(self._name)
        # A protocol that goes by other clients of the user is given the user.
        of_user = getattr(pool, "client_of", None)
        made: ProtocolClient[Any] = pool.client() if of_user is None else of_user(client)
        setattr(client, self._name, made)
        return made


def _first_uses(names: Iterable[str]) -> dict[str, Any]:
    return {"__slots__": (), **{name: _FirstUse(name) for name in names}}


# Not by __getattr__, which would make `self.client.http` slower for everybody.
for _name in PROTOCOLS:
    setattr(Client, _name, _FirstUse(_name))


class ClientPool:
    def __init__(
        self,
        http: HTTPOptions,
        rps: float = 0.0,
        own: Mapping[str, type[ProtocolPool]] = MappingProxyType({}),
        browser: BrowserOptions | None = None,
    ) -> None:
        """`rps`: the most requests per second of all users together; 0: as many as they make.
        `own`: protocols of the test itself, which come before ours of the same name."""
        self._options = http
        self._browser = browser
        self._network = Network(http)
        self._limit = RequestLimit(rps) if rps else None
        self._protocols: dict[str, Any] = {}
        self._http, self._http_client = self._http_of(http)
        self._own = own
        self._client: type[Client] = type("Client", (Client,), _first_uses(own)) if own else Client
        self._trace: Callable[[Any], None] | None = None
        self._traced = False

    def _http_of(self, options: HTTPOptions) -> tuple[HTTPPool, Callable[[], HTTPClient]]:
        if options.version != "auto":
            pool = HTTPPool(options, self._network)
            return pool, partial(HTTPClient, pool, self._limit)
        from hyperscale.clients.http2.auto import AutoClient, EitherPool, EitherRequest

        pool = HTTPPool(options, self._network, EitherRequest)
        streams = self._protocols["auto"] = EitherPool(
            options, self._network, partial(self._protocols.__setitem__, "elsewhere")
        )
        return pool, partial(AutoClient, pool, streams, self._limit)

    @property
    def trace(self) -> Callable[[Any], None] | None:
        """Called with every finished exchange, redirects included."""
        return self._trace

    @trace.setter
    def trace(self, trace: Callable[[Any], None] | None) -> None:
        self._trace = trace
        for pool in self._pools():
            pool.trace = trace

    def propagate(self) -> None:
        """From now on HTTP requests of sampled steps bear a `traceparent`."""
        self._traced = True
        for pool in self._pools():
            if isinstance(pool, OriginPool):
                pool.traced = True

    def protocol(self, name: str) -> ProtocolPool:
        made: Any = self._protocols.get(name)
        if made is None:
            kind = self._own.get(name)
            if kind is None:
                module, pool, _ = PROTOCOLS[name]
                kind = getattr(importlib.import_module(module), pool)
            made = self._protocols[name] = kind(self._options, self._network, self._limit)
            made.trace = self._trace
            if isinstance(made, OriginPool):
                made.traced = self._traced
            made.stopped = self._http.stopped
            if self._browser is not None and name == "browser":
                made.browser_options = self._browser
        found: ProtocolPool = made
        return found

    def _pools(self) -> list[HTTPPool | ProtocolPool]:
        return [self._http, *self._protocols.values()]

    async def start(self, kinds: Iterable[str]) -> None:
        """What these protocols need is there before the clock starts."""
        for kind in kinds:
            if kind in PROTOCOLS or kind in self._own:
                await self.protocol(kind).start()

    async def prepare(self, argument: OptimizedArgument) -> None:
        """Resolve, read and encode before the clock starts."""
        match argument:
            case URL():
                await self._pool_of(argument).prepare(argument)
            case Headers():
                argument.lines()
            case Params():
                argument.query()
            case Data():
                argument.body()
            case File():
                of_file(argument)
            case FileGlob():
                for _, file in argument.files():
                    of_file(file)
            case Auth():
                argument.header()
            case Protos():
                argument.descriptors()
            case Email():
                argument.message()

    def _pool_of(self, url: URL) -> HTTPPool | ProtocolPool:
        scheme = str(url).partition("://")[0]
        for name, pool in self._own.items():
            if scheme in pool.schemes:
                return self.protocol(name)
        for name, (_, _, schemes) in PROTOCOLS.items():
            if scheme in schemes:
                return self.protocol(name)
        return self._http

    def client(self) -> Client:
        return self._client(self, self._http_client())

    def sweep(self, now: float) -> None:
        """End calls past their deadline. The pool does so by itself; calling it is harmless."""
        self._http.sweep(now)

    def moves_by(self, now: float) -> float:
        """When the first call in flight must have ended, or one that waits for the limit of
        requests begins; inf: there is none."""
        limited = math.inf if self._limit is None else self._limit.due(now)
        return min(limited, *(pool.ends_by(now) for pool in self._pools()))

    def cancel_all(self) -> None:
        """End all calls in flight as cancelled; calls made afterwards end the same way."""
        for pool in self._pools():
            pool.cancel_all()

    async def finish(self, seconds: float) -> None:
        """No more calls: those in flight may end within that time, then they are cut off."""
        await asyncio.gather(*(pool.finish(seconds) for pool in self._pools()))

    async def close(self) -> None:
        for pool in self._pools():
            await pool.close()
