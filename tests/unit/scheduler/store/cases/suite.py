"""Every case of the contract; a store's test class derives from this and brings `opener`."""

from __future__ import annotations

from tests.unit.scheduler.store.cases.jobs import JobCases
from tests.unit.scheduler.store.cases.reports import ReportCases
from tests.unit.scheduler.store.cases.schedules import ScheduleCases
from tests.unit.scheduler.store.cases.upkeep import ListingCases, RegistryCases, SweepCases


class StoreContract(JobCases, ReportCases, ScheduleCases, SweepCases, ListingCases, RegistryCases):
    pass
