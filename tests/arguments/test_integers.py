"""Number arguments of every public function: what is no integer, or no real number, is a TypeError with a remedy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from calls import OPTIONS, call_of, every_integer, every_real, functions

import openwork as ow
from openwork.codegen import cache
from openwork.decomposition import CP, Tucker

FUNCTIONS = dict(functions())
WRONG: tuple[Any, ...] = (0.5, 1.5, 1.0, "1", 1j, np.float64(1.0), np.array(0.5))


@pytest.fixture(autouse=True)
def settings():
    before, kernels = ow.get_num_threads(), cache._limit
    yield
    ow.set_num_threads(before)
    ow.set_kernel_limit(kernels)


def bound(name: str, parameter: str) -> inspect.BoundArguments:
    call = call_of(name, parameter)
    assert call is not None, f"{name} has a parameter {parameter!r}: give a valid call in calls.py"
    found = inspect.signature(FUNCTIONS[name]).bind(*call[0], **call[1])
    assert parameter in found.arguments, f"the call of {name} in calls.py leaves {parameter!r} out"
    return found


def run(name: str, found: inspect.BoundArguments) -> Any:
    result = FUNCTIONS[name](*found.args, **found.kwargs)
    return list(result) if isinstance(result, Iterator) else result


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize(("name", "parameter"), every_integer())
def test_what_is_no_integer(name, parameter):
    found = bound(name, parameter)
    right = found.arguments[parameter]
    p = inspect.signature(FUNCTIONS[name]).parameters[parameter]
    several = isinstance(right, tuple) and p.kind is not p.VAR_POSITIONAL
    wrong = [*WRONG, *((w, *right[1:]) for w in WRONG if several)]
    whole = parameter in ("axis", "axes") or (parameter == "dim" and p.annotation == "Any")
    if p.default is not None and "None" not in str(p.annotation) and not whole:
        wrong.append(None)
    for value in wrong:
        if parameter == "repeats" and getattr(value, "ndim", None) == 0 and value.dtype.kind == "f":
            continue
        found.arguments[parameter] = (value,) if p.kind is p.VAR_POSITIONAL else value
        with pytest.raises(TypeError) as error:
            run(name, found)
        assert "help:" in str(error.value), (value, str(error.value))
        assert "cannot be interpreted" not in str(error.value), value


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize(("name", "parameter"), every_real())
def test_what_is_no_real_number(name, parameter):
    found = bound(name, parameter)
    optional = "None" in str(inspect.signature(FUNCTIONS[name]).parameters[parameter].annotation)
    for value in ("1", b"1", 1j, [0.5], np.array([0.5]), object(), *([] if optional else [None])):
        found.arguments[parameter] = value
        with pytest.raises(TypeError) as error:
            run(name, found)
        said = str(error.value)
        assert "help:" in said, (value, said)
        assert not re.match(rf"{parameter}: ", said), said  # the operation comes first


@pytest.mark.thin(6, rest="ci")
@pytest.mark.parametrize(("name", "parameter"), every_real())
def test_whatever_is_a_real_number(name, parameter):
    found = bound(name, parameter)
    right = found.arguments[parameter]
    drawn = not name.startswith("nn.attend")  # its dropout draws anew
    plain = run(name, found)
    for value in (np.float32(right), np.array(right), Fraction(right)):
        found.arguments[parameter] = value
        got = run(name, found)
        assert type(got) is type(plain)
        if drawn:
            same(got, plain)


@pytest.mark.thin(5, rest="ci")
@pytest.mark.parametrize(("name", "parameter"), every_integer())
def test_what_has_no_order_is_no_sequence(name, parameter):
    """Mappings, sets, iterators and bytes hold no integers in an order; an empty one is no empty tuple."""
    found = bound(name, parameter)
    p = inspect.signature(FUNCTIONS[name]).parameters[parameter]
    for value in ({}, {1: 2}, {1}, frozenset(), iter([1]), iter(()), "", b""):
        found.arguments[parameter] = (value,) if p.kind is p.VAR_POSITIONAL else value
        with pytest.raises(TypeError, match="help:"):
            run(name, found)


ONE = (
    "argmax",
    "argmin",
    "argsort",
    "topk",
    "cumulative_prod",
    "cumulative_sum",
    "sort",
    "take",
    "repeat",
    "concat",
    "stack",
)
SEVERAL = ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "count_nonzero", "logsumexp", "softmax",
           "log_softmax", "squeeze", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd",
           )  # fmt: skip


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "expand_dims", "vector_norm", "norm"])
def test_axes_are_integers_or_tuples(name):
    """As NumPy has it: no list or array of them, and a tuple only where several axes make sense."""
    t = ow.asarray(np.eye(1, 3), format="csr")
    calls = {
        "take": lambda axis: ow.take(t, [0], axis=axis), "repeat": lambda axis: ow.repeat(t, 2, axis=axis),
        "concat": lambda axis: ow.concat([t, t], axis=axis), "stack": lambda axis: ow.stack([t, t], axis=axis),
        "vector_norm": lambda axis: ow.linalg.vector_norm(t, axis=axis),
        "topk": lambda axis: ow.topk(t, 1, axis=axis), "norm": lambda axis: ow.linalg.norm(t, axis=axis),
    }  # fmt: skip
    call = calls.get(name, lambda axis: getattr(ow, name)(t, axis=axis))
    wrong = [np.array([0]), np.array([], int), range(1)]
    wrong += [] if name == "expand_dims" else [[0], []]
    wrong += [(0,), ()] if name in ONE else []
    for axis in wrong:
        with pytest.raises(TypeError, match="help:"):
            call(axis)
    if name not in ONE:
        call((0,))


def test_lists_of_dims_are_axes_of_torchs_tensors():
    torch = pytest.importorskip("torch")
    x = torch.eye(2, 3)
    t = ow.asarray(x.to_sparse_coo())
    assert torch.equal(torch.as_tensor(torch.sum(t, [0]).to_numpy()), x.sum([0]))
    assert torch.equal(torch.as_tensor(t.sum(dim=[0, 1]).to_numpy()), x.sum([0, 1]))


@pytest.mark.thin(17, rest="ci")
@pytest.mark.parametrize(("name", "parameter"), every_integer())
def test_whatever_has_an_index(name, parameter):
    if name in ("read", "convert", "assemble"):
        pytest.skip("needs a file, or buffers of that shape")
    if name.startswith("plot."):
        pytest.importorskip("matplotlib")
    found = bound(name, parameter)
    right = found.arguments[parameter]
    plain = run(name, found)
    for kind in (np.int64, np.uint8, np.array, lambda n: ow.asarray(np.array(n))):
        found.arguments[parameter] = tuple(map(kind, right)) if isinstance(right, tuple) else kind(right)
        if isinstance(right, tuple) and any(isinstance(x, tuple) for x in right):
            found.arguments[parameter] = tuple(tuple(map(kind, x)) for x in right)
        same(run(name, found), plain)


def same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        for x, y in zip(got, expected, strict=True):
            same(x, y)
    elif isinstance(expected, ow.Tensor):
        assert got.shape == expected.shape
        np.testing.assert_allclose(np.abs(got.to_numpy()), np.abs(expected.to_numpy()))
    elif isinstance(expected, ow.MaskedTensor):
        same(got.filled(0), expected.filled(0))
    elif isinstance(expected, CP | Tucker):
        same(got.fits, expected.fits)
    elif hasattr(expected, "seeds"):
        assert got.seeds.tolist() == expected.seeds.tolist()
    elif hasattr(expected, "state_dict"):
        assert [x.shape for x in got.state_dict().values()] == [x.shape for x in expected.state_dict().values()]
    elif hasattr(expected, "pattern"):
        same(got.pattern, expected.pattern)
    elif hasattr(expected, "get_xlim"):
        assert got.get_xlim() == expected.get_xlim()
    elif sp.issparse(expected):
        same(got.toarray(), expected.toarray())
    elif isinstance(expected, ow.linalg.InverseOperator):
        same(got @ np.ones(got.shape[1]), expected @ np.ones(got.shape[1]))
    elif isinstance(expected, ow.Advice):
        assert {(c.format, c.nbytes) for c in got} == {(c.format, c.nbytes) for c in expected}
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(np.abs(got), np.abs(expected))
    else:
        assert got == expected


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, (_, many) in OPTIONS.items() for option in many])
def test_counts_of_the_solvers(name, option):
    args, kwargs = OPTIONS[name][0]
    for value in (2.5, "3", 1j):
        with pytest.raises(TypeError, match=rf"{option} is an integer"):
            FUNCTIONS[name](*args, **kwargs, **{option: value})


@pytest.mark.parametrize("call", [
    lambda x: x.sum(axis=True), lambda x: ow.argmax(x, axis=True), lambda x: ow.concat([x, x], axis=False),
    lambda x: x.transpose((True, 0)), lambda x: ow.squeeze(x[:1], axis=False), lambda x: ow.reshape(x, (True, 6)),
    lambda x: ow.zeros(True), lambda x: ow.cumulative_sum(x, axis=True), lambda x: ow.take(x, [0], axis=True),
    lambda x: ow.argsort(x, axis=False), lambda x: ow.repeat(x, 2, axis=True), lambda x: ow.eye(True),
    lambda x: ow.eye(3, False), lambda x: ow.vecdot(x, x, axis=True),
])  # fmt: skip
def test_no_truth_where_numpy_takes_none(call):
    with pytest.raises(TypeError, match="integer"):
        call(ow.asarray(np.eye(2, 3), format="csr"))


def test_truth_where_numpy_takes_it():
    x = np.arange(6.0).reshape(2, 3)
    t = ow.asarray(x, format="csr")
    for f, g in (
        (ow.flip(t, axis=True), np.flip(x, True)), (ow.roll(t, True, axis=1), np.roll(x, True, 1)),
        (ow.tril(t, k=True), np.tril(x, True)), (ow.repeat(t, True, axis=0), np.repeat(x, True, 0)),
        (ow.repeat(t, [True, False], axis=0), np.repeat(x, [True, False], 0)), (ow.tile(t, True), np.tile(x, True)),
    ):  # fmt: skip
        np.testing.assert_array_equal(f.to_numpy(), g)


def test_layers_of_networks():
    pytest.importorskip("torch")
    from openwork import nn

    for make in (
        lambda n: nn.GraphConv(n, 2), lambda n: nn.GraphConv(2, n), lambda n: nn.GraphAttention(n, 2),
        lambda n: nn.GraphAttention(2, n), lambda n: nn.GraphAttention(2, 2, n), lambda n: nn.SparseEmbedding(n, 2),
        lambda n: nn.SparseEmbedding(2, n), lambda n: nn.SparseEmbedding(3, 2, n),
        lambda n: nn.SparseEmbeddingBag(n, 2),
    ):  # fmt: skip
        make(np.int64(1))
        for wrong in (1.5, 1.0, "1", 1j):
            with pytest.raises(TypeError, match="is an integer"):
                make(wrong)
