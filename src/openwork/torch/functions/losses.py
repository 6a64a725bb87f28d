"""torch's loss functions of Tensors: elementwise ones, cross entropy and other losses over classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn._reduction import legacy_get_string

from ...ops.elementwise.maps import elementwise
from ...ops.reductions import softmax
from ...tensor.tensor import Tensor
from ..gradients.nary import apply_nary
from .composed import pairwise_distance
from .indices import gather
from .refusals import refused
from .registry import torch_function

__all__ = ["LOSSES", "loss"]

LOSSES = frozenset((
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "kl_div", "soft_margin_loss", "hinge_embedding_loss", "poisson_nll_loss", "margin_ranking_loss",
))  # fmt: skip
"""Elementwise losses, summed or averaged."""


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, Tensor) else x


def loss(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """An elementwise loss of several operands, reduced as torch does; unspecified elements take part."""
    reduction, average, reduces = (options.pop(k, None) for k in ("reduction", "size_average", "reduce"))
    if average is not None or reduces is not None:
        reduction = legacy_get_string(average, reduces)
    constants = {k: v for k, v in options.items() if not isinstance(v, Tensor | torch.Tensor)}
    tensor_options = [k for k in options if k not in constants]
    count = len(args)

    def of_all(*operands: Any) -> Any:
        by_name = dict(zip(tensor_options, operands[count:], strict=True))
        return function(*operands[:count], **by_name, **constants, reduction="none")

    result = apply_nary(of_all, *args, *(options[k] for k in tensor_options))
    if reduction == "none":
        return result
    if reduction == "batchmean":
        return elementwise("div", result.sum(), result.shape[0] if result.ndim else 1)
    return result.sum() if reduction == "sum" else result.mean()


@torch_function("cross_entropy")
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The negative logarithms of the probabilities of classes: softmax is over all of them, nothing is made dense.

    The logarithm of class c is `input[c] - logsumexp(input)`, of which only the second is a dense array.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    dim = 0 if input.ndim == 1 else 1
    total = _dense(softmax.logsumexp(input, dim)) if isinstance(input, Tensor) else torch.logsumexp(input, dim)
    classes = input.shape[dim]
    weights = torch.ones(classes, dtype=total.dtype) if weight is None else _dense(weight)
    class_weights = weights.reshape(-1, *(1,) * (input.ndim - 1 - dim))
    target = _dense(target)
    if target.is_floating_point():
        target_weights = target * (1 - label_smoothing) + label_smoothing / classes
        losses = total * (target_weights * class_weights).sum(dim) - _dense(
            elementwise("mul", input, target_weights * class_weights).sum(dim)
        )
        return _reduce_losses(losses, torch.ones_like(losses), reduction)
    counts_in = target != ignore_index
    classes_of = target.masked_fill(~counts_in, 0)
    target_logit = _dense(gather(input, dim, classes_of.unsqueeze(dim))).squeeze(dim)
    scale = weights[classes_of] * counts_in
    losses = (total - target_logit) * scale
    if label_smoothing:
        smoothing = total * weights.sum() - _dense(elementwise("mul", input, class_weights).sum(dim))
        losses = losses * (1 - label_smoothing) + smoothing * counts_in * (label_smoothing / classes)
    return _reduce_losses(losses, scale, reduction)


@torch_function("nll_loss", "nll_loss_nd")
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The negative elements at the classes."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    dim = 0 if input.ndim == 1 else 1
    target = _dense(target)
    counts_in = target != ignore_index
    classes_of = target.masked_fill(~counts_in, 0)
    target_logit = _dense(gather(input, dim, classes_of.unsqueeze(dim))).squeeze(dim)
    scale = counts_in.to(target_logit.dtype) if weight is None else _dense(weight)[classes_of] * counts_in
    return _reduce_losses(-target_logit * scale, scale, reduction)


@torch_function("triplet_margin_loss", "triplet_margin_with_distance_loss")
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean", distance_function: Any = None,
) -> Any:  # fmt: skip
    """How much nearer than `margin` the negative is to the anchor than the positive, by a distance of vectors."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)

    if distance_function is not None:  # called with elements alone, so that the other arguments are checked here
        options = {"margin": margin, "swap": swap, "reduction": reduction}
        error = refused(torch.nn.functional.triplet_margin_loss, (anchor, positive, negative), options)
        if error is not None:
            raise error

    def distance(a: Any, b: Any) -> Any:
        lengths = pairwise_distance(a, b, p, eps) if distance_function is None else distance_function(a, b)
        return _dense(lengths)

    negative_distance = distance(anchor, negative)
    negative_distance = torch.minimum(negative_distance, distance(positive, negative)) if swap else negative_distance
    losses = (margin + distance(anchor, positive) - negative_distance).clamp_min(0)
    return _reduce_losses(losses, torch.ones_like(losses), reduction)


def _reduce_losses(losses: torch.Tensor, scale: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction == "none":
        return losses
    return losses.sum() / scale.sum() if reduction == "mean" else losses.sum()
