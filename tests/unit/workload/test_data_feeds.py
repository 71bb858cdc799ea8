from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hyperscale import feed
from hyperscale.errors import BadInput
from hyperscale.workload.data import Feed, unread


def read(data: Any, beside: Path | None = None) -> Feed:
    declared = unread(data)
    assert declared is not None
    return declared.read(beside)


def take(rows: Iterator[Any], count: int) -> list[Any]:
    return list(islice(rows, count))


def numbers() -> Iterator[int]:
    yield from range(5)


def test_csv_rows_are_dicts(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("\ufeffname,password\nada,1\n\ngrace,2\n", "utf-8")
    users = read("users.csv", tmp_path)
    assert users.source == [{"name": "ada", "password": "1"}, {"name": "grace", "password": "2"}]
    assert users.name == "users.csv"


def test_json_rows_are_what_the_list_holds(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text('[{"name": "ada"}, 5]')
    assert read(tmp_path / "users.json").source == [{"name": "ada"}, 5]


def test_each_core_has_its_own_rows() -> None:
    rows = read(feed(range(10), when_done="stop"))
    assert [list(rows.rows_for(core, 3)) for core in range(3)] == [
        [0, 3, 6, 9],
        [1, 4, 7],
        [2, 5, 8],
    ]


def test_rows_repeat_by_default() -> None:
    assert take(read([1, 2, 3]).rows_for(0, 2), 5) == [1, 3, 1, 3, 1]
    assert take(read(numbers).rows_for(1, 2), 5) == [1, 3, 1, 3, 1]


def test_more_cores_than_rows_share_when_they_repeat() -> None:
    assert take(read([1, 2]).rows_for(3, 4), 3) == [2, 1, 2]
    assert list(read(feed([1, 2], when_done="stop")).rows_for(3, 4)) == []


def test_shuffled_rows_stay_unique_over_cores_and_change_with_the_round() -> None:
    rows = read(feed(range(100), order="shuffle"))
    first = [take(rows.rows_for(core, 2, seed=7), 50) for core in range(2)]
    assert sorted(first[0] + first[1]) == list(range(100))
    assert first[0] != list(range(0, 100, 2))
    again = take(rows.rows_for(0, 2, seed=7), 100)
    assert again[:50] == first[0]
    assert again[50:] != first[0]


def test_an_endless_generator_is_only_read_as_far_as_needed() -> None:
    def forever() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    rows = read(forever)
    assert take(rows.rows_for(1, 4), 3) == [1, 5, 9]


def test_no_data() -> None:
    assert unread(None) is None


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("gone.csv", None, r"data file gone\.csv does not exist"),
        ("empty.csv", "", r"empty\.csv has no rows"),
        ("head.csv", "name,password\n", r"head\.csv has no rows"),
        ("short.csv", "name,password\nada\n", r"short\.csv row 2 does not have the 2 fields"),
        ("long.csv", "name\nada,1\n", r"long\.csv row 2 does not have the 1 fields"),
        ("empty.json", "[]", r"empty\.json has no rows"),
        ("broken.json", "[1,", r"broken\.json is not JSON"),
        ("object.json", "{}", r"object\.json holds dict, not a list"),
        ("users.xml", "<a/>", r"users\.xml is neither \.csv, \.tsv nor \.json"),
        ("latin.csv", b"name\n\xe9\n", r"latin\.csv is not UTF-8"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str | bytes | None, sentence: str) -> None:
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        read(name, tmp_path)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(BadInput, match="cannot be read"):
        read("dir.csv", tmp_path)


def test_bad_sources() -> None:
    with pytest.raises(BadInput, match="data has no rows"):
        read([])
    with pytest.raises(BadInput, match="data is a generator, which can only be read once"):
        read(numbers())
    with pytest.raises(BadInput, match="data is 5 but must be a file"):
        read(5)
    with pytest.raises(BadInput, match="<lambda> yields no rows"):
        read(lambda: iter([]))
    with pytest.raises(BadInput, match="<lambda> needs arguments"):
        read(lambda self: iter([]))
    with pytest.raises(BadInput, match="<lambda> returned 5"):
        read(lambda: 5)
    with pytest.raises(BadInput, match="cannot be shuffled"):
        read(feed(numbers, order="shuffle"))
    with pytest.raises(BadInput, match=r"feed\(per='user'\) is not known"):
        feed([1], per="user")  # type: ignore[arg-type]
