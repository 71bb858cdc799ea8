"""Every figure the project promises for one machine and HTTP/1.1 without TLS.

    python benchmarks/http1.py                      all of it, about 35 minutes
    python benchmarks/http1.py --only get,flow      some rows
    python benchmarks/http1.py --rounds 1 --seconds 1 --minutes 0
    python benchmarks/http1.py --only before --before CHECKOUT

Tools are compared by requests per CPU second and by requests per second (see races.py).
Progress goes to stderr, Markdown to stdout. Exit code 1 when a required figure is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from harness import NotMeasured, failed, machine, note, raise_open_file_limit, table
from races import Comparison, comparisons_table
from rows import NEED_NGINX, PARTS, Part
from targets import Nginx, Target, find_target


def options_of(description: str | None, names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each window")
    parser.add_argument("--before", metavar="CHECKOUT", help="of earlier code, to compare with")
    parser.add_argument("--only", default=",".join(names), help=f"of {', '.join(names)}")
    if "soak" in names:
        parser.add_argument(
            "--minutes", type=float, default=6.0, help="of the memory run; 0 skips it"
        )
    options = parser.parse_args()
    options.chosen = options.only.split(",")
    if unknown := [name for name in options.chosen if name not in names]:
        parser.error(f"unknown part {', '.join(unknown)}: choose from {', '.join(names)}")
    return options


def take(target: Target, options: argparse.Namespace) -> dict[str, Part]:
    """The chosen parts, by their titles."""
    parts = {}
    for name in options.chosen:
        title, measure = PARTS[name]
        note(title)
        if name in NEED_NGINX and not isinstance(target, Nginx):
            reason = "not measured: nginx is not installed"
            parts[title] = Part([Comparison(title, "", "", reason, "", None)])
            continue
        try:
            parts[title] = measure(target, options)
        except NotMeasured as error:
            parts[title] = Part(figures=[failed(title, "", error)])
    return parts


def main(description: str | None, scheme: str, names: Sequence[str]) -> int:
    options = options_of(description, names)
    raise_open_file_limit()
    environment = machine()
    try:
        with find_target(scheme) as target:
            parts = take(target, options)
    except NotMeasured as error:
        print(f"not measured: {error}")
        return 1
    comparisons = [row for part in parts.values() for row in part.comparisons]
    figures = [figure for part in parts.values() for figure in part.figures]
    print(f"{environment}; the target is {target.name}, {scheme}.")
    print(f"Medians of {options.rounds} interleaved rounds of {options.seconds:g} s (range).\n")
    if comparisons:
        print(comparisons_table(comparisons) + "\n")
    if figures:
        print(table(figures) + "\n")
    for title, part in parts.items():
        if part.detail:
            print(f"### {title}\n\n{part.detail}\n")
    return int(any(row.ok is False for row in [*comparisons, *figures]))


if __name__ == "__main__":
    sys.exit(main(__doc__, "http", list(PARTS)))
