"""`hyperscale wal` on the command line."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from hyperscale.cli.wal import wal
from hyperscale.errors import BadInput
from hyperscale.ledger.wal import LogDamaged, WalSettings, WriteAheadLog
from hyperscale.runtime.real import RealHost

Out = pytest.CaptureFixture[str]
SETTINGS = WalSettings(segment_bytes_max=500)


def make(folder: Path, records: int = 12) -> None:
    async def work() -> None:
        async with RealHost("test", folder) as host:
            log = await WriteAheadLog.open(host, "", SETTINGS)
            for number in range(records):
                await log.append(b"record %d " % number * 8)
            await log.close()

    asyncio.run(work())


def records_in(folder: Path) -> list[int]:
    async def work() -> list[int]:
        async with RealHost("test", folder) as host:
            log = await WriteAheadLog.open(host, "", SETTINGS)
            await log.append(b"new")
            lsns = [record.lsn async for record in log.read()]
            await log.close()
            return lsns

    return asyncio.run(work())


def damage(folder: Path, number: int = 2, at: int = 100) -> None:
    path = folder / f"segment_{number:08d}.wal"
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def test_a_good_log_is_called_good(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert wal("verify", str(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "segment_00000001.wal" in out
    assert "good: 12 records up to LSN 12, nothing is wrong" in out
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_empty_directory_is_an_empty_log(tmp_path: Path, capsys: Out) -> None:
    assert wal("verify", str(tmp_path)) == 0
    assert "no segments" in capsys.readouterr().out


def test_a_torn_end_is_no_damage(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    last = max(tmp_path.iterdir())
    last.write_bytes(last.read_bytes()[:-5])
    assert wal("verify", str(tmp_path)) == 0
    assert "its torn end is cut off at the next start" in capsys.readouterr().out


def test_damage_is_shown_with_what_to_do(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    damage(tmp_path)
    assert wal("verify", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert "damaged: segment_00000002.wal is damaged at byte 64" in out
    assert "hyperscale wal repair" in out


def test_findings_as_json(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    damage(tmp_path)
    assert wal("verify", str(tmp_path), json=True) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["good"] is False
    assert data["damage"]["file"] == "segment_00000002.wal"
    assert data["segments"][0]["case"] == "sealed"


def test_records_are_printed(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    assert wal("dump", str(tmp_path), first="5", limit="2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["5", "6"]
    assert "record 4" in lines[0]
    assert wal("dump", str(tmp_path), limit="0", json=True) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["lsn"] for row in rows] == list(range(1, 13))


def test_a_dump_of_a_damaged_log_stops_at_the_damage(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    damage(tmp_path)
    assert wal("dump", str(tmp_path)) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert "damaged at byte 64" in err


def test_repair_says_what_it_would_do_and_does_it_on_demand(tmp_path: Path, capsys: Out) -> None:
    make(tmp_path)
    damage(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert wal("repair", str(tmp_path)) == 1
    assert "nothing was changed" in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == before
    assert wal("repair", str(tmp_path), yes=True) == 0
    assert "the log ends with LSN 4" in capsys.readouterr().out
    assert (tmp_path / "segment_00000002.wal.damaged").exists()
    assert wal("verify", str(tmp_path)) == 0
    lsns = records_in(tmp_path)
    assert lsns[:-1] == [1, 2, 3, 4]
    assert lsns[-1] > 12, "no number is given again"


def test_looking_is_allowed_beside_a_running_node_and_repairing_is_not(
    tmp_path: Path, capsys: Out
) -> None:
    folder = tmp_path / "wal"
    make(folder)
    damage(folder)

    async def beside() -> None:
        async with RealHost("node", tmp_path) as host:
            await host.disk.make_directory("wal")
            assert await asyncio.to_thread(wal, "verify", str(folder)) == 1
            assert await asyncio.to_thread(wal, "dump", str(folder)) == 1
            with pytest.raises(BadInput, match=f"{tmp_path} is in use by process {os.getpid()}"):
                await asyncio.to_thread(wal, "repair", str(folder), yes=True)

    asyncio.run(beside())
    assert not (folder / "segment_00000002.wal.damaged").exists()
    assert wal("repair", str(folder), yes=True) == 0


@pytest.mark.parametrize("at", [0, 20, 63])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_header_can_be_repaired(tmp_path: Path, number: int, at: int) -> None:
    make(tmp_path)
    damage(tmp_path, number, at)
    with pytest.raises(LogDamaged):
        records_in(tmp_path)
    assert wal("repair", str(tmp_path), yes=True) == 0
    assert wal("repair", str(tmp_path), yes=True) == 0, "there is nothing left to do"
    assert wal("verify", str(tmp_path)) == 0
    lsns = records_in(tmp_path)
    assert lsns[:-1] == list(range(1, 4 * (number - 1) + 1))
    assert records_in(tmp_path)[-2:] == [lsns[-1], lsns[-1] + 1], "it goes on from there"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"action": "mend"}, "there is no action 'mend'"),
        ({"directory": "/nowhere/at/all"}, "is not a directory"),
        ({"first": "x"}, "--from takes a whole number"),
        ({"limit": "-1"}, "--limit takes a whole number"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, words: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        wal(**{"action": "verify", "directory": str(tmp_path), **words})  # type: ignore[arg-type]
