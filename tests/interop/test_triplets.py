"""Tables of triplets -> Tensors and back: dicts, pandas, Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openwork as ow

DENSE = np.array([[0.0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 3, 0], [0, 0, 0, 0]])
COLUMNS = {"user": [2, 0, 2], "item": [2, 1, 0], "rating": [3.0, 2.0, 1.0]}


def table(library: str) -> Any:
    if library == "dict":
        return COLUMNS
    if library == "pandas":
        return pytest.importorskip("pandas").DataFrame(COLUMNS)
    return pytest.importorskip("pyarrow").table(COLUMNS)


LIBRARIES = ("dict", "pandas", "arrow")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_comes_in_sparse(library: str) -> None:
    t = ow.from_triplets(table(library), (4, 4), format="csr")
    np.testing.assert_array_equal(t.to_numpy(), DENSE)
    assert (t.format.name, t.nse) == ("csr", 3)
    assert ow.from_triplets(table(library)).shape == (3, 3)
    flipped = ow.from_triplets(table(library), (4, 4), indices=["item", "user"], values="rating")
    np.testing.assert_array_equal(flipped.to_numpy(), DENSE.T)
    vector = ow.from_triplets(table(library), indices=["item"], values="rating")
    np.testing.assert_array_equal(vector.to_numpy(), [1, 2, 3])


@pytest.mark.thin(6)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 2)", "dia", "dense", "bitmap"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_there_and_back(library: str, spec: str, dtype: str) -> None:
    if library != "dict":
        table(library)
    t = ow.asarray(DENSE.astype(dtype), format=spec)
    made = ow.to_triplets(t, library=library)
    back = ow.from_triplets(made, None if library != "dict" else t.shape)
    assert (back.shape, str(back.dtype)) == (t.shape, dtype)
    np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())
    assert list(made if library != "arrow" else made.column_names) == ["i0", "i1", "value"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_and_nothing_stored(library: str) -> None:
    if library != "dict":
        table(library)
    for shape in ((5,), (2, 3, 4), (0, 3), (7, 7)):
        t = ow.zeros(shape, format="coo") if 0 in shape or shape == (7, 7) else ow.random(shape, 0.5, rng=0)
        back = ow.from_triplets(ow.to_triplets(t, library=library), shape)
        np.testing.assert_array_equal(back.to_numpy(), t.to_numpy())


def test_duplicates_are_added_up_or_kept() -> None:
    columns = {"i": [1, 1], "x": [2.0, 3.0]}
    assert ow.from_triplets(columns).to_numpy().tolist() == [0, 5]
    assert ow.from_triplets(columns, format="coo(nonunique, unordered)").nse == 2


def test_nullable_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"i": pandas.array([0, 1], "Int64"), "x": pandas.array([1.5, 2.5], "Float64")})
    assert ow.from_triplets(frame).to_numpy().tolist() == [1.5, 2.5]
    frame.loc[1, "i"] = pandas.NA
    with pytest.raises(ow.UnsupportedError, match="1 entries of column 'i' are missing"):
        ow.from_triplets(frame)
    values = pandas.DataFrame({"i": [0, 1], "x": [1.5, np.nan]})  # NaN is a number
    assert np.isnan(ow.from_triplets(values).to_numpy()[1])


def test_missing_entries_of_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ow.UnsupportedError, match="1 entries of column 'x' are missing"):
        ow.from_triplets(pa.table({"i": [0, 1], "x": [1.0, None]}))


def test_what_is_no_table_of_triplets() -> None:
    for given, error, message in (
        ([1, 2], ow.DTypeError, "expected a table; got: list"),
        ({}, ow.ShapeError, "too few columns among none"),
        ({"x": [1.0]}, ow.ShapeError, "too few columns among 'x'"),
        ({"i": [0.5], "x": [1.0]}, ow.DTypeError, "coordinates in column 'i' are float64"),
        ({"i": ["a"], "x": [1.0]}, ow.DTypeError, "pandas.factorize"),
        ({"i": [[0]], "x": [1.0]}, ow.ShapeError, r"column 'i' has shape \(1, 1\)"),
        ({"i": [0], "x": ["a"]}, ow.DTypeError, "dtype"),
    ):
        with pytest.raises(error, match=message):
            ow.from_triplets(given)
    with pytest.raises(ow.ShapeError, match="no column 'row' among 'user'"):
        ow.from_triplets(COLUMNS, indices=["row"])
    with pytest.raises(ow.InvariantError):
        ow.from_triplets(COLUMNS, (2, 2))


def test_what_makes_no_table() -> None:
    with pytest.raises(ow.UnsupportedError, match=r"elements that are not stored are 1"):
        ow.to_triplets(ow.exp(ow.asarray(DENSE, format="csr")))
    with pytest.raises(ow.ShapeError, match="expected: one for each dimension"):
        ow.to_triplets(ow.eye(2), ["a", "b"])
    with pytest.raises(ow.ShapeError, match="expected: one for each dimension"):
        ow.to_triplets(ow.asarray(2.0))
    with pytest.raises(ValueError, match="library must be 'pandas', 'arrow', 'dict'"):
        ow.to_triplets(ow.eye(2), library="polars")
