"""Coverage-guided fuzzing of everything that reads bytes of others; atheris does the guiding.

    python -m tests.fuzz [--seconds 60] [NAME ...]

One process after the other, each for the same time. A crash is any exception that is not a typed
refusal, ten seconds for one input, or 2 GB; what caused it is kept in out/fuzz. The property tests
go through the same doors (`tests/property/test_fuzz_targets.py`), where findings become examples.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["hyperscale"]):
    from tests.fuzz.targets import TARGETS

OUT = Path("out/fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzz what reads bytes of others")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--here", action="store_true", help="the only one, in this process")
    options = parser.parse_args()
    names = options.names or list(TARGETS)
    if options.here:
        fuzz(*names, options.seconds)
    crashed = [name for name in names if fuzzed_beside(name, options.seconds)]
    sys.stdout.write(f"\n{len(names)} fuzzed, crashed: {', '.join(crashed) or 'none'}\n")
    return int(bool(crashed))


def fuzzed_beside(name: str, seconds: int) -> int:
    sys.stdout.write(f"\n--- {name}\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "tests.fuzz", name, "--here", "--seconds", str(seconds)]
    return subprocess.run(command).returncode


def fuzz(name: str, seconds: int) -> None:
    """Does not return."""
    target, corpus = TARGETS[name], OUT / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    flags = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]
    flags += [f"-artifact_prefix={OUT}/{name}-", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], target.feed)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
