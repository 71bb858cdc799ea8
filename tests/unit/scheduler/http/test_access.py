"""Who may do what."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.http.access import (
    EVERYBODY,
    Access,
    Actor,
    Right,
    Role,
    access_for,
    read_tokens,
)

TOKEN = "a-token-of-twenty-chars"


def test_everybody_with_a_role_may_look_and_only_some_may_more() -> None:
    may = {right: {role for role in Role if Actor("x", role).may(right)} for right in Right}
    assert may[Right.LOOK] == set(Role) - {Role.WORKER}
    assert may[Right.WORK] == {Role.WORKER, Role.OPERATOR, Role.ADMIN}
    assert may[Right.OPERATE] == {Role.OPERATOR, Role.ADMIN}
    assert may[Right.AUDIT] == {Role.AUDITOR, Role.ADMIN}
    assert may[Right.ADMINISTER] == {Role.ADMIN}


def test_a_host_beyond_loopback_needs_tokens() -> None:
    with pytest.raises(BadInput, match="open to everybody"):
        access_for("0.0.0.0", "", "", True)
    assert access_for("127.0.0.1", "", "", True).open
    assert not access_for("0.0.0.0", "", TOKEN, False).open
    with pytest.raises(BadInput, match="without tokens"):
        access_for("127.0.0.1", "", TOKEN, True)


def test_without_tokens_one_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, again = (access_for("127.0.0.1", "", "", False) for _ in range(2))
    assert first.made == again.made
    assert len(first.made) >= 32
    assert first.made not in repr(first)
    assert first.actor(f"Bearer {first.made}") == EVERYBODY
    assert first.actor(None) is None
    (tmp_path / "hyperscale" / "scheduler" / "token").chmod(0o644)
    with pytest.raises(BadInput, match="others may read"):
        access_for("127.0.0.1", "", "", False)


def test_a_tokens_file_names_people_and_roles(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# people\n\nanna operator {TOKEN}\n")
    file.chmod(0o644)
    with pytest.raises(BadInput, match="has mode 644") as refused:
        read_tokens(file)
    assert refused.value.hint == f"chmod 600 {file}"
    file.chmod(0o600)
    access = Access(read_tokens(file))
    assert access.actor(f"Bearer {TOKEN}") == Actor("anna", Role.OPERATOR)
    assert access.actor(f"bearer {TOKEN}") == Actor("anna", Role.OPERATOR)
    assert access.actor("Bearer other") is None
    assert access.actor(None) is None


@pytest.mark.parametrize("line", ["anna operator", "anna king " + TOKEN, "anna viewer short", ""])
def test_bad_lines_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(line)
    file.chmod(0o600)
    with pytest.raises(BadInput):
        read_tokens(file)


@pytest.mark.parametrize(
    ("method", "host", "origin", "misled"),
    [
        ("GET", "localhost:8080", None, False),
        ("GET", "[::1]:8080", None, False),
        ("GET", "evil.example:8080", None, True),  # DNS rebinding
        ("POST", "127.0.0.1:8080", "http://127.0.0.1:8080", False),
        ("POST", "127.0.0.1:8080", None, False),
        ("POST", "127.0.0.1:8080", "https://evil.example", True),
        ("POST", "127.0.0.1:8080", "null", True),
        ("GET", "", None, True),
        ("GET", "[::1", None, True),
        ("POST", "127.0.0.1:8080", "http://[::1", True),
    ],
)
def test_an_open_api_is_not_for_foreign_pages(
    method: str, host: str, origin: str | None, misled: bool
) -> None:
    assert Access().misled(method, host, origin) is misled
