"""One settings system for all commands: a name, the places where it can be set, and who set it.

A command declares its settings as `Section`s (`sections`): `run` in `config.run`, nodes, the
cluster's clients and the scheduler in their own `settings` modules. Strongest first: flag,
environment (`HYPERSCALE_*`), test file (for `run`), config file, default.
"""
