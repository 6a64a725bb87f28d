"""The module of each name that this package provides: made by `python tools/operations.py`."""

from __future__ import annotations

__all__ = ["HOMES"]

_ROWS: dict[str, tuple[str, ...]] = {
    "conversion": ("device convert",),
    "coordinates": ("device count",),
    "gradients": (
        "device recorded_elements",
        "device recorded_product",
        "device recorded_softmax",
        "device with_graph",
    ),
    "indexing": ("device index",),
    "invariants": ("device check",),
    "masked": ("device MaskedDeviceTensor", "device call_masked"),
    "masked_operations": ("device elements", "device made", "device moved"),
    "masked_reductions": ("device reduce",),
    "operations": ("device named",),
    "table": ("device call", "device method"),
    "torch_functions": ("device of_torch",),
    "transfer": ("device adopted", "device move", "device sent"),
}

HOMES: dict[str, str] = {name: module for module, names in _ROWS.items() for name in names}
