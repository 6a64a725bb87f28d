"""A call of each of torch's names that a Tensor has: what docs/torch-names.md says is there, as it is asked for.

`SAMPLES` has the arguments of names that do not take those of `ARGUMENTS`, the first of which torch takes is the sample;
`OTHERWISE` has the names that say something else of a sparse tensor, and what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import openwork as ow

X = torch.tensor([[0.5, 0, 0.25], [0, 0.75, 0], [0.1, 0, 0.9]], dtype=torch.float64)
Y = torch.tensor([[0.2, 0.5, 0], [0, 0.3, 0.4], [0, 0, 0.6]], dtype=torch.float64)
V = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
NUMBERS, OTHER_NUMBERS = (
    torch.tensor([[5, 0, 2], [0, 7, 0], [1, 0, 9]]),
    torch.tensor([[1, 2, 3], [1, 1, 1], [2, 1, 2]]),
)
PLACES, MASK = torch.tensor([0, 2, 1]), X > 0.3
CUBE = torch.stack([X, 2 * X, Y])

ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (),
    (Y,),
    (2,),
    (1,),
    (0, 1),
    (V,),
    (1, PLACES),
    (Y, Y),
    (MASK,),
    (V, V),
    (X, V),
)
"""Arguments of most names: the first that torch takes of each kind."""

SAMPLES: dict[str, tuple[torch.Tensor, tuple[Any, ...]]] = {
    "addbmm": (X, (CUBE, CUBE)), "addmv": (V, (X, V)), "baddbmm": (CUBE, (CUBE, CUBE)), "bmm": (CUBE, (CUBE,)),
    "broadcast_to": (X, ((2, 3, 3),)), "expand": (X, (2, 3, 3)), "dot": (V, (V,)), "vdot": (V, (V,)), "ger": (V, (V,)),
    "outer": (V, (V,)), "dsplit": (CUBE, (3,)), "gather": (X, (1, OTHER_NUMBERS - 1)), "imag": (X + 2j * Y, ()),
    "index_add": (X, (0, PLACES, Y)), "index_copy": (X, (1, PLACES, Y)), "index_fill": (X, (1, PLACES[:1], 2.0)),
    "index_reduce": (X, (0, PLACES, Y, "mean")), "scatter_reduce": (X, (1, OTHER_NUMBERS - 1, Y, "sum")),
    "index_put": (X, ((PLACES, PLACES), V)), "is_nonzero": (V[:1], ()), "cross": (X, (Y, 1)), "new_full": (X, ((2,), 1.0)), "item": (V[:1], ()),
    "masked_fill": (X, (MASK, 2.0)), "masked_scatter": (X, (MASK, Y)), "narrow": (X, (1, 0, 2)),
    "nonzero_static": (X, ()), "put": (X, (PLACES, V)), "renorm": (X, (2, 0, 0.5)), "reshape": (X, (1, 9)),
 "scatter": (X, (1, OTHER_NUMBERS - 1, 2.0)), "scatter_add": (X, (1, OTHER_NUMBERS - 1, Y)),
    "select_scatter": (X, (V, 0, 1)), "split_with_sizes": (X, ([1, 2],)), "unflatten": (X, (0, (3, 1))),
    "unfold": (X, (0, 2, 1)), "view": (X, (9,)), "where": (X, (MASK, Y)), "hsplit": (X, (1, 2)), "squeeze": (X[:1], (0, 1)),
    **dict.fromkeys(("add", "sub", "subtract"), (X, (Y,))), "to_sparse_bsr": (X, ((3, 1),)), "to_sparse_bsc": (X, ((1, 3),)),
    "copy": (X, (Y,)), "kthvalue": (X + 0.1 * Y, (3, 1)), "median": (X, (1,)), "nanmedian": (X, (1,)), "cummax": (X, (1,)), "cummin": (X, (0,)),
}  # fmt: skip
"""The tensor and the arguments, for the name and its in-place form."""

OPTIONS: dict[str, dict[str, Any]] = {"nonzero_static": {"size": 7}}

OTHERWISE: dict[str, Callable[[ow.Tensor], bool]] = {
    "softmax": lambda t: torch.equal(t.softmax(1).to_dense() > 0, X > 0),
    "log_softmax": lambda t: torch.allclose(t.log_softmax(1).values.exp(), t.softmax(1).values),
    "size": lambda t: t.size() == X.shape and t.size == X.numel(),
    "layout": lambda t: t.layout == torch.sparse_csr, "is_sparse_csr": lambda t: t.is_sparse_csr,
    "is_sparse": lambda t: t.is_sparse is False and t.asformat("coo").is_sparse,
    "device": lambda t: torch.device(t.device) == X.device, "nbytes": lambda t: t.nbytes == sum(b.nbytes for b in (t.pos(1), t.crd(1), t.values)),
    "stride": lambda t: t.asformat("dense").stride() == X.stride(), "sparse_dim": lambda t: t.sparse_dim == 2,
    "dense_dim": lambda t: t.dense_dim == 0, "resize": lambda t: t.resize(2, 3) is None and torch.equal(t.to_dense(), X[:2]), "chalf": lambda t: _refuses(ow.DTypeError, t.chalf),
    "cuda": lambda t: torch.cuda.is_available() or _refuses(ow.UnsupportedError, t.cuda),
    "pin_memory": lambda t: torch.cuda.is_available() or _refuses(ow.UnsupportedError, t.pin_memory),
    "values": lambda t: torch.equal(t.values, X.to_sparse_csr().values()),
    "crow_indices": lambda t: torch.equal(t.crow_indices(), X.to_sparse_csr().crow_indices().int()),
    "col_indices": lambda t: torch.equal(t.col_indices(), X.to_sparse_csr().col_indices().int()),
    "ccol_indices": lambda t: torch.equal(t.to_sparse_csc().ccol_indices(), X.to_sparse_csc().ccol_indices().int()),
    "row_indices": lambda t: torch.equal(t.to_sparse_csc().row_indices(), X.to_sparse_csc().row_indices().int()),
    "indices": lambda t: torch.equal(t.to_sparse().indices(), X.to_sparse().indices().int()),
    "coalesce": lambda t: torch.equal(t.to_sparse().coalesce().values, X.to_sparse().values()),
    "is_coalesced": lambda t: t.to_sparse().is_coalesced(),
    "sparse_mask": lambda t: torch.equal(t.sparse_mask(Y.to_sparse()).to_dense(), X * (Y > 0)),
    "sparse_resize_": lambda t: t.to_sparse().sparse_resize_((4, 5), 2, 0).shape == (4, 5),
    "smm": lambda t: torch.equal(t.smm(Y).to_dense(), X @ Y),
    "sspaddmm": lambda t: torch.allclose(t.sspaddmm(t, Y).to_dense(), X + X @ Y),
    "solve": lambda t: torch.allclose(X @ t.solve(V), V),  # torch's own, of (B, A), is gone
    "backward": lambda t: t.requires_grad_().sum().backward() is None and bool((t.grad.values == 1).all()),
    "register_hook": lambda t: hasattr(t.requires_grad_().register_hook(print), "remove"),
    "register_post_accumulate_grad_hook": lambda t: hasattr(
        t.requires_grad_().register_post_accumulate_grad_hook(print), "remove"
    ),
    "retain_grad": lambda t: (t.requires_grad_() * 2).retain_grad() is None,
}  # fmt: skip
"""Names that mean something else of a sparse tensor, or that torch's dense tensors refuse."""


def _refuses(error: type[Exception], function: Callable[[], Any]) -> bool:
    try:
        function()
    except error:
        return True
    return False


def samples(name: str) -> Iterator[tuple[torch.Tensor, tuple[Any, ...], Any]]:
    """Tensors and arguments of a name, and what it is of the dense tensor."""
    base = name.removesuffix("_")
    own = SAMPLES.get(name) or SAMPLES.get(base)
    cases = [own] if own else [(x, a) for x in (X, NUMBERS) for a in (*ARGUMENTS, (OTHER_NUMBERS,))]
    for x, arguments in cases:
        try:
            dense = x.clone()
            member = getattr(dense, name)
            result = member(*arguments, **OPTIONS.get(base, {})) if callable(member) else member
        except (RuntimeError, TypeError, ValueError, IndexError, AssertionError):
            continue  # torch does not take it
        yield x, arguments, result


def difference(got: Any, want: Any) -> str:
    """What differs between a result and torch's; "" where nothing does. Formats are free."""
    if isinstance(want, tuple | list) and not isinstance(want, torch.Size):
        if len(got) != len(want) or (hasattr(want, "n_sequence_fields") and type(got) is not type(want)):
            return f"{type(got)} of {len(got)} for {type(want)} of {len(want)}"
        return "".join(difference(x, y) for x, y in zip(got, want, strict=True))
    got, want = (x.to_dense() if hasattr(x, "to_dense") else x for x in (got, want))
    if not isinstance(want, torch.Tensor):
        return "" if callable(want) or got == want or (got != got and want != want) else f"{got!r} for {want!r}"
    if not isinstance(got, torch.Tensor) or (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got} for {want}"
    wide = torch.complex128 if want.is_complex() else torch.float64
    return "" if torch.allclose(got.to(wide), want.to(wide), equal_nan=True) else f"{got} for {want}"
