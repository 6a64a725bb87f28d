"""Tensors on devices: cells of the format matrix on the interpreter, all of it on OpenCL by `pytest -m opencl`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import device_search
import numpy as np
import pytest
from device_cases import awkward, cases, compare, opencl_or_skip, same
from matrix import FORMATS, SHAPES, dense_array, tensor

import openwork as ow
from openwork.device import hashed_products, opencl, products, statements, vector
from openwork.device.adapter import adapter_of
from openwork.device.elementwise import mapped
from openwork.device.interpreter import Interpreter
from openwork.device.statements import plan_of
from openwork.device.tensor import upload
from openwork.errors import CompilerBug, FormatError, ShapeError, UnsupportedError
from openwork.ir.loop import Grid
from openwork.storage.buffers import numpy_dtype

HERE = "interpreter"
FEW = {
    "csr": ("A @ x", "sddmm", "A + B"),
    "coo": ("A @ x", "A * row"),
    "bsr(2, 3)": ("max 1",),
    "dia": ("A.T @ x",),
    "bitmap": ("sum of A + 1",),
}
"""Cells that every run tries: of formats walked by rows, by elements, by blocks, by diagonals and by bits."""


@pytest.mark.parametrize("spec", FEW)
def test_operations_on_the_interpreter_are_those_of_the_host(spec: str) -> None:
    shape = (4, 6)
    chosen = [c for c in cases(shape) if c[0] in FEW[spec]]
    assert len(chosen) == len(FEW[spec])
    for case in chosen:
        compare(case, dense_array(shape), spec, HERE)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [s for s in FORMATS[2] if s not in FEW])
def test_operations_in_other_formats_on_the_interpreter(spec: str) -> None:
    for case in cases((4, 8)):
        if case[0] in ("A @ x", "A.T @ x", "sddmm", "A + B", "max 0", "sum of A + 1"):
            compare(case, dense_array((4, 8)), spec, HERE)


def test_tensors_of_rank_three_and_none() -> None:
    for case in cases((3, 2, 4)):
        if case[0] in ("ttm", "mttkrp"):
            compare(case, dense_array((3, 2, 4)), "csf", HERE)
    for case in cases(()):
        if case[0] in ("A * 2", "A + B", "sum None"):
            compare(case, dense_array(()), "() -> ()", HERE)


@pytest.mark.parametrize("spec", ["csr", "dia", "ell(6)", "nm(4, 4)"])
def test_conversions_are_assembled_on_the_device(spec: str) -> None:
    shape = (4, 8) if spec == "nm(4, 4)" else (4, 6)
    array = dense_array(shape)
    found = ow.asarray(array, device=HERE).asformat("csr").asformat(ow.format(spec, 2))
    same(found, tensor(array, spec), spec)


@pytest.mark.ci
def test_products_of_sparse_tensors_are_joins_over_any_semiring() -> None:
    A, B, M = (ow.asarray(dense_array(s, k, density=0.4), format=f) for k, (s, f) in enumerate([
        ((4, 6), "csr"), ((6, 5), "csc"), ((4, 5), "coo"),
    ]))  # fmt: skip
    a, b, m = (t.to(HERE) for t in (A, B, M))
    same(a @ b, A @ B, "A @ B")
    same(ow.spgemm(a, b, semiring="min_plus"), ow.spgemm(A, B, semiring="min_plus"), "min_plus")
    for complement in (False, True):
        same(ow.spgemm(a, b, mask=m, complement=complement), ow.spgemm(A, B, mask=M, complement=complement), "masked")
    same(ow.einsum("ij,jk,ik->ki", a, b, m), ow.einsum("ij,jk,ik->ki", A, B, M), "three sparse operands")
    same(ow.einsum("ij->ij", a), ow.einsum("ij->ij", A), "one sparse operand, as it is")
    same(ow.einsum("ij->ji", a), ow.einsum("ij->ji", A), "one sparse operand")
    with pytest.raises(ow.UnsupportedError, match="a letter twice"):
        ow.einsum("ii->", (a @ a.T).asformat("csr"))


@pytest.mark.ci
@pytest.mark.parametrize("local", [512, 8])
def test_products_of_matrices_are_tables_in_local_memory_or_spilled(local: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(hashed_products, "LOCAL", local)
    A, B = (ow.asarray(dense_array(s, k, density=0.7), format="csr") for k, s in enumerate([(3, 5), (5, 6)]))
    same(A.to(HERE) @ B.to(HERE), A @ B, "A @ B")
    same(ow.spgemm(A.to(HERE), B.to(HERE), semiring="max_times"), ow.spgemm(A, B, semiring="max_times"), "max_times")


TABLES = [
    ("float64", "plus_times", True), ("float64", "min_plus", False), ("bool", "lxor_pair", True),
    ("bool", "any_pair", False), ("complex128", "plus_times", True), ("int8", "max_plus", False),
]  # fmt: skip
"""A dtype, a semiring, and whether the mask's elements are left out."""


def _masked_product(dtype: str, ring: str, complement: bool, device: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    pairs = zip(((m, k), (k, n), (m, n)), ("csr", "csc", "coo"), strict=True)
    A, B, M = (
        ow.asarray(dense_array(s, seed, density=0.4, dtype=dtype), format=f) for seed, (s, f) in enumerate(pairs)
    )
    a, b, mask = (t.to(device) for t in (A, B, M))
    for there, here in (({}, {}), ({"mask": mask, "complement": complement}, {"mask": M, "complement": complement})):
        same(ow.spgemm(a, b, semiring=ring, **there), ow.spgemm(A, B, semiring=ring, **here), ring)


@pytest.mark.parametrize(("dtype", "ring", "complement"), TABLES[2:5])
def test_tables_take_masks_and_all_types(dtype: str, ring: str, complement: bool, monkeypatch: Any) -> None:
    monkeypatch.delattr(products, "combined")
    _masked_product(dtype, ring, complement, HERE, (3, 4, 3))


@pytest.mark.opencl
@pytest.mark.parametrize(("dtype", "ring", "complement"), TABLES)
def test_tables_take_masks_and_all_types_on_opencl(
    dtype: str, ring: str, complement: bool, monkeypatch: Any
) -> None:  # fmt: skip
    opencl_or_skip()
    monkeypatch.delattr(products, "combined")
    _masked_product(dtype, ring, complement, "opencl", (40, 300, 700))


@pytest.mark.parametrize("old", ["barrier()\nmine", "swap(keys[base + at], 0, key)"])
def test_a_fault_planted_in_a_table_is_found(old: str, monkeypatch: Any) -> None:
    """Without its barrier, or with a read in place of compare and swap."""
    assert hashed_products._ROW.count(old) == 1
    new = "mine" if "barrier" in old else "keys[base + at]\n            keys[base + at] = key"
    monkeypatch.setattr(hashed_products, "_ROW", hashed_products._ROW.replace(old, new))
    A = ow.asarray(np.ones((2, 9)), format="csr", device=HERE)
    with pytest.raises(CompilerBug, match="a race for"):
        A @ ow.asarray(np.triu(np.ones((9, 9))), format="csr", device=HERE)


@pytest.mark.opencl
def test_products_of_matrices_on_opencl_have_short_and_long_rows() -> None:
    opencl_or_skip()
    for shapes in (((40, 300), (300, 700)), ((7, 50), (50, 3000))):
        A, B = (
            ow.asarray(dense_array(s, k), format=f) for k, (s, f) in enumerate(zip(shapes, ("csr", "csc"), strict=True))
        )
        for ring in ("plus_times", "min_plus", "plus_pair"):
            found = ow.spgemm(A.to("opencl"), B.to("opencl"), semiring=ring)
            same(found, ow.spgemm(A, B, semiring=ring), ring)


def test_elements_are_indexed_by_filters_and_joins() -> None:
    t = ow.asarray(dense_array((4, 6)), format="csr")
    there = t.to(HERE)
    for key in (np.s_[1], np.s_[::-1, 1::2], np.s_[[2, 0, 2]], np.ix_([0, 3], [1, 2]), np.s_[5:2]):
        same(there[key], t[key], str(key))
    assert there[1, 2].item() == t[1, 2]
    with pytest.raises(IndexError, match="out of bounds"):
        there[4]


def test_duplicates_are_summed_and_slots_that_are_full_are_named() -> None:
    loose = ow.assemble("coo(nonunique, unordered)", (3, 3), crd={0: [2, 0, 2], 1: [1, 0, 1]}, values=[1.0, 2.0, 4.0])
    there = loose.to(HERE)
    same(there.coalesce(), loose.coalesce(), "coalesce")
    same(there * 2, loose * 2, "scaled")
    same(there * there, loose * loose, "squares of sums")
    full = ow.asarray(np.ones((2, 3)), format="csr", device=HERE)
    with pytest.raises(FormatError, match=r"2 of 2 parents have more than 2 elements\n  expected: at most 2"):
        full.asformat("ell(2)")


def test_what_does_not_run_there_is_refused_by_name_and_nothing_is_copied() -> None:
    A = ow.asarray(np.eye(3), format="csr", device=HERE)
    for name, run in {
        "median": lambda: ow.median(A),
        "cumulative_sum": lambda: ow.cumulative_sum(A, axis=0),
        "einsum 'ii->i'": lambda: ow.einsum("ii->i", A),
        "topk": lambda: A.topk(2),
    }.items():
        with pytest.raises(UnsupportedError, match=rf"{name} on interpreter[\s\S]*i : dense, j : compressed"):
            run()
    torch = pytest.importorskip("torch")
    with pytest.raises(UnsupportedError, match=r"attend: operands on interpreter and cpu \(Tensor\)"):
        ow.nn.SparseAttention(4, 2, mask=A)(*[torch.ones(3, 1, 4)] * 3)
    with pytest.raises(UnsupportedError, match=r"matmul: operands on interpreter and cpu \(ndarray\)"):
        A @ np.ones(3)
    with pytest.raises(UnsupportedError, match=r"add: operands on interpreter and cpu \(Tensor\)"):
        ow.eye(3, format="csr") + A
    with pytest.raises(UnsupportedError, match="a NumPy array of a tensor on interpreter"):
        np.asarray(A)
    with pytest.raises(ShapeError, match=r"index j has extents 3 and 4"):
        A @ ow.asarray(np.ones(4), device=HERE)
    with pytest.raises(UnsupportedError, match=r"asformat to .* levels 'batch' are not assembled there"):
        ow.asarray(np.ones((2, 3, 3)), device=HERE).asformat(ow.format("csr", 3, batch=1))


def test_a_tensor_goes_there_and_back() -> None:
    t = ow.asarray(dense_array((4, 6), dtype="float32"), format="csr")
    there = t.to(HERE)
    assert there.device == HERE
    assert (there.shape, there.dtype, there.format, there.nse) == (t.shape, t.dtype, t.format, t.nse)
    assert "DeviceTensor(4x6, float32, csr, device='interpreter'" in repr(there)
    assert there.to(HERE) is there
    back = there.to("cpu")
    assert isinstance(back, ow.Tensor)
    np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())
    assert ow.asarray(there, dtype="float64").dtype == np.float64
    assert ow.sum(there).item() == t.to_numpy().sum()
    for scalar in ("float16", "complex64", "bool", "uint8"):
        array = dense_array((4, 6), dtype=scalar)
        x = np.ones(6, array.dtype)
        found = ow.asarray(array, format="csr", device=HERE) @ ow.asarray(x, device=HERE)
        same(found, ow.asarray(array, format="csr") @ x, scalar)


def test_scans_and_sorts_of_several_groups() -> None:
    device = Interpreter()
    x = np.random.default_rng(0).integers(0, 50, 70)
    there = device.of(x, "i64")
    before, total = vector.scan(there)
    np.testing.assert_array_equal(before.to_numpy(), np.cumsum(x) - x)
    assert total == x.sum()
    np.testing.assert_array_equal(vector.order_of([(there, 50)]).to_numpy(), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(vector.chosen(device.of(x % 2, "i64")).to_numpy(), np.flatnonzero(x % 2))


PLANTED = {
    "a barrier left out": ("_SCAN", "    barrier()\n    s[item] += before", "    s[item] += before", "a race for"),
    "a sum without atomic": (
        "_COUNT", "atomic('add', s[(key[order[at]] >> shift) & (RADIX - 1)], 1)",
        "s[(key[order[at]] >> shift) & (RADIX - 1)] += 1", "a race for element",
    ),
    "out of bounds": ("_SCAN", "if at < n:\n    y[at]", "if at <= n:\n    y[at]", "offset 20 into 'y' of 20"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_found_where_kernels_run(what: str, monkeypatch: Any) -> None:
    name, old, new, message = PLANTED[what]
    text = getattr(vector, name)
    assert text.count(old) == 1
    monkeypatch.setattr(vector, name, text.replace(old, new))
    x = Interpreter().of(np.arange(20) % 7, "i64")
    with pytest.raises(CompilerBug, match=message):
        vector.order_of([(x, 7)]) if name == "_COUNT" else vector.scan(x)


def _solve(device: str, n: int) -> None:
    """Conjugate gradients and triangular systems, on a device and on the host."""
    rng = np.random.default_rng(0)
    L = ow.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="dia")
    b = rng.integers(1, 4, n).astype(float)
    for M in (None, "jacobi"):
        x, info = ow.linalg.cg(L.to(device), ow.asarray(b, device=device), M=M, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(L @ x.to_numpy(), b, rtol=1e-8)
    with pytest.warns(ow.errors.ConvergenceWarning, match="no convergence after 1 iterations"):
        assert ow.linalg.cg(L.to(device), ow.asarray(b, device=device), maxiter=1)[1] == 1
    array = np.where(rng.random((n, n)) < 0.3, rng.integers(1, 4, (n, n)), 0) + 9.0 * np.eye(n)
    T = ow.asarray(array, format="csc")
    for B, options in {0: (b, {}), 1: (np.stack([b, b + 1], 1), {"lower": False}), 2: (b, {"trans": "T"})}.values():
        found = ow.linalg.solve_triangular(T.to(device), ow.asarray(B, device=device), **options)
        np.testing.assert_allclose(found.to_numpy(), ow.linalg.solve_triangular(T, B, **options), rtol=1e-9)
    array[2, 2] = 0
    with pytest.raises(np.linalg.LinAlgError, match=r"element \(2, 2\) of the diagonal is 0"):
        ow.linalg.solve_triangular(ow.asarray(array, format="csr", device=device), ow.asarray(b, device=device))


@pytest.mark.ci
def test_systems_are_solved_without_leaving_the_device() -> None:
    _solve(HERE, 4)
    A, b = ow.eye(3, format="csr", device=HERE), ow.asarray(np.ones(3), device=HERE)
    for name, run in {
        "gmres": lambda: ow.linalg.gmres(A, b),
        "splu": lambda: ow.linalg.splu(A),
        "inv": lambda: ow.linalg.inv(A),
    }.items():
        with pytest.raises(UnsupportedError, match=rf"{name} on interpreter[\s\S]*i : dense, j : compressed"):
            run()


# -- OpenCL ---------------------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.parametrize("columns", [5, 100, 2000])
def test_rows_that_items_share_on_opencl(columns: int) -> None:
    """Rows of an item, of a subgroup and of a group."""
    opencl_or_skip()
    array = np.arange(1.0, 4 * columns + 1).reshape(4, columns)
    there, x = ow.asarray(array, format="csr", device="opencl"), ow.asarray(np.ones(columns), device="opencl")
    np.testing.assert_array_equal((there @ x).to_numpy(), array.sum(1))
    np.testing.assert_array_equal(ow.max(there, axis=1).to_numpy(), array.max(1))


@pytest.mark.opencl
@pytest.mark.parametrize(("rank", "spec"), [(rank, spec) for rank, specs in FORMATS.items() for spec in specs])
def test_every_operation_in_every_format_on_opencl(rank: int, spec: str) -> None:
    opencl_or_skip()
    shape = SHAPES[rank][0]
    for case in cases(shape):
        compare(case, dense_array(shape), spec, "opencl")


@pytest.mark.parametrize("spec", ["csr", "coo"])
def test_numbers_that_are_not_finite_on_the_interpreter(spec: str) -> None:
    for case in cases((4, 6)):
        if case[0] in ("max 1", "clip", "A + B"):
            compare(case, awkward(dense_array((4, 6))), spec, HERE)


@pytest.mark.opencl
@pytest.mark.parametrize("spec", ["csr", "coo", "csc", "dense", "bsr(2, 3)", "dia", "ell(300)", "bitmap"])
@pytest.mark.parametrize("columns", [12, 300])
def test_numbers_that_are_not_finite_on_opencl(spec: str, columns: int) -> None:
    """Maxima and minima lost NaN there, in every mapping."""
    opencl_or_skip()
    for shape in ((8, columns), (columns, 8)):
        for case in cases(shape):
            compare(case, awkward(dense_array(shape)), spec, "opencl")


LONG = (
    "A @ x", "x @ A", "A @ X", "sddmm", "sum 0", "sum 1", "max 1", "softmax 1", "mttkrp", "ttv", "ttm", "A + B",
    "A @ A.T",
)  # fmt: skip
"""Cases of long rows: what sums along rows or columns, and a join."""


@pytest.mark.opencl
@pytest.mark.parametrize(("rank", "spec"), [(rank, spec) for rank, specs in FORMATS.items() for spec in specs if rank])
def test_long_rows_in_every_format_on_opencl(rank: int, spec: str, monkeypatch: Any) -> None:
    """Rows and columns that an item walks, that the items of a subgroup share, and those of a group."""
    opencl_or_skip()
    seen: set[str] = set()
    monkeypatch.setattr(statements, "plan_of", lambda *args: (seen.add((p := plan_of(*args)).schedule.mapping), p)[1])
    for n in (32, 300, 3000):
        shapes = (2,) * (rank - 1) + (n,), (n,) + (2,) * (rank - 1), *(((2, n, 2),) if rank == 3 else ())
        for shape in dict.fromkeys(shapes):
            if spec.startswith("nm") and shape[-1] % 4:
                continue
            array = dense_array(shape, density=0.9 if spec[0] != "n" else 0.3)
            for case in cases(shape):
                if case[0] in LONG and not (case[0] == "A @ A.T" and shape[0] > 300):
                    compare(case, array, spec.replace("12", str(shape[-1])), "opencl")
    assert spec != "csr" or seen == {"item", "subgroup", "group", "split"}


@pytest.mark.opencl
@pytest.mark.parametrize(("rank", "spec"), [(rank, spec) for rank, specs in FORMATS.items() for spec in specs])
def test_every_format_is_assembled_on_opencl(rank: int, spec: str) -> None:
    opencl_or_skip()
    for number, shape in enumerate(SHAPES[rank]):
        if number and spec.startswith("nm"):
            continue
        array = dense_array(shape)
        for source in ("dense", "coo", "csr")[: 3 if rank == 2 else 2] if rank else (spec,):
            there = ow.asarray(array, device="opencl").asformat(ow.format(source, rank))
            same(there.asformat(ow.format(spec, rank)), tensor(array, spec), f"{source} to {spec}")


@pytest.mark.opencl
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_our_own_logarithms_are_those_of_numpy(scalar: str, monkeypatch: Any) -> None:
    """What CUDA's kernels compute, run by OpenCL."""
    opencl_or_skip()
    monkeypatch.setitem(opencl.DEVICES, "opencl", replace(opencl.DEVICES["opencl"], builtins=False))
    device, dtype = adapter_of("opencl"), numpy_dtype(scalar)
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    special = [0, -0.0, -1, np.inf, np.nan, info.tiny, info.tiny / 8, info.max, 1, 2, 8, 1000, 1e-10, -0.5, -1e-9]
    x = np.concatenate([np.exp(rng.uniform(-80, 80, 5000)), 1 + rng.uniform(-0.5, 1, 5000), special]).astype(dtype)
    for name, bound in {"log": 1, "log2": 2, "log1p": 3, "log10": 3}.items():
        found = mapped(name, [device.of(x, scalar)], scalar).to_numpy()
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x.astype(np.longdouble))
        np.testing.assert_allclose(found, want, rtol=bound * info.eps)


@pytest.mark.opencl
def test_systems_are_solved_onopencl_or_skip() -> None:
    opencl_or_skip()
    _solve("opencl", 60)


@pytest.mark.opencl
def test_arrays_of_pyopencl_go_in_and_come_out() -> None:
    cl = opencl_or_skip()
    A = ow.asarray(dense_array((40, 60)), format="csr")
    there = A.to("opencl")
    x = cl.array.to_device(there.adapter.queue, np.arange(60.0))
    y = there @ x
    assert isinstance(y, cl.array.Array)
    np.testing.assert_array_equal(y.get(), A @ np.arange(60.0))
    np.testing.assert_array_equal((there @ x[::-1]).get(), A @ np.arange(60.0)[::-1])
    for array in (np.asfortranarray(np.arange(120.0).reshape(60, 2)), np.arange(120.0).reshape(2, 60).T):
        moved = cl.array.to_device(there.adapter.queue, array)
        np.testing.assert_array_equal((there @ moved).get(), A @ array)
    by_twos = cl.array.to_device(there.adapter.queue, np.arange(480.0).reshape(120, 4))[::2, 1::2]
    np.testing.assert_array_equal((there @ by_twos).get(), A @ np.arange(480.0).reshape(120, 4)[::2, 1::2])
    own = ow.asarray(x)
    assert own.memory.handle.int_ptr == x.base_data.int_ptr
    assert isinstance(there.values, cl.array.Array)
    assert there.pos(1).get().tolist() == A.pos(1).tolist()
    with pytest.raises(ow.SizeError, match=r"a buffer of 8,000,000,000,000 bytes"):
        there.adapter.allocate(10**12, "f64")


@pytest.mark.opencl
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "int32", "uint32", "int64", "bool"])
def test_kernels_in_opencl_c_give_what_the_host_gives(dtype: str, monkeypatch: Any) -> None:
    """What runtimes get that take no SPIR-V: atomics of all widths among them."""
    opencl_or_skip()
    there = adapter_of("opencl")
    monkeypatch.setattr(there, "takes_spirv", False)
    monkeypatch.setattr(there, "grid", Grid(128, 1))
    names = ("A @ x", "x @ A", "A + B", "max 1", "min 0", "prod 1", "any 1", "A * 2", "A > 1", "abs", "clip", "A @ A.T")
    for spec in ("csr", "coo"):
        host = tensor(dense_array((8, 40), dtype=dtype), spec)
        for name, function, shapes in cases((8, 40)):
            if name in names and not (dtype == "bool" and name in ("A * 2", "abs")):
                dense = [np.ones(s, dtype) for s in shapes]
                operands = [ow.asarray(x, device="opencl") for x in dense]
                same(function(host.to("opencl"), *operands), function(host, *dense), f"{name} of {spec}")
    with pytest.raises(UnsupportedError, match=r"multiply on opencl: OpenCL C of values of c128[\s\S]*i : dense"):
        ow.asarray(np.eye(3) * 1j, format="csr", device="opencl") * 2


@pytest.mark.opencl
def test_a_runtime_whose_subgroups_are_of_another_size_shares_no_rows_by_them(monkeypatch: Any) -> None:
    """Intel's runtime without passes gives subgroups another size than it says, and summed rows wrongly."""
    cl = opencl_or_skip()
    built = cl.Program.build
    monkeypatch.setattr(cl.Program, "build", lambda self, devices=None: built(self, ["-cl-opt-disable"], devices))
    monkeypatch.setattr(opencl, "code_of", lambda driver, text, make: make())
    there = adapter_of("opencl")
    assert there.grid == Grid(128, 32)
    other = opencl.OpenCL(there.queue)
    assert other.grid == Grid(128, 1)
    array = np.arange(1.0, 401).reshape(4, 100)
    host = ow.asarray(array, format="csr"), ow.asarray(np.ones(100))
    found = upload(host[0], other) @ upload(host[1], other)
    np.testing.assert_array_equal(found.to_numpy(), array.sum(1))


@pytest.mark.opencl
def test_random_calls_on_opencl_give_what_they_give_on_the_host() -> None:
    opencl_or_skip()
    assert device_search.main(["--device", "opencl", "--count", "150", "--seed", "1"]) == 0


@pytest.mark.ci
def test_random_calls_on_the_interpreter_have_no_race_and_give_what_they_give_on_the_host() -> None:
    assert device_search.main(["--device", HERE, "--count", "12", "--seed", "2"]) == 0


UNDER_OCLGRIND = """
import sys
import numpy as np
from device_cases import cases, compare
from matrix import dense_array
import openwork as ow
from openwork.device import vector
from openwork.device.adapter import adapter_of

ow.asarray([1.0], device="opencl")
assert "Oclgrind" in adapter_of("opencl").hardware.name
for spec in ("csr", "coo", "csc", "bsr(2, 3)", "ell(8)", "bitmap", "dia"):
    for case in cases((6, 8)):
        if case[0] in ("A @ x", "x @ A", "A + B", "max 1", "any 1", "A @ A.T", "softmax 1", "sddmm", "A @ X", "var 0"):
            compare(case, dense_array((6, 8)), spec, "opencl")
print("all cases are right", flush=True)
x = adapter_of("opencl").of(np.arange(200)[::-1] % 7, "i64")
for name, old, new in eval(sys.argv[1]):
    text = getattr(vector, name)
    setattr(vector, name, text.replace(old, new))
    print("planted", name, flush=True)
    vector.order_of([(x, 7)]).to_numpy() if name == "_COUNT" else vector.scan(x)
    setattr(vector, name, text)
"""


@pytest.mark.opencl
def test_oclgrind_finds_no_race_but_those_planted(tmp_path: Path) -> None:
    """Small shapes, in OpenCL C; then a barrier left out, a sum without an atomic, and a write out of bounds."""
    found = shutil.which("oclgrind")
    library = next(Path(found).resolve().parents[1].glob("lib*/**/liboclgrind-rt-icd.so"), None) if found else None
    if library is None or importlib.util.find_spec("pyopencl") is None:
        pytest.skip("oclgrind or pyopencl is not installed")
    (tmp_path / "oclgrind.icd").write_text(f"{library}\n")
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "OCL_ICD_VENDORS": str(tmp_path), "OCLGRIND_DATA_RACES": "1", "OCLGRIND_MAX_ERRORS": "100000", "OPENWORK_CACHE_DIR": str(tmp_path / "kernels"),
        "PYTHONPATH": os.pathsep.join(folders),
    }  # fmt: skip
    environment.pop("LD_LIBRARY_PATH", None)
    planted = [fault[:3] for fault in PLANTED.values()]
    command = [sys.executable, "-c", UNDER_OCLGRIND, repr(planted)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    right, *faults = done.stdout.split("planted ")
    assert "all cases are right" in right
    assert "data race" not in right
    assert "Invalid" not in right
    for part, message in zip(faults, ("data race", "data race", "Invalid"), strict=True):
        assert message in part


SUITES = {
    "masked": ["masked"],
    "torch": [
        f"with_torch/test_torch_{name}.py"
        for name in (
            "functions", "methods", "arguments", "arguments_beside_dense", "rare_arguments", "spellings", "scalars",
            "small", "degenerate", "layout_results", "calls", "gradients", "exchange", "views", "names", "recorded",
            "full",
        )
    ],
}  # fmt: skip
"""The suites whose calls are repeated on a device, see `on_device`."""


def _repeated(suite: str, device: str) -> None:
    """All tests of a suite pass, and no call of theirs gives something else on the device, or is refused namelessly."""
    tests = Path(__file__).resolve().parents[1]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"OPENWORK_TEST_DEVICE": device, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "on_device", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(str(tests / name) for name in SUITES[suite])],
        env=environment, cwd=tests.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:]
    found = re.search(r"on (\w+): (\d+) calls give what the host gives, (\d+) are refused by name", done.stdout)
    assert found is not None
    assert int(found[2]) > 400


@pytest.mark.opencl
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("suite", SUITES)
def test_suites_give_on_opencl_what_they_give_on_the_host(suite: str) -> None:
    opencl_or_skip()
    _repeated(suite, "opencl")


# -- CUDA -----------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("suite", SUITES)
def test_suites_give_on_cuda_what_they_give_on_the_host(suite: str) -> None:
    """For the first person with a card: nobody has run it."""
    _cuda_or_skip()
    _repeated(suite, "cuda")


def _cuda_or_skip() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or importlib.util.find_spec("cuda") is None:
        pytest.skip("torch finds no CUDA device, or cuda.core is not installed")


@pytest.mark.gpu
@pytest.mark.parametrize("rank", FORMATS)
def test_every_operation_in_every_format_on_cuda(rank: int) -> None:
    """For the first person with a card: nobody has run it."""
    _cuda_or_skip()
    shape = SHAPES[rank][0]
    for spec in FORMATS[rank]:
        for case in cases(shape):
            if case[0] in ("sin", "cos"):
                with pytest.raises(UnsupportedError, match=case[0]):
                    compare(case, dense_array(shape), spec, "cuda")
            else:
                compare(case, dense_array(shape), spec, "cuda")
        same(tensor(dense_array(shape), spec).to("cuda").check(), tensor(dense_array(shape), spec), spec)
