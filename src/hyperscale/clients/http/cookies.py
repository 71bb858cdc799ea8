"""The cookies of one virtual user, kept and sent as browsers do (RFC 6265).

Without a list of public suffixes, a cookie for a whole top-level name ("com") is refused and one
for a shared domain ("co.uk") is not; a test that needs more sets its cookies itself.
"""

from __future__ import annotations

import time

from hyperscale.clients.http.head import BLANKS

MAX_COOKIES = 300  # per virtual user; those that were not set again for longest go first


class Cookie:
    __slots__ = ("created", "expires", "host_only", "secure", "value")

    def __init__(self, value: str, expires: float, host_only: bool, secure: bool) -> None:
        self.created = 0  # its number in the jar; a new value leaves it as it was
        self.value = value
        self.expires = expires
        self.host_only = host_only
        self.secure = secure


class CookieJar:
    """Cookies by (domain, path, name). `domain` and `path` default to the whole target host."""

    __slots__ = ("_cookies", "_created")

    def __init__(self) -> None:
        self._created = 0
        self._cookies: dict[tuple[str, str, str], Cookie] = {}

    def __len__(self) -> int:
        return len(self._cookies)

    def set(self, name: str, value: str, domain: str, path: str = "/") -> None:
        """Keep a cookie that no server sent, for `domain` and the names below it."""
        self._keep((domain.lstrip(".").lower(), path, name), Cookie(value, 0.0, False, False))

    def clear(self) -> None:
        self._cookies.clear()

    def store(self, line: str, host: str, path: str) -> None:
        """Keep what one Set-Cookie header says, or forget it when it says so."""
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        name = name.strip(BLANKS)
        if not equals or not name:
            return
        domain, host_only, expires, secure = host, True, 0.0, False
        max_age: float | None = None
        where = path[: path.rfind("/")] or "/"
        for attribute in attributes:
            key, _, setting = attribute.partition("=")
            setting = setting.strip(BLANKS)
            match key.strip(BLANKS).lower():
                case "domain" if setting.strip("."):
                    domain, host_only = setting.lstrip(".").lower(), False
                case "path" if setting.startswith("/"):
                    where = setting
                case "secure":
                    secure = True
                case "max-age":
                    max_age = _seconds(setting)
                case "expires":
                    expires = _moment(setting)
        if max_age is not None:
            expires = time.time() + max_age
        if domain != host and ("." not in domain or not _within(host, domain)):
            return
        where_and_name = (domain, where, name)
        if expires and expires <= time.time():
            self._cookies.pop(where_and_name, None)
            return
        self._keep(where_and_name, Cookie(value.strip(BLANKS), expires, host_only, secure))

    def matching(self, host: str, path: str, secure: bool) -> list[tuple[str, str]]:
        """Names and values to send: longer paths first, of equal ones the older first."""
        found: list[tuple[int, int, str, str]] = []
        now = time.time()
        for (domain, where, name), cookie in list(self._cookies.items()):
            if cookie.expires and cookie.expires <= now:
                del self._cookies[domain, where, name]
                continue
            reaches = host == domain or (not cookie.host_only and _within(host, domain))
            if reaches and _below(path, where) and (secure or not cookie.secure):
                found.append((-len(where), cookie.created, name, cookie.value))
        found.sort()
        return [(name, value) for _, _, name, value in found]

    def _keep(self, where_and_name: tuple[str, str, str], cookie: Cookie) -> None:
        before = self._cookies.pop(where_and_name, None)
        if before is None:
            self._created += 1
            cookie.created = self._created
        else:
            cookie.created = before.created
        while len(self._cookies) >= MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]
        self._cookies[where_and_name] = cookie


def _within(host: str, domain: str) -> bool:
    is_address = ":" in host or host.replace(".", "").isdigit()
    return host.endswith(f".{domain}") and not is_address


def _below(path: str, where: str) -> bool:
    return path == where or path.startswith(where if where.endswith("/") else f"{where}/")


def _seconds(text: str) -> float | None:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    return float(sign * int(digits[:12])) if digits.isascii() and digits.isdigit() else None


def _moment(text: str) -> float:
    """When, as Unix time; what cannot be read lives as long as the virtual user."""
    from email.utils import parsedate_to_datetime  # imports half of email, for a rare attribute

    try:
        return max(1.0, parsedate_to_datetime(text.replace("-", " ")).timestamp())
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
