"""A changed tree and tests -> whether they notice: run in a fork, under limits of time and memory, in a scratch copy."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "Running", "options_of_pytest", "preload"]

_MEMORY = 16 << 30
_PATIENCE = 8
"""Seconds of wall clock per second of CPU: a test that waits for ever ends, one on a busy machine goes on."""
_NOTHING = 70
_ANSWERS = {0: "survived", 5: "no answer", _NOTHING: "no answer"}
"""By pytest's exit status: 5 means that no test was run; errors of imports and of collection notice the mutant."""
_OPTIONS = (
    "-x",
    "-q",
    "-o",
    "addopts=",
    "-p",
    "no:cacheprovider",
    "--tb=line",
    "-W",
    "ignore::pytest.PytestUnknownMarkWarning",
)
_COPIED = (
    "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "constraints.txt", "CITATION.cff", ".ci", ".github", "examples", "benchmarks", "docs", "tools",
)  # fmt: skip


def preload(names: Sequence[str]) -> None:
    """Import what the tests need and mutants do not change, once for all forks."""
    for name in names:
        with contextlib.suppress(ImportError):
            __import__(name)


def options_of_pytest() -> list[str]:
    """Options of a run that no plugin of the user's changes."""
    found = [name for name in ("pytest_timeout", "_hypothesis_pytestplugin") if importlib.util.find_spec(name)]
    return [*_OPTIONS, *(option for name in found for option in ("-p", name))]


class Place:
    """A scratch copy of the tree, in which one mutant at a time stands."""

    def __init__(self, root: Path, source: str, tests: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="openwork-mutant-"))
        for name in dict.fromkeys((source.split("/")[0], tests.split("/")[0], *_COPIED)):
            if (root / name).is_dir():
                shutil.copytree(
                    root / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            elif (root / name).exists():
                shutil.copy2(root / name, self.root / name)
        self.source = self.root / source
        self.paths = [str(self.source.parent), str(self.root / tests)]
        self.log = self.root / "log"

    def put(self, file: str, text: str) -> None:
        """The file has this text now; what Python compiled of it before goes."""
        path = self.source / file
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(path.stem + ".*"):
            compiled.unlink()

    def start(self, tests: Sequence[str], seconds: float) -> Running:
        """Run the tests in a fork, at most so many CPU seconds, until the first failure."""
        kernels = tempfile.mkdtemp(prefix="openwork-kernels-")
        pid = os.fork()
        if pid == 0:
            self._child(tests, seconds, kernels)
        return Running(pid, time.monotonic() + _PATIENCE * seconds + 30, kernels)

    def _child(self, tests: Sequence[str], seconds: float, kernels: str) -> None:
        code = _NOTHING
        try:
            os.setsid()
            out = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 3))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(self.root)
            os.environ.update(
                OPENWORK_CACHE_DIR=kernels, PYTHONPATH=os.pathsep.join(self.paths), OPENWORK_DATA="/nonexistent"
            )
            sys.path[:0] = self.paths
            (self.root / "chosen").write_text("\n".join(tests), encoding="utf-8")
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # which takes half a second
            import pytest

            code = int(pytest.main([*options_of_pytest(), f"@{self.root / 'chosen'}"]))
        finally:
            os._exit(code)

    def close(self) -> None:
        """The copy goes."""
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(slots=True)
class Running:
    """A fork at work."""

    pid: int
    until: float
    kernels: str

    def verdict(self) -> tuple[str, float] | None:
        """What came of it and CPU seconds; None while it runs. A crash and a test that does not end notice, too."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = time.monotonic() > self.until
        if pid == 0 and not late:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # its own group: itself and what it started
        if pid == 0:
            _, status, usage = os.wait4(self.pid, 0)
        shutil.rmtree(self.kernels, ignore_errors=True)
        took = usage.ru_utime + usage.ru_stime
        if late and pid == 0:
            return "timed out", took
        if os.WIFSIGNALED(status):
            return ("timed out" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crashed"), took
        return _ANSWERS.get(os.WEXITSTATUS(status), "killed"), took
