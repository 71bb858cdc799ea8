"""Test data: rows of a CSV or JSON file, a list, or whatever a generator function yields.

Every row goes to one virtual user at a time: core n of m takes rows n, n+m, n+2m, ..., so rows are
unique over cores without any talk between them. A step sees its row as `self.row` and as the
argument `row`.
"""

from __future__ import annotations

import csv
import inspect
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.apportion import turns
from hyperscale.workload.files import locate

Per = Literal["iteration", "vu"]
WhenDone = Literal["repeat", "stop"]
Order = Literal["sequential", "shuffle"]

Rows = Sequence[Any]
Source = str | Path | Iterable[Any] | Callable[[], Iterable[Any]]


@dataclass(frozen=True)
class Feed:
    """Where rows come from and how they are handed out."""

    source: Rows | Callable[[], Iterable[Any]]
    per: Per = "iteration"  # a new row for each iteration, or one row for a user's whole life
    when_done: WhenDone = "repeat"  # begin again, or end the user
    order: Order = "sequential"
    name: str = "data"

    def rows_for(
        self, core: int, cores: int, seed: int = 0, among: tuple[int, ...] = (0, 1)
    ) -> Iterator[Any]:
        """The rows of one core. All cores must be given the same `seed`. `among`: of several
        datacenters the number of this one, and the share of each."""
        rounds = itertools.count() if self.when_done == "repeat" else range(1)
        for number in rounds:
            empty = True
            own = _own(self._round(seed + number), among)
            for row in itertools.islice(own, core, None, cores):
                empty = False
                yield row
            if empty and number == 0 and self.when_done == "repeat":
                yield from self._shared_rows(core, seed, among)

    def _round(self, seed: int) -> Iterator[Any]:
        if callable(self.source):
            return iter(_call(self.source, self.name))
        if self.order == "sequential":
            return iter(self.source)
        shuffled = list(self.source)
        random.Random(seed).shuffle(shuffled)
        return iter(shuffled)

    def _shared_rows(self, core: int, seed: int, among: tuple[int, ...]) -> Iterator[Any]:
        """More cores than rows: repeating means sharing, so this core joins in at its place."""
        rows = list(_own(self._round(seed), among)) or list(self._round(seed))
        if not rows:
            raise BadInput(f"{self.name} yields no rows")
        start = core % len(rows)
        yield from itertools.cycle(rows[start:] + rows[:start])


def _own(rows: Iterator[Any], among: tuple[int, ...]) -> Iterator[Any]:
    """What is for this datacenter."""
    number, *shares = among
    if len(shares) == 1:
        return rows
    mine = (turn == number for turn in itertools.cycle(turns(tuple(shares))))
    return itertools.compress(rows, mine)


def feed(
    source: Source,
    *,
    per: Per = "iteration",
    when_done: WhenDone = "repeat",
    order: Order = "sequential",
) -> Unread:
    """Test data with other than the usual rules, for a workflow's `data` attribute."""
    for name, value, allowed in (
        ("per", per, get_args(Per)),
        ("when_done", when_done, get_args(WhenDone)),
        ("order", order, get_args(Order)),
    ):
        if value not in allowed:
            words = " or ".join(repr(word) for word in allowed)
            raise BadInput(f"feed({name}={value!r}) is not known", f"{name} is {words}")
    return Unread(source, per, when_done, order)


@dataclass(frozen=True)
class Unread:
    """A feed as declared; `read` opens the file when the plan is made, not when the class is."""

    source: Source
    per: Per = "iteration"
    when_done: WhenDone = "repeat"
    order: Order = "sequential"

    def read(self, beside: Path | None = None) -> Feed:
        """Paths are looked up beside the test file first, then from the current directory."""
        source = self.source
        if isinstance(source, (str, Path)):
            rows, name = _read_file(locate(str(source), beside)), str(source)
        elif callable(source):
            return self._generated(source)
        elif isinstance(source, Iterator):
            raise BadInput(
                f"data is a {type(source).__name__}, which can only be read once",
                "give the generator function itself (data = rows, not rows()), or a list",
            )
        elif isinstance(source, Iterable):
            rows, name = list(source), "data"
        else:
            raise BadInput(f"data is {source!r} but must be a file, a list or a generator function")
        if not rows:
            raise BadInput(f"{name} has no rows", "put at least one row of test data in it")
        return Feed(rows, self.per, self.when_done, self.order, name)

    def _generated(self, source: Callable[[], Iterable[Any]]) -> Feed:
        name = getattr(source, "__name__", "data")
        if self.order == "shuffle":
            raise BadInput(
                f"{name} yields its rows one by one, so they cannot be shuffled",
                "shuffle inside the function, or give a list",
            )
        rows = iter(_call(source, name))
        if next(rows, _NOTHING) is _NOTHING:
            raise BadInput(f"{name} yields no rows")
        return Feed(source, self.per, self.when_done, self.order, name)


_NOTHING = object()


def unread(data: object) -> Unread | None:
    """A workflow's `data` attribute as a feed, not yet opened."""
    if data is None or isinstance(data, Unread):
        return data
    return Unread(data)  # type: ignore[arg-type]


def _call(source: Callable[[], Iterable[Any]], name: str) -> Iterable[Any]:
    try:
        inspect.signature(source).bind()
    except TypeError as error:
        raise BadInput(
            f"data function {name} needs arguments but is called without: {error}",
            "define it outside the class, or as a staticmethod without arguments",
        ) from error
    rows = source()
    if not isinstance(rows, Iterable):
        raise BadInput(f"data function {name} returned {rows!r}, which has no rows")
    return rows


def _read_file(path: Path) -> Rows:
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".json": _read_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadInput(f"data file {path} is neither .csv, .tsv nor .json")
    try:
        return reader(path)
    except FileNotFoundError:
        raise BadInput(
            f"data file {path} does not exist",
            "paths are looked up beside the test file, then from the current directory",
        ) from None
    except OSError as error:
        raise BadInput(f"data file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"data file {path} is not UTF-8: {error}") from error


def _read_csv(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        try:
            rows = list(reader)
        except csv.Error as error:
            raise BadInput(f"data file {path} line {reader.line_num}: {error}") from error
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise BadInput(
                f"data file {path} row {number} does not have the {len(reader.fieldnames or ())} "
                "fields of the header"
            )
    return rows


def _read_json(path: Path) -> Rows:
    try:
        rows = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise BadInput(f"data file {path} is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise BadInput(f"data file {path} holds {type(rows).__name__}, not a list of rows")
    return rows
