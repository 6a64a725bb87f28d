"""Scalar COO tensors of torch that store nothing, one or several elements: as tensors, masked tensors and leaves."""

from __future__ import annotations

from typing import Any

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
