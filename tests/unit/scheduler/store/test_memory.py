"""The memory store keeps the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from tests.unit.scheduler.store.cases.harness import LIMITS, Opener
from tests.unit.scheduler.store.cases.suite import StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def opener(self) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Store]:
            store = Store(MemoryGround(), LIMITS)
            yield store
            await store.close()

        return opened
