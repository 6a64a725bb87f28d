"""NumPy's functions on Tensors, their counterparts and methods, with every argument of NumPy's signature: value or error."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from variants import by_place, calls

import openwork as ow

RNG = np.random.default_rng(5)
INPUTS: dict[str, tuple[np.ndarray, str]] = {
    "csr": (np.array([[0.0, 2.0, 0.0], [3.0, 0.0, -4.0]]), "csr"),
    "complex coo": (np.array([[0, 2j, 0], [3 + 1j, 0, -4]]), "coo"),
    "int16 dense": (np.array([[0, 2, 0], [3, 0, -4]], np.int16), "dense"),
    "bool bitmap": (np.array([[0, 1, 0], [1, 0, 1]], bool), "bitmap"),
    "cube": (np.where(RNG.random((2, 3, 2)) < 0.5, RNG.integers(1, 5, (2, 3, 2)), 0).astype(float), "csf"),
    "vector": (np.array([0.0, 3.0, 0.0, 1.0]), "coo"),
    "number": (np.array(2.5), "() -> ()"),
    "no rows": (np.zeros((0, 3)), "csr"),
}
FUNCTIONS = (
    "all", "any", "argmax", "argmin", "argsort", "broadcast_to", "count_nonzero", "cumprod", "cumsum", "diagonal", "diff",
    "expand_dims", "flip", "max", "mean", "min", "moveaxis", "prod", "repeat", "reshape", "roll", "sort", "squeeze", "std",
    "sum", "swapaxes", "take", "tile", "trace", "transpose", "tril", "triu", "var",
)  # fmt: skip
OWN_NAMES = {"cumsum": "cumulative_sum", "cumprod": "cumulative_prod", "transpose": "permute_dims"}
KEYWORDS = {"ddof": "correction", "reps": "repetitions"}


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, IndexError, NotImplementedError) as error:
            return error


def kind(error: BaseException) -> set[str]:
    """TypeError is one kind; ValueError and IndexError are another: NumPy's AxisError is both."""
    found = set()
    if isinstance(error, TypeError):
        found.add("type")
    if isinstance(error, ValueError | IndexError):
        found.add("value")
    return found


def agree(got: Any, expected: Any, what: str) -> None:
    if isinstance(expected, BaseException):
        assert isinstance(got, BaseException), f"{what}: {expected!r} in NumPy, got {got!r}"
        assert kind(got) & kind(expected), f"{what}: {expected!r} in NumPy, got {got!r}"
        return
    if isinstance(got, BaseException):
        raise AssertionError(f"{what}: {got!r}") from got
    array = got.to_numpy() if isinstance(got, ow.Tensor) else np.asarray(got)
    assert array.shape == np.shape(expected), what
    assert array.dtype == np.asarray(expected).dtype, (
        f"{what}: dtype {array.dtype}, NumPy's {np.asarray(expected).dtype}"
    )
    np.testing.assert_allclose(array, expected, rtol=1e-6, err_msg=what)


def _none(axis: Any) -> bool:
    return axis is None or (isinstance(axis, tuple) and not axis)


ORDERED = ("argmax", "argmin", "argsort", "max", "min", "sort")


def refused(name: str, dense: np.ndarray, kwargs: dict[str, Any]) -> bool:
    """What NumPy takes and this library refuses, for a reason that its documentation gives."""
    dtype = kwargs.get("dtype")
    if dense.dtype.kind == "c" and (name in ORDERED or (dtype is not None and np.dtype(dtype).kind in "fib")):
        return True  # complex numbers have no order, and are not made real in silence
    if dense.ndim == 0 and not _none(kwargs.get("axis", -1 if name in ("argsort", "sort", "diff") else None)):
        return True  # a number has no axes
    if name in ("tril", "triu") and dense.ndim < 2:
        return True  # a vector is no matrix
    if name in ("var", "std") and dtype is not None and np.dtype(dtype).kind != "f":
        return True  # a variance is a real floating-point number
    if name in ("diff", "roll") and _none(kwargs.get("axis", 0)):
        return True  # differences have an axis; NumPy's roll of a number along none is an error of unpacking
    if name == "diff" and kwargs.get("n") == 0:
        return True  # an axis that is not there is refused where nothing is subtracted, too
    return name in ("repeat", "take") and (kwargs.get("repeats") == -1 or dense.size == 0)  # of nothing, too


@pytest.mark.thin(260)
@pytest.mark.parametrize("key", list(INPUTS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpys_function(name, key):
    dense, spec = INPUTS[key]
    t = ow.asarray(dense).asformat(ow.format(spec, dense.ndim))
    function = getattr(np, name)
    for _, kwargs in calls(name):
        if refused(name, dense, kwargs):
            continue
        stable = {"stable": True} if name in ("argsort", "sort") else {}
        expected = outcome(function, dense, **kwargs, **stable)
        agree(outcome(function, t, **kwargs), expected, f"np.{name}({kwargs})")
        args, rest = by_place(name, kwargs)
        if args:
            agree(outcome(function, t, *args, **rest), expected, f"np.{name}(t, *{args}, {rest})")


@pytest.mark.thin(60)
@pytest.mark.parametrize("key", list(INPUTS))
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if hasattr(ow.Tensor, n)])
def test_the_method(name, key):
    dense, spec = INPUTS[key]
    t = ow.asarray(dense).asformat(ow.format(spec, dense.ndim))
    method = getattr(t, name)
    taken = {p.name for p in inspect.signature(method).parameters.values() if p.kind is not p.POSITIONAL_ONLY}
    for _, kwargs in calls(name):
        given = {KEYWORDS.get(n, n): v for n, v in kwargs.items()}
        if refused(name, dense, kwargs) or (name != "transpose" and not set(given) <= taken):
            continue
        if name == "argsort" and kwargs.get("axis", -1) is None:
            continue  # the method is the array API's, which sorts along one axis
        expected = outcome(getattr(np, name), dense, **kwargs)
        if name == "transpose":
            agree(outcome(method, *kwargs.values()), expected, f"t.{name}(*{kwargs})")
        else:
            agree(outcome(method, **given), expected, f"t.{name}({given})")
