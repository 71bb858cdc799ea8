"""FTP, SFTP and SCP: real servers, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import File
from hyperscale.workload.folders import Directory, FileGlob
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.file_servers import ftp_server, ssh_server

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import free_port, user

KINDS = ("ftp", "sftp", "scp")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def urls(root: Path) -> Iterator[dict[str, str]]:
    with ftp_server(root) as ftp, ssh_server(root) as (ssh, _):
        yield {
            kind: f"{kind}://me:secret@127.0.0.1:{ftp if kind == 'ftp' else ssh}" for kind in KINDS
        }


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(root: Path, kind: str, tmp_path: Path) -> str:
    made = root / tmp_path.name
    made.mkdir()
    return f"/{made.name}"


def test_files_go_and_come(
    run: Run, urls: dict[str, str], kind: str, folder: str, root: Path, tmp_path: Path
) -> None:
    big = bytes(range(256)) * 4096
    (tmp_path / "sent.bin").write_bytes(big)

    async def go() -> None:
        async with user(verify=False) as (vu, scope, _):
            files, url = getattr(vu, kind), urls[kind]
            put = await files.put(url, f"{folder}/a.txt", "grüße")
            assert put.ok, put.error
            assert (root / folder[1:] / "a.txt").read_text() == "grüße"
            assert (await files.put(url, f"{folder}/b.bin", File(tmp_path / "sent.bin"))).ok
            got = await files.get(url, f"{folder}/b.bin")
            assert got.data == big
            assert (got.bytes_in, put.bytes_out) == (len(big), 7)
            assert (await files.get(url, f"{folder}/a.txt")).text() == "grüße"
            if kind != "scp":
                listed = await files.list(url, folder)
                assert listed.names == ["a.txt", "b.bin"]
                assert (await files.delete(url, f"{folder}/a.txt")).ok
                assert (await files.list(url, folder)).names == ["b.bin"]
            assert scope.connects == 1
            assert not scope.failures
            assert {each[0] for each in scope.noted} == {kind}
            for started, sent, first_byte, ended, *_ in scope.rows:
                assert started <= sent <= first_byte <= ended

    run(go())


def test_folders_and_patterns_go_as_they_are(
    run: Run, urls: dict[str, str], kind: str, folder: str, root: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for name in ("x.txt", "in/y.txt", "in/deep/z.csv", "out/w.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)

    async def go() -> None:
        async with client(verify=False) as vu:
            put = await getattr(vu, kind).put(urls[kind], folder, Directory(home))
            assert put.ok, put.error
            assert put.names == ["in/deep/z.csv", "in/y.txt", "out/w.txt", "x.txt"]
            served = root / folder[1:]
            for name in put.names:
                assert (served / name).read_text() == name
            again = await getattr(vu, kind).put(urls[kind], folder, FileGlob(home / "**/*.txt"))
            assert again.names == ["in/y.txt", "out/w.txt", "x.txt"]

    run(go())


def test_refusals_are_the_servers_own_words(
    run: Run, urls: dict[str, str], kind: str, folder: str
) -> None:
    words = {
        "ftp": ("550", ""),
        "sftp": ("NoSuchFile", "NoSuchFile"),
        "scp": ("No such file", "scp"),
    }

    async def go() -> None:
        async with user(verify=False, max_response_bytes=1000) as (vu, scope, _):
            files, url = getattr(vu, kind), urls[kind]
            none = await files.get(url, f"{folder}/none")
            assert none.outcome is Outcome.STATUS, none.error
            assert words[kind][0] in none.error
            assert none.code == words[kind][1]
            assert none.status
            with pytest.raises(CallFailed):
                none.text()
            nowhere = await files.put(url, f"{folder}/no/where", b"x")
            assert nowhere.outcome is Outcome.STATUS, nowhere.error
            assert (await files.put(url, f"{folder}/long", b"x" * 5000)).ok
            assert scope.connects == 1, "an answer keeps the connection"
            long = await files.get(url, f"{folder}/long")
            assert (long.outcome, long.content) == (Outcome.PROTOCOL, b"")
            assert (await files.put(url, f"{folder}/short", b"x")).ok
            assert scope.connects == 2
            several = await asyncio.gather(*(files.get(url, f"{folder}/short") for _ in range(8)))
            assert all(one.data == b"x" for one in several)
            assert scope.connects == 2
            bad = await files.get(url.replace("secret", "guess"), f"{folder}/short")
            assert bad.outcome is Outcome.STATUS
            assert "refused" in bad.error
            assert "guess" not in bad.error

    run(go())


def test_hosts_are_known_by_their_key(run: Run, root: Path, tmp_path: Path) -> None:
    async def go() -> None:
        with ssh_server(root) as (port, line):
            (tmp_path / "known").write_text(line)
            async with client() as vu:
                where = f"sftp://me:secret@127.0.0.1:{port}"
                assert (await vu.sftp.list(f"{where}?known_hosts={tmp_path}/known")).ok
                unknown = await vu.sftp.list(where)
                assert unknown.outcome is Outcome.TLS
                assert "host key" in unknown.error

    run(go())


def test_ftp_by_list_where_mlsd_is_not_known(run: Run, root: Path) -> None:
    (root / "old").mkdir(exist_ok=True)
    (root / "old" / "one file.txt").write_text("x")

    async def go() -> None:
        with ftp_server(root, words=frozenset({"MLSD"})) as port:
            async with user() as (vu, scope, _):
                got = await vu.ftp.list(f"ftp://me:secret@127.0.0.1:{port}", "/old")
                assert got.names == ["one file.txt"], got.error
                assert not scope.failures

    run(go())


def test_ftp_over_tls(run: Run, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("OpenSSL", reason="pyftpdlib speaks TLS with the package pyopenssl")
    authority = Authority(tmp_path)
    leaf = authority.issue("localhost")

    async def go() -> None:
        with ftp_server(root, tls=leaf) as port:
            where = f"ftp://me:secret@127.0.0.1:{port}"
            async with client(ca=authority.ca) as vu:
                put = await vu.ftp.put(f"{where}?tls=require", "/secure.txt", b"x" * 70_000)
                assert put.ok, put.error
                assert len((await vu.ftp.get(f"{where}?tls=require", "/secure.txt")).data) == 70_000
                plain = await vu.ftp.list(where)
                assert plain.outcome is Outcome.STATUS
                assert "550" in plain.error
            async with client() as vu:
                assert (await vu.ftp.list(f"{where}?tls=require")).outcome is Outcome.TLS
                assert (await vu.ftp.list(f"ftps://127.0.0.1:{port}")).outcome is Outcome.TLS

    run(go())


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


async def endless(peer: Peer) -> None:
    while True:
        await peer.send(b"220-and so on\r\n" * 1000)


BAD: list[tuple[str, Handler, set[Outcome]]] = [
    ("ftp", says(b"HTTP/1.1 400 Bad Request\r\n\r\n", stays=True), {Outcome.PROTOCOL}),
    ("ftp", says(b"SSH-2.0-x\r\n", stays=True), {Outcome.PROTOCOL}),
    ("ftp", says(b"220 hi\r\n\xff\xfe\r\n", stays=True), {Outcome.PROTOCOL}),
    ("ftp", says(b"22"), {Outcome.RESET, Outcome.PROTOCOL}),
    ("ftp", says(), {Outcome.RESET}),
    ("ftp", says(b"220 hi\r\n"), {Outcome.RESET}),
    ("ftp", says(stays=True), {Outcome.TIMEOUT}),
    ("ftp", says(b"421 too many\r\n", stays=True), {Outcome.STATUS}),
    ("ftp", says(b"x" * 200_000, stays=True), {Outcome.PROTOCOL}),
    ("ftp", endless, {Outcome.PROTOCOL}),
    ("ftps", says(b"220 hi\r\n", stays=True), {Outcome.TLS}),
    *((kind, says(), {Outcome.RESET}) for kind in ("sftp", "scp")),
    *((kind, says(stays=True), {Outcome.TIMEOUT}) for kind in ("sftp", "scp")),
    *((kind, says(b"220 hi\r\n"), {Outcome.RESET}) for kind in ("sftp", "scp")),
    ("sftp", says(b"SSH-2.0-x\r\n" + b"\xff" * 100, stays=True), {Outcome.PROTOCOL, Outcome.RESET}),
    ("sftp", says(b"SSH-1.5-x\r\n", stays=True), {Outcome.PROTOCOL}),
    ("sftp", endless, {Outcome.PROTOCOL}),
]


@pytest.mark.parametrize(("scheme", "handler", "outcomes"), BAD)
def test_servers_that_keep_to_nothing(
    run: Run, scheme: str, handler: Handler, outcomes: set[Outcome]
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(connect_timeout=5) as (vu, scope, _):
            files: Any = getattr(vu, "ftp" if scheme == "ftps" else scheme)
            got = await files.get(f"{scheme}://me:x@127.0.0.1:{server.port}", "/a", timeout=1)
            assert got.outcome in outcomes, (got.outcome, got.error)
            assert "127.0.0.1" in got.error
            assert scope.failures == [(got, False)]

    run(go())


@pytest.mark.parametrize("reply", [b"150 here\r\n", b"150 here\r\n426 lost\r\n", b"", b"\xff\r\n"])
def test_an_ftp_server_that_fails_in_a_transfer(run: Run, reply: bytes) -> None:
    """Its data connection is to a port where somebody listens and says half of it."""

    async def go() -> None:
        async with serve(handler=says(b"half")) as data:
            replies = {
                b"USER": b"331 and?\r\n",
                b"PASS": b"230 in\r\n",
                b"TYPE": b"200 ok\r\n",
                b"EPSV": b"229 (|||%d|)\r\n" % data.port,
                b"RETR": reply,
            }

            async def control(peer: Peer) -> None:
                await peer.send(b"220 hi\r\n")
                while line := await peer.reader.readline():
                    await peer.send(replies[line[:4]])
                    if line[:4] == b"RETR":
                        return

            async with serve(handler=control) as server, user() as (vu, scope, _):
                got = await vu.ftp.get(f"ftp://me:x@127.0.0.1:{server.port}", "/a", timeout=2)
                expected = {b"": Outcome.RESET, b"\xff\r\n": Outcome.PROTOCOL}
                assert got.outcome is (
                    Outcome.STATUS if b"426" in reply else expected.get(reply, Outcome.RESET)
                )
                assert scope.failures == [(got, True)]

    run(go())


def test_nobody_listens_and_no_such_host(run: Run, kind: str) -> None:
    async def go() -> None:
        async with client() as vu:
            refused = await getattr(vu, kind).get(f"{kind}://127.0.0.1:{free_port()}", "/a")
            assert refused.outcome is Outcome.REFUSED
            assert (
                await getattr(vu, kind).get("no-such-host.invalid", "/a")
            ).outcome is Outcome.DNS

    run(go())


@pytest.mark.parametrize(
    ("where", "path", "source", "reason"),
    [
        ("http://a.example", "/a", b"", "not an address"),
        ("ftp://a.example", "", b"", "not the path of a file"),
        ("ftp://a.example", "/a\r\nDELE /b", b"", "not the path of a file"),
        ("ftp://a.example", "/a", FileGlob("none/*.txt"), "has no files"),
        ("ftp://a.example", "/a", FileGlob("none.txt"), "has no wildcard"),
        ("ftp://a.example", "/a", Directory("none"), "is not a directory"),
        ("ftp://a.example", "/a", File("none"), "cannot be read"),
        ("ftp://a.example?tls=perhaps", "/a", b"", "tls is 'perhaps'"),
    ],
)
def test_what_the_author_got_wrong(
    run: Run, where: str, path: str, source: Any, reason: str
) -> None:
    async def go() -> None:
        async with client(hosts={"a.example": "127.0.0.1"}) as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.ftp.put(where, path, source)

    run(go())
