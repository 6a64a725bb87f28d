"""Calls of the public API whose kernels are golden: operands by format, a function of them, what there is to learn.

`test_stages.py` writes and compares their stages, `tools/replay.py` runs them in two trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import openwork as ow

__all__ = ["CALLS", "Call", "Operand", "Row"]

UNCOALESCED = "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"


@dataclass(frozen=True)
class Operand:
    """A sparse tensor of random elements, the same in every run."""

    format: str
    shape: tuple[int, ...] = (12, 12)
    density: float = 0.3
    dtype: str = "float64"

    def array(self, seed: int) -> np.ndarray[Any, Any]:
        """The dense array: small whole numbers, so that sums are exact."""
        rng = np.random.default_rng(seed)
        values = rng.integers(1, 9, self.shape)
        return np.where(rng.random(self.shape) < self.density, values, 0).astype(self.dtype)

    def tensor(self, seed: int) -> Any:
        """The array as a tensor of this format."""
        return ow.asarray(self.array(seed)).asformat(self.format)


@dataclass(frozen=True)
class Row:
    """A dense vector, which calls take as NumPy's array."""

    size: int = 12

    def array(self, seed: int) -> np.ndarray[Any, Any]:
        return np.arange(1.0, self.size + 1)

    tensor = array


@dataclass(frozen=True)
class Call:
    """What is computed (`statement`), of what (`operands`), how it is asked for (`function`).

    strategy: the functions of `compiler/` that make this kernel, and no plainer one, "module.function"
    dense: the function on dense arrays, where it is another than `function`
    vectors: whether the processor puts lanes of vectors in their places by one instruction
    """

    statement: str
    operands: Mapping[str, Operand | Row]
    function: Callable[..., Any]
    lesson: str
    strategy: tuple[str, ...] = ()
    dense: Callable[..., Any] | None = None
    vectors: bool = True
    target: str = field(default="")
    """of a conversion: the format's text"""

    def tensors(self) -> dict[str, Any]:
        return {name: operand.tensor(k) for k, (name, operand) in enumerate(self.operands.items())}

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: operand.array(k) for k, (name, operand) in enumerate(self.operands.items())}


def _conversion(source: str, target: str, lesson: str, *strategy: str, ndim: int = 2) -> Call:
    shape = (12, 12) if ndim == 2 else (6, 6, 6)
    indices = ", ".join("ijk"[:ndim])
    return Call(
        f"B[{indices}] = A[{indices}]",
        {"A": Operand(source, shape)},
        lambda A: A.asformat(target),
        lesson,
        strategy,
        dense=lambda A: A,
        target=target,
    )


CONVERSIONS = {
    "csr-to-dense-scatter": _conversion(
        "csr", "dense", "Every position of the target is computed from the coordinates: one walk of the source, one store"
        " an element, into memory that holds zeros.", "conversion.scatter.scatter_kernel",
    ),
    "csr-to-bitmap-scatter": _conversion(
        "csr", "bitmap", "As to dense, with a bit at the same position that says that the element is stored.",
        "conversion.scatter.scatter_kernel",
    ),
    "dense-to-csr-append": _conversion(
        "dense", "csr", "The walk is in the target's order, so elements are appended. How many there are nobody knows: a"
        " counting walk first, whose counts become pos by a prefix sum; then the same walk fills crd and values.",
        "conversion.append.append_kernel",
    ),
    "csr-to-coo-append": _conversion(
        "csr", "coo", "In order, and as many elements as before: crd of the columns and the values are kept as they are,"
        " only the rows' coordinates are written.", "conversion.append.append_kernel",
    ),
    "coo-to-csr-append": _conversion(
        "coo", "csr", "The other way round: counting how often each row occurs gives pos.",
        "conversion.append.append_kernel",
    ),
    "csr-to-csc-bucket": _conversion(
        "csr", "csc", "Another order of dimensions, by counting sort: a histogram of columns, its prefix sum, which is pos,"
        " and a stable scatter of rows and values. As rows are walked in order, each column's rows come sorted.",
        "conversion.bucket.scatter_kernel",
    ),
    "uncoalesced-to-csr-bucket-and-sort": _conversion(
        UNCOALESCED, "csr", "Elements in any order, several at one coordinate: buckets by row as for CSC, then every row"
        " is sorted by column (by insertion where short) and equal columns are added.",
        "conversion.segment_sort.order_kernel",
    ),
    "csr-to-bsr-group": _conversion(
        "csr", "bsr(2, 2)", "Blocks: the rows of a block row are walked one after the other; which block columns occur is"
        " noted in a list, the list is sorted, and every element goes to its place in its block.",
        "conversion.group.touch_kernel", "conversion.group.fill_kernel",
    ),
    "csr-to-dia-group": _conversion(
        "csr", "dia", "Diagonals j - i are grouped as block columns are: those that occur are noted and sorted, then"
        " each element goes to its place on its diagonal.", "conversion.group.touch_kernel", "conversion.group.fill_kernel",
    ),
    "bsr-to-bsc-blocks": _conversion(
        "bsr(2, 2)", "bsc(2, 2)", "The same blocks in another order: what stands above them is converted as CSR to CSC is,"
        " by buckets, with block numbers for values; then whole blocks are copied.", "conversion.blocks.copy_blocks_kernel",
    ),
    "ell-to-csr-append": _conversion(
        "ell(9)", "csr", "A padded source: slots that hold no element are passed over, in the counting walk and in the"
        " one that fills.", "conversion.append.append_kernel",
    ),
    "csf-to-reversed-csf-two-stages": _conversion(
        "csf", "(i, j, k) -> (k : compressed, j : compressed, i : compressed)",
        "Two stages: buckets by the first dimension of the target, sorted inside, then an append that drops what occurs"
        " twice from the upper levels.", "conversion.bucket.scatter_kernel", "conversion.append.append_kernel", ndim=3,
    ),
}  # fmt: skip

_A, _B = Operand("csr"), Operand("csr", density=0.25)


def _product(statement: str, lesson: str, function: Callable[..., Any], dense: Callable[..., Any] | None = None,
             **operands: Operand) -> Call:  # fmt: skip
    return Call(statement, operands or {"A": _A, "B": _B}, function, lesson, dense=dense)


def _min_plus(A: Any, B: Any) -> Any:
    a, b = (np.where(x == 0, np.inf, x) for x in (A, B))
    return np.min(a[:, :, None] + b[None, :, :], axis=1)


SPGEMM = {
    "csr-csr": _product(
        "C[i, k] += A[i, j] * B[j, k]",
        "Gustavson's product, row by row: row i of C is the sum of the rows j of B that row i of A names. A first kernel"
        " counts products, which bounds the rows' lengths. The second chooses an accumulator by a row's products: a copy"
        " of one row, a sorted list, a hash table, a dense row with a bitmap of what was touched.",
        lambda A, B: A @ B,
    ),
    "csr-csr-float-times-integer": _product(
        "C[i, k] += A[i, j] * B[j, k]",
        "Operands of two dtypes: each element is cast where it is read, nothing is converted before.",
        lambda A, B: A @ B,
        A=Operand("csr", dtype="float32"), B=Operand("csr", dtype="int16"),
    ),
    "csr-csr-min-plus": _product(
        "C[i, k] min= A[i, j] + B[j, k]",
        "Shortest paths: the same loops over the semiring (min, +). What is not stored is infinity, the identity of min,"
        " and takes no part.",
        lambda A, B: ow.spgemm(_over_infinity(A), _over_infinity(B), semiring="min_plus"),
        _min_plus,
    ),
    "csr-csr-bool": _product(
        "C[i, k] |= A[i, j] & B[j, k]",
        "Reachability: the semiring (or, and) over bool.",
        lambda A, B: ow.spgemm(A, B, semiring="lor_land"),
        lambda A, B: (A.astype(int) @ B.astype(int)).astype(bool),
        A=Operand("csr", dtype="bool"), B=Operand("csr", dtype="bool"),
    ),
    "csr-csr-masked": _product(
        "C[i, k] += M[i, k] ? A[i, j] * B[j, k]",
        "Only at the elements of a mask: a row of the mask is spread over `place`, which tells for each column its slot"
        " or that it is not wanted; the row's length is known beforehand.",
        lambda A, B, M: ow.spgemm(A, B, mask=M),
        lambda A, B, M: np.where(M != 0, A @ B, 0),
        A=_A, B=_B, M=Operand("csr", density=0.2),
    ),
    "csr-csr-masked-complement": _product(
        "C[i, k] += M[i, k] ? 0 : A[i, j] * B[j, k]",
        "Everywhere but at the elements of a mask: the full product, with a veto for each column that is asked before"
        " anything is accumulated.",
        lambda A, B, M: ow.spgemm(A, B, mask=M, complement=True),
        lambda A, B, M: np.where(M == 0, A @ B, 0),
        A=_A, B=_B, M=Operand("csr", density=0.2),
    ),
}  # fmt: skip


def _over_infinity(t: Any) -> Any:
    """The elements of a tensor, infinity elsewhere."""
    parts = {"pos": {1: t.pos(1)}, "crd": {1: t.crd(1)}}
    return ow.assemble(t.format, t.shape, values=t.values, fill_value=np.inf, **parts)


_LONG, _FEW = {"shape": (80, 80), "density": 0.4}, {"shape": (80, 80), "density": 0.002}


def _pointwise(text: str, names: str, lesson: str, *strategy: str, format: str = "csr", vectors: bool = True) -> Call:
    operands = {name: Operand(format, density=0.3) for name in names}
    return Call(
        f"R[i, j] = {text}", operands, lambda **tensors: ow.pointwise(text, tensors), lesson, strategy,
        dense=lambda **arrays: eval(text.replace("[i, j]", ""), {}, arrays), vectors=vectors,
    )  # fmt: skip


MERGES = {
    "union-two-fingers": Call(
        "C[i, j] = A[i, j] + B[i, j]", {"A": _A, "B": _B}, lambda A, B: A + B,
        "A union by two fingers, for processors without AVX-512: every coordinate that A or B has. Which one is ahead"
        " nobody can foresee, so there is no branch on it: both values are read, the absent one is replaced by the fill"
        " value, and each finger moves by the truth value of having been there.",
        ("coiterate.lower.branch_free", "coiterate.branch_free.value_of"), vectors=False,
    ),
    "union-simd": Call(
        "C[i, j] = A[i, j] + B[i, j]", {"A": _A, "B": _B}, lambda A, B: A + B,
        "The same union in vectors: an element's place is the number of coordinates before it, which comparisons of"
        " blocks count; `expand` puts the values there. Two fingers finish the rows.",
        ("coiterate.union_simd.union_in_vectors",),
    ),
    "intersect-simd": Call(
        "C[i, j] = A[i, j] * B[i, j]", {"A": _A, "B": _B}, lambda A, B: A * B,
        "An intersection: only what both have. Blocks of 8 coordinates are compared all with all, most have nothing in"
        " common, and two fingers finish the rows.",
        ("coiterate.intersect_simd.intersect_in_vectors",),
    ),
    "gallop-csr": Call(
        "C[i, j] = A[i, j] * B[i, j]", {"A": Operand("csr", **_LONG), "B": Operand("csr", **_FEW)},
        lambda A, B: A * B,
        "B has far fewer elements than A: B is walked, and A searched for each, by leaps that grow and then by halves."
        " Rows without an element of B are passed by a search in its pos.",
        ("coiterate.gallop.gallop_level", "coiterate.search.gallop"),
    ),
    "gallop-dcsr": Call(
        "C[i, j] = A[i, j] * B[i, j]", {"A": Operand("csr", **_LONG), "B": Operand("dcsr", **_FEW)},
        lambda A, B: A * B,
        "As before, and the rows of B are compressed too: they are walked, and A is asked for each row by its number.",
        ("coiterate.gallop.gallop_level",),
    ),
    "locate-dense": Call(
        "R[i, j] = A[i, j] + B[i, j] * D[i, j]",
        {"A": _A, "B": _B, "D": Operand("dense")}, lambda **t: ow.pointwise("A[i, j] + B[i, j] * D[i, j]", t),
        "A dense operand takes no part in the walk: it has every coordinate, so it is asked for those of A and B by"
        " computing a position.",
        ("coiterate.cursor.locate",), dense=lambda A, B, D: A + B * D,
    ),
    "bitmap": Call(
        "C[i, j] = A[i, j] + B[i, j]", {"A": Operand("bitmap"), "B": Operand("bitmap")}, lambda A, B: A + B,
        "Bitmaps have a bit and a value for every coordinate: one counted loop without a branch, which LLVM turns into"
        " vectors.",
        ("coiterate.bitmap.store_bitmap_element",),
    ),
    "blocks-bsr": Call(
        "C[i, j] = A[i, j] + B[i, j]", {"A": Operand("bsr(2, 2)"), "B": Operand("bsr(2, 2)")}, lambda A, B: A + B,
        "Blocks: the union is that of block columns, and below each a dense block is computed from those that are there.",
        ("coiterate.lower.cases",),
    ),
    "segments-coo": Call(
        "C[i, j] = A[i, j] * B[i, j]", {"A": Operand("coo"), "B": Operand("coo")}, lambda A, B: A * B,
        "Rows of COO are segments of equal coordinates: the end of each is found before the columns below are walked.",
        ("coiterate.cursor.segment",),
    ),
    "diagonals-dia": Call(
        "C[i, j] = A[i, j] + B[i, j]", {"A": Operand("dia"), "B": Operand("dia")}, lambda A, B: A + B,
        "Diagonals: the union of the diagonals' numbers, and below each a counted loop over the rows that it meets.",
        ("coiterate.lower.cases",),
    ),
    "broadcast-row": Call(
        "C[i, j] = A[i, j] + R[0, j]", {"A": _A, "R": Operand("csr", (1, 12), 0.4)}, lambda A, R: A + R,
        "A dimension of extent 1 is stretched: the row's first level is entered once, and its elements are walked again"
        " for every row of A.",
        ("coiterate.cursor.locate_broadcast",),
    ),
    "subexpression-order": _pointwise(
        "A[i, j] * B[i, j] + C[i, j]", "ABC",
        "A product inside a sum is walked first, alone: a workspace W holds the row A * B, then W + C is a union of two."
        " A walk of all three would step through each coordinate of A and B that is not in the other.",
        "coiterate.subexpression_order.walk_subexpressions", "coiterate.workspace.workspace",
    ),
    "workspace-of-many": _pointwise(
        "A[i, j] + B[i, j] + C[i, j] + D[i, j] + E[i, j]", "ABCDE",
        "A sum of many operands, a few at a time: its lattice would have 31 points. Each workspace holds the sum of a"
        " part of the operands.",
        "coiterate.workspace.workspace", vectors=False,
    ),
    "predicated": _pointwise(
        "(A[i, j] + B[i, j]) * (C[i, j] + D[i, j]) + E[i, j]", "ABCDE",
        "So many operands that no code is made for each set of them: one body, and a truth value for every operand that"
        " says whether it has a block there. What is computed follows the expression, operation by operation.",
        "coiterate.predicated.union_loop", format="bsr(2, 2)",
    ),
    "reduction": Call(
        "y[i] += A[i, j] + B[i, j]", {"A": _A, "B": _B}, lambda **t: ow.evaluate("y[i] += A[i, j] + B[i, j]", **t),
        "The union is summed and not stored: a register below the last loop that moves in the result.",
        ("coiterate.reduction.store_if",), dense=lambda A, B: (A + B).sum(axis=1),
    ),
    "value-guard": Call(
        "R[i, j] = where(M[i, j], A[i, j], B[i, j])",
        {"M": _A, "A": _A, "B": _B},
        lambda M, A, B: ow.where(*map(_masked, (M, A, B))).filled(0),
        "Masked tensors: where the branch that M takes is missing there is no element, and that is known from the value"
        " of M alone, in the loop.",
        ("coiterate.value_guard.decide",),
        dense=lambda M, A, B: np.where(M != 0, A, 0),
    ),
}  # fmt: skip


def _masked(t: Any) -> Any:
    return ow.masked_tensor(t, t.astype(bool))


CALLS: dict[str, dict[str, Call]] = {"conversion": CONVERSIONS, "spgemm": SPGEMM, "coiterate": MERGES}
"""By folder and file."""
