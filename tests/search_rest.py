"""Random cases of the remaining operations: order statistics, moments, running sums, selections, joins, index notation."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from search_formats import extents
from search_oracle import Case
from search_routes import Want, is_torch, name_of, promoted

import openwork as ow

__all__ = ["notation", "rest", "semirings"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def _axis(r: random.Random, s: Shape) -> Any:
    return r.choice((None, r.randrange(-len(s), len(s)), tuple(r.sample(range(len(s)), r.randint(1, len(s))))))


def _one(r: random.Random, s: Shape) -> int:
    return r.randrange(-len(s), len(s))


def _reduction(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], str]:
    return (
        lambda t, k: getattr(ow, name)(t, axis=k[0], keepdims=k[1]),
        # NumPy's median of no elements raises over several dimensions; it is the mean's NaN over one
        lambda a, k: getattr(np, name if a.size or name != "median" else "mean")(a, axis=k[0], keepdims=k[1]),
        lambda r, s: (_axis(r, s), r.random() < 0.3),
        "float" if name in ("median", "nanmedian", "nanmean", "std", "var") else "sum",
    )


def _dense_where(a: Array, value: Any) -> Array:
    return np.where(a > 0, a, np.asarray(value, a.dtype))


def _unique_inverse(found: Any) -> tuple[Any, Any]:
    """Values and inverse, the NaNs in the order in which they stand: which NaN is which, NumPy does not say either."""
    values, inverse = found
    numbers = np.asarray(inverse.to_numpy() if isinstance(inverse, ow.Tensor) else inverse).copy()
    of_nan = np.isnan(values.to_numpy() if isinstance(values, ow.Tensor) else values)[numbers] if numbers.size else None
    if of_nan is None or not of_nan.any():
        return values, inverse
    numbers[of_nan] = np.sort(numbers[of_nan])
    if not isinstance(inverse, ow.Tensor):
        return values, numbers
    return values, ow.asarray(ow.asarray(numbers), like="torch" if is_torch(inverse) else "numpy")


def _take(a: Array, places: Array, axis: int) -> Array:
    """NumPy's take, which asks whether the places are there only where an array has elements."""
    np.arange(a.shape[axis])[places]
    return np.take(a, places, axis=axis)


def _quantile(a: Array, k: Any) -> Any:
    return np.quantile(a, k[0], axis=k[1]) if a.size else None  # NumPy raises an IndexError


REST: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[[random.Random, Shape], Any], str]] = {
    **{n: _reduction(n) for n in ("median", "nanmedian", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "std", "var")},
    "var 1": (lambda t, k: ow.var(t, axis=k, correction=1), lambda a, k: np.var(a, axis=k, correction=1), _axis, "float"),
    "quantile": (lambda t, k: ow.quantile(t, k[0], axis=k[1]), _quantile, lambda r, s: (r.choice((0.0, 0.25, 0.5, 1.0, [0.1, 0.9])), r.choice((None, _one(r, s)))), "float"),
    "cumulative_prod": (lambda t, k: ow.cumulative_prod(t, axis=k), lambda a, k: np.cumulative_prod(a, axis=k), _one, "sum"),
    "cumulative_sum initial": (lambda t, k: ow.cumulative_sum(t, axis=k, include_initial=True), lambda a, k: np.cumulative_sum(a, axis=k, include_initial=True), _one, "sum"),
    "nancumsum": (lambda t, k: ow.nancumsum(t, axis=k), lambda a, k: np.nancumsum(a, axis=k), _one, "sum"),
    "clip": (lambda t, k: ow.clip(t, *k), lambda a, k: np.clip(a, *k), lambda r, s: r.choice(((0, 2), (1, None), (None, 1), (2, 1))), "same"),
    "where": (lambda t, k: ow.where(t > 0, t, bool(k) if name_of(t) == "bool" else k), lambda a, k: _dense_where(a, k), lambda r, s: r.choice((0, 1)), "same"),
    "isclose": (lambda t, k: ow.isclose(t, k), lambda a, k: np.isclose(a, k), lambda r, s: r.choice((0.0, 1.0, math.nan)), "bool"),
    "isin": (lambda t, k: ow.isin(t, k), lambda a, k: np.isin(a, k), lambda r, s: np.array(r.sample((0, 1, 2, 3, 4), r.randint(0, 3)), "int8"), "bool"),
    "take": (lambda t, k: ow.take(t, k[0], axis=k[1]), lambda a, k: _take(a, *k), lambda r, s: (np.array([r.randint(-1, 2) for _ in range(r.randint(0, 4))], int), _one(r, s)), "same"),
    "pad": (lambda t, k: ow.pad(t, k[0], k[1]), lambda a, k: np.pad(a, k[0], k[1]), lambda r, s: ([(r.randint(0, 2), r.randint(0, 2)) for _ in s], r.choice(("constant", "edge", "reflect", "wrap", "symmetric"))), "same"),
    "pad value": (lambda t, k: ow.pad(t, k[0], constant_values=k[1]), lambda a, k: np.pad(a, k[0], constant_values=k[1]), lambda r, s: ([(r.randint(0, 2), r.randint(0, 2)) for _ in s], r.choice((0, 1))), "same"),
    "trace": (lambda t, k: ow.trace(t, offset=k), lambda a, k: np.trace(a, offset=k), lambda r, s: r.randint(-2, 2), "sum"),
    "sort descending": (lambda t, k: ow.sort(t, axis=k, descending=True), lambda a, k: np.flip(np.sort(a, axis=k), k), _one, "same"),
    "swapaxes": (lambda t, k: ow.swapaxes(t, *k), lambda a, k: np.swapaxes(a, *k), lambda r, s: (_one(r, s), _one(r, s)), "same"),
    "argwhere": (lambda t, k: ow.argwhere(t), lambda a, k: np.argwhere(a), lambda r, s: None, "int64"),
    "unique_counts": (lambda t, k: tuple(ow.unique_counts(t)), lambda a, k: tuple(np.unique_counts(a)), lambda r, s: None, "none"),
    "unique_inverse": (lambda t, k: _unique_inverse(ow.unique_inverse(t)), lambda a, k: _unique_inverse(np.unique_inverse(a)), lambda r, s: None, "none"),
    "diff n": (lambda t, k: ow.diff(t, axis=k[0], n=k[1]), lambda a, k: np.diff(a, axis=k[0], n=k[1]), lambda r, s: (_one(r, s), r.randint(0, 3)), "same"),
    "unstack": (lambda t, k: tuple(ow.unstack(t, axis=k)), lambda a, k: tuple(np.unstack(a, axis=k)), _one, "none"),
    "vstack": (lambda t, k: ow.vstack([t, t]), lambda a, k: np.vstack([a, a]), lambda r, s: None, "same"),
    "hstack": (lambda t, k: ow.hstack([t, t]), lambda a, k: np.hstack([a, a]), lambda r, s: None, "same"),
    "flip several": (lambda t, k: ow.flip(t, axis=k), lambda a, k: np.flip(a, k), _axis, "same"),
    "roll several": (lambda t, k: ow.roll(t, k[0], axis=k[1]), lambda a, k: np.roll(a, *k), lambda r, s: (tuple(r.randint(-5, 5) for _ in s), tuple(r.sample(range(len(s)), len(s)))), "same"),
    "reshape F": (lambda t, k: ow.reshape(t, k, order="F"), lambda a, k: np.reshape(a, k, order="F"), lambda r, s: r.choice(((-1,), s[::-1], (1, -1))), "same"),
    "repeat each": (lambda t, k: ow.repeat(t, k[0], axis=k[1]), lambda a, k: np.repeat(a, k[0], axis=k[1]), lambda r, s: (lambda x: (np.array([r.randint(0, 2) for _ in range(s[x])], int), x))(_one(r, s)), "same"),
    "nan_to_num": (lambda t, k: ow.nan_to_num(t, nan=k), lambda a, k: np.nan_to_num(a, nan=k), lambda r, s: r.choice((0.0, 1.0)), "same"),
    "round decimals": (lambda t, k: ow.round(t, decimals=k), lambda a, k: np.round(a, k) if a.dtype.kind != "b" else None, lambda r, s: r.randint(-1, 2), "same"),
    "matrix_transpose": (lambda t, k: ow.matrix_transpose(t), lambda a, k: np.matrix_transpose(a), lambda r, s: None, "same"),
    "len, iteration": (lambda t, k: tuple(iter(t))[: len(t)], lambda a, k: tuple(iter(a))[: len(a)], lambda r, s: None, "none"),
}  # fmt: skip
WIDENS = {"float": ("float64", "float64"), "sum": ("int64", "int64")}


def rest(d: Any) -> Case:
    rng = d.rng
    name = rng.choice(tuple(REST))
    if REST[name][3] in ("float", "sum"):
        d.tame = True
    t, a = d.operand(extents(rng, rng.choice((1, 2, 2, 3))))
    ours, theirs, drawn, dtype = REST[name]
    k = drawn(rng, a.shape)
    d.dimensions.append(f"operation: {name}")

    def wanted() -> Any:
        found = theirs(a, k)
        if found is None or not is_torch(t) or dtype == "none":
            return found
        return Want(found.astype("int64") if found.dtype == np.uint64 else found, _result(dtype, t, found))

    return d.case(f"{name} {k}", lambda: ours(t, k), wanted, close=True)


def _result(dtype: str, t: Any, found: Array) -> str:
    if name_of(t) == "bfloat16" and found.dtype == np.float32:
        return "bfloat16"
    if dtype == "sum" and found.dtype.kind in "iu" and np.dtype(found.dtype).itemsize == 8:
        return "int64"
    return found.dtype.name


STATEMENTS: tuple[tuple[str, str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("y[i] += A[i, j] * x[j]", "A:ij x:j", lambda A, x: A @ x, ()),
    ("C[i, k] += A[i, j] * B[j, k]", "A:ij B:jk", lambda A, B: A @ B, ()),
    ("C[i, j] = A[i, j] + B[i, j] * 2", "A:ij B:ij", lambda A, B: A + B * 2, ()),
    ("C[i, j] = A[i, j] * B[i, j] - A[i, j]", "A:ij B:ij", lambda A, B: A * B - A, ()),
    ("s += A[i, j] * B[i, j]", "A:ij B:ij", lambda A, B: (A * B).sum(), ()),
    ("y[i] max= abs(A[i, j])", "A:ij", lambda A: np.abs(A).max(1), ("nonempty",)),
    ("y[j] min= A[i, j] + B[i, j]", "A:ij B:ij", lambda A, B: (A + B).min(0), ("nonempty",)),
    ("y(i) = b(i) - A(i, j) * x(j)", "A:ij x:j b:i", lambda A, x, b: b - A @ x, ()),
    ("C[j, i] = A[i, j]", "A:ij", lambda A: A.T, ()),
    ("C<M>[i, j] = A[i, j] + B[i, j]", "A:ij B:ij M:ij", lambda A, B, M: np.where(M != 0, A + B, 0), ()),
    ("C<~M>[i, j] = A[i, j]", "A:ij M:ij", lambda A, M: np.where(M != 0, 0, A), ()),
    ("T[i, j] = A[i, j] * A[i, j]; s += T[i, j]", "A:ij", lambda A: (A * A).sum(), ()),
    ("y(i) = sum(j, A(i, j)) + max(j, A(i, j))", "A:ij", lambda A: A.sum(1) + A.max(1), ("nonempty",)),
    ("D[i, k, l] += A[i, j] * B[j, k] * C[k, l]", "A:ij B:jk C:kl", lambda A, B, C: np.einsum("ij,jk,kl->ikl", A, B, C), ()),
    ("C[i, j] += T[i, j, k] * x[k]", "T:ijk x:k", lambda T, x: T @ x, ()),
    ("C[i, j] = where(A[i, j] > 1, A[i, j], B[i, j])", "A:ij B:ij", lambda A, B: np.where(A > 1, A, B), ()),
    ("y[i] any= A[i, j] > 2", "A:ij", lambda A: (A > 2).any(1), ()),
    ("C[i, j] = A[i, j] * x[i] + b[j]", "A:ij x:i b:j", lambda A, x, b: A * x[:, None] + b, ()),
)  # fmt: skip


def notation(d: Any) -> Case:
    """`ow.evaluate` of statements whose operands have drawn formats, some of them dense arrays."""
    rng = d.rng
    d.tame, d.dtype = True, rng.choice(("float64", "float64", "float32", "int64", "int32"))
    text, operands, theirs, needs = rng.choice(STATEMENTS)
    sizes = {i: rng.choice((1, 2, 3, 4, 5, 7) if needs else (0, 1, 2, 3, 5, 7)) for i in "ijkl"}
    given: dict[str, Any] = {}
    names = [o.split(":") for o in operands.split()]
    for name, letters in names:
        shape = tuple(sizes[i] for i in letters)
        if name != names[0][0] and rng.random() < (0.5 if len(shape) == 1 else 0.15):
            given[name], _ = d.plain(shape)
        else:
            given[name], _ = d.operand(shape, filled=rng.random() < 0.2)

    def wanted() -> Any:
        computed, dtype = promoted([p for p, (name, _) in zip(d.pairs, names, strict=True) if name != "M"])
        found = theirs(*computed, *(p[1] for p, (name, _) in zip(d.pairs, names, strict=True) if name == "M"))
        if dtype is None or found.dtype.kind in "bi":
            return found  # sums of one operand's integers are 64 bits wide
        return Want(found if dtype == "bfloat16" else found.astype(dtype), dtype)

    d.dimensions.append("operation: evaluate")
    return d.case(text, lambda: ow.evaluate(text, **given), wanted, close=True)


RINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "min_plus": (min, lambda x, y: x + y), "max_plus": (max, lambda x, y: x + y), "plus_times": (lambda x, y: x + y, lambda x, y: x * y),
    "max_times": (max, lambda x, y: x * y), "min_max": (min, max), "plus_pair": (lambda x, y: x + y, lambda x, y: 1),
    "min_first": (min, lambda x, y: x), "max_second": (max, lambda x, y: y),
}  # fmt: skip


def semirings(d: Any) -> Case:
    """Products over semirings, of what is specified alone, by spgemm, einsum and evaluate."""
    rng = d.rng
    d.tame, d.dtype = True, rng.choice(("float64", "float32", "int64", "int32"))
    ring = rng.choice(tuple(RINGS))
    n, m, q = (rng.choice((0, 1, 2, 3, 4, 5)) for _ in range(3))
    form = rng.choice(("spgemm", "einsum", "evaluate", "einsum of one"))
    shapes = ((n, m),) if form == "einsum of one" else ((n, m), (m, q))
    for shape in shapes:
        t, a = d.operand(shape, filled=False)
        stored = t if t.format.is_unique else t.asformat("coo").coalesce()
        format = rng.choice(("csr", "csc", "coo", "dcsr", "dcsc", "csr(unordered)", "coo(unordered)"))
        d.pairs[-1] = (stored.asformat(format), a)  # of formats that store whole rows or blocks zeros are not specified
    tensors = [t for t, _ in d.pairs]
    specified = [np.asarray(ow.pattern(t).to_numpy()) for t in tensors]
    add, times = RINGS[ring]
    d.inputs += [ring, *(s.tolist() for s in specified)]
    d.dimensions.append(f"operation: {form} over a semiring")
    calls: dict[str, Callable[[], Any]] = {
        "spgemm": lambda: ow.spgemm(*tensors, semiring=ring),
        "einsum": lambda: ow.einsum("ij,jk->ik", *tensors, semiring=ring),
        "evaluate": lambda: ow.evaluate("C[i, k] += A[i, j] * B[j, k]", A=tensors[0], B=tensors[1], semiring=ring),
        "einsum of one": lambda: ow.einsum("ij->i", *tensors, semiring=ring),
    }

    def wanted() -> Any:
        arrays, dtype = promoted(d.pairs)
        own = ow.semiring(ring).dtype
        dtype = dtype and ("int64" if own == "i64" else dtype)
        scalar = np.dtype("int64") if own == "i64" else arrays[0].dtype if dtype else np.result_type(*arrays)
        identity = ow.semiring(ring).add.identity_of(
            {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool"}.get(scalar.name, "f32")
        )
        result = np.full((n,) if len(shapes) == 1 else (n, q), identity, scalar)
        there = np.zeros(result.shape, bool)
        for i, j, k in itertools.product(range(n), range(m), range(1 if len(shapes) == 1 else q)):
            at = (i,) if len(shapes) == 1 else (i, k)
            if not all(s[p] for s, p in zip(specified, ((i, j), (j, k)), strict=False)):
                continue
            x = arrays[0][i, j] if len(shapes) == 1 else times(arrays[0][i, j], arrays[1][j, k])
            result[at] = add(result[at], x) if there[at] else x
            there[at] = True
        return result if dtype is None else Want(result, dtype)

    return d.case(f"{form} {ring}", calls[form], wanted, close=True)
