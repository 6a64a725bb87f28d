"""What blocks say of a result's shape, dtype and fill value is what calls give."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import tables
from openwork.errors import UnsupportedError
from openwork.runtime.operation import Operation, block
from openwork.runtime.result_rules import DTYPES, FILLS, SHAPES, result_scalar
from openwork.storage.buffers import scalar_name

RULES = [block(name) for name in tables.HOMES]
RULES = [o for o in RULES if o.operands and any((o.shape, o.dtype, o.fill))]
ONE = {
    "broadcast_to": ((2, 3, 4),), "expand_dims": (0,), "moveaxis": (0, 1), "permute_dims": ((1, 0),), "repeat": (2,),
    "interp": ([0.0, 1.0, 3.0], [0.5, 2.0, 1.0]), "isin": ([1, 3],), "reshape": ((4, 3),), "roll": (1,), "swapaxes": (0, 1), "tile": ((1, 2),), "take": ([0, 2],), "take_along_axis": (
        np.zeros((3, 4), np.int64),
    ),
}  # fmt: skip
"""Arguments besides the tensor."""
WITH_AXIS = ("cumulative_sum", "cumulative_prod")
DTYPES_TRIED = ("float32", "int32", "bool", "complex64")


def operand(dtype: str, fill: Any) -> ow.Tensor:
    x = np.array([[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]]).astype(dtype)
    return ow.asarray(x + np.asarray(fill).astype(dtype) if dtype != "bool" else x, format="csr", fill_value=fill)


def call(o: Operation, *operands: Any) -> Any:
    function = getattr(ow, o.name)
    options = {"axis": 1} if o.name in WITH_AXIS else {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*operands, *ONE.get(o.name, ()), **options)
        except (ow.DTypeError, UnsupportedError):
            return None


def test_words_are_known() -> None:
    for o in RULES:
        assert o.shape in {None, *SHAPES}
        assert o.dtype in {None, *DTYPES}
        assert o.fill in {None, *FILLS}


@pytest.mark.parametrize(
    "o", [o for o in RULES if o.arity < 2 and o.shape not in ("product", "broadcast")], ids=lambda o: o.name
)
def test_rules_of_one_operand(o: Operation) -> None:
    tried = 0
    for dtype in DTYPES_TRIED:
        for fill in (0,) if dtype == "bool" else (0, 2):
            t = operand(dtype, fill)
            got = call(o, t, t) if o.name == "kron" else call(o, t)
            if got is None:
                continue
            tried += 1
            assert isinstance(got, ow.Tensor)
            if o.shape in ("same", "reduced"):
                assert got.shape == (t.shape if o.shape == "same" else ())
            if o.dtype not in (None, "promoted") and not (o.op and o.dtype == "same" and dtype == "bool"):
                assert scalar_name(got.dtype) == result_scalar(o.dtype, scalar_name(t.dtype), "numpy"), (
                    dtype,
                    got.dtype,
                )
            if o.fill == "same":
                assert got.fill_value == t.fill_value
            elif o.fill == "dense":
                assert got.format.is_dense
            elif o.fill == "f(fill)":
                want = call(o, ow.asarray(np.full((), t.fill_value, t.dtype))).item()
                np.testing.assert_allclose(got.fill_value, want, rtol=1e-3)
    assert tried, f"{o.name} took no operand"


@pytest.mark.thin(2)
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
