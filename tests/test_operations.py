"""An operation is one block: what is listed anywhere comes from it, and what it says holds everywhere."""

from __future__ import annotations

import inspect
import operator
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import tables
from openwork.homes import HOMES
from openwork.runtime.operation import OPERATIONS, operation

ROOT = Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(11)
X = np.where(RNG.random((5, 6)) < 0.5, RNG.integers(-4, 5, (5, 6)) + 0.5, 0.0)
Y = np.where(RNG.random((5, 6)) < 0.2, np.nan, X)


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x)


def _topk(x: Any, k: int, axis: int = -1) -> Any:
    key = np.where(np.isnan(x), np.inf, x)
    order = np.take(np.argsort(-key, axis=axis, kind="stable"), range(k), axis=axis)
    return np.take_along_axis(x, order, axis), order


Case = tuple[str, tuple[Any, ...], dict[str, Any], Callable[[Any], Any]]
CASES: dict[str, Case] = {
    "erf": ("erf", (), {}, _erf),
    "rsqrt": ("rsqrt", (), {}, lambda x: 1 / np.sqrt(x)),
    "nansum": ("nansum", (), {"axis": 0}, lambda x: np.nansum(x, axis=0)),
    "nanprod": ("nanprod", (), {"axis": 1}, lambda x: np.nanprod(x, axis=1)),
    "nanmean": ("nanmean", (), {"axis": 1, "keepdims": True}, lambda x: np.nanmean(x, axis=1, keepdims=True)),
    "nanmax": ("nanmax", (), {"axis": 0}, lambda x: np.nanmax(x, axis=0)),
    "nanmin": ("nanmin", (), {}, np.nanmin),
    "nanvar": ("nanvar", (), {"axis": 0, "correction": 1}, lambda x: np.nanvar(x, axis=0, ddof=1)),
    "nanstd": ("nanstd", (), {"axis": 1}, lambda x: np.nanstd(x, axis=1)),
    "topk": ("topk", (2,), {"axis": 0}, lambda x: _topk(x, 2, 0)),
    "median": ("median", (), {"axis": 1}, lambda x: np.median(x, axis=1)),
    "median of all": ("median", (), {}, np.median),
    "swapaxes": ("swapaxes", (0, -1), {}, lambda x: np.swapaxes(x, 0, -1)),
    "copy": ("copy", (), {}, np.copy),
    "round": ("round", (1,), {}, lambda x: np.round(x, 1)),
    "isin": ("isin", ([0.0, 2.5],), {"invert": True}, lambda x: np.isin(x, [0.0, 2.5], invert=True)),
    "interp": ("interp", ([-4.0, 0, 3], [1.0, 2, 0]), {}, lambda x: np.interp(x, [-4.0, 0, 3], [1.0, 2, 0])),
    "nan_to_num": ("nan_to_num", (), {"nan": 7.0}, lambda x: np.nan_to_num(x, nan=7.0)),
    "pad": ("pad", (((1, 0), (0, 2)),), {}, lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "pad by place": ("pad", (2, "reflect"), {}, lambda x: np.pad(x, 2, "reflect")),
    "quantile": ("quantile", (0.3,), {"axis": 1}, lambda x: np.quantile(x, 0.3, axis=1)),
    "percentile": ("percentile", ([10, 75],), {"axis": 0}, lambda x: np.percentile(x, [10, 75], axis=0)),
    "nanquantile": ("nanquantile", ([0.1, 0.9],), {}, lambda x: np.nanquantile(x, [0.1, 0.9])),
    "nanpercentile": ("nanpercentile", (50,), {"axis": 0}, lambda x: np.nanpercentile(x, 50, axis=0)),
    "nanmedian": ("nanmedian", (), {"axis": 1, "keepdims": True}, lambda x: np.nanmedian(x, axis=1, keepdims=True)),
    "nanargmax": ("nanargmax", (), {"axis": 1}, lambda x: np.nanargmax(x, axis=1)),
    "nanargmin": ("nanargmin", (), {}, np.nanargmin),
    "nancumsum": ("nancumsum", (), {"axis": 1}, lambda x: np.nancumsum(x, axis=1)),
    "nancumprod": ("nancumprod", (), {"axis": 0}, lambda x: np.nancumprod(x, axis=0)),
    "argwhere": ("argwhere", (), {}, np.argwhere),
    "isclose": ("isclose", (2.5,), {"rtol": 0.5}, lambda x: np.isclose(x, 2.5, rtol=0.5)),
    "trace": ("trace", (), {"offset": 1}, lambda x: np.trace(x, offset=1)),
}


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    found = got.to_numpy() if hasattr(got, "to_numpy") else np.asarray(got)
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    assert (found.shape, found.dtype) == (np.shape(want), np.asarray(want).dtype)


def quietly(function: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return function()


@pytest.mark.ci
def test_what_is_made_from_the_blocks_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/operations.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_block_says_where_its_function_is_public() -> None:
    @operation(method=True, numpy=("one", "two"), masked="moves")
    def stretched(x: Any, /) -> Any:
        """Something\n    longer.

        Nothing else."""

    block = OPERATIONS.pop("stretched")
    assert block.function is stretched
    assert block.summary == "Something longer."
    assert block.numpy == ("one", "two")
    assert block.method
    assert not block.lazy


@pytest.mark.thin(4, rest="ci")
@pytest.mark.parametrize("name", sorted(tables.NAMES))
def test_every_name_is_that_of_its_block(name: str) -> None:
    found = getattr(ow, name)
    block = OPERATIONS[name]
    assert inspect.unwrap(found) is inspect.unwrap(block.function)
    assert block.module == HOMES[name]
    assert block.summary, f"{name} says nothing of itself"
    if block.method:
        assert name in dir(ow.Tensor)
    for alias in block.numpy:
        assert operator.attrgetter(alias.partition("(")[0])(np)


@pytest.mark.thin(63)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dense", "dia", "bitmap", "bsr(2,3)"])
@pytest.mark.parametrize("case", CASES)
def test_on_every_format(case: str, spec: str) -> None:
    name, args, options, numpys = CASES[case]
    for x in (X, Y):
        for fill in (0.0, 0.5):
            try:
                t = ow.asarray(x, format=spec, fill_value=fill)
            except ow.FormatError:
                continue
            want = quietly(lambda x=x: numpys(x))
            same(quietly(lambda t=t: getattr(ow, name)(t, *args, **options)), want)
            same(quietly(lambda t=t: getattr(t, name)(*args, **options)), want)


@pytest.mark.parametrize("case", [c for c in CASES if hasattr(np, CASES[c][0])])
def test_by_numpys_name(case: str) -> None:
    name, args, options, numpys = CASES[case]
    if name == "isin":
        return  # NumPy's has its arguments under other names
    options = {"ddof" if key == "correction" else key: value for key, value in options.items()}
    t = ow.asarray(Y, format="csr")
    got = quietly(lambda: getattr(np, name)(t, *args, **options))
    assert isinstance(got, ow.Tensor)
    same(got, quietly(lambda: numpys(Y)))


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("case", CASES)
def test_masked(case: str) -> None:
    name, args, options, _ = CASES[case]
    mask = RNG.random(X.shape) < 0.8
    mask[:, 0] = True
    m = ow.masked_tensor(Y, mask)
    by_name = quietly(lambda: getattr(ow, name)(m, *args, **options))
    by_method = quietly(lambda: getattr(m, name)(*args, **options))
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (by_name, by_method)), strict=True):
        assert isinstance(a, ow.Tensor if case == "argwhere" else ow.MaskedTensor)
        if case == "argwhere":
            return
        np.testing.assert_array_equal(a.to_numpy(-1), b.to_numpy(-1))


def test_masked_reductions_leave_out_what_is_missing_and_what_is_nan() -> None:
    mask = np.array([[True, True, False], [True, False, False], [False, False, False]])
    data = np.array([[1.0, np.nan, 5.0], [3.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    m = ow.masked_tensor(data, mask)
    np.testing.assert_array_equal(ow.nansum(m, axis=1).to_numpy(-1), [1.0, 3.0, -1.0])
    np.testing.assert_array_equal(ow.nanmean(m, axis=0).to_numpy(-1), [2.0, -1.0, -1.0])
    assert ow.nanmax(m).item() == 3.0
    assert m.mask_nan().nse == 2


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("case", CASES)
def test_lazy(case: str) -> None:
    name, args, options, numpys = CASES[case]
    block = OPERATIONS[name]
    t = ow.asarray(X, format="csr")
    got = quietly(lambda: getattr(ow, name)(ow.lazy(t), *args, **options))
    assert (type(got).__name__ == "Lazy") == block.lazy
    same(quietly(lambda: ow.compute(got)) if block.lazy else got, quietly(lambda: numpys(X)))
    by_method = quietly(lambda: getattr(ow.lazy(t), name)(*args, **options))
    later = block.lazy and not (args or options)
    assert (type(by_method).__name__ == "Lazy") == later
    same(quietly(lambda: ow.compute(by_method)) if later else by_method, quietly(lambda: numpys(X)))


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize("case", CASES)
def test_over_torch_buffers_with_gradients(case: str) -> None:
    torch = pytest.importorskip("torch")
    name, args, options, _ = CASES[case]
    positive = np.where(X != 0, np.abs(X) + 0.25, 0.0)
    dense = torch.tensor(positive, requires_grad=True)
    t = ow.asarray(torch.tensor(positive), format="csr")
    values = t.values.clone().requires_grad_()
    t = ow.Tensor._from_storage(t._storage.with_values(values))
    theirs = {
        "erf": torch.erf, "rsqrt": torch.rsqrt, "nansum": lambda x: torch.nansum(x, 0), "copy": torch.clone,
        "nanprod": lambda x: torch.prod(x, 1), "nanmean": lambda x: torch.nanmean(x, 1, keepdim=True),
        "nanmax": lambda x: x.amax(0), "nanmin": lambda x: x.amin(), "nanvar": lambda x: x.var(0),
        "nanstd": lambda x: x.std(1, correction=0), "topk": lambda x: torch.topk(x, 2, 0).values,
        "median": lambda x: x.sort(1).values[:, 2:4].mean(1),
        "median of all": lambda x: x.reshape(-1).sort().values[14:16].mean(),
        "swapaxes": lambda x: x.swapaxes(0, -1), "round": lambda x: torch.round(x, decimals=1),
        "pad": lambda x: torch.nn.functional.pad(x, (0, 2, 1, 0)),
        "pad by place": lambda x: torch.nn.functional.pad(x[None], (2, 2, 2, 2), "reflect")[0],
        "quantile": lambda x: torch.quantile(x, 0.3, 1),
        "percentile": lambda x: torch.quantile(x, torch.tensor([0.1, 0.75], dtype=x.dtype), 0),
        "nanquantile": lambda x: torch.quantile(x, torch.tensor([0.1, 0.9], dtype=x.dtype)),
        "nanpercentile": lambda x: torch.quantile(x, 0.5, 0),
        "nanmedian": lambda x: torch.quantile(x, 0.5, 1, keepdim=True),
        "nancumsum": lambda x: x.cumsum(1), "nancumprod": lambda x: x.cumprod(0),
        "nan_to_num": lambda x: torch.nan_to_num(x, nan=7.0), "trace": lambda x: torch.diagonal(x, 1).sum(),
    }  # fmt: skip
    if name in ("isin", "isclose", "argwhere", "nanargmax", "nanargmin"):
        return  # no floating-point result
    if name == "interp":
        with pytest.raises(ow.UnsupportedError, match="no gradient"):
            ow.interp(t, *args)
        return
    got = getattr(ow, name)(t, *args, **options)
    got = got.values if name == "topk" else got
    want = theirs[case](dense)
    found = got.to_dense()
    finite = torch.isfinite(want)
    torch.testing.assert_close(found[finite], want[finite])
    if case in ("nanmax", "nanmin", "median", "median of all", "topk"):
        return  # ties of unspecified zeros: which element has the gradient is a choice
    if "quantile" in case or "percentile" in case:
        return  # the same
    found[finite].sum().backward()
    want[finite].sum().backward()
    stored = dense.grad[torch.tensor(positive != 0)]
    torch.testing.assert_close(values.grad, stored)


def test_torchs_names() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[1.0, float("inf"), float("nan")], [0.0, 2.0, 0.0]])
    t = ow.asarray(x, format="csr")
    for got, want in (
        (torch.nansum(t, 1), torch.nansum(x, 1)),
        (torch.nanmean(t, dim=0, keepdim=True), torch.nanmean(x, dim=0, keepdim=True)),
        (torch.trace(t), torch.trace(x)),
        (t.nansum(), x.nansum()),
        (t.trace(), x.trace()),
    ):
        torch.testing.assert_close(got.to_dense(), want, equal_nan=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: ow.topk(t, 9), ow.ShapeError, "k = 9 of an extent of 6"),
        (lambda t: ow.topk(t, 1.5), ow.DTypeError, "k is an integer"),
        (lambda t: ow.topk(t.astype(np.complex128), 1), ow.DTypeError, "complex"),
        (lambda t: ow.median(t, axis=5), ow.ShapeError, "out of bounds"),
        (lambda t: ow.median(t.astype(np.complex128)), ow.DTypeError, "complex"),
        (lambda t: ow.trace(t[0]), ow.ShapeError, "two dimensions"),
        (lambda t: ow.swapaxes(t, 0, 2), ow.ShapeError, "out of bounds"),
        (lambda t: np.nanmedian(t, where=[True]), TypeError, "where"),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(ow.asarray(X, format="csr"))


def test_extents_of_zero_and_long_fibres() -> None:
    empty = ow.asarray(np.zeros((3, 0)), format="csr")
    assert ow.topk(empty, 0).values.shape == (3, 0)
    assert np.isnan(quietly(lambda: ow.median(empty, axis=1)).to_numpy()).all()
    t = ow.sparse_coo_tensor(np.array([[0, 0, 1], [7, 3, 1 << 40]]), np.array([2.0, -1.0, 5.0]), (2, 1 << 41))
    found = ow.topk(t, 2)
    np.testing.assert_array_equal(found.values.to_numpy(), [[2.0, 0.0], [5.0, 0.0]])
    np.testing.assert_array_equal(found.indices.to_numpy(), [[7, 0], [1 << 40, 0]])
    np.testing.assert_array_equal(ow.topk(t, 1, largest=False).indices.to_numpy(), [[3], [0]])
    np.testing.assert_array_equal(ow.median(t, axis=1).to_numpy(), [0.0, 0.0])


def test_where_every_element_is_nan_there_is_numpys_warning() -> None:
    t = ow.asarray(np.array([[np.nan, np.nan], [1.0, 2.0]]), format="csr")
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        found = ow.nanmax(t, axis=1)
    np.testing.assert_array_equal(found.to_numpy(), [np.nan, 2.0])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_parts_of_complex_numbers_are_attributes(dtype: str) -> None:
    x = (X * (1 - 2j) if dtype == "complex128" else X).astype(dtype)
    for library in ("numpy", "torch"):
        torch = pytest.importorskip("torch") if library == "torch" else None
        t = ow.asarray(x if torch is None else torch.tensor(x), format="csr")
        same(t.real.to_numpy(), x.real)
        same(t.imag.to_numpy(), x.imag)
    same(ow.compute(ow.lazy(ow.asarray(x)).real), x.real)
