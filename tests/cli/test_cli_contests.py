"""Every operation of `openwork bench` on every format: what takes part computes NumPy's result in the stated order of
elements, the check of results takes it and refuses a wrong one, and arguments that are none are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.cli import bench, contests, contests_tensor
from openwork.cli.contests_tensor import TensorProblem
from openwork.cli.main import CliError
from openwork.cli.peers import has_torch, same_matrix

A = np.where(np.isin(np.subtract.outer(range(5), range(6)), (-1, 0, 2)), np.linspace(-2, 3, 30).reshape(5, 6), 0.0)
T = np.where(np.arange(24).reshape(2, 3, 4) % 5 < 2, np.linspace(-1, 2, 24).reshape(2, 3, 4), 0.0)
TORCH = has_torch()


def numbers(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape)


def dense(x: Any) -> Any:
    """The NumPy array of a result of ours, SciPy's or torch's."""
    x = x[1] if isinstance(x, tuple) else x
    for name in ("to_dense", "toarray"):
        x = getattr(x, name)() if hasattr(x, name) else x
    return np.asarray(x)


WANT: dict[str, Callable[[], Any]] = {
    "spmv": lambda: A @ numbers(6),
    "spmm": lambda: A @ numbers(6, 32),
    "spmm:3": lambda: A @ numbers(6, 3),
    "vecmat": lambda: numbers(5) @ A,
    "sddmm": lambda: (A != 0) * (numbers(5, 32) @ numbers(32, 6)),
    "sddmm:2": lambda: (A != 0) * (numbers(5, 2) @ numbers(2, 6)),
    "sum": lambda: A.sum(),
    "sum:0": lambda: A.sum(0),
    "sum:1": lambda: A.sum(1),
    **dict.fromkeys(("to_dense", "to_coo", "to_coo:columns", "to_csr", "to_csc", "to_bsr", "to_bsr:2"), lambda: A),
}
PEERS = {"bsr(2,3)": "bsr(2,3)", "csc": "csc", "coo": "coo", "dia": "dia"}


def order(x: Any) -> list[tuple[int, int]]:
    """Coordinates in the order in which they are stored."""
    if isinstance(x, ow.Tensor):
        return list(zip(*(np.asarray(c).tolist() for c in x.indices()), strict=True))
    indices = x._indices().numpy() if hasattr(x, "_indices") else np.stack([x.row, x.col])
    return list(zip(*indices.tolist(), strict=True))


@pytest.mark.thin(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr(2,3)", "bsr(4,4)", "dia", "dcsr"])
def test_all_that_takes_part_computes_the_same(format: str) -> None:
    problem = contests.Problem.of(sp.csr_array(A), format, TORCH)
    already = {"csr": "to_csr", "csc": "to_csc", "coo": "to_coo", "bsr(4,4)": "to_bsr"}.get(format)
    for operation, wanted in WANT.items():
        if operation == already:
            with pytest.raises(contests.Skip, match="already"):
                contests.contest(problem, operation)
            continue
        what, want = contests.contest(problem, operation), wanted()
        assert what.peer_format == ("csr" if operation.startswith("sddmm") else PEERS.get(format, what.peer_format))
        assert next(iter(what.runs)) == "openwork"
        for who, run in what.runs.items():
            if who == "torch" and not bench.works(run):
                continue
            got = dense(run())
            assert got.size >= want.size, (operation, who)  # peers' blocks are padded
            got = got[tuple(map(slice, want.shape))] if got.ndim == want.ndim else got.reshape(-1)[: want.size]
            got = got * (A != 0) if operation.startswith("sddmm") else got.reshape(want.shape)  # blocks store zeros
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{operation} {who}")
            if operation.startswith("to_coo") and not problem.format.startswith("bsr"):
                by = (lambda c: c[::-1]) if operation.endswith("columns") else (lambda c: c)
                found = run()
                if who != "openwork":
                    assert order(found) == sorted(order(found), key=by), (operation, who)
        right = what.runs["openwork"]()
        assert what.equal(right) is True, operation
        wrong = (
            np.asarray(right) * (1 + 1e-3) + 1e-3 if np.ndim(want) < 2 or operation in ("spmm", "spmm:3") else right * 2
        )
        assert what.equal(wrong) is False, operation


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", ["coo", "csf"])
def test_all_that_takes_part_computes_the_same_of_a_tensor(format: str) -> None:
    problem = TensorProblem.of(ow.asarray(T, format="coo"), format)
    for operation in ("mttkrp", "mttkrp:2", "sum", "sum:0", "sum:1", "sum:2"):
        name, _, text = operation.partition(":")
        if name == "sum":
            want = T.sum(axis=int(text) if text else None)
        else:
            rng = np.random.default_rng(1)
            _, b, c = (rng.standard_normal((n, int(text or 32))) for n in T.shape)
            want = np.einsum("ijk,jr,kr->ir", T, b, c)
        what = contests_tensor.tensor_contest(problem, operation)
        assert [*what.runs] == ["openwork", "scipy"] if name == "mttkrp" else ["openwork", "torch"][: 1 + TORCH]
        for run in what.runs.values():
            np.testing.assert_allclose(dense(run()), want, rtol=1e-12, atol=1e-12)
        assert what.equal(want) is True
        assert what.equal(want + 1e-3) is False
        assert what.equal(want[..., None]) is False


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: contests.extent("0", 3), "a positive number after the colon, got '0'"),
        (lambda: contests.extent("-1", 3), "a positive number"),
        (lambda: contests.parse_operation("fly"), "unknown operation 'fly'; known: spmv, spmm"),
        (lambda: contests.contest(matrix(), "sum:2"), "0 or 1, got '2'"),
        (lambda: contests.contest(matrix(), "to_coo:rows"), "nothing, or columns, got 'rows'"),
        (lambda: contests_tensor.tensor_contest(tensor(), "sum:3"), "a dimension below 3, got '3'"),
        (lambda: contests_tensor.tensor_contest(tensor(), "sum:x"), "a dimension below 3, got 'x'"),
        (lambda: contests_tensor.parse_tensor_operation("spmv"), "'spmv' is not there for tensors"),
        (lambda: bench.check_request([], ["spmv"]), "nothing to measure"),
        (lambda: bench.check_request(["csr"], []), "nothing to measure"),
        (lambda: bench.check_request(["coo"], ["spmv"], 3), "is not there for tensors"),
    ],
)
def test_arguments_that_are_none_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CliError, match=message):
        call()


def matrix() -> contests.Problem:
    return contests.Problem.of(sp.csr_array(A), "csr", False)


def tensor() -> TensorProblem:
    return TensorProblem.of(ow.asarray(T, format="coo"), "coo")


def test_a_dense_array_that_is_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contests, "DENSE_LIMIT", A.nbytes)
    assert "openwork" in contests.contest(matrix(), "to_dense").runs
    monkeypatch.setattr(contests, "DENSE_LIMIT", A.nbytes - 1)
    with pytest.raises(contests.Skip, match="240 B"):
        contests.contest(matrix(), "to_dense")


def test_samples_are_taken_a_slice_at_a_time() -> None:
    n = 600
    csr = sp.csr_array(np.ones((n, n)))  # 360 000 elements: more than one slice of 1 << 18
    a, b = numbers(n, 2), numbers(2, n)
    np.testing.assert_allclose(contests.sampled(csr, a, b), (a @ b).ravel())


def test_equal_up_to_rounding() -> None:
    want = np.array([100.0, 1e-9])
    assert contests.close(want + 1e-9, want)
    assert not contests.close(want + 1e-7, want)
    assert contests.close(want + 1e-7, want, scale=1e4)
    assert contests.close((want * (1 + 1e-4)).astype(np.float32), want.astype(np.float32))
    assert not contests.close((want * (1 + 1e-3)).astype(np.float32), want.astype(np.float32))
    assert not contests.close(want[:1], want)
    assert contests.close(np.zeros(0), np.zeros(0))
    for other, same in ((A, True), (2 * A, False), (A[:, :5], False), (np.zeros((5, 6)), False)):
        assert same_matrix(sp.coo_array(other), sp.csr_array(A)) is same
    explicit = sp.csr_array(([0.0], ([0], [0])), shape=(2, 2))
    assert same_matrix(explicit, sp.csr_array((2, 2)))
    assert same_matrix(sp.csr_array((0, 4)), sp.csc_array((0, 4)))


def test_rows_are_of_each_operation_on_each_format_and_each_is_a_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A format that is refused has one row, with the reason, as has one that would be too large."""
    steps: list[str] = []
    formats, operations = ["csr", "bsr(2,2)", "dense"], ["spmv", "to_csr", "sum:1"]
    monkeypatch.setattr(bench, "DENSE_LIMIT", 1000)
    csr = sp.csr_array((np.ones(3), ([0, 40, 7], [1, 99, 5])), shape=(50, 100))
    monkeypatch.setattr(bench, "REFUSALS", (ow.FormatError,))
    rows = list(bench.measure_all(csr, formats, operations, 1e-4, steps.append))
    assert [(row.op, row.format) for row in rows] == [(o, f) for f in formats[:2] for o in operations] + [
        ("all", "dense")
    ]
    assert steps == [s for f in formats[:2] for s in (f, *(f"{o} on {f}" for o in operations))]
    assert rows[-1].note == "the format would take 40.0 kB"
    assert rows[1].note == "it is in this format already"
    bench.print_rows(rows)
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:4] == ["operation", "format", "peer", "in"]
    assert [line.split()[0] for line in out[2:7]] == ["spmv", "sum:1", "spmv", "to_csr", "sum:1"]
    assert out[7:] == [
        "every result is equal to SciPy's",
        "left out: to_csr on csr: it is in this format already",
        "left out: all on dense: the format would take 40.0 kB",
    ]
    many = SimpleNamespace(file="a.mtx", dtype="float32", threads=2)
    assert bench.title(many, csr) == "a.mtx: 50 x 100, 3 elements, float32, 2 threads"
    assert bench.title(SimpleNamespace(file="a", dtype="d", threads=1), csr).endswith("d, 1 thread")
