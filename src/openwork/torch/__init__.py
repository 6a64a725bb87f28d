"""Tensors over torch buffers: gradients, and torch's own functions on Tensors.

A Tensor is differentiable in its values; its structure is constant. `rules` has the gradient rule of each operation
that runs kernels. Importing this package lets `torch.load` read Tensors and masked tensors with
`weights_only=True`, and a DataLoader make batches of Tensors.
"""

from __future__ import annotations

from typing import Any

from .. import needs_torch as _needs_torch  # noqa: F401

# isort: split
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from ..format import expression
from ..format.format import unpickled as unpickled_format
from ..format.level import unpickled as unpickled_level_format
from ..format.level import unpickled_level
from ..format.levels import LEVEL_FORMATS
from ..masked import tensor as masked
from ..masked.shaping import stack as stack_masked
from ..namespaces import absent as _absent
from ..namespaces import listing as _listing
from ..ops.manipulation.joining import stack
from ..runtime.documentation import document_all as _document_all
from ..storage import storage
from ..tensor import tensor
from ..tensor.tensor import Tensor
from . import func, optim
from .compiled.traced_pytree import register_for_export
from .dense_gradient import tensor as dense_gradient
from .functions.autograd import gradcheck, gradgradcheck
from .gradients.rows import linear, rows_matmul
from .jacobians import JacobianPlan, hessian, hessian_plan, jacobian, jacobian_plan

__all__ = [
    "JacobianPlan", "func", "gradcheck", "gradgradcheck", "hessian", "hessian_plan", "jacobian", "jacobian_plan",
    "linear", "optim", "register_for_export", "rows_matmul",
]  # fmt: skip

__getattr__ = _absent(__name__, __all__)
__dir__ = _listing(__name__, __all__)

_EXPRESSIONS = [x for x in vars(expression).values() if isinstance(x, type) and x.__module__ == expression.__name__]
_MAKERS = [
    tensor.unpickled, masked.unpickled, dense_gradient.unpickled, storage.unpickled, unpickled_format, unpickled_level,
    unpickled_level_format,
]  # fmt: skip
torch.serialization.add_safe_globals([*_MAKERS, *_EXPRESSIONS, *LEVEL_FORMATS.values()])


def _collate(batch: list[Any], *, collate_fn_map: Any = None) -> Any:
    """A batch of a DataLoader: the samples as a stack."""
    return stack_masked(batch) if isinstance(batch[0], masked.MaskedTensor) else stack(batch)


default_collate_fn_map[Tensor] = default_collate_fn_map[masked.MaskedTensor] = _collate

_document_all(globals(), __all__)
