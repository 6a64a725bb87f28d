"""Prepared calls, kept with a structure: right for other values, other threads, wrong keys; nothing is held alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.ops.elementwise.pointwise import merge_equal
from openwork.runtime.contraction.small_product import small_product
from openwork.storage.storage import Storage

FORMATS = ["csr", "csc", "coo", "dcsr", "csf", "bitmap", "ell(8)", "bsr(2, 2)", "dense", "dia"]
RNG = np.random.default_rng(7)
X = np.where(RNG.random((6, 8)) < 0.4, RNG.integers(1, 9, (6, 8)), 0).astype(float)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    kept = ow.get_num_threads()
    ow.set_num_threads(1)
    yield
    ow.set_num_threads(kept)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ x": lambda a, xp: a @ np.arange(8.0),
    "x @ A": lambda a, xp: np.arange(6.0) @ a,
    "A.T @ x": lambda a, xp: a.T @ np.arange(6.0),
    "sum": lambda a, xp: xp.sum(a),
    "sums": lambda a, xp: xp.sum(a, axis=1),
    "sums kept": lambda a, xp: xp.sum(a, axis=0, keepdims=True),
    "least": lambda a, xp: xp.min(a),
    "largest": lambda a, xp: xp.max(a, axis=None, keepdims=True),
    "largest of columns": lambda a, xp: xp.max(a, axis=0),
    "element": lambda a, xp: a[2, 3],
    "negative": lambda a, xp: a[-1, -8],
    "rows": lambda a, xp: a[[4, 1, -1, 1]],
    "mask": lambda a, xp: a[np.arange(6) % 2 == 0],
    "numbers": lambda a, xp: a[np.array([3, 0], np.uint8)],
    "truth among numbers": lambda a, xp: a[[True, 2]],
    "diagonal": lambda a, xp: xp.diagonal(a),
    "upper diagonal": lambda a, xp: xp.diagonal(a, offset=2),
    "dense": lambda a, xp: a.T,
    "joined": lambda a, xp: xp.concat([a, a]),
    "einsum": lambda a, xp: xp.einsum("ij,j->i", a, np.arange(8.0)),
    "einsum, the array first": lambda a, xp: xp.einsum("j, ij", np.arange(8.0), a),
    "einsum of matrices": lambda a, xp: xp.einsum("ij,jk->ki", a, np.arange(16.0).reshape(8, 2)),
    "NumPy's sum": lambda a, xp: np.sum(a),
    "NumPy's sums": lambda a, xp: np.sum(a, axis=1, keepdims=True),
    "NumPy's largest": lambda a, xp: np.max(a, 0),
}


def dense(x: Any) -> Any:
    return x.to_numpy() if isinstance(x, ow.Tensor) else np.asarray(x)


@pytest.mark.thin(66)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CALLS)
def test_other_values_of_one_structure(name: str, format: str) -> None:
    call = CALLS[name]
    a = ow.asarray(X, format=format)
    for tensor, factor in ((a, 1), (a, 1), (a * 3, 3), (a.astype(np.float32), 1), (a * 3, 3)):
        np.testing.assert_array_equal(dense(call(tensor, ow)), dense(call(X * factor, np)))
    if format not in ("dense", "dia"):
        a.values[:] *= 2  # in place: what is kept reads the values of the call
        np.testing.assert_array_equal(dense(call(a, ow)), dense(call(X * 2, np)))


@pytest.mark.parametrize("fill", [0.0, 2.0, np.nan, -0.0])
def test_fill_values_have_calls_of_their_own(fill: float) -> None:
    a = ow.asarray(X, format="csr")
    y = np.where(X == 0, fill, X)
    for _ in range(2):
        np.testing.assert_array_equal(dense(ow.sum(a, axis=0)), X.sum(0))
        b = ow.where(a != 0, a, fill)
        np.testing.assert_allclose(dense(ow.sum(b, axis=0)), y.sum(0))
        assert str(dense(b[0, 0])) == str(y[0, 0])
        np.testing.assert_array_equal(dense(b[[1, 2]]), y[[1, 2]])


@pytest.mark.parametrize("format", ["csr", "coo", "dcsr"])
def test_keys_that_are_refused(format: str) -> None:
    a = ow.asarray(X, format=format)
    assert float(a[1, 1]) == X[1, 1]
    a[[1]], ow.diagonal(a, offset=1), ow.sum(a, axis=1)
    for key in ((6, 0), (0, 8), (-7, 0), (0, -9)):
        with pytest.raises(IndexError, match="out of bounds"):
            a[key]
    for rows in ([6], [-7], np.array([0, 6]), np.array([1.5]), np.ones(5, bool), np.array(["a"])):
        with pytest.raises(IndexError):
            a[rows]
    for ragged in ([[1, 2], [3]], ["a"], [1, None], [2**70]):
        with pytest.raises((IndexError, ValueError)) as ours:
            a[ragged]
        with pytest.raises((IndexError, ValueError)) as theirs:
            ow.asarray(X)[ragged]
        assert ours.type is theirs.type
    assert a[[]].shape == (0, 8) == a[np.zeros(6, bool)].shape
    assert a[True, 1, 1].shape == X[True, 1, 1].shape
    assert a[np.True_].shape == X[np.True_].shape
    with pytest.raises(ow.DTypeError):
        ow.diagonal(a, offset=1.0)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ow.DTypeError)):
        ow.sum(a, axis=1.0)  # type: ignore[arg-type]
    for bad in (True, 2, -3):
        with pytest.raises((TypeError, ValueError, IndexError)):
            ow.sum(a, axis=bad)


@pytest.mark.thin(4)
@pytest.mark.parametrize("op", ["sum", "min", "max", "prod", "any", "mean"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64"])
def test_totals_of_duplicates_and_awkward_values(op: str, dtype: str) -> None:
    if dtype == "complex64" and op in ("min", "max"):
        return
    values = np.array([1, 2, 3, np.nan if dtype.startswith("f") else 0]).astype(dtype)
    crd = np.array([[0, 0, 1, 2], [2, 2, 1, 0]])
    for t in (
        ow.sparse_coo_tensor(crd, values, (3, 4)),
        ow.sparse_coo_tensor(crd[:, 1:], values[1:], (3, 4)),
        ow.asarray(np.full((2, 2), -3).astype(dtype), format="csr"),
        ow.asarray(np.zeros((2, 3), dtype), format="csr"),
    ):
        expected = getattr(np, op)(t.to_numpy())
        for _ in range(3):
            np.testing.assert_array_equal(getattr(ow, op)(t).to_numpy(), expected)
            assert getattr(ow, op)(t).dtype == expected.dtype


def test_duplicates_are_no_single_element() -> None:
    crd = (np.array([0, 0, 1]), np.array([2, 2, 1]))
    t = ow.sparse_coo_tensor(np.array(crd), np.array([1.0, 2.0, 5.0]), (3, 4))
    for _ in range(2):
        assert [float(t[0, 2]), float(t[1, 1]), float(t[2, 2])] == [3.0, 5.0, 0.0]


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms(format: str, keepdims: bool) -> None:
    a = ow.asarray(X, format=format)
    for t, factor in ((a, 1.0), (a * 3, 3.0), (a.astype(np.float32), 1.0), (a * 1e200, 1e200), (a, 1.0)):
        with np.errstate(over="ignore"):
            found, wanted = ow.linalg.norm(t, keepdims=keepdims), np.linalg.norm(X * factor, keepdims=keepdims)
        assert found.dtype == t.dtype
        np.testing.assert_allclose(dense(found), wanted, rtol=1e-6)
    for _ in range(3):
        assert float(ow.linalg.norm(ow.asarray(X, format=format, dtype=np.int64))) == np.linalg.norm(X)
        shifted = ow.asarray(X + 2.0, format=format, fill_value=2.0) if format not in ("dense", "dia") else a
        np.testing.assert_allclose(float(ow.linalg.norm(shifted)), np.linalg.norm(dense(shifted)))
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            ow.linalg.norm(a * 1e200)
    twice = ow.sparse_coo_tensor(np.array([[0, 0], [1, 1]]), np.array([3.0, 1.0]), (2, 2))
    assert [float(ow.linalg.norm(twice)) for _ in range(3)] == [4.0] * 3


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", FORMATS)
def test_in_place(format: str, library: str) -> None:
    like = (lambda x: x) if library == "numpy" else pytest.importorskip("torch").from_numpy
    a, expected = ow.asarray(like(X.copy()), format=format), X.copy()
    t = a.T
    for number in (2.0, 0.5, 3.0):
        a *= number
        expected *= number
    assert type(a.values) is type(like(X))
    np.testing.assert_array_equal(a.to_numpy(), expected)
    np.testing.assert_array_equal(t.to_numpy(), expected.T)  # over the same memory
    a += 1  # another fill value: the tensor takes the result's buffers
    np.testing.assert_array_equal(a.to_numpy(), expected + 1)
    whole = ow.asarray(like(np.eye(3, dtype=np.int32)), format=format if format != "bsr(2, 2)" else "csr")
    for _ in range(2):
        with pytest.raises(ow.DTypeError):
            whole *= 1.5
    values = np.array([1.0, 2.0])
    values.flags.writeable = False
    fixed = ow.assemble("csr", (2, 2), pos=[None, np.array([0, 1, 2])], crd=[None, np.array([0, 1])], values=values)
    with pytest.raises(ow.ReadOnlyError):
        fixed *= 2.0


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("format", FORMATS)
def test_zeros_have_their_sign_in_place(format: str, library: str) -> None:
    like = (lambda x: x) if library == "numpy" else pytest.importorskip("torch").from_numpy
    for change in (lambda t: t.__imul__(-1.0), lambda t: t.__itruediv__(-2.0), lambda t: t.__imul__(t * -1.0)):
        x = X.copy()
        a, expected = ow.asarray(like(x.copy()), format=format), change(x)
        t = a.T
        a = change(a)
        np.testing.assert_array_equal(np.signbit(a.to_numpy()), np.signbit(expected))
        np.testing.assert_array_equal(t.to_numpy(), expected.T)  # over the same memory


def test_wrong_arguments_of_numpys_functions() -> None:
    a = ow.asarray(X, format="csr")
    for _ in range(2):
        assert float(np.sum(a, None)) == X.sum()
        with pytest.raises(TypeError):
            np.sum(a, None, axis=1)  # twice
        np.testing.assert_array_equal(dense(np.sum(a, initial=3.0)), X.sum() + 3)


HELD: dict[str, Callable[[Any, Any], Any]] = CALLS | {
    "merge": lambda a, xp: a + a.T.T * 2,
    "broadcast": lambda a, xp: a * xp.sum(a, axis=0),
    "sparse product": lambda a, xp: a @ a.T,
    "columns": lambda a, xp: a.asformat("csc"),
    "coordinates": lambda a, xp: a.T.asformat("coo"),
    "blocks": lambda a, xp: a.asformat("bsr(2, 2)"),
    "slots": lambda a, xp: a.asformat("ell(8)"),
    "slice": lambda a, xp: a[1:4, 2:],
    "column": lambda a, xp: a[:, 3],
    "places": lambda a, xp: a[[1, 2], [0, 3]],
    "where it is largest": lambda a, xp: xp.argmax(a, axis=1),
    "softmax": lambda a, xp: xp.softmax(a, axis=1),
    "einsum": lambda a, xp: xp.einsum("ij,ij->i", a, np.ones((6, 8))),
    "reshape": lambda a, xp: xp.reshape(a, (8, 6)),
    "cumulative": lambda a, xp: xp.cumulative_sum(a, axis=1),
    "sorted": lambda a, xp: xp.sort(a),
    "evaluate": lambda a, xp: xp.evaluate("d[i] = A[i, i] * 2", A=a[:, :6]),
    "kron": lambda a, xp: xp.kron(a, a),
}


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", HELD)
def test_nothing_holds_the_values_alive(name: str) -> None:
    gc.freeze()  # the collection is to look at what this test makes
    a = ow.asarray(X, format="csr", copy=True)
    b = a * 2
    for _ in range(3):
        HELD[name](b, ow)
    gc.collect()
    gc.disable()
    try:
        values = weakref.ref(b.values)
        del b
        assert values() is None
        HELD[name](a, ow)
        structure = weakref.ref(a._storage.structure)
        del a
        assert structure() is None
    finally:
        gc.enable()


def test_threads_are_asked_for_again() -> None:
    a, x = ow.random((300, 300), 0.1, rng=1, format="csr"), np.ones(300)
    first = a @ x, dense(ow.sum(a, axis=1))
    ow.set_num_threads(2)
    np.testing.assert_allclose(a @ x, first[0])
    np.testing.assert_allclose(dense(ow.sum(a, axis=1)), first[1])


def test_explain_tells_what_was_prepared() -> None:
    a, x = ow.asarray(np.tile(X, (17, 1)), format="csr"), np.ones(8)
    assert "by this call" in str(ow.explain(lambda: a @ x))
    assert "by an earlier call, kept for operands of these types and shapes" in str(ow.explain(lambda: (a * 5) @ x))


def test_a_transpose_turned_back_is_the_structure() -> None:
    a = ow.asarray(X, format="csr")
    assert a.T._storage.structure is not a._storage.structure
    assert a.T.T._storage.structure is a._storage.structure
    assert (a * 2).T._storage.structure is a.T._storage.structure


def test_plans_are_bounded() -> None:
    a = ow.asarray(X, format="csr")
    for n in range(300, 380):  # one kernel serves them
        a @ np.ones((8, n))
    assert len(a._storage.structure.programs) <= 64
    assert isinstance(ow.cache_info()["plans"], int)


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "merge": lambda a, b: a + b,
    "merge of transposes": lambda a, b: (a.T * b.T).T,
    "reduced merge": lambda a, b: ow.compute(ow.sum(ow.lazy(a) * b + a)),
    "fused merge": lambda a, b: ow.compute(ow.lazy(a) * b + a),
}


@pytest.mark.parametrize("name", PAIRS)
def test_calls_of_two_tensors_are_kept_with_the_first_and_hold_no_other(name: str) -> None:
    """Values in the place of others, in one structure, take the call; the other tensor goes when nobody has it."""
    call = PAIRS[name]
    y = np.roll(X[:, :6], 1)
    a = ow.asarray(y, format="csr", dtype="float64")
    home = (a.T if "transposes" in name else a)._storage.structure

    for k in range(3):
        z = np.where(RNG.random((6, 6)) < 0.5, 2.0, 0)
        b = ow.asarray(z, format="csr")
        for u, v in ((1, 1), (1, 1), (2, 3), (0.5, 1)):
            expected = call(ow.asarray(y * u), ow.asarray(z * v))
            np.testing.assert_allclose(dense(call(a * float(u), b * float(v))), dense(expected))
        assert k < len(home.programs) <= 2 * k + 2
        structure = weakref.ref(b._storage.structure)
        del b
        gc.collect()
        assert structure() is None


@pytest.mark.ci
def test_ten_thousand_tensors_added_and_multiplied_take_no_memory() -> None:
    s = ow.asarray(X[:, :6], format="csr")._storage
    pos, values = np.arange(7, dtype=np.int32), np.ones(6)
    objects = []
    for k in range(10_000):
        crd = np.array([k % 6, k // 6 % 6, k // 36 % 6, k // 216 % 6, 4, 5], np.int32)
        t = Storage(s.shape[:1] * 2, s.format, s.scalar, 0, (None, pos), (None, crd), values)
        merge_equal("add", s, t)
        merge_equal("add", s, t)  # the structure is known now: the call is kept
        if k % 100 == 0:
            small_product(s, t)
        if k in (2_000, 9_999):
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert objects[1] - objects[0] < 100
    assert 0 < len(s.structure.programs) <= 64


EXPLAINED: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda a, b: a @ np.ones(a.shape[1]),
    "merge": lambda a, b: a + b,
    "merge with a value guard": lambda a, b: a * b,
    "statement": lambda a, b: ow.pointwise("A[i,j] * B[i,j] + A[i,j]", {"A": a, "B": b}),
    "sparse product": lambda a, b: a @ b.T,
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_explain_tells_hits_of_every_kind(name: str) -> None:
    call, rng = EXPLAINED[name], np.random.default_rng(1)
    ow.clear_caches()
    for k, told in enumerate(("by this call", "by an earlier call", "by an earlier call")):
        y = X * (k + 1) if name == "product" else np.where(rng.random(X.shape) < 0.5, 2.0 + k, 0)
        if k == 0 or name != "product":
            a, b = ow.asarray(X, format="csr"), ow.asarray(y, format="csr")
        assert told in str(ow.explain(lambda a=a, b=b: call(a, b)))


LAZY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda a, b, x: ow.sum(ow.lazy(a) * b),
    "scaled": lambda a, b, x: ow.lazy(a) * 2.5 + b,
    "product of a sum": lambda a, b, x: (ow.lazy(a) + b) @ x,
    "sampled": lambda a, b, x: ow.lazy(a) * (ow.lazy(x[:6, None]) @ x[None]),
    "masked product": lambda a, b, x: ow.lazy(a) * (ow.lazy(b) @ (b.T @ b)),
    "sums": lambda a, b, x: ow.sum(ow.lazy(a) + b, axis=0),
    "chain": lambda a, b, x: ow.sum(ow.exp(ow.lazy(a) * b) - a, axis=1),
    "dense": lambda a, b, x: ow.lazy(a) * x + b,
    "mean": lambda a, b, x: ow.mean(ow.lazy(a) * b, axis=0),
    "not fused": lambda a, b, x: ow.lazy(a) @ b.T,
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", LAZY)
def test_programs_of_lazy_tensors_hold_none_of_their_operands(name: str, library: str) -> None:
    like = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    ow.clear_caches()
    for k in (1, 2):  # the second one by the program of the first
        a, b = (ow.asarray(like(y), format="csr") for y in (X * k, X[::-1] * k + 0.0))
        x = like(np.arange(8.0) + k)
        expected = LAZY[name](ow.asarray(X * k), ow.asarray(X[::-1] * k + 0.0), np.arange(8.0) + k)
        expression = LAZY[name](a, b, x)
        found = expression.compute()
        np.testing.assert_allclose(
            dense(found if isinstance(found, ow.Tensor) else np.asarray(found)), dense(expected.compute())
        )
        held = [weakref.ref(b) for s in (a._storage, b._storage) for b in s.buffers] + [weakref.ref(x)]
        del a, b, x, expression, found, expected
        gc.collect()
        assert [r() for r in held] == [None] * len(held)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_warnings_of_few_elements(dtype: Any) -> None:
    """What cannot overflow is not asked for by `np.errstate`; what can is told as ever."""
    most = float(np.finfo(dtype).max)
    with np.errstate(over="raise", invalid="raise"):
        for values in ([1.0, 2.0], [most**0.4, -1.0], [0.0, 3.0]):
            x = np.array(values, dtype)
            a = ow.sparse_coo_tensor(np.array([[0, 1], [1, 0]]), x, (2, 2))
            for found, want in ((a * 2, x * dtype(2)), (a + a, x + x), (-a, -x), (ow.square(a), x * x)):
                np.testing.assert_array_equal(found.values, want)
        for values, call in (
            ([most, 1.0], lambda a: a * 2.0),
            ([most, 1.0], lambda a: a + a),
            ([most, 1.0], ow.square),
            ([np.inf, 1.0], lambda a: a - a),
            ([np.inf, 1.0], lambda a: a * 0.0),
        ):
            a = ow.sparse_coo_tensor(np.array([[0, 1], [1, 0]]), np.array(values, dtype), (2, 2))
            for _ in range(2):
                with pytest.raises(FloatingPointError):
                    call(a)


OF_TWO: dict[str, Callable[[Any, Any, Callable[[list[Any]], Any]], Any]] = {
    "product": lambda a, b, joined: a * b,
    "sum": lambda a, b, joined: a + b,
    "sums of rows": lambda a, b, joined: a.sum(1),
    "sums of columns": lambda a, b, joined: a.sum(0) / 2,
    "total": lambda a, b, joined: a.sum(),
    "largest": lambda a, b, joined: a.amax(1),
    "joined": lambda a, b, joined: joined([a, b]),
    "part": lambda a, b, joined: a[1:4, ::2],
    "rows": lambda a, b, joined: a[[3, 0, 3]],
    "matrix product": lambda a, b, joined: a @ b.T,
}


@pytest.mark.thin(5, rest="ci")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", OF_TWO)
def test_calls_over_torch_again(name: str) -> None:
    """Of other values, of huge ones, of infinities, recorded, in inference mode and under transforms."""
    torch = pytest.importorskip("torch")
    call, y = OF_TWO[name], np.roll(X, 1, 1)
    a, b = (ow.asarray(torch.from_numpy(x.copy()), format="csr") for x in (X, y))
    places = [tuple(map(torch.from_numpy, np.nonzero(x))) for x in (X, y)]

    def found(v: Any, w: Any) -> Any:
        tensors = (ow.Tensor._from_storage(t._storage.with_values(u)) for t, u in ((a, v), (b, w)))
        return call(*tensors, ow.concat).to_dense()

    def wanted(v: Any, w: Any) -> Any:
        return call(*(u.new_zeros(X.shape).index_put(at, u) for u, at in zip((v, w), places, strict=True)), torch.cat)

    def compare(v: Any, w: Any) -> None:
        torch.testing.assert_close(found(v, w), wanted(v, w), rtol=1e-13, atol=0, equal_nan=True)

    v, w = a.values, b.values
    for _ in range(3):
        compare(v, w)
    others = [(-2 * v, w + 0.5), (v * 1e200, w), (v, w), (v.float(), w.float()), (v.int(), w.int()), (v * 2j, w + 1j)]
    if name != "matrix product":  # what is not stored is no factor of its infinities
        others += [(v.where(v > 4, u), w) for u in (np.inf, np.nan, -np.inf)]
    for p, q in others:
        if name != "largest" or not p.is_complex():
            for _ in range(3):
                with np.errstate(all="ignore"):
                    compare(p, q)
        compare(v, w)
    with torch.inference_mode():
        for _ in range(3):
            compare(2 * v, w)
    for recorded in ((True, True), (True, False), (False, True), (True, True)):
        p, q = (u.clone().requires_grad_(is_recorded) for u, is_recorded in zip((2 * v, w), recorded, strict=True))
        asked = [u for u in (p, q) if u.requires_grad]
        if recorded[0] or name in ("product", "sum", "joined", "matrix product"):
            results = [torch.autograd.grad((f(p, q) ** 2).sum(), asked, allow_unused=True) for f in (found, wanted)]
            for x, y in zip(*results, strict=True):
                torch.testing.assert_close(
                    torch.zeros_like(w) if x is None else x, torch.zeros_like(w) if y is None else y
                )
        with torch.no_grad():
            compare(p, q)
            assert not found(p, q).requires_grad
        tangents = [torch.func.jvp(f, (v, w), (p.detach(), q.detach())) for f in (found, wanted)]
        torch.testing.assert_close(*tangents)
        forward = torch.autograd.forward_ad
        with forward.dual_level():
            duals = [forward.make_dual(u.clone(), 2 * u) for u in (v, w)]
            torch.testing.assert_close(*(forward.unpack_dual(f(*duals)) for f in (found, wanted)))
        for of in ((0, 0), (0, None), (None, 0)):
            pair = [torch.stack([u, 2 * u, -u]) if d == 0 else u for d, u in zip(of, (v, w), strict=True)]
            if of[0] == 0 or name in ("product", "sum", "joined", "matrix product"):
                torch.testing.assert_close(*(torch.func.vmap(f, of)(*pair) for f in (found, wanted)))
    compare(v, 2 * w)


def test_products_over_torch_are_learnt_from_any_values() -> None:
    """Where infinities or huge values met first, and where somebody wrote to the indices of a result."""
    torch = pytest.importorskip("torch")
    y = np.roll(X, 1, 1)
    for first in (np.inf, np.nan, 1e300, 3.0):
        a, b = (ow.asarray(torch.from_numpy(x.copy()), format="coo") for x in (np.where(X > 4, first, X), y))
        for _ in range(4):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal((a * b).to_numpy(), np.where(X > 4, first, X) * y)
        for x in (X, -X, 2 * X):
            c = ow.Tensor._from_storage(a._storage.with_values(torch.from_numpy(x[np.nonzero(X)])))
            for _ in range(3):
                product = c * b
                np.testing.assert_array_equal(product.to_numpy(), x * y)
            product.crd(1).zero_()
    for one, other in ((torch.float64, torch.float32), (torch.float32, torch.float64), (torch.float64, torch.int64)):
        a, b = (ow.asarray(torch.from_numpy(x).to(d), format="csr") for x, d in ((X, one), (y, other)))
        for _ in range(4):
            np.testing.assert_array_equal((a * b).to_numpy(), X * y)
    crd = torch.tensor([[1, 5], [2, 2**40]])
    a, b = (ow.sparse_coo_tensor(crd, torch.tensor(v), (2**41, 2**41)) for v in ([2.0, 3.0], [0.5, -1.0]))
    for _ in range(4):  # no number of 64 bits tells where in the matrix an element is
        assert (a * b).values.tolist() == [1.0, -3.0]
