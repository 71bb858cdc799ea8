"""Who may do what: bearer tokens with a role; without any, whoever has the token that is made for
the user of this machine; or everybody here, when that is asked for.

An open API is open to loopback only. A web page in the user's browser is also on loopback, so an
open API answers only to a loopback Host and takes changes only from its own page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hyperscale.errors import BadInput
from hyperscale.runtime.private_files import read_private
from hyperscale.scheduler.addresses import is_loopback
from hyperscale.scheduler.http.local_token import made_token, token_file

TOKEN_CHARS_MIN: Final = 16
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Role(StrEnum):
    WORKER = "worker"
    VIEWER = "viewer"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    ADMIN = "admin"


class Right(StrEnum):
    WORK = "work"
    LOOK = "look"
    AUDIT = "audit"
    OPERATE = "operate"
    ADMINISTER = "administer"


RIGHTS: Final[dict[Role, frozenset[Right]]] = {
    Role.WORKER: frozenset({Right.WORK}),
    Role.VIEWER: frozenset({Right.LOOK}),
    Role.AUDITOR: frozenset({Right.LOOK, Right.AUDIT}),
    Role.OPERATOR: frozenset({Right.LOOK, Right.OPERATE, Right.WORK}),
    Role.ADMIN: frozenset(Right),
}


@dataclass(frozen=True, slots=True)
class Actor:
    name: str
    role: Role

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]


def holders(right: Right) -> str:
    return " or ".join(role for role, rights in RIGHTS.items() if right in rights)


EVERYBODY: Final = Actor("local", Role.ADMIN)


@dataclass(frozen=True)
class Access:
    """`actors` by digest of their token: what is looked up tells nothing through its timing."""

    actors: Mapping[bytes, Actor] = field(default_factory=dict)
    made: str = field(default="", repr=False)
    """The token, when it is the one made for the user of this machine."""

    @property
    def open(self) -> bool:
        return not self.actors

    def actor(self, authorization: str | None) -> Actor | None:
        """None: no token, or one nobody knows."""
        if self.open:
            return EVERYBODY
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.actors.get(digest_of(token.strip()))

    def may_look(self, authorization: str | None) -> bool:
        actor = self.actor(authorization)
        return actor is not None and actor.may(Right.LOOK)

    def told(self) -> str:
        """Who may do what, as a sentence for whoever starts it."""
        if self.open:
            return "everybody on this machine may do everything"
        if self.made:
            return f"whoever can read {token_file()} may do everything"
        roles = [actor.role for actor in self.actors.values()]
        counted = [f"{roles.count(role)} {role}" for role in Role if role in roles]
        return f"tokens are known of {', '.join(counted)}"

    def misled(self, method: str, host: str, origin: str | None) -> bool:
        """A browser was led here by somebody else's page."""
        if not self.open:
            return False
        try:
            name = urlsplit(f"//{host}").hostname or ""
            page = host if origin is None else urlsplit(origin).netloc
        except ValueError:
            return True
        return not is_loopback(name) or (method not in SAFE_METHODS and page != host)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def access_for(host: str, tokens_file: str, admin_token: str, open_to_all: bool) -> Access:
    """From `--tokens` and HYPERSCALE_SCHEDULER_TOKEN. Raises BadInput."""
    if open_to_all:
        return _open(host, bool(tokens_file or admin_token))
    actors: dict[bytes, Actor] = {}
    if admin_token:
        actors[digest_of(_checked(admin_token, "HYPERSCALE_SCHEDULER_TOKEN"))] = Actor(
            "admin", Role.ADMIN
        )
    if tokens_file:
        actors |= read_tokens(Path(tokens_file))
    if actors:
        return Access(actors)
    token = made_token()
    return Access({digest_of(token): EVERYBODY}, token)


def _open(host: str, tokens: bool) -> Access:
    if tokens:
        raise BadInput("--open is for a scheduler without tokens", "leave out one of the two")
    if not is_loopback(host):
        raise BadInput(
            f"a scheduler on {host} would be open to everybody who reaches it",
            "leave out --open: a token is made, or give --tokens FILE",
        )
    return Access()


def read_tokens(path: Path) -> dict[bytes, Actor]:
    """One `NAME ROLE TOKEN` a line; `#` begins a comment line."""
    actors: dict[bytes, Actor] = {}
    for number, line in enumerate(read_private(path, "the tokens file").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or words[1] not in set(Role):
            raise BadInput(
                f"{path}:{number} is not NAME ROLE TOKEN", f"roles are {', '.join(Role)}"
            )
        token = _checked(words[2], f"{path}:{number}")
        actors[digest_of(token)] = Actor(words[0], Role(words[1]))
    if not actors:
        raise BadInput(f"the tokens file {path} names nobody", "one NAME ROLE TOKEN a line")
    return actors


def _checked(token: str, where: str) -> str:
    if len(token) < TOKEN_CHARS_MIN:
        raise BadInput(
            f"the token of {where} is shorter than {TOKEN_CHARS_MIN} characters",
            'make one with: python -c "import secrets; print(secrets.token_urlsafe())"',
        )
    return token
