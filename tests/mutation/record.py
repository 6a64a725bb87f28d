"""One run of the tests -> which tests execute which lines, and how long each takes (CPU seconds).

A plugin of pytest (`-p mutation.record`) writes it in every worker, into the folder that OPENWORK_MUTANTS_RECORD names;
`Record` reads it. A line that runs at import only is seen by the tests that enter a function of its file.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from coverage.numbits import numbits_to_nums

__all__ = ["Record"]

_FOLDER = os.environ.get("OPENWORK_MUTANTS_RECORD", "")


def _cpu() -> float:
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


class _Recorder:
    """Runs in each worker: coverage with one context for each test."""

    def __init__(self, name: str) -> None:
        self.times = open(Path(_FOLDER) / f"times-{name}", "w", encoding="utf-8", buffering=1)  # noqa: SIM115
        self.coverage = coverage.Coverage(
            data_file=str(Path(_FOLDER) / f"lines-{name}"), source=[os.environ["OPENWORK_MUTANTS_SOURCE"]],
            config_file=False, messages=False,
        )  # fmt: skip
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The lines between are this test's."""
        self.coverage.switch_context(item.nodeid)
        start = _cpu()
        result = yield
        self.times.write(f"{_cpu() - start:.3f} {item.nodeid}\n")
        self.coverage.switch_context("")
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """What was seen goes to the folder."""
        self.coverage.stop()
        self.coverage.save()
        self.times.close()


def pytest_configure(config: pytest.Config) -> None:
    """Record in every process that runs tests."""
    distributes = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    if _FOLDER and not distributes:
        config.pluginmanager.register(_Recorder(os.environ.get("PYTEST_XDIST_WORKER", "main")))


class Record:
    """What the plugin wrote about the files under `source`."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.seconds: dict[str, float] = {}
        for path in folder.glob("times-*"):
            for line in path.read_text(encoding="utf-8").splitlines():
                took, _, test = line.partition(" ")
                self.seconds[test] = float(took)
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in folder.glob("lines-*"):
            for file, test, lines in _rows(path):
                name = Path(file).relative_to(source).as_posix() if Path(file).is_relative_to(source) else ""
                for line in lines if test and name else ():
                    self._lines[name][line].add(test)

    def tests(self, file: str, lines: tuple[int, int], body: tuple[int, int] | None) -> list[str]:
        """Tests that execute any of the lines, else any of the function's, else (at import) any of the file's."""
        seen = self._lines.get(file, {})
        own: set[str] = set().union(*(seen.get(n, ()) for n in range(lines[0], lines[1] + 1)))
        if not own and body is None:
            own = set().union(*seen.values())
        return sorted(own, key=lambda test: (self.seconds.get(test, 0.0), test))


def _rows(path: Path) -> Iterator[tuple[str, str, list[int]]]:
    with sqlite3.connect(path) as db:
        rows = "select f.path, c.context, l.numbits from line_bits l join file f on f.id = l.file_id join context c on c.id = l.context_id"
        for file, test, bits in db.execute(rows):
            yield file, test, numbits_to_nums(bits)
