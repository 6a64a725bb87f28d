"""The names of recurring parameters -> what each takes and means, written once for all docstrings.

`PARAMETERS` holds for every function; `OF` adds the names that mean something else, or occur only, in one package.
A docstring that describes a parameter itself goes first.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OF", "PARAMETERS", "TYPES", "recurring"]

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
    "gradient": TENSOR, "inputs": "Tensor or sequence of Tensor", "index": ARRAY, "blocks": "int or array_like of int",
}  # fmt: skip
"""The types of parameters whose annotation and description say none."""

OF: dict[str, Mapping[str, str]] = {}
"""By package, names that mean something else there."""


def recurring(name: str, package: str = "") -> str:
    """The description of a parameter of a function in `openwork.<package>`; empty where it is none that recurs."""
    return OF.get(package, {}).get(name) or PARAMETERS.get(name, "")
