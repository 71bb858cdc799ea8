"""The code of a test on a real worker, and what it gets of the worker: nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from hyperscale.runtime import seccomp
from tests.integration.cluster.fleet import Fleet
from tests.integration.security.prying import Listener, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux keeps processes apart")


def pried(fleet: Fleet, attempts: dict[str, str], *words: object) -> dict[str, Any]:
    with Listener() as listener:
        file = write(fleet.folder, listener.url, attempts)
        ended = fleet.hyperscale("run", file, *fleet.there, *words)
        assert ended.code == ExitCode.PASSED, ended
        return listener.told()


def test_memory_and_environment_of_the_worker_are_closed(tmp_path: Path) -> None:
    with Fleet(tmp_path, tls=True, worker_env={"OF_THE_MACHINE": "private"}) as fleet:
        fleet.start()
        worker = fleet["w1"].pid
        told = pried(
            fleet,
            {
                "environ": f"open('/proc/{worker}/environ', 'rb').read()",
                "mem": f"open('/proc/{worker}/mem', 'rb').read(1)",
                "fd": f"os.listdir('/proc/{worker}/fd')",
                "ptrace": f"ptrace({worker})",
                "parent": "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
            },
        )
        got = {name: outcome["got"] for name, outcome in told.items() if "got" in outcome}
        assert not got


def test_a_generator_has_an_environment_of_its_own(tmp_path: Path) -> None:
    theirs = {"OF_THE_MACHINE": "private", "AWS_SECRET_ACCESS_KEY": "private", "LC_ALL": "C.UTF-8"}
    with Fleet(tmp_path, tls=True, worker_env=theirs) as fleet:
        fleet.start()
        attempts = {
            "names": "sorted(os.environ)",
            "of the job": "os.environ['OF_THE_JOB']",
            "language": "os.environ['LC_ALL']",
            "home": "Path.home()",
            "here": "os.getcwd()",
            "temporary": "tempfile.gettempdir()",
            "mode": "oct(os.stat(os.environ['TMPDIR']).st_mode & 0o777)",
            "writes": "Path(os.environ['TMPDIR'], 'own').write_text('mine')",
            "inherited": "inherited()",
            "no new privileges": "status('NoNewPrivs')",
            "core dumps": "limit('RLIMIT_CORE')",
            "session": "os.getsid(0) == os.getpid()",
            "subprocess": "subprocess.run([sys.executable, '-c', 'print(6 * 7)'], "
            "capture_output=True, text=True).stdout",
        }
        told = pried(fleet, attempts, "-e", "OF_THE_JOB=yes")
        fleet.wait_until_idle()
        got = {name: outcome.get("got", outcome) for name, outcome in told.items()}
        assert "OF_THE_MACHINE" not in got["names"]
        assert "AWS" not in got["names"]
        assert (got["of the job"], got["language"]) == ("'yes'", "'C.UTF-8'")
        private = got["temporary"].strip("'")
        assert (got["mode"], got["writes"]) == ("'0o700'", "4")
        assert private in got["home"]
        assert got["here"].strip("'").startswith(private)
        assert got["inherited"] == "{}"
        assert (got["no new privileges"], got["core dumps"]) == ("'1'", "0")
        assert (got["session"], got["subprocess"]) == ("True", "'42\\n'")
        assert not os.path.exists(private)


def test_limits_cannot_be_lifted(tmp_path: Path) -> None:
    memory = {"HYPERSCALE_WORKER_MEMORY_MB": "500"}
    with Fleet(tmp_path, tls=True, worker_env=memory) as fleet:
        fleet.start()
        lift = "__import__('resource').setrlimit(__import__('resource').{0}, (1 << 40, 1 << 40))"
        names = ("RLIMIT_DATA", "RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NPROC")
        told = pried(fleet, {name: lift.format(name) for name in names})
        assert all("refused" in outcome for outcome in told.values()), told


@pytest.mark.skipif(not seccomp.known(), reason="there is no filter for this machine")
def test_what_is_the_users_own_is_not_changed(tmp_path: Path) -> None:
    """Landlock closes what is in files, not their modes, nor other processes' limits."""
    mine = tmp_path / "mine"
    mine.write_text("of the worker's user")
    mine.chmod(0o600)
    with Fleet(tmp_path, tls=True) as fleet:
        fleet.start()
        worker, resource = fleet["w1"].pid, "__import__('resource')"
        attempts = {
            "mode": f"os.chmod({str(mine)!r}, 0o4777)",
            "mode of what is open": "os.fchmod(os.open('own', os.O_CREAT), 0o600)",
            "owner": f"os.chown({str(mine)!r}, -1, os.getgid())",
            "access list": f"os.setxattr({str(mine)!r}, 'user.x', b'x')",
            "limit": f"{resource}.prlimit({worker}, {resource}.RLIMIT_CPU, (1, 1))",
            "priority": f"os.setpriority(os.PRIO_PROCESS, {worker}, 19)",
            "cores": f"os.sched_setaffinity({worker}, [0])",
            "ring": "called(425, 8, ctypes.create_string_buffer(256))",
        }
        own = {
            "own limit": f"{resource}.getrlimit({resource}.RLIMIT_NOFILE)",
            "own priority": "os.setpriority(os.PRIO_PROCESS, 0, 19)",
            "own cores": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
            "own threads": "__import__('concurrent.futures').futures.ThreadPoolExecutor(2)"
            ".submit(len, 'abc').result()",
        }
        told = pried(fleet, attempts | own)
        got = {name for name, outcome in told.items() if "got" in outcome}
        assert got == own.keys(), told
        assert all("Operation not permitted" in told[name]["refused"] for name in attempts), told
        assert mine.stat().st_mode & 0o7777 == 0o600


def test_a_directory_that_was_closed_is_gone_all_the_same(tmp_path: Path) -> None:
    with Fleet(tmp_path, tls=True) as fleet:
        fleet.start()
        closed = (
            "(os.mkdir(os.environ['TMPDIR'] + '/a', 0), os.mkdir(os.environ['TMPDIR'] + '/b', 0))"
        )
        told = pried(fleet, {"where": "os.environ['TMPDIR']", "closed": closed})
        fleet.wait_until_idle()
        assert "got" in told["closed"]
        assert not os.path.exists(told["where"]["got"].strip("'"))


def test_what_a_generator_leaves_running_ends_with_it(tmp_path: Path) -> None:
    with Fleet(tmp_path, tls=True) as fleet:
        fleet.start()
        told = pried(fleet, {"started": "subprocess.Popen(['sleep', '600']).pid"})
        left = int(told["started"]["got"])
        fleet.wait_until_idle()
        assert not is_alive(left)
        fleet["w1"].signal(15)
        assert fleet["w1"].exit_code() == 0


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
