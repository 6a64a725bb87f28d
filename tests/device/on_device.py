"""The suites of masked tensors and of torch with every call run on a device too: `pytest -p on_device --device opencl`.

What a test calls (functions of the namespace, methods, operators, keys, torch's functions) is called once more with its
operands on the device, and has to give what the host gave, or be refused by name with the operands' formats. A call
that the host refuses, that writes to an operand, or whose kind (names, formats, dtypes) was met before, is not repeated.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import UnsupportedError
from openwork.tables import ATTRIBUTES, METHODS, OPERANDS, OPERATORS
from openwork.tensor.tensor import Tensor

torch = pytest.importorskip("torch")
LARGE = 2000
"""Elements of what is not repeated: a kernel's work items, on the CPU."""
NO_FUNCTIONS = ("with_values", "evaluate", "result_type", "can_cast")
"""What sets up tensors or expressions."""
DEVICE = os.environ.get("OPENWORK_TEST_DEVICE", "opencl")


class Shadow:
    """What was compared and refused, and what differs."""

    def __init__(self) -> None:
        self.inside = self.of_torch = False
        self.faults: list[str] = []
        self.all_faults: list[str] = []
        self.compared: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.seen: Counter[Any] = Counter()

    def of(self, name: str, function: Callable[..., Any], there: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose outermost calls are repeated by `there` on the device."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.inside:
                return function(*args, **kwargs)
            self.inside = True
            try:
                moved = self.moved(name, args, kwargs)
                result = function(*args, **kwargs)
                if moved is not None:
                    self.compare(name, there, *moved, result)
                return result
            finally:
                self.inside = False

        return call

    def moved(self, name: str, args: Any, kwargs: Any) -> Any:
        """The arguments on the device; None of a call that is not repeated."""
        flat = [x for x in (*args, *kwargs.values()) for x in (x if type(x) in (list, tuple) else (x,))]
        tensors = [x for x in flat if type(x) in (Tensor, ow.MaskedTensor)]
        small = all(_size(x) <= LARGE for x in flat)
        if (
            not tensors
            or not small
            or name.endswith("_")
            or name in NO_FUNCTIONS
            or kwargs.get("out") is not None
            or "grad" in kwargs
        ):
            return None
        kind = (name, *(_kind(x) for x in args), *((k, _kind(x)) for k, x in kwargs.items()))
        self.seen[kind] += 1
        if self.seen[kind] > 1:
            return None
        self.of_torch = isinstance(tensors[0].values, torch.Tensor)
        try:
            return [_there(x) for x in args], {k: _there(x) for k, x in kwargs.items()}
        except (UnsupportedError, ow.errors.DTypeError) as error:
            self.refused[f"to: {str(error)[:60]}"] += 1
            return None

    def compare(self, name: str, there: Callable[..., Any], args: Any, kwargs: Any, want: Any) -> None:
        """The call on the device against what the host gave."""
        formats = "; ".join(str(x.format) for x in args if hasattr(x, "format"))
        what = f"{name} of {formats} {[getattr(x, 'shape', x) for x in args]} {kwargs}"[:300]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = there(*args, **kwargs)
                if found is NotImplemented:
                    return
                fault = _difference(found, want)
        except UnsupportedError as error:
            text = str(error)
            if "\n  got:" not in text and "operands on" not in text and "to 'cpu'" not in text:
                self.faults.append(f"{what}: refused without a format: {text[:200]}")
            self.refused[name] += 1
            return
        except Exception as error:
            fault = f"{type(error).__name__}: {str(error)[:300]}"
        self.compared[name] += 1
        if fault:
            self.faults.append(f"{what}: {fault}")


def _size(x: Any) -> int:
    if isinstance(x, ow.MaskedTensor):
        return _size(x.specified)
    if isinstance(x, Tensor):
        return int(max(x.values.shape[0] if len(x.values.shape) else 1, *(min(n, 1 << 40) for n in (1, *x.shape))))
    return int(np.prod(x.shape)) if hasattr(x, "shape") and hasattr(x, "dtype") else 0


def _kind(x: Any) -> Any:
    if isinstance(x, Tensor | ow.MaskedTensor):
        return type(x), str(x.format), str(x.dtype), 0 in x.shape, type(x.values).__module__
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return type(x), str(x.dtype), len(x.shape), 0 in x.shape
    if type(x) in (list, tuple):
        return tuple(map(_kind, x))
    return repr(x)[:60]


def _there(x: Any) -> Any:
    if type(x) is Tensor or type(x) is ow.MaskedTensor:
        return x.detach().to(DEVICE) if x.requires_grad else x.to(DEVICE)
    if isinstance(x, torch.Tensor):
        return ow.asarray(x.detach().numpy(), device=DEVICE) if x.layout == torch.strided and x.ndim else x
    if type(x) is np.ndarray and x.ndim and x.dtype.kind in "biufc":
        return ow.asarray(x, device=DEVICE)
    return type(x)(map(_there, x)) if type(x) in (list, tuple) else x


def _difference(found: Any, want: Any) -> str:
    """How two results differ; "" where they do not."""
    if type(want) in (list, tuple):
        return next(filter(None, map(_difference, found, want)), "")
    masked = isinstance(want, ow.MaskedTensor)
    if masked != hasattr(found, "specified"):
        return f"a {type(found).__name__}, on the host a {type(want).__name__}"
    if masked:
        got = found.to("cpu")
        got.specified.check()
        of_torch = isinstance(want.values, torch.Tensor)
        want = want.detach() if of_torch else want
        x, y = got.to_masked_array(), want.to_masked_array()
        if not np.array_equal(np.ma.getmaskarray(x), np.ma.getmaskarray(y)):
            return f"masks {x} and {y}"
        x, y = np.ma.filled(x, 0), np.ma.filled(y, 0)
    else:
        if not hasattr(found, "to"):
            return "" if np.array_equal(found, want, equal_nan=True) else f"{found} and {want}"
        got = found.to("cpu").check()
        want = want.detach() if hasattr(want, "detach") else want
        of_torch = isinstance(getattr(want, "values", want), torch.Tensor) or isinstance(want, torch.Tensor)
        x, y = got.to_numpy(), np.asarray(want.to_numpy() if isinstance(want, Tensor) else want)
    if x.shape != y.shape:
        return f"shapes {x.shape} and {y.shape}"
    if x.dtype != y.dtype and not of_torch:
        return f"dtypes {x.dtype} and {y.dtype}"
    narrow = max(np.finfo(d).eps if d.kind in "fc" else 0 for d in (x.dtype, y.dtype, np.dtype("float64")))
    if not np.allclose(x, y, rtol=50 * narrow, atol=50 * narrow, equal_nan=True):
        return f"values {x.reshape(-1)[:8]} and {y.reshape(-1)[:8]}"
    if (isinstance(want, Tensor) or masked) and not of_torch and got.format != want.format:
        return f"formats {got.format} and {want.format}"
    return ""


shadow = Shadow()


def pytest_configure(config: pytest.Config) -> None:
    """Wrap what tests call."""
    for name in OPERANDS:
        function = getattr(ow, name)
        setattr(ow, name, shadow.of(name, function, function))
    for cls in (Tensor, ow.MaskedTensor):
        names = [f"__{form}{name}__" for name in OPERATORS for form in ("", "r")]
        for name in (*names, "__matmul__", "__rmatmul__", "__getitem__"):
            if (function := getattr(cls, name, None)) is not None:
                setattr(cls, name, shadow.of(name, function, _method(name)))
        for name in METHODS:
            if name not in ATTRIBUTES and callable(function := getattr(cls, name, None)):
                setattr(cls, name, shadow.of(name, function, _of_either(name)))
        of_torch = cls.__torch_function__

        def torch_function(
            _: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None, of_torch: Any = of_torch
        ) -> Any:
            name = getattr(func, "__name__", str(func))
            run = shadow.of(f"torch.{name}", lambda *a, **k: of_torch(func, types, a, k), _of_torch(func))
            return run(*args, **(kwargs or {}))

        cls.__torch_function__ = classmethod(torch_function)


ABOUT_FUNCTIONS = (
    "test_expressions_to_be_computed_later_take_masked_tensors", "test_functions_stay_what_they_are_for_tensors",
    "test_what_has_no_meaning_is_refused",
)  # fmt: skip
"""Tests that ask about the functions themselves, which are wrapped."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.partition("::")[2].partition("[")[0] in ABOUT_FUNCTIONS:
            item.add_marker(pytest.mark.skip(reason="asks about the functions themselves"))


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(type(self), name)(self, *args)


def _of_either(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        """torch's method of torch's values, where it has one and no argument is ours."""
        theirs = getattr(torch.Tensor, name, None)
        if shadow.of_torch and theirs is not None and not {"axis", "keepdims"} & set(kwargs):
            return _of_torch(theirs)(self, *args, **kwargs)
        return getattr(self, name)(*args, **kwargs)

    return call


def _of_torch(function: Any) -> Callable[..., Any]:
    """torch's function, as it asks operands on a device for it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        flat = [x for y in args for x in (y if type(y) in (list, tuple) else (y,))]
        first = next(x for x in (*flat, *kwargs.values()) if hasattr(type(x), "__openwork_device__"))
        return type(first).__torch_function__(function, (), args, kwargs)

    return call


@pytest.fixture(autouse=True)
def _same_on_the_device() -> Iterator[None]:
    """What differs in a test is its fault."""
    shadow.faults.clear()
    yield
    shadow.all_faults += shadow.faults
    assert not shadow.faults, "\n".join(shadow.faults)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many calls were repeated, and what was refused by name."""
    total, refused = sum(shadow.compared.values()), sum(shadow.refused.values())
    terminalreporter.write_line(f"on {DEVICE}: {total} calls give what the host gives, {refused} are refused by name")
    for fault in shadow.all_faults:
        terminalreporter.write_line(f"DIFFERS {fault}")
    terminalreporter.write_line(f"refused: {', '.join(f'{k} {n}' for k, n in shadow.refused.most_common(200))}")
