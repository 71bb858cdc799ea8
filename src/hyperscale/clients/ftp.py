"""FTP by aioftp, with our sockets: passive transfers, TLS from the start (`ftps://`) or after AUTH
TLS (`ftp://...?tls=require`).

A virtual user keeps its control connection; every transfer opens a data connection, which is the
phase `write` of a request.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import PurePosixPath
from time import perf_counter
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.file_transfer import PIECE_BYTES, FolderClient, Pieces, Sent
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.per_address import AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.replies import FTPResponse
from hyperscale.workload.results import Connect, Outcome

REPLY_LINES_MAX = 1_000  # of one reply: a server may go on for ever
_TLS = ("require", "never")


class FTPPool(AddressPool):
    kind = "ftp"
    schemes: ClassVar = {"ftp": False, "ftps": True}
    ports: ClassVar = {"ftp": (False, 21), "ftps": (True, 990)}

    def __init__(self, *args: Any) -> None:
        self.library = library("aioftp", "ftp")
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)
        self.connection = _connection_class(self.library)

    def client(self) -> FTPClient:
        return FTPClient(self)

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, ConnectionError | EOFError):
            return Failure(Outcome.RESET, f"the server closed the connection: {error}")
        if isinstance(error, ValueError):  # a line without an end, text that is none
            return Failure(Outcome.PROTOCOL, f"the server sent something that is not FTP: {error}")
        return super().failure(error)


class Session:
    """A control connection."""

    def __init__(self, pool: FTPPool, connection: Any) -> None:
        self.turn = asyncio.Lock()
        self._connection = connection
        self._refusal = pool.library.StatusCodeError

    @property
    def is_open(self) -> bool:
        return not self._connection.stream.writer.is_closing()

    def shut(self) -> None:
        self._connection.abort_all()

    async def names(self, path: str, call: Call, answer: FTPResponse, most: int) -> list[str]:
        connection = self._connection
        folder = "" if path == "." else f" {path}"
        parse = connection.parse_mlsx_line
        content = await self._download(f"MLSD{folder}", call, answer, most)
        if not answer.ok and answer.status in (500, 502):  # what servers say of a word they miss
            answer.accept()
            parse = connection.parse_list_line
            content = await self._download(f"LIST{folder}", call, answer, most)
        found = [parse(line) for line in content.splitlines()]
        return [str(name) for name, info in found if info["type"] not in ("cdir", "pdir")]

    async def read(self, path: str, call: Call, answer: FTPResponse, most: int) -> bytes:
        return await self._download(f"RETR {path}", call, answer, most)

    async def _download(self, command: str, call: Call, answer: FTPResponse, most: int) -> bytes:
        pieces = Pieces(call, answer.target, most)
        call.begin()
        try:
            stream = await self._connection.get_stream(command, "1xx")
            call.wrote(len(command) + 2)
            async for piece in stream.iter_by_block(PIECE_BYTES):
                pieces.add(piece)
            await stream.finish()
        except self._refusal as error:
            self._refused(answer, error)
        answer.status = self._connection.code
        return pieces.end()

    async def write(self, path: str, sent: Sent, call: Call, answer: FTPResponse) -> None:
        call.begin()
        try:
            for name, content in sent:
                place = f"{path}/{name}" if name else path
                if name:
                    await self._make_folders(path, name)
                stream = await self._connection.get_stream(f"STOR {place}", "1xx")
                for at in range(0, len(content), PIECE_BYTES):
                    await stream.write(content[at : at + PIECE_BYTES])
                call.wrote(len(content))
                await stream.finish()
        except self._refusal as error:
            self._refused(answer, error)
        self._answered(call, answer)

    async def _make_folders(self, path: str, name: str) -> None:
        for folder in reversed(PurePosixPath(name).parents[:-1]):
            with suppress(self._refusal):  # most are there; one that cannot be made fails the file
                await self._connection.command(f"MKD {path}/{folder}", "257")

    async def remove(self, path: str, call: Call, answer: FTPResponse) -> None:
        call.begin()
        try:
            await self._connection.command(f"DELE {path}", "2xx")
        except self._refusal as error:
            self._refused(answer, error)
        call.wrote(len(path) + 7)
        self._answered(call, answer)

    def _refused(self, answer: FTPResponse, error: Any) -> None:
        self._connection.close_data()
        answer.refused(_said(error))

    def _answered(self, call: Call, answer: FTPResponse) -> None:
        answer.status = self._connection.code
        now = perf_counter()
        call.got(self._connection.reply_bytes, now, now)


class FTPClient(FolderClient[FTPPool, Session, FTPResponse]):
    response = FTPResponse

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        mode = service.query.get("tls", "never")
        if mode not in _TLS:
            raise BadInput(f"tls is {mode!r} but must be one of {', '.join(_TLS)}")
        network, where = pool.network, service.authority
        began = perf_counter()
        try:
            addresses = await network.addresses(service, where)
            resolved = perf_counter()
            sock = await network.reach(service, addresses)
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, where) from error
        connected = perf_counter()
        made = pool.connection(network, service, sock)
        context = pool.tls.context(service.host)
        try:
            if service.secure:
                made.ssl = context
            await made.connect(service.server_name, service.port)
            if service.secure:
                await made._send_tls_protection_commands()
            elif mode == "require":
                await made.upgrade_to_tls(context)
            await made.login(service.user or "anonymous", service.password or "anonymous@")
        except BaseException as error:
            made.abort_all()
            raise _refusal(pool, error, where) from error
        call.connect = Connect(resolved - began, connected - resolved, perf_counter() - connected)
        return Session(pool, made)


def _refusal(pool: FTPPool, error: BaseException, where: str) -> BaseException:
    if isinstance(error, ssl.SSLError):
        return failures.of_handshake(error, where)
    if isinstance(error, pool.library.StatusCodeError):
        return Failure(Outcome.STATUS, f"{where} refused: {_said(error)}")
    if isinstance(error, ConnectionError):
        return Failure(Outcome.RESET, f"{where} closed the connection: {error}")
    if isinstance(error, ValueError):
        return Failure(Outcome.PROTOCOL, f"{where} does not speak FTP: {error}")
    return error


def _said(error: Any) -> str:
    return f"{error.received_codes[-1]} {' '.join(error.info).strip()}"[:1000]


def _connection_class(aioftp: Any) -> Any:
    class Connection(aioftp.Client):  # type: ignore[misc]
        """aioftp's, on sockets of ours, with replies that have an end."""

        def __init__(self, network: Any, service: Service, sock: Any) -> None:
            super().__init__()
            self.code = self.reply_bytes = 0
            self._network = network
            self._service = service
            self._control: Any = sock
            self._address = sock.getpeername()[0]
            self._data: asyncio.StreamWriter | None = None

        async def _open_connection(self, host: str, port: int) -> Any:
            service, context = self._service, self.ssl
            if self._stream is None:
                sock, self._control = self._control, None
            else:
                endpoint = Endpoint(self._address, port, False, None, self._network.hosts)
                sock = await self._network.reach(endpoint, [self._address])
                secured = self._stream.writer.transport.get_extra_info("ssl_object")
                if secured is not None:  # servers ask for the session of the control connection
                    context = aioftp.client.SSLSessionBoundContext(
                        ssl.PROTOCOL_TLS_CLIENT, context=secured.context, session=secured.session
                    )
            made = await asyncio.open_connection(
                sock=sock, ssl=context, server_hostname=service.server_name if context else None
            )
            if self._stream is not None:
                self._data = made[1]
            return made

        async def parse_response(self) -> Any:
            code, rest = await self.parse_line()
            lines = [rest]
            if not code.isdigit() or len(code) != 3:
                raise ValueError(f"{code}{rest}"[:80])
            end = code
            while rest.startswith("-") or end != code:
                end, rest = await self.parse_line()
                lines.append(rest if end == code else end + rest)
                if len(lines) > REPLY_LINES_MAX:
                    raise ValueError(f"a reply of more than {REPLY_LINES_MAX} lines")
            self.code = int(code)
            self.reply_bytes = sum(map(len, lines))
            return code, lines

        def close_data(self) -> None:
            if self._data is not None:
                self._data.transport.abort()
                self._data = None

        def abort_all(self) -> None:
            self.close_data()
            if self._control is not None:
                self._control.close()
            elif self._stream is not None:
                self._stream.writer.transport.abort()

    return Connection
