"""All operations that run on devices: importing this loads their modules."""

from __future__ import annotations

from . import elementwise, products, reductions, row_statistics, solvers
from .operations import DEVICE_OPERATIONS, call

__all__ = ["DEVICE_OPERATIONS", "call", "elementwise", "products", "reductions", "row_statistics", "solvers"]
