"""Who may look and steer: what a browser says of a request, what a stranger can say, the token."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.errors import BadInput
from hyperscale.ui.web.door import Door
from hyperscale.ui.web.http import JSON, Request, Response

HERE = "127.0.0.1:8089"
CHANGE = {"content-type": JSON}


def asked(method: str = "GET", path: str = "/api/site", /, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, headers={"host": HERE, **named})


@pytest.mark.parametrize(
    "request_",
    [
        asked(),
        asked("GET", "/"),
        asked(host="localhost:9000"),
        asked(host="[::1]:8089"),
        asked("POST", "/api/steer", content_type=JSON),
        asked("POST", "/api/steer", content_type=JSON, origin=f"http://{HERE}"),
        asked(sec_fetch_site="same-origin"),
        asked("GET", "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate"),
    ],
)
def test_its_own_page_and_tools_of_this_machine_are_let_in(request_: Request) -> None:
    assert Door("127.0.0.1").refuses(request_) is None


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (asked(host="evil.example:8089"), 403),  # a name that was pointed here
        (asked(host="127.0.0.1.evil.example"), 403),
        (asked(host=""), 403),
        (asked(host="127.0.0.1:8089,evil.example"), 403),  # two Host lines
        (asked(host="[::1"), 403),
        (asked(origin="http://evil.example"), 403),
        (asked(origin="null"), 403),
        (asked(origin="http://127.0.0.1:3000"), 403),
        (asked(sec_fetch_site="cross-site"), 403),
        (asked(sec_fetch_site="same-site"), 403),  # another port of this machine
        (
            asked("POST", "/api/steer", sec_fetch_site="cross-site", sec_fetch_mode="navigate"),
            403,
        ),
        (asked("POST", "/api/steer"), 415),
        (asked("POST", "/api/steer", content_type="text/plain"), 415),
        (asked("POST", "/api/steer", content_type="application/x-www-form-urlencoded"), 415),
        (asked("DELETE"), 405),
        (asked("OPTIONS"), 405),
    ],
)
def test_pages_of_others_are_not(request_: Request, status: int) -> None:
    refused = Door("127.0.0.1").refuses(request_)
    assert refused is not None
    assert refused.status == status


def test_elsewhere_only_the_token_opens() -> None:
    door = Door("0.0.0.0")
    assert len(door.token) >= 24
    assert refused(door, asked(host="10.0.0.7:8089")) == 401
    assert refused(door, asked(authorization="Bearer guess")) == 401
    assert refused(door, asked(authorization=f"Basic {door.token}")) == 401
    assert refused(door, asked(authorization=f"Bearer {door.token}")) == 0
    assert refused(door, asked("GET", "/")) == 0  # the page itself, which asks for the token
    stolen = asked(authorization=f"Bearer {door.token}", origin="http://evil.example")
    assert refused(door, stolen) == 403


def test_a_login_is_kept_in_a_cookie_that_no_script_and_no_other_site_has() -> None:
    door = Door("127.0.0.1", "a-token-that-was-given")
    assert door.login("a-token-that-was-guessed").status == 401
    assert door.login("ä").status == 401
    cookie = door.login(door.token).headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    kept = cookie.partition(";")[0]
    assert refused(door, asked(cookie=f"other=1; {kept}")) == 0
    assert refused(door, asked(cookie=f"{kept[:-3]}xyz")) == 401
    assert refused(Door("127.0.0.1", "another-token-elsewhere"), asked(cookie=kept)) == 401


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(BadInput, match="shorter than 16"):
        Door("127.0.0.1", "short")


def test_without_a_token_nobody_logs_in() -> None:
    answer: Response = Door("127.0.0.1").login("anything")
    assert answer.status == 401
    assert "token" in msgspec.json.decode(answer.body)["message"]


def refused(door: Door, request: Request) -> int:
    answer = door.refuses(request)
    return 0 if answer is None else answer.status
