"""The names of recurring parameters -> what each takes and means, written once for all docstrings.

`PARAMETERS` holds for every function; `OF` adds the names that mean something else, or occur only, in one package.
A docstring that describes a parameter itself goes first.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OF", "PARAMETERS", "RESULTS", "TYPES", "recurring"]

TENSOR, ARRAY, NUMBER, FORMAT, DTYPE = "Tensor or array_like", "array_like", "number", "str or Format", "dtype or str"

PARAMETERS: dict[str, str] = {
    "grad": (
        "Which elements have gradients over torch values: None for the stored ones, \"dense\" for every element, stored"
        " or not."
    ),
    "x": "The tensor, of any format.",
    "t": "The tensor, of any format.",
    "a": "The first operand.",
    "b": "The second operand.",
    "x1": "The first operand.",
    "x2": "The second operand, of a shape that broadcasts with that of the first.",
    "axis": "The axis or axes, counted from the end where negative; all of them if left out.",
    "axis=": "The axis, counted from the end where negative.",
    "axis1": "The first of two axes.",
    "axis2": "The second of two axes.",
    "keepdims": "Whether the axes stay, with extent 1.",
    "dtype": "The dtype of the result; by default the one that follows from the operands.",
    "device": "The device of the result, \"cpu\" or a name of torch's; by default that of the operand, else the CPU.",
    "format": "The storage format of the result, or its name; by default the one that follows from the operands.",
    "fill_value": "The value of every element that is not stored.",
    "shape": "The extents of the result.",
    "like": "The library of the result's buffers: \"numpy\", \"torch\", the module, or a tensor over them.",
    "out": "The array or dense tensor that the result is written to and that is returned.",
    "copy": "True always copies, False raises ValueError where a copy is needed, None copies where needed.",
    "order": "The order in memory of a dense result: \"C\" for row-major, \"F\" for column-major.",
    "k": "The diagonal: 0 is the main one, positive ones lie above it, negative ones below.",
    "offset": "The diagonal: 0 is the main one, positive ones lie above it, negative ones below.",
    "q": "The percentages, between 0 and 100, a number or an array of them.",
    "method": "How to choose between two neighbouring elements: \"linear\", \"lower\", ..., as in NumPy.",
    "correction": "What is taken off the number of elements before the sum of squares is divided by it.",
    "ddof": "NumPy's name of `correction`.",
    "explicit": "Whether only stored elements take part.",
    "descending": "Whether the largest elements come first.",
    "stable": "Whether equal elements keep their order; they do either way.",
    "include_initial": "Whether the result begins with the value of the empty sum or product, 0 or 1.",
    "zero_annihilates": (
        "Whether an unspecified zero stays zero whatever it meets, as in SciPy. By default the result is NumPy's on the"
        " dense arrays, where 0 * inf, 0 * NaN and 0 / 0 are NaN; one pass over the operands tells whether they differ."
    ),
    "semiring": "What sums and products are, a name or a Semiring; unspecified elements take no part.",
    "rng": "A seed, or a generator of NumPy.",
    "requires_grad": "Whether operations on the values are recorded; over torch values.",
    "check_invariants": "Whether the buffers are checked, in O(nse).",
    "layout": "A layout of torch's, or its name: \"csr\", \"csc\", \"bsr\", \"bsc\", \"coo\".",
    "pin_memory": "Whether the values are put into pinned memory, of torch values.",
    "progress": "True for a bar on stderr, or a function that is called with what is done and what there is to do.",
    "path": "The file.",
    "arrays": "The operands.",
    "mask": "The tensor whose specified elements are those that are computed; its values play no part.",
    "args": "The arguments.",
    "dim": "The dimension, counted from the end where negative.",
    "other": "The other operand, of a shape that broadcasts with that of the tensor.",
}  # fmt: skip

TYPES: dict[str, str] = {
    "x": TENSOR, "t": TENSOR, "a": TENSOR, "b": TENSOR, "x1": TENSOR, "x2": TENSOR, "input": TENSOR, "arrays": TENSOR,
    "axis": "int or sequence of int", "dim": "int or sequence of int", "dtype": DTYPE, "device": "str or device",
    "format": FORMAT, "fill_value": NUMBER, "shape": "int or sequence of int", "like": "str, module or Tensor",
    "out": "Tensor or array", "copy": "bool", "q": "number or array_like", "semiring": "str or Semiring",
    "rng": "int or numpy.random.Generator", "layout": "str or torch.layout", "mask": "Tensor or array_like of bool",
    "other": TENSOR, "operands": TENSOR, "beta": NUMBER, "alpha": NUMBER, "min": "number or array_like",
    "max": "number or array_like", "rtol": "number or array_like", "atol": "number or array_like",
    "indices": ARRAY, "values": ARRAY, "size": "sequence of int", "crow_indices": ARRAY, "col_indices": ARRAY,
    "ccol_indices": ARRAY, "row_indices": ARRAY, "compressed_indices": ARRAY, "plain_indices": ARRAY,
    "tensors": TENSOR, "data": TENSOR, "obj": "array_like", "table": "table", "elements": ARRAY,
    "condition": "Tensor or array_like of bool", "prepend": TENSOR, "append": TENSOR, "repeats": "int or array_like",
    "pad_width": "int, tuple, sequence or dict", "constant_values": "number or sequence", "threshold": NUMBER,
    "left": NUMBER, "right": NUMBER, "period": NUMBER, "xp": ARRAY, "fp": ARRAY, "sorter": ARRAY, "nan": NUMBER,
    "posinf": NUMBER, "neginf": NUMBER, "start": NUMBER, "stop": NUMBER, "diagonals": "sequence of array_like",
    "m": "array", "v": "array", "value": NUMBER, "kind": "str, dtype or tuple", "ord": "number or str",
    "arrays_and_dtypes": "array, Tensor, dtype or number", "from_": "dtype, Tensor or array", "to": DTYPE,
    "shapes": "sequence of int", "subscripts": "str", "what": "callable, str or Lazy",
    "expressions": "Lazy or anything", "coordinates": "array_like of int",
    "extents": "int or sequence of int", "axes": "int or sequence of int", "hook": "callable", "place": "int",
    "gradient": TENSOR, "inputs": "Tensor or sequence of Tensor", "index": ARRAY,
    "x0": ARRAY, "M": "Tensor, operator, callable or str", "M1": "operator", "M2": "operator", "v0": ARRAY,
    "sigma": NUMBER, "Minv": "operator", "OPinv": "operator", "B": "Tensor or operator", "Y": ARRAY, "damp": NUMBER,
    "CU": "list of tuple", "num": "int", "endpoint": "bool", "traceA": NUMBER, "permc_spec": "str", "A": TENSOR,
    "weight": "array", "bias": "array", "target": ARRAY, "logits": "MaskedTensor", "input_mask": "array_like of bool",
    "other_mask": "array_like of bool", "pattern": TENSOR, "points": ARRAY, "near_nullspace": ARRAY,
    "personalization": ARRAY, "sources": ARRAY, "source": "int or sequence of int", "seeds": ARRAY,
    "ordering": "str or array_like",
    "ax": "matplotlib.axes.Axes", "init": "str or list of array", "adjacency": TENSOR, "grad_outputs": TENSOR,
    "rows": "int, slice, range or array_like", "log_probabilities": "MaskedTensor or array",
    "blocks": "int or array_like of int",
}  # fmt: skip
"""The types of parameters whose annotation and description say none."""

_LINALG = {
    "a": "The matrix, of any format.",
    "A": "The matrix, of any format.",
    "b": "The right side, a vector (n,) or the columns of a matrix (n, k).",
    "x": "The matrix or matrices, shape (..., m, n).",
    "k": "How many.",
    "n": "The exponent.",
    "x0": "Where to start; zeros if left out.",
    "rtol": "The tolerance relative to the norm of the right side.",
    "atol": "The absolute tolerance of the residual's norm.",
    "maxiter": "The most iterations.",
    "M": "A preconditioner, which is an approximate inverse, or its name, as `cg` takes it.",
    "M1": "A preconditioner from the left.",
    "M2": "A preconditioner from the right.",
    "callback": "Called with every iterate.",
    "callback_type": "What `callback` is called with: the iterate for \"x\", else the relative residual.",
    "restart": "The iterations of a cycle, 20 if left out.",
    "progress": "True for a bar on stderr, or a function of (iterations, most iterations).",
    "dtype": "The dtype of vectors and inner products; that of the operands if left out.",
    "shift": "Solves with `a - shift * I`.",
    "show": "Whether SciPy prints what it does.",
    "check": "Whether the matrix is checked to be symmetric.",
    "m": "The inner iterations of a cycle.",
    "CU": "The pairs of vectors that a former call kept, and to which those of this one are added.",
    "discard_C": "Whether the first vector of each pair in `CU` is computed anew.",
    "truncate": "Which vectors are dropped: \"oldest\" or \"smallest\".",
    "inner_m": "The inner iterations of a cycle.",
    "outer_k": "How many directions are kept from one cycle to the next.",
    "outer_v": "The directions that a former call kept, and to which those of this one are added.",
    "store_outer_Av": "Whether products with the directions are kept beside them.",
    "prepend_outer_v": "Whether the directions come before the Krylov vectors.",
    "damp": "The weight of the solution's norm beside the residual's.",
    "btol": "The tolerance relative to the right side.",
    "conlim": "The estimated condition number at which it stops.",
    "iter_lim": "The most iterations.",
    "calc_var": "Whether the diagonal of `inv(a.H @ a)` is estimated.",
    "which": "Which values: \"LM\" the largest, \"SM\" the smallest by magnitude; \"LA\", \"SA\", ... as SciPy's.",
    "sigma": "Look for the values nearest to this number.",
    "v0": "The vector to start from; a random one if left out.",
    "ncv": "How many Lanczos or Arnoldi vectors are kept.",
    "tol": "The relative accuracy; 0 for that of the dtype.",
    "return_eigenvectors": "Whether vectors are given too.",
    "return_singular_vectors": "Whether vectors are given too; \"u\" or \"vh\" for those of one side.",
    "Minv": "The inverse of `M`, an operator.",
    "OPinv": "The inverse of `a - sigma * M`, an operator.",
    "OPpart": "\"r\" or \"i\": the part of the inverse that is iterated with a complex `sigma`.",
    "mode": "What is iterated beside `sigma`: \"normal\", \"buckling\" or \"cayley\".",
    "solver": "\"arpack\", \"lobpcg\" or \"propack\".",
    "options": "SuperLU's other options, by name; of `svds` those of the solver.",
    "permc_spec": "SuperLU's order of columns: \"COLAMD\", \"MMD_AT_PLUS_A\", \"MMD_ATA\" or \"NATURAL\".",
    "diag_pivot_thresh": "Exchange rows where the diagonal is smaller than this share of its column's largest element.",
    "relax": "SuperLU's expert option of that name: the columns of a relaxed supernode.",
    "panel_size": "SuperLU's expert option of that name: the columns of a panel.",
    "drop_tol": "Drop elements below this share of the largest.",
    "fill_factor": "The most elements of the factors, as a multiple of the matrix's.",
    "drop_rule": "SuperLU's rule by which elements are dropped: \"basic,area\", ...",
    "use_umfpack": "SciPy's, which means nothing here.",
    "lower": "Whether the lower triangle is read, else the upper one.",
    "overwrite_A": "SciPy's, which means nothing here.",
    "overwrite_b": "SciPy's, which means nothing here.",
    "unit_diagonal": "Whether the diagonal is taken as ones.",
    "ord": "Which norm: a number, inf, -inf, or a name.",
    "axis": "The axis or axes of the vectors or matrices; all elements, or the last ones, if left out.",
    "B": "The matrix of the generalised problem, positive definite.",
    "Y": "Vectors that the iteration stays orthogonal to.",
    "largest": "Whether the largest values are looked for, else the smallest.",
    "verbosityLevel": "How much SciPy prints.",
    "retLambdaHistory": "Whether the values of all iterations are given too.",
    "retResidualNormsHistory": "Whether the norms of all residuals are given too.",
    "restartControl": "How much a residual may grow before the iteration starts anew.",
    "t": "How many columns are iterated; more for a better bound.",
    "itmax": "The most iterations.",
    "compute_v": "Whether the vector v is given too.",
    "compute_w": "Whether `a @ v` is given too.",
    "start": "The first of several times.",
    "stop": "The last of several times.",
    "num": "How many times.",
    "endpoint": "Whether `stop` is one of them.",
    "traceA": "The trace of `a`, or an estimate of it.",
}  # fmt: skip

_MASKED = {
    "input": "The masked tensor, or data of which `mask` says what takes part.",
    "other": "The second operand, as `input`.",
    "dim": "The axis or axes; all of them if left out.",
    "dim=": "The axis, counted from the end where negative.",
    "axis": "The axis, counted from the end where negative.",
    "keepdim": "Whether the axes stay, with extent 1.",
    "mask": "True where an element takes part; by default the mask of the operand.",
    "input_mask": "True where an element of `input` takes part.",
    "other_mask": "True where an element of `other` takes part.",
    "unbiased": "torch's word for a `correction` of 1 or 0.",
    "correction": "What is taken off the number of elements before the sum of squares is divided by it; 1 if left out.",
    "ord": "The order of the norm.",
    "p": "The order of the norm.",
    "eps": "The least number that is divided by, or what is added to the variance.",
    "parts": "The masked tensors.",
    "a": "The first operand: masked tensor, Tensor or dense array.",
    "b": "The second operand: masked tensor, Tensor or dense array.",
    "m": "The masked tensor.",
    "x": "The masked tensor.",
    "weight": "The weights, a dense array.",
    "bias": "What is added, a dense array.",
    "reduction": "What is given: \"mean\", \"sum\", or \"none\" for the losses one by one.",
    "target": "What is aimed at: class numbers (n,) of losses of classes, else values of the shape of `input`.",
    "logits": "Scores of shape (n, classes); missing ones are classes that a row has not.",
    "how": "Masks that differ: \"equal\" refuses them, \"intersection\" and \"union\" combine them.",
    "value": "The value of new elements; they are missing if left out.",
    "widths": "For each dimension, how many elements before and behind.",
    "function": "A function of arrays that works element by element.",
    "operands": "Masked tensors, Tensors, arrays and numbers.",
    "operation": "The name that errors give.",
}  # fmt: skip

_TORCH = {
    "function": "The function that is checked.",
    "inputs": "Its arguments, in a tuple.",
    "grad_outputs": "Gradients of its results; random ones if left out.",
    "eps": "The step of finite differences.",
    "atol": "The absolute tolerance.",
    "rtol": "The relative tolerance.",
    "raise_exception": "Whether a difference raises; else the answer is False.",
    "nondet_tol": "How much derivatives may differ from one run to the next.",
    "check_undefined_grad": "Whether undefined gradients are tried too.",
    "check_grad_dtypes": "Whether gradients must have the dtypes of their operands.",
    "check_batched_grad": "Whether gradients are tried under vmap too.",
    "check_batched_forward_grad": "Whether tangents are tried under vmap too.",
    "check_forward_ad": "Whether tangents are checked.",
    "check_backward_ad": "Whether gradients are checked.",
    "check_fwd_over_rev": "Whether tangents of gradients are checked.",
    "check_rev_over_rev": "Whether gradients of gradients are checked.",
    "gen_non_contig_grad_outputs": "Whether the random gradients are not contiguous.",
    "fast_mode": "Whether derivatives are compared along random directions alone.",
    "masked": "torch's: whether unspecified elements have no gradient; those of Tensors have none.",
    "input": "The sparse operand, shape (m, in).",
    "weight": "The dense operand, shape (in, out).",
    "bias": "What is added, shape (out,).",
}

OF: dict[str, Mapping[str, str]] = {
    "linalg": _LINALG,
    "masked": _MASKED,
    "torch": _TORCH,
    "graph": {"A": "The graph, (n, n); see `openwork.graph`."},
}
"""By package, names that mean something else there."""

RESULTS = {
    (
        "linalg",
        "tuple[Any, int]",
    ): "(x, info): the solution, of the kind of `b`, and 0 where it converged, else the number of iterations.",
    ("masked", "MaskedTensor"): "The result; elements that no specified element contributes to are missing.",
}
"""By package and annotation, the results of functions that say nothing else of them."""


def recurring(name: str, package: str = "") -> str:
    """The description of a parameter of a function in `openwork.<package>`; empty where it is none that recurs.

    A name with "=" behind it is that of a parameter whose default is not None, where that makes a difference.
    """
    own, plain = OF.get(package, {}), name.removesuffix("=")
    return own.get(name) or own.get(plain) or PARAMETERS.get(name) or PARAMETERS.get(plain, "")
