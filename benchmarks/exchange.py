"""What one exchange costs the client, without the engine: look here first when I/O changes.

    python benchmarks/exchange.py                        plain and TLS, 64 users, a minute
    python benchmarks/exchange.py --before CHECKOUT      in turns with earlier code
    python benchmarks/exchange.py --schemes https --users 1000 --path /100000

Requests per second of CPU time (user and system), beside wrk in the same rounds where it is
installed. One process on core 0, nginx on core 1. nginx has /, /1000, /100000 (bytes) and /login.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from contenders import WRK
from harness import CLIENT_CORE, HERE, NotMeasured, interleave, last_words, machine, note, on_core
from targets import find_target

USERS_FILE = HERE / "peers" / "exchange_users.py"


def spent(command: Sequence[str], checkout: str | None = None) -> tuple[str, float]:
    """What a program printed, and the CPU seconds of its whole life."""
    environment = {**os.environ, **({"PYTHONPATH": f"{checkout}/src"} if checkout else {})}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        with on_core(CLIENT_CORE):
            process = subprocess.Popen(command, stdout=out, stderr=complaints, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        complaints.seek(0)
        if process.returncode:
            raise NotMeasured(last_words(complaints.read()))
        return out.read(), used.ru_utime + used.ru_stime


def ours(url: str, options: argparse.Namespace, checkout: str | None = None) -> float:
    size = [str(options.users), str(options.seconds)]
    printed, _ = spent([sys.executable, "-P", str(USERS_FILE), url, *size], checkout)
    seen = json.loads(printed)
    return float(seen["requests"] / seen["cpu_s"])


def wrk(url: str, options: argparse.Namespace) -> float:
    length = f"-d{max(1, round(options.seconds))}s"
    printed, cpu_s = spent([WRK.path(), "-t1", f"-c{options.users}", length, url])
    counted = re.search(r"(\d+) requests in", printed)
    if complaint := WRK.complaint(printed, Path()):
        raise NotMeasured(complaint)
    if counted is None or not int(counted[1]):
        raise NotMeasured("wrk made no request in this time")
    return int(counted[1]) / cpu_s


def compare(scheme: str, options: argparse.Namespace) -> str:
    with find_target(scheme) as target:
        url = f"{target.url}{options.path}"
        turns: list[tuple[str, Callable[[], float]]] = [
            ("this code", functools.partial(ours, url, options)),
            ("wrk", functools.partial(wrk, url, options)),
        ]
        if options.before:
            checkout = str(Path(options.before).resolve())
            turns.insert(1, ("before", functools.partial(ours, url, options, checkout)))
        taken = interleave(turns, options.rounds)
    lines = [f"### {scheme}, {options.users} users, {options.path}", ""]
    lines += [taken.report("requests per CPU second"), ""]
    lines += [
        f"this code against {label}: {taken.ratio('this code', label)}" for label, _ in turns[1:]
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", metavar="CHECKOUT", help="of earlier code, to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each turn")
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--path", default="/")
    parser.add_argument("--schemes", default="http,https")
    options = parser.parse_args()
    if options.before and not (Path(options.before) / "src" / "hyperscale").is_dir():
        parser.error(f"{options.before} is no checkout of Hyperscale")
    note(machine())
    code = 0
    for scheme in options.schemes.split(","):
        note(f"{scheme}:")
        try:
            print(compare(scheme, options), flush=True)
        except NotMeasured as error:
            print(f"### {scheme}\n\nnot measured: {error}\n", flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
