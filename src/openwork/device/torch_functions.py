"""torch's functions of tensors on devices: those that an operation there spells, in torch's meaning of them."""

from __future__ import annotations

from typing import Any

from ..provided import provides
from ..runtime.operation import block
from ..tables import NAMES, NUMPY, TORCH
from ..tensor.numpy_names import standard_arguments
from ..torch.functions.call import FUNCTIONS, table_names
from .operations import refused
from .table import call

__all__ = ["of_torch"]

_ALIKE = ("softmax", "log_softmax", "einsum", "positive")
"""Functions that torch means as the namespace does, though it calls their arguments otherwise."""


@provides("device of_torch")
def of_torch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch's `function` of operands on a device. Raises UnsupportedError, by name, for what does not run there."""
    names = table_names(function)
    if names[0] in ("max", "min") and len(args) == 1 and not kwargs:
        return call(names[0], args, {})
    if names[0] in ("var", "std"):
        places = (
            ("correction", "keepdims") if args[1:] and type(args[1]) is bool else ("axis", "correction", "keepdims")
        )
        options = {**dict(zip(places, args[1:], strict=False)), **standard_arguments(kwargs)}
        correction = options.get("correction")
        return _called(names[0], args[:1], {**options, "correction": 1 if correction is None else float(correction)})
    if names[0] == "count_nonzero":
        return _called(
            names[0], args[:1], {**dict(zip(("axis",), args[1:], strict=False)), **standard_arguments(kwargs)}
        )
    for name in names:
        if name in TORCH:
            spelled = block(TORCH[name]).spelled("torch", name)
            return spelled.call(lambda *operands, name=name, **rest: _called(TORCH[name], operands, rest), args, kwargs)
        ours = NUMPY.get(name, name)  # arccos, which torch has too
        if name in _ALIKE or (ours in NAMES and name not in FUNCTIONS and block(ours).op is not None):
            return _called(ours, args, standard_arguments(kwargs))
    raise refused(f"torch.{names[0]}", args)


def _called(name: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The function of the namespace, of torch's axes: a list of them, none for all, and axis 0 of a number."""
    axis = options.get("axis")
    if isinstance(axis, list | tuple):
        options = {**options, "axis": tuple(axis) or None}
    elif axis in (0, -1) and getattr(operands[0], "ndim", None) == 0:
        options = {**options, "axis": None}
    return call(name, operands, options)
