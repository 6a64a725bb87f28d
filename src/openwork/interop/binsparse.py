"""Sparse arrays between libraries by binsparse's protocol: a description, and the arrays that it names.

`x.__binsparse_descriptor__()` is a description of binsparse as Python's objects, {"binsparse": {...}}, and
`x.__binsparse__()` a dict of its arrays by name ("pointers_to_1", "indices_1", "values"), each of which has
`__dlpack__`. Nothing is copied that need not be. Source: data-apis/array-api, issue 840 and pull request 912 (a draft);
names and types are those of binsparse 0.1.
"""

from __future__ import annotations

import copy as copies
from typing import Any, NoReturn

import numpy as np

from ..errors import FormatError, UnsupportedError
from ..format import coo
from ..format import format as parse
from ..format.format import Format
from ..provided import provides
from ..runtime.check import check
from ..storage import buffers
from ..storage.buffers import Array
from ..storage.iso import contiguous
from ..storage.scalars import python_scalar
from ..storage.storage import Storage
from ..tensor.tensor import Tensor
from .binsparse_description import (
    ATTRIBUTE,
    VALUE_TYPES,
    VERSION,
    Levels,
    description_of,
    format_text,
    levels_of,
    levels_of_format,
    numbers,
    shape_of,
    symmetry_of,
)  # fmt: skip

__all__ = ["arrays_of", "descriptor_of", "from_binsparse", "speaks_binsparse"]


def speaks_binsparse(obj: object) -> bool:
    """Whether an object of another library has both methods of the protocol."""
    kind = type(obj)
    return hasattr(kind, "__binsparse__") and hasattr(kind, "__binsparse_descriptor__")


@provides("descriptor_of")
def descriptor_of(t: Tensor) -> dict[str, Any]:
    """The description of a tensor, as coordinates where the specification does not have its format.

    Raises UnsupportedError for a scalar and for values that the specification does not have.
    """
    described, levels = _described(t)
    types = {name: _type_of(name, array) for name, array in _arrays(described, levels).items()}
    body = description_of(described.format, tuple(described.shape), types, int(described.values.shape[0]))
    if "fill_value" in types:
        body["fill"] = True
    return {ATTRIBUTE: body, "original_source": "openwork"}


@provides("arrays_of")
def arrays_of(t: Tensor, descriptor: Any = None, copy: bool | None = None) -> dict[str, Any]:
    """The arrays of a tensor by name: its own buffers, complex numbers as pairs, truth values as bytes.

    Parameters
    ----------
    descriptor : a description whose format the arrays are to have; without it that of `descriptor_of`
    copy : True for arrays of their own; False to raise ValueError where one is needed

    Raises TypeError for a description that is none of a tensor's.
    """
    if descriptor is not None:
        wanted = _format_of(_Object("__binsparse__: descriptor", TypeError), _body(descriptor), t.ndim)
        if copy is False and wanted != t.format:
            raise ValueError(
                f"__binsparse__: copy=False, but {t.format} to {wanted} needs a copy\n  help: leave copy out"
            )
        t = t.asformat(wanted)
    elif copy is False and levels_of_format(t.format) is None:
        raise ValueError(f"__binsparse__: copy=False, but {t.format} goes as coordinates\n  help: leave copy out")
    arrays = {name: _plain(array) for name, array in _arrays(*_described(t)).items()}
    if copy:
        return {name: array.clone() if buffers.is_torch(array) else array.copy() for name, array in arrays.items()}
    return arrays


def _described(t: Tensor) -> tuple[Storage, Levels]:
    """The tensor in a format that the specification has, and its levels."""
    if not t.ndim:
        raise UnsupportedError("__binsparse__: binsparse has no tensor of no dimensions\n  help: t.reshape(1)")
    levels = levels_of_format(t.format)
    if levels is None:
        t = t.asformat(coo(t.ndim))
        levels = levels_of_format(t.format)
    assert levels is not None
    return t._storage, levels[0]


def _arrays(s: Storage, levels: Levels) -> dict[str, Array]:
    """The buffers of a storage under the names of the specification."""
    arrays: dict[str, Array] = {}
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            pos = s.pos[k]
            if k and pos is not None:
                arrays[f"pointers_to_{k}"] = pos
            for at in range(k, k + rank):
                crd = s.crd[at]
                assert crd is not None
                arrays[f"indices_{at}"] = crd
        k += rank
    arrays["values"] = contiguous(s.values)
    if s.fill_value != 0:
        arrays["fill_value"] = np.array([s.fill_value], buffers.numpy_dtype(s.scalar))
    return arrays


def _type_of(name: str, array: Array) -> str:
    """The name of an array's type in the specification. Raises UnsupportedError where it has none."""
    dtype = buffers.numpy_dtype(buffers.scalar_of(array))
    if dtype == np.bool_:
        return "bint8"
    text = str(np.dtype(dtype))
    if text.startswith("complex"):
        return f"complex[float{int(text.removeprefix('complex')) // 2}]"
    if text not in VALUE_TYPES:
        raise UnsupportedError(f"__binsparse__: binsparse has no {name} of {text}\n  help: astype('float32')")
    return text


def _plain(array: Array) -> Any:
    """An array of a type that DLPack and the specification have."""
    if buffers.is_torch(array):
        import torch

        if array.is_complex():
            return torch.view_as_real(array.resolve_conj()).reshape(-1)
        return array.view(torch.uint8) if array.dtype == torch.bool else array
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    return array.view(np.float32 if array.dtype.itemsize == 8 else np.float64) if array.dtype.kind == "c" else array


class _Object:
    """What a description belongs to, for errors."""

    def __init__(self, name: str, error: type[Exception]) -> None:
        self.name, self._error = name, error

    def fail(self, message: str) -> NoReturn:
        raise self._error(f"{self.name}: {message}")


def _body(descriptor: Any) -> dict[str, Any]:
    body = descriptor.get(ATTRIBUTE) if isinstance(descriptor, dict) else None
    return body if isinstance(body, dict) else {}


def _format_of(source: _Object, body: dict[str, Any], ndim: int) -> Format:
    levels, order = levels_of(source, copies.deepcopy(body), ndim)
    return parse(format_text(levels, order), ndim)


def from_binsparse(obj: Any, copy: bool | None) -> Tensor:
    """The tensor of an object that speaks the protocol, over its arrays; the invariants of all are checked.

    Raises FormatError for a description that is none, or names arrays that are not there or of another type,
    InvariantError for arrays that do not fit together.
    """
    source = _Object(f"asarray: {type(obj).__name__}.__binsparse__()", FormatError)
    body, given = _body(obj.__binsparse_descriptor__()), obj.__binsparse__()
    if str(body.get("version", "")).split(".")[0] != VERSION.split(".")[0]:
        source.fail(f"a description of version {body.get('version')!r}; expected {VERSION}")
    types = body.get("data_types")
    if not isinstance(types, dict) or not hasattr(given, "__getitem__"):
        source.fail(f"data_types are {types!r:.80} and arrays a {type(given).__name__}; expected dicts")
    shape = shape_of(source, list(body["shape"]) if isinstance(body.get("shape"), tuple) else body.get("shape"))
    levels, order = levels_of(source, body, len(shape))
    if symmetry_of(source, body, levels) != "general":
        raise UnsupportedError(f"{source.name}: structure {body['structure']!r}\n  help: a general one")
    pos: dict[int, Array] = {}
    crd: dict[int, Array] = {}
    k = 0
    for kind, rank in levels:
        if kind == "sparse":
            crd |= {k + r: _index(source, given, f"indices_{k + r}", copy) for r in range(rank)}
            if k:
                pos[k] = _index(source, given, f"pointers_to_{k}", copy)
        k += rank
    values = _numbers(source, given, "values", types, copy)
    fill = _numbers(source, given, "fill_value", types, copy)[0] if body.get("fill") is True else 0
    if str(types.get("values")).startswith("iso["):
        values = np.repeat(values, len(crd[max(crd)]) if crd else 1)
    if levels[0][0] == "sparse":  # the pointers of an outermost level are left out
        first = crd[0]
        pos[0] = first[:0].new_tensor([0, len(first)]) if buffers.is_torch(first) else np.array([0, len(first)])
    if not buffers.is_torch(values):
        widths = {b.dtype for b in (*pos.values(), *crd.values())}
        index = np.int64 if len(widths) > 1 else None
        pos, crd = ({n: a.astype(index or a.dtype, copy=False) for n, a in side.items()} for side in (pos, crd))
    all_pos, all_crd = (tuple(side.get(at) for at in range(len(shape))) for side in (pos, crd))
    fill = fill.item() if hasattr(fill, "item") else fill
    scalar = buffers.scalar_of(values)
    zero = python_scalar(fill, scalar)
    storage = Storage(shape, parse(format_text(levels, order), len(shape)), scalar, zero, all_pos, all_crd, values)
    check(storage)
    return Tensor._from_storage(storage)


def _array(source: _Object, given: Any, name: str, copy: bool | None) -> Array:
    """One array, of torch's where it is torch's, else NumPy's over the same memory."""
    try:
        array = given[name]
    except (KeyError, IndexError, TypeError):
        source.fail(f"the array {name!r} is missing")
    if not buffers.is_torch(array):
        array = array if isinstance(array, np.ndarray) else np.from_dlpack(array)
    if array.ndim != 1:
        source.fail(f"{name} has shape {tuple(array.shape)}; expected one dimension")
    if copy:
        array = array.clone() if buffers.is_torch(array) else array.copy()
    found: Array = array
    return found


def _index(source: _Object, given: Any, name: str, copy: bool | None) -> Array:
    """Pointers or indices, as 32 or 64 bits."""
    array = _array(source, given, name, copy)
    if not buffers.scalar_of(array).startswith(("i", "u")):
        source.fail(f"{name} has values of {array.dtype}; expected integers")
    if not buffers.is_torch(array) and array.dtype.kind in "iu" and array.dtype not in (np.int32, np.int64):
        if array.size and int(array.max()) >= 2**63:
            source.fail(f"{name} has values up to {int(array.max())}")
        if copy is False:
            raise ValueError(
                f"{source.name}: copy=False, but {name} of {array.dtype} needs a copy\n  help: leave copy out"
            )
        array = array.astype(np.int64)
    return array


def _numbers(source: _Object, given: Any, name: str, types: dict[str, Any], copy: bool | None) -> Array:
    """Values, by their declared type."""
    array, declared = _array(source, given, name, copy), str(types.get(name))
    if not buffers.is_torch(array):
        return numbers(source, name, array, declared)
    import torch

    if declared == "bint8":
        return array != 0 if array.dtype != torch.bool else array
    if declared.startswith("complex[") and not array.is_complex():
        pairs: Array = torch.view_as_complex(array.reshape(-1, 2))
        return pairs
    return array
