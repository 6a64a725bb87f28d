"""Mutants -> those that a test notices: the tests are collected once, and each mutant is a fork of that process.

A fork gives the changed functions their new code, and runs tests until the first failure: a second or less, where a
process of its own takes five. Lines that run at import are not changed so, and what a test starts does not see the
change: what no fork notices is to be tried in a process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import resource
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from .changes import Change

__all__ = ["InProcess", "Trial", "changed_code"]

_SECONDS = 20
"""CPU seconds of a fork."""
_PATIENCE = 8
"""Seconds of wall clock for each: tests may wait, and the machine may be busy."""
_NOTICED, _CRASHED = 1, 3


@dataclass(slots=True)
class Trial:
    """A change of a file, the tests that see it, and what came of it in how many CPU seconds: `by` is the test that noticed."""

    file: str
    change: Change
    tests: tuple[str, ...]
    verdict: str = ""
    by: str = ""
    seconds: float = 0.0


def changed_code(text: str, change: Change, path: str) -> dict[tuple[str, int], CodeType]:
    """(qualified name, first line) of each function that the change changes -> its new code, on as many lines."""
    more = "\n" * change.before.count("\n")
    after = change.after[:-1] + more + ")" if change.after.endswith(")") else change.after + more
    old = _functions_of(text, path)
    new = _functions_of(text[: change.start] + after + text[change.end :], path)
    return {name: code for name, code in new.items() if name in old and old[name] != code}


def _functions_of(text: str, path: str) -> dict[tuple[str, int], CodeType]:
    return {(c.co_qualname, c.co_firstlineno): c for c in _inside(compile(text, path, "exec"))}


def _inside(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _inside(const)


@dataclass(slots=True)
class _Fork:
    """A fork at work on a trial."""

    pid: int
    trial: Trial
    end: float
    folder: Path

    def over(self) -> bool:
        """Whether it has ended, by itself or late; the trial then has its verdict."""
        pid, status, used = os.wait4(self.pid, os.WNOHANG)
        if pid == 0 and time.monotonic() <= self.end:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # its own group: itself and what it started
        if pid == 0:
            _, status, used = os.wait4(self.pid, 0)
        self.trial.seconds += used.ru_utime + used.ru_stime
        note = self.folder / "noticed"
        self.trial.by = note.read_text(encoding="utf-8") if note.exists() else ""
        self.trial.verdict = _verdict(status)
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


@dataclass
class InProcess:
    """A plugin of pytest that tries mutants in place of running the tests."""

    trials: Sequence[Trial]
    source: Path
    jobs: int
    tell: Callable[[Trial], None]
    until: float = float("inf")
    _sound: dict[str, bool] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant, and tell what came of it."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions = _functions(self.source)
        gc.collect()
        gc.freeze()
        waiting, running = list(reversed(self.trials)), list[_Fork]()
        while waiting or running:
            if time.monotonic() >= self.until:
                waiting.clear()
            while waiting and len(running) < self.jobs:
                running += self._start(waiting.pop())
            for fork in [f for f in running if f.over()]:
                running.remove(fork)
                trial = fork.trial
                if trial.verdict == "killed" and not self._passes(trial.by):
                    waiting.append(trial)  # once more, without a test that fails by itself
                else:
                    self.tell(trial)
            time.sleep(0.002)
        return True

    def _start(self, trial: Trial) -> list[_Fork]:
        """The trial's fork; none where no function that is there changes, or no test is left."""
        path = str(self.source / trial.file)
        codes = changed_code(Path(path).read_text(encoding="utf-8"), trial.change, path)
        targets = []
        for function in self.functions.get(path, ()):
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None:
                targets.append((function, code))
        tests = [t for t in trial.tests if t in self.items and self._sound.get(t, True)]
        if not tests or not targets or any(f.__code__.co_freevars != c.co_freevars for f, c in targets):
            trial.verdict = "not changed"
            self.tell(trial)
            return []
        return [self._fork(trial, tests, targets)]

    def _fork(self, trial: Trial, tests: list[str], targets: list[tuple[FunctionType, CodeType]]) -> _Fork:
        folder = Path(tempfile.mkdtemp(prefix="openwork-mutant-"))
        pid = os.fork()
        if pid == 0:
            try:
                self._child(tests, targets, folder)
            finally:
                os._exit(_CRASHED)
        return _Fork(pid, trial, time.monotonic() + _PATIENCE * _SECONDS, folder)

    def _child(self, tests: list[str], targets: list[tuple[FunctionType, CodeType]], folder: Path) -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["OPENWORK_CACHE_DIR"] = str(folder / "kernels")
        for function, code in targets:
            function.__code__ = code
        stop = _Stop(folder / "noticed")
        items = [self.items[t] for t in tests]
        items[0].config.pluginmanager.register(stop)
        for item in items:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        os._exit(0)

    def _passes(self, test: str) -> bool:
        """Whether the test passes in a fork without a change."""
        if test and test not in self._sound:
            fork = self._fork(Trial("", _NO_CHANGE, ()), [test], [])
            while not fork.over():
                time.sleep(0.002)
            self._sound[test] = fork.trial.verdict == "survived"
        return self._sound.get(test, True)


_NO_CHANGE = Change(0, "", 0, 0, "", "", (0, 0), None)


@dataclass(eq=False)
class _Stop:
    """Ends the fork at the first failure."""

    note: Path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure ends the process."""
        if report.failed:
            self.note.write_text(report.nodeid, encoding="utf-8")
            os._exit(_NOTICED)


def _functions(source: Path) -> dict[str, list[FunctionType]]:
    """file -> its functions, of everything in the package that can be imported."""
    for module in pkgutil.walk_packages([str(source)], f"{source.name}.", onerror=lambda name: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(module.name)
    gc.unfreeze()  # what is frozen is not listed
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename.startswith(f"{source}{os.sep}"):
            found[function.__code__.co_filename].append(function)
    return found


def _verdict(status: int) -> str:
    if os.WIFSIGNALED(status):
        return "timed out" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crashed"
    return {0: "survived", _NOTICED: "killed"}.get(os.WEXITSTATUS(status), "crashed")
