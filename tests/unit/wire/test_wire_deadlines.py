"""Many deadlines on one timer."""

import asyncio

from hyperscale.wire.deadlines import Deadlines


def test_they_expire_in_order_and_only_if_not_forgotten() -> None:
    async def main() -> None:
        expired: list[int] = []
        everything = asyncio.Event()

        def note(key: int) -> None:
            expired.append(key)
            if key == 5:
                everything.set()

        deadlines = Deadlines(note)
        deadlines.add(5, 0.6)
        deadlines.add(1, 0.2)
        deadlines.add(2, 0.4)
        deadlines.add(3, 0.3)
        deadlines.forget(3)
        deadlines.forget(99)
        assert len(deadlines) == 3
        await asyncio.wait_for(everything.wait(), 10)
        assert expired == [1, 2, 5]
        assert len(deadlines) == 0

    asyncio.run(main())


def test_an_expiry_may_add_and_forget_others() -> None:
    async def main() -> None:
        expired: list[int] = []
        last = asyncio.Event()

        def note(key: int) -> None:
            expired.append(key)
            deadlines.forget(2)
            if key == 1:
                deadlines.add(3, 0)
            else:
                last.set()

        deadlines = Deadlines(note)
        deadlines.add(1, 0)
        deadlines.add(2, 0)
        await asyncio.wait_for(last.wait(), 10)
        assert expired == [1, 3]

    asyncio.run(main())


def test_closing_ends_the_timer() -> None:
    async def main() -> None:
        expired: list[int] = []
        deadlines = Deadlines(expired.append)
        deadlines.add(1, 0)
        deadlines.close()
        await asyncio.sleep(0.01)
        assert expired == []

    asyncio.run(main())
