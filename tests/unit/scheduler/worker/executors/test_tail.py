from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.scheduler.worker.executors.tail import Tail


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_keeps_the_end_and_says_what_is_cut(chunks: list[bytes]) -> None:
    tail = Tail(limit=64)
    for chunk in chunks:
        tail.add(chunk)
    whole = b"".join(chunks)
    expected = whole[-64:].decode(errors="replace")
    cut = len(whole) > 64
    assert tail.text() == (f"[…]\n{expected}" if cut else expected)
    assert tail._size <= 64 + 40
