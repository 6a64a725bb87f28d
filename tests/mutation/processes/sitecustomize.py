"""Processes that a recorded test starts write which lines they execute, under the name of the test."""

from __future__ import annotations

import os
import time

_FOLDER = os.environ.get("OPENWORK_MUTANTS_RECORD")
_TEST = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]

if _FOLDER and _TEST:
    import coverage

    seen = coverage.Coverage(
        data_file=f"{_FOLDER}/lines-of-{os.getpid()}-{time.time_ns()}", source=[os.environ["OPENWORK_MUTANTS_SOURCE"]],
        config_file=False, messages=False, context=_TEST, auto_data=True,
    )  # fmt: skip
    seen.start()
