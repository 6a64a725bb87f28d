"""The gradient rule of each operation that has kernels behind it, by the operation's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import (
    assignment,
    batched,
    exchange,
    full,
    functions,
    leaf_gradients,
    methods,
    pointwise,
    prepared_product,
    products,
    reductions,
    solvers,
)
from . import nary as several
from . import permutation_gradient as positions
from . import single_operand as drive

__all__ = ["RULES"]

RULES: dict[str, Callable[..., Any]] = {
    "alone": products.alone,
    "assign": assignment.assign,
    "backward": leaf_gradients.backward,
    "combine": assignment.combine,
    "contract": drive.contract,
    "convert": positions.convert,
    "det": solvers.det,
    "slogdet": solvers.slogdet,
    "dense_result": pointwise.dense_result,
    "fold": reductions.fold,
    "full": full.run,
    "index": positions.index,
    "index_selection": positions.index_selection,
    "concat": positions.concat,
    "masked": products.masked,
    "on_structure": leaf_gradients.on_structure,
    "on_values": positions.on_values,
    "pair": products.pair,
    "place_blocks": positions.place_blocks,
    "prepared_step": prepared_product.prepared_step,
    "prune": positions.prune,
    "run_plan": pointwise.run_plan,
    "shared": drive.shared,
    "sparse_mask": positions.sparse_mask,
    "remap_one": positions.remap_one,
    "solve": solvers.solve,
    "solve_triangular": solvers.solve_triangular,
    "total": reductions.total,
    "transformed": batched.transformed,
    "torch_function": functions.call,
    "torch_method": methods.method,
    "torch_values": exchange.torch_values,
    "with_number": several.with_number,
}
