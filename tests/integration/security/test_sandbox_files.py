"""Files on a real worker that test code tries to read and write, and what keeps them closed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hyperscale.runtime import landlock
from hyperscale.target.process import TargetProcess
from tests.integration.cluster.fleet import Fleet, until
from tests.integration.security.test_sandbox import is_alive, pried

NO_GROUP = 65_534
needs_landlock = pytest.mark.skipif(not landlock.version(), reason="a kernel without landlock")


def got(told: dict[str, Any]) -> dict[str, str]:
    return {name: outcome["got"] for name, outcome in told.items() if "got" in outcome}


def of_the_worker(fleet: Fleet) -> dict[str, str]:
    """What must be refused."""
    worker, folder = fleet["w1"].pid, fleet.folder
    read = {
        "key": fleet.certs / "w1-key.pem",
        "key of another": fleet.certs / "m1-key.pem",
        "secret": folder / "secret",
        "log": folder / "w1.log",
        "shadow": "/etc/shadow",
        "arguments of the worker": f"/proc/{worker}/cmdline",
        "environment of the worker": f"/proc/{worker}/environ",
        "memory of the worker": f"/proc/{worker}/mem",
        "by another way": f"/proc/self/root{folder}/secret",
    }
    attempts = {name: f"open({str(path)!r}, 'rb').read(1)" for name, path in read.items()}
    return attempts | {
        "data": f"os.listdir({str(folder / 'w1')!r})",
        "descriptors of the worker": f"os.listdir('/proc/{worker}/fd')",
        "ptrace": f"ptrace({worker})",
        "signal": f"os.kill({worker}, 0)",
        "signal to the group of the worker": f"os.killpg({worker}, 0)",
        "write beside": f"open({str(folder / 'planted')!r}, 'w')",
        "write into Python": "open(os.path.join(os.path.dirname(os.__file__), 'planted.py'), 'w')",
        "link": f"open((os.symlink({str(folder / 'secret')!r}, 'link'), 'link')[1]).read()",
        "hard link": f"os.link({str(folder / 'secret')!r}, 'hard')",
        "device": "os.mknod('disk', 0o60600, os.makedev(8, 0))",
        "by a program": f"subprocess.check_output(['cat', {str(folder / 'secret')!r}])",
        "root again": "os.setuid(0) if os.getuid() else open('/etc/shadow').read()",
        "mount": "subprocess.check_output(['mount', '--bind', '/etc', os.getcwd()])",
    }


NEEDED = {
    "packages": "__import__('zoneinfo').ZoneInfo('UTC').key",
    "database": "__import__('sqlite3').connect('own.db').execute('create table t (a)')",
    "names": "__import__('socket').getaddrinfo('localhost', 80)",
    "certificates": "__import__('ssl').create_default_context()",
    "who am I": "__import__('pwd').getpwuid(os.getuid()).pw_name",
    "memory": "int(open('/proc/self/statm').read().split()[1]) > 100",
    "processors": "open('/proc/stat').read(3)",
    "nothing": "open('/dev/null', 'w').write('x')",
    "chance": "len(open('/dev/urandom', 'rb').read(8))",
    "python": "subprocess.check_output([sys.executable, '-c', 'import json; print(1)'])",
    "own file": "(Path('own').write_text('mine'), os.rename('own', 'moved'), os.remove('moved'))",
}


@needs_landlock
def test_files_of_the_worker_are_closed_and_what_tests_need_is_open(tmp_path: Path) -> None:
    with Fleet(tmp_path, tls=True) as fleet:
        fleet.start()
        told = pried(fleet, of_the_worker(fleet) | NEEDED)
        assert got(told).keys() == NEEDED.keys(), told
        (up,) = fleet["w1"].logged("sandbox is up")
        assert "landlock" in up["by"]


@needs_landlock
def test_a_key_beneath_what_may_be_read_stays_closed_and_is_told(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    (modules / "shop").mkdir(parents=True)
    (modules / "shop" / "__init__.py").write_text("PRICE = 7")
    with Fleet(tmp_path, tls=True, worker_env={"PYTHONPATH": str(modules)}) as fleet:
        shutil.copytree(fleet.certs, modules / "certs")
        key = modules / "certs" / "w1-key.pem"
        fleet.add_worker("w2", "--certs", str(modules / "certs"))
        fleet.certs = modules / "certs"
        fleet.certify("w2", "worker")
        del fleet.nodes["w1"]
        fleet.start()
        told = pried(
            fleet,
            {
                "key": f"open({str(key)!r}).read()",
                "module": "__import__('shop').PRICE",
            },
        )
        assert got(told) == {"module": "7"}, told
        told_at_start = [line["told"] for line in fleet["w2"].logged("sandbox")]
        (warning,) = [sentence for sentence in told_at_start if "beneath" in sentence]
        assert str(modules / "certs") in warning
        assert "moved" in warning


def test_without_a_sandbox_all_of_it_is_open_and_the_worker_says_so(tmp_path: Path) -> None:
    with Fleet(tmp_path, tls=True, worker_env={"HYPERSCALE_WORKER_SANDBOX": "off"}) as fleet:
        fleet.start()
        attempts = of_the_worker(fleet)
        some = ("key", "secret", "log", "data", "environment of the worker", "signal", "link")
        told = pried(fleet, {name: attempts[name] for name in some})
        assert got(told).keys() == set(some), told
        (warning,) = fleet["w1"].logged("sandbox")
        assert "sandbox is off" in warning["told"]
        assert f"warning: {warning['told']}" in fleet.hyperscale("workers").out


@pytest.fixture
def without_landlock() -> Iterator[dict[str, str]]:
    """The environment of a worker that takes its kernel for one without landlock."""
    folder = Path(tempfile.mkdtemp(prefix="hyperscale-old-kernel-"))
    folder.chmod(0o755)
    (folder / "sitecustomize.py").write_text(
        "from hyperscale.runtime import landlock\nlandlock.version = lambda: 0\n"
    )
    yield {"PYTHONPATH": str(folder)}
    shutil.rmtree(folder)


def test_a_worker_that_cannot_close_its_files_says_so(
    tmp_path: Path, without_landlock: dict[str, str]
) -> None:
    with Fleet(tmp_path, tls=True, worker_env=without_landlock) as fleet:
        fleet.start()
        attempts = of_the_worker(fleet)
        told = pried(fleet, {"key": attempts["key"]} | NEEDED)
        assert got(told).keys() == {"key", *NEEDED}, told
        if os.geteuid() != 0:
            into = ("environment of the worker", "memory of the worker", "ptrace")
            assert not got(pried(fleet, {name: attempts[name] for name in into}))
        (warning,) = fleet["w1"].logged("sandbox")
        assert "test code can read" in warning["told"]
        assert str(fleet.certs) in warning["told"]


def test_a_worker_that_must_close_its_files_and_cannot_does_not_start(
    tmp_path: Path, without_landlock: dict[str, str]
) -> None:
    with Fleet(tmp_path, tls=True, workers=0) as fleet:
        worker = fleet.add_worker("w1", "--sandbox", "required")
        worker.env = without_landlock
        worker.start()
        assert worker.exit_code() != 0
        assert "test code can read" in worker.said
        assert "--run-as" in worker.said


def is_readable_by(user: str) -> bool:
    """Whether that user can run this Python at all."""
    command = [sys.executable, "-c", "import hyperscale"]
    try:
        done = subprocess.run(
            command, user=user, group=NO_GROUP, extra_groups=(), check=False, capture_output=True
        )
    except OSError:
        return False
    return not done.returncode


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may switch users")
nobody_has_python = pytest.mark.skipif(
    os.geteuid() != 0 or not is_readable_by("nobody"), reason="needs a Python that all can read"
)


@nobody_has_python
@pytest.mark.parametrize("kernel", ["old", "new"])
def test_another_user_keeps_files_closed_with_and_without_landlock(
    tmp_path: Path, without_landlock: dict[str, str], kernel: str
) -> None:
    with Fleet(tmp_path, tls=True, workers=0) as fleet:
        worker = fleet.add_worker("w1", "--run-as", "nobody", "--sandbox", "required")
        worker.env = without_landlock if kernel == "old" else {}
        fleet.start()
        told = pried(fleet, of_the_worker(fleet) | NEEDED | {"user": "os.getresuid()"})
        seen = got(told)
        nobody = pwd.getpwnam("nobody").pw_uid
        assert seen.pop("user") == repr((nobody, nobody, nobody))
        if not landlock.version() or kernel == "old":  # a list of processes is for everybody
            seen.pop("arguments of the worker")
        assert seen.keys() == NEEDED.keys(), told


@as_root
@pytest.mark.skipif(is_readable_by("nobody"), reason="here nobody can read Python")
def test_a_user_who_cannot_read_python_is_told_at_the_start(tmp_path: Path) -> None:
    with Fleet(tmp_path, workers=0) as fleet:
        worker = fleet.add_worker("w1", "--run-as", "nobody")
        worker.start()
        assert worker.exit_code() != 0
        assert "cannot read" in worker.said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sandbox", "maybe"), "required, auto, off"),
        (("--run-as", "no-such-user"), "no such user"),
        (("--run-as", "root"), "is root"),
        (("--run-as", "nobody", "--sandbox", "off"), "sandbox, which is off"),
    ],
)
def test_settings_that_cannot_be_are_told(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    with Fleet(tmp_path, workers=0) as fleet:
        worker = fleet.add_worker("w1", *words)
        worker.start()
        assert worker.exit_code() == 2
        assert sentence in worker.said


SPINS = """
from hyperscale.graph import Workflow, step
from hyperscale.testing import HTTPResponse


class Spins(Workflow):
    vus = 1
    iterations = 1

    @step()
    async def spin(self) -> HTTPResponse:
        await self.client.http.get({url!r})
        while True:
            pass
"""


@pytest.mark.parametrize("user", ["", pytest.param("nobody", marks=nobody_has_python)])
def test_a_confined_generator_ends_with_its_worker(tmp_path: Path, user: str) -> None:
    with Fleet(tmp_path, tls=True, workers=0) as fleet, TargetProcess() as target:
        fleet.add_worker("w1", *(("--run-as", user) if user else ()))
        fleet.start()
        file = tmp_path / "spins.py"
        file.write_text(SPINS.format(url=target.url))
        fleet.detached(file)
        until(lambda: any(is_busy(one) for one in fleet["w1"].children()), "a step that spins")
        left = [one.pid for one in fleet["w1"].children()]
        fleet["w1"].signal(signal.SIGKILL)
        until(lambda: not any(is_alive(pid) for pid in left), "the end of all generators")


def is_busy(process: psutil.Process) -> bool:
    try:
        return process.cpu_times().user > 1.0
    except psutil.Error:
        return False
