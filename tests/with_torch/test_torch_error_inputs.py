"""Calls that torch refuses of dense tensors: of Tensors each is refused by a typed error, or listed with what it gives."""

from __future__ import annotations

from fnmatch import fnmatch
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing._internal needs it")

from torch.nn import functional as F
from torch_invalid import Call, error_inputs, judge, mutated, refused
from torch_listed import outside
from torch_opinfo import samples, variant

import openwork as ow
from openwork.torch.functions import call as functions

BROADER = {
    "softmax *bool": "over the specified elements, in floating point",
    "nn.functional.softmin* *bool": "over the specified elements, in floating point",
    "topk *bool": "False is below True",
    "nn.functional.soft_margin_loss *a rank more": "operands are broadcast, as those of the other losses",
    "nn.functional.pad.* *a rank more": "the last dimensions of any number of them are padded",
    "nn.functional.prelu *complex128": "the operands are promoted",
    "complex error input 2": "out= is of any dtype that the result casts to, as it is of most of torch's functions",
    "__rsub__ *bool": "NotImplemented, as of every operator: Python asks the other operand then",
    "*trap* *bool": "booleans are counted",
    "nn.functional.nll_loss argument 2: *": "the weights are promoted",
    "to_sparse argument 1: no argument": "the layout of no name is COO",
    "to argument [2-5]: *": "copy is a truth value; non_blocking on a CPU and memory_format play no part",
    "to argument 0: a rank more": "memory_format plays no part",
    "nansum *complex128": "a complex number is missing where a part is NaN, as NumPy's",
    "nanmean *complex128": "a complex number is missing where a part is NaN, as NumPy's",
    "where argument 1: *": "a condition of numbers holds where they are not 0, as NumPy's",
}
"""What is no error here, as `operation call` with wildcards, and what it is instead."""


@cache
def operations() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {variant(op): op for op in op_db if torch.float64 in op.dtypes and not outside(variant(op))}


def calls(op: Any, limit: int) -> list[Call]:
    """torch's error inputs, and its samples of different ranks and options with one thing wrong each."""
    kinds = {(getattr(s.input, "ndim", None), len(s.args), tuple(s.kwargs)): s for s in samples(op, torch.float64, 40)}
    return [*error_inputs(op), *(call for s in list(kinds.values())[:limit] for call in mutated(op, s))]


def wrong(op: Any, limit: int) -> list[tuple[Any, ...]]:
    """The calls that are not refused as they should be."""
    found = []
    for call in calls(op, limit):
        if any(fnmatch(f"{variant(op)} {call.what}", pattern) for pattern in BROADER):
            continue
        for layout in ("coo", "csr"):
            for every in (False, True):
                verdict = judge(op, call, layout, every)
                if verdict is not None and verdict[0]:
                    found.append((variant(op), call.what, layout, every, str(call.error)[:100], *verdict))
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(20))
def test_every_call_that_torch_refuses(part: int) -> None:
    torch.manual_seed(0)
    assert not [x for name in list(operations())[part::20] for x in wrong(operations()[name], 3)]


def one(function: Any, *args: Any, **options: Any) -> tuple[str, str] | None:
    """What is wrong with a call that torch refuses, of a Tensor in CSR."""
    op = SimpleNamespace(op=function)
    call = refused(op, "", args, options)
    assert call is not None, "torch takes it"
    return judge(op, call, "csr", False)


def test_some_calls_that_torch_refuses() -> None:
    """Shapes, ranks, dtypes and words that meta tensors tell, then those that an operation has to look at."""
    x, i = torch.arange(6.0).reshape(2, 3), torch.tensor([0, 1])
    for function, *args in (
        (torch.roll, x, (1, 1), (0,)), (torch.roll, x, "abc"), (torch.linalg.cross, x, x[:, :1]), (torch.mean, x, 0, "no"),
        (torch.chunk, x, -3), (torch.trace, x[None]), (torch.vstack, [x, x[:, :2]]), (F.prelu, x, x),
        (F.mse_loss, x, x, None, None, "abc"), (F.rms_norm, x, (2,)), (torch.meshgrid, x), (torch.cov, x[:, :, None]),
        (torch.mm, x[None], x.mT), (torch.mv, x[None], x[0]), (torch.addmm, x[None], x, torch.ones(3, 3)),
        (torch.index_add, x, 0, i[:1], x), (torch.index_select, x, 0, i[None]), (torch.index_copy, x, 0, i.double(), x),
        (torch.select_scatter, x, x, 0, 0), (torch.diagonal_scatter, x, x[0]), (torch.put, x, i, x[0]),
        (torch.masked_select, x, i), (torch.masked_scatter, x, x > 2, x.long()), (torch.tensor_split, x, i[None]),
        (torch.broadcast_tensors, x, 2), (torch.cat, x), (torch.Tensor.expand_as, x, 2), (torch.block_diag, x, None),
    ):  # fmt: skip
        found = one(function, *args)
        assert found is None or not found[0], (function, args, found)


def test_a_result_without_an_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: a function that takes anything, and one that fails on the inside."""
    monkeypatch.setattr(functions, "refused", lambda *_: None)
    for broken, verdict in ((lambda t, *_: t, "a result"), (lambda t, *_: t.nothing, "from the inside")):
        monkeypatch.setitem(functions.FUNCTIONS, "roll", broken)
        found = one(torch.roll, torch.ones(2, 3), (1, 1), (0,))
        assert found is not None
        assert found[0].startswith(verdict)


def test_out_is_written_as_torch_writes_it() -> None:
    a = ow.asarray(torch.arange(6.0).reshape(2, 3), format="csr")
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    pair = torch.max(a, 1, out=(values, places))
    assert pair.values is values
    assert values.tolist() == [2, 5]
    assert places.tolist() == [2, 2]
    with pytest.raises(ow.DTypeError, match="out="):
        torch.amax(a, 1, out=torch.empty(2, dtype=torch.int32))
    with pytest.raises(ow.ShapeError, match="out="):
        torch.max(a, 1, out=(values,))
    with pytest.warns(UserWarning, match="resized"):
        assert torch.amax(a, 1, out=torch.empty(1)).tolist() == [2, 5]


LARGE = 2**40
OF_LARGE = {
    "select": lambda t: torch.select(t, 0, 5),
    "narrow": lambda t: torch.narrow(t, 0, 3, 10),
    "roll": lambda t: torch.roll(t, 3, 0),
    "index_select": lambda t: torch.index_select(t, 0, torch.tensor([7, 5])),
    "flip": lambda t: torch.flip(t, (0,)),
    "transpose": lambda t: torch.transpose(t, 0, 1),
    "split": lambda t: torch.split(t, LARGE // 2)[0],
    "cat": lambda t: torch.cat([t, t]),
    "masked_fill": lambda t: torch.masked_fill(t, t != 0, 3.0),
    "lerp": lambda t: torch.lerp(t, t, 0.5),
    "squeeze": torch.squeeze,
    "dropout": lambda t: F.dropout(t, 0.0),
}


@pytest.mark.parametrize("name", OF_LARGE)
def test_extents_that_no_dense_tensor_has_are_no_refusal(name: str) -> None:
    t = ow.sparse_coo_tensor(torch.tensor([[5, 7], [9, LARGE - 1]]), torch.tensor([1.0, 2.0]), (LARGE, LARGE))
    result = OF_LARGE[name](t)
    assert 1 <= result.nnz <= 4
    assert max(result.shape) in (LARGE, 2 * LARGE)


def test_what_has_no_room_says_so() -> None:
    t = ow.sparse_coo_tensor(torch.tensor([[5], [9]]), torch.tensor([1.0]), (LARGE, LARGE))
    with pytest.raises(ow.errors.SizeError, match="amax: "):
        torch.amax(t, 0)


def test_an_error_of_ours_goes_before_that_of_torch() -> None:
    t = ow.asarray(torch.eye(5), format="csr")
    with pytest.raises(ow.errors.ShapeError, match="topk: k=9 of an extent of 5"):
        torch.topk(t, 9)


def test_index_select_of_rank_0() -> None:
    for x, convert in ((torch.tensor(3.0), ow.asarray), (torch.tensor(3.0), lambda x: ow.asarray(x.numpy()))):
        t = convert(x)
        assert float(t.index_select(-1, torch.tensor([0]))) == 3
        assert float(t.index_select(0, torch.tensor(0))) == 3
        with pytest.raises(ow.ShapeError, match="index_select: 2 coordinates"):
            t.index_select(0, torch.tensor([0, 0]))
        for dim, index in ((0, [1]), (1, [0])):
            with pytest.raises(IndexError):
                t.index_select(dim, torch.tensor(index))
    with pytest.raises(IndexError):
        torch.index_select(ow.asarray(torch.tensor(3.0)), 0, torch.tensor([1]))


def test_places_to_split_at_may_be_a_tensor() -> None:
    """torch wants them on a CPU, where the meta device has no elements."""
    t = ow.asarray(torch.arange(6.0).reshape(2, 3), format="csr")
    parts = torch.tensor_split(t, torch.tensor([1, 2]), dim=1)
    assert [tuple(x.shape) for x in parts] == [(2, 1), (2, 1), (2, 1)]
