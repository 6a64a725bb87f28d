"""All operations that run on devices: importing this loads their modules."""

from __future__ import annotations

from . import (
    attention,
    elementwise,
    masked_operations,
    masked_reductions,
    products,
    reductions,
    row_statistics,
    solvers,
)
from .operations import DEVICE_OPERATIONS, call

__all__ = [
    "DEVICE_OPERATIONS",
    "attention",
    "call",
    "elementwise",
    "masked_operations",
    "masked_reductions",
    "products",
    "reductions",
    "row_statistics",
    "solvers",
]
