"""Where the generators of a worker live: a directory each, and a sandbox around it.

The worker proves the sandbox before it takes any work: a process that is confined as generators
will be tries to read the worker's key, secret and data, and to look into the worker. What it could
do decides whether the worker starts (`sandbox = "required"`), and what it warns about.
"""

from __future__ import annotations

import asyncio
import os
import site
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from hyperscale.engine import unpacking
from hyperscale.engine.confinement import Confinement, Proof, encoded
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.spawning import Isolation
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.runtime import landlock, privileges

TRIAL_S = 60.0  # a start of Python, on a machine with very much to do
_TRIAL = "from hyperscale.engine.confinement import check; check()"
_NAMED_MAX = 5
# What a rule of the sandbox is about and systems replace while they run.
REPLACED = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime")

# What authors' code may see of a worker's environment: how to speak, and where programs are. A test
# gets its own variables with the submission (`-e NAME=VALUE`). Whatever else stands in the
# environment of a worker may be a key, a token or a path to one.
PASSED_ON: Final = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
        # The way out of the machine's network, which the load takes as well.
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        # Where modules are, and how they are read.
        *("PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
        *("PYTHONUTF8", "PYTHONIOENCODING", "PYTHONTZPATH", "PYTHONDONTWRITEBYTECODE"),
    }
)
PREFIX: Final = "LC_"


class Sandbox:
    def __init__(self, settings: WorkerSettings) -> None:
        """Raises BadInput for a user that cannot be had."""
        self._settings = settings
        self._user = _user(settings.run_as)
        self._root: Path | None = None
        self._made = 0
        self._replaceable = _identities()
        self.proof: Proof | None = None
        """None: there is no sandbox."""

    @property
    def is_on(self) -> bool:
        return self._settings.sandbox != "off"

    async def open(self) -> None:
        """Raises RunFailed when generators cannot be confined and must be."""
        self._root = unpacking.make_directory()
        self._root.chmod(0o711)  # for those who live in it, of which nobody sees the others
        if not self.is_on:
            return
        privileges.close_memory()
        self.proof = await asyncio.to_thread(self._tried)
        self._judge(self.proof)

    def close(self) -> None:
        unpacking.remove()

    def start(self) -> GeneratorProcess:
        """A generator process."""
        env, isolation = self._room()
        return GeneratorProcess(env=env, isolation=isolation)

    def has_changed(self) -> bool:
        """Since it was last asked. A rule of landlock is about a file, not its name: generators
        that wait cannot read a list of name servers that has replaced the one they knew."""
        before, self._replaceable = self._replaceable, _identities()
        return self.is_on and self._replaceable != before

    @property
    def means(self) -> str:
        """What closes files, for a log."""
        known = landlock.version()
        found = [f"landlock {known}"] if known else []
        found += [f"user {self._settings.run_as}"] if self._user else []
        return ", ".join(found) or "none"

    def warnings(self) -> list[str]:
        """What an operator should know, in sentences."""
        if self.proof is None:
            return ["sandbox is off: test code can read what this worker can read"]
        found = [
            f"{path} lies beneath {directory}, which test code may read; it is kept closed, but "
            "should be moved elsewhere"
            for path, directory in self.proof.beneath.items()
        ]
        if self.proof.read or self.proof.traces:
            found.append(_opened(self.proof))
        elif os.geteuid() == 0 and self._user is None:
            found.append("test code runs as root, without its powers; --run-as USER is safer")
        return found

    def _room(self) -> tuple[dict[str, str], Isolation]:
        assert self._root is not None, "started before it was opened"
        self._made += 1
        home = self._root / str(self._made)
        home.mkdir(mode=0o700)
        how = Confinement(home=str(home), private=self._private())
        if self._user is not None:
            uid, gid = self._user
            os.chown(home, uid, gid)
            how = msgspec.structs.replace(how, uid=uid, gid=gid)
        env = environment_of(os.environ, str(home))
        return env, Isolation(str(home), encoded(how) if self.is_on else "")

    def _private(self) -> list[str]:
        node = self._settings.node
        found = [node.data, *node.secret_files]
        if node.credentials is not None:
            found.append(node.credentials.key.parent)
        if node.log not in ("stderr", "stdout"):
            found.append(Path(node.log))
        return [str(path.resolve()) for path in found]

    def _tried(self) -> Proof:
        env, isolation = self._room()
        try:
            done = subprocess.run(
                [sys.executable, "-c", _TRIAL, isolation.confinement],
                env=env,
                cwd=isolation.home,
                capture_output=True,
                timeout=TRIAL_S,
                check=True,
            )
            return msgspec.json.decode(done.stdout, type=Proof)
        except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
            said = getattr(error, "stderr", None) or str(error).encode()
            last = said.decode(errors="replace").strip().rpartition("\n")[2]
            raise RunFailed(
                f"generators cannot be confined: {last}", "--sandbox off does without"
            ) from error

    def _judge(self, proof: Proof) -> None:
        if proof.unreadable and self._settings.run_as:
            raise RunFailed(
                f"the user {self._settings.run_as} cannot read {_listed(proof.unreadable)}, which "
                "Python needs",
                "install Python and Hyperscale where every user can read them, such as /opt",
            )
        if self._settings.sandbox == "required" and (proof.read or proof.traces):
            raise RunFailed(
                _opened(proof),
                "it needs Linux 5.13 with landlock, or root and --run-as USER; "
                "--sandbox auto starts without",
            )


def _identities(paths: Sequence[str] = REPLACED) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            facts = os.stat(path)
        except OSError:
            found.append(None)
        else:
            found.append((facts.st_dev, facts.st_ino))
    return found


def _opened(proof: Proof) -> str:
    reach = [*proof.read, *(["the memory of this worker"] if proof.traces else [])]
    return f"test code can read {_listed(reach)}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def _user(name: str) -> tuple[int, int] | None:
    if not name:
        return None
    import pwd

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise BadInput(f"--run-as {name}: there is no such user here") from None
    if found.pw_uid == 0:
        raise BadInput(f"--run-as {name} is root", "name a user who owns nothing, such as nobody")
    if os.geteuid() != 0:
        raise BadInput(
            f"--run-as {name}: only root may switch users",
            "start the worker as root, or leave it out",
        )
    return found.pw_uid, found.pw_gid


def environment_of(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """For a generator that lives in the directory `home`."""
    passed = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith(PREFIX)
    }
    if site.ENABLE_USER_SITE:  # Python would look for these packages in the new home
        passed.setdefault("PYTHONUSERBASE", site.getuserbase())
    return {**passed, "HOME": home, "TMPDIR": home}
