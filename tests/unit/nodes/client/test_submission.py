"""A test on its way to a cluster: how large it may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperscale.engine.source import FileSource
from hyperscale.errors import BadInput
from hyperscale.nodes.client.submission import prepare
from hyperscale.nodes.protocol.jobs import JOBS, SubmitJob
from hyperscale.wire.messages import encode_body

TEST = """
from hyperscale import Workflow, step
from hyperscale.testing import HTTPResponse


class Rows(Workflow):
    vus = 1
    data = "rows.csv"

    @step()
    async def get(self) -> HTTPResponse:
        return await self.client.http.get("http://127.0.0.1:1/")
"""


def source(folder: Path, rows: bytes) -> FileSource:
    (folder / "load.py").write_text(TEST)
    (folder / "rows.csv").write_bytes(b"id\n" + rows)
    return FileSource(str(folder / "load.py"))


def digits(count: int) -> bytes:
    """In lines of a hundred; they cannot be packed into less than their half."""
    return b"\n".join(os.urandom(50).hex().encode() for _ in range(count // 100))


def test_what_is_taken_fits_into_the_message(tmp_path: Path) -> None:
    message = prepare(source(tmp_path, digits(12_000_000))).message("j1")
    encode_body(JOBS.by_struct[SubmitJob], message)


def test_too_much_is_refused_and_the_largest_are_named(tmp_path: Path) -> None:
    said = (
        r"\d MB when packed, and at most 7\.3 MB can be sent; the largest are rows\.csv \(16\.\d MB"
    )
    with pytest.raises(BadInput, match=said):
        prepare(source(tmp_path, digits(16_000_000)))


def test_what_packs_well_may_be_large(tmp_path: Path) -> None:
    message = prepare(source(tmp_path, (b"1" * 99 + b"\n") * 400_000)).message("j1")
    assert len(message.body) < 100_000
