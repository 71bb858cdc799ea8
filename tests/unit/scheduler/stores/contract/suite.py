"""Every case of the contract; a store's test class derives from this and brings `opener`."""

from __future__ import annotations

from tests.unit.scheduler.stores.contract.jobs import JobCases
from tests.unit.scheduler.stores.contract.reports import ReportCases
from tests.unit.scheduler.stores.contract.schedules import ScheduleCases
from tests.unit.scheduler.stores.contract.upkeep import ListingCases, RegistryCases, SweepCases


class StoreContract(JobCases, ReportCases, ScheduleCases, SweepCases, ListingCases, RegistryCases):
    pass
