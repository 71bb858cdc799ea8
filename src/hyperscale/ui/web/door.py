"""Who may look and steer: everybody on this machine, or elsewhere whoever has the token.

A web page of somebody else is on loopback too, inside the person's browser. So without a token only
a loopback name is answered, which keeps out names that were pointed here (DNS rebinding); a request
that a browser says comes from another origin is refused; and what changes anything has to be JSON,
which no form of another page can send. A cookie that holds the token is for this site alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from hyperscale.errors import BadInput
from hyperscale.runtime.host import is_loopback
from hyperscale.ui.web.http import JSON, Request, Response, refusal

TOKEN_CHARS_MIN: Final = 16
API: Final = "/api/"
LOGIN: Final = "/api/login"
_SAFE: Final = ("GET", "HEAD")


class Door:
    def __init__(self, host: str, token: str = "") -> None:
        """`host` is what the server listens on. A token that is given holds on loopback too. Raises
        BadInput for one that can be guessed."""
        if token and len(token) < TOKEN_CHARS_MIN:
            raise BadInput(
                f"HYPERSCALE_WEB_TOKEN is shorter than {TOKEN_CHARS_MIN} characters",
                "leave it out: a token is made where one is needed",
            )
        self.token = token or ("" if is_loopback(host) else secrets.token_urlsafe(24))
        # Cookies know no ports: two runs on one machine must not overwrite each other's.
        self._cookie = f"hyperscale-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def refuses(self, request: Request) -> Response | None:
        headers = request.headers
        if request.method not in (*_SAFE, "POST"):
            return refusal(405, "only GET and POST")
        host = headers.get("host", "")
        try:
            name = _name_in(host)
            origin = urlsplit(headers["origin"]).netloc if "origin" in headers else host
        except ValueError:
            name, origin = "", "?"
        if not self.token and not is_loopback(name):
            return refusal(403, f"this page is not at {host!r}", "open it as localhost")
        if origin != host or _from_elsewhere(request):
            return refusal(403, "a page of another origin may not use this one")
        if request.method == "POST" and headers.get("content-type", "") != JSON:
            return refusal(415, f"a change has to be {JSON}")
        if not request.path.startswith(API) or request.path == LOGIN or self._knows(request):
            return None
        return refusal(401, "a token is needed", "open the address that the command printed")

    def login(self, token: str) -> Response:
        if not self._same(token):
            return refusal(401, "that is not the token of this page")
        cookie = f"{self._cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        return Response(b"{}", headers={"Set-Cookie": cookie} if self.token else {})

    def _knows(self, request: Request) -> bool:
        if not self.token:
            return True
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._same(token.strip())
        try:
            cookies = SimpleCookie(request.headers.get("cookie", "").replace(",", ";"))
        except CookieError:
            return False
        return self._cookie in cookies and self._same(cookies[self._cookie].value)

    def _same(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


def _name_in(host: str) -> str:
    """Empty for what is no name with a port. Raises ValueError likewise."""
    parts = urlsplit(f"//{host}")
    plain = parts.netloc == host and parts.username is None and parts.port != 0
    return (parts.hostname or "") if plain else ""


def _from_elsewhere(request: Request) -> bool:
    """By the browser's own word. A link of another page may lead here: that changes nothing."""
    site = request.headers.get("sec-fetch-site", "none")
    link = request.headers.get("sec-fetch-mode") == "navigate" and request.method in _SAFE
    return site not in ("same-origin", "none") and not link
