"""Operators and Python's built-in functions: strangers go first, numbers of rank 0 are numbers, errors say what users wrote."""

from __future__ import annotations

import math
import operator
import re
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow

DENSE = np.arange(6.0).reshape(2, 3)
FORMATS = ("csr", "coo", "dense", "bitmap")
BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.matmul, divmod,
)  # fmt: skip
ORDERED = (operator.lt, operator.le, operator.gt, operator.ge)
INPLACE = (
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
    operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift, operator.imatmul,
)  # fmt: skip
STRANGERS: tuple[Any, ...] = (None, "x", b"x", object(), Decimal(1), {1: 2}, {1}, np.str_("x"), print)


class Reflected:
    """Takes every operator itself, and no ufunc."""

    __array_ufunc__ = None

    def _mine(self, other: Any) -> str:
        return "mine"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rand__ = _mine
    __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = __rdivmod__ = _mine
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _mine  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def tensors() -> list[Any]:
    return [*(ow.asarray(DENSE, format=f) for f in FORMATS), ow.lazy(ow.asarray(DENSE, format="csr"))]


@pytest.mark.parametrize("op", [*BINARY, *INPLACE, *ORDERED, operator.eq, operator.ne])
def test_the_other_operand_goes_first(op):
    for t in tensors():
        assert op(t, Reflected()) == "mine"


def test_masked_tensors_go_first():
    m = ow.masked_tensor(ow.asarray(DENSE, format="csr"), ow.asarray(DENSE > 2, format="csr"))
    assert isinstance(2.0 * m, type(m))
    assert isinstance(m * 2.0, type(m))


@pytest.mark.parametrize("op", [*BINARY, *INPLACE, *ORDERED])
def test_strangers_are_unsupported(op):
    for t in tensors():
        for other in STRANGERS:
            with pytest.raises(TypeError):
                op(t, other)
            # Text has operators of its own: "%s" % t
            if op not in INPLACE and not isinstance(other, str | bytes):
                with pytest.raises(TypeError):
                    op(other, t)


def test_nothing_equals_a_stranger():
    for t in tensors():
        for other in STRANGERS:
            if not isinstance(other, np.generic):
                assert (t == other) is False
                assert (other == t) is False
                assert (t != other) is True
            assert other not in t


def test_elements_of_a_tensor():
    for f in FORMATS:
        t = ow.asarray(np.array([[0.0, np.nan], [3.0, 0.0]]), format=f)
        assert 3.0 in t
        assert 3 in t
        assert 0 in t
        assert 4.0 not in t
        assert np.nan not in t
        assert [3.0, 0.0] in t
        assert True not in t
    assert 1.0 in ow.asarray(np.ones((2, 2)), format="csr")
    assert 0.0 not in ow.asarray(np.ones((2, 2)), format="csr")


def test_lists_and_arrays_are_operands():
    t = ow.asarray(DENSE, format="csr")
    import array

    for other in ([1, 2, 3], (1, 2, 3), range(1, 4), array.array("d", [1, 2, 3]), memoryview(array.array("d", [1, 2, 3])),
                  np.array([1, 2, 3]), np.float32(2), True, sp.csr_array(DENSE), sp.csr_matrix(DENSE)):  # fmt: skip
        dense = other.toarray() if sp.issparse(other) else np.asarray(other)
        got = t + other
        np.testing.assert_array_equal(got.to_numpy() if isinstance(got, ow.Tensor) else got, DENSE + dense)
        got = other + t if not sp.issparse(other) else t + other
        np.testing.assert_array_equal(got.to_numpy() if isinstance(got, ow.Tensor) else got, DENSE + dense)


def test_divmod():
    t = ow.asarray(DENSE, format="csr")
    for got, expected in ((divmod(t, 2.0), divmod(DENSE, 2.0)), (divmod(7.0, t + 1), divmod(7.0, DENSE + 1))):
        for x, y in zip(got, expected, strict=True):
            np.testing.assert_array_equal(x.to_numpy(), y)


def test_numbers_of_rank_0():
    t = ow.asarray(DENSE, format="csr")
    total = t.sum()
    assert f"{total:.2f}" == "15.00"
    assert f"{total}" == str(total) == "15.0"
    assert f"{ow.asarray(DENSE.astype(int), format='coo').sum():>5d}" == "   15"
    assert f"{(t * 1j).sum():.1f}" == "0.0+15.0j"
    assert round(total / 7, 2) == round(15 / 7, 2)
    assert round(total / 7) == 2
    assert isinstance(round(total / 7), int)
    assert (math.floor(total / 7), math.ceil(total / 7), math.trunc(-total / 7)) == (2, 3, -2)
    assert (int(total), float(total), complex(total), bool(total)) == (15, 15.0, 15 + 0j, True)
    assert math.sqrt(total * 0 + 4) == 2.0
    assert total > 14
    assert total == 15
    assert [10, 20, 30][ow.asarray(DENSE.astype(int), format="csr")[0, 2]] == 30
    for f in ("() -> ()", None):
        scalar = ow.asarray(2.5, format=f)
        assert (str(scalar), f"{scalar:.3f}") == ("2.5", "2.500")
    assert "\n" not in repr(total)


@pytest.mark.parametrize("call", [float, int, complex, math.floor, math.ceil, math.trunc, operator.index, round,
                                  lambda t: round(t, 1), lambda t: f"{t:.2f}", lambda t: f"{t:d}"])  # fmt: skip
def test_several_elements_are_no_number(call):
    for f in FORMATS:
        with pytest.raises(TypeError, match="help:"):
            call(ow.asarray(DENSE, format=f))


def test_truth_of_several_elements():
    with pytest.raises(ValueError, match=r"any\(\) or all\(\)"):
        bool(ow.asarray(DENSE, format="csr"))
    with pytest.raises(ValueError, match="one element"):
        ow.asarray(DENSE, format="csr").item()


def test_complex_is_no_real_number():
    z = ow.asarray(1j)
    for call in (float, int, round, math.floor):
        with pytest.raises(TypeError, match="is complex"):
            call(z)
    with pytest.raises(TypeError, match="only an integer tensor"):
        operator.index(ow.asarray(1.0))
    with pytest.raises(TypeError, match="only an integer tensor"):
        operator.index(ow.asarray(True))
    with pytest.raises(TypeError, match="only an integer tensor"):
        operator.index(ow.asarray([1]))


def test_sizes_count_buffers():
    big, small = (ow.asarray(np.ones((n, n)), format="csr") for n in (30, 3))
    assert sys.getsizeof(big) - sys.getsizeof(small) == big.nbytes - small.nbytes
    assert sys.getsizeof(big) > big.nbytes


PRIVATE = re.compile(
    r"(?<![\w.=])(band|bor|bxor|bnot|shl|shr|floordiv|mul|sub|div|neg|eq|ne|lt|le|gt|ge|pos_\w+|crd\d|vals|Storage|_(?!_)\w+|"
    r"lambda|f64|f32|i64|i32|i8|u8|c128|c64|bf16)(?![\w])"
)
OTHER = ow.asarray(np.ones((3, 4)), format="csr")


@pytest.mark.thin(18)
@pytest.mark.parametrize("name", sorted(n for n in dir(ow) if hasattr(getattr(ow, n), "op")))
def test_messages_name_what_users_wrote(name):
    function = getattr(ow, name)
    one = len(_parameters(function))
    values = [
        ow.asarray(DENSE.astype(d), format=f)
        for d, f in (
            ("float64", "csr"),
            ("float64", "dense"),
            ("complex128", "csr"),
            ("int8", "csr"),
            ("bool", "dense"),
        )
    ]
    others: list[Any] = [
        *values,
        OTHER,
        np.ones((4, 4)),
        np.ones((2, 3), complex),
        "x",
        None,
        object(),
        np.array(["x"]),
    ]
    calls = [(v,) for v in others] if one == 1 else [(v, o) for v in values for o in others]
    for args in calls:
        text = said(function, *args)
        assert not PRIVATE.search(text), text
        assert not text or "help:" in text or "supported:" in text, text


def said(function: Any, *args: Any) -> str:
    """The message of the error that a call ends in; nothing where it is right."""
    try:
        function(*args)
    except (TypeError, ValueError, NotImplementedError) as error:
        return str(error)
    return ""


def _parameters(function: Any) -> list[str]:
    import inspect

    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind is p.POSITIONAL_ONLY]


@pytest.mark.thin(9, rest="ci")
@pytest.mark.parametrize("op", [*BINARY, *ORDERED])
def test_messages_of_operators(op):
    values = [
        ow.asarray(DENSE.astype(d), format=f) for d in ("float64", "complex128", "bool") for f in ("csr", "dense")
    ]
    for a in values:
        for b in (*values, OTHER, np.ones((4, 4)), 2, 1j, np.array(["x"])):
            text = said(op, a, b)
            assert not PRIVATE.search(text), text
            assert not text or "help:" in text or "unsupported operand" in text, text
