"""SMTP by aiosmtplib: mails to one or several recipients, with STARTTLS or TLS and a login.

The socket is opened by us, so that hosts, local addresses and Happy Eyeballs are as of HTTP. A
virtual user keeps its connection, and sends one mail after another on it.
"""

from __future__ import annotations

import asyncio
import ssl
from itertools import count
from time import perf_counter
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.net import failures
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.email import Email
from hyperscale.workload.replies import SMTPResponse
from hyperscale.workload.results import Connect, Outcome

_STARTTLS = {"auto": None, "require": True, "never": False}
_numbers = count(1)


class SMTPPool(AddressPool):
    kind = "smtp"
    schemes: ClassVar = {"smtp": False, "smtps": True}
    ports: ClassVar = {"smtp": (False, 25), "smtps": (True, 465)}

    def __init__(self, *args: Any) -> None:
        self.library = library("aiosmtplib", "smtp")
        super().__init__(*args)
        self.addresses = Services(self.network, self.ports)

    def client(self) -> SMTPClient:
        return SMTPClient(self)


class Session:
    __slots__ = ("library", "turn")

    def __init__(self, made: Any) -> None:
        self.library = made
        self.turn = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return bool(self.library.is_connected)

    def shut(self) -> None:
        self.library.close()


class SMTPClient(AddressClient[SMTPPool, Session, SMTPResponse]):
    response = SMTPResponse

    async def send(
        self,
        address: str | URL,
        email: Email | dict[str, Any],
        *,
        timeout: Any = None,
        name: str | None = None,
    ) -> SMTPResponse:
        """Send a mail. It fails if the server refuses one of its recipients."""
        sender, recipients, content = Email.of(email).message()
        message = b"Message-ID: <%d.%d@hyperscale>\r\n%b" % (next(_numbers), id(self), content)
        errors = self._pool.library

        async def talk(session: Session, call: Call, answer: SMTPResponse) -> None:
            async with session.turn:
                call.begin()
                try:
                    refused, told = await session.library.sendmail(sender, recipients, message)
                except errors.SMTPRecipientsRefused as error:
                    refused, told = {one.recipient: one for one in error.recipients}, ""
                except errors.SMTPServerDisconnected as error:
                    raise _closed(answer.target, error) from error
                except errors.SMTPResponseException as error:
                    answer.status = error.code
                    answer.refused(f"{error.code} {error.message}")
                    refused, told = {}, error.message
                now = perf_counter()
                call.written += len(message)
                call.got(len(told), now, now)
            answer.content = told.encode()
            answer.refused_recipients = {one: f"{r.code} {r.message}" for one, r in refused.items()}
            for one, reply in refused.items():
                answer.status = reply.code
                answer.refused(f"{reply.code} {reply.message} ({one})")
                break
            if answer.ok:
                answer.status = 250

        return await self._on("SEND", address, talk, timeout, name, message)

    async def _open(self, endpoint: Endpoint, call: Call) -> Session:
        pool, service = self._pool, cast(Service, endpoint)
        mode = service.query.get("starttls", "auto")
        if mode not in _STARTTLS:
            raise BadInput(f"starttls is {mode!r} but must be one of {', '.join(_STARTTLS)}")
        network, where, errors = pool.network, service.authority, pool.library
        began = perf_counter()
        try:
            addresses = await network.addresses(service, where)
            resolved = perf_counter()
            sock = await network.reach(service, addresses)
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, where) from error
        connected = perf_counter()
        made = errors.SMTP(
            hostname=service.server_name,
            sock=sock,
            port=None,
            use_tls=service.secure,
            start_tls=_STARTTLS[mode] if not service.secure else False,
            tls_context=pool.tls.context(service.host),
            local_hostname="hyperscale",
            timeout=None,
        )
        try:
            await made.connect()
            if service.user:
                await made.login(service.user, service.password)
        except BaseException as error:
            if made.transport is None:
                sock.close()
            else:  # the socket is its own: closed by us, its number would be another's too soon
                made.transport.abort()
            raise self._refused(error, where) from error
        call.connect = Connect(resolved - began, connected - resolved, perf_counter() - connected)
        return Session(made)

    def _refused(self, error: BaseException, where: str) -> BaseException:
        errors = self._pool.library
        cause = error.__cause__ or error.__context__
        for one in (error, cause):
            if isinstance(one, ssl.SSLError):
                return failures.of_handshake(one, where)
        if isinstance(error, errors.SMTPResponseException):
            if error.code <= 0:
                return Failure(Outcome.PROTOCOL, f"{where} does not speak SMTP: {error.message}")
            return Failure(Outcome.STATUS, f"{where} refused: {error.code} {error.message}")
        if isinstance(error, errors.SMTPServerDisconnected | ConnectionError):
            return _closed(where, error)
        if isinstance(error, errors.SMTPException):
            return Failure(Outcome.PROTOCOL, f"{where}: {error}")
        return error


def _closed(where: str, error: BaseException) -> Failure:
    return Failure(Outcome.RESET, f"{where} closed the connection: {error}")
