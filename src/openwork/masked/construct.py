"""Masked tensors from data and mask, of any library and layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import DTypeError, FormatError, ShapeError, Tensor, UnsupportedError, asarray, sparse_mask
from ..interop.sources import is_on_device, refuse_device
from ..ops import mask_formats as forms
from ..ops.indexing.taking import values_at
from ..provided import provided, provides
from ..runtime.conversion.remap import canonical
from ..runtime.gradient_hook import tracked
from ..storage import buffers
from ..storage.buffers import Array, as_array, flat, is_torch, scalar_of, to_numpy
from ..storage.equal_coordinates import same_structure
from ..storage.specified import coordinates
from ..storage.storage import Storage
from .structure import pattern, restricted
from .tensor import MaskedTensor, wrap, zero

made_there = provided("device made", __name__)

__all__ = ["as_masked_tensor", "masked_tensor", "strided_tensor"]


def masked_tensor(data: Any, mask: Any = None, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor with values of its own.

    Parameters
    ----------
    data : NumPy array, torch tensor of any layout, Tensor of any format, nested lists, a SciPy sparse array; alone also
        `numpy.ma.MaskedArray`, `torch.masked.MaskedTensor`, a pandas nullable column or array
    mask : bool, True where an element is specified; the shape of the data, and its format. The specified elements that
        are True in a sparse mask must be stored in the data, which is reduced to the elements of the mask. Without a
        mask, the elements that a sparse `data` stores are those specified
    requires_grad : record operations on the values, which are a leaf; torch values

    Returns
    -------
    MaskedTensor; dense data in the bitmap format. Elements that a sparse mask stores as False stay stored, missing.

    Raises ShapeError where shapes differ, FormatError where formats do, DTypeError where the mask is no bool,
    ValueError that names the first element which the mask specifies and the data has not.

    Cost: O(size of the mask), or O(nse) of a sparse one.
    See also: as_masked_tensor, masked.

    Examples
    --------
    >>> m = ow.masked_tensor(np.array([1.0, 2.0]), np.array([True, False]))
    >>> float(m.sum())
    1.0
    """
    tensor = _made(_detached(data), mask)
    if is_on_device(tensor):
        if requires_grad:
            refuse_device("masked_tensor with requires_grad", tensor)
        return tensor.copy()
    out = wrap(tensor._tensor.detach(), tensor._scalar)
    s = out._tensor._storage
    out = wrap(Tensor._from_storage(s.with_values(buffers.copied(s.values))), tensor._scalar)
    return out.requires_grad_() if requires_grad else out


@provides("masked as_masked_tensor")
def as_masked_tensor(data: Any, mask: Any = None) -> MaskedTensor:
    """A masked tensor over the values of `data`, on its graph; see `masked_tensor`.

    Gradients of missing elements are 0 where they leave for `data`, whatever was computed with their values.

    Parameters
    ----------
    data : what `masked_tensor` takes; its values are shared
    mask : bool, True where an element is specified; without one, the elements that a sparse `data` stores are

    Returns
    -------
    MaskedTensor over the values of `data`

    Cost: O(nse); values are shared.
    See also: masked_tensor.

    Examples
    --------
    >>> m = ow.as_masked_tensor(np.array([1.0, 2.0]), np.array([True, False]))
    >>> m.to_dense()
    MaskedTensor(
      [  1.0000,       --]
    )
    """
    return _made(data, mask)


def _detached(data: Any) -> Any:
    return data.detach() if is_torch(data) or isinstance(data, Tensor | MaskedTensor) else data


def _made(data: Any, mask: Any) -> MaskedTensor:
    if is_on_device(data) or is_on_device(mask):
        return made_there(data, mask)  # type: ignore[no-any-return]
    if mask is None:
        return _alone(data)
    if isinstance(data, MaskedTensor | np.ma.MaskedArray) or _is_torch_masked(data):
        raise UnsupportedError(
            "masked_tensor: the data has a mask of its own\n  help: leave mask out, or filled(value)"
        )
    if _is_sparse(data) or _is_sparse(mask):
        given, held = asarray(data), asarray(mask)
        if not given.shape and not held.shape:
            return _number(given, _stores(data), held, _stores(mask))
        return _sparse(given, held)
    data, mask = (x.to_dense() if isinstance(x, Tensor) else x for x in (data, mask))
    array = as_array(data)
    bits = as_array(mask, like=array)
    if scalar_of(bits) != "bool":
        raise DTypeError(f"masked_tensor: expected a mask of dtype bool; got {bits.dtype}\n  help: mask != 0")
    _check_shapes(tuple(array.shape), tuple(bits.shape))
    buffers.one_device("masked_tensor", array, bits)
    return strided_tensor(array, bits)


def _check_shapes(data: tuple[int, ...], mask: tuple[int, ...]) -> None:
    if data != mask:
        raise ShapeError(f"masked_tensor: data of shape {data}, mask of shape {mask}\n  help: broadcast the mask first")


def strided_tensor(array: Array, bits: Array) -> MaskedTensor:
    """A dense array with its mask, over their memory where they are contiguous."""
    shape = tuple(array.shape)
    format = forms.strided(len(shape))
    none = (None,) * len(format.levels)
    values, held = flat(array), flat(bits)
    if tracked((values,)):
        import torch

        values = torch.where(held, values, torch.zeros((), dtype=values.dtype, device=values.device))
    scalar = scalar_of(values)
    s = Storage(shape or (1,), format, scalar, zero(scalar), none, (*none[1:], held), values)
    return wrap(Tensor._from_storage(s), not shape)


def _is_sparse(x: Any) -> bool:
    if isinstance(x, Tensor):
        return not x.format.is_dense
    if is_torch(x):
        return str(x.layout) != "torch.strided"
    return hasattr(x, "tocoo") or (hasattr(x, "coords") and hasattr(x, "fill_value"))


def _is_torch_masked(x: Any) -> bool:
    return is_torch(x) and type(x).__name__ == "MaskedTensor"


def _alone(data: Any) -> MaskedTensor:
    """Data that says itself what is specified."""
    if isinstance(data, MaskedTensor):
        return data
    if isinstance(data, np.ma.MaskedArray):
        return strided_tensor(as_array(data.data), ~np.ma.getmaskarray(data))
    if _is_torch_masked(data):
        return _made(data.get_data(), data.get_mask())
    if hasattr(data, "isna") and hasattr(data, "to_numpy"):
        return _pandas(data)
    if not _is_sparse(data):
        raise UnsupportedError(
            "masked_tensor: dense data needs a mask\n  help: masked_tensor(x, ~numpy.isnan(x)), or a mask of ones"
        )
    t = _canonical(asarray(data))
    if not t.shape:
        return _number(t, _stores(data))
    if forms.fitting(t.format) == t.format:
        return wrap(t)
    if not forms.stores_all(t.format) or any(x.format.is_structured for x in t.levels):
        return wrap(t.asformat(forms.fitting(t.format)))
    return wrap(_with_bits(t, pattern(t._storage).values))


def _stores(x: Any) -> bool:
    """Whether a number's element is stored. A sparse one of another library may have none; `() -> ()` has one."""
    if isinstance(x, Tensor) or not _is_sparse(x):
        return True
    return bool(x._nnz() if is_torch(x) else x.nnz)


def _number(data: Tensor, stored: bool, mask: Tensor | None = None, held: bool = True) -> MaskedTensor:
    """A number of sparse layout, which is missing where nothing is stored."""
    if mask is not None:
        _require_bool(mask)
        held = held and bool(mask.item())
        if held and not stored:
            raise _not_stored((), 1)
    array = as_array(data.to_dense())
    return strided_tensor(array, as_array(np.array(stored and held), like=array))


def _pandas(data: Any) -> MaskedTensor:
    """A pandas nullable column or array."""
    bits = ~np.asarray(data.isna(), np.bool_)
    dtype = getattr(data.dtype, "numpy_dtype", data.dtype)
    array = data.to_numpy(dtype=dtype, na_value=np.zeros((), dtype)[()])
    return strided_tensor(as_array(array), bits)


def _with_bits(t: Tensor, bits: Array) -> Tensor:
    """Every stored element with a bit that says whether it is specified."""
    s = t._storage
    format = forms.keeping(s.format)
    if len(format.levels) == len(s.format.levels):
        pos, crd = (*s.pos[:-1], None), (*s.crd[:-1], bits)
    else:
        pos, crd = (*s.pos, None), (*s.crd, bits)
    return Tensor._from_storage(Storage(s.shape, format, s.scalar, s.fill_value, pos, crd, s.values))


def _canonical(t: Tensor) -> Tensor:
    """Without duplicates, in order."""
    return t if t.format.is_unique and t.format.is_ordered else t.asformat(canonical(t.format))


def _sparse(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Data and mask of one sparse format."""
    _check_shapes(data.shape, mask.shape)
    _require_bool(mask)
    data, mask = _canonical(data), _canonical(mask)
    if data.format != mask.format:
        raise FormatError(
            f"masked_tensor: data and mask have one format; got {data.format} and {mask.format}"
            "\n  help: asformat() on one of them"
        )
    if same_structure(data._storage, mask._storage):
        values = data.values
    else:
        _require_stored(data, mask)
        mask_values = as_array(mask.values, like=data.values)
        values = sparse_mask(data, mask).values if tracked((data.values,)) else values_at(data, mask._storage)
        structure = mask._storage.mapped(lambda b: as_array(b, like=mask_values))
        data = Tensor._from_storage(structure.with_values(values, data.fill_value))
    bits = as_array(mask.values, like=values)
    if forms.has_bits(data.format) or any(x.format.is_structured for x in data.levels):
        return wrap(restricted(wrap(data), bits))
    if bool(bits.all()) and forms.fitting(data.format) == data.format:
        return wrap(data)
    return wrap(_with_bits(data, bits))


def _require_bool(mask: Tensor) -> None:
    if mask._storage.scalar != "bool":
        raise DTypeError(f"masked_tensor: expected a mask of dtype bool; got {mask.dtype}\n  help: mask != 0")


def _not_stored(where: tuple[int, ...], count: int) -> ValueError:
    return ValueError(
        f"masked_tensor: the mask specifies element {where}, which the data does not store ({count} such)"
        "\n  help: store it in the data, or leave it out of the mask"
    )


def _require_stored(data: Tensor, mask: Tensor) -> None:
    """Raises ValueError for an element that the mask specifies and the data does not store."""
    there = to_numpy(values_at(pattern(data._storage), mask._storage))
    at, leaf = coordinates(mask._storage)
    lacking = np.flatnonzero(to_numpy(mask.values)[leaf] & ~there[leaf])
    if len(lacking):
        places = at[:, lacking]
        first = np.lexsort(places[::-1])[0]
        where = tuple(int(c) for c in places[:, first])
        raise _not_stored(where, len(lacking))
