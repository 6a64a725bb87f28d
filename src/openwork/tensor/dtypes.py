"""The array API's dtypes and constants, and its functions of dtypes: `astype`, `isdtype`, `result_type`, `finfo`, ...

A dtype is NumPy's. Tensors over torch buffers have torch's dtypes, which every function here takes as well, as it
takes names ("float32", "bfloat16") and Python's types.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..ir.types import COMPLEX, FLOATS, SIGNED, UNSIGNED
from ..provided import provided
from ..runtime.operation import operation
from ..runtime.promote import promote, promote_ranks, weak
from ..storage.buffers import (
    buffer_of,
    is_array,
    is_torch,
    numpy_dtype,
    of_torch,
    scalar_name,
    torch_dtype,
    torch_module,
)
from .tensor import Tensor

__all__ = [
    "astype", "bool", "can_cast", "complex64", "complex128", "e", "finfo", "float16", "float32", "float64", "iinfo",
    "inf", "int8", "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "result_type", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip

bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX),
}
"""The standard's kinds of dtypes, by scalar type."""


_PYTHON = (builtins.bool, int, float, complex)


@operation(masked=provided("masked astype"), shape="same", fill="same")
def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None, casting: str = "unsafe") -> Any:
    """`x` with elements of another dtype; pos and crd are shared. `casting` is NumPy's rule of what is allowed.

    Parameters
    ----------
    dtype : NumPy's or torch's, or a name
    casting : what is allowed, as in NumPy: "no", "equiv", "safe", "same_kind" or "unsafe"
    copy : False gives `x` itself where it has that dtype

    Cost: O(nse).
    See also: result_type, can_cast.

    Examples
    --------
    >>> A = ow.asarray([0.0, 2.7], format="coo")
    >>> ow.astype(A, "int64").to_numpy()
    array([0, 2])
    """
    if isinstance(x, np.ndarray):
        return x.astype(dtype, casting=casting, copy=copy is not False)  # type: ignore[call-overload]
    return x.astype(dtype, casting=casting, copy=copy, device=device)


def scalar_of_operand(x: Any) -> str:
    """The scalar type of a dtype or of what has one."""

    if isinstance(x, Tensor):
        return x._storage.scalar
    return scalar_name(x.dtype if is_array(x) or isinstance(x, np.generic) else x)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether `dtype` is of a kind ("bool", "integral", "real floating", ...), equals a dtype, or any of several.

    Parameters
    ----------
    kind : a kind, "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
        "numeric", a dtype, or a tuple of these

    Returns
    -------
    bool, whether it is

    Raises DTypeError for a kind that is not one of the standard's.

    Cost: O(1).
    See also: result_type.

    Examples
    --------
    >>> ow.isdtype(ow.float32, "real floating")
    True
    """
    scalar = scalar_name(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in KINDS:
        return scalar in KINDS[kind]
    if isinstance(kind, str):
        raise DTypeError(f"isdtype: {kind!r} is not a kind of dtypes\n  supported: {', '.join(KINDS)}, or a dtype")
    return scalar == scalar_name(kind)


@operation(masked=provided("masked result_type"), grad=False)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any] | Any:
    """The dtype of an operation on these tensors, arrays, dtypes and Python scalars.

    Kinds mix by NumPy's table, of which the standard's is a part (int32 with float32 is float64), or by torch's where
    a torch tensor or dtype is among them (float32). Python scalars are weak: they never widen within their kind, nor do
    tensors of rank 0 beside others in torch's rule, in which Python's floats are of its default dtype.

    Parameters
    ----------
    arrays_and_dtypes : Tensors, arrays, dtypes, names of dtypes and Python scalars

    Returns
    -------
    numpy.dtype, or that of torch where torch takes part

    Raises DTypeError without operands, and where torch's result is complex32.

    Cost: O(1).
    See also: can_cast, astype.

    Examples
    --------
    >>> str(ow.result_type(ow.int32, ow.float32))
    'float64'
    """
    weak_kinds = [type(x) for x in arrays_and_dtypes if type(x) in _PYTHON]
    others = [x for x in arrays_and_dtypes if type(x) not in _PYTHON]
    if not others:
        raise DTypeError(
            "result_type: expected a tensor, array or dtype\n  help: a Python scalar has no dtype by itself"
        )
    torch_like = any(_is_torchs(x) for x in others)
    if torch_like:
        return torch_dtype(_torch_result_type(others, weak_kinds))
    scalar = promote(tuple(scalar_of_operand(x) for x in others))
    for kind in weak_kinds:
        scalar = weak(scalar, kind)  # type: ignore[arg-type]
    return numpy_dtype(scalar)


def _is_torchs(x: Any) -> builtins.bool:
    """Whether an array, a dtype or its name is torch's."""
    return x.startswith("torch.") if isinstance(x, str) else of_torch(x) or is_torch(buffer_of(x))


def _torch_result_type(others: list[Any], weak_kinds: list[type]) -> str:
    """The scalar type by torch's rule, which takes NumPy's numbers for Python's."""
    with_dimensions: list[str] = []
    rank_0: list[str] = []
    numbers = [_torch_number(kind) for kind in weak_kinds]
    for x in others:
        has_rank_0 = not isinstance(x, np.dtype) and getattr(x, "ndim", 1) == 0
        if has_rank_0 and isinstance(x, np.ndarray | np.generic):
            numbers.append(_torch_number(type(x.item())))
        else:
            (rank_0 if has_rank_0 else with_dimensions).append(scalar_of_operand(x))
    return promote_ranks(tuple(with_dimensions), tuple(rank_0), tuple(numbers))


def _torch_number(kind: type) -> str:
    """The scalar type that torch takes a Python number for."""
    if kind in (builtins.bool, int):
        return "bool" if kind is builtins.bool else "i64"
    default = scalar_name(torch_module().get_default_dtype())
    return default if kind is float else "c128" if default == "f64" else "c64"


@operation(masked=provided("masked can_cast"), grad=False)
def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether promotion turns `from_`, a dtype or a tensor, into the dtype `to`: no value is changed or lost.

    Parameters
    ----------
    from_ : a dtype, a name of one, a Tensor or an array
    to : the dtype that it would have

    Returns
    -------
    bool, whether it can

    Cost: O(1).
    See also: result_type, astype.

    Examples
    --------
    >>> ow.can_cast(ow.float32, ow.float64), ow.can_cast(ow.float64, ow.float32)
    (True, False)
    """
    source, target = scalar_of_operand(from_), scalar_name(to)
    return promote((source, target)) == target


class finfo:
    """Limits of a floating-point dtype: bits, eps, max, min, smallest_normal, dtype; a complex one has its parts'.

    Cost: O(1).
    See also: iinfo.

    Examples
    --------
    >>> float(ow.finfo(ow.float32).eps)
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "smallest_normal")

    def __init__(self, type: Any, /) -> None:
        scalar = scalar_of_operand(type)
        if scalar not in (*FLOATS, *COMPLEX):
            raise DTypeError(f"finfo: {type} is not a floating-point dtype\n  help: iinfo() is for integers")
        real = {"c64": "f32", "c128": "f64"}.get(scalar, scalar)
        limits: Any = np.finfo(numpy_dtype(real)) if real != "bf16" else _bfloat16()
        self.dtype: Any = limits.dtype if real == "bf16" else numpy_dtype(real)
        self.bits = int(limits.bits)
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.smallest_normal = float(limits.smallest_normal)

    def __repr__(self) -> str:
        return f"finfo({self.dtype}, eps={self.eps}, max={self.max}, smallest_normal={self.smallest_normal})"


def _bfloat16() -> Any:
    """The limits of bfloat16 by ml_dtypes, or by torch."""
    try:
        import ml_dtypes
    except ImportError:
        return torch_module().finfo(torch_dtype("bf16"))
    return ml_dtypes.finfo(ml_dtypes.bfloat16)


class iinfo:
    """Limits of an integer dtype: bits, max, min, dtype.

    Cost: O(1).
    See also: finfo.

    Examples
    --------
    >>> ow.iinfo(ow.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: Any, /) -> None:
        scalar = scalar_of_operand(type)
        if scalar not in KINDS["integral"]:
            raise DTypeError(f"iinfo: {type} is not an integer dtype\n  help: finfo() is for floating-point dtypes")
        self.dtype: Any = numpy_dtype(scalar)
        limits = np.iinfo(self.dtype)
        self.bits, self.max, self.min = limits.bits, int(limits.max), int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo({self.dtype}, min={self.min}, max={self.max})"
