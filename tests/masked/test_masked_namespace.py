"""The functions of the openwork namespace, the array API's, on masked tensors, against numpy.ma."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from masked_cases import agree, arrays, made, reference

import openwork as ow
from openwork.tables import MASKED

FORMATS = ("dense", "csr", "bsr(2, 2)")
Case = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]

SAME: dict[str, Case] = {
    "exp": (lambda m, n: ow.exp(m), lambda a, b: np.ma.exp(a)),
    "negative": (lambda m, n: ow.negative(m), lambda a, b: -a),
    "isnan": (lambda m, n: ow.isnan(m), lambda a, b: np.isnan(a)),
    "add": (lambda m, n: ow.add(m, n), lambda a, b: a + b),
    "multiply": (lambda m, n: ow.multiply(m, 2.0), lambda a, b: a * 2),
    "subtract": (lambda m, n: ow.subtract(3.0, m), lambda a, b: 3 - a),
    "less_equal": (lambda m, n: ow.less_equal(m, n), lambda a, b: a <= b),
    "logaddexp": (lambda m, n: ow.logaddexp(m, n), lambda a, b: np.ma.MaskedArray(np.logaddexp(a.data, b.data), a.mask)),
    "clip": (lambda m, n: ow.clip(m, -1, 2), lambda a, b: np.ma.MaskedArray(np.clip(a.data, -1, 2), a.mask)),
    "where": (lambda m, n: ow.where(n > 0, m, n), lambda a, b: np.ma.where(b > 0, a, b)),
    "sum": (lambda m, n: ow.sum(m, axis=1), lambda a, b: a.sum(1)),
    "mean": (lambda m, n: ow.mean(m, axis=0, keepdims=True), lambda a, b: a.mean(0, keepdims=True)),
    "max": (lambda m, n: ow.max(m), lambda a, b: a.max()),
    "min": (lambda m, n: ow.min(m, axis=-1), lambda a, b: a.min(-1)),
    "prod": (lambda m, n: ow.prod(m, axis=0), lambda a, b: a.prod(0)),
    "var": (lambda m, n: ow.var(m, axis=1, correction=0), lambda a, b: a.var(1)),
    "any": (lambda m, n: ow.any(m > 1, axis=1), lambda a, b: (a > 1).any(1)),
    "all": (lambda m, n: ow.all(m > -9, axis=1), lambda a, b: (a > -9).all(1)),
    "count_nonzero": (lambda m, n: ow.count_nonzero(m, axis=1), lambda a, b: (a != 0).sum(1)),
    "cumulative_sum": (lambda m, n: ow.cumulative_sum(m, axis=1), lambda a, b: a.cumsum(1)),
    "sort": (lambda m, n: ow.sort(m, axis=0), lambda a, b: np.ma.sort(a, 0)),
    "reshape": (lambda m, n: ow.reshape(m, (7, 6)), lambda a, b: a.reshape(7, 6)),
    "permute_dims": (lambda m, n: ow.permute_dims(m, (1, 0)), lambda a, b: a.T),
    "matrix_transpose": (lambda m, n: ow.matrix_transpose(m), lambda a, b: a.T),
    "expand_dims": (lambda m, n: ow.expand_dims(m, axis=1), lambda a, b: a[:, None]),
    "squeeze": (lambda m, n: ow.squeeze(m[:1], axis=0), lambda a, b: a[0]),
    "flip": (lambda m, n: ow.flip(m, axis=1), lambda a, b: a[:, ::-1]),
    "roll": (lambda m, n: ow.roll(m, 2, axis=1), lambda a, b: np.ma.MaskedArray(np.roll(a.data, 2, 1), np.roll(a.mask, 2, 1))),
    "tile": (lambda m, n: ow.tile(m, (1, 2)), lambda a, b: np.ma.concatenate([a, a], 1)),
    "repeat": (lambda m, n: ow.repeat(m, 2, axis=0), lambda a, b: np.ma.repeat(a, 2, 0)),
    "take": (lambda m, n: ow.take(m, np.array([2, 0]), axis=0), lambda a, b: a[[2, 0]]),
    "tril": (lambda m, n: ow.tril(m), lambda a, b: np.ma.MaskedArray(a.data, a.mask | ~np.tri(*a.shape, dtype=bool))),
    "diagonal": (lambda m, n: ow.diagonal(m), lambda a, b: a.diagonal()),
    "unstack": (lambda m, n: ow.unstack(m)[1], lambda a, b: a[1]),
    "concat": (lambda m, n: ow.concat([m, n], axis=1), lambda a, b: np.ma.concatenate([a, b], 1)),
    "stack": (lambda m, n: ow.stack([m, n]), lambda a, b: np.ma.stack([a, b])),
    "diff": (lambda m, n: ow.diff(m), lambda a, b: np.ma.diff(a)),
    "astype": (lambda m, n: ow.astype(m, ow.float32), lambda a, b: a.astype("float32")),
}  # fmt: skip


@pytest.mark.thin(14, rest="ci")
@pytest.mark.parametrize("name", SAME)
def test_functions(name: str) -> None:
    data, bits = arrays((6, 7))
    other, _ = arrays((6, 7), 1)
    mine, theirs = SAME[name]
    want = theirs(reference(data, bits), reference(other, bits))
    for spec in FORMATS if name not in ("tile", "repeat") else FORMATS[:2]:
        agree(mine(made(data, bits, spec), made(other, bits, spec)), want, exact=False)


def test_products_and_normalised_rows() -> None:
    data, bits = arrays((4, 5), mask=0.9)
    m = made(data, bits, "csr")
    for got, want in (
        (ow.matmul(m, m.T), m @ m.T),
        (ow.matmul(np.ones((2, 4)), m), np.ones((2, 4)) @ m),
        (ow.einsum("ij,ij->i", m, m), (m * m).sum(1)),
        (ow.vecdot(m, m), (m * m).sum(1)),
        (ow.vecdot(m, m, axis=0), (m * m).sum(0)),
        (ow.vecdot(m, m, axis=-2), (m * m).sum(0)),
        (ow.vecdot(m, m, axis=1), (m * m).sum(1)),
        (ow.diff(m, axis=0, n=2), ow.diff(m[1:], axis=0).sub(ow.diff(m[:-1], axis=0), how="intersection")),
        (ow.concat(ow.unstack(m, axis=-1)), m.T.flatten()),
        (ow.astype(m, ow.int32), m.astype("int32")),
        (+m, m),
        (ow.outer(m[0], m[1]), ow.reshape(m[0], (5, 1)).mul(ow.reshape(m[1], (1, 5)), how="intersection")),
        (ow.softmax(m, axis=1), m.softmax(1)),
        (ow.log_softmax(m), m.log_softmax(-1)),
        (ow.logsumexp(m, axis=0), m.logsumexp(0)),
    ):
        agree(got, want.to_masked_array(), exact=False)


def test_the_namespace_of_a_masked_tensor() -> None:
    m = made(*arrays((3, 4)))
    xp = m.__array_namespace__(api_version="2024.12")
    assert xp is ow
    assert xp.result_type(m, xp.float32) == np.dtype(np.float64)
    assert [x.to_dense().tolist() for x in ow.nonzero(m)] == [x.tolist() for x in m.nonzero()]
    assert ow.unique_values(m).compressed().tolist() == sorted(set(m.compressed().tolist()))


def test_expressions_of_masked_tensors() -> None:
    data, bits = arrays((5, 6))
    other, also = arrays((5, 6), 1)
    m, n = made(data, bits, "csr"), made(other, also)
    got = ow.pointwise("either(A * B, D)", {"A": m, "B": n, "D": m})
    agree(got, reference(np.where(bits & also, data * other, data), bits))
    got = ow.pointwise("A[i, j] + D[j]", {"A": m, "D": ow.asarray(data[0])}, "coo")
    agree(got, reference(data + data[0], bits))
    assert got.format == ow.format("coo")
    got = ow.pointwise("A * B", {"A": m, "B": m.sum()})
    agree(got, reference(data * data[bits].sum(), bits))


def test_fused_functions_take_masked_tensors_as_they_are() -> None:
    data, bits = arrays((5, 6))
    m, t = made(data, bits, "csr"), ow.asarray(data, format="csr")

    @ow.fused
    def function(x: Any, y: Any) -> Any:
        return ow.exp(x) * y + 1

    agree(function(m, m), reference(np.exp(data) * data + 1, bits))
    agree(function(t, m), reference(np.exp(data) * data + 1, bits))
    np.testing.assert_allclose(function(t, t).to_numpy(), np.exp(data) * data + 1)


def test_expressions_to_be_computed_later_take_masked_tensors() -> None:
    data, bits = arrays((5, 6))
    other, _ = arrays((5, 6), 1)
    a, b, dense = reference(data, bits), reference(other, bits), np.arange(30.0).reshape(5, 6)
    for spec in FORMATS:
        m, n = made(data, bits, spec), made(other, bits, spec)
        x, y = ow.lazy(m), ow.lazy(n)
        shared = ow.exp(x) * y
        for got, want in (
            (shared + 1, np.exp(a) * b + 1),
            (shared - shared, a * 0),
            (x * y + x - 2 * y, a * b + a - 2 * b),
            (ow.exp(x * y - x) + 1, np.exp(a * b - a) + 1),
            ((x + y) * dense, (a + b) * dense),
            (ow.where(x > 0, x, y), np.ma.where(a > 0, a, b)),
            ((x * 2).sum(axis=1), (a * 2).sum(1)),
            (ow.sum(shared), (np.exp(a) * b).sum()),
            ((x - y).T, (a - b).T),
            (ow.permute_dims(x, (1, 0)), a.T),
            (x + n, a + b),
            (m * y, a * b),
            (2 - x, 2 - a),
            (ow.nextafter(x, y), np.ma.MaskedArray(np.nextafter(data, other), ~bits)),
        ):
            agree(ow.compute(got), want, exact=False)
        agree(ow.compute(x @ y.T), (m @ n.T).to_masked_array(), exact=False)
        agree(x.reshape(6, 5), a.reshape(6, 5))
        both = ow.compute(x + 1, ow.lazy(ow.asarray(dense, format="csr")) * 2)
        agree(both[0], a + 1)
        np.testing.assert_allclose(both[1].to_numpy(), dense * 2)
    with pytest.raises(ow.ShapeError, match="the masks differ"):
        ow.compute(ow.lazy(made(data, bits)) + made(data, ~bits))
    doubled = ow.lazy(made(data, bits))
    for _ in range(5):
        doubled = doubled + doubled * 0
    agree(ow.compute(doubled), a)
    m, x = made(data, bits), ow.lazy(made(data, bits))
    for later in (m * x, x * m, m @ x.T, x @ m.T, 1 - x):
        assert repr(later).startswith("lazy(")
    assert "fused" in str(ow.explain(x * made(data * 2, bits) + 1))
    assert "fused" not in str(ow.explain(ow.exp(x) * m + 1))  # in vectors, by the array library


def test_rank_zero() -> None:
    total = made(*arrays((3, 4))).sum()
    assert ow.exp(total).item() == np.exp(total.item())
    assert ow.expand_dims(total, axis=0).shape == (1,)
    assert ow.broadcast_to(total, (2, 3)).compressed().tolist() == [total.item()] * 6
    assert [x.shape for x in ow.unstack(made(*arrays((3,))))] == [(), (), ()]
    assert ow.reshape(ow.broadcast_to(total, (1, 1)), ()).item() == total.item()
    assert total.reshape(()).item() == total.mask_nan().item() == total.flatten().item() == total[()].item()
    assert total[None, ..., None].shape == (1, 1)
    assert total.asformat("dense") is total
    with pytest.raises(TypeError, match="rank 0"):
        len(total)
    assert len(made(*arrays((3, 4)), "csr")) == 3
    both = ow.compute(ow.lazy(total) + ow.lazy(made(np.full((1, 1), 2.0), np.full((1, 1), True))))
    assert (both.shape, both.item()) == ((1, 1), total.item() + 2)
    stack = ow.masked.stack([total, total * 2])
    assert (stack.shape, stack.compressed().tolist()) == ((2,), [total.item(), 2 * total.item()])


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_operands_of_every_kind() -> None:
    """Numbers, lists, arrays and tensors of rank 0, over either library, with a masked tensor over NumPy's buffers."""
    torch = pytest.importorskip("torch")
    data, bits = arrays((4, 5))
    number = ow.asarray(np.float64(3))
    for spec in ("dense", "csr"):
        m, a = made(data, bits, spec), reference(data, bits)
        for three in (3, 3.0, np.float64(3), np.array(3.0), number, torch.tensor(3.0, dtype=torch.float64)):
            agree(m + three, a + 3)
            agree(three * m, a * 3)
            agree(m > three, a > 3)
        for row in ([1.0, 2, 3, 4, 5], ow.asarray(np.arange(1.0, 6)), ow.asarray(np.arange(1.0, 6), format="coo")):
            agree(m * row, a * np.arange(1.0, 6))
        whole = made(data, bits | True, spec)
        agree(whole.astype("int64").mask_nan(), reference(data.astype(int), bits | True))
        agree(ow.masked.einsum("ij,j->i", m, [1.0, 2, 3, 4, 5]), (a * np.arange(1.0, 6)).sum(1))
        agree(ow.masked.einsum("ij,ij->", m, ow.asarray(data)), np.ma.asarray((a * data).sum()))
        agree(ow.masked.einsum(m, [0, 1], [1]), a.sum(0))
        inside = ow.asarray(np.where(bits, 1.0, np.inf), format="csr", fill_value=np.inf)  # what it stores takes part
        agree(
            ow.masked.einsum("ij,kj->ik", m, inside, semiring="min_plus"),
            ow.masked.einsum("ij,kj->ik", m, made(np.ones((4, 5)), bits, spec), semiring="min_plus").to_masked_array(),
        )
        agree(ow.masked.sum(data, 1, mask=made(bits, data > 1, spec)), reference(data, bits & (data > 1)).sum(1))
        over_torch = ow.masked_tensor(torch.tensor(data), torch.tensor(bits)).asformat(ow.format(spec, 2))
        agree(over_torch * np.array(2.0), a * 2)
        agree(over_torch.add(np.array(2.0), how="union"), a + 2)
        assert over_torch.asformat("csc").to_torch_masked().to_tensor(7).tolist() == a.filled(7).tolist()
        classes, scores = np.arange(4), np.log(data + 4)
        for given in (scores, ow.asarray(scores, format="csr"), made(scores, bits | True, spec)):
            agree(ow.masked.nll_loss(given, classes), np.ma.asarray(-scores[classes, classes].mean()), exact=False)
        sparse = ow.asarray(np.arange(5.0), format="coo")
        agree(ow.masked.lift(np.hypot, [m, sparse], "hypot"), np.ma.hypot(a, np.arange(5.0)), exact=False)
        agree(ow.masked.linear(m, np.ones((2, 5)), np.ones(2)), (a.filled(0) @ np.ones((5, 2))) + 1)
        agree(ow.masked.linear(m, m), np.ma.dot(a, a.T))
        assert m.to_dense().format == ow.format("bitmap", 2) == made(data, bits).format
    with pytest.raises(AttributeError, match="'MaskedTensor' object has no attribute 'clamp_least'"):
        m.clamp_least(1)


def test_results_are_written_to_no_array() -> None:
    m = made(*arrays((4, 4)))
    for out in (np.zeros((4, 4)), m.clone(), ow.asarray(np.zeros((4, 4)))):
        with pytest.raises(ow.UnsupportedError, match="out= of a masked tensor"):
            ow.matmul(m, np.eye(4), out=out)


METHODS_OF_TORCH: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("angle", "conj_physical", "deg2rad", "digamma", "erfc", "exp2", "fix", "frac", "i0", "lgamma", "positive"), ()
    ),
    **dict.fromkeys(("rad2deg", "sgn", "sigmoid", "sinc", "sqrt", "t", "contiguous", "double", "aminmax"), ()),
    "fmod": (2,), "clamp_min": (1,), "clamp_max": (1,), "view": (5, 4), "select": (0, 1), "narrow": (1, 0, 2),
    "chunk": (2,),
}  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["dense", "coo", "csr"])
def test_methods_of_torch_over_numpys_buffers(spec: str) -> None:
    torch = pytest.importorskip("torch")
    data, bits = arrays((4, 5))
    m = made(np.abs(data) + 0.5, bits, spec)
    for name, args in METHODS_OF_TORCH.items():
        found = getattr(m, name)(*args)
        right = getattr(m.to(torch.device("cpu")), name)(*args)
        for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, right)), strict=True):
            assert isinstance(x.values, np.ndarray), name
            agree(x, y.to_masked_array(), exact=False)
    for name in ("fmax", "fmin", "logaddexp2", "type_as", "expand_as"):
        agree(getattr(m, name)(m), getattr(m.to(torch.device("cpu")), name)(m).to_masked_array(), exact=False)
    for name, args in {"exp2_": (), "fmod_": (2,), "sinc_": (), "fill_": (3,), "zero_": ()}.items():
        changed, right = m.clone(), m.clone().to(torch.device("cpu"))
        assert getattr(changed, name)(*args) is changed
        assert isinstance(changed.values, np.ndarray)
        agree(changed, getattr(right, name)(*args).to_masked_array(), exact=False)


def test_numpys_functions_that_are_methods() -> None:
    data, bits = arrays((4, 5))
    m, a = made(data, bits), reference(data, bits)
    agree(np.ravel(m), a.ravel())
    agree(np.transpose(m, (1, 0)), a.T)
    agree(np.dot(m, m.T), np.ma.dot(a, a.T))
    for got, want in zip(np.nonzero(m), np.ma.nonzero(a), strict=True):
        np.testing.assert_array_equal(got, want)
    agree(np.add.reduce(m, axis=1, keepdims=True), a.sum(1, keepdims=True))
    agree(np.maximum.reduce(m, 1), a.max(1))
    agree(np.add.accumulate(m, axis=1), a.cumsum(1))
    agree(np.add(m, m, dtype=np.float32), (a + a).astype(np.float32))
    assert set(ow.masked.__all__) <= set(dir(ow.masked))
    cube = made(*arrays((2, 3, 4)))
    for first, last in ((0, -1), (0, 1), (1, 2), (-2, -1), (1, 1)):
        want = reference(*arrays((2, 3, 4))).reshape(
            {0: (24,) if last < 0 else (6, 4)}.get(first, (2, 3, 4) if last == 1 else (2, 12))
        )
        agree(cube.flatten(first, last), want)
    for shape in ((2, 0, 3), (0, 2, 3), (2, 3, 0)):
        empty = made(np.zeros(shape), np.zeros(shape, bool))
        assert [empty.flatten(*ends).shape for ends in ((0, 1), (1, 2), (0, -1), (2, 2))] == [
            (shape[0] * shape[1], shape[2]), (shape[0], shape[1] * shape[2]), (0,), shape
        ]  # fmt: skip


def test_masks_of_one_number_of_elements_in_other_rows() -> None:
    """Structures that differ in a buffer's length only are other structures."""
    rows = [np.array([[1, 1, 0], [0, 0, 0], [0, 0, 0]], bool), np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], bool)]
    first, second = (made(np.ones((3, 3)), bits, "dcsr") for bits in rows)
    with pytest.raises(ow.ShapeError, match=r"element \(0, 1\) is specified in the first operand only"):
        first + second
    assert first.add(second, how="union").nse == 3


def test_what_has_no_meaning_is_refused() -> None:
    m = made(*arrays((3, 3)))
    for function in (ow.prune, ow.kron, ow.searchsorted, ow.unique_all):
        args = (m,) if function in (ow.prune, ow.unique_all) else (m, m)
        with pytest.raises(ow.UnsupportedError, match=f"openwork.{function.__name__} does not take"):
            function(*args)
    with pytest.raises(ow.UnsupportedError, match="include_initial"):
        ow.cumulative_sum(m, axis=0, include_initial=True)
    with pytest.raises(ow.UnsupportedError, match=r"pad: mode='linear_ramp', constant_values= of a masked tensor"):
        ow.pad(m, 1, mode="linear_ramp")
    with pytest.raises(ow.UnsupportedError, match=r"pad: mode='constant', constant_values= of a masked tensor"):
        ow.pad(m, 1, constant_values=3)
    with pytest.raises(ow.UnsupportedError, match=r"one element of a masked tensor of shape \(3,\)"):
        ow.take(m[0], 1, axis=0)
    with pytest.raises(IndexError, match="too many indices for a masked tensor of rank 0"):
        m.sum()[0]
    with pytest.raises(ow.ShapeError, match=r"a function of \d specified elements gave an array of shape \(1,\)"):
        m.map(lambda v: v[:1])
    with pytest.raises(ow.UnsupportedError, match="log_softmax: the first operand is not a masked tensor"):
        ow.masked.cross_entropy(np.ones((2, 2)), np.array([0, 1]))
    with pytest.raises(ow.UnsupportedError, match="einsum: no operand is masked"):
        ow.masked.einsum("ij->i", np.ones((2, 2)))
    with pytest.raises(ow.UnsupportedError, match="first operand is not a masked tensor"):
        ow.softmax(ow.asarray(np.ones(3)), m)
    with pytest.raises(ow.UnsupportedError, match="out= and where="):
        np.add(m, m, out=np.zeros((3, 3)))


def test_functions_stay_what_they_are_for_tensors() -> None:
    t = ow.asarray(np.eye(3), format="csr")
    assert type(ow.exp(t)) is ow.Tensor
    assert ow.sum([[1, 2], [3, 4]]).to_numpy() == 10
    assert ow.concat([t, t]).shape == (6, 3)
    assert pickle.loads(pickle.dumps(ow.exp)) is ow.exp
    assert ow.sum.__doc__
    assert "keepdims" in inspect.signature(ow.sum).parameters
    assert all(hasattr(ow, name) for name in MASKED)


def test_one_element_is_a_number_of_python() -> None:
    m = ow.masked_tensor(np.array([[2.5]]), np.array([[True]]))
    assert (bool(m), int(m), float(m), complex(m)) == (True, 2, 2.5, 2.5 + 0j)
    with pytest.raises(ValueError, match="the element is missing"):
        bool(ow.masked_tensor(np.array([2.5]), np.array([False])))


def test_dtypes_layouts_and_repeated_extents() -> None:
    m = ow.masked_tensor(np.array([[1.0, 2.0]]), np.array([[True, False]]))
    assert m.to(dtype="float32").dtype == np.float32
    assert m.device == m.to_tensor(0).device == "cpu"
    assert m.expand(3, -1).to_numpy(0).tolist() == [[1.0, 0.0]] * 3
    assert m.to_sparse_csc().is_sparse_csc() if hasattr(m, "to_sparse_csc") else not m.is_sparse_csc()
