"""The memory store keeps the contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hyperscale.scheduler.stores.contract import Store
from hyperscale.scheduler.stores.memory import MemoryStore
from tests.unit.scheduler.stores.contract.harness import LIMITS, Opener
from tests.unit.scheduler.stores.contract.suite import StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def opener(self) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Store]:
            store = MemoryStore(LIMITS)
            yield store
            await store.close()

        return opened
