# Made by `python tools/operations.py` from the blocks of operations; change those.
import builtins as _builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from . import decomposition as decomposition
from . import graph as graph
from . import io as io
from . import linalg as linalg
from . import masked as masked
from . import plot as plot
from . import nn as nn
from . import torch as torch
from .errors import BlockError as BlockError
from .errors import CompilerBug as CompilerBug
from .errors import ConvergenceWarning as ConvergenceWarning
from .errors import DTypeError as DTypeError
from .errors import FileFormatError as FileFormatError
from .errors import FormatError as FormatError
from .errors import InvariantError as InvariantError
from .errors import ReadOnlyError as ReadOnlyError
from .errors import ShapeError as ShapeError
from .errors import SizeError as SizeError
from .errors import UnsupportedError as UnsupportedError
from .advice import Advice as Advice
from .advice import advise as advise
from .codegen.cache import cache_info as cache_info
from .codegen.cache import clear_caches as clear_caches
from .codegen.cache import get_kernel_limit as get_kernel_limit
from .codegen.cache import set_kernel_limit as set_kernel_limit
from .codegen.notice import get_compile_notice as get_compile_notice
from .codegen.notice import set_compile_notice as set_compile_notice
from .codegen.pool import get_num_threads as get_num_threads
from .codegen.pool import set_num_threads as set_num_threads
from .io import convert as convert
from .io import open as open
from .io import read as read
from .io import write as write
from .linalg import Assembler as Assembler
from .linalg import assembler as assembler
from .masked import MaskedTensor as MaskedTensor
from .masked import as_masked_tensor as as_masked_tensor
from .masked import masked_tensor as masked_tensor
from .interop.constructors import assemble as assemble
from .interop.layouts import sparse_bsc_tensor as sparse_bsc_tensor
from .interop.layouts import sparse_bsr_tensor as sparse_bsr_tensor
from .interop.layouts import sparse_compressed_tensor as sparse_compressed_tensor
from .interop.layouts import sparse_coo_tensor as sparse_coo_tensor
from .interop.layouts import sparse_csc_tensor as sparse_csc_tensor
from .interop.layouts import sparse_csr_tensor as sparse_csr_tensor
from .interop.sklearn import to_sklearn as to_sklearn
from .interop.triplets import from_triplets as from_triplets
from .interop.triplets import to_triplets as to_triplets
from .tensor.dtypes import bool as bool
from .tensor.dtypes import complex64 as complex64
from .tensor.dtypes import complex128 as complex128
from .tensor.dtypes import e as e
from .tensor.dtypes import finfo as finfo
from .tensor.dtypes import float16 as float16
from .tensor.dtypes import float32 as float32
from .tensor.dtypes import float64 as float64
from .tensor.dtypes import iinfo as iinfo
from .tensor.dtypes import inf as inf
from .tensor.dtypes import int8 as int8
from .tensor.dtypes import int16 as int16
from .tensor.dtypes import int32 as int32
from .tensor.dtypes import int64 as int64
from .tensor.dtypes import isdtype as isdtype
from .tensor.dtypes import nan as nan
from .tensor.dtypes import newaxis as newaxis
from .tensor.dtypes import pi as pi
from .tensor.dtypes import uint8 as uint8
from .tensor.dtypes import uint16 as uint16
from .tensor.dtypes import uint32 as uint32
from .tensor.dtypes import uint64 as uint64
from .fusion.explain import Plan as Plan
from .fusion.explain import explain as explain
from .fusion.program import compute as compute
from .fusion.program import fused as fused
from .tensor.lazy import Lazy as Lazy
from .tensor.lazy import lazy as lazy
from .runtime.semirings import Monoid as Monoid
from .runtime.semirings import Semiring as Semiring
from .runtime.semirings import monoid as monoid
from .runtime.semirings import register_semiring as register_semiring
from .runtime.semirings import semiring as semiring
from .tensor.tensor import Tensor as Tensor
from .format import Format as Format
from .format import format as format
from .ops.namespace import __array_namespace_info__ as __array_namespace_info__
from .ops.reductions.order_statistics import TopK
from .ops.sets import UniqueAll, UniqueCounts, UniqueInverse

_Operand: TypeAlias = Tensor | _builtins.bool | int | float | complex | np.generic[Any]
__version__: str
__array_api_version__: str

@overload
def evaluate(statements: str, /, *, format: str | Format | None = None, semiring: str | Semiring | None = None, grad: str | None = None, **tensors: MaskedTensor) -> MaskedTensor:
    """What statements in index notation assign: products, elementwise expressions, reductions, in any mixture.

    Parameters
    ----------
    statements : one, or several separated by `;` or line ends, `#` begins a comment. `C[i, k] += A[i, j] * B[j, k]`,
        with parentheses too: `C(i, k) = A(i, j) * B(j, k)`. An index that the left side lacks is reduced: by `+=`
        `*=` `min=` `max=` `|=` `&=` over the whole right side, as loops over all indices would; by `any=` and `all=`,
        which ask for elements that are not 0; by `=` as a sum in each term that has it, so that
        `y(i) = b(i) - A(i, j) * x(j)` is a residual. `sum(j, A[i, j])` reduces where it stands; `prod`, `min`, `max`,
        `any`, `all` too. `C<M>[i, j] = ...` computes the elements at which M is not 0, `C<~M>[i, j]` the others. Later
        statements may use what earlier ones assign. Onto a tensor that is given or was assigned, operators combine,
        in its dtype where that is wider than the operands', and a mask keeps the elements that it leaves out
    format : of the last statement's result
    semiring : what `+`, `+=` and `*` are, a name or a Semiring; unspecified elements take no part. Without one they are
        fill values
    tensors : by the names that the statements use: Tensors, dense arrays, SciPy's and torch's, numbers; masked tensors,
        of which missing elements contribute nothing

    Returns
    -------
    what the last statement assigns: a Tensor where all operands are Tensors or numbers, else as `einsum` and the
    reductions give it; of rank 0 for a left side without indices; sparse under a mask, and where a dense result would
    need far more memory than the operands; masked where an operand is, unless the left side, which was not, is combined
    with it

    Guarantees: equal to the statement on the dense arrays up to the order of floating-point sums. Without an index to
    reduce as `pointwise`; for sums of products as `einsum`, term by term.
    Cost: that of `pointwise`, `einsum`, or of one fused reduction.
    Raises FormatError for what cannot be read, ShapeError where names, numbers of indices or extents do not fit, both
    with a caret under the place, UnsupportedError for what a semiring cannot say, TypeError for tensors that no
    statement uses.
    Source: index notation as in Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    See also: einsum, lazy, explain.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.evaluate("y[i] += A[i, j] * x[j]", A=A, x=np.array([10., 20.]))
    array([40., 10.])
    >>> ow.evaluate("C<A>[i, k] = A[i, j] * A[j, k]", A=A).nse
    0
    >>> ow.evaluate("T(i, j) = A(i, j) + A(j, i); s max= T(i, j)", A=A)
    Tensor(shape=(), dtype=float64, format="dense", nse=1, nbytes=8)"""
@overload
def evaluate(statements: str, /, *, format: str | Format | None = None, semiring: str | Semiring | None = None, grad: str | None = None, **tensors: Tensor) -> Tensor: ...
@overload
def evaluate(statements: str, /, *, format: str | Format | None = None, semiring: str | Semiring | None = None, grad: str | None = None, **tensors: Any) -> Any: ...
def asarray(obj: object, /, *, dtype: object = None, format: str | Format | None = None, fill_value: Any = 0, copy: _builtins.bool | None = None, device: object = None, like: object = None, grad: str | None = None) -> Tensor:
    """A Tensor of what `obj` holds.

    Parameters
    ----------
    obj : Tensor, nested lists, scalar, NumPy array, SciPy sparse array or matrix, torch tensor of any layout,
        pydata COO or GCXS, sparse frame, series or array of pandas, graph of networkx (its adjacency), sparse tensor
        of Arrow, anything with `__binsparse__`, `__dlpack__` or `__array__`
    dtype : of the result; default that of `obj`
    format : of the result; default the one that `obj` has, "dense" for dense arrays
    fill_value : elements of a dense `obj` that a sparse `format` leaves out
    copy : True always copies, False raises ValueError where a copy is needed, None copies where needed
    device : "cpu", "opencl", or torch's name of one; on "opencl", and of pyopencl's arrays, a `DeviceTensor`
    like : the library of the result's buffers, `torch`, `numpy` or a tensor over them; default that of `obj`. Memory on
        the CPU is shared. A `dtype` or `device` that is torch's own, torch.float32 say, asks for torch too

    Returns
    -------
    Tensor over the buffers of `obj` where they are contiguous. Duplicate or unsorted coordinates give a format
    that says so; what the buffers hold decides, not a flag.

    Raises DTypeError for elements that are no numbers, UnsupportedError for objects that are no arrays.

    Cost: nothing is copied where the format stays; else O(nse log nse).
    See also: assemble, read, Tensor.asformat.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1, 0]], format="csr")
    >>> A.pos(1), A.crd(1), A.values
    (array([0, 1, 2], dtype=int32), array([1, 0], dtype=int32), array([2., 1.]))"""
def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """`start`, `start + step`, ... up to but not including `stop`: dense unless `format=` is given.

    Parameters
    ----------
    start : the first number, or the end where `stop` is left out: then they begin at 0
    stop : the end, which is not included
    step : the distance between neighbours, which may be negative

    Returns
    -------
    Tensor of rank 1, dense by default

    Cost: O(size).
    See also: linspace, zeros.

    Examples
    --------
    >>> ow.arange(2, 8, 2).to_numpy()
    array([2, 4, 6])"""
def empty(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """A tensor of zeros, as `zeros` makes it: one that stores nothing has nothing to leave uninitialised.

    Returns
    -------
    Tensor of zeros, in COO unless `format` says otherwise

    Cost: O(1).
    See also: zeros.

    Examples
    --------
    >>> ow.empty((2, 3)).nse
    0"""
def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None, format: str | Format | None = None, shape: Any = None, order: str = 'K') -> Tensor:
    """A tensor of zeros with the shape, dtype and device of `x`, as `zeros_like` makes it.

    Returns
    -------
    Tensor of zeros, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1).
    See also: zeros_like.

    Examples
    --------
    >>> ow.empty_like(ow.eye(3)).shape
    (3, 3)"""
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """A matrix with ones on the diagonal `k` and zeros elsewhere: COO unless `format=` is given.

    It is of float64 unless `dtype=` is given.

    Parameters
    ----------
    n_rows : how many rows
    n_cols : how many columns; as many as rows if left out

    Returns
    -------
    Tensor of shape (n_rows, n_cols)

    Cost: O(n).
    See also: eye_array, diags_array, zeros.

    Examples
    --------
    >>> ow.eye(2, 3, k=1).to_numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]])"""
def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """`eye` in SciPy's format of it: DIA unless `format=` is given.

    Parameters
    ----------
    m : how many rows
    n : how many columns; as many as rows if left out

    Returns
    -------
    Tensor of shape (m, n)

    Cost: O(n).
    See also: eye, diags_array.

    Examples
    --------
    >>> ow.eye_array(3).format == ow.format("dia")
    True"""
def from_dlpack(x: Any, /, *, device: Any = None, copy: _builtins.bool | None = None) -> Tensor:
    """A dense Tensor over the memory of an object that has `__dlpack__`, copied only where `copy=True`.

    Returns
    -------
    Tensor in dense format, over the memory of `x`

    Cost: nothing is copied.
    See also: asarray.

    Examples
    --------
    >>> ow.from_dlpack(np.array([1.0, 2.0])).to_numpy()
    array([1., 2.])"""
def full(shape: int | Sequence[int], fill_value: Any, *, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """A tensor of one value everywhere.

    Parameters
    ----------
    shape : extents, or one extent
    fill_value : a Python scalar
    dtype : default bool, int64, float64 or complex128, by the kind of `fill_value`
    format : default COO, which stores nothing: the value is the tensor's fill value

    Returns
    -------
    Tensor of the shape `shape` whose elements are all `fill_value`

    Raises ShapeError for a negative extent, DTypeError for a value that the dtype has not.

    Cost: O(1); dense O(size).
    See also: full_like, zeros, ones.

    Examples
    --------
    >>> ow.full((3, 4), 2.5).nse
    0"""
def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None, format: str | Format | None = None, shape: Any = None, order: str = 'K') -> Tensor:
    """A tensor of one value everywhere, with the shape, dtype and device of `x` unless others are given.

    A dense `x` gives a dense tensor, column-major for `order="F"`, any other a COO tensor without stored elements.
    fill_value : a number, or an array that broadcasts to the shape: then a dense tensor, in `format` where one is given

    Returns
    -------
    Tensor of the shape of `x` whose elements are all `fill_value`

    Raises ShapeError for an array that does not broadcast.

    Cost: O(1); dense O(size).
    See also: full.

    Examples
    --------
    >>> ow.full_like(ow.eye(2), 7.0).to_numpy()
    array([[7., 7.],
           [7., 7.]])"""
def linspace(start: Any, stop: Any, /, num: int = 50, *, dtype: Any = None, device: Any = None, endpoint: _builtins.bool = True, format: str | Format | None = None) -> Tensor:
    """`num` numbers from `start` to `stop`, evenly spaced: dense unless `format=` is given.

    start, stop : numbers, those of a tensor of rank 0 among them, or arrays, between whose elements the numbers lie

    Parameters
    ----------
    num : how many numbers
    endpoint : whether `stop` is the last one

    Returns
    -------
    Tensor with `num` numbers, of rank 1 for numbers, along a new first dimension for arrays

    Cost: O(size).
    See also: arange.

    Examples
    --------
    >>> ow.linspace(0, 1, 3).to_numpy()
    array([0. , 0.5, 1. ])"""
def meshgrid(*arrays: Any, indexing: str = 'xy') -> list[Tensor]:
    """The dense coordinate tensors of the grid that vectors span, one for each vector.

    Parameters
    ----------
    indexing : "xy" for the first two dimensions exchanged, as in plots; "ij" for dimensions in the order of the vectors

    Returns
    -------
    list of Tensors, dense, one for each vector

    Cost: O(size).
    See also: broadcast_arrays.

    Examples
    --------
    >>> x, y = ow.meshgrid(ow.arange(3), ow.arange(2))
    >>> x.to_numpy()
    array([[0, 1, 2],
           [0, 1, 2]])"""
def ones(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """A tensor of ones: COO of fill value 1 without stored elements unless `format=` is given.

    Returns
    -------
    Tensor of ones, in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: ones_like, full, pattern.

    Examples
    --------
    >>> A = ow.ones((1000, 1000))
    >>> A.nse, A.fill_value
    (0, 1.0)"""
def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None, format: str | Format | None = None, shape: Any = None, order: str = 'K') -> Tensor:
    """A tensor of ones with the shape, dtype and device of `x` unless others are given, as `full_like` makes it.

    Returns
    -------
    Tensor of ones, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: full_like, pattern.

    Examples
    --------
    >>> ow.ones_like(ow.eye(2)).to_numpy()
    array([[1., 1.],
           [1., 1.]])"""
def zeros(shape: int | Sequence[int], *, dtype: Any = None, device: Any = None, format: str | Format | None = None) -> Tensor:
    """A tensor of zeros: COO without stored elements unless `format=` is given; float64 unless `dtype=` is.

    Returns
    -------
    Tensor of zeros, in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: zeros_like, full, eye.

    Examples
    --------
    >>> ow.zeros((1000, 1000)).nse
    0"""
def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None, format: str | Format | None = None, shape: Any = None, order: str = 'K') -> Tensor:
    """A tensor of zeros with the shape, dtype and device of `x` unless others are given, as `full_like` makes it.

    Returns
    -------
    Tensor of zeros, dense where `x` is, else in COO unless `format` says otherwise

    Cost: O(1); dense O(size).
    See also: zeros, full_like.

    Examples
    --------
    >>> ow.zeros_like(ow.eye(2)).to_numpy()
    array([[0., 0.],
           [0., 0.]])"""
@overload
def interp(x: MaskedTensor, xp: Any, fp: Any, /, *, left: Any = None, right: Any = None, period: Any = None, grad: str | None = None) -> MaskedTensor:
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
    array([ 0.,  5., 40.])"""
@overload
def interp(x: Any, xp: Any, fp: Any, /, *, left: Any = None, right: Any = None, period: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def isclose(a: MaskedTensor, b: Any, /, *, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
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
    array([ True,  True])"""
@overload
def isclose(a: Any, b: Any, /, *, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def isin(x: MaskedTensor, elements: Any, /, *, invert: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
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
    array([False,  True, False])"""
@overload
def isin(x: Any, elements: Any, /, *, invert: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nan_to_num(x: MaskedTensor, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, grad: str | None = None) -> MaskedTensor:
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
    array([0., 0., 2.])"""
@overload
def nan_to_num(x: Any, /, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def abs(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The absolute value of each element; that of a complex number is real.

    Cost: O(nse); the structure is shared.
    See also: sign, square, linalg.norm.

    Examples
    --------
    >>> A = ow.asarray([0, -2.5, 3.0], format="coo")
    >>> ow.abs(A).to_numpy()
    array([0. , 2.5, 3. ])"""
@overload
def abs(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def abs(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def acos(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The angle in radians whose cosine each element is, 0 to pi; NaN for real ones beyond -1 and 1.

    Cost: O(nse); the structure is shared.
    See also: cos, asin, atan2.

    Examples
    --------
    >>> angles = ow.acos(ow.asarray([0, 1.0], format="coo"))
    >>> angles.nse, round(angles.fill_value, 3)
    (1, 1.571)"""
@overload
def acos(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def acos(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def acosh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The inverse hyperbolic cosine of each element; NaN for real ones below 1.

    Cost: O(nse); the structure is shared.
    See also: cosh, asinh.

    Examples
    --------
    >>> ow.acosh(ow.asarray([1.0, 4.0])).to_numpy().round(3)
    array([0.   , 2.063])"""
@overload
def acosh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def acosh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def add(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 + x2` of elements, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: subtract, sum, pointwise.

    Examples
    --------
    >>> A = ow.eye(3, format="csr")
    >>> ow.add(A, A.T).nse, ow.add(A, 1).fill_value
    (3, 1.0)"""
@overload
def add(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def add(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def add(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def add(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def add(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def asin(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The angle in radians whose sine each element is, -pi / 2 to pi / 2; NaN for real ones beyond -1 and 1.

    Cost: O(nse); the structure is shared.
    See also: sin, acos, atan2.

    Examples
    --------
    >>> ow.asin(ow.asarray([0, 0.5, 1.0], format="coo")).to_numpy().round(3)
    array([0.   , 0.524, 1.571])"""
@overload
def asin(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def asin(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def asinh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The inverse hyperbolic sine of each element.

    Cost: O(nse); the structure is shared.
    See also: sinh, acosh.

    Examples
    --------
    >>> ow.asinh(ow.asarray([0, 100.0], format="coo")).to_numpy().round(3)
    array([0.   , 5.298])"""
@overload
def asinh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def asinh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def atan(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The angle in radians whose tangent each element is, -pi / 2 to pi / 2.

    Cost: O(nse); the structure is shared.
    See also: tan, atan2.

    Examples
    --------
    >>> ow.atan(ow.asarray([0, 1.0, np.inf], format="coo")).to_numpy().round(3)
    array([0.   , 0.785, 1.571])"""
@overload
def atan(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def atan(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def atan2(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """The angle in radians of each point (x2, x1), between -pi and pi, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: atan, hypot.

    Examples
    --------
    >>> y, x = ow.asarray([1.0, 0, -1], format="coo"), ow.asarray([1.0, 0, 0], format="coo")
    >>> ow.atan2(y, x).to_numpy().round(3)
    array([ 0.785,  0.   , -1.571])"""
@overload
def atan2(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def atan2(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def atan2(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def atan2(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def atan2(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def atanh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The inverse hyperbolic tangent of each element; NaN for real ones beyond -1 and 1.

    Cost: O(nse); the structure is shared.
    See also: tanh, log1p.

    Examples
    --------
    >>> ow.atanh(ow.asarray([0, 0.5], format="coo")).to_numpy().round(3)
    array([0.   , 0.549])"""
@overload
def atanh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def atanh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_and(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 & x2` of integers, bit by bit, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for floats and complex numbers.
    See also: bitwise_or, bitwise_xor, logical_and.

    Examples
    --------
    >>> flags = ow.asarray([0, 6, 7], format="coo")
    >>> ow.bitwise_and(flags, 2).to_numpy()
    array([0, 2, 2])"""
@overload
def bitwise_and(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def bitwise_and(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_and(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_and(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_and(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def bitwise_invert(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Every bit of each integer inverted; of bool, `not`.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for floats and complex numbers.
    See also: logical_not, bitwise_xor.

    Examples
    --------
    >>> flags = ow.asarray([0, 6], format="coo")
    >>> (~flags).to_numpy(), (~flags).fill_value
    (array([-1, -7]), -1)"""
@overload
def bitwise_invert(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_invert(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 << x2` of integers, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for floats and complex numbers.
    See also: bitwise_right_shift, multiply.

    Examples
    --------
    >>> ow.bitwise_left_shift(ow.asarray([0, 6, 1], format="coo"), 2).to_numpy()
    array([ 0, 24,  4])"""
@overload
def bitwise_left_shift(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def bitwise_left_shift(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_left_shift(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_left_shift(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_left_shift(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def bitwise_or(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 | x2` of integers, bit by bit, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for floats and complex numbers.
    See also: bitwise_and, bitwise_xor, logical_or.

    Examples
    --------
    >>> a, b = ow.asarray([0, 6], format="coo"), ow.asarray([1, 3], format="coo")
    >>> (a | b).to_numpy()
    array([1, 7])"""
@overload
def bitwise_or(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def bitwise_or(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_or(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_or(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_or(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def bitwise_right_shift(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 >> x2` of integers, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for floats and complex numbers.
    See also: bitwise_left_shift, floor_divide.

    Examples
    --------
    >>> ow.bitwise_right_shift(ow.asarray([0, 64, 9], format="coo"), 3).to_numpy()
    array([0, 8, 1])"""
@overload
def bitwise_right_shift(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def bitwise_right_shift(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_right_shift(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_right_shift(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_right_shift(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def bitwise_xor(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 ^ x2` of integers, bit by bit, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for floats and complex numbers.
    See also: bitwise_and, bitwise_or, logical_xor.

    Examples
    --------
    >>> a, b = ow.asarray([0, 6], format="coo"), ow.asarray([1, 3], format="coo")
    >>> (a ^ b).to_numpy()
    array([1, 5])"""
@overload
def bitwise_xor(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def bitwise_xor(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_xor(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def bitwise_xor(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def bitwise_xor(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def ceil(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The least integer that is not smaller than each element, in its dtype.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for complex numbers.
    See also: floor, trunc, round.

    Examples
    --------
    >>> ow.ceil(ow.asarray([0, -2.5, 1.2], format="coo")).to_numpy()
    array([ 0., -2.,  2.])"""
@overload
def ceil(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def ceil(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def conj(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The complex conjugate of each element; real ones stay as they are.

    Cost: O(nse); the structure is shared.
    See also: real, imag, Tensor.H.

    Examples
    --------
    >>> ow.conj(ow.asarray([1 + 2j, 3 - 1j])).to_numpy()
    array([1.-2.j, 3.+1.j])"""
@overload
def conj(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def conj(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def copysign(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """The magnitude of each element of x1 with the sign of that of x2, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: sign, signbit, abs.

    Examples
    --------
    >>> ow.copysign(ow.asarray([2.5, 3.0]), ow.asarray([-1.0, 4.0])).to_numpy()
    array([-2.5,  3. ])"""
@overload
def copysign(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def copysign(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def copysign(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def copysign(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def copysign(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def cos(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The cosine of each element, an angle in radians.

    Cost: O(nse); the structure is shared.
    See also: sin, tan, acos.

    Examples
    --------
    >>> waves = ow.cos(ow.asarray([0, np.pi, 0], format="coo"))
    >>> waves.nse, waves.fill_value
    (1, 1.0)"""
@overload
def cos(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def cos(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def cosh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The hyperbolic cosine of each element.

    Cost: O(nse); the structure is shared.
    See also: sinh, cos, acosh.

    Examples
    --------
    >>> ow.cosh(ow.asarray([0, 1.0], format="coo")).to_numpy().round(3)
    array([1.   , 1.543])"""
@overload
def cosh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def cosh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def divide(x1: Lazy, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """`x1 / x2` of elements, with broadcasting; integers and bool give floating-point numbers.

    zero_annihilates: an unspecified zero stays zero whatever it meets, as in SciPy; without, the result is NumPy's on the
    dense arrays (0 * inf, 0 * NaN and 0 / 0 are NaN), and one pass over the operands tells whether the two differ.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: multiply, floor_divide, remainder, reciprocal.

    Examples
    --------
    >>> counts = ow.asarray([[2, 0, 2], [0, 1, 0]], format="csr")
    >>> ow.divide(counts, counts.sum(axis=1, keepdims=True)).to_numpy()
    array([[0.5, 0. , 0.5],
           [0. , 1. , 0. ]])"""
@overload
def divide(x1: Any, x2: Lazy, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Lazy: ...
@overload
def divide(x1: MaskedTensor, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def divide(x1: Any, x2: MaskedTensor, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def divide(x1: _Operand, x2: _Operand, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def divide(x1: Any, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Any: ...
@overload
def equal(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 == x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: not_equal, isclose, isin.

    Examples
    --------
    >>> a, b = ow.eye(3, format="csr"), ow.eye(3, format="dia")
    >>> bool(ow.equal(a, b).all())
    True"""
@overload
def equal(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def equal(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def equal(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def equal(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def equal(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def erf(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The error function of each element x, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`.

    Cost: O(nse); the structure is shared.
    See also: exp, tanh.

    Examples
    --------
    >>> ow.erf(ow.asarray([0, 0.5, 2.0], format="coo")).to_numpy().round(3)
    array([0.   , 0.52 , 0.995])"""
@overload
def erf(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def erf(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def exp(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The exponential of each element, `e ** x`.

    Cost: O(nse); the structure is shared.
    See also: expm1, log, softmax, linalg.expm.

    Examples
    --------
    >>> grown = ow.exp(ow.asarray([0, 1.0], format="coo"))
    >>> grown.nse, grown.fill_value
    (1, 1.0)"""
@overload
def exp(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def exp(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def expm1(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`exp(x) - 1` of each element x, accurate near 0.

    Cost: O(nse); the structure is shared.
    See also: exp, log1p.

    Examples
    --------
    >>> ow.expm1(ow.asarray([0, 1e-20, 1.0], format="coo")).to_numpy()
    array([0.00000000e+00, 1.00000000e-20, 1.71828183e+00])"""
@overload
def expm1(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def expm1(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def floor(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The greatest integer that is not larger than each element, in its dtype.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for complex numbers.
    See also: ceil, trunc, floor_divide.

    Examples
    --------
    >>> ow.floor(ow.asarray([0, -2.5, 1.8], format="coo")).to_numpy()
    array([ 0., -3.,  1.])"""
@overload
def floor(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def floor(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def floor_divide(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 // x2` of elements, rounded down, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: divide, remainder, floor.

    Examples
    --------
    >>> ow.floor_divide(ow.asarray([0, 7, -7], format="coo"), 2).to_numpy()
    array([ 0,  3, -4])"""
@overload
def floor_divide(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def floor_divide(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def floor_divide(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def floor_divide(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def floor_divide(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def greater(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 > x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: greater_equal, less, maximum.

    Examples
    --------
    >>> A = ow.asarray([0, 0.5, 2], format="coo")
    >>> (A * ow.greater(A, 1)).prune().nse
    1"""
@overload
def greater(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def greater(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def greater(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def greater(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def greater(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def greater_equal(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 >= x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: greater, less_equal.

    Examples
    --------
    >>> A = ow.asarray([0, 5, -3], format="coo")
    >>> ow.greater_equal(A, 5).to_numpy()
    array([False,  True, False])"""
@overload
def greater_equal(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def greater_equal(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def greater_equal(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def greater_equal(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def greater_equal(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def hypot(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`sqrt(x1**2 + x2**2)` of elements without overflow, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: sqrt, atan2, linalg.vector_norm.

    Examples
    --------
    >>> ow.hypot(ow.asarray([3.0, 0], format="coo"), ow.asarray([4.0, 0], format="coo")).to_numpy()
    array([5., 0.])"""
@overload
def hypot(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def hypot(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def hypot(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def hypot(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def hypot(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def imag(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The imaginary part of each element, 0 of real ones.

    Cost: O(nse); the structure is shared.
    See also: real, conj.

    Examples
    --------
    >>> ow.imag(ow.asarray([0, 1 + 2j], format="coo")).to_numpy()
    array([0., 2.])"""
@overload
def imag(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def imag(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def isfinite(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Whether each element is neither infinite nor NaN.

    Cost: O(nse); the structure is shared.
    See also: isinf, isnan, nan_to_num.

    Examples
    --------
    >>> fine = ow.isfinite(ow.asarray([0, np.nan, 1.0], format="coo"))
    >>> fine.to_numpy(), fine.fill_value
    (array([ True, False,  True]), True)"""
@overload
def isfinite(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def isfinite(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def isinf(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Whether each element is infinite, of either sign.

    Cost: O(nse); the structure is shared.
    See also: isfinite, isnan.

    Examples
    --------
    >>> bool(ow.isinf(ow.asarray([0, -np.inf, 1.0], format="coo")).any())
    True"""
@overload
def isinf(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def isinf(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def isnan(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Whether each element is NaN.

    Cost: O(nse); the structure is shared.
    See also: isfinite, nan_to_num, nansum.

    Examples
    --------
    >>> int(ow.isnan(ow.asarray([0, np.nan, 1.0], format="coo")).sum())
    1"""
@overload
def isnan(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def isnan(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def less(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 < x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: less_equal, greater, minimum.

    Examples
    --------
    >>> A = ow.asarray([0, 5, -3], format="coo")
    >>> ow.less(A, 0).to_numpy()
    array([False, False,  True])"""
@overload
def less(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def less(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def less(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def less(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def less(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def less_equal(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 <= x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: less, greater_equal.

    Examples
    --------
    >>> within = ow.less_equal(ow.asarray([0, 5, -3], format="coo"), 0)
    >>> within.nse, within.fill_value
    (2, True)"""
@overload
def less_equal(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def less_equal(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def less_equal(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def less_equal(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def less_equal(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def log(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The natural logarithm of each element: -inf at 0, NaN for real ones below.

    Cost: O(nse); the structure is shared.
    See also: log1p, log2, log10, exp.

    Examples
    --------
    >>> ow.log(ow.asarray([1.0, np.e])).to_numpy()
    array([0., 1.])"""
@overload
def log(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def log(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def log10(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The logarithm to base 10 of each element: -inf at 0, NaN for real ones below.

    Cost: O(nse); the structure is shared.
    See also: log, log2.

    Examples
    --------
    >>> ow.log10(ow.asarray([1.0, 1000.0])).to_numpy()
    array([0., 3.])"""
@overload
def log10(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def log10(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def log1p(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`log(1 + x)` of each element x, accurate near 0.

    Cost: O(nse); the structure is shared.
    See also: log, expm1.

    Examples
    --------
    >>> counts = ow.asarray([[0, 9], [0, 99]], format="csr")
    >>> ow.log1p(counts).values.round(3)
    array([2.303, 4.605])"""
@overload
def log1p(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def log1p(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def log2(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The logarithm to base 2 of each element: -inf at 0, NaN for real ones below.

    Cost: O(nse); the structure is shared.
    See also: log, log10.

    Examples
    --------
    >>> ow.log2(ow.asarray([1.0, 8.0])).to_numpy()
    array([0., 3.])"""
@overload
def log2(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def log2(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logaddexp(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`log(exp(x1) + exp(x2))` of elements without overflow, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: logsumexp, log1p, maximum.

    Examples
    --------
    >>> ow.logaddexp(ow.asarray([-1000.0, 0]), ow.asarray([-1000.0, 1])).to_numpy().round(3)
    array([-999.307,    1.313])"""
@overload
def logaddexp(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def logaddexp(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logaddexp(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logaddexp(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logaddexp(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def logical_and(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """Whether both elements are not zero, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: logical_or, logical_not, all, bitwise_and.

    Examples
    --------
    >>> a, b = ow.asarray([0, 2, 3], format="coo"), ow.asarray([1, 0, 5], format="coo")
    >>> ow.logical_and(a, b).to_numpy()
    array([False, False,  True])"""
@overload
def logical_and(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def logical_and(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_and(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_and(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logical_and(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def logical_not(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Whether each element is zero.

    Cost: O(nse); the structure is shared.
    See also: logical_and, equal, bitwise_invert.

    Examples
    --------
    >>> empty = ow.logical_not(ow.eye(1000, format="csr"))
    >>> empty.nse, int(empty.sum())
    (1000, 999000)"""
@overload
def logical_not(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_not(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logical_or(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """Whether one of two elements, or both, are not zero, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: logical_and, logical_xor, any, bitwise_or.

    Examples
    --------
    >>> a, b = ow.asarray([0, 2, 0], format="coo"), ow.asarray([0, 1, 5], format="coo")
    >>> ow.logical_or(a, b).to_numpy()
    array([False,  True,  True])"""
@overload
def logical_or(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def logical_or(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_or(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_or(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logical_or(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def logical_xor(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """Whether exactly one of two elements is not zero, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: logical_or, not_equal, bitwise_xor.

    Examples
    --------
    >>> a, b = ow.asarray([0, 2, 0], format="coo"), ow.asarray([0, 1, 5], format="coo")
    >>> ow.logical_xor(a, b).to_numpy()
    array([False, False,  True])"""
@overload
def logical_xor(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def logical_xor(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_xor(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def logical_xor(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def logical_xor(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def maximum(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """The larger of two elements, NaN where one is NaN, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: minimum, max, clip.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [5, 0]], format="csr")
    >>> ow.maximum(A, A.T).to_numpy()  # symmetric
    array([[0, 5],
           [5, 0]])"""
@overload
def maximum(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def maximum(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def maximum(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def maximum(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def maximum(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def minimum(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """The smaller of two elements, NaN where one is NaN, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: maximum, min, clip.

    Examples
    --------
    >>> ow.minimum(ow.asarray([0, 5, -3], format="coo"), 2).to_numpy()
    array([ 0,  2, -3])"""
@overload
def minimum(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def minimum(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def minimum(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def minimum(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def minimum(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def multiply(x1: Lazy, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """`x1 * x2` of elements, with broadcasting.

    zero_annihilates: an unspecified zero stays zero whatever it meets, as in SciPy; without, the result is NumPy's on the
    dense arrays (0 * inf, 0 * NaN and 0 / 0 are NaN), and one pass over the operands tells whether the two differ.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: divide, matmul, outer, pointwise.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [5, 1]], format="csr")
    >>> ow.multiply(A, np.array([[10], [1]])).to_numpy()
    array([[ 0, 20],
           [ 5,  1]])"""
@overload
def multiply(x1: Any, x2: Lazy, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Lazy: ...
@overload
def multiply(x1: MaskedTensor, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def multiply(x1: Any, x2: MaskedTensor, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def multiply(x1: _Operand, x2: _Operand, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def multiply(x1: Any, x2: Any, /, *, zero_annihilates: _builtins.bool = False, grad: str | None = None) -> Any: ...
@overload
def negative(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`-x` of each element x.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for bool.
    See also: subtract, abs.

    Examples
    --------
    >>> ow.negative(ow.asarray([0, -2, 3], format="coo")).to_numpy()
    array([ 0,  2, -3])"""
@overload
def negative(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def negative(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def nextafter(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """The next floating-point number after each element of x1 towards that of x2, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: finfo, isclose.

    Examples
    --------
    >>> float(ow.nextafter(ow.asarray(1.0), ow.asarray(2.0)) - 1.0)
    2.220446049250313e-16"""
@overload
def nextafter(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def nextafter(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def nextafter(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def nextafter(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def nextafter(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def not_equal(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 != x2` of elements, with broadcasting: a tensor of bool.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: equal, isclose.

    Examples
    --------
    >>> a, b = ow.asarray([0, 2, 3], format="coo"), ow.asarray([0, 2, 4], format="csf")
    >>> int(ow.not_equal(a, b).sum())
    1"""
@overload
def not_equal(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def not_equal(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def not_equal(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def not_equal(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def not_equal(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def positive(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`+x`: the elements in memory of their own, as NumPy's; pos and crd are shared.

    Cost: O(nse).
    See also: negative, copy.

    Examples
    --------
    >>> ow.positive(ow.asarray([0, 2], format="coo")).to_numpy()
    array([0, 2])"""
@overload
def positive(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def pow(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 ** x2` of elements, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast.
    See also: square, sqrt, exp, linalg.matrix_power.

    Examples
    --------
    >>> A = ow.asarray([0, 2, 3], format="coo")
    >>> ow.pow(A, 2).to_numpy()
    array([0, 4, 9])"""
@overload
def pow(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def pow(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def pow(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def pow(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def pow(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def real(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The real part of each element.

    Cost: O(nse); the structure is shared.
    See also: imag, conj, abs.

    Examples
    --------
    >>> ow.real(ow.asarray([0, 1 + 2j], format="coo")).to_numpy()
    array([0., 1.])"""
@overload
def real(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def real(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def reciprocal(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`1 / x` of each element x, infinite at 0; of NumPy's integers the integer part.

    Cost: O(nse); the structure is shared.
    See also: divide, rsqrt.

    Examples
    --------
    >>> ow.reciprocal(ow.asarray([1.0, 4.0])).to_numpy()
    array([1.  , 0.25])"""
@overload
def reciprocal(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def reciprocal(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def remainder(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 % x2` of elements, with the sign of x2, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for complex numbers.
    See also: floor_divide, divide.

    Examples
    --------
    >>> ow.remainder(ow.asarray([0, 7, -7], format="coo"), 4).to_numpy()
    array([0, 3, 1])"""
@overload
def remainder(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def remainder(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def remainder(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def remainder(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def remainder(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def round(x: Lazy, /, decimals: int = 0, *, grad: str | None = None) -> Lazy:
    """The nearest number with so many decimal places, integers without; the even one of two.

    decimals : places behind the point; negative ones count in front of it. Integers stay integers.

    Cost: O(nse).
    See also: floor, ceil, trunc.

    Examples
    --------
    >>> ow.round(ow.asarray([0, 2.57], format="coo"), 1).to_numpy()
    array([0. , 2.6])"""
@overload
def round(x: MaskedTensor, /, decimals: int = 0, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def round(x: Any, /, decimals: int = 0, *, grad: str | None = None) -> Tensor: ...
@overload
def rsqrt(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The reciprocal of the square root, `1 / sqrt(x)`: infinite at 0, NaN below.

    Cost: O(nse).
    See also: sqrt, reciprocal.

    Examples
    --------
    >>> ow.rsqrt(ow.asarray([1.0, 4.0])).to_numpy()
    array([1. , 0.5])"""
@overload
def rsqrt(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def rsqrt(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def sign(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The sign of each element: -1, 0 or 1; a complex number divided by its absolute value.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for bool.
    See also: abs, signbit, copysign.

    Examples
    --------
    >>> ow.sign(ow.asarray([0, -2.5, 7.0], format="coo")).to_numpy()
    array([ 0., -1.,  1.])"""
@overload
def sign(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def sign(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def signbit(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """Whether the sign bit of each element is set, that of -0.0 included.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for complex numbers.
    See also: sign, copysign, less.

    Examples
    --------
    >>> ow.signbit(ow.asarray([1.0, -0.0])).to_numpy()
    array([False,  True])"""
@overload
def signbit(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def signbit(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def sin(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The sine of each element, an angle in radians.

    Cost: O(nse); the structure is shared.
    See also: cos, tan, asin.

    Examples
    --------
    >>> waves = ow.sin(ow.asarray([0, np.pi / 2, 0], format="coo"))
    >>> waves.nse, waves.to_numpy()
    (1, array([0., 1., 0.]))"""
@overload
def sin(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def sin(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def sinh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The hyperbolic sine of each element.

    Cost: O(nse); the structure is shared.
    See also: cosh, sin, asinh.

    Examples
    --------
    >>> ow.sinh(ow.asarray([0, 1.0], format="coo")).to_numpy().round(3)
    array([0.   , 1.175])"""
@overload
def sinh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def sinh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def sqrt(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The square root of each element; NaN for real ones below 0.

    Cost: O(nse); the structure is shared.
    See also: rsqrt, square, hypot.

    Examples
    --------
    >>> A = ow.asarray([[0, 4.0], [9.0, 0]], format="csr")
    >>> ow.sqrt(A).values
    array([2., 3.])"""
@overload
def sqrt(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def sqrt(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def square(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """`x * x` of each element x.

    Cost: O(nse); the structure is shared.
    See also: sqrt, pow, multiply.

    Examples
    --------
    >>> A = ow.asarray([[0, 3.0], [4.0, 0]], format="csr")
    >>> float(ow.square(A).sum()) ** 0.5
    5.0"""
@overload
def square(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def square(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def subtract(x1: Lazy, x2: Any, /, *, grad: str | None = None) -> Lazy:
    """`x1 - x2` of elements, with broadcasting.

    Cost: O(nse of both), or O(size) where the result is dense.
    Raises ShapeError where the shapes do not broadcast, DTypeError for bool.
    See also: add, negative, diff.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [5, 1]], format="csr")
    >>> ow.subtract(A, A.T).to_numpy()
    array([[ 0, -3],
           [ 3,  0]])"""
@overload
def subtract(x1: Any, x2: Lazy, /, *, grad: str | None = None) -> Lazy: ...
@overload
def subtract(x1: MaskedTensor, x2: Any, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def subtract(x1: Any, x2: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def subtract(x1: _Operand, x2: _Operand, /, *, grad: str | None = None) -> Tensor: ...
@overload
def subtract(x1: Any, x2: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def tan(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The tangent of each element, an angle in radians.

    Cost: O(nse); the structure is shared.
    See also: sin, cos, atan.

    Examples
    --------
    >>> ow.tan(ow.asarray([0, np.pi / 4], format="coo")).to_numpy().round(3)
    array([0., 1.])"""
@overload
def tan(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def tan(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def tanh(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The hyperbolic tangent of each element.

    Cost: O(nse); the structure is shared.
    See also: sinh, cosh, atanh.

    Examples
    --------
    >>> ow.tanh(ow.asarray([0, 0.5, 100.0], format="coo")).to_numpy().round(3)
    array([0.   , 0.462, 1.   ])"""
@overload
def tanh(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def tanh(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def trunc(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The integer part of each element, in its dtype.

    Cost: O(nse); the structure is shared.
    Raises DTypeError for complex numbers.
    See also: floor, ceil, round.

    Examples
    --------
    >>> ow.trunc(ow.asarray([0, -2.5, 1.8], format="coo")).to_numpy()
    array([ 0., -2.,  1.])"""
@overload
def trunc(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def trunc(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def pointwise(expression: MaskedTensor, tensors: Mapping[str, Tensor], format: str | Format | None = None, *, zero_annihilates: _builtins.bool = False, missing: Any = ..., grad: str | None = None) -> MaskedTensor:
    """Any elementwise expression over sparse tensors, in one pass; products that leave few elements go first.

    Parameters
    ----------
    expression : index notation, such as "A[i, j] * B[i, j] + C[j]" or "D[i, j] = A[i, j] - B[j, i]"; accesses without
        indices are aligned at the last dimension, as NumPy broadcasts
    tensors : by name; those of rank 0 too
    format : of the result; without, that of the operands (see `merge`)
    zero_annihilates : an unspecified zero makes a product zero even where it meets infinity or NaN. Without, the
        result is NumPy's, at the cost of asking whether values are finite; a product with a function that has no bound,
        as in "A * exp(B)", is then computed wherever any operand is specified
    missing : tensors whose unspecified elements have no value, as those of masked tensors. An operation on one has
        none either, but for `either(A, B)`, which is B where A is missing, `given(A, B)`, which is A where both are
        there, and `where(C, A, B)`, which asks the branch that it takes

    Returns
    -------
    Tensor; the result's dimensions are those of the left side, or the indices in order of appearance. With `missing` it
    specifies the elements that have a value

    Guarantees: equal to NumPy's result on the dense arrays, see `merge`.
    Raises ShapeError where shapes do not agree, UnsupportedError for reductions.

    Cost: O(nse of all operands).
    See also: lazy, evaluate.

    Examples
    --------
    >>> A = ow.asarray([0, 2.0], format="coo")
    >>> ow.pointwise("A + 2 * B", {"A": A, "B": A}).to_numpy()
    array([0., 6.])"""
@overload
def pointwise(expression: Any, tensors: Mapping[str, Tensor], format: str | Format | None = None, *, zero_annihilates: _builtins.bool = False, missing: Any = ..., grad: str | None = None) -> Tensor: ...
@overload
def clip(x: Lazy, /, min: Any = None, max: Any = None, *, grad: str | None = None) -> Lazy:
    """`x` limited to between `min` and `max`, each a scalar, an array that broadcasts, or None for no limit.

    The dtype is that of `x` where the limits are of its kind, as the standard says, else the one that `x` and the
    limits promote to, as NumPy's: integers between floats are floats. An integer beyond those of the dtype of `x`
    limits nothing.

    Parameters
    ----------
    min : the lower limit, None for none
    max : the upper limit, None for none

    Cost: O(nse).
    See also: maximum, minimum.

    Examples
    --------
    >>> ow.clip(ow.asarray([0, 5, -3], format="coo"), -1, 2).to_numpy()
    array([ 0,  2, -1])"""
@overload
def clip(x: MaskedTensor, /, min: Any = None, max: Any = None, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def clip(x: Any, /, min: Any = None, max: Any = None, *, grad: str | None = None) -> Tensor: ...
@overload
def where(condition: Lazy, x1: Any = None, x2: Any = None, /, *, grad: str | None = None) -> Lazy:
    """`x1` where `condition` is true, else `x2`, with broadcasting; either may be a Python scalar.

    Without both, where it is true: the coordinates of the elements that are not zero, as `nonzero` gives them.

    Parameters
    ----------
    condition : what decides; an element that is not zero counts as true

    Returns
    -------
    Tensor, dense where all operands are; else by co-iteration, in the format that `pointwise` finds, its
    fill value the choice of the fill values

    Raises ShapeError if the shapes do not broadcast, or one of `x1` and `x2` alone is given.

    Cost: O(nse of all operands); dense O(size).
    See also: clip, nonzero, masked.select.

    Examples
    --------
    >>> A = ow.asarray([0, 5, -3], format="coo")
    >>> ow.where(A > 0, A, 0).to_numpy()
    array([0, 5, 0])"""
@overload
def where(condition: MaskedTensor, x1: Any = None, x2: Any = None, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def where(condition: Any, x1: Any = None, x2: Any = None, /, *, grad: str | None = None) -> Tensor: ...
def iso(x: Any, value: Any = None, /, *, dtype: Any = None) -> Tensor:
    """One value at every specified element, which takes no memory for each: an iso tensor, as GraphBLAS calls it.

    Parameters
    ----------
    x : Tensor, any format
    value : a number; without one, the value that all elements have already
    dtype : of the result; that of `x` without

    Returns
    -------
    Tensor in the structure of `x`, over the same pos and crd. `values` is as long as that of `x`: over NumPy buffers a
    read-only array of stride 0, over torch's, which can be written to, the values that the tensor has from then on.
    Every operation takes it; transposes, selections, reshapes, conversions to formats without padding, functions of it
    and with a number (over NumPy buffers), pickles and binsparse files are iso too; in-place forms, `clone()`, merges
    and joins give values of their own.

    Guarantees: iso(x, v).nbytes is that of the indices and one value; equal to x.with_values(v) for a v of its dtype.
    Raises InvariantError where no value is given and the elements have several, UnsupportedError for recorded values.
    Cost: O(1) with a value; without one O(nse), to see that all are the same.
    See also: pattern, with_values.

    Examples
    --------
    >>> import openwork as ow
    >>> A = ow.iso(ow.sparse_coo_tensor([[0, 1], [1, 1]], [3.0, 2.0], (2, 2)), 1)
    >>> A.is_iso, (A * 2).is_iso, A.to_numpy().tolist()
    (True, True, [[0.0, 1.0], [0.0, 1.0]])"""
@overload
def pattern(x: MaskedTensor, /) -> MaskedTensor:
    """True at every specified element, whatever its value, False elsewhere: a bool tensor over the same pos and crd.

    Returns
    -------
    Tensor of bool with fill value False, in the format of `x`; a dense format specifies every element

    Guarantees: pattern(x).nse == x.nse; pattern(prune(x)) is True where `x` is not its fill value.

    Cost: O(nse).
    See also: with_values, prune, ones_like.

    Examples
    --------
    >>> import openwork as ow
    >>> A = ow.sparse_coo_tensor([[0, 1], [1, 1]], [0.0, 2.0], (2, 2))
    >>> ow.pattern(A).to_numpy().tolist()
    [[False, True], [False, True]]"""
@overload
def pattern(x: Any, /) -> Tensor: ...
def with_values(x: Any, values: Any, /, *, fill_value: Any = None, grad: str | None = None) -> Tensor:
    """Other values in the structure of `x`, over the same pos and crd.

    Parameters
    ----------
    x : Tensor, any format
    values : as many as `x.values` has, in its order, padding of blocks and diagonals included, or one number
    fill_value : of the result; that of `x`, converted, without

    Returns
    -------
    Tensor with the dtype of `values` and buffers of the library of `x`; values that torch records stay on the graph

    Raises ShapeError for another number of values, and for the values of a tensor that is stored in another order than
    `x`, of which one is unordered or has duplicates: with_values(K, f(K).values) where f sorts.

    Cost: O(1): the structure is shared.
    See also: pattern, Tensor.clone.

    Examples
    --------
    >>> A = ow.eye(2)
    >>> ow.with_values(A, [5.0, 6.0]).to_numpy()
    array([[5., 0.],
           [0., 6.]])"""
def prune(x: Any, threshold: Any = 0, /, *, grad: str | None = None) -> Tensor:
    """Without the elements that differ from the fill value by no more than `threshold`.

    Parameters
    ----------
    threshold : 0 leaves out what equals the fill value only, -0.0 where that is 0.0; NaN stays, unless the fill value
        is NaN

    Raises DTypeError for a threshold that is no number, ValueError for one that is negative or NaN.

    Guarantees: nse(out) <= nse(x), every kept value as it was.

    Cost: O(nse).
    See also: pattern, sparse_mask, Tensor.eliminate_zeros.

    Examples
    --------
    >>> A = ow.asarray([0, 0.1, 2.0], format="coo")
    >>> ow.prune(A, 0.5).to_numpy()
    array([0., 0., 2.])"""
def sparse_mask(x: Any, mask: Any, /, *, grad: str | None = None) -> Tensor:
    """The elements of `x` that `mask` specifies, in the structure of `mask`; its values play no part.

    Parameters
    ----------
    x : tensor of any format, or array
    mask : Tensor of the same shape

    Returns
    -------
    Tensor over pos and crd of `mask`, with the dtype and fill value of `x`; what `x` does not specify is its fill
    value, stored. A mask that stores an element twice is coalesced first.

    Cost: O(nse of both) where they are walked in one order, a search per element of `mask` otherwise.
    Raises ShapeError where the shapes differ.

    See also: sddmm, pattern, prune.

    Examples
    --------
    >>> A = ow.asarray([[1, 2], [3, 4]])
    >>> ow.sparse_mask(A, ow.eye(2, format="csr")).to_numpy()
    array([[1, 0],
           [0, 4]])"""
@overload
def take(x: MaskedTensor, indices: Any, /, *, axis: int | None = None, grad: str | None = None) -> MaskedTensor:
    """The elements at `indices` along `axis`; negative ones count from the end, repeated ones are taken again.

    Parameters
    ----------
    indices : int, or a vector of them

    Raises IndexError for an index out of bounds.

    Cost: O(nse of what is taken) in compressed rows, else O(nse).
    See also: take_along_axis, Tensor.__getitem__.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 0]], format="csr")
    >>> ow.take(A, [1, 1], axis=0).to_numpy()
    array([[1, 0],
           [1, 0]])"""
@overload
def take(x: Any, indices: Any, /, *, axis: int | None = None, grad: str | None = None) -> Tensor: ...
@overload
def take_along_axis(x: MaskedTensor, indices: Any, /, *, axis: int = -1, grad: str | None = None) -> MaskedTensor:
    """For each place of `indices`, of the rank of `x`, the element whose coordinate along `axis` stands there.

    `indices` broadcasts with `x` beside `axis`.

    Parameters
    ----------
    indices : coordinates along `axis`

    Cost: O(size of the places).
    See also: take, argsort.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 0]], format="csr")
    >>> ow.take_along_axis(A, np.array([[1], [0]]), axis=1).to_numpy()
    array([[2],
           [1]])"""
@overload
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1, grad: str | None = None) -> Tensor: ...
def block_array(blocks: Sequence[Sequence[Any]], /, *, format: str | Format | None = None, dtype: Any = None, grad: str | None = None) -> Tensor:
    """The matrix whose blocks are the entries of a grid; None is a block of zeros.

    Parameters
    ----------
    blocks : rows of matrices; those of a row have as many rows, those of a column as many columns, and one of each at
        least is no None
    format : of the result; that of the first sparse block without, COO where all are dense

    Returns
    -------
    Tensor of rank 2, canonical. Cost: O(nse).
    Raises ShapeError where extents do not agree or do not follow.

    See also: block_diag, hstack, vstack, concat.

    Examples
    --------
    >>> ow.block_array([[[[1, 2]], None], [None, [[3]]]]).to_numpy().tolist()
    [[1, 2, 0], [0, 0, 3]]"""
def block_diag(blocks: Sequence[Any], /, format: str | Format | None = None, dtype: Any = None, *, grad: str | None = None) -> Tensor:
    """The matrix with the operands along its diagonal, one after the other, and zeros elsewhere.

    Parameters
    ----------
    blocks : matrices of any shapes and formats; vectors and scalars are rows
    format : of the result; that of the first sparse block without, COO where all are dense

    Returns
    -------
    Tensor of rank 2, canonical. Cost: O(nse).

    See also: block_array, kron.

    Examples
    --------
    >>> ow.block_diag([[[1, 2]], 3]).to_numpy().tolist()
    [[1, 2, 0], [0, 0, 3]]"""
@overload
def hstack(blocks: Sequence[MaskedTensor], format: str | Format | None = None, dtype: Any = None, *, grad: str | None = None) -> MaskedTensor:
    """The operands side by side: joined along dimension 1, vectors along their only one.

    Parameters
    ----------
    blocks : tensors of any formats that agree in the other dimensions
    format : of the result; that of the first sparse operand without
    dtype : of the result; the promotion of the operands' without

    Cost: O(nse). Raises what `concat` raises.

    See also: vstack, concat, block_array.

    Examples
    --------
    >>> A = ow.eye(2, format="csr")
    >>> ow.hstack([A, 2 * A]).to_numpy()
    array([[1., 0., 2., 0.],
           [0., 1., 0., 2.]])"""
@overload
def hstack(blocks: Sequence[Any], format: str | Format | None = None, dtype: Any = None, *, grad: str | None = None) -> Tensor: ...
@overload
def vstack(blocks: Sequence[MaskedTensor], format: str | Format | None = None, dtype: Any = None, *, grad: str | None = None) -> MaskedTensor:
    """The operands one above the other: joined along dimension 0, vectors as rows; arguments as those of `hstack`.

    Parameters
    ----------
    blocks : tensors of any formats that agree in the other dimensions

    Cost: O(nse).
    See also: hstack, concat, block_array.

    Examples
    --------
    >>> A = ow.asarray([[0, 2]], format="csr")
    >>> ow.vstack([A, A]).to_numpy()
    array([[0, 2],
           [0, 2]])"""
@overload
def vstack(blocks: Sequence[Any], format: str | Format | None = None, dtype: Any = None, *, grad: str | None = None) -> Tensor: ...
def diags_array(diagonals: Any, /, *, offsets: int | Sequence[int] = 0, shape: Sequence[int] | None = None, format: str | Format | None = None, dtype: Any = None, grad: str | None = None) -> Tensor:
    """The matrix with vectors on its diagonals and zeros elsewhere.

    Parameters
    ----------
    diagonals : vectors, from the top left on, one for each offset, or one vector for one offset; a scalar or a
        vector of one element fills its diagonal, where `shape` says how long that is; longer ones are cut
    offsets : elements (i, i + offset) are those of the diagonal; no two alike
    shape : of the matrix; square and as large as the first diagonal needs without
    format : of the result, "dia" without
    dtype : of the result; the promotion of the diagonals' without

    Returns
    -------
    Tensor of rank 2, in the format `format`

    Raises ShapeError for a diagonal that is too short or lies outside, or for offsets that do not fit the diagonals.

    Cost: O(elements of the diagonals).
    See also: diag, eye_array, kronsum.

    Examples
    --------
    >>> ow.diags_array([[1, 2], [3]], offsets=[0, 1]).to_numpy().tolist()
    [[1, 3], [0, 2]]"""
@overload
def diff(x: MaskedTensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None, grad: str | None = None) -> MaskedTensor:
    """The n-th differences of neighbours along `axis`: element k + 1 minus element k, n times.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value
    axis : the dimension, which loses n elements (all of them, where it has fewer)
    prepend, append : tensors that are joined to `x` along `axis` before, of its fill value
    n : how often differences are taken

    Returns
    -------
    Tensor, sparse where `x` is, with fill value 0 (NaN, where that of `x` is not finite); of bool, whether neighbours
    differ

    Cost: O(n * nse).
    Raises AxisError for an axis that is not there, ShapeError for a negative n.

    See also: cumulative_sum.

    Examples
    --------
    >>> ow.diff(ow.asarray([0, 2, 2, 7], format="coo")).to_numpy()
    array([2, 0, 5])"""
@overload
def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def concat(arrays: Sequence[MaskedTensor], /, *, axis: int | None = 0, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """The operands one behind the other along `axis`; with None, their elements in row-major order.

    Parameters
    ----------
    arrays : tensors of one shape but for `axis`, one fill value, any formats
    format : of the result; that of the first sparse operand without

    Returns
    -------
    Tensor, canonical; its dtype is the promotion of the operands'. Dense where every operand is.

    `concatenate` is the same function.

    Cost: O(nse). Raises ShapeError where shapes differ, UnsupportedError where fill values do.

    See also: stack, hstack, vstack, block_array.

    Examples
    --------
    >>> ow.concat([ow.asarray([0, 2], format="coo"), ow.zeros((2,), dtype="int64")]).to_numpy()
    array([0, 2, 0, 0])"""
@overload
def concat(arrays: Sequence[Any], /, *, axis: int | None = 0, format: str | Format | None = None, grad: str | None = None) -> Tensor: ...
@overload
def concatenate(arrays: Sequence[MaskedTensor], /, *, axis: int | None = 0, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """The operands one behind the other along `axis`; with None, their elements in row-major order.

    Parameters
    ----------
    arrays : tensors of one shape but for `axis`, one fill value, any formats
    format : of the result; that of the first sparse operand without

    Returns
    -------
    Tensor, canonical; its dtype is the promotion of the operands'. Dense where every operand is.

    `concatenate` is the same function.

    Cost: O(nse). Raises ShapeError where shapes differ, UnsupportedError where fill values do.

    See also: stack, hstack, vstack, block_array.

    Examples
    --------
    >>> ow.concat([ow.asarray([0, 2], format="coo"), ow.zeros((2,), dtype="int64")]).to_numpy()
    array([0, 2, 0, 0])"""
@overload
def concatenate(arrays: Sequence[Any], /, *, axis: int | None = 0, format: str | Format | None = None, grad: str | None = None) -> Tensor: ...
@overload
def stack(arrays: Sequence[MaskedTensor], /, *, axis: int = 0, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """The operands, of one shape, side by side along a new dimension at `axis`.

    Cost: O(nse).
    See also: concat, unstack.

    Examples
    --------
    >>> a = ow.asarray([0, 2], format="coo")
    >>> ow.stack([a, a], axis=1).to_numpy()
    array([[0, 0],
           [2, 2]])"""
@overload
def stack(arrays: Sequence[Any], /, *, axis: int = 0, format: str | Format | None = None, grad: str | None = None) -> Tensor: ...
@overload
def unstack(x: MaskedTensor, /, *, axis: int = 0, grad: str | None = None) -> tuple[MaskedTensor, ...]:
    """The tensors of which `x` consists along `axis`, without that dimension.

    Cost: O(nse) for each.
    See also: stack.

    Examples
    --------
    >>> [t.to_numpy() for t in ow.unstack(ow.asarray([[0, 2], [1, 0]], format="csr"))]
    [array([0, 2]), array([1, 0])]"""
@overload
def unstack(x: Any, /, *, axis: int = 0, grad: str | None = None) -> tuple[Tensor, ...]: ...
@overload
def pad(x: MaskedTensor, pad_width: Any, /, mode: str = 'constant', *, constant_values: Any = 0, reflect_type: str = 'even', grad: str | None = None) -> MaskedTensor:
    """`x` with elements in front of and behind those along each dimension.

    Parameters
    ----------
    pad_width : how many: a number, (before, after), that for each dimension, or for some by {dimension: ...}
    mode : "constant", missing in masked tensors; "edge" repeats the last element, "reflect" and "symmetric" mirror,
        "wrap" begins again
    constant_values : as `pad_width`; what is the fill value is not stored
    reflect_type : "even", or "odd" where mirrored elements are subtracted from twice that at the edge

    Returns
    -------
    Tensor, dtype and fill value of `x`, in its format where that suits

    Cost: O(nse of the result). Raises ShapeError for widths that are no such numbers, UnsupportedError for modes whose
    elements depend on values.

    See also: concat, roll.

    Examples
    --------
    >>> ow.pad(ow.asarray([0, 2], format="coo"), 1).to_numpy()
    array([0, 0, 2, 0])"""
@overload
def pad(x: Any, pad_width: Any, /, mode: str = 'constant', *, constant_values: Any = 0, reflect_type: str = 'even', grad: str | None = None) -> Tensor: ...
def broadcast_arrays(*arrays: Any, grad: str | None = None) -> list[Tensor]:
    """The operands, all broadcast to their common shape.

    Cost: that of `broadcast_to`, for each.
    See also: broadcast_to, broadcast_shapes.

    Examples
    --------
    >>> a, b = ow.broadcast_arrays(ow.ones((3, 1)), ow.ones((2,)))
    >>> a.shape, b.shape
    ((3, 2), (3, 2))"""
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that operands of these shapes broadcast to. Raises ShapeError where they do not.

    Parameters
    ----------
    shapes : the shapes, tuples of int

    Returns
    -------
    tuple of int, the shape

    Cost: O(dimensions).
    See also: broadcast_to.

    Examples
    --------
    >>> ow.broadcast_shapes((3, 1), (2,))
    (3, 2)"""
@overload
def broadcast_to(x: MaskedTensor, /, shape: Sequence[int], *, grad: str | None = None) -> MaskedTensor:
    """`x` repeated along new dimensions in front and along those of extent 1, as NumPy broadcasts.

    Cost: O(nse of the result). Raises ShapeError where the shapes do not broadcast.

    See also: tile, expand_dims.

    Examples
    --------
    >>> ow.broadcast_to(ow.asarray([0, 2], format="coo"), (2, 2)).to_numpy()
    array([[0, 2],
           [0, 2]])"""
@overload
def broadcast_to(x: Any, /, shape: Sequence[int], *, grad: str | None = None) -> Tensor: ...
@overload
def repeat(x: MaskedTensor, repeats: Any, /, *, axis: int | None = None, grad: str | None = None) -> MaskedTensor:
    """Each element along `axis` repeated: `repeats` times, or as often as the entry of an array says.

    Without `axis` the elements in row-major order.

    Parameters
    ----------
    repeats : how often each element occurs: one number, or one for each coordinate along `axis`

    Cost: O(nse of the result).
    See also: tile.

    Examples
    --------
    >>> ow.repeat(ow.asarray([0, 2], format="coo"), 2).to_numpy()
    array([0, 0, 2, 2])"""
@overload
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None, grad: str | None = None) -> Tensor: ...
@overload
def tile(x: MaskedTensor, repetitions: int | Sequence[int], /, *, grad: str | None = None) -> MaskedTensor:
    """`x` laid side by side with itself, `repetitions` times along each dimension.

    Parameters
    ----------
    repetitions : how often along each dimension; one number for the last

    Cost: O(nse of the result).
    See also: repeat, broadcast_to.

    Examples
    --------
    >>> ow.tile(ow.asarray([0, 2], format="coo"), 2).to_numpy()
    array([0, 2, 0, 2])"""
@overload
def tile(x: Any, repetitions: int | Sequence[int], /, *, grad: str | None = None) -> Tensor: ...
@overload
def copy(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor:
    """The same tensor in buffers of its own, structure included: nothing that is done to one changes the other.

    Cost: O(nse).
    See also: Tensor.clone, asarray.

    Examples
    --------
    >>> A = ow.eye(2)
    >>> ow.copy(A).values is A.values
    False"""
@overload
def copy(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def expand_dims(x: MaskedTensor, /, axis: int | Sequence[int] = 0, *, grad: str | None = None) -> MaskedTensor:
    """`x` with dimensions of extent 1 at the places `axis` of the result, over the same buffers.

    Cost: O(1) or O(nse), by format.
    See also: squeeze, reshape.

    Examples
    --------
    >>> ow.expand_dims(ow.eye(3), axis=1).shape
    (3, 1, 3)"""
@overload
def expand_dims(x: Any, /, axis: int | Sequence[int] = 0, *, grad: str | None = None) -> Tensor: ...
@overload
def flip(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, grad: str | None = None) -> MaskedTensor:
    """The elements along `axis` (all, where left out) in reverse order.

    Cost: O(nse log nse).
    See also: roll, Tensor.__getitem__.

    Examples
    --------
    >>> ow.flip(ow.asarray([0, 2, 3], format="coo")).to_numpy()
    array([3, 2, 0])"""
@overload
def flip(x: Any, /, *, axis: int | Sequence[int] | None = None, grad: str | None = None) -> Tensor: ...
@overload
def matrix_transpose(x: Lazy, /, *, grad: str | None = None) -> Lazy:
    """The transpose of the last two dimensions, over the same buffers.

    Cost: O(1): buffers are shared.
    See also: permute_dims, Tensor.T.

    Examples
    --------
    >>> ow.matrix_transpose(ow.asarray([[0, 2], [0, 0]], format="csr")).to_numpy()
    array([[0, 0],
           [2, 0]])"""
@overload
def matrix_transpose(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor: ...
@overload
def matrix_transpose(x: Any, /, *, grad: str | None = None) -> Tensor: ...
@overload
def moveaxis(x: MaskedTensor, source: int | Sequence[int], destination: int | Sequence[int], /, *, grad: str | None = None) -> MaskedTensor:
    """The dimensions `source` at the places `destination`, the others in their order; over the same buffers.

    Parameters
    ----------
    source : the dimensions that move
    destination : where each of them is in the result

    Cost: O(1): buffers are shared.
    See also: permute_dims, swapaxes.

    Examples
    --------
    >>> ow.moveaxis(ow.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)"""
@overload
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /, *, grad: str | None = None) -> Tensor: ...
@overload
def permute_dims(x: Lazy, /, axes: Sequence[int], *, grad: str | None = None) -> Lazy:
    """The dimensions in another order, over the same buffers: dimension k of the result is `axes[k]` of `x`.

    Parameters
    ----------
    axes : every dimension once, in the order of the result

    Cost: O(1): buffers are shared.
    See also: moveaxis, swapaxes, Tensor.T.

    Examples
    --------
    >>> ow.permute_dims(ow.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)"""
@overload
def permute_dims(x: MaskedTensor, /, axes: Sequence[int], *, grad: str | None = None) -> MaskedTensor: ...
@overload
def permute_dims(x: Any, /, axes: Sequence[int], *, grad: str | None = None) -> Tensor: ...
@overload
def reshape(x: MaskedTensor, /, shape: int | Sequence[int], *, order: str = 'C', copy: _builtins.bool | None = None, grad: str | None = None) -> MaskedTensor:
    """The elements, in row-major order, in another shape; one extent may be -1.

    order : "C", or "F" for the elements in column-major order, into a result that is read so

    Cost: O(nse), and a sort where the format is not walked in row-major order.
    Raises ShapeError where the sizes differ, ValueError for copy=False where the elements have to move.

    See also: Tensor.reshape, expand_dims, squeeze.

    Examples
    --------
    >>> ow.reshape(ow.asarray([0, 2, 3, 0], format="coo"), (2, 2)).to_numpy()
    array([[0, 2],
           [3, 0]])"""
@overload
def reshape(x: Any, /, shape: int | Sequence[int], *, order: str = 'C', copy: _builtins.bool | None = None, grad: str | None = None) -> Tensor: ...
@overload
def roll(x: MaskedTensor, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None, grad: str | None = None) -> MaskedTensor:
    """The elements moved by `shift` along `axis`, those that leave at one end coming in at the other.

    Without `axis` the elements are rolled in row-major order.

    Parameters
    ----------
    shift : how far, towards higher coordinates; one number for each axis, or one for all

    Cost: O(nse log nse).
    See also: flip, pad.

    Examples
    --------
    >>> ow.roll(ow.asarray([0, 2, 3], format="coo"), 1).to_numpy()
    array([3, 0, 2])"""
@overload
def roll(x: Any, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None, grad: str | None = None) -> Tensor: ...
@overload
def squeeze(x: MaskedTensor, /, axis: int | Sequence[int] | None = None, *, grad: str | None = None) -> MaskedTensor:
    """`x` without the dimensions `axis` (all of extent 1, where left out).

    Raises ShapeError where one has another extent.

    Cost: O(1) or O(nse), by format.
    See also: expand_dims, reshape.

    Examples
    --------
    >>> ow.squeeze(ow.zeros((1, 3, 1))).shape
    (3,)"""
@overload
def squeeze(x: Any, /, axis: int | Sequence[int] | None = None, *, grad: str | None = None) -> Tensor: ...
@overload
def swapaxes(x: MaskedTensor, axis1: int, axis2: int, /, *, grad: str | None = None) -> MaskedTensor:
    """Two dimensions exchanged, over the same buffers. Raises AxisError for an axis that is not there.

    Cost: O(1): buffers are shared.
    See also: permute_dims, moveaxis.

    Examples
    --------
    >>> ow.swapaxes(ow.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)"""
@overload
def swapaxes(x: Any, axis1: int, axis2: int, /, *, grad: str | None = None) -> Tensor: ...
@overload
def diag(x: MaskedTensor, /, *, k: int = 0, grad: str | None = None) -> MaskedTensor:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal and zeros elsewhere.

    Cost: O(nse).
    See also: diagonal, diags_array, trace.

    Examples
    --------
    >>> ow.diag(ow.asarray([[1, 2], [3, 4]], format="csr")).to_numpy()
    array([1, 4])"""
@overload
def diag(x: Any, /, *, k: int = 0, grad: str | None = None) -> Tensor: ...
@overload
def diagonal(x: MaskedTensor, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1, grad: str | None = None) -> MaskedTensor:
    """The elements (i, i + offset) of dimensions `axis1` and `axis2`, as a last dimension.

    Cost: O(nse), O(rows) of a compressed matrix.
    See also: diag, trace, Tensor.setdiag.

    Examples
    --------
    >>> ow.diagonal(ow.asarray([[1, 2], [3, 4]], format="csr"), offset=1).to_numpy()
    array([2])"""
@overload
def diagonal(x: Any, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1, grad: str | None = None) -> Tensor: ...
@overload
def trace(x: MaskedTensor, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The sum of the diagonal of two dimensions, the first ones as NumPy's: those with `j - i == offset`.

    Returns a Tensor of the other dimensions, summed as `sum` does. Raises ShapeError for less than two dimensions.

    Cost: O(nse).
    See also: diagonal, linalg.trace.

    Examples
    --------
    >>> int(ow.trace(ow.asarray([[1, 2], [3, 4]], format="csr")))
    5"""
@overload
def trace(x: Any, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def tril(x: MaskedTensor, /, *, k: int = 0, grad: str | None = None) -> MaskedTensor:
    """The lower triangles of the last two dimensions: elements (i, j) with j - i <= k, all others zero.

    Raises UnsupportedError where the fill value is not zero and the format sparse, as the result has no fill value.

    Cost: O(nse).
    See also: triu, linalg.solve_triangular.

    Examples
    --------
    >>> ow.tril(ow.asarray([[1, 2], [3, 4]], format="csr")).to_numpy()
    array([[1, 0],
           [3, 4]])"""
@overload
def tril(x: Any, /, *, k: int = 0, grad: str | None = None) -> Tensor: ...
@overload
def triu(x: MaskedTensor, /, *, k: int = 0, grad: str | None = None) -> MaskedTensor:
    """The upper triangles of the last two dimensions: elements (i, j) with j - i >= k, all others zero.

    Cost: O(nse).
    See also: tril, linalg.solve_triangular.

    Examples
    --------
    >>> ow.triu(ow.asarray([[1, 2], [3, 4]], format="csr"), k=1).to_numpy()
    array([[0, 2],
           [0, 0]])"""
@overload
def triu(x: Any, /, *, k: int = 0, grad: str | None = None) -> Tensor: ...
@overload
def addmm(input: Tensor, a: Tensor, b: Tensor, /, *, beta: Any = 1, alpha: Any = 1, grad: str | None = None) -> Tensor:
    """`beta * input + alpha * (a @ b)`.

    Parameters
    ----------
    input : Tensor, array or number that broadcasts to the shape of the product; not read where beta is 0
    a, b : Tensor or dense array, as for `matmul`
    beta : the factor of `input`
    alpha : the factor of the product

    Returns
    -------
    what `matmul` and the sum of its result with `input` give: sparse of sparse operands, else dense

    Guarantees: equal to the operations one by one; nothing sparse is made dense.
    Cost: that of `matmul`, and of the sum. Raises ShapeError for shapes that do not fit.
    Source: torch.addmm.

    See also: matmul, linalg.solve.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.eye(2), format="csr")
    >>> ow.addmm(np.ones((2, 2)), A, np.ones((2, 2)), beta=2, alpha=3)
    array([[5., 5.],
           [5., 5.]])"""
@overload
def addmm(input: Any, a: Any, b: Any, /, *, beta: Any = 1, alpha: Any = 1, grad: str | None = None) -> Any: ...
@overload
def einsum(subscripts: Any, /, *operands: MaskedTensor, format: str | Format | None = None, semiring: str | Semiring = 'plus_times', grad: str | None = None) -> MaskedTensor:
    """The sums of products that index letters name, of any number of sparse and dense operands.

    Parameters
    ----------
    subscripts : "ijk,jr,kr->ir"; without an arrow the letters that occur once make up the result, sorted. Or, as in
        NumPy, operands and lists of numbers in turn: `einsum(A, [0, 1], B, [1, 2], [0, 2])`
    operands : Tensors and dense arrays, one for each term
    format : the result's format; without, that of the sparse operands where it is the same for all and has the
        result's rank, else "csr" or "coo" of its rank
    semiring : what sums and products are, a name or a Semiring; unspecified elements take no part

    Returns
    -------
    a sparse Tensor where all operands are sparse and there are several; with dense operands too where these scale
    elements alone (`ij,j,kj->ik`, as `(A * d) @ A.T`), or one sparse operand has the result's indices (`ij,ik,kj->ij`):
    nothing else can be there; with other dense operands an array of their library; a dense Tensor where all operands
    are Tensors, and one of them dense or all but one; of one operand what `sum` over the letters that the result lacks
    is

    Guarantees: equal to `numpy.einsum` on the dense arrays up to the order of floating-point sums, and but for infinity
    and NaN: what is unspecified takes no part, so that 0 times infinity is no NaN there. A sparse result is sorted and
    without duplicates, and the same for any number of threads.
    Cost: two operands at a time, in the order that is cheapest by estimates from numbers of elements; one sparse
    operand with dense ones is one kernel, O(nse * extents of the letters that it lacks), unless pairs are far fewer
    products. Of more than 8 operands opt_einsum's greedy order where it is installed.
    Raises ShapeError if extents disagree, UnsupportedError for fill values that are not the semiring's zero.
    Source: numpy.einsum's notation; Kjolstad et al., The Tensor Algebra Compiler, OOPSLA 2017.

    See also: evaluate, tensordot, matmul.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 2.], [1., 0.]]), format="csr")
    >>> ow.einsum("ij,j->i", A, np.array([10., 20.]))
    array([40., 10.])
    >>> ow.einsum("ij,jk->ik", A, A, semiring="min_plus").to_numpy()
    array([[ 3., inf],
           [inf,  3.]])"""
@overload
def einsum(subscripts: Any, /, *operands: Tensor, format: str | Format | None = None, semiring: str | Semiring = 'plus_times', grad: str | None = None) -> Tensor: ...
@overload
def einsum(subscripts: Any, /, *operands: Any, format: str | Format | None = None, semiring: str | Semiring = 'plus_times', grad: str | None = None) -> Any: ...
@overload
def matmul(a: Lazy, b: Any, /, *, out: Any = None, grad: str | None = None) -> Lazy:
    """The matrix product with NumPy's rules for vectors and stacks of matrices.

    Parameters
    ----------
    a, b : Tensor or dense array; at least one a Tensor
    out : the array or dense Tensor that the product is written to and that is returned, as numpy.matmul's, or
        torch.matmul's where it is torch's

    Returns
    -------
    an array of the dense operand's library; a dense Tensor where both operands are Tensors; of two sparse tensors a
    sparse one, in their format where it is the same, else "csr" (see `spgemm`, which takes semirings and masks)

    Guarantees: a sparse operand is walked in its own format, nothing is densified. Floating-point sums may
    differ from a dense product in their order; what is unspecified takes no part, whatever infinity or NaN it meets.
    Cost: O(nse * columns). A dense operand that is not contiguous along the columns is packed once.
    Raises ShapeError if the inner extents differ, or where `out` has another shape, DTypeError where it has a dtype
    that the product's does not cast to.

    See also: einsum, addmm, spgemm, sddmm.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> ow.matmul(A, np.array([10.0, 20.0]))
    array([40., 10.])"""
@overload
def matmul(a: Any, b: Lazy, /, *, out: Any = None, grad: str | None = None) -> Lazy: ...
@overload
def matmul(a: MaskedTensor, b: Any, /, *, out: Any = None, grad: str | None = None) -> MaskedTensor: ...
@overload
def matmul(a: Any, b: MaskedTensor, /, *, out: Any = None, grad: str | None = None) -> MaskedTensor: ...
@overload
def matmul(a: Tensor, b: Tensor, /, *, out: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def matmul(a: np.ndarray[Any, Any], b: Tensor, /, *, out: Any = None, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def matmul(a: Tensor, b: np.ndarray[Any, Any], /, *, out: Any = None, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def matmul(a: Any, b: Any, /, *, out: Any = None, grad: str | None = None) -> Any: ...
@overload
def sddmm(mask: MaskedTensor, a: Any, b: Any, *, grad: str | None = None) -> MaskedTensor:
    """`a @ b` at the elements that `mask` specifies.

    Parameters
    ----------
    mask : Tensor, shape (m, n); its values play no part
    a, b : dense arrays or Tensors, shapes (m, k) and (k, n)

    Returns
    -------
    Tensor, shape (m, n), format and structure of `mask`; dtype that of `a @ b`

    Cost: O(nse * k). `b` is packed once where its columns are not contiguous. Of sparse factors: that of the masked
    product of sparse matrices.
    Raises ShapeError if the shapes do not fit, DTypeError for a dense mask.
    Source: the sampled product of Canny and Zhao, Big data analytics with small footprint, KDD 2013.

    See also: matmul, sparse_mask, nn.attend.

    Examples
    --------
    >>> S = ow.eye(2, format="csr")
    >>> ow.sddmm(S, np.ones((2, 3)), np.ones((3, 2))).to_numpy()
    array([[3., 0.],
           [0., 3.]])"""
@overload
def sddmm(mask: Any, a: Any, b: Any, *, grad: str | None = None) -> Tensor: ...
def spgemm(a: Tensor, b: Tensor, /, *, semiring: str | Semiring = 'plus_times', mask: Tensor | None = None, complement: _builtins.bool = False, format: str | Format | None = None, grad: str | None = None) -> Tensor:
    """The product of two sparse matrices over a semiring, at the elements of a mask where there is one.

    Parameters
    ----------
    a, b : Tensors, shapes (m, k) and (k, n), any formats
    semiring : a name ("min_plus", "any_pair", ...) or a Semiring
    mask : Tensor, shape (m, n); only the elements that it specifies are computed, its values play no part
    complement : only the elements that the mask does not specify
    format : the result's; without, that of the operands where it is the same, else "csr"

    Returns
    -------
    Tensor, shape (m, n); its fill value is the identity of the semiring's sum; sorted and without duplicates

    Guarantees: what is not specified takes no part; an element is specified wherever a product was formed, zeros
    included; bit for bit the same for any number of threads.
    Cost: O(products + nse), after one conversion of each operand that is not CSR (of both not CSC: none).
    Raises ShapeError if the shapes do not fit, UnsupportedError for fill values that are not the semiring's zero.
    Source: Gustavson, Two fast algorithms for sparse matrices, TOMS 1978; Davis, SuiteSparse:GraphBLAS, TOMS 2019.

    See also: matmul, einsum, semiring.

    Examples
    --------
    >>> import numpy as np, openwork as ow
    >>> A = ow.asarray(np.array([[0., 1.], [1., 0.]]), format="csr")
    >>> ow.spgemm(A, A, semiring="plus_pair").to_numpy()
    array([[1, 0],
           [0, 1]])"""
@overload
def dot(a: Tensor, b: Tensor, /, *, grad: str | None = None) -> Tensor:
    """The sums over the last dimension of `a` and the last but one of `b`, or its only one, as `numpy.dot`.

    Returns
    -------
    `a @ b` where neither has more than two dimensions, `a * b` where one is a number; else what `tensordot` gives:
    the other dimensions of `a`, then those of `b`

    Raises ShapeError if the extents differ.

    Cost: that of `matmul` and `tensordot`.
    See also: matmul, vdot, tensordot.

    Examples
    --------
    >>> ow.dot(ow.asarray([[0, 2], [1, 0]], format="csr"), np.array([10, 20]))
    array([40, 10])"""
@overload
def dot(a: np.ndarray[Any, Any], b: Tensor, /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def dot(a: Tensor, b: np.ndarray[Any, Any], /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def dot(a: Any, b: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def inner(a: Tensor, b: Tensor, /, *, grad: str | None = None) -> Tensor:
    """The sums over the last dimensions of both, as `numpy.inner`; `a * b` where one is a number.

    Cost: that of `tensordot`.
    See also: matmul, vecdot, tensordot.

    Examples
    --------
    >>> int(ow.inner(ow.asarray([0, 2, 3], format="coo"), ow.asarray([4, 5, 0], format="coo")))
    10"""
@overload
def inner(a: np.ndarray[Any, Any], b: Tensor, /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def inner(a: Tensor, b: np.ndarray[Any, Any], /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def inner(a: Any, b: Any, /, *, grad: str | None = None) -> Any: ...
def kron(a: Any, b: Any, /, *, format: str | Format | None = None, grad: str | None = None) -> Tensor:
    """The Kronecker product: every element of `a` times the whole of `b`, in blocks.

    Parameters
    ----------
    a, b : Tensors or dense arrays; the one with fewer dimensions gets ones in front
    format : the result's; without, that of the operands where it is the same, else "csr", or "coo" by rank

    Returns
    -------
    Tensor, shape the products of the operands' extents

    Guarantees: NumPy's result; 0 times infinity or NaN is NaN, unspecified zeros included.
    Cost: O(nse of the result) and one conversion.

    See also: kronsum, outer, block_diag.

    Examples
    --------
    >>> ow.kron(ow.eye(2), np.array([[1, 2]])).to_numpy()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])"""
def kronsum(a: Any, b: Any, /, format: str | Format | None = None, *, grad: str | None = None) -> Tensor:
    """The Kronecker sum `kron(I, a) + kron(b, I)` of square matrices, the identities as large as the other one.

    format : the result's; without, that of the sum. Raises ShapeError for what is no square matrix.

    Cost: O(nse of the result).
    See also: kron, diags_array.

    Examples
    --------
    >>> A = ow.asarray([[0, 1], [1, 0]], format="csr")
    >>> ow.kronsum(A, A).to_numpy()
    array([[0, 1, 1, 0],
           [1, 0, 0, 1],
           [1, 0, 0, 1],
           [0, 1, 1, 0]])"""
@overload
def outer(a: MaskedTensor, b: Any, /, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """The products of all elements of `a` with all of `b`, both read as vectors: shape (a.size, b.size).

    Guarantees: NumPy's result; 0 times infinity or NaN is NaN, unspecified zeros included.

    Cost: O(nse of the result).
    See also: kron, sddmm.

    Examples
    --------
    >>> ow.outer(ow.asarray([0, 2], format="coo"), ow.asarray([3, 0], format="coo")).to_numpy()
    array([[0, 0],
           [6, 0]])"""
@overload
def outer(a: Any, b: MaskedTensor, /, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor: ...
@overload
def outer(a: Tensor, b: Tensor, /, *, format: str | Format | None = None, grad: str | None = None) -> Tensor: ...
@overload
def outer(a: np.ndarray[Any, Any], b: Tensor, /, *, format: str | Format | None = None, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def outer(a: Tensor, b: np.ndarray[Any, Any], /, *, format: str | Format | None = None, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def outer(a: Any, b: Any, /, *, format: str | Format | None = None, grad: str | None = None) -> Any: ...
def tensordot(a: Any, b: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2, format: str | Format | None = None, grad: str | None = None) -> Any:
    """The sum of products over pairs of dimensions.

    Parameters
    ----------
    a, b : Tensors or dense arrays
    axes : the last `axes` dimensions of `a` with the first ones of `b`, or the dimensions of each, pair by pair

    Returns
    -------
    what `einsum` gives: the other dimensions of `a`, then those of `b`; of a sparse tensor with a dense array, where
    two dimensions of the tensor or more stay, sparse with the tensor's levels of these and dense along the array's

    Guarantees: what `einsum` guarantees; with `axes=0`, where nothing is summed, 0 times infinity or NaN is NaN, as in
    `outer`.
    Raises ShapeError if the dimensions' extents differ or there are fewer than asked for.

    Cost: that of `einsum`.
    See also: einsum, matmul, ttm.

    Examples
    --------
    >>> A = ow.asarray([[0, 2.0], [1.0, 0]], format="csr")
    >>> ow.tensordot(A, A, axes=1).to_numpy()
    array([[2., 0.],
           [0., 2.]])"""
@overload
def vdot(a: Tensor, b: Tensor, /, *, grad: str | None = None) -> Tensor:
    """The sum of conj(a) * b over all elements, both read as vectors, as `numpy.vdot`.

    Cost: O(nse of both).
    See also: vecdot, inner, dot.

    Examples
    --------
    >>> int(ow.vdot(ow.asarray([0, 2, 3], format="coo"), ow.asarray([4, 5, 0], format="coo")))
    10"""
@overload
def vdot(a: np.ndarray[Any, Any], b: Tensor, /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def vdot(a: Tensor, b: np.ndarray[Any, Any], /, *, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def vdot(a: Any, b: Any, /, *, grad: str | None = None) -> Any: ...
@overload
def vecdot(a: MaskedTensor, b: Any, /, *, axis: int = -1, grad: str | None = None) -> MaskedTensor:
    """The sum over `axis` of conj(a) * b, the other dimensions broadcast.

    Raises ShapeError if the extents along `axis` differ.

    Cost: O(nse of both).
    See also: vdot, inner, matmul.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 3]], format="csr")
    >>> ow.vecdot(A, A).to_numpy()
    array([ 4, 10])"""
@overload
def vecdot(a: Any, b: MaskedTensor, /, *, axis: int = -1, grad: str | None = None) -> MaskedTensor: ...
@overload
def vecdot(a: Tensor, b: Tensor, /, *, axis: int = -1, grad: str | None = None) -> Tensor: ...
@overload
def vecdot(a: np.ndarray[Any, Any], b: Tensor, /, *, axis: int = -1, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def vecdot(a: Tensor, b: np.ndarray[Any, Any], /, *, axis: int = -1, grad: str | None = None) -> np.ndarray[Any, Any]: ...
@overload
def vecdot(a: Any, b: Any, /, *, axis: int = -1, grad: str | None = None) -> Any: ...
@overload
def mttkrp(t: MaskedTensor, factors: list[Any], dim: int, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """Matricised tensor times Khatri-Rao product: the kernel of alternating least squares for CP decompositions.

    Parameters
    ----------
    t : Tensor, shape (n_0, ..., n_{d-1})
    factors : one array (n_k, r) for each dimension; that of `dim` is not read and may be None
    dim : the dimension that stays
    format : of the result; without, an array: one dimension of the tensor stays, as in a product of matrices

    Returns
    -------
    array (n_dim, r): out[i, r] = sum of t[..., i, ...] times the product over k != dim of factors[k][i_k, r]

    Cost: O(nse * r), less where factors are shared by a fibre.
    Source: Bader and Kolda, Efficient MATLAB computations with sparse and factored tensors, SISC 2007.

    See also: ttm, ttv, decomposition.cp_als.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.mttkrp(T, [None, np.eye(2), np.eye(2)], 0)
    array([[1., 1.],
           [1., 1.]])"""
@overload
def mttkrp(t: Any, factors: list[Any], dim: int, *, format: str | Format | None = None, grad: str | None = None) -> Any: ...
@overload
def ttm(t: MaskedTensor, m: Any, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """Tensor times matrix (n_dim, r): dimension `dim` is replaced by one of extent r.

    format : of the result; without, of a sparse tensor of three dimensions or more and a dense matrix, sparse with the
        tensor's levels of the other dimensions and dense along `dim`; of a matrix an array, as that of `A @ m`

    Parameters
    ----------
    m : a matrix (n_dim, r)

    Cost: O(nse * r).
    See also: ttv, mttkrp, tensordot, decomposition.tucker.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.ttm(T, np.ones((2, 3)), 2).shape
    (2, 2, 3)"""
@overload
def ttm(t: Any, m: MaskedTensor, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor: ...
@overload
def ttm(t: Any, m: Any, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> Any: ...
@overload
def ttv(t: MaskedTensor, v: Any, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor:
    """Tensor times vector: the sum over dimension `dim` of t times v, shape without that dimension.

    format : of the result; without, of a sparse tensor of three dimensions or more and a dense vector, sparse with the
        tensor's levels of the other dimensions; of a matrix an array, as that of `A @ v`

    Parameters
    ----------
    v : a vector (n_dim,)

    Cost: O(nse).
    See also: ttm, mttkrp, tensordot.

    Examples
    --------
    >>> T = ow.asarray(np.ones((2, 2, 2)), format="csf")
    >>> ow.ttv(T, np.array([1.0, 2.0]), 0).to_numpy()
    array([[3., 3.],
           [3., 3.]])"""
@overload
def ttv(t: Any, v: MaskedTensor, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> MaskedTensor: ...
@overload
def ttv(t: Any, v: Any, dim: int, *, format: str | Format | None = None, grad: str | None = None) -> Any: ...
def random(shape: Sequence[int], density: float = 0.01, *, format: str | Format = 'coo', dtype: object | None = 'float64', rng: np.random.Generator | int | None = None, values: Callable[[int], Any] | None = None) -> Tensor:
    """A tensor with specified elements at random places.

    Parameters
    ----------
    shape : extents of the dimensions
    density : fraction of elements that are specified; nse is its product with the size, rounded
    format : of the result
    dtype : of the values; None takes that of what `values` gives
    rng : NumPy generator or seed
    values : function of nse giving the values; default uniform in [0, 1), for integers from the dtype's range,
        for bool all true

    Returns
    -------
    Tensor; all sets of places are equally likely, no place is drawn twice

    Cost: O(nse log nse) time, O(nse) memory.

    See also: random_array, asarray.

    Examples
    --------
    >>> A = ow.random((100, 100), 0.05, format="csr", rng=0)
    >>> A.shape, A.nse
    ((100, 100), 500)"""
def random_array(shape: Sequence[int], *, density: float = 0.01, format: str | Format = 'coo', dtype: object = None, rng: np.random.Generator | int | None = None, data_sampler: Callable[..., Any] | None = None) -> Tensor:
    """`random` with SciPy's arguments: `data_sampler(size=n)`, or `data_sampler(size=n, dtype=dtype)`, gives values.

    dtype : of the values; what `data_sampler` gives without, or float64

    Parameters
    ----------
    density : the share of elements that are specified
    data_sampler : gives the values; by default they are uniform between 0 and 1

    Returns
    -------
    Tensor with specified elements at random places

    Cost: O(nse log nse).
    See also: random.

    Examples
    --------
    >>> ow.random_array((100, 100), density=0.05, rng=np.random.default_rng(0)).nse
    500"""
@overload
def nanargmax(x: MaskedTensor, /, *, axis: int | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """Where the largest over `axis` of the elements that are not NaN is first, int64.

    Raises ShapeError, a ValueError as NumPy's, where none is.

    Cost: O(nse).
    See also: argmax, nanmax.

    Examples
    --------
    >>> int(ow.nanargmax(ow.asarray([0, np.nan, 2.0], format="coo")))
    2"""
@overload
def nanargmax(x: Any, /, *, axis: int | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanargmin(x: MaskedTensor, /, *, axis: int | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """Where the least over `axis` of the elements that are not NaN is first, int64.

    Raises ShapeError, a ValueError as NumPy's, where none is.

    Cost: O(nse).
    See also: argmin, nanmin.

    Examples
    --------
    >>> int(ow.nanargmin(ow.asarray([0, np.nan, -2.0], format="coo")))
    2"""
@overload
def nanargmin(x: Any, /, *, axis: int | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nancumprod(x: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The running product along `axis`, of all elements without, NaN counting as 1: a dense Tensor.

    Cost: O(size): the result is dense.
    See also: cumulative_prod, nanprod.

    Examples
    --------
    >>> ow.nancumprod(ow.asarray([2.0, np.nan, 3.0])).to_numpy()
    array([2., 2., 6.])"""
@overload
def nancumprod(x: Any, /, *, axis: int | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def nancumsum(x: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The running sum along `axis`, of all elements without, NaN counting as 0: a dense Tensor.

    Cost: O(size): the result is dense.
    See also: cumulative_sum, nansum.

    Examples
    --------
    >>> ow.nancumsum(ow.asarray([2.0, np.nan, 3.0])).to_numpy()
    array([2., 2., 5.])"""
@overload
def nancumsum(x: Any, /, *, axis: int | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def nanmax(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The largest over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Raises ShapeError over an extent of 0.

    Cost: O(nse).
    See also: max.

    Examples
    --------
    >>> float(ow.nanmax(ow.asarray([0, np.nan, 2.0], format="coo")))
    2.0"""
@overload
def nanmax(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanmean(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The mean over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Cost: O(nse).
    See also: mean.

    Examples
    --------
    >>> float(ow.nanmean(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0"""
@overload
def nanmean(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanmin(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The least over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Raises ShapeError over an extent of 0.

    Cost: O(nse).
    See also: min.

    Examples
    --------
    >>> float(ow.nanmin(ow.asarray([0, np.nan, 2.0], format="coo")))
    0.0"""
@overload
def nanmin(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanprod(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The product over `axis` of the elements that are not NaN; 1 where none is.

    Cost: O(nse).
    See also: prod.

    Examples
    --------
    >>> float(ow.nanprod(ow.asarray([3.0, np.nan, 2.0], format="coo")))
    6.0"""
@overload
def nanprod(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanstd(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The standard deviation over `axis` of the elements that are not NaN: the square root of `nanvar`.

    Cost: O(nse).
    See also: std, nanvar.

    Examples
    --------
    >>> float(ow.nanstd(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0"""
@overload
def nanstd(x: Any, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def nansum(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The sum over `axis` of the elements that are not NaN; 0 where none is.

    Returns a Tensor as `sum` does: integers and bool are summed in 64 bits.

    Cost: O(nse).
    See also: sum.

    Examples
    --------
    >>> float(ow.nansum(ow.asarray([0, np.nan, 2.0], format="coo")))
    2.0"""
@overload
def nansum(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanvar(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The variance over `axis` of the elements that are not NaN: their squared distances from their mean, summed and
    divided by their number less `correction`; NaN where that is not positive. `ddof` and `dtype` as of `var`.

    Cost: O(nse).
    See also: var, nanstd.

    Examples
    --------
    >>> float(ow.nanvar(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0"""
@overload
def nanvar(x: Any, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def median(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The element in the middle of those over `axis` in order, the mean of two for an even number.

    Parameters
    ----------
    x : Tensor, any format and fill value, real
    axis : one or several axes; all elements without
    keepdims : leave extents of 1 where axes were

    Returns
    -------
    Tensor, float64 for integers and bool, else the dtype of `x`; NaN where an element is NaN, or there is none

    Cost: O(nse); `x` is not made dense. Gradients go to the elements in the middle.
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: quantile, nanmedian, mean.

    Examples
    --------
    >>> float(ow.median(ow.asarray([0, 4.0, 9.0], format="coo")))
    4.0"""
@overload
def median(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def topk(x: MaskedTensor, k: int, /, *, axis: int = -1, largest: _builtins.bool = True, grad: str | None = None) -> TopK[MaskedTensor]:
    """The `k` largest elements of every fibre along `axis`, in order, and where they are.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value, real
    k : how many, at most the extent of `axis`
    axis : along which elements are compared
    largest : False for the smallest

    Returns
    -------
    values : Tensor, dtype of `x`, the shape of `x` with `k` for the extent of `axis`
    indices : dense Tensor, int64, same shape: `take_along_axis(x, indices, axis=axis)` is values

    Guarantees: equal elements are in the order of their coordinates, the unspecified ones among them; NaN is the
    largest value. Cost: O(nse + size of the result * log k); `x` is not made dense. Gradients go to the elements taken.
    Raises ShapeError where k is negative or beyond the extent, DTypeError for complex numbers.

    See also: sort, argmax.

    Examples
    --------
    >>> values, indices = ow.topk(ow.asarray([0, 5, 7, 1], format="coo"), 2)
    >>> values.to_numpy(), indices.to_numpy()
    (array([7, 5]), array([2, 1]))"""
@overload
def topk(x: Any, k: int, /, *, axis: int = -1, largest: _builtins.bool = True, grad: str | None = None) -> TopK[Tensor]: ...
@overload
def nanmedian(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The median over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is.

    Cost: O(nse log of the shares).
    See also: median.

    Examples
    --------
    >>> float(ow.nanmedian(ow.asarray([0, np.nan, 2.0], format="coo")))
    1.0"""
@overload
def nanmedian(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanpercentile(x: MaskedTensor, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The elements below which `q` percent of those that are not NaN lie: `nanquantile` of `q / 100`.

    Cost: O(nse log of the shares).
    See also: percentile, nanquantile.

    Examples
    --------
    >>> float(ow.nanpercentile(ow.asarray([0, np.nan, 2.0], format="coo"), 50))
    1.0"""
@overload
def nanpercentile(x: Any, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def nanquantile(x: MaskedTensor, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The elements below which the shares `q` of those that are not NaN lie: `quantile` of these.

    NaN, with NumPy's warning, where all are NaN.

    Cost: O(nse log of the shares).
    See also: quantile.

    Examples
    --------
    >>> float(ow.nanquantile(ow.asarray([0, np.nan, 2.0], format="coo"), 0.5))
    1.0"""
@overload
def nanquantile(x: Any, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def percentile(x: MaskedTensor, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The elements below which `q` percent of those over `axis` lie: `quantile` of `q / 100`, with its arguments.

    Cost: O(nse log of the shares).
    See also: quantile, median.

    Examples
    --------
    >>> float(ow.percentile(ow.asarray([0, 4.0, 9.0], format="coo"), 50))
    4.0"""
@overload
def percentile(x: Any, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def quantile(x: MaskedTensor, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The elements below which the shares `q` of those over `axis` lie.

    Parameters
    ----------
    x : Tensor, any format and fill value, real
    q : a number between 0 and 1, or an array of them
    axis : one or several axes; all elements without
    method : how to choose between two elements: NumPy's "linear", "lower", "higher", "nearest", "midpoint", "hazen",
        "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf",
        "interpolated_inverted_cdf"
    keepdims : leave extents of 1 where axes were

    Returns
    -------
    Tensor, sparse or dense as that of `sum`, the dimensions of `q` in front: float64, or the dtype of `x` where it is
    floating and `q` a float, or the method takes elements as they are; NaN where an element is NaN, or there is none

    Cost: O((nse + size of the result) log of the shares); `x` is not made dense. Gradients go to the elements taken.
    Raises ValueError for `q` beyond 0 and 1, DTypeError for bool and complex numbers.

    See also: median, percentile, nanquantile.

    Examples
    --------
    >>> ow.quantile(ow.asarray([0, 4.0, 9.0], format="coo"), [0.5, 1.0]).to_numpy()
    array([4., 9.])"""
@overload
def quantile(x: Any, /, q: Any, *, axis: int | Sequence[int] | None = None, method: str = 'linear', keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def log_softmax(x: MaskedTensor, /, axis: int = -1, *, grad: str | None = None) -> MaskedTensor:
    """The logarithm of `softmax`, more accurate than of its result; unspecified elements stay unspecified.

    Cost: O(nse).
    See also: softmax, logsumexp.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.log_softmax(A, axis=1).values.round(3)
    array([ 0.   , -0.693, -0.693])"""
@overload
def log_softmax(x: Any, /, axis: int = -1, *, grad: str | None = None) -> Tensor: ...
@overload
def logsumexp(x: MaskedTensor, /, axis: Any = None, *, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The logarithm of the sum of exponentials over `axis`, unspecified elements included, without overflow.

    Returns
    -------
    Tensor, sparse or dense as that of `sum`. Cost: O(nse + size of the result). Raises ShapeError over an extent of 0.

    See also: log_softmax, sum.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.logsumexp(A, axis=1).to_numpy().round(3)
    array([1.313, 2.693])"""
@overload
def logsumexp(x: Any, /, axis: Any = None, *, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def softmax(x: MaskedTensor, /, axis: int = -1, *, grad: str | None = None) -> MaskedTensor:
    """The exponentials of the elements along `axis`, divided by their sum; only specified elements take part.

    Parameters
    ----------
    x : Tensor; integers and bool are taken as float64
    axis : the axis along which the results sum to 1

    Returns
    -------
    Tensor of the structure of `x`, fill value 0; of a dense format all elements take part. Duplicates are summed first.

    Guarantees: no overflow; an axis without specified elements stays without.
    Cost: O(nse + size of the other dimensions). Raises ShapeError for an axis that is not there.
    Source: torch.sparse.softmax's meaning of unspecified elements, as of minus infinity.

    See also: log_softmax, logsumexp, nn.attend.

    Examples
    --------
    >>> A = ow.asarray([[0, 1.0], [2.0, 2.0]], format="csr")
    >>> ow.softmax(A, axis=1).to_numpy()
    array([[0. , 1. ],
           [0.5, 0.5]])"""
@overload
def softmax(x: Any, /, axis: int = -1, *, grad: str | None = None) -> Tensor: ...
@overload
def all(x: Lazy, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """Whether all elements over `axis` are true.

    Cost: O(nse).
    See also: any, count_nonzero.

    Examples
    --------
    >>> A = ow.asarray([[1, 2], [0, 3]], format="csr")
    >>> ow.all(A, axis=1).to_numpy()
    array([ True, False])"""
@overload
def all(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def all(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def any(x: Lazy, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """Whether any element over `axis` is true; NaN is.

    Cost: O(nse).
    See also: all, count_nonzero.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [0, 0]], format="csr")
    >>> ow.any(A, axis=1).to_numpy()
    array([ True, False])"""
@overload
def any(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def any(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def argmax(x: MaskedTensor, /, *, axis: int | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """Where the largest element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is

    Cost: O(nse).
    See also: max, argmin, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [7, 0]], format="csr")
    >>> int(ow.argmax(A)), ow.argmax(A, axis=1).to_numpy()
    (2, array([1, 0]))"""
@overload
def argmax(x: Any, /, *, axis: int | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def argmin(x: MaskedTensor, /, *, axis: int | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """Where the least element over `axis` is first, int64; row-major over all elements without an axis.

    explicit : of the stored elements only; 0 where none is

    Cost: O(nse).
    See also: min, argmax, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, -5], [-7, 0]], format="csr")
    >>> int(ow.argmin(A)), ow.argmin(A, axis=1).to_numpy()
    (2, array([1, 0]))"""
@overload
def argmin(x: Any, /, *, axis: int | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def count_nonzero(x: Lazy, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """How many elements over `axis` are not zero, int64.

    Cost: O(nse).
    See also: nonzero, sum.

    Examples
    --------
    >>> int(ow.count_nonzero(ow.asarray([[0, 2], [1, 0]], format="csr")))
    2"""
@overload
def count_nonzero(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def count_nonzero(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def cumulative_prod(x: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The running product along `axis`: a dense tensor; `include_initial` puts a 1 in front.

    Cost: O(size): the result is dense.
    See also: cumulative_sum, prod.

    Examples
    --------
    >>> ow.cumulative_prod(ow.asarray([2, 3, 4])).to_numpy()
    array([ 2,  6, 24])"""
@overload
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def cumulative_sum(x: MaskedTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: _builtins.bool = False, grad: str | None = None) -> MaskedTensor:
    """The running sum along `axis`: a dense tensor; `include_initial` puts a 0 in front.

    Cost: O(size): the result is dense.
    See also: cumulative_prod, diff, sum.

    Examples
    --------
    >>> ow.cumulative_sum(ow.asarray([0, 2, 0, 3], format="coo")).to_numpy()
    array([0, 2, 2, 5])"""
@overload
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def max(x: Lazy, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """The largest element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is

    Cost: O(nse).
    See also: argmax, maximum, nanmax, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [-7, 0]], format="csr")
    >>> ow.max(A, axis=0).to_numpy()
    array([0, 5])"""
@overload
def max(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def max(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def mean(x: Lazy, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """The mean over `axis`; that of integers is float64 unless `dtype=` is given, that over an extent of 0 is NaN.

    Cost: O(nse).
    See also: sum, nanmean, median, std.

    Examples
    --------
    >>> float(ow.mean(ow.asarray([0, 4.0, 0, 0], format="coo")))
    1.0"""
@overload
def mean(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def mean(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def min(x: Lazy, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """The least element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0.

    explicit : of the stored elements only; the fill value where none is

    Cost: O(nse).
    See also: argmin, minimum, nanmin, topk.

    Examples
    --------
    >>> A = ow.asarray([[0, 5], [-7, 0]], format="csr")
    >>> ow.min(A, axis=0).to_numpy()
    array([-7,  0])"""
@overload
def min(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def min(x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: _builtins.bool = False, explicit: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def prod(x: Lazy, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """The product over `axis`; integers and bool are multiplied in 64 bits.

    Cost: O(nse).
    See also: sum, cumulative_prod, nanprod.

    Examples
    --------
    >>> int(ow.prod(ow.asarray([2, 3, 4])))
    24"""
@overload
def prod(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def prod(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def std(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The standard deviation over `axis`: the square root of `var`; `ddof` and `dtype` as there.

    Cost: O(nse).
    See also: var, mean, nanstd.

    Examples
    --------
    >>> float(ow.std(ow.asarray([0, 4.0], format="coo")))
    2.0"""
@overload
def std(x: Any, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
@overload
def sum(x: Lazy, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Lazy:
    """The sum over `axis`, all dimensions without; integers and bool are summed in 64 bits.

    Cost: O(nse).
    See also: mean, prod, cumulative_sum, nansum.

    Examples
    --------
    >>> A = ow.asarray([[0, 2], [1, 3]], format="csr")
    >>> int(ow.sum(A)), ow.sum(A, axis=0).to_numpy()
    (6, array([1, 5]))"""
@overload
def sum(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> MaskedTensor: ...
@overload
def sum(x: Any, /, *, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: _builtins.bool = False, grad: str | None = None) -> Tensor: ...
@overload
def var(x: MaskedTensor, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> MaskedTensor:
    """The variance over `axis`: squared distances from the mean, summed and divided by count - `correction`.

    ddof, dtype : NumPy's: `correction` by another name, and what the elements are cast to first

    Cost: O(nse).
    See also: std, mean, nanvar.

    Examples
    --------
    >>> float(ow.var(ow.asarray([0, 4.0], format="coo")))
    4.0"""
@overload
def var(x: Any, /, *, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: _builtins.bool = False, ddof: float | None = None, dtype: Any = None, grad: str | None = None) -> Tensor: ...
def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements, where each is first, which of them each element is, and how often each occurs.

    Parameters
    ----------
    x : Tensor of any format, dtype and fill value

    Returns
    -------
    values : Tensor, a dense vector, ascending (complex numbers by real parts first), NaN last; every NaN is one of its
        own
    indices : Tensor, a dense vector, int64, the row-major place of the first occurrence
    inverse_indices : Tensor, int64, shape of `x`, in its structure, the fill value's place in `values` as fill value;
        dense where unspecified elements are NaN and several, as they are all distinct then
    counts : Tensor, a dense vector, int64

    Guarantees: values[inverse_indices] == x; sum(counts) == x.size; x.reshape(-1)[indices] == values.
    Cost: O(nse log nse), and as many more as there are unspecified NaNs.
    Raises UnsupportedError where x.size has no 64-bit number.

    See also: unique_values, unique_counts.

    Examples
    --------
    >>> ow.unique_all(ow.asarray([3, 0, 3], format="coo")).counts.to_numpy()
    array([1, 2])"""
def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs: (values, counts), as of `unique_all`.

    Cost: O(nse log nse).
    See also: unique_all, unique_values.

    Examples
    --------
    >>> values, counts = ow.unique_counts(ow.asarray([3, 0, 3], format="coo"))
    >>> counts.to_numpy()
    array([1, 2])"""
def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is: (values, inverse_indices), as of `unique_all`.

    Returns
    -------
    values : Tensor, a dense vector
    inverse_indices : Tensor, int64, in the structure of `x`

    Cost: O(nse log nse).
    See also: unique_all, unique_values.

    Examples
    --------
    >>> ow.unique_inverse(ow.asarray([3, 0, 3], format="coo")).inverse_indices.to_numpy()
    array([1, 0, 1])"""
@overload
def unique_values(x: MaskedTensor, /) -> MaskedTensor:
    """The distinct elements as a dense vector, ascending, NaN last and every NaN one of its own.

    Cost: O(nse log nse).
    See also: unique_all, isin.

    Examples
    --------
    >>> ow.unique_values(ow.asarray([3, 0, 3], format="coo")).to_numpy()
    array([0, 3])"""
@overload
def unique_values(x: Any, /) -> Tensor: ...
@overload
def argsort(x: MaskedTensor, /, *, axis: int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True, grad: str | None = None) -> MaskedTensor:
    """Where the elements of every fibre along `axis` are, in order: `take_along_axis(x, argsort(x)) == sort(x)`.

    Returns
    -------
    Tensor of dense format, int64, of the shape of `x`: every place of a fibre occurs once, so no value fills it.
    Equal elements are in the order of their places; NaN is the largest value, as in `sort`.

    Cost: O(size + nse log nse), `x` itself is not made dense; of a dense format O(size log size).
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: sort, topk, take_along_axis.

    Examples
    --------
    >>> ow.argsort(ow.asarray([3, 0, 2], format="coo")).to_numpy()
    array([1, 2, 0])"""
@overload
def argsort(x: Any, /, *, axis: int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True, grad: str | None = None) -> Tensor: ...
@overload
def argwhere(x: MaskedTensor, /, *, grad: str | None = None) -> MaskedTensor:
    """The coordinates of the elements that are not zero, in row-major order: a dense matrix with a row for each.

    Cost: O(nse log nse).
    See also: nonzero, find.

    Examples
    --------
    >>> ow.argwhere(ow.asarray([[0, 2], [1, 0]], format="csr")).to_numpy()
    array([[0, 1],
           [1, 0]])"""
@overload
def argwhere(x: Any, /, *, grad: str | None = None) -> Tensor: ...
def find(x: Any, /, *, grad: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, in row-major order, and then these elements.

    Returns
    -------
    tuple of Tensors of dense format: int64 for each dimension, the values last; an element that is stored several times
    is their sum

    Guarantees: `nonzero(x)`, and `x` at these places.
    Cost and errors: those of `nonzero`.

    See also: nonzero, argwhere, Tensor.to_scipy.

    Examples
    --------
    >>> rows, columns, values = ow.find(ow.asarray([[0, 2], [1, 0]], format="csr"))
    >>> values
    Tensor(shape=(2,), dtype=int64, format="dense", nse=2, nbytes=16)"""
@overload
def nonzero(x: MaskedTensor, /, *, grad: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, in row-major order: one vector for each dimension.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format, dtype and fill value; NaN is not zero

    Returns
    -------
    tuple of Tensors of dense format, int64, shape (count_nonzero(x),)

    Guarantees: all(x[nonzero(x)] != 0).
    Cost: O(nse log nse) for fill value 0, O(size) for any other.
    Raises ShapeError for rank 0.

    See also: argwhere, find, Tensor.indices.

    Examples
    --------
    >>> ow.nonzero(ow.asarray([[0, 2], [1, 0]], format="csr"))[1].to_numpy()
    array([1, 0])"""
@overload
def nonzero(x: Any, /, *, grad: str | None = None) -> tuple[Tensor, ...]: ...
def searchsorted(x1: Any, x2: Any, /, *, side: str = 'left', sorter: Any = None, grad: str | None = None) -> Tensor:
    """The places in the sorted vector `x1` before which the elements of `x2` keep it sorted.

    Parameters
    ----------
    x1 : Tensor of rank 1, any format, ascending (through `sorter`, where given)
    x2 : Tensor of any shape, format and fill value
    side : "left" is the first such place, "right" the last
    sorter : the order in which `x1` is ascending, as `argsort` gives it

    Returns
    -------
    Tensor, int64, of the shape and in the structure of `x2`; its fill value is the place of that of `x2`

    Cost: O(nse log nse) of both: unspecified elements of `x1` are counted, not visited.
    Raises ShapeError where `x1` is no vector or `sorter` has not its shape, ValueError for another side.

    See also: sort, interp.

    Examples
    --------
    >>> ow.searchsorted(ow.asarray([1, 3, 5]), ow.asarray([0, 4], format="coo")).to_numpy()
    array([0, 2])"""
@overload
def sort(x: MaskedTensor, /, *, axis: int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True, grad: str | None = None) -> MaskedTensor:
    """The elements of every fibre along `axis` in order.

    Parameters
    ----------
    x : Tensor of rank 1 or more, any format and fill value, real
    axis : along which elements move
    descending : the largest first
    stable : either way equal elements keep their order

    Returns
    -------
    Tensor, same shape, dtype and fill value, canonical, in the format of `x` where it suits: of a sparse fibre the
    elements before the fill value come first, those after it last. NaN is the largest value: last, or first where
    `descending`.

    Guarantees: sort(sort(x)) == sort(x); a format without blocks stores as many elements as x.coalesce().
    Cost: O(nse log of the longest fibre); of a dense format O(size log size).
    Gradients go to where the elements came from.
    Raises DTypeError for complex numbers, AxisError for an axis that is not there.

    See also: argsort, topk, median.

    Examples
    --------
    >>> ow.sort(ow.asarray([3, 0, -2], format="coo")).to_numpy()
    array([-2,  0,  3])"""
@overload
def sort(x: Any, /, *, axis: int = -1, descending: _builtins.bool = False, stable: _builtins.bool = True, grad: str | None = None) -> Tensor: ...
@overload
def astype(x: MaskedTensor, dtype: Any, /, *, copy: Any = True, device: Any = None, casting: str = 'unsafe', grad: str | None = None) -> MaskedTensor:
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
    array([0, 2])"""
@overload
def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None, casting: str = 'unsafe', grad: str | None = None) -> Tensor: ...
@overload
def can_cast(from_: MaskedTensor, to: Any, /) -> _builtins.bool:
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
    (True, False)"""
@overload
def can_cast(from_: Any, to: Any, /) -> _builtins.bool: ...
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
    'float64'"""
