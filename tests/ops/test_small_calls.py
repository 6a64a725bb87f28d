"""Small operations again on the same objects: what changed in between is seen, warnings are those of the first time."""

from __future__ import annotations

import gc
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.checked import CHECKED
from openwork.codegen.float_flags import raised
from openwork.codegen.launcher import launcher
from openwork.errors import InvariantError
from openwork.runtime import check as checks
from openwork.runtime import gradient_hook
from openwork.runtime.check import check
from openwork.storage.exact import check_indices
from openwork.storage.invariants import check_layout
from openwork.storage.storage import Storage

X = (np.arange(48).reshape(6, 8) % 5 == 0) * np.arange(1.0, 49).reshape(6, 8)
Y = (np.arange(48).reshape(6, 8) % 3 == 0) * np.arange(2.0, 50).reshape(6, 8)
ONES = np.ones(8)
FACTOR = np.float64(3)
FIBRES = ow.asarray(X.reshape(3, 2, 8), format="csf")


def calls(function: Callable[[], Any]) -> int:
    """Python functions that a function enters once all is prepared, its own left out."""
    launcher()
    for _ in range(12):
        function()
    count = 0

    def visit(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # a collection that falls into the call enters finalisers
    sys.setprofile(visit)
    try:
        function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count - 1


@pytest.mark.thin(6)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "complex64"])
@pytest.mark.parametrize("number", [2, -2, 2.5, 0, 0.0, np.inf, -np.inf, np.nan, 1e-320, 2**60, 3j])
@pytest.mark.parametrize("op", [operator.mul, operator.truediv, operator.add, operator.floordiv])
def test_fill_values_of_numbers_that_follow_each_other(op: Any, number: Any, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in (X.astype(dtype), torch.from_numpy(X.astype(dtype))):
            try:
                expected = op(x, number)
            except (TypeError, OverflowError, RuntimeError):
                continue
            if str(expected.dtype) == "torch.complex32":
                continue
            a = ow.asarray(x, format="csr")
            for before in (2, -3, 4.0):
                op(a, before)
            np.testing.assert_array_equal(op(a, number).to_numpy(), np.asarray(expected))


def _arrays(dtype: str) -> list[np.ndarray[Any, Any]]:
    """Arrays beside a 6 x 8 tensor: of every shape that broadcasts, in every order, with what NumPy warns of."""
    rng = np.random.default_rng(0)
    plain = [rng.random(shape).astype(dtype) + 1 for shape in ((6, 8), (8,), (6, 1), (1, 8), (1, 1), (2, 6, 8))]
    special = [(plain[0] * 1).astype(dtype) for _ in range(4)]
    for x, value in zip(special, (np.inf, np.nan, np.finfo(dtype).max if dtype[0] == "f" else 0, 0), strict=True):
        x[2, ::3] = value if dtype[0] == "f" else 0
    return [*plain, *special, plain[0][:, ::-1], np.asfortranarray(plain[0]), plain[0].astype("f4")]


_BESIDE = [
    pytest.param(spec, dtype, fill, marks=() if (spec, dtype, fill) == ("csr", "f8", 0) else pytest.mark.slow)
    for spec in ("csr", "csc", "coo", "bsr(4,4)", "dia", "bitmap")
    for dtype in ("f8", "f4", "i8")
    for fill in (0, 2)
]


@pytest.mark.parametrize(("spec", "dtype", "fill"), _BESIDE)
def test_arrays_beside_few_elements_again(spec: str, dtype: str, fill: int) -> None:
    """Sums and products with arrays by kept places are NumPy's, in value, type and warning."""
    x = np.where(X > 0, X, fill).astype(dtype)
    a = ow.asarray(x, format=spec, fill_value=fill)
    for op in (operator.add, operator.sub, operator.mul, operator.truediv):
        for y in _arrays(dtype):
            for p, q, dense in ((a, y, (x, y)), (y, a, (y, x))):
                for _ in range(2):
                    with np.errstate(all="ignore"):
                        want, got = op(*dense), op(p, q)
                    got = got.to_numpy() if isinstance(got, ow.Tensor) else got
                    np.testing.assert_array_equal(got, want)
                    assert got.dtype == want.dtype
                    assert got.shape == want.shape
                assert fill or op is operator.truediv or _said(lambda: op(p, q)) == _said(lambda: op(*dense))  # noqa: B023


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16"])
@pytest.mark.parametrize("number", [np.float64(2), np.float64(0.1), np.float64("inf"), np.float32(3), np.int64(2)])
def test_numbers_of_numpy_beside_few_elements_again(dtype: str, number: Any) -> None:
    x = X.astype(dtype)
    a = ow.asarray(x, format="csr")
    for op in (operator.mul, operator.add, operator.truediv, operator.pow):
        for p, q, dense in ((a, number, (x, number)), (number, a, (number, x))):
            for _ in range(3):
                with np.errstate(all="ignore"):
                    want, got = op(*dense), op(p, q).to_numpy()
                np.testing.assert_array_equal(got, want)
                assert got.dtype == want.dtype


def test_ufuncs_again_are_numpys_with_every_argument() -> None:
    """What goes to the operation directly, after and before calls of the same ufunc that do not."""
    a, out = ow.asarray(X, format="csr"), np.zeros((6, 8))
    for _ in range(2):
        np.testing.assert_array_equal(np.add(X, a), X + X)
        np.testing.assert_array_equal(np.add(X, a, out=out), X + X)
        np.testing.assert_array_equal(np.add(a, X, where=X > 0).to_numpy()[X > 0], (X + X)[X > 0])
        np.testing.assert_array_equal(np.add.outer(ONES[:2], a).to_numpy(), np.add.outer(ONES[:2], X))
        np.testing.assert_array_equal(np.sqrt(a, dtype="f4").to_numpy(), np.sqrt(X, dtype="f4"))
        np.testing.assert_array_equal(np.sqrt(a).to_numpy(), np.sqrt(X))
        np.testing.assert_array_equal(np.add.reduce(a, axis=0).to_numpy(), X.sum(0))
        np.testing.assert_array_equal(np.matmul(X.T, a), X.T @ X)
        with pytest.raises(ow.ShapeError):
            X @ a
        with pytest.raises(ow.ShapeError):
            np.add(a, ONES[:5])


def test_flags_of_the_processor_tell_of_overflow_once() -> None:
    raised()
    x = np.array([1e300])
    float(x[0]) * float(x[0])
    assert raised()


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("count", [40, 3000])
def test_warnings_do_not_depend_on_what_was_computed_before(op: Any, shared: bool, dtype: str, count: int) -> None:
    """Small and large operands, of one structure and of two, after calls that set every flag or none."""
    large = np.finfo(dtype).max
    x = np.where(np.arange(count) % 3, 1.5, large).astype(dtype)
    y = np.where(np.arange(count) % 2, 0.25, -large).astype(dtype)
    ones = np.ones(count, dtype)
    a, b, harmless = (ow.asarray(v, format="coo") for v in (x, y, ones))
    if shared:
        b, harmless = (ow.Tensor._from_storage(a._storage.with_values(t.values)) for t in (b, harmless))
    for _ in range(2):
        for one, other, p, q in ((a, b, x, y), (harmless, harmless, ones, ones), (a, harmless, x, ones)):
            assert _said(lambda: op(one, other)) == _said(lambda: op(p, q))  # noqa: B023


def _said(function: Callable[[], Any]) -> set[str]:
    with warnings.catch_warnings(record=True) as found, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        function()
    return {str(w.message).split(" encountered")[0] for w in found}


def test_checks_by_types_find_what_the_stages_find() -> None:
    """Of buffers and shapes that change a little every time, the same are refused, in the same words, as by stages."""
    rng = np.random.default_rng(3)
    formats = ("csr", "csc", "coo", "bsr(2,2)", "(i, j) -> (j - i : compressed, j : range)")
    for spec in formats:
        t = ow.asarray(X, format=spec)._storage
        for _ in range(checks.PATIENCE + 1):
            check(t)
        assert checks.passes(t)
        for _ in range(60):
            pos, crd, values = ([None if b is None else b.copy() for b in g] for g in (t.pos, t.crd, (t.values,)))
            spoil(rng, pos, crd, values)
            shape = t.shape if rng.random() < 0.6 else spoiled_shape(rng, t.shape)
            s = Storage(shape, t.format, t.scalar, 0, tuple(pos), tuple(crd), values[0])
            assert outcome(lambda: check(s)) == outcome(lambda: check_in_stages(s)), (spec, pos, crd)  # noqa: B023


def spoiled_shape(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Another shape: an extent more, less, negative or no integer, wide, or a dimension more or less."""
    at = int(rng.integers(2))
    change: Any = [1, -1, -shape[at] - 1, 0.5, 2**40, np.int64(1)][rng.integers(6)]
    other = [*shape[:at], shape[at] + change, *shape[at + 1 :]]
    return tuple([other, other[:1], [*other, 1]][int(rng.choice(3, p=[0.8, 0.1, 0.1]))])


def spoil(rng: np.random.Generator, pos: list[Any], crd: list[Any], values: list[Any]) -> None:
    """Change one buffer: an entry, the length, the type, the strides, or nothing."""
    group = [pos, crd, values][rng.integers(3)]
    at = int(rng.choice([k for k, b in enumerate(group) if b is not None]))
    b = group[at]
    group[at] = [
        lambda: b[:-1], lambda: np.append(b, b[-1]), lambda: b.astype(np.int16), lambda: np.repeat(b, 2)[::2],
        lambda: b[::-1].copy(), lambda: b - 1, lambda: b + 1, lambda: np.sort(b), lambda: b.reshape(1, -1), lambda: b,
    ][rng.integers(10)]()  # fmt: skip


def check_in_stages(s: Storage) -> None:
    """The check without kernels."""
    check_layout(s)
    check_indices(s)


def outcome(function: Callable[[], Any]) -> str:
    try:
        function()
    except InvariantError as error:
        return str(error)
    return "right"


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's, when it first has tangents
def test_prepared_products_of_torch_see_what_changes() -> None:
    """Gradients, tangents, transforms, strides, conjugates and memory are asked at every call."""
    torch = pytest.importorskip("torch")
    dense = torch.from_numpy(X)
    a, x = ow.asarray(dense.to_sparse_csr()), torch.arange(8.0, dtype=torch.float64)
    want = dense @ x
    for _ in range(3):
        assert torch.equal(a @ x, want)
    v = x.clone().requires_grad_()
    (a @ v).sum().backward()
    assert torch.equal(v.grad, dense.sum(0))
    with torch.no_grad():
        assert not (a @ v).requires_grad
    assert torch.equal(torch.func.vmap(lambda row: a @ row)(torch.stack([x, 2 * x])), torch.stack([want, 2 * want]))
    assert torch.equal(torch.func.jvp(lambda y: a @ y, (x,), (x,))[1], want)
    assert torch.equal(a @ torch.stack([x, x], 1)[:, 1], want)
    z = (x + 1j * x).conj()
    assert torch.equal(a @ z, dense.to(z.dtype) @ z)
    a.values.requires_grad_()
    assert (a @ x).requires_grad
    a.values.requires_grad_(False)
    a.values.mul_(2)
    assert torch.equal(a @ x, 2 * want)
    a.values.untyped_storage().resize_(0)
    with pytest.raises(InvariantError):
        a @ x


@pytest.mark.skipif(CHECKED, reason="addresses take calls of their own")
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_matrices_of_new_shapes_are_taken_over_in_few_calls(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is by types: each matrix has a shape of its own."""
    monkeypatch.setattr(gradient_hook, "dense_gradient_type", None)
    scipy = pytest.importorskip("scipy.sparse")

    def matrix(k: int) -> Any:
        s = scipy.csr_array(np.vstack([X, X[:k]]))
        s.indices, s.indptr = s.indices.astype(dtype), s.indptr.astype(dtype)
        return s

    for k in range(checks.PATIENCE + 2):  # the check is compiled once it is wanted often
        ow.asarray(matrix(k % 4))
    s, triplets = matrix(5), matrix(6).tocoo()
    assert calls(lambda: ow.asarray(s)) <= 36
    a = ow.asarray(s)
    assert np.shares_memory(a.values, s.data)
    np.testing.assert_array_equal(a.to_numpy(), s.toarray())
    s.indices[0] = 99
    with pytest.raises(InvariantError, match=r"5\.5"):
        ow.asarray(s)
    s.indices[0] = 0
    s.data.flags.writeable = False
    assert not ow.asarray(s).values.flags.writeable
    calls(lambda: ow.diagonal(ow.asarray(matrix(4))))
    assert calls(lambda: ow.diagonal(a)) <= 80
    indices = np.stack(triplets.coords)
    for k in range(checks.PATIENCE + 2):
        ow.sparse_coo_tensor(indices, triplets.data, (20 + k, 8))
    assert calls(lambda: ow.sparse_coo_tensor(indices, triplets.data, (99, 8))) <= 130


def test_indices_of_torch_are_checked_by_prepared_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_hook, "dense_gradient_type", None)
    torch = pytest.importorskip("torch")
    for k in range(checks.PATIENCE + 2):
        m = torch.from_numpy(np.vstack([X, X[:k]])).to_sparse_csr()
        a = ow.asarray(m)
    np.testing.assert_array_equal(a.to_numpy(), m.to_dense().numpy())
    m = torch.from_numpy(X).to_sparse_csr()
    assert CHECKED or calls(lambda: ow.asarray(m)) <= 90
    bad = torch.sparse_csr_tensor(m.crow_indices(), m.col_indices() + 7, m.values(), m.shape, check_invariants=False)
    with pytest.raises(InvariantError, match=r"5\.5"):
        ow.asarray(bad)
    assert ow.asarray(m.clone().requires_grad_()).requires_grad


def test_functions_of_torch_and_totals_again() -> None:
    """What is kept of them: the fill value, of every function, dtype and number; recorded and batched values too."""
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    for dtype in (torch.float64, torch.float32, torch.int32):
        y = x.to(dtype)
        a = ow.asarray(y.to_sparse_csr())
        for _ in range(3):
            for f in (torch.cos, torch.neg, torch.relu, torch.nn.functional.leaky_relu, torch.square):
                if dtype != torch.int32 or "leaky" not in str(f):
                    np.testing.assert_allclose(f(a).to_numpy(), f(y).numpy(), rtol=1e-6)
            for slope in (0.5, 0.25):
                if dtype != torch.int32:
                    found = torch.nn.functional.leaky_relu(a, slope)
                    np.testing.assert_allclose(found.to_numpy(), torch.nn.functional.leaky_relu(y, slope), rtol=1e-6)
            for total in (a.sum(), torch.sum(a), ow.sum(a, axis=None), (a * 2).sum() / 2):
                assert float(total) == float(y.sum())
            assert a.sum().dtype == y.sum().dtype
            assert ow.sum(a, keepdims=True).shape == (1, 1)
    w = ow.asarray(x.to_sparse_csr()).requires_grad_()
    for _ in range(3):
        w.grad = None
        (torch.cos(w).sum() + w.sum() * 2).values.sum().backward()
        np.testing.assert_allclose(w.grad.values, 2 - torch.sin(w.values.detach()))
    got = w @ w.T  # the gradient of a sum has stride 0
    got.sum().values.sum().backward()
