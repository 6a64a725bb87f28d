"""Processes killed at random moments while they write kernels: what is there is old or new, and whole."""

from __future__ import annotations

import os
import random
import re
import signal
import warnings
from pathlib import Path

import pytest

from openwork.codegen import disk

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 of POSIX")


def write_always(ready: int) -> None:
    """Replace four kernels by ones of other sizes, until killed; says so on a pipe once they are there."""
    turn = 0
    while True:
        for k in range(4):
            size = (turn * 7919 + k * 104729) % 300_000
            disk.write(f"key {k}", disk.Entry(f"{k} {size}", (), bytes([turn % 251]) * size))
        if not turn:
            os.write(ready, b"x")
        turn += 1


NAME = re.compile(r"[0-9a-f]{64}\.owk(\.[0-9a-f]{16}\.tmp)?")


def killed(count: int, folder: Path, seed: int) -> int:
    """Kill a writer `count` times; how many kernels were there, each of them whole."""
    rng, seen = random.Random(seed), 0
    for turn in range(count):
        answer, ready = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads
            writer = os.fork()
        if not writer:
            try:
                write_always(ready)
            finally:
                os._exit(1)
        os.close(ready)
        if turn:
            for _ in range(rng.randrange(100_000)):  # some milliseconds, another number each time
                pass
        else:
            os.read(answer, 1)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        os.close(answer)
        whole = 0
        for k in range(4):
            entry = disk.read(f"key {k}")
            if entry is not None:
                number, size = map(int, entry.name.split())
                assert (number, size, len(set(entry.code))) == (k, len(entry.code), min(size, 1))
                whole += 1
        assert whole >= seen or turn == 0  # one that was there is there, the old or the new
        seen = whole
        names = os.listdir(folder) if folder.exists() else []
        assert all(NAME.fullmatch(name) for name in names)
        assert len([name for name in names if name.endswith(".owk")]) == whole
        assert len([name for name in names if name.endswith(".tmp")]) <= turn + 1
    return seen


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    return tmp_path / "kernels"


@pytest.mark.ci
def test_a_few_kills(folder: Path) -> None:
    assert killed(8, folder, 0) == 4


@pytest.mark.slow
def test_a_hundred_kills(folder: Path) -> None:
    assert killed(100, folder, 1) == 4
