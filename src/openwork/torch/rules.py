"""The gradient rule of each operation that has kernels behind it, by the operation's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import (
    assignment,
    batched,
    dense_gradient,
    eigenpairs,
    functions,
    leaf_gradients,
    methods,
    nary,
    permutation_gradient,
    pointwise,
    prepared_merge,
    prepared_product,
    prepared_spgemm,
    products,
    recorded_reductions,
    reductions,
    single_operand,
    solvers,
    sparse_layouts,
)

__all__ = ["RULES"]

RULES: dict[str, Callable[..., Any]] = {
    "alone": products.alone,
    "assign": assignment.assign,
    "backward": leaf_gradients.backward,
    "combine": assignment.combine,
    "contract": single_operand.contract,
    "convert": permutation_gradient.convert,
    "det": solvers.det,
    "slogdet": solvers.slogdet,
    "eigsh": eigenpairs.eigsh,
    "svds": eigenpairs.svds,
    "dense_result": pointwise.dense_result,
    "fold": reductions.fold,
    "dense_gradient": dense_gradient.run,
    "index": permutation_gradient.index,
    "index_selection": permutation_gradient.index_selection,
    "concat": permutation_gradient.concat,
    "keep_spgemm": prepared_spgemm.keep_spgemm,
    "keep_sampled": prepared_product.keep_sampled,
    "masked": products.masked,
    "on_structure": leaf_gradients.on_structure,
    "on_values": permutation_gradient.on_values,
    "over_torch": nary.operands_over_torch,
    "pair": products.pair,
    "place_blocks": permutation_gradient.place_blocks,
    "prepared_spgemm": prepared_spgemm.prepared_spgemm,
    "prepared_step": prepared_product.prepared_step,
    "recorded_softmax": recorded_reductions.recorded_softmax,
    "recorded_sum": recorded_reductions.recorded_sum,
    "prune": permutation_gradient.prune,
    "run_merge": prepared_merge.run_merge,
    "sample": single_operand.sample,
    "sparse_mask": permutation_gradient.sparse_mask,
    "remap_one": permutation_gradient.remap_one,
    "solve": solvers.solve,
    "solve_triangular": solvers.solve_triangular,
    "total": reductions.total,
    "transformed": batched.transformed,
    "torch_function": functions.call,
    "torch_method": methods.method,
    "torch_values": sparse_layouts.torch_values,
    "with_number": nary.with_number,
}
