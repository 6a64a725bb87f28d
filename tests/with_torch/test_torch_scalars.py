"""Scalar COO tensors of torch that store nothing, one or several elements, and how operands of rank 0 promote."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.errors import DTypeError, ShapeError

torch = pytest.importorskip("torch")


def _scalar_coo(values: Any) -> Any:
    values = torch.tensor(values)
    return torch.sparse_coo_tensor(torch.zeros((0, len(values)), dtype=torch.int64), values, (), check_invariants=True)


def test_a_scalar_that_stores_nothing_is_missing() -> None:
    """As a tensor, which has one element in `() -> ()`, it is its fill value; a masked one has no value."""
    empty, one, two = _scalar_coo([0.0][:0]), _scalar_coo([3.0]), _scalar_coo([3.0, 4.0])
    for given, value in ((empty, 0.0), (one, 3.0), (two, 7.0)):
        for t in (ow.asarray(given), ow.sparse_coo_tensor(given._indices(), given._values(), ())):
            assert (str(t.format), t.nse, t.item(), ow.sum(t).item()) == ("() -> ()", 1, value, value)
            assert ow.count_nonzero(t).item() == (value != 0)
        stored = given is not empty
        for m in (
            ow.masked_tensor(given),
            ow.as_masked_tensor(given),
            ow.masked_tensor(ow.asarray(given), given.bool()),
        ):
            assert (m.shape, m.nse, m.filled(-1.0).item()) == ((), int(stored), value if stored else -1.0)
        assert ow.masked_tensor(given, _scalar_coo([False])).nse == 0
        assert ow.masked_tensor(given, empty.bool()).nse == 0
        if stored:
            assert ow.masked_tensor(given, _scalar_coo([True])).item() == value
            assert ow.masked_tensor(given, torch.tensor(True)).item() == value
    with pytest.raises(ValueError, match=r"specifies element \(\), which the data does not store"):
        ow.masked_tensor(empty, _scalar_coo([True]))
    with pytest.raises(DTypeError, match="mask of dtype bool"):
        ow.masked_tensor(one, _scalar_coo([1.0]))
    with pytest.raises(ShapeError):
        ow.masked_tensor(one, torch.tensor([True]).to_sparse_coo())


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_scalar_gives_its_gradient_to_what_it_stores(count: int) -> None:
    leaf = _scalar_coo([1.0, 2.0][:count]).requires_grad_()
    (ow.sum(ow.asarray(leaf)) * 3).backward()
    assert leaf.grad._values().tolist() == [3.0] * count
    if count:
        leaf.grad = None
        ow.as_masked_tensor(leaf).sum().backward()
        assert leaf.grad._values().tolist() == [1.0] * count


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_a_scalar_has_the_dtype_of_what_it_sums(name: str) -> None:
    """Sums of all duplicates, without or with dense dimensions, keep their dtype and wrap in it, as torch's."""
    dtype = getattr(torch, name)
    for values in ([], [100, 100, 100], [[100, 1], [100, 0]], [[]] * 3):
        given = torch.tensor(values).to(dtype)
        coo = torch.sparse_coo_tensor(
            torch.zeros((0, len(given)), dtype=torch.int64), given, given.shape[1:], check_invariants=True
        )
        want = coo.to(torch.float64).to_dense().to(dtype) if name == "float16" else coo.to_dense()
        made = [
            ow.asarray(coo),
            ow.sparse_coo_tensor(coo._indices(), given),
            ow.sparse_coo_tensor(coo._indices(), given, given.shape[1:]),
        ]
        if name != "bfloat16":
            made.append(
                ow.sparse_coo_tensor(np.zeros((0, len(given)), np.int64), given.numpy(), is_coalesced=len(given) < 2)
            )
        for t in made:
            assert (str(t.dtype).rpartition(".")[2], t.shape) == (name, want.shape)
            assert torch.equal(torch.as_tensor(t.to_dense()), want)


RANKS = (((2,), ()), ((), ()), ((), (0, 2)))
NAMES = ("bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64", "complex128")


def _dtype_of(function: Any, *operands: Any) -> Any:
    """The dtype of a result; None where there is none, or one that openwork has not."""
    try:
        found = function(*operands)
    except (RuntimeError, TypeError):
        return None
    dtype = found if isinstance(found, torch.dtype) else found.dtype
    return None if dtype is torch.complex32 else dtype


@pytest.mark.thin(3)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", ["result_type", "add", "pow"])
def test_operands_of_rank_0_promote_as_torch_does(name: str) -> None:
    dtypes = [getattr(torch, n) for n in NAMES]
    ours, theirs = getattr(ow, name), getattr(torch, name)
    for (first, second), (shape, other) in product(product(dtypes, dtypes), RANKS):
        x, y = torch.ones(shape, dtype=first), torch.ones(other, dtype=second)
        a, b = (ow.asarray(t, format="coo" if t.ndim else None) for t in (x, y))
        want = _dtype_of(theirs, x, y)
        assert _dtype_of(ours, a, b) == want, (first, second, shape, other)
        if not x.ndim or not y.ndim:
            assert _dtype_of(ours, a, y if not y.ndim else b) == want, (first, second, shape, other)
            assert _dtype_of(ours, x if not x.ndim else a, b) == want, (first, second, shape, other)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("number", [True, 2, 1.5, 1j, np.True_, np.int8(2), np.float64(1.5), np.complex64(1j)])
def test_numbers_promote_as_those_of_python(number: Any) -> None:
    plain = number.item() if isinstance(number, np.generic) else number
    for x in (torch.ones((2,) * rank, dtype=getattr(torch, n)) for rank in (0, 1) for n in NAMES):
        a = ow.asarray(x, format="coo" if x.ndim else None)
        want = _dtype_of(torch.mul, x, plain)
        assert _dtype_of(ow.result_type, a, number) == _dtype_of(ow.multiply, number, a) == want
        if want is not None:
            assert (a * number).to_dense().equal(x * plain)


def test_limits_and_choices_of_rank_0_promote_as_torch_does() -> None:
    x, least = torch.tensor([0.0, 2.0]), torch.tensor(1.0, dtype=torch.float64)
    a = ow.asarray(x, format="coo")
    for limit in (least, ow.asarray(least), np.float64(1.0), torch.tensor(1.0, dtype=torch.bfloat16)):
        assert ow.clip(a, min=limit).to_dense().equal(torch.tensor([1.0, 2.0]))
        assert ow.where(a > 1.0, a, limit).to_dense().equal(torch.tensor([1.0, 2.0]))
    assert ow.clip(ow.asarray(torch.tensor([0, 2]), format="coo"), np.float64(0.5)).dtype == torch.float32
