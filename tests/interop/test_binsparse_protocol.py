"""`__binsparse__` and `__binsparse_descriptor__`: what a Tensor gives, and what `asarray` takes of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

DENSE = np.array([[0.0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 3, 0]])
NAMED = {
    "csr": "CSR",
    "csc": "CSC",
    "coo": "COOR",
    "dcsr": "DCSR",
    "dcsc": "DCSC",
    "dense": "DMATR",
    "dense_f": "DMATC",
}


class Other:
    """An array of another library that speaks the protocol."""

    def __init__(self, body: Any, arrays: Any) -> None:
        self.body, self.arrays = body, arrays

    def __binsparse_descriptor__(self) -> Any:
        return self.body

    def __binsparse__(self) -> Any:
        return self.arrays


def through(t: ow.Tensor) -> ow.Tensor:
    """A tensor by way of an object that has nothing but the protocol."""
    result: ow.Tensor = ow.asarray(Other(t.__binsparse_descriptor__(), t.__binsparse__()))
    return result


@pytest.mark.parametrize("spec", NAMED)
def test_descriptions_have_the_specification_s_names(spec: str) -> None:
    t = ow.asarray(DENSE, format=spec)
    body = t.__binsparse_descriptor__()["binsparse"]
    assert (body["version"], body["format"], body["shape"]) == ("0.1", NAMED[spec], [3, 4])
    arrays = t.__binsparse__()
    assert set(arrays) == set(body["data_types"])
    assert body["data_types"]["values"] == "float64"
    assert all(hasattr(a, "__dlpack__") for a in arrays.values())
    assert body["number_of_stored_values"] == len(arrays["values"])
    assert np.shares_memory(arrays["values"], t.values)
    back = through(t)
    assert back.format == t.format
    np.testing.assert_array_equal(back.to_numpy(), DENSE)
    assert np.shares_memory(back.values, t.values)


@pytest.mark.parametrize(
    "spec", ["bsr(1, 2)", "dia", "ell(4)", "bitmap", "csr(unordered)", "coo(nonunique, unordered)"]
)
def test_other_formats_go_as_coordinates(spec: str) -> None:
    t = ow.asarray(DENSE).asformat(spec)
    assert t.__binsparse_descriptor__()["binsparse"]["format"] == "COOR"
    np.testing.assert_array_equal(through(t).to_numpy(), DENSE)
    with pytest.raises(ValueError, match="goes as coordinates"):
        t.__binsparse__(copy=False)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_values_of_every_type(dtype: str, library: str) -> None:
    if library == "torch":
        pytest.importorskip("torch")
    t = ow.asarray(DENSE.astype(dtype), format="csr", like=library)
    want = {"bool": "bint8", "complex64": "complex[float32]", "complex128": "complex[float64]"}.get(dtype, dtype)
    assert t.__binsparse_descriptor__()["binsparse"]["data_types"]["values"] == want
    back = through(t)
    assert str(back.dtype).removeprefix("torch.") == dtype
    np.testing.assert_array_equal(np.asarray(back.to_numpy()), DENSE.astype(dtype))
    assert type(back.values) is type(t.values)
    with pytest.raises(ow.UnsupportedError, match=r"no values of float16\n  help: astype"):
        ow.asarray(DENSE.astype("float16"), format="csr").__binsparse_descriptor__()


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0, 3), (2, 2, 2, 2)])
@pytest.mark.parametrize("spec", ["coo", "csf", "dense"])
def test_every_rank(shape: tuple[int, ...], spec: str) -> None:
    array = np.where(np.arange(np.prod(shape)).reshape(shape) % 3 == 0, 1.5, 0)
    t = ow.asarray(array, format=spec)
    back = through(t)
    assert back.format == t.format
    np.testing.assert_array_equal(back.to_numpy(), array)
    with pytest.raises(ow.UnsupportedError, match="no tensor of no dimensions"):
        ow.asarray(1.0).__binsparse__()


def test_fill_values_and_copies() -> None:
    t = ow.exp(ow.asarray(DENSE, format="csr"))
    assert t.__binsparse_descriptor__()["binsparse"]["fill"] is True
    assert through(t).fill_value == 1
    np.testing.assert_array_equal(through(t).to_numpy(), np.exp(DENSE))
    assert not np.shares_memory(t.__binsparse__(copy=True)["values"], t.values)
    other = Other(t.__binsparse_descriptor__(), t.__binsparse__())
    assert not np.shares_memory(ow.asarray(other, copy=True).values, t.values)


def test_a_format_that_is_asked_for() -> None:
    t, csc = ow.asarray(DENSE, format="csr"), ow.asarray(DENSE, format="csc").__binsparse_descriptor__()
    arrays = t.__binsparse__(descriptor=csc)
    np.testing.assert_array_equal(ow.asarray(Other(csc, arrays)).to_numpy(), DENSE)
    with pytest.raises(ValueError, match="needs a copy"):
        t.__binsparse__(descriptor=csc, copy=False)
    for wrong in ({}, {"binsparse": {"format": "BSR"}}, {"binsparse": {"format": "CVEC"}}, 3):
        with pytest.raises(TypeError, match="descriptor"):
            t.__binsparse__(descriptor=wrong)


def test_indices_of_other_widths() -> None:
    """SciPy's draft has int32, the specification's examples uint64."""
    t = ow.asarray(DENSE, format="csr")
    arrays = {k: a.astype(np.uint64) if k != "values" else a for k, a in t.__binsparse__().items()}
    body = t.__binsparse_descriptor__()
    body["binsparse"]["data_types"] |= {"pointers_to_1": "uint64", "indices_1": "uint64"}
    np.testing.assert_array_equal(ow.asarray(Other(body, arrays)).to_numpy(), DENSE)
    with pytest.raises(ValueError, match="needs a copy"):
        ow.asarray(Other(body, arrays), copy=False)


def damaged(**changes: Any) -> Other:
    t = ow.asarray(DENSE, format="csr")
    body, arrays = t.__binsparse_descriptor__(), {k: a.copy() for k, a in t.__binsparse__().items()}
    for key, value in changes.items():
        if key in arrays:
            arrays[key] = value
        else:
            body["binsparse"][key] = value
    return Other(body, {k: a for k, a in arrays.items() if a is not None})


def test_what_does_not_fit_is_refused() -> None:
    for other, error, message in (
        (Other({}, {}), ow.FormatError, "a description of version None"),
        (Other(3, {}), ow.FormatError, "a description of version None"),
        (damaged(version="1.0"), ow.FormatError, "version '1.0'"),
        (damaged(format="BSR"), ow.FormatError, "format is 'BSR'"),
        (damaged(shape=[3]), ow.FormatError, "levels of 2 dimensions"),
        (damaged(shape="x"), ow.FormatError, "shape is 'x'"),
        (damaged(data_types=None), ow.FormatError, "data_types are None"),
        (damaged(indices_1=None), ow.FormatError, "the array 'indices_1' is missing"),
        (damaged(values=np.ones((3, 1))), ow.FormatError, "expected one dimension"),
        (damaged(values=np.ones(3, np.float32)), ow.FormatError, "data_types says 'float64'"),
        (damaged(indices_1=np.array([1, 0, 9], np.int32)), ow.InvariantError, "5.5"),
        (damaged(pointers_to_1=np.array([0, 1, 1, 7], np.int32)), ow.InvariantError, "5."),
        (damaged(indices_1=np.ones(3)), ow.FormatError, "expected integers"),
        (damaged(structure="symmetric_lower"), ow.UnsupportedError, "structure"),
    ):
        with pytest.raises(error, match=message):
            ow.asarray(other)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_copy_shares_no_memory(library: str) -> None:
    t = ow.asarray(DENSE, format="csr")
    if library == "torch":
        t = ow.asarray(pytest.importorskip("torch").tensor(DENSE), format="csr")
    other = Other(t.__binsparse_descriptor__(), t.__binsparse__())
    shared, copied = ow.asarray(other), ow.asarray(other, copy=True)
    t.values[:] = 7
    assert (shared.values == 7).all()
    assert not (copied.values == 7).any()
    assert type(copied.values) is type(t.values)
