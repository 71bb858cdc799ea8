"""SMTP: a real server, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.email import Email
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.mailbox import mailbox

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import free_port, user

MAIL = {"from": "Me <me@shop.example>", "to": "you@shop.example", "subject": "Grüße", "text": "hi"}


def test_mails_and_their_recipients(run: Run) -> None:
    async def go() -> None:
        with mailbox() as box:
            async with user() as (vu, scope, _):
                url = f"smtp://127.0.0.1:{box.port}"
                mail = Email(
                    {
                        **MAIL,
                        "cc": ["c@shop.example"],
                        "bcc": ["hidden@shop.example"],
                        "html": "<b>hi</b>",
                        "headers": {"X-Run": "7"},
                        "attachments": {"a.bin": b"\x00\x01"},
                    }
                )
                got = [await vu.smtp.send(url, mail) for _ in range(3)]
                assert [(one.ok, one.status, one.text()) for one in got] == [
                    (True, 250, "kept")
                ] * 3
                both = await asyncio.gather(vu.smtp.send(url, MAIL), vu.smtp.send(url, MAIL))
                assert all(one.ok for one in both)
                assert scope.connects == 1
                assert len(scope.noted) == len(box.mails) == 5
                assert all(row[-1] > 100 for row in scope.rows)
            first = message_from_bytes(box.mails[0].original_content or b"")
            assert box.mails[0].rcpt_tos == [
                "you@shop.example",
                "c@shop.example",
                "hidden@shop.example",
            ]
            assert box.mails[0].mail_from == "me@shop.example"
            assert "hidden" not in str(first)
            assert [part.get_content_type() for part in first.walk()][-1] == (
                "application/octet-stream"
            )
            assert (
                len(
                    {message_from_bytes(m.original_content or b"")["Message-ID"] for m in box.mails}
                )
                == 5
            )

    run(go())


def test_refusals_are_the_servers_own_words(run: Run) -> None:
    async def go() -> None:
        with mailbox() as box:
            async with user() as (vu, scope, _):
                url = f"smtp://127.0.0.1:{box.port}"
                some = await vu.smtp.send(url, {**MAIL, "cc": "nobody@shop.example"})
                assert (some.outcome, some.status) == (Outcome.STATUS, 550)
                assert some.refused_recipients == {"nobody@shop.example": "550 no such user here"}
                none = await vu.smtp.send(url, {**MAIL, "to": "nobody@shop.example"})
                assert "550 no such user here" in none.error
                spam = await vu.smtp.send(url, {**MAIL, "text": "spam"})
                assert (spam.status, spam.error) == (554, "554 we do not like this")
                assert (await vu.smtp.send(url, MAIL)).ok
                assert scope.connects == 1
                assert len(scope.failures) == 3

    run(go())


def test_starttls_and_logins(run: Run, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.server(authority.issue("localhost"))

    async def go() -> None:
        with mailbox(tls=tls, password="right") as box:
            where = f"127.0.0.1:{box.port}"
            async with client(ca=authority.ca) as vu:
                good = await vu.smtp.send(f"smtp://me:right@{where}?starttls=require", MAIL)
                assert good.ok, good.error
                assert good.connect is not None
                assert good.connect.tls_s > 0
                bad = await vu.smtp.send(f"smtp://me:wrong@{where}", MAIL)
                assert (bad.outcome, "535" in bad.error) == (Outcome.STATUS, True)
                never = await vu.smtp.send(f"smtp://{where}?starttls=never", MAIL)
                assert (never.outcome, never.status) == (Outcome.STATUS, 530), never.error
            async with client() as vu:
                got = await vu.smtp.send(f"smtp://me:right@{where}", MAIL)
                assert got.outcome is Outcome.TLS, got.error
                assert "certificate of 127.0.0.1" in got.error
                whole = await vu.smtp.send(f"smtps://{where}", MAIL, timeout=2)
                assert whole.outcome in (Outcome.TLS, Outcome.TIMEOUT), whole.error
        with mailbox() as box:
            async with client() as vu:
                where = f"smtp://127.0.0.1:{box.port}?starttls=require"
                got = await vu.smtp.send(where, MAIL)
                assert got.outcome in (Outcome.TLS, Outcome.PROTOCOL)
                assert "STARTTLS" in got.error

    run(go())


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


async def dies(peer: Peer) -> None:
    await peer.send(b"220 hello\r\n")
    while line := await peer.reader.readline():
        if line.startswith(b"DATA"):
            return
        await peer.send(b"250 yes\r\n")


async def endless(peer: Peer) -> None:
    await peer.send(b"220-" + b"x" * 100_000)
    while True:
        await peer.send(b"x" * 60_000)


@pytest.mark.parametrize(
    ("handler", "outcome", "what"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), {Outcome.PROTOCOL}, "SMTP"),
        (says(b"554 go away\r\n", stays=True), {Outcome.STATUS}, "554 go away"),
        (says(b""), {Outcome.RESET}, "closed the connection"),
        (says(b"220 hel"), {Outcome.RESET}, "closed the connection"),
        (says(stays=True), {Outcome.TIMEOUT}, "no answer"),
        (dies, {Outcome.RESET}, "closed the connection"),
        (endless, {Outcome.PROTOCOL, Outcome.TIMEOUT}, "."),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, outcome: set[Outcome], what: str
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user() as (vu, scope, _):
            got = await vu.smtp.send(f"smtp://127.0.0.1:{server.port}", MAIL, timeout=0.5)
            assert got.outcome in outcome, (got.outcome, got.error)
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


def test_nobody_listens(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            got = await vu.smtp.send(f"smtp://127.0.0.1:{free_port()}", MAIL)
            assert got.outcome is Outcome.REFUSED
            with pytest.raises(CallFailed):
                got.text()

    run(go())


@pytest.mark.parametrize(
    ("mail", "reason"),
    [
        ("hello", "Email takes a dict"),
        ({"to": "a@b.example"}, "Email takes a dict"),
        ({"from": "a@b.example"}, "no recipient"),
        ({**MAIL, "body": "x"}, "a mail has 'body'"),
        ({**MAIL, "subject": "a\nb"}, "cannot be written"),
        ({**MAIL, "from": "a@b.example, c@d.example"}, "not one address"),
        ({**MAIL, "attachments": {"a": 5}}, "cannot be written"),
    ],
)
def test_what_the_author_got_wrong(run: Run, mail: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.smtp.send("smtp://127.0.0.1:1", mail)

    run(go())
