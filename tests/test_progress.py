"""`progress=`: one rule for all that takes long: True draws a bar for each pass, a function is told of (done, total)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import progress

Capture = pytest.CaptureFixture[str]
LINE = ow.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(60, 60), format="csr")
ONES = np.ones(60)
CUBE = ow.random((5, 6, 7), 0.3, rng=0)

JOBS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "cg": (lambda p: ow.linalg.cg(LINE, ONES, progress=p), ("cg",)),
    "lsqr": (lambda p: ow.linalg.lsqr(LINE, ONES, progress=p), ("lsqr",)),
    "eigsh": (lambda p: ow.linalg.eigsh(LINE, 2, progress=p), ("eigsh",)),
    "eigs": (lambda p: ow.linalg.eigs(LINE, 2, progress=p), ("eigs",)),
    "svds": (lambda p: ow.linalg.svds(LINE, 2, progress=p), ("svds",)),
    "randomized_svd": (lambda p: ow.linalg.randomized_svd(LINE, 2, progress=p), ("randomized_svd",)),
    "pca": (lambda p: ow.linalg.pca(LINE, 2, progress=p), ("pca",)),
    "factorized": (
        lambda p: ow.linalg.factorized(LINE, "cholesky", progress=p),
        ("cholesky: symbolic phase", "cholesky: numeric phase"),
    ),
    "cholesky": (
        lambda p: ow.linalg.cholesky(LINE, progress=p),
        ("cholesky: symbolic phase", "cholesky: numeric phase"),
    ),
    "amg": (lambda p: ow.linalg.amg(LINE, progress=p), ("amg",)),
    "lobpcg": (lambda p: ow.linalg.lobpcg(LINE, np.eye(60)[:, :2], progress=p, tol=1e3), ("lobpcg",)),
    "cp_als": (lambda p: ow.decomposition.cp_als(CUBE, 2, rng=0, progress=p), ("cp_als",)),
    "tucker": (lambda p: ow.decomposition.tucker(CUBE, 2, rng=0, progress=p), ("tucker",)),
    "pagerank": (lambda p: ow.graph.pagerank(abs(LINE), progress=p), ("pagerank",)),
    "betweenness": (lambda p: ow.graph.betweenness(LINE, progress=p), ("betweenness",)),
    "advise": (lambda p: ow.advise(LINE, op="scale", seconds=0.001, progress=p), ("converting", "measuring")),
    "write": (lambda p: ow.write("a.mtx", LINE, progress=p), ("writing a.mtx",)),
    "read": (lambda p: ow.read("b.mtx", progress=p), ("reading b.mtx",)),
    "convert": (
        lambda p: ow.convert("b.mtx", "a.npz", format="csc", memory="64kB", progress=p),
        ("reading", "merging", "copying"),
    ),
    "write_parts": (
        lambda p: ow.io.write_parts("c.npz", [(([0, 1], [1, 0]), [1.0, 2.0])], (2, 2), progress=p),
        ("reading", "merging", "copying"),
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ow.write("b.mtx", LINE)


@pytest.mark.thin(10, rest="ci")
@pytest.mark.parametrize("name", JOBS)
def test_every_long_job_has_one_rule(name: str, capsys: Capture) -> None:
    job, passes = JOBS[name]
    told: list[tuple[Any, ...]] = []
    job(lambda *state: told.append(state))
    assert told
    assert {len(state) for state in told} == {2}
    done, total = told[-1]
    assert total is None or 0 < done <= total
    assert capsys.readouterr() == ("", "")
    job(True)
    lines = capsys.readouterr().err.splitlines()
    assert tuple(line.split(" ━")[0].strip() for line in lines) == passes
    assert max(map(len, lines)) <= 80
    job(None)
    job(False)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ow.DTypeError, match=r"progress must be True or a function of \(done, total\); got 3"):
        job(3)


def test_the_last_state_is_drawn(capsys: Capture) -> None:
    """Not the one of a fifth of a second ago; nor is a product taken for each residual that is not drawn."""
    details = []
    with progress.reporting(True, "job") as passes:
        step = passes.begin("solve", "iterations", at_most=True)
        assert step is not None
        for done in range(1, 501):
            step(done, 900, lambda done=done: details.append(done) or f"residual {done}")  # type: ignore[misc]
    err = capsys.readouterr().err
    assert "500 of at most 900 iterations" in err
    assert err.rstrip().endswith("residual 500")
    assert 2 <= len(details) < 50


def test_a_job_that_breaks_off_shows_how_far_it_was(capsys: Capture) -> None:
    def stop(passes: progress.Passes) -> None:
        step = passes.begin("read")
        assert step is not None
        for done in range(0, 60_000, 10_000):
            step(done, 100_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.reporting(True, "job") as passes:
        stop(passes)
    assert "50%" in capsys.readouterr().err


def test_a_pass_of_the_same_total_has_a_bar_and_a_clock_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """`convert` showed its second pass as the first, with that one's clock."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.reporting(True, "convert") as passes:
        for name, seconds in (("reading", 100.0), ("merging", 4.0)):
            step = passes.begin(name)
            assert step is not None
            for done in range(5):
                now[0] += seconds / 4
                step(done, 100_000)
                if name == "merging" and done == 2:
                    assert passes.last.begun == 125.0  # type: ignore[attr-defined]
    reading, merging = capsys.readouterr().err.splitlines()
    assert reading.split() == ["reading", "━" * 16, "0%", "2:05"]
    assert merging.split() == ["merging", "━" * 16, "0%", "5.0", "s"]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_bars_of_commands_are_wiped_and_need_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.at_terminal() as passes:
            ow.read("b.mtx", progress=passes)
            ow.write("a.mtx", LINE, progress=passes)
        shown = stream.getvalue()
        assert ("reading b.mtx" in shown, "writing a.mtx" in shown) == (stream.isatty(),) * 2
        assert "writing" not in shown.rsplit("\x1b[2K", 1)[-1]


def test_steps_with_names_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name stands there while its step runs, however soon after the other it began."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress.at_terminal() as passes:
        step = passes.begin("tour", "steps")
        for done, name in enumerate(("make", "kernel", "times")):
            step(done, 3, name)
            assert name in sys.stderr.getvalue().splitlines()[-1]  # type: ignore[attr-defined]


def test_times() -> None:
    assert progress.time_left(10.0, 1, 4) == ""
    assert progress.time_left(10.0, 2, 4) == "0:10 left"
    assert progress.time_left(5.0, 2, 4) == "5.0 s left"
    assert progress.time_left(200.0, 2, 4) == "3:20 left"
    assert progress.time_left(200.0, 4, 4) == ""
    assert progress.time_left(200.0, 4, None) == ""
