"""Types of two CSR matrices -> the kernel of their Kronecker product, whose rows come out in order."""

from __future__ import annotations

from ..ir.loop import Kernel
from ..ir.text import parse

__all__ = ["kronecker_kernel"]


def kronecker_kernel(left: str, right: str, index: str, scalar: str) -> Kernel:
    """Row (i, k) of the result is row i of A times row k of B: columns (j, l) ascend as j and l do.

    left, right : types of the index arrays of A and of B; index : of the result's; scalar : of all values
    """
    a = f"a_pos: {left}[const], a_crd: {left}[const], a_vals: {scalar}[const]"
    b = f"b_pos: {right}[const], b_crd: {right}[const], b_vals: {scalar}[const]"
    out = f"pos: {index}[const], crd: {index}[mut], vals: {scalar}[mut]"
    return parse(
        f"""
        def kronecker(lo: i64, hi: i64, {a}, {b}, rows: i64, columns: i64, {out}):
            for i in range(lo, hi):
                for k in range(0, rows):
                    first = i64(b_pos[k])
                    count = i64(b_pos[k + 1]) - first
                    row = i64(pos[i * rows + k])
                    for p in range(i64(a_pos[i]), i64(a_pos[i + 1])):
                        begin = row + (p - i64(a_pos[i])) * count
                        for q in range(0, count):
                            crd[begin + q] = {index}(i64(a_crd[p]) * columns + i64(b_crd[first + q]))
                            vals[begin + q] = a_vals[p] * b_vals[first + q]
        """
    )
