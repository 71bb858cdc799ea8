"""The errors a person sees: one sentence of what happened to what, and a hint of what to do.

Every error Hyperscale raises on purpose derives from `HyperscaleError`. The command line prints
the sentence and the hint and exits with `exit_code`; only `--debug` shows a traceback.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    PASSED = 0
    FAILED = 1  # the run could not be carried out, or nothing succeeded
    BAD_INPUT = 2  # bad usage, bad configuration or a bad test file
    LOAD_LOST = 98  # part of the planned load was lost; the report says how much and when
    THRESHOLDS_CROSSED = 99
    STOPPED = 105  # by a signal, after a clean stop with the results so far


class HyperscaleError(Exception):
    exit_code = ExitCode.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = ""  # a traceback from where it happened, for --debug


class BadInput(HyperscaleError):
    """What the user wrote cannot be used: a test file, an option, a configuration value."""

    exit_code = ExitCode.BAD_INPUT


class RunFailed(HyperscaleError):
    """The run could not be carried out or had to end."""
