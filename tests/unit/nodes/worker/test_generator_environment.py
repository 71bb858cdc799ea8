"""What authors' code may see of a worker's environment."""

from __future__ import annotations

import pytest

from hyperscale.nodes.worker import sandbox
from hyperscale.nodes.worker.sandbox import environment_of


def test_only_what_programs_need_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.site, "ENABLE_USER_SITE", False)
    ours = {
        "HYPERSCALE_NODE_SECRET_FILE": "/etc/hyperscale/secret",
        "HYPERSCALE_SCHEDULER_TOKEN": "t",
        "CREDENTIALS_DIRECTORY": "/run/credentials/hyperscale-worker.service",
        "AWS_SECRET_ACCESS_KEY": "k",
        "HOME": "/home/operator",
        "TMPDIR": "/var/tmp",
    }
    theirs = {"PATH": "/bin", "LANG": "C", "LC_TIME": "de", "TZ": "UTC", "PYTHONPATH": "/opt/lib"}

    own = {"HOME": "/tmp/g1", "TMPDIR": "/tmp/g1"}
    assert environment_of(ours | theirs, "/tmp/g1") == theirs | own


def test_packages_of_the_user_are_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(sandbox.site, "getuserbase", lambda: "/home/operator/.local")

    found = environment_of({"HOME": "/home/operator"}, "/tmp/g1")
    assert found["PYTHONUSERBASE"] == "/home/operator/.local"
