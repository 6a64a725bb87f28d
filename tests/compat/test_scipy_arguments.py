"""Keys, assigned values and axes of every class of `openwork.compat.scipy_sparse`: SciPy's outcome, a value of a class and
a dtype, or an error of a type."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as theirs
from compat.test_scipy_outcomes import D, outcome

from openwork.compat import scipy_sparse as ours

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
ALL = slice(None)
KEYS: dict[str, Any] = {
    "row": 1, "last row": -1, "element": (2, 3), "unspecified": (0, 0), "rows": slice(1, 3), "every other": (ALL, slice(None, None, 2)),
    "backwards": slice(None, None, -1), "column": (ALL, 1), "list": [0, 2], "array": np.array([3, 0, 0]), "list of columns": (ALL, [1, 3]),
    "pairs": ([0, 2], [1, 2]), "pairs of arrays": (np.array([0, 2]), np.array([1, 2])), "a list and an array": ([0, 2], np.array([1, 2])),
    "a pair": ([0], [1]), "no pairs": ([], []), "a number and a list": (1, [0, 3]), "a list and a number": ([0, 3], 1),
    "a list and a slice": ([0, 3], slice(1, 3)), "outer": ([[0], [2]], [1, 3]), "outer of arrays": np.ix_([0, 2], [1, 3]),
    "grid": (np.array([[0, 1], [2, 3]]), np.array([[1, 0], [2, 3]])), "mask": D > 1, "mask of rows": np.array([True, False, True, True]),
    "mask of columns": (ALL, np.array([True, False, True, True])), "masks": (np.array([True, False, True, False]), np.array([False, True, True, False])),
    "list of booleans": [True, False, True, True], "no mask": np.zeros((4, 4), bool), "ellipsis": Ellipsis, "ellipsis and column": (Ellipsis, 1),
    "row and ellipsis": (1, Ellipsis), "new axis": (None, 1), "new axis within": (1, None), "column of new axis": (ALL, 1, None),
    "beyond": 4, "before": -5, "beyond in a list": [0, 4], "beyond columns": (0, 4), "text": "a", "float": 1.5, "three": (0, 0, 0),
    "unequal pairs": ([0, 1], [0, 1, 2]), "mask of another shape": np.ones((3, 4), bool), "short mask": np.array([True, False]),
    "NumPy's integer": np.int8(2), "0-d array": np.array(2), "empty slice": slice(3, 1), "two empty slices": (slice(3, 1), slice(0)),
    "matrix": np.matrix([[0, 2]]), "empty tuple": (),
}  # fmt: skip
VALUES: tuple[Any, ...] = (7.0, 0, [1.0, 2, 3, 4], [[5.0], [6], [7], [8]], "sparse", "text")


def _with_data(x: Any) -> Any:
    x.data = x.data * 2
    return x


def _applied(call: Callable[[Any, Any], Any], module: Any, kind: str) -> Any:
    return call(module, getattr(module, kind)(D))


def _compared(kind: str, calls: list[tuple[str, Callable[[Any, Any], Any]]]) -> list[Any]:
    """The calls of (module, array) whose outcome is not SciPy's."""
    wrong = []
    for what, call in calls:
        got, want = (outcome(partial(_applied, call, m, kind)) for m in (ours, theirs))
        if repr(got) != repr(want):
            wrong.append((what, got, want))
    return wrong


@pytest.mark.thin(8)
@pytest.mark.parametrize("format", FORMATS)
def test_what_keys_take(format: str) -> None:
    for kind in ("array", "matrix"):
        calls = [(name, lambda m, x, key=key: x[key]) for name, key in KEYS.items()]
        calls += [
            ("sparse mask", lambda m, x: x[x > 1]),
            ("sparse mask of SciPy's", lambda m, x: x[theirs.csr_array(D > 1)]),
        ]
        wrong = _compared(f"{format}_{kind}", calls)  # type: ignore[arg-type]
        assert not wrong, "\n".join(map(repr, wrong))


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", ["csr", "lil", *(pytest.param(f, marks=pytest.mark.slow) for f in ("csc", "dok"))])
def test_what_is_assigned(format: str) -> None:
    def assigned(m: Any, x: Any, key: Any, value: Any) -> Any:
        operator.setitem(
            x, key, m.csr_array(np.array(VALUES[3])) if isinstance(value, str) and value == "sparse" else value
        )
        return x

    for kind in ("array", "matrix"):
        calls = [
            (f"{name} = {value}", lambda m, x, key=key, value=value: assigned(m, x, key, value))
            for name, key in KEYS.items()
            if name != "matrix"  # SciPy's matrices are no rows to assign to
            for value in (VALUES if name in ("row", "column", "list", "rows", "pairs", "new axis") else VALUES[:1])
        ]
        wrong = _compared(f"{format}_{kind}", calls)  # type: ignore[arg-type]
        assert not wrong, "\n".join(map(repr, wrong))


@pytest.mark.parametrize("kind", ["dia_array", "bsr_array", "coo_matrix"])
def test_what_cannot_be_assigned_is_refused_as_scipy_does(kind: str) -> None:
    """Where SciPy's class has no assignment at all, ours has; what is no value or no place stays an error."""
    for key, value in ((1, "text"), (9, 1.0), ((0, 0, 0), 1.0)):
        x = getattr(ours, kind)(D)
        with pytest.raises((TypeError, NotImplementedError)):
            x[key] = value
        np.testing.assert_array_equal(x.toarray(), D)


def test_matrices_take_other_extents() -> None:
    for shape in ((2, 8), (16, 1), (-1, 8), (3, 5)):
        calls = [(f"shape = {shape}", lambda m, x, shape=shape: (setattr(x, "shape", shape), x)[1])]
        for format in ("csr", "coo", "dok"):
            assert not _compared(f"{format}_matrix", calls)  # type: ignore[arg-type]


def test_shapes_that_do_not_agree_are_named() -> None:
    for other in (D[:3], ours.csr_array(D[:3])):
        with pytest.raises(ValueError, match=r"inconsistent shapes \(4, 4\) and \(3, 4\)"):
            ours.csr_array(D).multiply(other)
    one, other = ours.csr_array(D), ours.csr_array(D[:3])
    for relation in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(ValueError, match=r"^inconsistent shape$"):
            relation(one, other)
    for axis in (2, -3, (0, 2)):
        with pytest.raises(ValueError, match="axis out of range"):
            one.mean(axis=axis)
    assert (one == other) is False
    assert (one != other) is True


def test_products_of_stacks_that_do_not_fit() -> None:
    stack = np.arange(24.0).reshape(2, 3, 4)
    calls = [
        (what, lambda m, x, a=a, b=b: m.coo_array(a) @ m.coo_array(b))
        for what, a, b in (
            ("stacks", stack, np.ones((3, 4, 2))),
            ("inner", stack, np.ones((2, 3, 2))),
            ("right", stack, np.ones((2, 4, 2))),
        )
    ]
    assert not _compared("csr_array", calls)  # type: ignore[arg-type]


@pytest.mark.parametrize("format", FORMATS)
def test_axes_are_numpys_integers_too(format: str) -> None:
    """SciPy takes them of CSR only."""
    x = getattr(ours, f"{format}_array")(D)
    for axis in (np.int8(1), np.int64(-2), (np.int8(0), 1)):
        np.testing.assert_allclose(x.sum(axis), D.sum(axis))  # type: ignore[arg-type]
        np.testing.assert_allclose(x.mean(axis), D.mean(axis))  # type: ignore[arg-type]


AXES = (None, 0, 1, -1, -2, 2, -3, (0, 1), (1,), "rows")


@pytest.mark.thin(4)
@pytest.mark.parametrize(
    "format", [pytest.param(f, marks=[pytest.mark.slow] * (f in ("bsr", "csc", "lil"))) for f in FORMATS]
)
def test_sums_and_methods(format: str) -> None:
    calls: list[tuple[str, Callable[[Any, Any], Any]]] = []
    for name in ("sum", "mean"):
        calls += [(f"{name} {axis!r}", lambda m, x, n=name, a=axis: getattr(x, n)(a)) for axis in AXES]
        calls += [
            (f"{name} {axis} in {dtype}", lambda m, x, n=name, a=axis, d=dtype: getattr(x.astype(d), n)(a))
            for axis in (None, 0)
            for dtype in ("i1", "?", "f4", "D")
        ]
        calls += [
            (f"{name} as f4", lambda m, x, n=name: getattr(x, n)(axis=1, dtype=np.float32)),
            (f"{name} into", lambda m, x, n=name: getattr(x, n)(axis=0, out=np.ones(4))),
            (f"{name} into a matrix", lambda m, x, n=name: getattr(x, n)(axis=0, out=np.matrix(np.ones((1, 4))))),
        ]
    calls += [
        ("transpose", lambda m, x: x.transpose()), ("transpose by axes", lambda m, x: x.transpose((1, 0))),
        ("no transpose", lambda m, x: x.transpose((0, 1))), ("transpose by one", lambda m, x: x.transpose(0)),
        ("astype", lambda m, x: x.astype("f4")), ("astype safely", lambda m, x: x.astype("i1", casting="safe")),
        ("copied", lambda m, x: x.astype(float, copy=False) is x), ("asformat", lambda m, x: x.asformat(None) is x),
        ("asformat copied", lambda m, x: x.asformat(x.format, copy=True) is x), ("array", lambda m, x: x.asformat("array")),
        ("dense", lambda m, x: x.asformat("dense")), ("power in a dtype", lambda m, x: x.power(2, dtype="f4")),
        ("power of a vector", lambda m, x: x.power([2])), ("dot of a number", lambda m, x: x.dot(2)),
        ("dot of three dimensions", lambda m, x: x.dot(np.ones((2, 4, 3)))),
        ("a number times", lambda m, x: 2 @ x), ("times a number", lambda m, x: x @ 2), ("over", lambda m, x: 2 / x),
        ("times a column", lambda m, x: x.multiply(np.arange(4.0)[:, None]).toarray()),
        ("times by a row", lambda m, x: x.multiply(x.tocsr()[[1]]).toarray()),
        ("times 0-d", lambda m, x: x.multiply(np.array(2))), ("over a row", lambda m, x: x / np.arange(1, 5.0)),
        ("times a number of integers", lambda m, x: x.multiply(np.int8(3))), ("times a matrix", lambda m, x: x @ np.matrix(D)),
        ("negated", lambda m, x: -x), ("negated truths", lambda m, x: -(x > 1)), ("absolute", abs),
        ("less than text", lambda m, x: x < "a"), ("at least a matrix", lambda m, x: x >= np.matrix(D)), ("equal", lambda m, x: x == 1),
        ("setdiag", lambda m, x: (x.setdiag([1, 2], 1), x)[1]), ("resized", lambda m, x: (x.resize(3, 5), x)[1]),
        ("resized by a tuple", lambda m, x: (x.resize((2, 2)), x)[1]), ("keys", lambda m, x: hasattr(x, "nothing")),
        ("truth of one", lambda m, x: bool(x.tocsr()[:1, :1])), ("len", lambda m, x: len(x)), ("hash", lambda m, x: hash(x)),
        ("toarray into", lambda m, x: x.toarray(out=np.ones((4, 4)))), ("toarray by columns", lambda m, x: x.toarray("F").flags.f_contiguous),
        ("maxprint", lambda m, x: m.csr_array(D, maxprint=3)), ("pruned", lambda m, x: (x.tocsr().prune(), x)[1]),
        ("maximum of nothing known", lambda m, x: x.maximum(object())), ("minimum of a list", lambda m, x: x.minimum(D.tolist())),
        ("maximum of an array", lambda m, x: x.maximum(D - 1)), ("minimum of another shape", lambda m, x: x.minimum(m.csr_array(D[:2]))),
        ("joined vectors", lambda m, x: m.hstack([m.coo_array(D[0]), m.coo_array(D[1])])), ("joined arrays", lambda m, x: m.hstack([D, D])),
        ("nothing joined", lambda m, x: m.vstack([])), ("joined with an array", lambda m, x: m.vstack([x, D])),
        ("equal to another shape", lambda m, x: x == m.csr_array(D[:3])), ("unlike another shape", lambda m, x: x != m.csr_array(D[:3])),
        ("less than another shape", lambda m, x: x < m.csr_array(D[:3])), ("times a list", lambda m, x: x @ D.tolist()), ("plus nothing known", lambda m, x: x + object()),
        ("times another shape", lambda m, x: x @ m.csr_array(D[:3])), ("other data", lambda m, x: _with_data(x.tocsr())),
        ("todense by columns", lambda m, x: x.todense(order="F")), ("diagonal", lambda m, x: x.diagonal(-1)), ("trace", lambda m, x: x.trace(1)),
    ]  # fmt: skip
    calls = [(what, (lambda m, x, f=f: f(x)) if f is abs else f) for what, f in calls]  # type: ignore[misc]
    for kind in ("array", "matrix"):
        wrong = _compared(
            f"{format}_{kind}", [c for c in calls if kind == "array" or c[0] != "dot of three dimensions"]
        )
        assert not wrong, "\n".join(map(repr, wrong))
