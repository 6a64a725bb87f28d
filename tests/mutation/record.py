"""One run of the tests -> which tests execute which lines, and how long each takes (CPU seconds).

A plugin of pytest (`-p mutation.record`) writes it in every worker, into the folder that OPENWORK_MUTANTS_RECORD names;
`Record` reads it. Kernels and plans are forgotten before each test: otherwise only the first test that needs a kernel
would be known to execute the compiler, although all of them see what is wrong with it. Processes that a test starts
write what they execute (`sitecustomize`, on their path). A line that runs at import is seen by the tests that enter a
function of its file or, where it has none that is entered, of the files that import it.
"""

from __future__ import annotations

import _thread
import ast
import os
import sqlite3
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
from coverage.numbits import numbits_to_nums

__all__ = ["Record"]

_FOLDER = os.environ.get("OPENWORK_MUTANTS_RECORD", "")


_start_thread = _thread.start_new_thread


def _start_traced(function: Callable[..., Any], *arguments: Any) -> int:
    """As `start_new_thread`, which by itself runs threads that no tracer sees."""

    def traced(*args: Any, **named: Any) -> None:
        sys.settrace(threading.gettrace())  # type: ignore[arg-type]
        function(*args, **named)

    return _start_thread(traced, *arguments)


if _FOLDER:
    _thread.start_new_thread = _start_traced


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
        self.kernels = tempfile.TemporaryDirectory(prefix="openwork-kernels-")
        os.environ["OPENWORK_CACHE_DIR"] = self.kernels.name
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The lines between are this test's, those of the kernels that it needs too."""
        if "openwork" in sys.modules:
            sys.modules["openwork"].clear_caches(disk=True)
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
        self.kernels.cleanup()


def pytest_configure(config: pytest.Config) -> None:
    """Record in every process that runs tests."""
    distributes = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    if _FOLDER and not distributes:
        config.pluginmanager.register(_Recorder(os.environ.get("PYTEST_XDIST_WORKER", "main")))


class Record:
    """What the plugin wrote about the files that were under `source`, and are under `tree`."""

    def __init__(self, folder: Path, source: Path, tree: Path) -> None:
        self.seconds: dict[str, float] = {}
        for path in folder.glob("times-*"):
            for line in path.read_text(encoding="utf-8").splitlines():
                took, _, test = line.partition(" ")
                self.seconds[test] = float(took)
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._at_import: dict[str, set[int]] = defaultdict(set)
        for path in folder.glob("lines-*"):
            for file, test, lines in _rows(path):
                name = Path(file).relative_to(source).as_posix() if Path(file).is_relative_to(source) else ""
                if name and not test:
                    self._at_import[name].update(lines)
                for line in lines if test in self.seconds and name else ():
                    self._lines[name][line].add(test)
        self._importers = _importers(tree)
        self._whole: dict[str, set[str]] = {}

    def tests(self, file: str, lines: tuple[int, int], body: tuple[int, int] | None) -> list[str]:
        """Tests that execute any of the lines, from the quickest on; of lines that run at import, whoever imports the file first,
        then all tests of the file, or of its importers."""
        numbers = range(lines[0], lines[1] + 1)
        seen = self._lines.get(file, {})
        own: set[str] = set().union(*(seen.get(n, ()) for n in numbers if body is not None))
        imported = body is None or not self._at_import[file].isdisjoint(numbers)
        others = self._of_file(file) - own if imported else set()
        return [test for tests in (own, others) for test in sorted(tests, key=self._cost)]

    def _cost(self, test: str) -> tuple[float, str]:
        return self.seconds.get(test, 0.0), test

    def _of_file(self, file: str) -> set[str]:
        if file not in self._whole:
            entered = [file] if self._lines.get(file) else self._importers.get(file, ())
            self._whole[file] = set().union(*(tests for name in entered for tests in self._lines[name].values()))
        return self._whole[file]


def _rows(path: Path) -> Iterator[tuple[str, str, list[int]]]:
    with sqlite3.connect(path) as db:
        rows = "select f.path, c.context, l.numbits from line_bits l join file f on f.id = l.file_id join context c on c.id = l.context_id"
        for file, test, bits in db.execute(rows):
            yield file, test, numbits_to_nums(bits)


def _importers(source: Path) -> dict[str, set[str]]:
    """file -> the files of the package that import it by name."""
    importers: dict[str, set[str]] = defaultdict(set)
    for path in source.rglob("*.py"):
        for target in _imported(path, source):
            for file in (f"{target}.py", f"{target}/__init__.py"):
                if (source / file).is_file():
                    importers[file].add(path.relative_to(source).as_posix())
    return importers


def _imported(path: Path, source: Path) -> Iterable[str]:
    """What a file imports relatively, as paths without their ending."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            if folder.is_relative_to(source):
                yield folder.relative_to(source).as_posix()
                yield from ((folder / alias.name).relative_to(source).as_posix() for alias in node.names)
