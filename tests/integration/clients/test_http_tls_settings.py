"""TLS as the options say: versions, ciphers, whose certificate is shown to whom."""

from __future__ import annotations

import socket
import ssl
import warnings
from pathlib import Path

import pytest

from hyperscale.clients import ClientPool
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import ClientCert, HTTPOptions
from hyperscale.workload.results import Outcome
from hyperscale.workload.secrets import mask

from .certificates import Authority, encrypted
from .conftest import Run
from .scripted import client, response, serve
from .threaded import answering, tls_server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def limited(authority: Authority, version: str, *, asks: bool = False) -> ssl.SSLContext:
    """A server that speaks this version of TLS and no other."""
    tls = authority.server(authority.issue("localhost"), asks=asks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        only = {"1.0": "TLSv1", "1.1": "TLSv1_1", "1.2": "TLSv1_2", "1.3": "TLSv1_3"}[version]
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion[only]
    if version in ("1.0", "1.1"):
        tls.set_ciphers("DEFAULT:@SECLEVEL=0")
    return tls


@pytest.mark.parametrize(
    ("server", "options", "spoken"),
    [
        ("1.0", {"tls_min": "1.0"}, "TLSv1"),
        ("1.1", {"tls_max": "1.1"}, "TLSv1.1"),
        ("1.1", {"tls_min": "1.0", "tls_max": "1.2"}, "TLSv1.1"),
        ("1.0", {"tls_min": "1.0", "ciphers": "ECDHE-ECDSA-AES128-SHA"}, "TLSv1"),
        ("1.2", {"tls_max": "1.2"}, "TLSv1.2"),
        ("1.3", {"tls_min": "1.3"}, "TLSv1.3"),
        ("1.0", {}, ""),
        ("1.2", {"tls_min": "1.3"}, ""),
        ("1.3", {"tls_max": "1.2"}, ""),
    ],
)
def test_versions(
    run: Run, authority: Authority, server: str, options: dict[str, str], spoken: str
) -> None:
    async def go() -> None:
        async with client(ca=authority.ca, **options) as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            if spoken:
                assert got.ok, got.error
                assert got.text() == spoken
            else:
                assert got.outcome is Outcome.TLS
                assert "speaks no TLS version that is allowed here" in got.error

    with tls_server(limited(authority, server), answering(lambda tls: str(tls.version()))) as port:
        run(go())


def test_ciphers(run: Run, authority: Authority) -> None:
    async def go(ok: bool) -> None:
        async with client(ca=authority.ca, ciphers="ECDHE-ECDSA-AES128-SHA256") as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            if ok:
                assert got.text() == "ECDHE-ECDSA-AES128-SHA256"
            else:
                assert got.outcome is Outcome.TLS
                assert "refused the TLS handshake; it may ask for" in got.error

    tls = limited(authority, "1.2")
    talk = answering(lambda tls: (tls.cipher() or ("",))[0])
    with tls_server(tls, talk) as port:
        run(go(True))
    tls.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with tls_server(tls, talk) as port:
        run(go(False))


def test_ciphers_that_openssl_refuses() -> None:
    for ciphers in ("NONSENSE", "TLS_AES_256_GCM_SHA384"):
        with pytest.raises(BadInput, match=rf"http\.ciphers '{ciphers}' is refused"):
            ClientPool(HTTPOptions(ciphers=ciphers))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_certificate_that_is_missing_or_not_trusted(
    run: Run, authority: Authority, version: str
) -> None:
    async def go() -> None:
        stranger = authority.issue("stranger", self_signed=True)
        async with client(ca=authority.ca) as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            assert got.outcome is Outcome.TLS
            assert {
                "1.2": "refused the TLS handshake; it may ask for a client certificate (http.cert)",
                "1.3": "asks for a client certificate; set http.cert",
            }[version] in got.error
        async with client(ca=authority.ca, cert=stranger) as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            assert got.outcome is Outcome.TLS
            assert "does not accept the client certificate: unknown ca" in got.error

    with tls_server(limited(authority, version, asks=True), answering(str)) as port:
        run(go())


def test_certificates_by_domain(run: Run, authority: Authority) -> None:
    async def go() -> None:
        options = {
            "ca": authority.ca,
            "verify": False,
            "cert": authority.issue("everywhere"),
            "certs": (
                ClientCert("127.0.0.1", cert=authority.issue("by-address")),
                ClientCert(("a.test", "*.localhost"), cert=authority.issue("below")),
            ),
            "hosts": {"*.localhost": "127.0.0.1"},
        }
        async with client(**options) as vu:
            for host, name in {
                "127.0.0.1": "by-address",
                "localhost": "everywhere",
                "deep.api.localhost": "below",
            }.items():
                got = await vu.http.get(f"https://{host}:{port}/")
                assert got.ok, got.error
                assert got.text() == name

    def shown(tls: ssl.SSLSocket) -> str:
        subject = (tls.getpeercert() or {})["subject"]
        return str(subject[0][0][1])  # type: ignore[index]

    with tls_server(
        authority.server(authority.issue("localhost"), asks=True), answering(shown)
    ) as port:
        run(go())


def test_an_encrypted_key(run: Run, authority: Authority, tmp_path: Path) -> None:
    cert, key = encrypted(authority.issue("me"), "open sesame")
    with pytest.raises(BadInput, match="is encrypted"):
        ClientPool(HTTPOptions(cert=cert, key=key))
    with pytest.raises(BadInput, match="key_password does not open the key") as refused:
        ClientPool(HTTPOptions(cert=cert, key=key, key_password="wrong-word"))
    assert "wrong-word" not in f"{refused.value} {refused.value.hint}"
    with pytest.raises(BadInput, match="key_password does not open the key of ClientCert"):
        ClientPool(HTTPOptions(certs=(ClientCert("a", cert, key, "wrong-word"),)))
    with pytest.raises(BadInput, match="do not belong together"):
        ClientPool(HTTPOptions(cert=authority.issue("other-one"), key=authority.issue("me")))

    async def go() -> None:
        tls = authority.server(authority.issue("localhost"), asks=True)
        async with (
            serve(response(), tls=tls) as server,
            client(ca=authority.ca, cert=cert, key=key, key_password="open sesame") as vu,
        ):
            assert (await vu.http.get(server.url)).ok

    run(go())


def test_a_password_shows_nowhere() -> None:
    options = HTTPOptions(
        cert="me.pem",
        key_password="hush-hush",
        certs=(ClientCert("a.test", cert="a.pem", key_password="pst"),),
        proxy="http://me:whisper@p.test",
    )
    for shown in (repr(options), str(options), repr(options.__rich_repr__())):
        assert not any(word in shown for word in ("hush-hush", "pst", "whisper"))
    assert mask("cannot open with hush-hush") == "cannot open with ***http.key_password***"


def test_plain_bytes_in_the_middle_of_tls(run: Run, authority: Authority) -> None:
    async def go() -> None:
        async with client(ca=authority.ca) as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            assert got.outcome is Outcome.PROTOCOL
            assert got.error.endswith("sent something in the middle of TLS that is not TLS")

    def talk(tls: ssl.SSLSocket) -> None:
        tls.recv(65536)
        plain = socket.socket(fileno=tls.detach())
        plain.sendall(b"HTTP/1.1 500 Oh no\r\nContent-Length: 0\r\n\r\n")
        while plain.recv(65536):
            pass
        plain.close()

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go())


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("resume", [True, False])
def test_sessions_are_continued_only_on_demand(
    run: Run, authority: Authority, version: str, resume: bool
) -> None:
    def reused(peer: ssl.SSLSocket) -> str:
        return str(peer.session_reused)

    async def go(port: int) -> None:
        options = {"ca": authority.ca, "connections": "fresh", "tls_resume": resume}
        async with client(**options) as vu:
            seen = [(await vu.http.get(f"https://127.0.0.1:{port}/")).text() for _ in range(3)]
        assert seen == ["False", str(resume), str(resume)]

    with tls_server(limited(authority, version), answering(reused)) as port:
        run(go(port))
