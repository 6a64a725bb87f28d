"""Systems on a device: conjugate gradients with vectors and numbers there, triangular systems by level sets.

    level[i] = 1 + max of level[j] over the elements (i, j) of the triangle, 0 of a row without

Levels are found by passes over all rows until none changes, and kept with the tensor; then the rows of a level are
solved at once, one item for each right side, and level follows level. The host reads the levels' sizes, and in
conjugate gradients one number in each iteration, the norm of the residual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import ShapeError
from ..ir.types import COMPLEX, FLOATS
from ..linalg.convergence import warn
from ..linalg.inverse import check_transposition
from ..runtime.promote import promote
from ..storage.buffers import numpy_dtype
from .adapter import Memory
from .coordinates import elements_of
from .elementwise import astype, conj
from .kernels import each, whole
from .operations import on_device, refused
from .products import matmul
from .tensor import DeviceTensor
from .transfer import array_of, over
from .vector import cast, chosen, fill, gather, lower_bound, order_of, scan

__all__ = ["cg", "dot", "solve_triangular"]

GROUPS = 256
"""The most groups that add up a dot product."""


def _operands(name: str, a: Any, b: Any) -> tuple[DeviceTensor, DeviceTensor, Callable[[DeviceTensor], Any]]:
    """A square matrix, right sides on the same device in the dtype of the solution, and what gives it their kind."""
    right = array_of(b)
    if right is None or right.adapter is not a.adapter:
        where = "cpu" if right is None else right.device
        raise refused(name, (a,), f"a right side on {where} ({type(b).__name__}); asarray(b, device={a.device!r})")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: expected a square matrix; got shape {a.shape}\n  help: slice it")
    if right.ndim not in (1, 2) or right.shape[0] != a.shape[0]:
        raise ShapeError(
            f"{name}: the matrix has shape {a.shape}, the right side {right.shape}"
            f"\n  expected {a.shape[0]} rows; got {right.shape[0] if right.ndim else 'a scalar'}"
        )
    if a.fill_value != 0:
        raise refused(name, (a,), f"a fill value of {a.fill_value}")
    scalar = promote((a.scalar, right.scalar))
    scalar = scalar if scalar in (*FLOATS, *COMPLEX) else "f64"
    scalar = "f32" if scalar in ("f16", "bf16") else scalar
    is_array = not isinstance(b, DeviceTensor)
    return a, astype(right.asformat("dense"), numpy_dtype(scalar)), lambda x: x.to_dense() if is_array else x


_DOT = """
s: T_sums[ITEMS] = local
v: T_sums = 0.0
k: i64 = group * ITEMS + item
while k < length:
    v += T_sums(x[k]) * T_sums(z[k])
    k += step
s[item] = v
barrier()
half: i64 = ITEMS // 2
while half > 0:
    if item < half:
        s[item] += s[item + half]
    barrier()
    half = half // 2
if item == 0:
    sums[group] = s[0]
"""
"""The products of every `step`-th element, added up in an item, and those of a group in local memory."""


def dot(x: Memory, z: Memory) -> Memory:
    """The sum of products of real vectors, one element in f64."""
    device = x.device
    while True:
        groups = max(1, min(GROUPS, -(-x.length // device.grid.items)))
        sums, items = device.memory(groups, "f64"), groups * device.grid.items
        whole(device, items, _DOT, {"sums": sums}, x=x, z=z, length=x.length, step=items)
        if groups == 1:
            return sums
        x, z = sums, fill(device, groups, 1, "f64")


@on_device("cg")
def cg(
    a: DeviceTensor, b: Any, x0: Any = None, *, rtol: float | None = 1e-5, atol: float | None = 0.0,
    maxiter: int | None = None, M: Any = None, callback: Any = None, progress: Any = None, dtype: Any = None,
) -> tuple[Any, int]:  # fmt: skip
    """Conjugate gradients on one right side, preconditioned by a matrix, a function of a vector, or "jacobi"."""
    a, right, back = _operands("cg", a, b)
    if dtype is not None:
        right = astype(right, dtype)
    scalar, n, device = right.scalar, a.shape[0], a.adapter
    if scalar in COMPLEX or right.ndim != 1 or progress is not None:
        raise refused("cg", (a, right), "complex numbers, several right sides, or progress=")
    start = None if x0 is None else array_of(x0)
    if x0 is not None and (start is None or start.shape != (n,)):
        raise refused("cg", (a, right), f"x0 ({type(x0).__name__}); a vector of {n} on the same device is taken")
    apply = _preconditioner(a, M)

    def times(v: Memory) -> Memory:
        return cast(matmul(a, over(v, (n,))).memory, scalar)

    x = fill(device, n, 0, scalar)
    r = device.memory(n, scalar)
    each(device, n, "y[t] = x[t]", {"y": r}, x=right.memory)
    if start is not None:
        each(device, n, "y[t] = T_y(x[t])", {"y": x}, x=start.memory)
        each(device, n, "y[t] = y[t] - x[t]", {"y": r}, x=times(x))
    norm = float(np.sqrt(dot(right.memory, right.memory).at(0)))
    tolerance, limit = max((rtol or 0.0) * norm, atol or 0.0), 10 * n if maxiter is None else maxiter
    residual = norm if start is None else float(np.sqrt(dot(r, r).at(0)))
    p, before, count = fill(device, n, 0, scalar), fill(device, 1, 1, "f64"), 0
    while residual > tolerance and count < limit:
        z = apply(r)
        rz = dot(r, z)
        each(device, n, "y[t] = x[t] + T_y(new[0] / old[0] * T_new(y[t]))", {"y": p}, x=z, new=rz, old=before)
        before = rz
        q = times(p)
        pq = dot(p, q)
        body = "f = rz[0] / pq[0]\nx[t] += T_x(f * T_rz(p[t]))\nr[t] -= T_x(f * T_rz(q[t]))"
        each(device, n, body, {"x": x, "r": r}, rz=rz, pq=pq, p=p, q=q)
        residual, count = float(np.sqrt(dot(r, r).at(0))), count + 1
        if callback is not None:
            callback(back(over(x, (n,))))
    solved = residual <= tolerance
    if not solved:
        warn("cg", count, residual, tolerance)
    return back(over(x, (n,))), 0 if solved else count


def _preconditioner(a: DeviceTensor, M: Any) -> Callable[[Memory], Memory]:
    """M as a function of a vector in the device's memory."""
    if M is None:
        return lambda r: r
    if isinstance(M, str) and M == "jacobi":
        d = _diagonal(a)

        def scaled(r: Memory) -> Memory:
            out = r.device.memory(r.length, r.scalar)
            each(r.device, r.length, "y[t] = T_y(x[t] / d[t])", {"y": out}, x=r, d=d)
            return out

        return scaled
    if not isinstance(M, DeviceTensor) and not callable(M):
        raise refused("cg", (a,), f"M={M!r}; a matrix there, a function of a vector, or 'jacobi'")

    def applied(r: Memory) -> Memory:
        v = over(r, (r.length,))
        found = array_of(matmul(M, v) if isinstance(M, DeviceTensor) else M(v))
        if found is None or found.shape != v.shape:
            raise refused("cg", (a,), "M gives no vector on the device")
        return cast(found.memory, r.scalar)

    return applied


def _diagonal(a: DeviceTensor) -> Memory:
    """The diagonal of a matrix; 1 where it is 0, as `jacobi` of the host has it."""
    e = elements_of(a)
    out = fill(a.adapter, a.shape[0], 0, a.scalar)
    i, j = e.coordinates
    each(a.adapter, i.length, "if i[t] == j[t]:\n    atomic('add', y[i[t]], x[t])", {"y": out}, i=i, j=j, x=e.values)
    each(a.adapter, out.length, "if y[t] == T_y(0.0):\n    y[t] = T_y(1.0)", {"y": out})
    return out


class Levels(NamedTuple):
    """Rows ordered by level, and where each level begins among them."""

    order: Memory
    starts: tuple[int, ...]


_LEVEL = """
level: i64 = 0
for p in range(pos[t], pos[t + 1]):
    if crd[p] BEFORE t:
        level = max(level, x[crd[p]] + 1)
y[t] = level
changed[t] = i64(level != x[t])
""".strip("\n")
_ROW = """
row = order[first + t // width]
c = t % width
d: T_x = START
v: T_x = x[row * width + c]
for p in range(pos[row], pos[row + 1]):
    j = i64(crd[p])
    if j BEFORE row:
        v = v - T_x(values[p]) * x[j * width + c]
    if j == row:
        d = d + T_x(values[p])
if d == T_x(0.0):
    singular[row * width + c] = T_singular(1)
x[row * width + c] = v / d
""".strip("\n")


def _levels(t: DeviceTensor, lower: bool) -> Levels:
    """The levels of the rows of a triangle of a CSR matrix, kept with it."""
    key = ("levels", lower)
    if key in t.facts:
        found: Levels = t.facts[key]
        return found
    device, n = t.adapter, t.shape[0]
    level, pos, crd = fill(device, n, 0, "i64"), t.pos_buffers[1], t.crd_buffers[1]
    assert pos is not None
    assert crd is not None
    while True:
        new, changed = device.memory(n, "i64"), device.memory(n, "i64")
        body = _LEVEL.replace("BEFORE", "<" if lower else ">")
        each(device, n, body, {"y": new, "changed": changed}, x=level, pos=pos, crd=crd)
        level = new
        if not scan(changed)[1]:
            break
    order = order_of([(level, n)])
    ordered = gather(level, order)
    count = ordered.at(n - 1) + 1
    starts = lower_bound(ordered, 0, count + 1).to_numpy()
    t.facts[key] = levels = Levels(order, tuple(map(int, starts)))
    return levels


@on_device("solve_triangular")
def solve_triangular(
    a: DeviceTensor, b: Any, /, *, lower: bool = True, unit_diagonal: bool = False, trans: str = "N"
) -> Any:
    """The solution x of `tril(a) @ x = b`, or of `triu(a) @ x = b`, on a device."""
    a, right, back = _operands("solve_triangular", a, b)
    if check_transposition(trans, "solve_triangular") != "N":
        a, lower = (a if trans == "T" else conj(a)).T, not lower
    rows = a.asformat("csr")
    n, width, device = a.shape[0], 1 if right.ndim == 1 else right.shape[1], a.adapter
    x = device.memory(n * width, right.scalar)
    each(device, x.length, "y[t] = x[t]", {"y": x}, x=right.memory)
    if not x.length:
        return back(over(x, right.shape))
    levels, singular = _levels(rows, lower), fill(device, x.length, 0, "i64")
    body = _ROW.replace("BEFORE", "<" if lower else ">").replace("START", "T_x(1.0)" if unit_diagonal else "T_x(0.0)")
    if unit_diagonal:
        body = body.replace("    if j == row:\n        d = d + T_x(values[p])\n", "")
    pos, crd = rows.pos_buffers[1], rows.crd_buffers[1]
    assert pos is not None
    assert crd is not None
    for first, last in zip(levels.starts, levels.starts[1:], strict=False):
        each(
            device, (last - first) * width, body, {"x": x, "singular": singular}, order=levels.order, pos=pos, crd=crd,
            values=rows.memory, first=first, width=width,
        )  # fmt: skip
    found = chosen(singular)
    if found.length:
        row = found.at(0) // width
        raise np.linalg.LinAlgError(
            f"solve_triangular: element ({row}, {row}) of the diagonal is 0: the matrix is singular"
            "\n  help: unit_diagonal=True takes the diagonal as ones"
        )
    return back(over(x, right.shape))


@on_device("spsolve_triangular")
def spsolve_triangular(
    A: DeviceTensor, b: Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """`solve_triangular`, by SciPy's name and signature; nothing is overwritten."""
    return solve_triangular(A, b, lower=lower, unit_diagonal=unit_diagonal)
