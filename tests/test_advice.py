"""`advise` measures what it says, and its command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openwork as ow
from openwork.advice.advise import OPERATIONS
from openwork.advice.facts import facts_of
from openwork.cli import main

BAND = np.eye(60) + np.eye(60, k=1) + np.eye(60, k=-1)


def test_every_sensible_format_is_measured() -> None:
    advice = ow.advise(ow.asarray(BAND, format="csr"), op="spmv", seconds=0.02)
    measured = {c.format: c for c in advice if c.seconds is not None}
    assert {"csr", "csc", "coo", "dcsr", "dia", "bsr(2, 2)", "ell(3)"} <= set(measured)
    assert advice.best == min(measured.values(), key=lambda c: c.seconds).format
    assert [c.seconds for c in advice][: len(measured)] == sorted(c.seconds for c in measured.values())
    for name, candidate in measured.items():
        assert candidate.nbytes == ow.asarray(BAND, format="csr").asformat(ow.format(name, ndim=2)).nbytes
    assert "100%" not in advice["bsr(2, 2)"].why
    assert "of 3 diagonals" in advice["dia"].why
    assert "as it is" in advice["csr"].why
    gaps = BAND * (np.arange(60) % 4 > 0)[:, None] * (np.arange(60) % 3 > 0)
    facts = facts_of(ow.asarray(gaps, format="coo"))
    assert facts.why["dcsr"].startswith("25% of the rows are empty")
    assert facts.why["dcsc"].startswith("33% of the columns are empty")
    for name in ("csr", "csc", "dcsr", "coo", "dia"):
        assert facts.nbytes[name] == ow.asarray(gaps, format=name).nbytes, name
    assert str(advice).splitlines()[0] == f"A @ x of 60 x 60, 178 elements; best: {advice.best}"
    assert "<table>" in advice._repr_html_()
    with pytest.raises(KeyError, match="csr"):
        advice["csrr"]
    assert len(advice) == len(list(advice)) == len({c.format for c in advice})


def test_bytes_are_those_of_the_converted_tensors() -> None:
    t = ow.asarray(BAND, format="coo")
    for candidate in ow.advise(t, op="spmv", seconds=0.001):
        assert candidate.nbytes == t.asformat(ow.format(candidate.format, ndim=2)).nbytes, candidate.format


def test_what_is_out_of_proportion_is_not_made() -> None:
    t = ow.sparse_coo_tensor([[0, 5], [7, 3]], [1.0, 2.0], (1 << 20, 1 << 20))
    advice = ow.advise(t, op="scale", seconds=0.01)
    assert advice["dense"].seconds is None
    assert "times the smallest" in advice["dense"].why
    assert advice["coo"].seconds is not None


def test_a_format_that_an_operation_refuses_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_coordinates(t: ow.Tensor, dtype: object) -> object:
        if t.format == ow.format("csr"):
            raise ow.UnsupportedError("not of rows\n  help: columns")
        return t.copy

    monkeypatch.setitem(OPERATIONS, "scale", (OPERATIONS["scale"][0], of_coordinates))
    seen: list[tuple[int, int]] = []
    advice = ow.advise(
        ow.asarray(np.eye(2), format="coo"), op="scale", seconds=0.0001, progress=lambda *step: seen.append(step)
    )
    assert advice["csr"].seconds is None
    assert advice["csr"].why == "not of rows"
    assert advice["coo"].seconds is not None
    formats = len(advice)
    assert seen[: formats + 1] == [(done, formats) for done in range(formats + 1)]
    rounds = seen[-1][1]
    assert seen[formats + 1 :] == [(done, rounds) for done in range(1, rounds + 1)]


@pytest.mark.thin(2)
@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation(op: str) -> None:
    tall = np.where(np.random.default_rng(0).random((9, 4)) < 0.4, 1.5, 0)
    advice = ow.advise(ow.asarray(tall, format="csr"), op=op, seconds=0.001)
    assert advice["csr"].seconds is not None


def test_tensors_of_other_ranks() -> None:
    cube = ow.asarray(np.ones((2, 3, 2)), format="csf")
    assert {c.format for c in ow.advise(cube, op="sum", seconds=0.001)} == {"csf", "coo", "dense"}
    for bad in (lambda: ow.advise(cube, op="spmm"), lambda: ow.advise(np.ones(3), op="sum")):
        with pytest.raises(ow.ShapeError, match="expected: a matrix"):
            bad()
    with pytest.raises(ow.UnsupportedError, match="did you mean 'spmm'"):
        ow.advise(cube, op="spmmm")


def test_a_format_without_a_name_is_shown_by_its_levels() -> None:
    text = "(i, j) -> (i // 3 : dense, j // 2 : compressed(unordered), j % 2 : dense, i % 3 : dense)"
    advice = ow.advise(ow.asarray(BAND, format="csr").asformat(text), op="scale", seconds=0.001)
    levels = "dense, compressed(unordered), dense, dense"
    lines = str(advice).splitlines()
    assert advice.given == text
    assert advice[text].why == "as it is"
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line.startswith(levels)] != []
    assert "->" not in str(advice)
    assert f"<td>{levels}</td>" in advice._repr_html_()


def test_threads_are_set_back() -> None:
    before = ow.get_num_threads()
    ow.advise(BAND, op="spmv", seconds=0.001, threads=1)
    assert ow.get_num_threads() == before


@pytest.mark.ci
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "band.mtx"
    ow.write(path, ow.asarray(BAND, format="coo"))
    assert main(["advise", str(path), "--op", "spmv", "--seconds", "0.01"]) == 0
    out = capsys.readouterr().out
    assert "A @ x of 60 x 60" in out
    assert "diagonals" in out
    assert main(["advise", str(path), "--op", "spmx"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "equal to NumPy" in out
    assert ow.__version__ in out
    assert main(["plot", str(path), "--out", str(tmp_path / "none" / "x.png")]) == 2
    assert main(["plot", str(path), "--out", str(tmp_path / "x")]) == 2
    pytest.importorskip("matplotlib")
    for kind in ("spy", "rows"):
        assert main(["plot", str(path), "--out", str(tmp_path / f"{kind}.png"), "--kind", kind]) == 0
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", str(path), "--out", str(tmp_path / "x.xyz")]) == 2
    assert "not a kind of picture" in capsys.readouterr().err


def test_the_command_says_which_operations_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "band.mtx"
    ow.write(path, ow.asarray(BAND, format="coo"))
    assert main(["advise", str(path), "--op", "foo"]) == 2
    assert "op='foo'; supported: spmv, spmm, " in capsys.readouterr().err
