"""Plans and programs of statements with one sparse operand. One plan for all equal statements, one for shapes, nothing
compiled for another structure; what a structure keeps of larger work holds nothing alive, is bounded, and right for other
values, types, strides, threads."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from matrix import dense_array, tensor

import openwork as ow
from openwork.codegen.plan_cache import plan_counts
from openwork.runtime import private_accumulators, program, split_rows
from openwork.storage.structure import LIMIT

FORMATS = ["csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "ell(20)", "bitmap"]
CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "A @ x": lambda a, x, z, xp: a @ x,
    "z @ A": lambda a, x, z, xp: z @ a,
    "A @ X": lambda a, x, z, xp: a @ np.stack([x, x + 1, x * 2], 1),
    "sums of rows": lambda a, x, z, xp: xp.sum(a, axis=1),
    "largest of columns": lambda a, x, z, xp: xp.max(a, axis=0),
    "einsum": lambda a, x, z, xp: xp.einsum("ij,i,j->", a, z, x),
}
"""Calls that run by a program."""
X, Z = dense_array((20,), 2, density=1), dense_array((30,), 3, density=1)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = ow.get_num_threads()
    ow.set_num_threads(1)
    yield
    ow.set_num_threads(before)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """All work is large enough for a program of the structure."""
    monkeypatch.setattr(program, "PARALLEL_WORK", 1)


def matrix(spec: str, seed: int = 1, dtype: str = "float64") -> tuple[ow.Tensor, Any]:
    array = dense_array((30, 20), seed, dtype, density=0.3)
    array[4] = dense_array((20,), seed, dtype, density=1)  # a row that is cut where rows are
    return tensor(array, spec), array


def dense(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


def programs(t: ow.Tensor) -> dict[Any, Any]:
    return t._storage.structure.programs


def compiled_and_planned(call: Callable[[], Any]) -> tuple[int, int]:
    """The kernels that were compiled and the plans that were made during a call."""
    compiled, planned = ow.cache_info()["compiled"], plan_counts()["plans"][2]
    call()
    return ow.cache_info()["compiled"] - compiled, plan_counts()["plans"][2] - planned


@pytest.mark.ci
@pytest.mark.thin(44)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("spec", FORMATS)
def test_equal_statements_share_a_plan(spec: str, name: str) -> None:
    (a, array), call = matrix(spec), CALLS[name]
    np.testing.assert_array_equal(dense(call(a, X, Z, ow)), dense(call(array, X, Z, np)))
    b = tensor(np.roll(array, 2, 0), spec)
    for t, y in ((a * 2, array * 2), (b, np.roll(array, 2, 0))):
        got: list[Any] = []
        assert compiled_and_planned(lambda t=t, got=got: got.append(call(t, X, Z, ow))) == (0, 0)
        np.testing.assert_array_equal(dense(got[0]), dense(call(y, X, Z, np)))


@pytest.mark.thin(11)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("spec", FORMATS)
def test_little_work_is_planned_once_for_all_structures_of_a_shape(spec: str, name: str) -> None:
    (a, array), call = matrix(spec), CALLS[name]
    call(a, X, Z, ow)
    planned = plan_counts()["plans for shapes"][2]
    for shift in range(1, 4):
        rolled = np.roll(array, shift, 0)
        b = tensor(rolled, spec)
        np.testing.assert_array_equal(dense(call(b, X, Z, ow)), dense(call(rolled, X, Z, np)))
        assert not programs(b)
    made = plan_counts()["plans for shapes"][2] - planned
    assert made == 0 if spec not in ("dia", "ell(20)") else made <= 3  # other diagonals, other widths: other types


def test_a_plan_for_shapes_refuses_other_shapes() -> None:
    a, _ = matrix("csr")
    a @ X
    with pytest.raises(ow.ShapeError, match="inner extents differ"):
        a @ Z
    b, array = tensor(np.eye(31, 20), "csr"), np.eye(31, 20)
    np.testing.assert_array_equal(b @ X, array @ X)


def test_one_program_for_tensors_that_differ_in_their_values(large: None) -> None:
    a, array = matrix("csr")
    for factor in (1, 2, 3):
        np.testing.assert_array_equal((a * factor) @ X, array @ X * factor)
    assert len(programs(a)) == 1
    a.values[:] *= 5  # in place
    np.testing.assert_array_equal(a @ X, array @ X * 5)
    assert len(programs(a)) == 1


@pytest.mark.parametrize("spec", ["csr", "csc", "bsr(2, 3)"])
def test_other_types_and_strides_have_their_own(large: None, spec: str) -> None:
    a, array = matrix(spec)
    wide = np.zeros((20, 8))
    wide[:, ::2] = dense_array((20, 4), 5, density=1)
    views = [wide[:, ::2], wide[:, ::2].copy(), np.asfortranarray(wide[:, ::2]), wide[::-1, ::2], wide[:, ::2] * 1j]
    views += [wide[:, ::2].astype(dtype) for dtype in ("float32", "int8", "bool", "float16", ">f8")]
    for _ in range(2):
        for view in views:
            np.testing.assert_array_equal(a @ view, array @ view)
    count = len(programs(a))
    assert count >= 8
    for dtype in ("float32", "int64", "complex64", "bool"):
        got = a.astype(dtype) @ wide[:, ::2]
        np.testing.assert_array_equal(got, array.astype(dtype) @ wide[:, ::2])


@pytest.mark.thin(11)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("spec", FORMATS)
def test_other_threads_have_their_own(spec: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PARALLEL_WORK", 1)
    monkeypatch.setattr(program, "parts_for", lambda work, size, threads: min(threads, 3))
    monkeypatch.setattr(private_accumulators, "LONG_ROW", 16)
    (a, array), call = matrix(spec), CALLS[name]
    for threads in (1, 2, 3, 2, 1):
        ow.set_num_threads(threads)
        for factor in (1, 2):
            got = call(a * factor, X * factor, Z, ow)
            np.testing.assert_array_equal(dense(got), dense(call(array * factor, X * factor, Z, np)))
        assert {p.threads for p in programs(a).values()} == {threads}


@pytest.mark.thin(55)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dia"])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_program_holds_no_values_alive(large: None, spec: str, is_cut: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_cut:
        monkeypatch.setattr(program, "parts_for", lambda work, size, threads: min(threads, 3))
        ow.set_num_threads(2)
    a, _ = matrix(spec)
    values, x = a._storage.values.copy(), X.copy()
    b = a.with_values(values)
    results = [b @ x, x @ b.T, ow.sum(b, axis=0)]
    assert programs(a)
    seen = [weakref.ref(o) for o in (b._storage.values, x, *results[:2])]
    del b, values, x, results
    gc.collect()
    assert [o() for o in seen] == [None] * len(seen)


def test_programs_of_a_structure_are_bounded(large: None) -> None:
    a, array = matrix("csr")
    for n in range(1, LIMIT + 20):
        view = np.ones((20, 2 * n))[:, :1]
        np.testing.assert_array_equal(a @ view, array @ view)
    assert len(programs(a)) <= LIMIT


def test_a_long_row_is_cut_anew_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PARALLEL_WORK", 1)
    monkeypatch.setattr(private_accumulators, "LONG_ROW", split_rows.PIECES)
    a, array = matrix("csr")
    for k in (1, 2, 3):
        np.testing.assert_array_equal((a * k) @ (X + k), array @ (X + k) * k)
    assert any(p.long_rows is not None for p in programs(a).values())


@pytest.mark.parametrize("spec", ["csr", "coo", "bsr(2, 3)"])
def test_conjugates_and_negatives_of_torch(spec: str) -> None:
    torch = pytest.importorskip("torch")
    _, array = matrix(spec)
    z = torch.tensor(X + 2j)
    for x in (z.conj(), z.conj().imag, z.conj()[:1], z.conj().imag[0]):
        t = ow.asarray(torch.tensor(array).to(x.dtype)).asformat(spec)
        y = x.resolve_conj().resolve_neg()
        for call in (lambda v, t=t: t * v, lambda v, t=t: torch.mul(v, t), lambda v, t=t: t / v):
            assert torch.equal(call(x).to_dense(), call(y).to_dense())
        assert torch.equal((t * x).to_dense(), t.to_dense() * y)
