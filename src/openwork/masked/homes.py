"""The module of each name that this package provides: made by `python tools/operations.py`."""

from __future__ import annotations

__all__ = ["HOMES"]

_ROWS: dict[str, tuple[str, ...]] = {
    "construct": ("masked as_masked_tensor",),
    "contraction": ("masked einsum",),
    "elementwise": ("masked binary", "masked clip", "masked lift", "masked select", "masked unary"),
    "examples": ("masked examples",),
    "expressions": ("masked program",),
    "isolation": ("masked isolated", "masked running"),
    "method_texts": ("masked method texts",),
    "namespace": (
        "masked astype",
        "masked call",
        "masked can_cast",
        "masked count_nonzero",
        "masked diff",
        "masked nonzero",
        "masked outer",
        "masked pad",
        "masked pointwise",
        "masked result_type",
        "masked spelled",
        "masked unstack",
        "masked vecdot",
    ),
    "notation": ("masked evaluate",),
    "order": (
        "masked argsort",
        "masked coordinates",
        "masked cumulative_prod",
        "masked cumulative_sum",
        "masked mask_nan",
        "masked median",
        "masked sort",
        "masked topk",
        "masked unique",
    ),
    "products": ("masked log_softmax", "masked matmul", "masked softmax"),
    "reductions": ("masked reduce",),
    "shaping": (
        "masked concat",
        "masked item_at",
        "masked moved",
        "masked put",
        "masked reshape",
        "masked split",
        "masked stack",
        "masked transpose",
    ),
    "show": ("masked html", "masked text"),
    "tensor": ("masked wrap",),
    "tensor_products": ("masked mttkrp", "masked sddmm", "masked ttm", "masked ttv"),
    "torch_functions": ("masked torch call", "masked torch method"),
    "torch_nodes": ("masked register_nodes",),
}

HOMES: dict[str, str] = {name: module for module, names in _ROWS.items() for name in names}
