"""All operations that run on devices: importing this loads their modules."""

from __future__ import annotations

from ..provided import provide
from . import (
    attention,
    elementwise,
    indexing,
    masked_operations,
    masked_reductions,
    products,
    reductions,
    row_statistics,
    solvers,
)
from .operations import DEVICE_OPERATIONS, call, method

__all__ = [
    "DEVICE_OPERATIONS",
    "attention",
    "call",
    "elementwise",
    "indexing",
    "masked_operations",
    "masked_reductions",
    "method",
    "products",
    "reductions",
    "row_statistics",
    "solvers",
]

provide("device call", call)
provide("device method", method)
