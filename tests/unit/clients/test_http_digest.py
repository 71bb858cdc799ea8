"""Digest answers: the examples of the RFCs, odd challenges, and requests as another opinion."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.http.digest import DigestAuth, parse_challenges

RFC_7616 = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, '
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", '
    'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)


def fields(header: str | None) -> dict[str, str]:
    assert header is not None
    assert header.startswith("Digest ")
    found = re.findall(r'([\w*]+)=("(?:[^"\\]|\\.)*"|[^,]*)', header[7:])
    return {name: value.strip('"') for name, value in found}


def mufasa(password: str = "Circle of Life") -> DigestAuth:
    return DigestAuth("Mufasa", password, lambda: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_example_of_rfc_7616(algorithm: str, response: str) -> None:
    header = mufasa().answer([RFC_7616.format(algorithm)], "GET", "/dir/index.html")
    assert fields(header) == {
        "username": "Mufasa",
        "realm": "http-auth@example.org",
        "uri": "/dir/index.html",
        "algorithm": algorithm,
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "nc": "00000001",
        "cnonce": "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        "qop": "auth",
        "response": response,
        "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    }


def test_example_of_rfc_7616_with_a_hashed_name() -> None:
    """With the values of erratum 4897: those printed were not SHA-512-256."""
    challenge = (
        'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, '
        'nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", '
        'opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true'
    )
    cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
    auth = DigestAuth("Jäsøn Doe", "Secret, or not?", lambda: cnonce)
    header = fields(auth.answer([challenge], "GET", "/doe.json"))
    assert header["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
    assert header["response"] == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"
    assert header["userhash"] == "true"


def test_example_of_rfc_2617() -> None:
    challenge = (
        'Digest realm="testrealm@host.com", qop="auth,auth-int", '
        'nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"'
    )
    auth = DigestAuth("Mufasa", "Circle Of Life", lambda: "0a4f113b")
    header = fields(auth.answer([challenge], "GET", "/dir/index.html"))
    assert header["response"] == "6629fae49393a05397450978507c4ef1"
    assert "algorithm" not in header


def test_example_of_rfc_2069() -> None:
    """With the value of its erratum 749."""
    challenge = (
        'Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", '
        'opaque="5ccc069c403ebaf9f0171e9517f40e41"'
    )
    header = fields(mufasa("CircleOfLife").answer([challenge], "GET", "/dir/index.html"))
    assert header["response"] == "1949323746fe6a43ef61f9606e7febea"
    assert not {"qop", "nc", "cnonce"} & set(header)


def test_the_strongest_challenge_is_answered() -> None:
    one = ", ".join(RFC_7616.format(name) for name in ("MD5", "SHA-256", "SHA-1"))
    for challenges in (
        [f'Basic realm="Digest, x", {one}, Negotiate'],
        [RFC_7616.format("MD5"), RFC_7616.format("SHA-256")],
        [RFC_7616.format("SHA-256"), "Bearer", RFC_7616.format("MD5")],
    ):
        assert fields(mufasa().answer(challenges, "GET", "/"))["algorithm"] == "SHA-256"
    sessions = [RFC_7616.format("sha-512-256-SESS"), RFC_7616.format("SHA-256")]
    assert fields(mufasa().answer(sessions, "GET", "/"))["algorithm"] == "sha-512-256-SESS"


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="x"',
        'Digest realm="x"',
        'Digest nonce="x"',
        'Digest realm="x", nonce="y", algorithm=SHA-1',
        'Digest realm="x", nonce="y", qop="auth-conf"',
        'Digest realm="x", nonce="y", algorithm=MD5-sess',
        'xDigest realm="x", nonce="y"',
        "",
        "Digest",
    ],
)
def test_challenges_without_an_answer(challenge: str) -> None:
    auth = mufasa()
    assert auth.answer([challenge], "GET", "/") is None
    assert auth.next("GET", "/") is None


def test_counting() -> None:
    auth = mufasa()
    challenge = RFC_7616.format("MD5")
    assert auth.next("GET", "/") is None
    first = fields(auth.answer([challenge], "GET", "/"))
    second = fields(auth.next("GET", "/"))
    third = fields(auth.answer([challenge], "GET", "/"))  # the same nonce again
    assert [one["nc"] for one in (first, second, third)] == ["00000001", "00000002", "00000003"]
    assert len({one["response"] for one in (first, second, third)}) == 3
    other = fields(auth.answer([challenge.replace("7ypf", "0000")], "GET", "/"))
    assert other["nc"] == "00000001"


def test_an_answer_that_was_refused() -> None:
    auth = mufasa()
    challenge = RFC_7616.format("MD5")
    assert auth.answer([challenge], "GET", "/")
    assert auth.answer([challenge], "GET", "/", again=True) is None
    assert auth.answer([challenge + ", stale=false"], "GET", "/", again=True) is None
    assert auth.answer([challenge + ", Stale=TRUE"], "GET", "/", again=True)


def test_names_beyond_ascii() -> None:
    challenge = 'Digest realm="x", nonce="y", qop="auth"'
    auth = DigestAuth('Jäsøn "D" \\', "pw")
    plain = auth.answer([challenge], "GET", "/")
    assert plain is not None
    assert 'username="Jäsøn \\"D\\" \\\\"'.encode() in plain.encode("latin-1")
    extended = auth.answer([challenge + ", charset=utf-8"], "GET", "/")
    assert extended is not None
    assert "username*=UTF-8''J%C3%A4s%C3%B8n%20%22D%22%20%5C," in extended


def test_parsing() -> None:
    value = r'Basic realm="a, b=c" ,Digest realm="q\"\\ü", nonce=x=,qop = "auth",, Negotiate aGk='
    assert list(parse_challenges(value)) == [
        ("Basic", {"realm": "a, b=c"}),
        ("Digest", {"realm": 'q"\\ü', "nonce": "x=", "qop": "auth"}),
        ("Negotiate", {"agk": ""}),
    ]


@given(st.text(alphabet='Digest realmnonce="\\, \t\x00ü', max_size=60))
def test_nothing_in_a_header_raises(value: str) -> None:
    list(parse_challenges(value))
    mufasa().answer([f'Digest realm="r", nonce="n", {value}', value], "GET", "/")


TEXT = st.text(
    alphabet=st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'),
    max_size=20,
)


@given(
    algorithm=st.sampled_from(["", "MD5", "MD5-sess", "SHA-256"]),
    qop=st.sampled_from(["", "auth", "auth,auth-int"]),
    user=TEXT,
    password=st.text(max_size=20),
    realm=TEXT,
    nonce=TEXT.filter(str.strip),
    uri=st.from_regex(r"/[a-z0-9/]{0,10}(\?[a-z=&]{1,9})?", fullmatch=True),
    count=st.integers(min_value=1, max_value=3),
)
def test_requests_comes_to_the_same_answer(
    algorithm: str,
    qop: str,
    user: str,
    password: str,
    realm: str,
    nonce: str,
    uri: str,
    count: int,
) -> None:
    auth = pytest.importorskip("requests.auth")
    if algorithm == "MD5-sess" and not qop:
        return  # of no use without a cnonce
    challenge = {"realm": realm, "nonce": nonce}
    challenge |= {"qop": qop} if qop else {}
    challenge |= {"algorithm": algorithm} if algorithm else {}
    password = password.encode("utf-8", "replace").decode()
    peer = auth.HTTPDigestAuth(user, password)
    peer.init_per_thread_state()
    peer._thread_local.chal = challenge
    text = "Digest " + ", ".join(f'{name}="{value}"' for name, value in challenge.items())
    headers = [fields(peer.build_digest_header("PUT", f"http://h{uri}")) for _ in range(count)]
    own = DigestAuth(user, password, lambda: headers[-1].get("cnonce", ""))
    made = fields(own.answer([text], "PUT", uri))
    for _ in range(count - 1):
        made = fields(own.next("PUT", uri))
    assert made == headers[-1]
