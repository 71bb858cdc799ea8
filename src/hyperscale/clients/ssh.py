"""SFTP and SCP by asyncssh, on our sockets.

A virtual user keeps one connection to each address, and its calls share it. SCP itself is spoken
here, on a channel of its own for each call: asyncssh's goes to files of this machine only.
"""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import PurePosixPath
from time import perf_counter
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.file_transfer import PIECE_BYTES, FileClient, FolderClient, Pieces, Sent
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.per_address import AddressPool
from hyperscale.workload.files import locate
from hyperscale.workload.replies import FileResponse, SCPResponse, SFTPResponse
from hyperscale.workload.results import Connect, Outcome

LINE_BYTES_MAX = 64 * 1024  # of what the other side of SCP says; a path has 4,096


class SSHPool(AddressPool):
    def __init__(self, *args: Any) -> None:
        self.asyncssh = library("asyncssh", self.kind)
        super().__init__(*args)
        self.addresses = Services(self.network, {self.kind: (False, 22)})

    async def open(self, service: Service, call: Call) -> Any:
        """A connection that is logged in. Raises Failure."""
        network, where = self.network, service.authority
        began = perf_counter()
        try:
            addresses = await network.addresses(service, where)
            resolved = perf_counter()
            sock = await network.reach(service, addresses)
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, where) from error
        connected = perf_counter()
        made: list[Any] = []

        class Client(self.asyncssh.SSHClient):  # type: ignore[misc, name-defined]
            def connection_made(self, connection: Any) -> None:
                made.append(connection)

        try:
            connection = await self.asyncssh.connect(
                service.host,
                service.port,
                sock=sock,
                client_factory=Client,
                config=None,  # what is in the home of this machine is no part of the test
                agent_path=None,
                known_hosts=self._known_hosts(service),
                username=service.user or "anonymous",
                password=service.password or None,
                client_keys=[str(locate(service.query["key"]))] if "key" in service.query else None,
                login_timeout=0,
                connect_timeout=None,
            )
        except BaseException as error:
            if made:
                made[0].abort()
            else:
                sock.close()
            if isinstance(error, Exception):
                raise self._refusal(error, where) from error
            raise
        call.connect = Connect(resolved - began, connected - resolved, perf_counter() - connected)
        return connection

    def _known_hosts(self, service: Service) -> Any:
        if "known_hosts" in service.query:
            return str(locate(service.query["known_hosts"]))
        return () if self.options.verify else None

    def _refusal(self, error: Exception, where: str) -> Exception:
        ssh = self.asyncssh
        if isinstance(error, ssh.PermissionDenied):
            return Failure(Outcome.STATUS, f"{where} refused the login: {error}")
        if isinstance(error, ssh.HostKeyNotVerifiable):
            hint = "name it with ?known_hosts=FILE, or pass --insecure-skip-tls-verify"
            return Failure(Outcome.TLS, f"the host key of {where} is not known here; {hint}")
        return self.failure(error, where) or error

    def failure(self, error: Exception, where: str = "the server") -> Failure | None:
        ssh = self.asyncssh
        lost = (ssh.ConnectionLost, ssh.SFTPConnectionLost, ssh.SFTPNoConnection, ConnectionError)
        if isinstance(error, (*lost, EOFError)):
            return Failure(Outcome.RESET, f"{where} closed the connection: {error}")
        if isinstance(error, ssh.ChannelOpenError):
            return Failure(Outcome.STATUS, f"{where} opened no channel: {error}")
        if isinstance(error, ssh.Error | ValueError | UnicodeError):
            return Failure(Outcome.PROTOCOL, f"{where} does not keep to SSH: {error}")
        return super().failure(error)


class SFTPPool(SSHPool):
    kind = "sftp"
    schemes: ClassVar = {"sftp": False}

    def client(self) -> SFTPClient:
        return SFTPClient(self)


class SCPPool(SSHPool):
    kind = "scp"
    schemes: ClassVar = {"scp": False}

    def client(self) -> SCPClient:
        return SCPClient(self)


R = TypeVar("R", bound=FileResponse)


class Connection(Generic[R]):
    """Calls share it: both protocols tell their answers apart."""

    turn = nullcontext()

    def __init__(self, pool: SSHPool, connection: Any) -> None:
        self._ssh = pool.asyncssh
        self._connection = connection

    @property
    def is_open(self) -> bool:
        return not self._connection.is_closed()

    def shut(self) -> None:
        self._connection.abort()


class SFTPSession(Connection[SFTPResponse]):
    def __init__(self, pool: SSHPool, connection: Any, sftp: Any) -> None:
        super().__init__(pool, connection)
        self._sftp = sftp

    async def names(self, path: str, call: Call, answer: SFTPResponse, most: int) -> list[str]:
        call.begin()
        pieces = Pieces(call, answer.target, most)
        found: list[str] = []
        try:
            async for entry in self._sftp.scandir(path):
                if entry.filename not in (".", ".."):
                    found.append(entry.filename)
                    pieces.add(entry.filename.encode("utf-8", "replace"))
        except self._ssh.SFTPError as error:
            self._refused(answer, error)
        pieces.end()
        return found

    async def read(self, path: str, call: Call, answer: SFTPResponse, most: int) -> bytes:
        call.begin()
        pieces = Pieces(call, answer.target, most)
        try:
            async with self._sftp.open(path, "rb") as file:
                call.wrote(len(path))
                while piece := await file.read(PIECE_BYTES):
                    pieces.add(piece)
        except self._ssh.SFTPError as error:
            self._refused(answer, error)
        return pieces.end()

    async def write(self, path: str, sent: Sent, call: Call, answer: SFTPResponse) -> None:
        call.begin()
        try:
            for name, content in sent:
                place = f"{path}/{name}" if name else path
                if "/" in name:
                    await self._sftp.makedirs(str(PurePosixPath(place).parent), exist_ok=True)
                async with self._sftp.open(place, "wb") as file:
                    for at in range(0, len(content), PIECE_BYTES):
                        await file.write(content[at : at + PIECE_BYTES])
                    call.wrote(len(content))
        except self._ssh.SFTPError as error:
            self._refused(answer, error)

    async def remove(self, path: str, call: Call, answer: SFTPResponse) -> None:
        call.begin()
        try:
            await self._sftp.remove(path)
        except self._ssh.SFTPError as error:
            self._refused(answer, error)

    def _refused(self, answer: SFTPResponse, error: Any) -> None:
        ssh = self._ssh
        if isinstance(error, ssh.SFTPConnectionLost | ssh.SFTPNoConnection | ssh.SFTPBadMessage):
            raise error
        answer.status = error.code
        word = type(error).__name__.removeprefix("SFTP")
        answer.refused(f"{word} {error.reason}"[:1000], word)


class SFTPClient(FolderClient[SFTPPool, SFTPSession, SFTPResponse]):
    response = SFTPResponse

    async def _open(self, endpoint: Endpoint, call: Call) -> SFTPSession:
        connection = await self._pool.open(cast(Service, endpoint), call)
        try:
            sftp = await connection.start_sftp_client()
        except BaseException:
            connection.abort()
            raise
        return SFTPSession(self._pool, connection, sftp)


class SCPSession(Connection[SCPResponse]):
    async def read(self, path: str, call: Call, answer: SCPResponse, most: int) -> bytes:
        async with self._channel(f"scp -f {shlex.quote(path)}") as channel:
            call.begin()
            pieces = Pieces(call, answer.target, most)
            channel.stdin.write(b"\0")
            call.wrote(1)
            line = await self._said(channel, answer)
            while line[:1] == b"T":  # times, which nobody asked for
                channel.stdin.write(b"\0")
                line = await self._said(channel, answer)
            if not answer.ok:
                return pieces.end()
            left = _size_of(line, answer.target)
            if left > most:
                raise Failure(Outcome.PROTOCOL, f"{answer.target} has a file of {left} bytes")
            channel.stdin.write(b"\0")
            while left:
                piece = await channel.stdout.read(min(left, PIECE_BYTES))
                if not piece:
                    raise Failure(Outcome.RESET, f"{answer.target} ended in the middle of a file")
                left -= len(piece)
                pieces.add(piece)
            await self._agreed(channel, answer)
            channel.stdin.write(b"\0")
            return pieces.end()

    async def write(self, path: str, sent: Sent, call: Call, answer: SCPResponse) -> None:
        several = bool(sent[0][0])
        command = f"scp {'-r ' if several else ''}-t {shlex.quote(path)}"
        async with self._channel(command) as channel:
            call.begin()
            await self._agreed(channel, answer)
            inside: tuple[str, ...] = ()
            for name, content in sent:
                *folders, last = PurePosixPath(name or PurePosixPath(path).name).parts
                for line in _moves(inside, tuple(folders)):
                    await self._tell(channel, answer, line)
                inside = tuple(folders)
                await self._tell(channel, answer, f"C0644 {len(content)} {last}")
                if not answer.ok:
                    return
                for at in range(0, len(content), PIECE_BYTES):
                    channel.stdin.write(content[at : at + PIECE_BYTES])
                    await channel.stdin.drain()
                channel.stdin.write(b"\0")
                call.wrote(len(content))
                await self._agreed(channel, answer)
            now = perf_counter()
            call.got(len(sent), now, now)

    def _channel(self, command: str) -> Any:
        return self._connection.create_process(command, encoding=None)

    async def _tell(self, channel: Any, answer: SCPResponse, line: str) -> None:
        if answer.ok:
            channel.stdin.write(f"{line}\n".encode())
            await self._agreed(channel, answer)

    async def _agreed(self, channel: Any, answer: SCPResponse) -> None:
        if answer.ok:
            said = await channel.stdout.read(1)
            if said != b"\0":
                await self._complaint(said, channel, answer)

    async def _said(self, channel: Any, answer: SCPResponse) -> bytes:
        """The next line; b"" where the server refuses."""
        said: bytes = await channel.stdout.read(1)
        if said in (b"", b"\1", b"\2"):
            await self._complaint(said, channel, answer)
            return b""
        return said + await _line(channel.stdout, answer.target)

    async def _complaint(self, said: bytes, channel: Any, answer: SCPResponse) -> None:
        if said in (b"\1", b"\2"):
            text = await _line(channel.stdout, answer.target)
        elif said:
            text = said + await _line(channel.stdout, answer.target)
            _not_scp(answer.target, text)
        else:
            text = await channel.stderr.read(LINE_BYTES_MAX)
            if not text and channel.exit_status is None and not self.is_open:
                raise Failure(Outcome.RESET, f"{answer.target} closed the connection")
        words = text.decode("utf-8", "replace").strip() or "it ended without a word"
        answer.status = channel.exit_status or 1
        answer.refused(words[:1000], "scp")


class SCPClient(FileClient[SCPPool, SCPSession, SCPResponse]):
    response = SCPResponse

    async def _open(self, endpoint: Endpoint, call: Call) -> SCPSession:
        return SCPSession(self._pool, await self._pool.open(cast(Service, endpoint), call))


async def _line(reader: Any, where: str) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = await reader.read(1)
        if not piece:
            break
        line += piece
        if len(line) > LINE_BYTES_MAX:
            _not_scp(where, line)
    return line


def _size_of(line: bytes, where: str) -> int:
    words = line.split(b" ", 2)
    if len(words) != 3 or words[0][:1] != b"C" or not words[1].isdigit():
        _not_scp(where, line)
    return int(words[1])


def _not_scp(where: str, line: bytes) -> NoReturn:
    raise Failure(Outcome.PROTOCOL, f"{where} sent something that is not SCP: {line[:60]!r}")


def _moves(inside: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    """From one folder to another: out of those that are not on the way, then in."""
    common = 0
    while common < min(len(inside), len(wanted)) and inside[common] == wanted[common]:
        common += 1
    return ["E"] * (len(inside) - common) + [f"D0755 0 {name}" for name in wanted[common:]]
