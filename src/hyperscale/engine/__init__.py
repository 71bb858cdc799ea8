"""Runs workloads: virtual users on one core, a pool of cores on one machine.

Nothing is imported here: a generator process would load all that its parent needs, too.
"""
