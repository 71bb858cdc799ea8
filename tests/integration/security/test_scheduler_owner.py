"""A scheduler as `hyperscale scheduler` starts it belongs to its user: others on the machine may
neither ask it nor read what it keeps, and its user's commands notice nothing of that.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperscale.scheduler.http import local_token
from hyperscale.scheduler.http.client import SchedulerClient, Unreachable
from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

NOBODY = 65534


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    directory = tmp_path_factory.mktemp("scheduler")
    with scheduler_process(directory, "--command", guarded=True) as running:
        yield running


def status(url: str, method: str = "GET", body: object = None, token: str = "") -> int:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_who_has_no_token_changes_and_sees_nothing(scheduler: SchedulerProcess) -> None:
    job = {"name": "taken", "payload": {"command": "id"}}
    for token in ("", "a-token-that-somebody-made-up"):
        assert status(f"{scheduler.url}/api/v1/jobs", "POST", job, token) == 401
        assert status(f"{scheduler.url}/api/v1/jobs", token=token) == 401
        assert status(f"{scheduler.url}/metrics", token=token) == 401
    assert status(f"{scheduler.url}/api/v1/jobs", "POST", job, scheduler.token()) == 201


def test_its_users_commands_need_no_word_of_it(scheduler: SchedulerProcess) -> None:
    job = scheduler.json("job", "submit", "mine", "--command", "echo mine")["job_id"]
    until(lambda: scheduler.json("job", "show", job)["state"] == "COMPLETED", "the job's end")
    assert "local" in scheduler.command("scheduler", "audit")


def test_what_it_keeps_is_closed_to_others(scheduler: SchedulerProcess) -> None:
    scheduler.json("job", "submit", "kept", "--command", "true")
    kept = [path for path in scheduler.directory.glob("jobs.db*") if path.is_file()]
    assert {path.name for path in kept} == {"jobs.db", "jobs.db-wal", "jobs.db-shm"}
    assert {mode(path) for path in kept} == {0o600}
    assert mode(scheduler.state / "token") == 0o600
    assert mode(scheduler.state) == 0o700
    spools = list((scheduler.state / "spool").iterdir())
    assert spools
    assert {mode(path) for path in spools} == {0o700}


def test_a_store_of_an_earlier_version_is_closed_too(tmp_path: Path) -> None:
    with scheduler_process(tmp_path, "--no-worker"):
        pass
    (tmp_path / "jobs.db").chmod(0o644)
    with scheduler_process(tmp_path, "--no-worker"):
        assert mode(tmp_path / "jobs.db") == 0o600
        assert mode(tmp_path / "jobs.db-wal") == 0o600


def test_it_says_at_the_start_who_may_do_what(scheduler: SchedulerProcess, tmp_path: Path) -> None:
    said = until(lambda: "may do everything" in scheduler.said() and scheduler.said(), "a line")
    assert f"whoever can read {scheduler.state / 'token'} may do everything" in said
    assert f"load tests beneath {scheduler.directory}" in said
    assert "any program" in said
    assert scheduler.token() not in said, "a journal is not a terminal"
    with scheduler_process(tmp_path, "--no-worker") as opened:
        until(lambda: "everybody on this machine may do everything" in opened.said(), "a line")


def test_on_a_terminal_the_address_of_the_page_has_the_token(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hyperscale", "scheduler", "--port", "0", "--no-worker"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen(command, stderr=theirs, env=env, cwd=tmp_path)
    os.close(theirs)
    try:
        said = ""
        while "may do everything" not in said:
            said += os.read(ours, 4096).decode()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        os.close(ours)
    found = re.search(r"page: http://\S+/#token=(\S+)", said)
    token = (tmp_path / "hyperscale" / "scheduler" / "token").read_text().strip()
    assert found is not None
    assert found[1] == token


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_the_token_of_the_environment_is_in_no_environment(tmp_path: Path) -> None:
    secret = "a-token-for-the-administrator"
    given = {"HYPERSCALE_SCHEDULER_TOKEN": secret}
    with (
        scheduler_process(tmp_path, "--command", **given) as scheduler,
        scheduler.client(secret) as client,
    ):
        environ = Path(f"/proc/{scheduler.process.pid}/environ").read_bytes()
        assert secret.encode() not in environ
        assert b"XDG_STATE_HOME" in environ
        look = "tr '\\0' '\\n' < /proc/$PPID/environ; env"
        argv = ["sh", "-c", look]
        job = client.submit_job(name="curious", payload={"argv": argv})["job_id"]
        until(lambda: client.job(job)["state"] == "COMPLETED", "the job's end")
        log = client.logs(job)["log"]
    assert "HYPERSCALE_JOB_ID=" in log
    assert secret not in log


def test_the_token_is_not_sent_to_somebody_elses_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    token = local_token.made_token()
    ready, said = os.pipe()
    child = os.fork()
    if child == 0:  # whoever takes the port of a scheduler that does not run
        os.setuid(NOBODY)
        with socket.create_server(("127.0.0.1", 0)) as server:
            os.write(said, f"{server.getsockname()[1]}\n".encode())
            connection, _ = server.accept()
            os.write(said, connection.recv(65536))
        os._exit(0)
    port = int(os.read(ready, 64))
    assert local_token.found_token("127.0.0.1", port) == ""
    with SchedulerClient(f"http://127.0.0.1:{port}") as client, pytest.raises(Unreachable):
        client.delete_schedule("x")
    os.waitpid(child, 0)
    heard = os.read(ready, 65536)
    assert b"DELETE" in heard
    assert token.encode() not in heard


def test_tokens_that_others_read_are_refused(scheduler: SchedulerProcess, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("anna admin a-token-for-the-administrator\n")
    tokens.chmod(0o644)
    said = scheduler.command("scheduler", "--port", "0", "--tokens", str(tokens), expect=2)
    assert "others may read" in said
    assert f"chmod 600 {tokens}" in said
