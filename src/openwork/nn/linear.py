"""A linear layer whose weight is sparse."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ShapeError
from ..interop.constructors import asarray
from ..ops.products.matmul import matmul
from ..storage.buffers import is_torch
from ..tensor.tensor import Tensor
from ..torch.traced import linear

__all__ = ["SparseLinear"]


class SparseLinear(torch.nn.Module):  # type: ignore[misc]
    """`x @ weight.T + bias`, as torch.nn.Linear, for a weight of any sparse format.

    Parameters
    ----------
    weight : Tensor of shape (out_features, in_features); its values become a parameter, its structure is constant
    bias : torch tensor of shape (out_features,), or None

    Guarantees: equal to torch.nn.Linear with the dense weight; the gradient has the weight's structure, and nothing
    of the dense weight's size is made, forward or backward. The state dict holds values, bias and structure.
    Raises ShapeError for a weight that is no matrix or a bias that does not fit.

    Examples
    --------
    >>> import torch, openwork as ow
    >>> from openwork.nn import SparseLinear
    >>> layer = SparseLinear(ow.asarray(torch.eye(3).to_sparse_csr()), torch.zeros(3))
    >>> layer(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, weight: Tensor, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        if weight.ndim != 2 or (bias is not None and tuple(bias.shape) != weight.shape[:1]):
            got = "None" if bias is None else tuple(bias.shape)
            raise ShapeError(f"SparseLinear: weight {weight.shape}, bias {got}\n  expected: (out, in) and (out,)")
        t = weight.detach() if is_torch(weight.values) else asarray(weight.to_torch())
        self._structure = t._storage
        self.out_features, self.in_features = weight.shape
        self.values = torch.nn.Parameter(t.values.clone())
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach().clone())
        for group in ("pos", "crd"):
            for level, buffer in enumerate(getattr(t._storage, group)):
                if buffer is not None:
                    self.register_buffer(f"{group}_{level}", buffer)

    @property
    def weight(self) -> Tensor:
        """The weight: a Tensor over the parameter."""
        s = self._structure
        if self._moved():
            pos, crd = (tuple(getattr(self, f"{name}_{k}", None) for k in range(len(s.pos))) for name in ("pos", "crd"))
            self._structure = s = type(s)(s.shape, s.format, s.scalar, s.fill_value, pos, crd, self.values.detach())
        return Tensor._from_storage(s.with_values(self.values))

    def _moved(self) -> bool:
        """Whether buffers were replaced, by loading a state dict onto another device say."""
        stored = ((f"{name}_{k}", b) for name in ("pos", "crd") for k, b in enumerate(getattr(self._structure, name)))
        return any(b is not None and getattr(self, key) is not b for key, b in stored)

    def forward(self, x: Any) -> Any:
        """`x @ weight.T + bias` of a torch tensor (..., in_features), or a sparse Tensor (n, in_features)."""
        if torch.compiler.is_compiling() and isinstance(x, torch.Tensor) and not self._structure.fill_value:
            out = self._traced(x)
        elif isinstance(x, Tensor):
            out = matmul(x, self.weight.T).to_dense()
        else:
            out = matmul(x.reshape(-1, self.in_features), self.weight.T).reshape(*x.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias

    def _traced(self, x: torch.Tensor) -> torch.Tensor:
        """`x @ weight.T` as an operator of torch.library, which torch.compile takes."""

        s = self._structure
        pos, crd = ([getattr(self, f"{name}_{k}", None) for k in range(len(s.pos))] for name in ("pos", "crd"))
        return linear((s.format, s.shape, pos, crd), self.values, x)

    def extra_repr(self) -> str:
        """What torch prints of the layer."""
        name = self._structure.format.name or str(self._structure.format)
        sizes = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return f"{sizes}, format={name!r}, nse={self.weight.nse}"

    def get_extra_state(self) -> str:
        """The weight's format, so that a state dict says what its buffers are."""
        return str(self._structure.format)

    def set_extra_state(self, state: str) -> None:
        """Check that a state dict is of this layer's format. Raises ShapeError for another."""
        if state != str(self._structure.format):
            raise ShapeError(
                f"SparseLinear: a state of format {state}\n  got: a layer of format {self._structure.format}"
                "\n  help: make the layer with a weight of that format"
            )
