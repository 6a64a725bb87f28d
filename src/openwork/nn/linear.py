"""A linear layer whose weight is sparse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from .. import DTypeError, ShapeError, Tensor, asarray, matmul
from ..storage.storage import Storage
from ..torch.compiled import products as _products  # noqa: F401  registers the operators that traced layers are of
from ..torch.compiled import traced
from ..torch.functions.autocast_traced import autocast
from .structure_state import bytes_of, index_buffers, is_sparse_state, weight_of

__all__ = ["SparseLinear", "fill_parameter"]


def fill_parameter(parameter: torch.Tensor | None, value: torch.Tensor | None, *of: torch.Tensor | None) -> None:
    """Give a parameter a value, and have it trained where one of those is that it is made of; None is left alone."""
    if parameter is not None and value is not None:
        with torch.no_grad():
            parameter.copy_(value)
        parameter.requires_grad_(any(p is not None and p.requires_grad for p in of))


class SparseLinear(torch.nn.Module):  # type: ignore[misc]
    """`x @ weight.T + bias`, as torch.nn.Linear, for a weight of any sparse format.

    Parameters
    ----------
    weight : Tensor of shape (out_features, in_features), or what `asarray` takes; its values become a parameter, its
        structure is constant
    bias : torch tensor of shape (out_features,), or None

    Guarantees: equal to torch.nn.Linear with the dense weight; the gradient has the weight's structure, and nothing
    of the dense weight's size is made, forward or backward. The state dict holds values, bias and structure, all as
    torch tensors; `load_state_dict` takes that of a weight of another structure and format, and of the same shape.
    Under torch.autocast products are computed in its dtype.
    Raises ShapeError for a weight that is no matrix or a bias that does not fit.

    Examples
    --------
    >>> import torch, openwork as ow
    >>> from openwork.nn import SparseLinear
    >>> layer = SparseLinear(ow.asarray(torch.eye(3).to_sparse_csr()), torch.zeros(3))
    >>> layer(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, weight: Any, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        t = asarray(weight, like="torch").detach()
        bias = None if bias is None else torch.as_tensor(bias)
        if t.ndim != 2 or (bias is not None and tuple(bias.shape) != t.shape[:1]):
            got = "None" if bias is None else tuple(bias.shape)
            raise ShapeError(f"SparseLinear: weight {tuple(t.shape)}, bias {got}\n  expected: (out, in) and (out,)")
        if not (t.values.is_floating_point() or t.values.is_complex()):
            raise DTypeError(f"SparseLinear: a weight of {t.dtype} has no gradient\n  help: weight.to(torch.float32)")
        self.out_features, self.in_features = t.shape
        self.values = torch.nn.Parameter(t.values.clone())
        is_frozen = isinstance(bias, torch.nn.Parameter) and not bias.requires_grad
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach().clone(), not is_frozen)
        self._set_structure(t._storage)

    @classmethod
    def from_dense(cls, layer: torch.nn.Linear, sparsify: Callable[[torch.Tensor], Tensor]) -> SparseLinear:
        """The layer of what `sparsify` makes of a torch.nn.Linear's weight."""
        return cls.of(sparsify(layer.weight.detach()), layer.bias, layer.weight.requires_grad)

    @classmethod
    def of(cls, weight: Tensor, bias: torch.Tensor | None, is_trained: bool) -> SparseLinear:
        """The layer of a weight that is trained or frozen; its bias is what the given Parameter is."""
        result = cls(weight, bias)
        result.values.requires_grad_(is_trained)
        return result

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], prefix: str = "") -> SparseLinear:
        """The layer that a state dict holds at `prefix` ("encoder.linear1."), with its weight's structure.

        Raises InvariantError where there is none.
        """
        return cls(weight_of(state, prefix), state.get(f"{prefix}bias"))

    def to_dense(self) -> torch.nn.Linear:
        """The torch.nn.Linear of the same weight and bias."""
        weight, bias = self.weight.detach().to_dense(), self.bias
        dense = torch.nn.Linear(
            self.in_features, self.out_features, bias is not None, dtype=weight.dtype, device=weight.device
        )
        fill_parameter(dense.weight, weight, self.values)
        fill_parameter(dense.bias, bias, bias)
        return dense

    def _set_structure(self, s: Storage) -> None:
        for name in [name for name in self._buffers if name.partition("_")[0] in ("pos", "crd")]:
            del self._buffers[name]
        for name, buffer in index_buffers(s):
            self.register_buffer(name, buffer)
        self._structure = s

    @property
    def weight(self) -> Tensor:
        """The weight: a Tensor over the parameter."""
        s = self._structure
        if any(getattr(self, name) is not buffer for name, buffer in index_buffers(s)):
            pos, crd = self._index_buffers()
            self._structure = s = Storage(
                s.shape, s.format, s.scalar, s.fill_value, tuple(pos), tuple(crd), self.values.detach()
            )
        values = self.values
        if s.values is values:
            weight = Tensor._from_storage(s)
            if (renewed := weight._storage) is not s:  # somebody changed a buffer
                self._structure = renewed
            return weight
        s = s.with_values(values)
        if type(values) is torch.nn.Parameter:  # of others, of a transform say, nothing is kept
            self._structure = s
        return Tensor._from_storage(s)

    def _index_buffers(self) -> list[list[torch.Tensor | None]]:
        """pos and crd by level, as the layer has them: moved to another device, say."""
        levels = range(len(self._structure.pos))
        return [[getattr(self, f"{group}_{k}", None) for k in levels] for group in ("pos", "crd")]

    def forward(self, x: Any) -> Any:
        """`x @ weight.T + bias` of a torch tensor (..., in_features), or a sparse Tensor (n, in_features).

        Raises ShapeError for another number of features, DTypeError for what is no tensor.
        """
        if self._is_traced(x):
            x, values, bias = autocast(x, self.values, self.bias)
            is_sparse = isinstance(x, Tensor)
            out = (traced.sparse_linear if is_sparse else traced.linear)(self._traced_structure(), values, x)
        else:
            self._check(x)
            x, weight, bias = autocast(x, self.weight, self.bias)
            if isinstance(x, Tensor):
                out = matmul(x, weight.T).to_dense()
            else:
                rows = x.reshape(x.shape[:-1].numel(), self.in_features)
                is_one = rows.shape[0] == 1
                product = matmul(weight, rows[0] if is_one else rows.T.contiguous())  # as prepared calls take it
                out = (product if is_one else product.T).reshape(*x.shape[:-1], self.out_features)
        return out if bias is None else out + bias

    def _check(self, x: Any) -> None:
        if not isinstance(x, torch.Tensor | Tensor):
            raise DTypeError(f"SparseLinear: input {type(x).__name__}\n  expected: a torch tensor or a sparse Tensor")
        if not x.shape or x.shape[-1] != self.in_features:
            raise ShapeError(f"SparseLinear: input {tuple(x.shape)}\n  expected: (..., {self.in_features})")

    def columns(self, x: torch.Tensor) -> torch.Tensor:
        """`weight @ x + bias` of columns (batch, in_features, n): a torch tensor (batch, out_features, n)."""
        if self._is_traced(x):
            x, values, bias = autocast(x, self.values, self.bias)
            out = traced.columns(self._traced_structure(), values, x)
        else:
            x, weight, bias = autocast(x, self.weight, self.bias)
            out = matmul(weight, x)
        return out if bias is None else out + bias[:, None]

    def _is_traced(self, x: Any) -> bool:
        """Whether a tracer of torch's reads the layer, which takes products as operators of torch.library."""
        is_tracing = torch.compiler.is_compiling() or torch.jit.is_tracing()
        return is_tracing and isinstance(x, torch.Tensor | Tensor) and not self._structure.fill_value

    def _traced_structure(self) -> Any:
        pos, crd = self._index_buffers()
        return self._structure.format, self._structure.shape, pos, crd

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        name = self._structure.format.name or str(self._structure.format)
        sizes = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return f"{sizes}, format={name!r}, nse={self.weight.nse}"

    def get_extra_state(self) -> torch.Tensor:
        """The weight's shape, format and fill value as bytes, so that the state dict says what its buffers are."""
        return bytes_of(self._structure)

    def set_extra_state(self, state: Any) -> None:
        """Nothing: the structure is set before buffers are loaded."""

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        """Take over the structure of a state dict, then load values and bias as torch does."""
        if is_sparse_state(state, prefix):
            t = weight_of(state, prefix)
            if t.shape != (self.out_features, self.in_features):
                mine = (self.out_features, self.in_features)
                raise ShapeError(f"SparseLinear: a state at {prefix!r} of shape {t.shape}\n  expected: {mine}")
            device, count = self.values.device, self.values.shape
            self._set_structure(t._storage.mapped(lambda buffer: buffer.to(device)))
            if t.values.shape != count:
                self.values.data, self.values.grad = self.values.new_empty(t.values.shape), None
        super()._load_from_state_dict(state, prefix, *rest)
