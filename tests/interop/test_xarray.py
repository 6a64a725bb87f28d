"""xarray over Tensors: its reductions, selections, groups and windows give what they give over NumPy's arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.io import cf

xr = pytest.importorskip("xarray")

D = np.random.default_rng(0).random((6, 8)) * (np.random.default_rng(1).random((6, 8)) < 0.4)
CASES: dict[str, Any] = {
    "mean": lambda v: v.mean("t"),
    "max": lambda v: v.max("x"),
    "std": lambda v: v.std("x"),
    "std of no nan": lambda v: v.std("x", skipna=False),
    "var": lambda v: v.var("x", ddof=1),
    "count": lambda v: v.count("x"),
    "quantile": lambda v: v.quantile(0.5, "x"),
    "where": lambda v: v.where(v > 0.5),
    "where with a value": lambda v: v.where(v > 0.5, 0),
    "where with drop": lambda v: v.where(v.t > 2, drop=True),
    "xr.where": lambda v: xr.where(v > 0.5, v, 0.0),
    "dot": lambda v: v.dot(v, dim="x"),
    "matmul": lambda v: v @ v.T.rename(t="s"),
    "groupby sum": lambda v: v.groupby("g").sum(),
    "groupby anomaly": lambda v: v.groupby("g") - v.groupby("g").mean(),
    "groupby std": lambda v: v.groupby("g").std(),
    "rolling mean": lambda v: v.rolling(x=3).mean(),
    "rolling sum": lambda v: v.rolling(x=3, min_periods=1).sum(),
    "rolling centred": lambda v: v.rolling(t=2, center=True).max(),
    "coarsen": lambda v: v.coarsen(x=2).mean(),
    "isel": lambda v: v.isel(t=2, x=slice(1, 5)),
    "sel": lambda v: v.sel(x=[1, 3]),
    "transpose": lambda v: v.transpose("x", "t"),
    "stack": lambda v: v.stack(z=("t", "x")),
    "reindex": lambda v: v.reindex(x=[1.0, 2.0, 20.0]),
    "shift": lambda v: v.shift(x=1, fill_value=0),
    "concat": lambda v: xr.concat([v, v], "t"),
    "arithmetic": lambda v: v + v.isel(t=0) * v.x,
    "alignment": lambda v: v + v.isel(x=slice(1, 4)),
    "ufunc": lambda v: np.sin(v),
    "isnull": lambda v: v.isnull(),
    "clip": lambda v: v.clip(0, 0.5),
    "cumsum": lambda v: v.cumsum("x"),
    "apply_ufunc": lambda v: xr.apply_ufunc(np.sqrt, v),
    "dataset": lambda v: v.to_dataset().mean("t").v,
    "as_numpy": lambda v: v.as_numpy(),
}


def array(data: Any) -> Any:
    coords = {"t": np.arange(6), "x": np.arange(8.0), "g": ("t", list("aabbcc"))}
    return xr.DataArray(data, dims=("t", "x"), coords=coords, name="v")


@pytest.mark.thin(8, rest="ci")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_gives_what_it_gives_over_numpy(name: str) -> None:
    want = CASES[name](array(D))
    got = CASES[name](array(ow.asarray(D, format="csc" if len(name) % 2 else "csr")))
    assert got.dims == want.dims
    assert got.dtype == want.dtype
    data = got.data.to_numpy() if isinstance(got.data, ow.Tensor) else got.data
    np.testing.assert_allclose(data, want.data, rtol=1e-12, atol=1e-14)


def test_results_stay_sparse_and_nothing_is_made_dense_in_silence() -> None:
    v = array(ow.asarray(D, format="csr"))
    for got in (
        v * 2,
        v.where(v > 0.5, 0),
        v.isel(x=slice(1, 4)),
        v.T,
        xr.concat([v, v], "t"),
        v.rolling(x=2).construct("w"),
    ):
        assert isinstance(got.data, ow.Tensor)
        assert not got.data.format.is_dense
    with pytest.raises(ow.UnsupportedError, match="to_numpy"):
        _ = v.values
    np.testing.assert_array_equal(v.as_numpy().values, D)


@pytest.mark.thin(2)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "dcsr", "bsr(2, 2)"])
@pytest.mark.parametrize("fill", [0.0, 2.5])
def test_a_dataset_goes_to_netcdf_and_back(tmp_path: Path, spec: str, fill: float) -> None:
    t = ow.asarray(np.where(D > 0, D, fill), format=spec, fill_value=fill)
    ds = xr.Dataset({"v": (("t", "x"), t, {"units": "m"}), "w": ("t", np.arange(6.0))}, coords={"x": np.arange(8.0)})
    gathered = cf.encode(ds)
    assert gathered.v_place.attrs["compress"] == "t x"
    assert gathered.v.shape == (t.asformat("coo").nse,)
    gathered.to_netcdf(tmp_path / "v.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "v.nc", engine="scipy") as read:
        back = cf.decode(read.load())
    assert set(back.variables) == set(ds.variables)
    assert back.v.data.format == t.format
    assert back.v.data.fill_value == fill
    assert back.v.attrs == {"units": "m"}
    np.testing.assert_array_equal(back.v.data.to_numpy(), t.to_numpy())
    gathered = gathered.assign_coords(v_place=gathered.v_place.copy(data=np.full(gathered.v.shape, 99)))
    with pytest.raises(ow.FileFormatError, match="99 of 48 elements"):
        cf.decode(gathered)


def test_windows() -> None:
    view = np.lib.stride_tricks.sliding_window_view
    t = ow.asarray(D, format="csr")
    for window, axis in ((3, 1), (2, 0), ((2, 3), None), ((2, 2), (1, 0)), (8, -1)):
        for got in (view(t, window, axis), ow.lib.stride_tricks.sliding_window_view(t, window, axis=axis)):
            np.testing.assert_array_equal(got.to_numpy(), view(D, window, axis))
            assert not got.format.is_dense
    with pytest.raises(ow.ShapeError, match="window of 9"):
        view(t, 9, 1)
    with pytest.raises(ow.ShapeError, match="one for each axis"):
        view(t, 2)
    with pytest.raises(TypeError, match="window_shape"):
        view(t, 1.5, 1)


def test_moments_take_numpys_words() -> None:
    t = ow.asarray(D, format="csr")
    for name in ("var", "std", "nanvar", "nanstd"):
        ours, theirs = getattr(ow, name), getattr(np, name)
        np.testing.assert_allclose(ours(t, axis=1, ddof=1).to_numpy(), theirs(D, axis=1, ddof=1))
        assert ours(t, dtype=np.float32).dtype == np.float32
    np.testing.assert_allclose(ow.quantile(t, q=0.3, axis=0).to_numpy(), np.quantile(D, 0.3, axis=0))


@pytest.mark.thin(6)
@pytest.mark.parametrize("format", ["csr", "coo", "bitmap"])
@pytest.mark.parametrize("name", ["mean", "max", "std", "where with a value", "xr.where", "dot", "isel", "transpose"])
def test_in_chunks_of_dask(name: str, format: str) -> None:
    """`chunk` cuts a Tensor into Tensors, and what Dask computes of them is a Tensor."""
    pytest.importorskip("dask.array")
    numbers = xr.DataArray(D, dims=("t", "x"), coords={"t": range(6), "x": range(8)})
    chunked = numbers.copy(data=ow.asarray(D, format=format)).chunk({"t": 4})
    assert isinstance(chunked.data._meta, ow.Tensor)
    got = CASES[name](chunked).compute().data
    assert isinstance(got, ow.Tensor)
    np.testing.assert_allclose(got.to_numpy(), CASES[name](numbers).values)


def test_a_tensor_on_the_left_keeps_labels() -> None:
    t, v = ow.asarray(D, format="csr"), array(ow.asarray(D, format="csr"))
    for result in (t + v, t * v, np.add(t, v), t == v):
        assert isinstance(result, xr.DataArray)
        assert result.dims == ("t", "x")
    assert np.array_equal((t - v).data.to_numpy(), np.zeros((6, 8)))


def test_cf_of_other_variables() -> None:
    """Dense, empty, complex, in one dimension or three, of a DataArray, with names that are taken."""
    t = ow.asarray(D, format="csr")
    dense = cf.encode(xr.Dataset({"v": (("t", "x"), ow.asarray(D), {"units": "m"})}))
    assert isinstance(dense.v.data, np.ndarray)
    assert dense.v.attrs == {"units": "m"}
    np.testing.assert_array_equal(dense.v.values, D)
    for name in (None, "v"):
        gathered = cf.encode(xr.DataArray(t, dims=("t", "x"), name=name))
        assert set(gathered.data_vars) == {name or "data"}
        np.testing.assert_array_equal(cf.decode(gathered)[name or "data"].data.to_numpy(), D)
    for x, spec in (
        (D[0], "coo"),
        (D[None], "csf"),
        (np.zeros((0, 3)), "csr"),
        (np.zeros((3, 2)), "coo"),
        (D > 1, "csr"),
        (D.astype("i2"), "csc"),
    ):
        a = ow.asarray(x, format=spec)
        back = cf.decode(cf.encode(xr.Dataset({"v": (tuple("abc"[: x.ndim]), a)}))).v.data
        assert (back.format, back.dtype, back.fill_value) == (a.format, a.dtype, a.fill_value)
        np.testing.assert_array_equal(back.to_numpy(), x)
    for taken in (
        xr.Dataset({"v": (("t", "x"), t), "v_place": ("u", [1.0])}),
        xr.Dataset({"v": (("v_place", "x"), t)}),
    ):
        with pytest.raises(ow.UnsupportedError, match="there is a variable 'v_place'"):
            cf.encode(taken)
    with pytest.raises(ow.UnsupportedError, match="fill value"):
        cf.encode(xr.Dataset({"v": (("t", "x"), t * (1 + 1j))}))
    gathered = cf.encode(xr.Dataset({"v": (("t", "x"), t)}))
    for places in (
        gathered.v_place.assign_attrs(compress="t"),
        gathered.v_place.copy(data=gathered.v_place.values * 1.0),
    ):
        with pytest.raises(ow.FileFormatError, match="`compress` of 'v_place'"):
            cf.decode(gathered.assign_coords(v_place=places))
    with pytest.raises(ow.FileFormatError, match="places from -1 to"):
        cf.decode(
            gathered.assign_coords(
                v_place=gathered.v_place.copy(data=gathered.v_place.values - gathered.v_place.values[0] - 1)
            )
        )


def test_cf_says_what_it_takes() -> None:
    assert ow.io.cf is cf
    for function in (cf.encode, cf.decode):
        with pytest.raises(ow.DTypeError, match=r"expected an xarray Dataset or DataArray; got Tensor"):
            function(ow.eye(3))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("sparse_shape", np.array([-3, 3])), ("sparse_shape", "x"), ("sparse_shape", np.array([2.5, 3.0])),
        ("sparse_shape", np.array([2**62, 2**62])), ("sparse_shape", []), ("sparse_fill_value", "a"),
        ("sparse_fill_value", np.array([1, 2])), ("sparse_format", "zz"), ("sparse_format", 3),
        ("sparse_format", "csf(7)"),
    ],
)  # fmt: skip
def test_attributes_that_say_nothing_are_refused(attribute: str, value: object) -> None:
    gathered = cf.encode(xr.Dataset({"v": (("a", "b"), ow.asarray(np.eye(3), format="csr"))}))
    gathered["v"].attrs[attribute] = value
    with pytest.raises(ow.FileFormatError, match=f"decode: 'v': {attribute}"):
        cf.decode(gathered)
