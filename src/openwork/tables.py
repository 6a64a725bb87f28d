"""Public operations by name: made by `python tools/operations.py` from their blocks; change those."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES", "EXAMPLES", "GRADIENTS", "HOMES", "LAZY", "MASKED", "METHODS", "NUMPY", "OPERANDS", "OPERATORS",
    "PLACES", "REFUSED", "SPOKEN", "TORCH",
]  # fmt: skip

EXAMPLES: dict[str, str] = {
    "abs": ">>> A = ow.asarray([0, -2.5, 3.0], format=\"coo\")\n>>> ow.abs(A).to_numpy()\narray([0. , 2.5, 3. ])",
    "acos": ">>> angles = ow.acos(ow.asarray([0, 1.0], format=\"coo\"))\n>>> angles.nse, round(angles.fill_value, 3)\n(1, 1.571)",
    "acosh": ">>> ow.acosh(ow.asarray([1.0, 4.0])).to_numpy().round(3)\narray([0.   , 2.063])",
    "add": ">>> A = ow.eye(3, format=\"csr\")\n>>> ow.add(A, A.T).nse, ow.add(A, 1).fill_value\n(3, 1.0)",
    "asin": ">>> ow.asin(ow.asarray([0, 0.5, 1.0], format=\"coo\")).to_numpy().round(3)\narray([0.   , 0.524, 1.571])",
    "asinh": ">>> ow.asinh(ow.asarray([0, 100.0], format=\"coo\")).to_numpy().round(3)\narray([0.   , 5.298])",
    "atan": ">>> ow.atan(ow.asarray([0, 1.0, np.inf], format=\"coo\")).to_numpy().round(3)\narray([0.   , 0.785, 1.571])",
    "atan2": ">>> y, x = ow.asarray([1.0, 0, -1], format=\"coo\"), ow.asarray([1.0, 0, 0], format=\"coo\")\n>>> ow.atan2(y, x).to_numpy().round(3)\narray([ 0.785,  0.   , -1.571])",
    "atanh": ">>> ow.atanh(ow.asarray([0, 0.5], format=\"coo\")).to_numpy().round(3)\narray([0.   , 0.549])",
    "bitwise_and": ">>> flags = ow.asarray([0, 6, 7], format=\"coo\")\n>>> ow.bitwise_and(flags, 2).to_numpy()\narray([0, 2, 2])",
    "bitwise_invert": ">>> flags = ow.asarray([0, 6], format=\"coo\")\n>>> (~flags).to_numpy(), (~flags).fill_value\n(array([-1, -7]), -1)",
    "bitwise_left_shift": ">>> ow.bitwise_left_shift(ow.asarray([0, 6, 1], format=\"coo\"), 2).to_numpy()\narray([ 0, 24,  4])",
    "bitwise_or": ">>> a, b = ow.asarray([0, 6], format=\"coo\"), ow.asarray([1, 3], format=\"coo\")\n>>> (a | b).to_numpy()\narray([1, 7])",
    "bitwise_right_shift": ">>> ow.bitwise_right_shift(ow.asarray([0, 64, 9], format=\"coo\"), 3).to_numpy()\narray([0, 8, 1])",
    "bitwise_xor": ">>> a, b = ow.asarray([0, 6], format=\"coo\"), ow.asarray([1, 3], format=\"coo\")\n>>> (a ^ b).to_numpy()\narray([1, 5])",
    "ceil": ">>> ow.ceil(ow.asarray([0, -2.5, 1.2], format=\"coo\")).to_numpy()\narray([ 0., -2.,  2.])",
    "conj": ">>> ow.conj(ow.asarray([1 + 2j, 3 - 1j])).to_numpy()\narray([1.-2.j, 3.+1.j])",
    "copysign": ">>> ow.copysign(ow.asarray([2.5, 3.0]), ow.asarray([-1.0, 4.0])).to_numpy()\narray([-2.5,  3. ])",
    "cos": ">>> waves = ow.cos(ow.asarray([0, np.pi, 0], format=\"coo\"))\n>>> waves.nse, waves.fill_value\n(1, 1.0)",
    "cosh": ">>> ow.cosh(ow.asarray([0, 1.0], format=\"coo\")).to_numpy().round(3)\narray([1.   , 1.543])",
    "divide": ">>> counts = ow.asarray([[2, 0, 2], [0, 1, 0]], format=\"csr\")\n>>> ow.divide(counts, counts.sum(axis=1, keepdims=True)).to_numpy()\narray([[0.5, 0. , 0.5],\n       [0. , 1. , 0. ]])",
    "equal": ">>> a, b = ow.eye(3, format=\"csr\"), ow.eye(3, format=\"dia\")\n>>> bool(ow.equal(a, b).all())\nTrue",
    "erf": ">>> ow.erf(ow.asarray([0, 0.5, 2.0], format=\"coo\")).to_numpy().round(3)\narray([0.   , 0.52 , 0.995])",
    "exp": ">>> grown = ow.exp(ow.asarray([0, 1.0], format=\"coo\"))\n>>> grown.nse, grown.fill_value\n(1, 1.0)",
    "expm1": ">>> ow.expm1(ow.asarray([0, 1e-20, 1.0], format=\"coo\")).to_numpy()\narray([0.00000000e+00, 1.00000000e-20, 1.71828183e+00])",
    "floor": ">>> ow.floor(ow.asarray([0, -2.5, 1.8], format=\"coo\")).to_numpy()\narray([ 0., -3.,  1.])",
    "floor_divide": ">>> ow.floor_divide(ow.asarray([0, 7, -7], format=\"coo\"), 2).to_numpy()\narray([ 0,  3, -4])",
    "greater": ">>> A = ow.asarray([0, 0.5, 2], format=\"coo\")\n>>> (A * ow.greater(A, 1)).prune().nse\n1",
    "greater_equal": ">>> A = ow.asarray([0, 5, -3], format=\"coo\")\n>>> ow.greater_equal(A, 5).to_numpy()\narray([False,  True, False])",
    "hypot": ">>> ow.hypot(ow.asarray([3.0, 0], format=\"coo\"), ow.asarray([4.0, 0], format=\"coo\")).to_numpy()\narray([5., 0.])",
    "imag": ">>> ow.imag(ow.asarray([0, 1 + 2j], format=\"coo\")).to_numpy()\narray([0., 2.])",
    "isfinite": ">>> fine = ow.isfinite(ow.asarray([0, np.nan, 1.0], format=\"coo\"))\n>>> fine.to_numpy(), fine.fill_value\n(array([ True, False,  True]), True)",
    "isinf": ">>> bool(ow.isinf(ow.asarray([0, -np.inf, 1.0], format=\"coo\")).any())\nTrue",
    "isnan": ">>> int(ow.isnan(ow.asarray([0, np.nan, 1.0], format=\"coo\")).sum())\n1",
    "less": ">>> A = ow.asarray([0, 5, -3], format=\"coo\")\n>>> ow.less(A, 0).to_numpy()\narray([False, False,  True])",
    "less_equal": ">>> within = ow.less_equal(ow.asarray([0, 5, -3], format=\"coo\"), 0)\n>>> within.nse, within.fill_value\n(2, True)",
    "log": ">>> ow.log(ow.asarray([1.0, np.e])).to_numpy()\narray([0., 1.])",
    "log10": ">>> ow.log10(ow.asarray([1.0, 1000.0])).to_numpy()\narray([0., 3.])",
    "log1p": ">>> counts = ow.asarray([[0, 9], [0, 99]], format=\"csr\")\n>>> ow.log1p(counts).values.round(3)\narray([2.303, 4.605])",
    "log2": ">>> ow.log2(ow.asarray([1.0, 8.0])).to_numpy()\narray([0., 3.])",
    "logaddexp": ">>> ow.logaddexp(ow.asarray([-1000.0, 0]), ow.asarray([-1000.0, 1])).to_numpy().round(3)\narray([-999.307,    1.313])",
    "logical_and": ">>> a, b = ow.asarray([0, 2, 3], format=\"coo\"), ow.asarray([1, 0, 5], format=\"coo\")\n>>> ow.logical_and(a, b).to_numpy()\narray([False, False,  True])",
    "logical_not": ">>> empty = ow.logical_not(ow.eye(1000, format=\"csr\"))\n>>> empty.nse, int(empty.sum())\n(1000, 999000)",
    "logical_or": ">>> a, b = ow.asarray([0, 2, 0], format=\"coo\"), ow.asarray([0, 1, 5], format=\"coo\")\n>>> ow.logical_or(a, b).to_numpy()\narray([False,  True,  True])",
    "logical_xor": ">>> a, b = ow.asarray([0, 2, 0], format=\"coo\"), ow.asarray([0, 1, 5], format=\"coo\")\n>>> ow.logical_xor(a, b).to_numpy()\narray([False, False,  True])",
    "maximum": ">>> A = ow.asarray([[0, 2], [5, 0]], format=\"csr\")\n>>> ow.maximum(A, A.T).to_numpy()  # symmetric\narray([[0, 5],\n       [5, 0]])",
    "minimum": ">>> ow.minimum(ow.asarray([0, 5, -3], format=\"coo\"), 2).to_numpy()\narray([ 0,  2, -3])",
    "multiply": ">>> A = ow.asarray([[0, 2], [5, 1]], format=\"csr\")\n>>> ow.multiply(A, np.array([[10], [1]])).to_numpy()\narray([[ 0, 20],\n       [ 5,  1]])",
    "negative": ">>> ow.negative(ow.asarray([0, -2, 3], format=\"coo\")).to_numpy()\narray([ 0,  2, -3])",
    "nextafter": ">>> float(ow.nextafter(ow.asarray(1.0), ow.asarray(2.0)) - 1.0)\n2.220446049250313e-16",
    "not_equal": ">>> a, b = ow.asarray([0, 2, 3], format=\"coo\"), ow.asarray([0, 2, 4], format=\"csf\")\n>>> int(ow.not_equal(a, b).sum())\n1",
    "pow": ">>> A = ow.asarray([0, 2, 3], format=\"coo\")\n>>> ow.pow(A, 2).to_numpy()\narray([0, 4, 9])",
    "real": ">>> ow.real(ow.asarray([0, 1 + 2j], format=\"coo\")).to_numpy()\narray([0., 1.])",
    "reciprocal": ">>> ow.reciprocal(ow.asarray([1.0, 4.0])).to_numpy()\narray([1.  , 0.25])",
    "remainder": ">>> ow.remainder(ow.asarray([0, 7, -7], format=\"coo\"), 4).to_numpy()\narray([0, 3, 1])",
    "sign": ">>> ow.sign(ow.asarray([0, -2.5, 7.0], format=\"coo\")).to_numpy()\narray([ 0., -1.,  1.])",
    "signbit": ">>> ow.signbit(ow.asarray([1.0, -0.0])).to_numpy()\narray([False,  True])",
    "sin": ">>> waves = ow.sin(ow.asarray([0, np.pi / 2, 0], format=\"coo\"))\n>>> waves.nse, waves.to_numpy()\n(1, array([0., 1., 0.]))",
    "sinh": ">>> ow.sinh(ow.asarray([0, 1.0], format=\"coo\")).to_numpy().round(3)\narray([0.   , 1.175])",
    "sqrt": ">>> A = ow.asarray([[0, 4.0], [9.0, 0]], format=\"csr\")\n>>> ow.sqrt(A).values\narray([2., 3.])",
    "square": ">>> A = ow.asarray([[0, 3.0], [4.0, 0]], format=\"csr\")\n>>> float(ow.square(A).sum()) ** 0.5\n5.0",
    "subtract": ">>> A = ow.asarray([[0, 2], [5, 1]], format=\"csr\")\n>>> ow.subtract(A, A.T).to_numpy()\narray([[ 0, -3],\n       [ 3,  0]])",
    "tan": ">>> ow.tan(ow.asarray([0, np.pi / 4], format=\"coo\")).to_numpy().round(3)\narray([0., 1.])",
    "tanh": ">>> ow.tanh(ow.asarray([0, 0.5, 100.0], format=\"coo\")).to_numpy().round(3)\narray([0.   , 0.462, 1.   ])",
    "trunc": ">>> ow.trunc(ow.asarray([0, -2.5, 1.8], format=\"coo\")).to_numpy()\narray([ 0., -2.,  1.])",
}
"""Elementwise functions, and a call of each with its result."""

REFUSED: dict[str, str] = {
    "atan2": "complex numbers",
    "bitwise_and": "floats and complex numbers",
    "bitwise_invert": "floats and complex numbers",
    "bitwise_left_shift": "floats and complex numbers",
    "bitwise_or": "floats and complex numbers",
    "bitwise_right_shift": "floats and complex numbers",
    "bitwise_xor": "floats and complex numbers",
    "ceil": "complex numbers",
    "copysign": "complex numbers",
    "floor": "complex numbers",
    "floor_divide": "complex numbers",
    "hypot": "complex numbers",
    "logaddexp": "complex numbers",
    "negative": "bool",
    "nextafter": "complex numbers",
    "remainder": "complex numbers",
    "sign": "bool",
    "signbit": "complex numbers",
    "subtract": "bool",
    "trunc": "complex numbers",
}
"""Elementwise functions, and the kinds of operands that each refuses."""

_ROWS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "fusion.notation": (
        ("evaluate", "operands masked grad", ""),
    ),
    "interop.sources": (
        ("asarray", "grad", ""),
    ),
    "ops.creation": (
        ("arange", "", ""),
        ("empty", "", ""),
        ("empty_like", "", ""),
        ("eye", "", ""),
        ("eye_array", "", ""),
        ("from_dlpack", "", ""),
        ("full", "", ""),
        ("full_like", "", ""),
        ("linspace", "", ""),
        ("meshgrid", "", ""),
        ("ones", "", ""),
        ("ones_like", "", ""),
        ("zeros", "", ""),
        ("zeros_like", "", ""),
    ),
    "ops.elementwise.composed": (
        ("interp", "method operands masked grad", "The piecewise linear function through the points (xp, fp) of every element, as NumPy's `interp`."),
        ("isclose", "method operands masked grad", "Whether `abs(a - b) <= atol + rtol * abs(b)`, or both are the same, infinities among them."),
        ("isin", "method operands masked grad", "Whether each element is one of `elements`, an array or Tensor of any shape; with `invert`, whether it is none."),
        ("nan_to_num", "method operands masked grad", "`nan` in the place of NaN, the largest and the least finite numbers, or what is given, in that of infinities."),
    ),
    "ops.elementwise.functions": (
        ("abs", "method operands masked lazy grad", "The absolute value of each element; that of a complex number is real."),
        ("acos", "method operands masked lazy grad", "The angle in radians whose cosine each element is, 0 to pi; NaN for real ones beyond -1 and 1."),
        ("acosh", "method operands masked lazy grad", "The inverse hyperbolic cosine of each element; NaN for real ones below 1."),
        ("add", "method operands masked lazy grad", "`x1 + x2` of elements, with broadcasting."),
        ("asin", "method operands masked lazy grad", "The angle in radians whose sine each element is, -pi / 2 to pi / 2; NaN for real ones beyond -1 and 1."),
        ("asinh", "method operands masked lazy grad", "The inverse hyperbolic sine of each element."),
        ("atan", "method operands masked lazy grad", "The angle in radians whose tangent each element is, -pi / 2 to pi / 2."),
        ("atan2", "method operands masked lazy grad", "The angle in radians of each point (x2, x1), between -pi and pi, with broadcasting."),
        ("atanh", "method operands masked lazy grad", "The inverse hyperbolic tangent of each element; NaN for real ones beyond -1 and 1."),
        ("bitwise_and", "method operands masked lazy grad", "`x1 & x2` of integers, bit by bit, with broadcasting."),
        ("bitwise_invert", "method operands masked lazy grad", "Every bit of each integer inverted; of bool, `not`."),
        ("bitwise_left_shift", "method operands masked lazy grad", "`x1 << x2` of integers, with broadcasting."),
        ("bitwise_or", "method operands masked lazy grad", "`x1 | x2` of integers, bit by bit, with broadcasting."),
        ("bitwise_right_shift", "method operands masked lazy grad", "`x1 >> x2` of integers, with broadcasting."),
        ("bitwise_xor", "method operands masked lazy grad", "`x1 ^ x2` of integers, bit by bit, with broadcasting."),
        ("ceil", "method operands masked lazy grad", "The least integer that is not smaller than each element, in its dtype."),
        ("conj", "method operands masked lazy grad", "The complex conjugate of each element; real ones stay as they are."),
        ("copysign", "method operands masked lazy grad", "The magnitude of each element of x1 with the sign of that of x2, with broadcasting."),
        ("cos", "method operands masked lazy grad", "The cosine of each element, an angle in radians."),
        ("cosh", "method operands masked lazy grad", "The hyperbolic cosine of each element."),
        ("divide", "method operands masked lazy grad", "`x1 / x2` of elements, with broadcasting; integers and bool give floating-point numbers."),
        ("equal", "method operands masked lazy grad", "`x1 == x2` of elements, with broadcasting: a tensor of bool."),
        ("erf", "method operands masked lazy grad", "The error function of each element x, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`."),
        ("exp", "method operands masked lazy grad", "The exponential of each element, `e ** x`."),
        ("expm1", "method operands masked lazy grad", "`exp(x) - 1` of each element x, accurate near 0."),
        ("floor", "method operands masked lazy grad", "The greatest integer that is not larger than each element, in its dtype."),
        ("floor_divide", "method operands masked lazy grad", "`x1 // x2` of elements, rounded down, with broadcasting."),
        ("greater", "method operands masked lazy grad", "`x1 > x2` of elements, with broadcasting: a tensor of bool."),
        ("greater_equal", "method operands masked lazy grad", "`x1 >= x2` of elements, with broadcasting: a tensor of bool."),
        ("hypot", "method operands masked lazy grad", "`sqrt(x1**2 + x2**2)` of elements without overflow, with broadcasting."),
        ("imag", "attribute operands masked lazy grad", "The imaginary part of each element, 0 of real ones."),
        ("isfinite", "method operands masked lazy grad", "Whether each element is neither infinite nor NaN."),
        ("isinf", "method operands masked lazy grad", "Whether each element is infinite, of either sign."),
        ("isnan", "method operands masked lazy grad", "Whether each element is NaN."),
        ("less", "method operands masked lazy grad", "`x1 < x2` of elements, with broadcasting: a tensor of bool."),
        ("less_equal", "method operands masked lazy grad", "`x1 <= x2` of elements, with broadcasting: a tensor of bool."),
        ("log", "method operands masked lazy grad", "The natural logarithm of each element: -inf at 0, NaN for real ones below."),
        ("log10", "method operands masked lazy grad", "The logarithm to base 10 of each element: -inf at 0, NaN for real ones below."),
        ("log1p", "method operands masked lazy grad", "`log(1 + x)` of each element x, accurate near 0."),
        ("log2", "method operands masked lazy grad", "The logarithm to base 2 of each element: -inf at 0, NaN for real ones below."),
        ("logaddexp", "method operands masked lazy grad", "`log(exp(x1) + exp(x2))` of elements without overflow, with broadcasting."),
        ("logical_and", "method operands masked lazy grad", "Whether both elements are not zero, with broadcasting."),
        ("logical_not", "method operands masked lazy grad", "Whether each element is zero."),
        ("logical_or", "method operands masked lazy grad", "Whether one of two elements, or both, are not zero, with broadcasting."),
        ("logical_xor", "method operands masked lazy grad", "Whether exactly one of two elements is not zero, with broadcasting."),
        ("maximum", "method operands masked lazy grad", "The larger of two elements, NaN where one is NaN, with broadcasting."),
        ("minimum", "method operands masked lazy grad", "The smaller of two elements, NaN where one is NaN, with broadcasting."),
        ("multiply", "method operands masked lazy grad", "`x1 * x2` of elements, with broadcasting."),
        ("negative", "method operands masked lazy grad", "`-x` of each element x."),
        ("nextafter", "method operands masked lazy grad", "The next floating-point number after each element of x1 towards that of x2, with broadcasting."),
        ("not_equal", "method operands masked lazy grad", "`x1 != x2` of elements, with broadcasting: a tensor of bool."),
        ("positive", "operands lazy grad", ""),
        ("pow", "method operands masked lazy grad", "`x1 ** x2` of elements, with broadcasting."),
        ("real", "attribute operands masked lazy grad", "The real part of each element."),
        ("reciprocal", "method operands masked lazy grad", "`1 / x` of each element x, infinite at 0; of NumPy's integers the integer part."),
        ("remainder", "method operands masked lazy grad", "`x1 % x2` of elements, with the sign of x2, with broadcasting."),
        ("round", "method operands masked lazy grad", "The nearest number with so many decimal places, integers without; the even one of two."),
        ("rsqrt", "method operands masked lazy grad", "The reciprocal of the square root, `1 / sqrt(x)`: infinite at 0, NaN below."),
        ("sign", "method operands masked lazy grad", "The sign of each element: -1, 0 or 1; a complex number divided by its absolute value."),
        ("signbit", "method operands masked lazy grad", "Whether the sign bit of each element is set, that of -0.0 included."),
        ("sin", "method operands masked lazy grad", "The sine of each element, an angle in radians."),
        ("sinh", "method operands masked lazy grad", "The hyperbolic sine of each element."),
        ("sqrt", "method operands masked lazy grad", "The square root of each element; NaN for real ones below 0."),
        ("square", "method operands masked lazy grad", "`x * x` of each element x."),
        ("subtract", "method operands masked lazy grad", "`x1 - x2` of elements, with broadcasting."),
        ("tan", "method operands masked lazy grad", "The tangent of each element, an angle in radians."),
        ("tanh", "method operands masked lazy grad", "The hyperbolic tangent of each element."),
        ("trunc", "method operands masked lazy grad", "The integer part of each element, in its dtype."),
    ),
    "ops.elementwise.pointwise": (
        ("pointwise", "operands masked grad", ""),
    ),
    "ops.elementwise.selection": (
        ("clip", "method operands masked lazy grad", "`x` limited to between `min` and `max`, each a scalar, an array that broadcasts, or None for no limit."),
        ("where", "operands masked lazy grad", ""),
    ),
    "ops.indexing.structure": (
        ("iso", "method operands", "One value at every specified element, which takes no memory for each: an iso tensor, as GraphBLAS calls it."),
        ("pattern", "method operands masked", "True at every specified element, whatever its value, False elsewhere: a bool tensor over the same pos and crd."),
        ("with_values", "method operands grad", "Other values in the structure of `x`, over the same pos and crd."),
    ),
    "ops.indexing.taking": (
        ("prune", "method operands grad", "Without the elements that differ from the fill value by no more than `threshold`."),
        ("sparse_mask", "method places operands grad", "The elements of `x` that `mask` specifies, in the structure of `mask`; its values play no part."),
        ("take", "method operands masked grad", "The elements at `indices` along `axis`; negative ones count from the end, repeated ones are taken again."),
        ("take_along_axis", "method operands masked grad", "For each place of `indices`, of the rank of `x`, the element whose coordinate along `axis` stands there."),
    ),
    "ops.manipulation.blocks": (
        ("block_array", "operands grad", ""),
        ("block_diag", "operands grad", ""),
        ("hstack", "operands masked grad", ""),
        ("vstack", "operands masked grad", ""),
    ),
    "ops.manipulation.diagonals": (
        ("diags_array", "operands grad", ""),
    ),
    "ops.manipulation.differences": (
        ("diff", "method operands masked grad", "The n-th differences of neighbours along `axis`: element k + 1 minus element k, n times."),
    ),
    "ops.manipulation.joining": (
        ("concat", "operands masked grad", ""),
        ("concatenate", "operands masked grad", ""),
        ("stack", "operands masked grad", ""),
        ("unstack", "operands masked grad", ""),
    ),
    "ops.manipulation.padding": (
        ("pad", "method operands masked grad", "`x` with elements in front of and behind those along each dimension."),
    ),
    "ops.manipulation.repetition": (
        ("broadcast_arrays", "operands grad", ""),
        ("broadcast_shapes", "", ""),
        ("broadcast_to", "method operands masked grad", "`x` repeated along new dimensions in front and along those of extent 1, as NumPy broadcasts."),
        ("repeat", "method operands masked grad", "Each element along `axis` repeated: `repeats` times, or as often as the entry of an array says."),
        ("tile", "method operands masked grad", "`x` laid side by side with itself, `repetitions` times along each dimension."),
    ),
    "ops.manipulation.shaping": (
        ("copy", "method operands masked grad", "The same tensor in buffers of its own, structure included: nothing that is done to one changes the other."),
        ("expand_dims", "method operands masked grad", "`x` with dimensions of extent 1 at the places `axis` of the result, over the same buffers."),
        ("flip", "method operands masked grad", "The elements along `axis` (all, where left out) in reverse order."),
        ("matrix_transpose", "operands masked lazy grad", ""),
        ("moveaxis", "method operands masked grad", "The dimensions `source` at the places `destination`, the others in their order; over the same buffers."),
        ("permute_dims", "operands masked lazy grad", ""),
        ("reshape", "operands masked grad", ""),
        ("roll", "method operands masked grad", "The elements moved by `shift` along `axis`, those that leave at one end coming in at the other."),
        ("squeeze", "method operands masked grad", "`x` without the dimensions `axis` (all of extent 1, where left out)."),
        ("swapaxes", "method operands masked grad", "Two dimensions exchanged, over the same buffers. Raises AxisError for an axis that is not there."),
    ),
    "ops.manipulation.triangles": (
        ("diag", "operands masked grad", ""),
        ("diagonal", "method places operands masked grad", "The elements (i, i + offset) of dimensions `axis1` and `axis2`, as a last dimension."),
        ("trace", "method operands masked grad", "The sum of the diagonal of two dimensions, the first ones as NumPy's: those with `j - i == offset`."),
        ("tril", "method operands masked grad", "The lower triangles of the last two dimensions: elements (i, j) with j - i <= k, all others zero."),
        ("triu", "method operands masked grad", "The upper triangles of the last two dimensions: elements (i, j) with j - i >= k, all others zero."),
    ),
    "ops.namespace": (
        ("__array_namespace_info__", "", ""),
    ),
    "ops.products.addmm": (
        ("addmm", "operands grad", ""),
    ),
    "ops.products.einsum": (
        ("einsum", "operands masked grad", ""),
    ),
    "ops.products.matmul": (
        ("matmul", "operands masked lazy grad", ""),
    ),
    "ops.products.sddmm": (
        ("sddmm", "method operands masked grad", "`a @ b` at the elements that `mask` specifies."),
    ),
    "ops.products.spgemm": (
        ("spgemm", "operands grad", ""),
    ),
    "ops.products.tensor_products": (
        ("dot", "method places operands grad", "The sums over the last dimension of `a` and the last but one of `b`, or its only one, as `numpy.dot`."),
        ("inner", "operands grad", ""),
        ("kron", "method operands grad", "The Kronecker product: every element of `a` times the whole of `b`, in blocks."),
        ("kronsum", "operands grad", ""),
        ("outer", "method operands masked grad", "The products of all elements of `a` with all of `b`, both read as vectors: shape (a.size, b.size)."),
        ("tensordot", "method operands grad", "The sum of products over pairs of dimensions."),
        ("vdot", "operands grad", ""),
        ("vecdot", "method operands masked grad", "The sum over `axis` of conj(a) * b, the other dimensions broadcast."),
    ),
    "ops.products.tensor_times": (
        ("mttkrp", "operands masked grad", ""),
        ("ttm", "operands masked grad", ""),
        ("ttv", "operands masked grad", ""),
    ),
    "ops.random": (
        ("random", "", ""),
        ("random_array", "", ""),
    ),
    "ops.reductions.nan": (
        ("nanargmax", "method operands masked grad", "Where the largest over `axis` of the elements that are not NaN is first, int64."),
        ("nanargmin", "method operands masked grad", "Where the least over `axis` of the elements that are not NaN is first, int64."),
        ("nancumprod", "method operands masked grad", "The running product along `axis`, of all elements without, NaN counting as 1: a dense Tensor."),
        ("nancumsum", "method operands masked grad", "The running sum along `axis`, of all elements without, NaN counting as 0: a dense Tensor."),
        ("nanmax", "method operands masked grad", "The largest over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is."),
        ("nanmean", "method operands masked grad", "The mean over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is."),
        ("nanmin", "method operands masked grad", "The least over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is."),
        ("nanprod", "method operands masked grad", "The product over `axis` of the elements that are not NaN; 1 where none is."),
        ("nanstd", "method operands masked grad", "The standard deviation over `axis` of the elements that are not NaN: the square root of `nanvar`."),
        ("nansum", "method operands masked grad", "The sum over `axis` of the elements that are not NaN; 0 where none is."),
        ("nanvar", "method operands masked grad", "The variance over `axis` of the elements that are not NaN: their squared distances from their mean, summed and divided by their number less `correction`; NaN where that is not positive. `ddof` and `dtype` as of `var`."),
    ),
    "ops.reductions.order_statistics": (
        ("median", "method operands masked grad", "The element in the middle of those over `axis` in order, the mean of two for an even number."),
        ("topk", "method operands masked grad", "The `k` largest elements of every fibre along `axis`, in order, and where they are."),
    ),
    "ops.reductions.quantiles": (
        ("nanmedian", "method operands masked grad", "The median over `axis` of the elements that are not NaN; NaN, with NumPy's warning, where none is."),
        ("nanpercentile", "method operands masked grad", "The elements below which `q` percent of those that are not NaN lie: `nanquantile` of `q / 100`."),
        ("nanquantile", "method operands masked grad", "The elements below which the shares `q` of those that are not NaN lie: `quantile` of these."),
        ("percentile", "method operands masked grad", "The elements below which `q` percent of those over `axis` lie: `quantile` of `q / 100`, with its arguments."),
        ("quantile", "method operands masked grad", "The elements below which the shares `q` of those over `axis` lie."),
    ),
    "ops.reductions.softmax": (
        ("log_softmax", "method operands masked grad", "The logarithm of `softmax`, more accurate than of its result; unspecified elements stay unspecified."),
        ("logsumexp", "method operands masked grad", "The logarithm of the sum of exponentials over `axis`, unspecified elements included, without overflow."),
        ("softmax", "method operands masked grad", "The exponentials of the elements along `axis`, divided by their sum; only specified elements take part."),
    ),
    "ops.reductions.statistics": (
        ("all", "method places operands masked lazy grad", "Whether all elements over `axis` are true."),
        ("any", "method places operands masked lazy grad", "Whether any element over `axis` is true; NaN is."),
        ("argmax", "method places operands masked grad", "Where the largest element over `axis` is first, int64; row-major over all elements without an axis."),
        ("argmin", "method places operands masked grad", "Where the least element over `axis` is first, int64; row-major over all elements without an axis."),
        ("count_nonzero", "method places operands masked lazy grad", "How many elements over `axis` are not zero, int64."),
        ("cumulative_prod", "operands masked grad", ""),
        ("cumulative_sum", "operands masked grad", ""),
        ("max", "method places operands masked lazy grad", "The largest element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0."),
        ("mean", "method places operands masked lazy grad", "The mean over `axis`; that of integers is float64 unless `dtype=` is given, that over an extent of 0 is NaN."),
        ("min", "method places operands masked lazy grad", "The least element over `axis`, NaN where there is one. Raises ShapeError over an extent of 0."),
        ("prod", "method places operands masked lazy grad", "The product over `axis`; integers and bool are multiplied in 64 bits."),
        ("std", "method places operands masked grad", "The standard deviation over `axis`: the square root of `var`; `ddof` and `dtype` as there."),
        ("sum", "method places operands masked lazy grad", "The sum over `axis`, all dimensions without; integers and bool are summed in 64 bits."),
        ("var", "method places operands masked grad", "The variance over `axis`: squared distances from the mean, summed and divided by count - `correction`."),
    ),
    "ops.sets": (
        ("unique_all", "operands", ""),
        ("unique_counts", "operands", ""),
        ("unique_inverse", "operands", ""),
        ("unique_values", "operands masked", ""),
    ),
    "ops.sorting": (
        ("argsort", "method operands masked grad", "Where the elements of every fibre along `axis` are, in order: `take_along_axis(x, argsort(x)) == sort(x)`."),
        ("argwhere", "method operands masked grad", "The coordinates of the elements that are not zero, in row-major order: a dense matrix with a row for each."),
        ("find", "operands grad", ""),
        ("nonzero", "method operands masked grad", "The coordinates of the elements that are not zero, in row-major order: one vector for each dimension."),
        ("searchsorted", "method operands grad", "The places in the sorted vector `x1` before which the elements of `x2` keep it sorted."),
        ("sort", "operands masked grad", ""),
    ),
    "tensor.dtypes": (
        ("astype", "operands masked grad", ""),
        ("can_cast", "operands masked", ""),
        ("result_type", "operands masked", ""),
    ),
}
"""By module: names, kinds, and the documentation of methods."""

NUMPY: dict[str, str] = {
    "absolute": "abs", "add.accumulate": "cumulative_sum", "add.reduce": "sum", "amax": "max", "amin": "min",
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "around": "round", "conjugate": "conj", "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum", "diagonal": "diagonal", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "logical_and.reduce": "all", "logical_or.reduce": "any",
    "maximum.reduce": "max", "minimum.reduce": "min", "multiply.accumulate": "cumulative_prod",
    "multiply.reduce": "prod", "power": "pow", "right_shift": "bitwise_right_shift", "true_divide": "divide",
    "unique": "unique_values"
}
"""NumPy's names that the namespace has not, or that spell their arguments."""

OPERATORS: dict[str, str] = {
    "abs": "abs", "add": "add", "and": "band", "eq": "eq", "floordiv": "floordiv", "ge": "ge", "gt": "gt",
    "invert": "bnot", "le": "le", "lshift": "shl", "lt": "lt", "mod": "mod", "mul": "mul", "ne": "ne", "neg": "neg",
    "or": "bor", "pow": "pow", "rshift": "shr", "sub": "sub", "truediv": "div", "xor": "bxor"
}
"""Python's operators, and the operation of the loop IR that each is."""

SPOKEN: dict[str, str] = {
    "and": "logical_and", "band": "bitwise_and", "bnot": "bitwise_invert", "bor": "bitwise_or",
    "bxor": "bitwise_xor", "div": "divide", "eq": "equal", "floordiv": "floor_divide", "ge": "greater_equal",
    "gt": "greater", "le": "less_equal", "lt": "less", "max": "maximum", "min": "minimum", "mod": "remainder",
    "mul": "multiply", "ne": "not_equal", "neg": "negative", "not": "logical_not", "or": "logical_or",
    "shl": "bitwise_left_shift", "shr": "bitwise_right_shift", "sub": "subtract", "xor": "logical_xor"
}
"""What users call operations of the loop IR, where that differs."""

TORCH: dict[str, str] = {
    "all": "all", "amax": "max", "amin": "min", "and": "bitwise_and", "any": "any", "argmax": "argmax",
    "argmin": "argmin", "argsort": "argsort", "bitwise_not": "bitwise_invert", "bmm": "matmul",
    "broadcast_to": "broadcast_to", "cat": "concat", "clamp": "clip", "clip": "clip", "concat": "concat",
    "concatenate": "concat", "cumprod": "cumulative_prod", "cumsum": "cumulative_sum", "diag": "diag",
    "diagonal": "diagonal", "div": "divide", "eq": "equal", "flip": "flip", "floordiv": "floor_divide",
    "ge": "greater_equal", "ger": "outer", "gt": "greater", "isclose": "isclose", "kron": "kron",
    "le": "less_equal", "logsumexp": "logsumexp", "lshift": "bitwise_left_shift", "lt": "less", "matmul": "matmul",
    "mean": "mean", "mm": "matmul", "mod": "remainder", "moveaxis": "moveaxis", "movedim": "moveaxis",
    "mul": "multiply", "mv": "matmul", "nan_to_num": "nan_to_num", "nanmean": "nanmean",
    "nanquantile": "nanquantile", "nansum": "nansum", "ne": "not_equal", "neg": "negative", "or": "bitwise_or",
    "outer": "outer", "prod": "prod", "quantile": "quantile", "roll": "roll", "round": "round",
    "rshift": "bitwise_right_shift", "sparse_mask": "sparse_mask", "squeeze": "squeeze", "stack": "stack",
    "sub": "subtract", "sum": "sum", "swapaxes": "swapaxes", "swapdims": "swapaxes", "take": "take",
    "trace": "trace", "transpose": "swapaxes", "tril": "tril", "triu": "triu", "truediv": "divide",
    "unbind": "unstack", "unsqueeze": "expand_dims", "vdot": "vecdot", "vecdot": "vecdot", "where": "where",
    "xor": "bitwise_xor"
}
"""torch's names of operations."""


def _named(kind: str) -> frozenset[str]:
    return frozenset(name for rows in _ROWS.values() for name, kinds, _ in rows if kind in kinds.split())


HOMES: dict[str, str] = {name: home for home, rows in _ROWS.items() for name, _, _ in rows}
"""The module of each operation of the namespace."""
METHODS: dict[str, str] = {name: text for rows in _ROWS.values() for name, _, text in rows if text}
"""Operations that are methods or attributes too, and what they do."""
PLACES = _named("places")
"""Those of them that take arguments by place which the function takes by name."""
ATTRIBUTES = _named("attribute")
"""Those of them that are attributes."""
OPERANDS = _named("operands")
"""Operations that ask operands' types for the result."""
MASKED = _named("masked")
"""Operations that take masked tensors."""
LAZY = _named("lazy")
"""Operations that are deferred on lazy tensors."""
GRADIENTS = _named("grad")
"""Operations that take `grad=`."""
