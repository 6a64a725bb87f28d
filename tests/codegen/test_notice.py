"""A call that compiles for long says so once, where somebody waits for it, and nowhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import openwork as ow
from openwork.codegen import notice

pytestmark = pytest.mark.usefixtures("waiting")


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a terminal, with nothing said so far."""
    monkeypatch.setattr(notice, "_wait", notice._Wait(after=0.3))
    monkeypatch.setattr(notice, "_somebody_waits", lambda: True)


def compiles(*seconds: float) -> None:
    """Compilations of these lengths, one right after the other."""
    for length in seconds:
        notice.compiled(time.perf_counter() - length)
        notice._wait.ended = time.perf_counter()


def test_a_long_call_says_so_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "PAUSE", float("-inf"))
    compiles(0.2, 0.2)
    assert capsys.readouterr().err == "", "two calls of 0.2 s"
    monkeypatch.setattr(notice, "PAUSE", float("inf"))
    compiles(0.2, 0.2, 5.0)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("openwork: compiled the loops of new operations (2 in 0.4 s; more may follow).")
    assert "OPENWORK_NOTICE=0" in captured.err
    assert captured.out == ""


def test_it_says_where_kernels_are_kept(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(1.0)
    assert os.environ["OPENWORK_CACHE_DIR"] in capsys.readouterr().err
    monkeypatch.setenv("OPENWORK_CACHE", "0")
    notice._wait.said = False
    compiles(1.0)
    assert "in memory only" in capsys.readouterr().err


def test_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    ow.set_compile_notice(None)
    compiles(5.0)
    assert ow.get_compile_notice() is None
    ow.set_compile_notice(2)
    compiles(1.0)
    assert capsys.readouterr().err == ""
    with notice.silent():
        compiles(9.0)
    assert capsys.readouterr().err == ""
    assert ow.get_compile_notice() == 2
    for wrong, error, message in (
        ("soon", ow.DTypeError, "set_compile_notice: seconds is a real number; got: 'soon'"),
        (True, ow.DTypeError, "set_compile_notice: seconds is a real number; got: True"),
        (-1.0, ValueError, "set_compile_notice: expected"),
        (float("nan"), ValueError, "set_compile_notice: expected"),
    ):
        with pytest.raises(error, match=message):
            ow.set_compile_notice(wrong)  # type: ignore[arg-type]


def test_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal, or a notebook's kernel; no test, no worker, no file."""
    monkeypatch.undo()
    assert not notice._somebody_waits(), "a test"
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert notice._somebody_waits()
    monkeypatch.setattr("multiprocessing.process.parent_process", lambda: object())
    assert not notice._somebody_waits(), "a worker"
    monkeypatch.setattr("multiprocessing.process.parent_process", lambda: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert not notice._somebody_waits(), "a file"
    for stream in (None, io.TextIOWrapper(io.BytesIO())):
        with monkeypatch.context() as without:
            if stream is not None:
                stream.close()
            without.setattr(sys, "stderr", stream)
            assert notice._somebody_waits() is False, "no stream, or one that was closed"
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert notice._somebody_waits()


@pytest.mark.slow
def test_at_a_terminal(tmp_path: Path) -> None:
    """A process with a terminal of its own is told, once; one with OPENWORK_NOTICE=0 is not."""
    code = "import numpy as np, openwork as ow; ow.set_compile_notice(ow.get_compile_notice() and 0.0);"
    code += "A = ow.asarray(np.eye(3), format='csr'); A @ np.ones(3); A + A; print('done')"
    program = "import os, pty, sys; s = pty.spawn([sys.executable, '-c', os.environ['CODE']]); sys.exit(os.waitstatus_to_exitcode(s))"
    for setting, times in (("1", 1), ("0", 0)):
        env = {**os.environ, "OPENWORK_CACHE_DIR": str(tmp_path / setting), "OPENWORK_NOTICE": setting, "CODE": code}
        env.pop("PYTEST_CURRENT_TEST", None)
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.count("openwork: compiled") == times
        assert "done" in done.stdout
