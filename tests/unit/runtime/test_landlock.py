"""What is asked of kernels with different versions of landlock, and of those without."""

from __future__ import annotations

import ctypes
import errno
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hyperscale.runtime import landlock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="landlock is of Linux")


class Kernel:
    """Answers system calls as a kernel of that version."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.asked: list[tuple[int, tuple[Any, ...]]] = []

    def __call__(self, number: int, *arguments: Any) -> int:
        self.asked.append((number, arguments))
        if number == landlock._CREATE_RULESET and arguments[-1] == landlock._ASK_VERSION:
            return self._version
        return 0


@pytest.fixture
def fresh() -> Iterator[None]:
    landlock.version.cache_clear()
    yield
    landlock.version.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_a_kernel_that_cannot_or_may_not_has_none(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: Any) -> int:
        ctypes.set_errno(error)
        return -1

    monkeypatch.setattr(landlock, "_syscall", refuse)
    assert landlock.version() == 0
    with pytest.raises(landlock.Refusal, match="no landlock"):
        landlock.Rules()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("version", "rights", "scopes"),
    [(1, 13, 0), (2, 14, 0), (3, 15, 0), (4, 15, 0), (5, 16, 0), (6, 16, 3), (9, 16, 3)],
)
def test_only_what_a_kernel_knows_is_asked_of_it(
    monkeypatch: pytest.MonkeyPatch, version: int, rights: int, scopes: int
) -> None:
    kernel = Kernel(version)
    monkeypatch.setattr(landlock, "_syscall", kernel)
    landlock.Rules()
    number, (asked, size, flags) = kernel.asked[-1]
    assert (number, size, flags) == (444, 24, 0)
    assert struct.unpack("QQQ", asked) == ((1 << rights) - 1, 0, scopes)


@pytest.mark.usefixtures("fresh")
def test_rights_of_directories_are_not_asked_for_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    kernel = Kernel(7)
    monkeypatch.setattr(landlock, "_syscall", kernel)
    rules = landlock.Rules()
    (tmp_path / "file").write_text("")
    rules.allow(str(tmp_path / "file"), landlock.READ)
    rules.allow(str(tmp_path / "nowhere"), landlock.READ)
    number, (_, kind, rule, _) = kernel.asked[-1]
    assert (number, kind) == (445, 1)
    assert struct.unpack("=Qi", rule)[0] == landlock.EXECUTE | landlock.READ_FILE
    assert [number for number, _ in kernel.asked].count(445) == 1


@pytest.mark.usefixtures("fresh")
def test_devices_cannot_be_made_where_files_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    kernel = Kernel(7)
    monkeypatch.setattr(landlock, "_syscall", kernel)
    landlock.Rules().allow_writing(str(tmp_path))
    (rights, _) = struct.unpack("=Qi", kernel.asked[-1][1][2])
    assert rights & (1 << 8)  # a file
    assert not rights & (1 << 6 | 1 << 11)  # a character device, a block device
