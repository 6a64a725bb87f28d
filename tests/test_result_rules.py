"""What blocks say of a result's shape, dtype and fill value is what calls give."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import tables
from openwork.compiler.semiring import SEMIRINGS
from openwork.errors import UnsupportedError
from openwork.ops.result_format import named_family
from openwork.runtime.operation import Operation, block
from openwork.runtime.result_rules import DTYPES, FILLS, FORMATS, SHAPES, result_scalar
from openwork.storage.buffers import scalar_name

RULES = [block(name) for name in sorted(tables.NAMES)]
RULES = [o for o in RULES if o.operands and any((o.shape, o.dtype, o.fill, o.format))]
ONE = {
    "broadcast_to": ((2, 3, 4),), "expand_dims": (0,), "moveaxis": (0, 1), "permute_dims": ((1, 0),), "repeat": (2,),
    "interp": ([0.0, 1.0, 3.0], [0.5, 2.0, 1.0]), "isin": ([1, 3],), "reshape": ((4, 3),), "roll": (1,),
    "swapaxes": (0, 1), "tile": ((1, 2),), "take": ([0, 2],), "take_along_axis": (np.zeros((3, 4), np.int64),),
    "pad": (1,), "quantile": (0.5,), "nanquantile": (0.5,), "percentile": (50,), "nanpercentile": (50,),
    "astype": ("float64",), "iso": (1,),
}  # fmt: skip
"""Arguments besides the tensor."""
CALLS: dict[str, Any] = {
    "kron": lambda f, t: f(t, t), "kronsum": lambda f, t: f(t[:, :3], t[:, :3]), "concat": lambda f, t: f([t, t]),
    "stack": lambda f, t: f([t, t]), "hstack": lambda f, t: f([t, t]), "vstack": lambda f, t: f([t, t]),
    "block_array": lambda f, t: f([[t, None], [None, t]]), "block_diag": lambda f, t: f([t, t]),
    "clip": lambda f, t: f(t, 0, 1), "broadcast_arrays": lambda f, t: f(t, t), "sparse_mask": lambda f, t: f(t, t), "with_values": lambda f, t: f(t, t.values),
    "addmm": lambda f, t: f(t, t[:, :3], t), "sddmm": lambda f, t: f(t, np.ones((3, 2), t.dtype), np.ones((2, 4), t.dtype)),
    "searchsorted": lambda f, t: f(ow.asarray(np.array([0, 1]).astype(t.dtype)), t),
}  # fmt: skip
"""Calls with more than a tensor in front."""
PRODUCTS: dict[str, Any] = {
    "matmul": lambda f, a, b: f(a, b.T.asformat(b.format)), "tensordot": lambda f, a, b: f(a, b.T.asformat(b.format), axes=1), "dot": lambda f, a, b: f(a, b.T.asformat(b.format)),
    "inner": lambda f, a, b: f(a, b), "vdot": lambda f, a, b: f(a[0], b[0]), "outer": lambda f, a, b: f(a[0], b[0]),
    "vecdot": lambda f, a, b: f(a, b), "einsum": lambda f, a, b: f("ij,kj->ik", a, b), "spgemm": lambda f, a, b: f(a, b.T.asformat(b.format)),
    "mttkrp": lambda f, a, b: f(a, [None, b.T.to_dense()], 0), "ttv": lambda f, a, b: f(a, b[0].to_dense(), 1),
    "ttm": lambda f, a, b: f(a, b.T.to_dense(), 1),
}  # fmt: skip
WITH_AXIS = ("cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod")
DTYPES_TRIED = ("float32", "int32", "bool", "complex64")
FORMATS_TRIED = ("csr", "csc", "coo", "dcsr", "dense")


def operand(dtype: str, fill: Any, form: str = "csr") -> ow.Tensor:
    x = np.array([[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]]).astype(dtype)
    x = x + np.asarray(fill).astype(dtype) if dtype != "bool" else x
    return ow.asarray(x, format=form, fill_value=fill) if form != "dense" else ow.asarray(x)


def call(o: Operation, *operands: Any) -> Any:
    function = getattr(ow, o.name)
    options = {"axis": 1} if o.name in WITH_AXIS else {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if len(operands) == 1 and o.name in CALLS:
                return CALLS[o.name](function, *operands)
            return function(*operands, *ONE.get(o.name, ()), **options)
        except (ow.DTypeError, UnsupportedError):
            return None


def first(x: Any) -> Any:
    """The first of several results."""
    return x[0] if isinstance(x, tuple | list) else x


def test_words_are_known() -> None:
    for o in RULES:
        assert o.shape in {None, *SHAPES}
        assert o.dtype in {None, *DTYPES}
        assert o.fill in {None, *FILLS}
        assert o.format in {None, *FORMATS}


OF_ONE = [o for o in RULES if o.arity < 2 and o.shape not in ("product", "broadcast")]


@pytest.mark.thin(7, rest="ci")
@pytest.mark.parametrize("o", OF_ONE, ids=lambda o: o.name)
def test_rules_of_one_operand(o: Operation) -> None:
    tried = 0
    for dtype in DTYPES_TRIED:
        for fill in (0,) if dtype == "bool" else (0, 2):
            t = operand(dtype, fill)
            got = first(call(o, t))
            if got is None:
                continue
            tried += 1
            assert isinstance(got, ow.Tensor)
            if o.shape in ("same", "reduced"):
                assert got.shape == (t.shape if o.shape == "same" else ())
            elif o.shape == "multiplied":
                assert got.shape == ((9, 16) if o.name == "kron" else (9, 9))
            if o.dtype not in (None, "promoted") and not (o.op and o.dtype == "same" and dtype == "bool"):
                assert scalar_name(got.dtype) == result_scalar(o.dtype, scalar_name(t.dtype), "numpy"), (
                    dtype,
                    got.dtype,
                )
            if o.fill in ("same", "scaled"):
                assert got.fill_value == t.fill_value
            elif o.fill == "zero":
                assert got.fill_value == 0
            elif o.fill in ("dense", "reduced"):
                assert got.format.is_dense
            elif o.fill == "f(fill)":
                want = call(o, ow.asarray(np.full((), t.fill_value, t.dtype))).item()
                np.testing.assert_allclose(got.fill_value, want, rtol=1e-3)
    assert tried, f"{o.name} took no operand"


def check_format(rule: str, got: Any, t: Any) -> None:
    """Whether a result has the format that a rule says of operands of one format."""
    if rule == "same":
        assert got.format == t.format
    elif rule == "like":
        assert got.format.is_dense == t.format.is_dense
    elif rule == "product" and isinstance(got, ow.Tensor) and not t.format.is_dense:
        assert got.format == t.format if got.ndim == t.ndim else not got.format.is_dense
    else:
        assert (isinstance(got, np.ndarray) or got.format.is_dense) == (rule != "sparse")


@pytest.mark.thin(7, rest="ci")
@pytest.mark.parametrize("o", [o for o in RULES if o.format and o.shape != "product"], ids=lambda o: o.name)
def test_rules_of_formats(o: Operation) -> None:
    for form in FORMATS_TRIED:
        t = operand("float64", 0, form)
        got = (
            ow.where(t > 0, t, t)
            if o.name == "where"
            else first(call(o, *[t] * (1 if o.name in CALLS else 2 if o.shape == "broadcast" else 1)))
        )
        assert o.format is not None
        if got is not None and not (o.format == "same" and got.ndim == 0):
            check_format(o.format, got, t)


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize("o", [o for o in RULES if o.shape == "product"], ids=lambda o: o.name)
def test_rules_of_products(o: Operation) -> None:
    for a, b in (("float32", "float32"), ("int32", "float64"), ("int32", "int32")):
        for form in FORMATS_TRIED:
            s, t = operand(a, 0, form), operand(b, 0, form)
            got = PRODUCTS[o.name](getattr(ow, o.name), s, t)
            shape = {"vdot": (), "outer": (4, 4), "vecdot": (3,), "ttv": (3,)}.get(o.name, (3, 3))
            assert got.shape == shape
            if o.dtype in ("promoted", "semiring"):
                assert scalar_name(got.dtype) == scalar_name(ow.result_type(s, t))
            if o.fill == "zero" and isinstance(got, ow.Tensor):
                assert got.fill_value == 0
            if o.format is not None:
                check_format(o.format, got, s if o.name != "outer" else s[0])


@pytest.mark.thin(10, rest="ci")
@pytest.mark.parametrize("o", [o for o in RULES if o.arity == 2], ids=lambda o: o.name)
def test_rules_of_two_operands(o: Operation) -> None:
    tried = 0
    for a, b in (("float32", "float32"), ("int32", "int32"), ("int32", "float32"), ("bool", "bool")):
        s, t = operand(a, 0), operand(b, 0 if b == "bool" else 1)
        got = call(o, s, t)
        if got is None:
            continue
        tried += 1
        assert got.shape == s.shape
        joint = scalar_name(ow.result_type(s, t))
        if o.dtype == "bool":
            assert scalar_name(got.dtype) == "bool"
        elif o.dtype in ("promoted floating", "promoted float"):
            assert scalar_name(got.dtype) == result_scalar(o.dtype.removeprefix("promoted "), joint, "numpy")
        elif a != "bool":
            assert scalar_name(got.dtype) == joint
        want = call(o, *(ow.asarray(np.full((), x.fill_value, x.dtype)) for x in (s, t))).item()
        np.testing.assert_allclose(got.fill_value, want, rtol=1e-3)
    assert tried or o.name in ("logaddexp", "nextafter"), f"{o.name} took no operands"


def test_a_rule_of_several_operands_is_refused_for_one() -> None:
    with pytest.raises(ow.UnsupportedError, match="of several operands"):
        result_scalar("promoted", "f64", "numpy")


def test_the_family_of_a_format_in_another_rank() -> None:
    for name in ("bitmap", "coo", "dense"):
        assert named_family(ow.format(name, ndim=3), 2) == ow.format(name, ndim=2)


def test_a_semiring_may_have_a_type_of_its_own() -> None:
    rings = [r for r in SEMIRINGS.values() if r.dtype != "promote"]
    s = operand("float32", 0)
    for ring in rings[:2]:
        assert scalar_name(ow.spgemm(s, s.T, semiring=ring.name).dtype) == ring.dtype
        assert scalar_name(ow.einsum("ij,kj->ik", s, s, semiring=ring.name).dtype) == ring.dtype
    assert rings
