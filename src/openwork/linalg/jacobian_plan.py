"""The pattern of a Jacobian or a Hessian -> which sums of its columns and rows to evaluate, and where elements stand.

The plan is independent of how products with the matrix are made: `openwork.torch` makes them by derivatives, this file
by differences of a function of NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import openwork as ow

from .. import DTypeError, Format, InvariantError, ShapeError, Tensor, UnsupportedError
from ..reals import real
from .colouring import Colours, colours, symmetric_colours
from .compiled import run
from .direct_solver.graph import Graph
from .direct_solver.ordering import structure
from .operands import matrix

__all__ = ["JacobianPlan", "hessian_plan", "jacobian_plan"]

Array = np.ndarray[Any, Any]

MODES = ("auto", "forward", "reverse", "both")
METHODS = ("2-point", "3-point", "cs")
_STEPS = {"2-point": 1 / 2, "3-point": 1 / 3, "cs": 1}
"""The exponents of the machine epsilon in steps of differences."""

_STAR_PLACES = """
def star_places(pos: I[const], crd: I[const], colour: I[const], row: I[mut], of: I[mut], n: i64):
    # element (i, j) is read in the evaluation of j's colour, unless row i has another element of that colour
    count: I[n + 1] = zeros
    for i in range(0, n):
        for p in range(pos[i], pos[i + 1]):
            count[colour[crd[p]]] = count[colour[crd[p]]] + 1
        for p in range(pos[i], pos[i + 1]):
            j = i64(crd[p])
            if count[colour[j]] == 1:
                row[p] = i
                of[p] = colour[j]
            else:
                row[p] = j
                of[p] = colour[i]
        for p in range(pos[i], pos[i + 1]):
            count[colour[crd[p]]] = 0
"""


def jacobian_plan(pattern: Any, mode: str = "auto", *, format: str | Format = "csr") -> JacobianPlan:
    """Which sums of columns and rows of a Jacobian of this pattern to evaluate, by colouring.

    Parameters
    ----------
    pattern : matrix of shape (m, n), whose stored elements are where the Jacobian may differ from 0
    mode : "forward" for products with columns (JVPs, differences), "reverse" for products with rows (VJPs), "both" for
        dense rows by the one and the rest by the other; "auto" for whichever needs the fewest
    format : of the Jacobians

    Returns
    -------
    JacobianPlan: `plan(f, x)` over torch, `plan.differences(f, x)` over NumPy; it may be pickled

    Raises ShapeError where the pattern is no matrix.

    Cost: that of colouring, a second for some 10^6 rows.
    Source: Gebremedhin, Manne, Pothen (2005); Curtis, Powell, Reid (1974).
    See also: hessian_plan, torch.jacobian.

    Examples
    --------
    >>> P = ow.diags_array([np.ones(9999), np.ones(10000), np.ones(9999)], offsets=[-1, 0, 1])
    >>> plan = ow.linalg.jacobian_plan(P)
    >>> plan
    <JacobianPlan: 3 evaluations instead of 10000>
    >>> round(float(plan.differences(np.square, np.full(10000, 0.5)).trace()), 3)
    10000.0
    """
    t = _checked(pattern, "jacobian_plan")
    if mode not in MODES:
        raise UnsupportedError(f"jacobian_plan: no mode {mode!r}; there are {', '.join(MODES)}")
    rows = structure(t)
    found = colours(rows, t.shape[1], mode)
    row = np.repeat(np.arange(t.shape[0], dtype=rows.crd.dtype), np.diff(rows.pos))
    places = np.multiply(found.columns[rows.crd], t.shape[0], dtype=np.int64)
    places += row
    if found.reverse:
        reverse = found.rows[row] >= 0 if found.by_row else found.columns[rows.crd] < 0
        by_row = found.forward * t.shape[0] + found.rows[row].astype(np.int64) * t.shape[1] + rows.crd
        places = np.where(reverse, by_row, places)
    return JacobianPlan(*_stored(t.shape, rows, places, found, format), found, False)


def hessian_plan(pattern: Any, *, format: str | Format = "csr") -> JacobianPlan:
    """Which sums of columns of a Hessian of this pattern to evaluate, by a star colouring or that of a Jacobian.

    Parameters
    ----------
    pattern : square matrix, whose stored elements, and their mirror images, are where the Hessian may differ from 0
    format : of the Hessians

    Returns
    -------
    JacobianPlan: `plan(f, x)` over torch is the Hessian of f; `plan.differences(gradient, x)` over NumPy

    Cost: as that of jacobian_plan.
    Source: Gebremedhin, Tarafdar, Manne, Pothen (2007).
    See also: jacobian_plan, torch.hessian.

    Examples
    --------
    >>> P = ow.asarray([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]], format="csr")
    >>> ow.linalg.hessian_plan(P)
    <JacobianPlan: 2 evaluations instead of 4, symmetric>
    """
    t = _checked(pattern, "hessian_plan")
    if t.shape[0] != t.shape[1]:
        raise ShapeError(f"hessian_plan: a Hessian is square; got shape {t.shape}")
    half, n = structure(t), t.shape[0]
    buffers = {"pos": {1: half.pos}, "crd": {1: half.crd}}
    true = ow.assemble("csr", t.shape, **buffers, values=np.ones(len(half.crd), bool))  # type: ignore[arg-type]
    rows = structure(ow.logical_or(true, true.T))
    colour, used = symmetric_colours(rows)
    row, of = np.empty_like(rows.crd), np.empty_like(rows.crd)
    run(_STAR_PLACES, len(row) * 3, [*rows, colour, row, of, n], I=rows.crd)
    places = of.astype(np.int64) * n + row
    found = Colours(colour, np.full(n, -1, colour.dtype), used, 0)
    return JacobianPlan(*_stored(t.shape, rows, places, found, format), found, True)


class JacobianPlan:
    """Colours and places of a Jacobian's or a Hessian's elements, made by `jacobian_plan` and `hessian_plan`.

    shape, format    of the matrices
    pattern          a tensor of booleans, True at each place that is stored
    evaluations      products with the matrix and its transpose that give all elements: `forward` and `reverse` ones

    Examples
    --------
    >>> plan = ow.linalg.jacobian_plan(np.eye(3))
    >>> plan.evaluations, plan.differences(np.sin, np.zeros(3), method="cs").to_numpy().tolist()
    (1, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    def __init__(self, pattern: Tensor, places: Array, columns: Array, colours: Colours, symmetric: bool) -> None:
        """Of each value its place in the forward products, the reverse ones, and a 0, and its column, -1 of padding."""
        self.pattern, self.places, self.colours, self.symmetric = pattern, places, colours, symmetric
        self.columns = columns
        self.checked = False
        self.shape: tuple[int, int] = pattern.shape  # type: ignore[assignment]
        self.format = pattern.format
        self.forward, self.reverse = colours.forward, colours.reverse
        self._forward: JacobianPlan | None = self if not colours.reverse else None

    @property
    def evaluations(self) -> int:
        """Products that give all elements."""
        return self.colours.evaluations

    def __repr__(self) -> str:
        """One line: evaluations, of how many."""
        both = f" ({self.forward} forward, {self.reverse} reverse)" if self.forward and self.reverse else ""
        kind = ", symmetric" if self.symmetric else both or (", reverse" if self.reverse else "")
        s = "s" if self.evaluations != 1 else ""
        return f"<JacobianPlan: {self.evaluations} evaluation{s} instead of {min(self.shape)}{kind}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """The plan, which is not made again; the first use of a copy is checked again."""
        return JacobianPlan, (self.pattern, self.places, self.columns, self.colours, self.symmetric)

    def __call__(self, f: Callable[..., Any], x: Any) -> Tensor:
        """The Jacobian, or the Hessian, of a function of torch tensors at x: `openwork.torch.jacobian` by this plan."""
        return ow.torch.jacobian(f, x, plan=self)

    def seeds(self, dtype: Any) -> tuple[Array, Array]:
        """The directions of the products: (forward, n) for columns and (reverse, m) for rows."""
        found = []
        for colour, count in ((self.colours.columns, self.forward), (self.colours.rows, self.reverse)):
            seeds = np.zeros((count, len(colour)), dtype)
            some = np.flatnonzero(colour >= 0)
            seeds[colour[some], some] = 1
            found.append(seeds)
        return found[0], found[1]

    def differences(
        self, f: Callable[..., Any], x: Any, method: str = "2-point", *, rel_step: float | None = None, args: Any = ()
    ) -> Tensor:
        """The Jacobian of a function of NumPy arrays at x by differences; the Hessian of one that gives gradients.

        Parameters
        ----------
        f : of a vector (n,) and `args`, to a vector (m,)
        x : array of shape (n,)
        method : "2-point"; "3-point", twice the evaluations; "cs", complex steps, exact where f takes complex numbers
        rel_step : the step relative to max(1, |x|); of the method's rounding errors without

        Returns
        -------
        Tensor, shape (m, n), of the format of the plan

        Raises InvariantError where the first result, times a vector, is not the difference in its direction: an element
        is missing in the pattern.
        """
        if self._forward is None:
            self._forward = jacobian_plan(self.pattern, "forward", format=self.format)
        plan = self._forward
        if not callable(f) or not isinstance(args, tuple | list):
            raise DTypeError(f"differences: f is a function and args a tuple; got: {type(f).__name__} and {args!r}")
        if rel_step is not None and not real(rel_step, "differences", "rel_step") > 0:
            raise ValueError(f"differences: rel_step is a positive number; got: {rel_step}")
        if method not in METHODS:
            raise UnsupportedError(f"differences: no method {method!r}; there are {', '.join(METHODS)}")
        point = np.asarray(x)
        if point.dtype.kind not in "iuf":
            raise DTypeError(f"differences: x is {point.dtype}\n  expected: real numbers")
        point = point.astype(np.result_type(point.dtype, np.float32) if point.dtype.kind == "f" else np.float64)
        if point.shape != self.shape[1:]:
            raise ShapeError(f"differences: x has shape {point.shape}\n  expected: {self.shape[1:]}, as of the pattern")
        step = rel_step or float(np.finfo(point.dtype).eps ** _STEPS[method])
        h = step * np.maximum(1, np.abs(point)).astype(point.dtype)
        h = (point + h) - point if method != "cs" else h
        quotient = _Quotient(f, point, method, args, self.shape[0])
        numerators = [quotient(h * s) for s in plan.seeds(point.dtype)[0]]
        flat = np.concatenate([*numerators, np.zeros(1, point.dtype)])
        steps = np.append(h, point.dtype.type(1))[plan.columns]
        J = ow.with_values(plan.pattern, flat[plan.places] / steps, fill_value=0)
        if not self.checked:
            v = np.random.default_rng(0).standard_normal(len(point)).astype(point.dtype)
            tiny = step / max(float(np.abs(v).max(initial=1)), 1)
            self.compare(np.asarray(J @ v), quotient(tiny * v) / tiny, math.sqrt(step))
        return J

    def jac(
        self, f: Callable[..., Any], method: str = "2-point", *, rel_step: float | None = None
    ) -> Callable[..., Any]:
        """What SciPy takes as `jac=`: of `least_squares`, `root`, and `solve_ivp`; y is the last argument.

        It gives SciPy's sparse arrays, arrays where the format of the plan is dense. `jac_sparsity=plan.jac_sparsity`
        hands SciPy the pattern alone, which it colours itself.
        """

        def jac(*args: Any) -> Any:
            lead, x = args[:-1], args[-1]
            J = self.differences(lambda y: f(*lead, y), x, method, rel_step=rel_step)
            return J.to_numpy() if self.format == ow.format("dense") else J.to_scipy()

        return jac

    @property
    def jac_sparsity(self) -> Any:
        """The pattern as SciPy's sparse array, for `least_squares(jac_sparsity=)` and `solve_ivp(jac_sparsity=)`."""
        return self.pattern.asformat("csr").astype(np.int8).to_scipy()

    def compare(self, product: Array, expected: Array, tolerance: float) -> None:
        """Note the check of the first use. Raises InvariantError where J @ v is not the derivative along v."""
        if np.isfinite(expected).all():
            scale = max(float(np.abs(expected).max(initial=0)), float(np.abs(product).max(initial=0)))
            wrong = np.abs(product - expected)
            if len(wrong) and wrong.max() > tolerance * scale:
                raise InvariantError(
                    f"jacobian: J @ v differs from the derivative along v by {wrong.max():.2g} in row"
                    f" {int(wrong.argmax())}\n  expected: a pattern that has every element that is not 0\n  help: leave"
                    " out pattern=, or add what that row depends on"
                )
        self.checked = True


class _Quotient:
    """The numerator of a difference quotient in a direction."""

    def __init__(self, f: Callable[..., Any], x: Array, method: str, args: Any, rows: int) -> None:
        self.f, self.x, self.method, self.args, self.rows = f, x, method, args, rows
        self.at = self._value(x) if method == "2-point" else None

    def _value(self, x: Array) -> Array:
        y = np.asarray(self.f(x, *self.args))
        if y.shape != (self.rows,):
            raise ShapeError(f"differences: f gave shape {y.shape}\n  expected: {(self.rows,)}, as the pattern has")
        return y

    def __call__(self, h: Array) -> Array:
        if self.method == "cs":
            y = self._value(self.x + 1j * h)
            if y.dtype.kind != "c":
                raise DTypeError('differences: f of complex numbers is real\n  help: method="3-point"')
            return y.imag
        if self.method == "2-point":
            return self._value(self.x + h) - self.at
        return (self._value(self.x + h) - self._value(self.x - h)) / 2


def _checked(pattern: Any, name: str) -> Tensor:
    t = matrix(pattern, name)
    if t.ndim != 2:
        raise ShapeError(f"{name}: expected the pattern of a matrix; got shape {t.shape}")
    return t if isinstance(pattern, Tensor) or not t.format.is_dense else t.asformat("csr")


def _stored(
    shape: tuple[int, ...], rows: Graph, places: Array, found: Colours, format: object
) -> tuple[Tensor, Array, Array]:
    """The pattern in a format, and the places and columns of its values; of padding a 0 behind the products, and -1."""
    buffers = {"pos": {1: rows.pos}, "crd": {1: rows.crd}}
    numbered: Any = ow.assemble("csr", shape, **buffers, values=np.arange(1, len(rows.crd) + 1))  # type: ignore[arg-type]
    given, numbered = numbered.format, numbered.asformat(format)
    which = np.asarray(numbered.values)
    pattern = ow.with_values(numbered, which > 0, fill_value=False)
    if numbered.format == given:
        return pattern, places, rows.crd
    end = found.forward * shape[0] + found.reverse * shape[1]
    return pattern, np.append(places, end)[which - 1], np.append(rows.crd, -1)[which - 1]
