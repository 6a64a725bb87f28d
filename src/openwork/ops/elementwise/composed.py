"""Elementwise functions composed of other operations: isclose, nan_to_num, isin, interp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...interop.sources import asarray
from ...runtime.operation import namespace, operation
from ...tensor.dtypes import finfo, isdtype
from ...tensor.lazy import is_lazy
from ...tensor.tensor import Tensor
from .by_elements import by_elements

__all__ = ["interp", "isclose", "isin", "nan_to_num"]


def _computed(x: Any) -> Any:
    return x.compute() if is_lazy(x) else x


def _host(x: Any) -> np.ndarray[Any, Any]:
    return x.to_numpy() if isinstance(x, Tensor) else np.asarray(x)


def _close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    ow = namespace()
    within_tolerance = ow.isfinite(b) & (ow.abs(a - b) <= atol + rtol * ow.abs(b))
    same = (a == b) | within_tolerance
    return same | (ow.isnan(a) & ow.isnan(b)) if equal_nan else same


def _subtractable(x: Any) -> Any:
    """An operand of a difference, bool as int8, as bool has no subtraction."""
    return x.astype(np.int8) if isdtype(x.dtype, "bool") else x


@operation(
    method=True,
    torch="isclose(a, b, /, rtol = 1e-05, atol = 1e-08, equal_nan = False)",
    masked=lambda a, b, /, *, rtol=1e-05, atol=1e-08, equal_nan=False: _close(a, b, rtol, atol, equal_nan),
    shape="broadcast",
    dtype="bool",
    fill="f(fill)",
)
def isclose(a: Any, b: Any, /, *, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether `abs(a - b) <= atol + rtol * abs(b)`, or both are the same, infinities among them.

    equal_nan : whether NaN is close to NaN

    Parameters
    ----------
    rtol : the tolerance relative to `b`
    atol : the absolute tolerance

    Returns a Tensor of bool; its fill value is True where those of the operands are close.

    Cost: O(nse of both).
    See also: equal.

    Examples
    --------
    >>> ow.isclose(ow.asarray([0, 1.0], format="coo"), ow.asarray([0, 1.0 + 1e-9], format="coo")).to_numpy()
    array([ True,  True])
    """
    return _close(_subtractable(asarray(_computed(a))), _subtractable(asarray(_computed(b))), rtol, atol, equal_nan)


def _replace_nonfinite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    ow, limits = namespace(), finfo(x.dtype)
    high, low = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    finite = ow.where(ow.isnan(x), nan, x)
    return ow.where(finite == float("inf"), high, ow.where(finite == float("-inf"), low, finite))


@operation(
    method=True,
    torch="nan_to_num(nan = 0.0, posinf = None, neginf = None)",
    masked=lambda m, /, *, nan=0.0, posinf=None, neginf=None: _replace_nonfinite(m, nan, posinf, neginf),
    shape="same",
    dtype="same",
    fill="f(fill)",
)
def nan_to_num(x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`nan` in the place of NaN, the largest and the least finite numbers, or what is given, in that of infinities.

    Complex numbers by their parts. Raises DTypeError for values that are no numbers of the dtype.

    Parameters
    ----------
    nan : what takes the place of NaN
    posinf : what takes the place of infinity; the largest number of the dtype if left out
    neginf : what takes the place of minus infinity; the least number of the dtype if left out

    Cost: O(nse).
    See also: isnan.

    Examples
    --------
    >>> ow.nan_to_num(ow.asarray([0, np.nan, 2.0], format="coo")).to_numpy()
    array([0., 0., 2.])
    """
    t = asarray(_computed(x))
    if isdtype(t.dtype, "complex floating"):
        options = {"nan": nan, "posinf": posinf, "neginf": neginf}
        return by_elements(lambda v: np.nan_to_num(v, **options), [t], "nan_to_num")
    return _replace_nonfinite(t, nan, posinf, neginf) if isdtype(t.dtype, "real floating") else t.clone()


@operation(
    method=True,
    masked=lambda m, elements, /, *, invert=False: m.map(lambda v: np.isin(v, _host(elements), invert=invert)),
    shape="same",
    dtype="bool",
    fill="f(fill)",
)
def isin(x: Any, elements: Any, /, *, invert: bool = False) -> Any:
    """Whether each element is one of `elements`, an array or Tensor of any shape; with `invert`, whether it is none.

    Parameters
    ----------
    elements : what is looked for
    invert : whether the answers are inverted

    Cost: that of `numpy.isin` on the stored values.

    See also: unique_values.

    Examples
    --------
    >>> ow.isin(ow.asarray([0, 2, 3], format="coo"), [2, 5]).to_numpy()
    array([False,  True, False])
    """
    test_values = _test_values(elements)
    return by_elements(lambda v: np.isin(v, test_values, invert=invert), [asarray(_computed(x))], "isin")


def _test_values(elements: Any) -> np.ndarray[Any, Any]:
    """The values to look for: an array's, or a sparse Tensor's stored ones and, where in use, its fill value."""
    if not isinstance(elements, Tensor) or elements.format.is_dense:
        return _host(elements)
    t = elements.coalesce()
    stored = asarray(t.values).to_numpy()
    return stored if t.nse == t.size else np.append(stored, np.asarray(t.fill_value, stored.dtype))


@operation(
    method=True,
    masked=lambda m, xp, fp, /, *, left=None, right=None, period=None: m.map(
        lambda v: np.interp(v, _host(xp), _host(fp), left, right, period)
    ),
    shape="same",
    fill="f(fill)",
)
def interp(x: Any, xp: Any, fp: Any, /, *, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """The piecewise linear function through the points (xp, fp) of every element, as NumPy's `interp`.

    Parameters
    ----------
    x : Tensor, any format; stored values and the fill value are mapped
    xp, fp : vectors of one length; `xp` increases unless `period` is given
    left, right : below the first and beyond the last point; the values there without
    period : the length after which the points repeat; None where they do not

    Returns a Tensor in the structure of `x`, float64 or complex128. Raises ShapeError for points that do not pair.

    Cost: O(nse log points).
    See also: searchsorted.

    Examples
    --------
    >>> ow.interp(ow.asarray([0, 0.5, 2], format="coo"), [0, 1, 2], [0, 10, 40]).to_numpy()
    array([ 0.,  5., 40.])
    """
    points, values = _host(xp), _host(fp)
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise ShapeError(
            f"interp: points of shapes {points.shape} and {values.shape}\n  expected: two vectors of one length"
        )
    return by_elements(lambda v: np.interp(v, points, values, left, right, period), [asarray(_computed(x))], "interp")
