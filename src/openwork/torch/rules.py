"""The gradient rule of each operation that has kernels behind it, by the operation's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..provided import provide
from .dense_gradient import tensor as dense_gradient
from .functions import call as functions
from .functions import methods
from .functions.autocast_traced import autocast
from .gradients import (
    assignment,
    batched,
    eigenpairs,
    krylov,
    leaves,
    merges,
    nary,
    permutation,
    pointwise,
    products,
    reductions,
    row_softmax,
    single_operand,
    solvers,
    sparse_layouts,
)

__all__ = ["RULES"]

RULES: dict[str, Callable[..., Any]] = {
    "alone": products.alone,
    "assign": assignment.assign,
    "autocast": autocast,
    "backward": leaves.backward,
    "clamp": nary.clamp,
    "combine": assignment.combine,
    "contract": single_operand.contract,
    "convert": permutation.convert,
    "det": solvers.det,
    "factorization_slogdet": solvers.factorization_slogdet,
    "factorization_solve": solvers.factorization_solve,
    "slogdet": solvers.slogdet,
    "eigs": eigenpairs.eigs,
    "eigsh": eigenpairs.eigsh,
    "lobpcg": eigenpairs.lobpcg,
    "svds": eigenpairs.svds,
    "dense_result": pointwise.dense_result,
    "fold": reductions.fold,
    **{name: krylov.solver_rule(name) for name in krylov.SOLVERS},
    "least_squares_solve": krylov.factored_least_squares,
    "lsmr": krylov.least_squares_rule("lsmr"),
    "lsqr": krylov.least_squares_rule("lsqr"),
    "dense_gradient": dense_gradient.run,
    "index": permutation.index,
    "index_selection": permutation.index_selection,
    "concat": permutation.concat,
    "masked": products.masked,
    "on_structure": leaves.on_structure,
    "on_values": permutation.on_values,
    "over_torch": nary.operands_over_torch,
    "pair": products.pair,
    "place_blocks": permutation.place_blocks,
    "prune": permutation.prune,
    "small_product": products.small_product,
    "row_softmax": row_softmax.row_softmax,
    "run_merge": merges.run_merge,
    "sample": single_operand.sample,
    "sparse_mask": permutation.sparse_mask,
    "remap_one": permutation.remap_one,
    "solve": solvers.solve,
    "solve_triangular": solvers.solve_triangular,
    "total": reductions.total,
    "transformed": batched.transformed,
    "torch_function": functions.call,
    "torch_method": methods.method,
    "torch_values": sparse_layouts.torch_values,
    "with_number": nary.with_number,
}

provide("torch rules", RULES)
