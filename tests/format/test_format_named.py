from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import formats

from openwork.errors import FormatError
from openwork.format import Format, coo, format
from openwork.format.named import NAMED

TABLE = {
    "dense": "(i, j) -> (i : dense, j : dense)",
    "dense_f": "(i, j) -> (j : dense, i : dense)",
    "coo": "(i, j) -> (i : compressed(nonunique), j : singleton)",
    "csr": "(i, j) -> (i : dense, j : compressed)",
    "csc": "(i, j) -> (j : dense, i : compressed)",
    "dcsr": "(i, j) -> (i : compressed, j : compressed)",
    "dcsc": "(i, j) -> (j : compressed, i : compressed)",
    "bsr(2, 3)": "(i, j) -> (i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)",
    "bsc(2, 3)": "(i, j) -> (j // 3 : dense, i // 2 : compressed, i % 2 : dense, j % 3 : dense)",
    "dia": "(i, j) -> (j - i : compressed, i : range)",
    "ell(4)": "(i, j) -> (i : dense, j : ell(4))",
    "bitmap": "(i, j) -> (i : dense, j : bitmap)",
    "nm(2, 4)": "(i, j) -> (i : dense, j // 4 : dense, j % 4 : structured(2, 4))",
}
OTHERS = [
    ("csf", {"ndim": 3}, "(i, j, k) -> (i : compressed, j : compressed, k : compressed)"),
    ("coo", {"ndim": 1}, "(i) -> (i : compressed)"),
    ("coo", {"ndim": 3}, "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton)"),
    ("bitmap", {"ndim": 1}, "(i) -> (i : bitmap)"),
    ("dense", {"ndim": 0}, "() -> ()"),
    ("coo", {"ndim": 0}, "() -> ()"),
    ("bitmap", {"ndim": 0}, "() -> ()"),
    ("csr", {"batch": 1}, "(b, i, j) -> (b : batch, i : dense, j : compressed)"),
    ("csr", {"dense": 1}, "(i, j, k) -> (i : dense, j : compressed, k : dense)"),
    (
        "bsr(2, 3)",
        {"batch": 1, "dense": 1},
        "(b, i, j, k) -> (b : batch, i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense, k : dense)",
    ),
    ("coo", {"ndim": 3, "dense": 1, "batch": 1}, "(b, i, j) -> (b : batch, i : compressed, j : dense)"),
    ("dia", {"batch": 2}, "(b0, b1, i, j) -> (b0 : batch, b1 : batch, j - i : compressed, i : range)"),
]


def test_the_table_names_every_named_format() -> None:
    assert {name.split("(")[0] for name in TABLE} | {"csf"} == set(NAMED)


@pytest.mark.parametrize(("spec", "text"), TABLE.items())
def test_named(spec: str, text: str) -> None:
    f = format(spec)
    assert str(f) == text
    assert f == format(text) == format(f"  {spec.upper()} ") == format(spec.replace(" ", ""))
    assert format(spec, 2) == f
    assert f.name == spec


@pytest.mark.parametrize(("spec", "options", "text"), OTHERS)
def test_named_with_options(spec: str, options: dict[str, int], text: str) -> None:
    assert str(format(spec, **options)) == text  # type: ignore[arg-type]


@given(st.sampled_from(sorted(TABLE)), st.integers(0, 2), st.integers(0, 2))
def test_batch_and_dense_for_all(spec: str, batch: int, dense: int) -> None:
    f = format(spec, batch=batch, dense=dense)
    plain = format(spec)
    assert f.ndim == 2 + batch + dense
    assert f.batch_ndim == batch
    assert [level.format for level in f.levels[batch : f.nlevels - dense]] == [level.format for level in plain.levels]
    if spec != "dense_f" or not dense:
        assert f.name == spec


@given(formats())
def test_a_name_makes_the_same_format(f: Format) -> None:
    if f.name is not None:
        assert format(f.name, f.ndim, batch=f.batch_ndim, dense=0 if f.is_dense else f.dense_ndim) == f


@given(st.sampled_from(["dense", "dense_f", "coo", "csf", "bitmap"]), st.integers(0, 64))
def test_any_rank(spec: str, ndim: int) -> None:
    f = format(spec, ndim)
    assert f.ndim == f.nlevels == ndim
    assert format(str(f)) == f


LOOSE = [
    ("csr(unordered)", 2, "(i, j) -> (i : dense, j : compressed(unordered))"),
    ("csr(nonunique, unordered)", 2, "(i, j) -> (i : dense, j : compressed(nonunique, unordered))"),
    (
        "coo(nonunique)",
        3,
        "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : singleton(nonunique))",
    ),
    ("coo(unordered)", 2, "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(unordered))"),
    (
        "bsr(2, 3, unordered)",
        2,
        "(i, j) -> (i // 2 : dense, j // 3 : compressed(unordered), i % 2 : dense, j % 3 : dense)",
    ),
    ("ell(4, unordered)", 2, "(i, j) -> (i : dense, j : ell(4, unordered))"),
]


@pytest.mark.parametrize(("spec", "ndim", "text"), LOOSE)
def test_properties_stand_behind_the_arguments(spec: str, ndim: int, text: str) -> None:
    f = format(spec, ndim)
    assert str(f) == text
    assert f.name == spec
    assert format(text) == f == format(f.name, ndim)


def test_coo_with_properties_is_what_the_function_makes() -> None:
    assert format("coo(nonunique, unordered)", 3) == coo(3, unique=False, ordered=False)


@pytest.mark.parametrize("spec", ["dense(unordered)", "bitmap(nonunique)", "ell(4, nonunique)", "dia(nonunique)"])
def test_levels_that_cannot_be_so_are_named(spec: str) -> None:
    with pytest.raises(FormatError, match=r"nonunique|unordered") as caught:
        format(spec)
    assert "^" in str(caught.value)
    assert "help: leave " in str(caught.value)


@pytest.mark.parametrize("text", ["(i, j) -> (i : dense, j : singleton)", "(i) -> (i : loose_compressed)"])
def test_other_formats_have_no_name(text: str) -> None:
    assert format(text).name is None


def test_coo_with_duplicates_in_any_order() -> None:
    assert coo(3) == format("coo", 3)
    assert str(coo(2, unique=False, ordered=False)) == (
        "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))"
    )
    assert str(coo(3, unique=False, dense=1)) == (
        "(i, j, k) -> (i : compressed(nonunique), j : singleton(nonunique), k : dense)"
    )
    assert not coo(2, unique=False).is_unique
    assert coo(2, ordered=False).is_unique


def test_a_format_keeps_its_names() -> None:
    format("(i, j) -> (i : dense, j : compressed)")
    f = format("(row, col) -> (row : dense, col : compressed)")
    assert format(f) is f
    assert format(f, 2) is f
    assert f.dims == ("row", "col")


def test_formats_are_kept() -> None:
    assert format("csr", batch=1) is format("csr", batch=1)
    assert format("csr") is not format("csr", dense=1)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from openwork.format import named

    monkeypatch.setattr(named, "_cache", {})
    monkeypatch.setattr(named, "CACHE_SIZE", 3)
    for k in range(1, 10):
        format(f"ell({k})")
        assert len(named._cache) <= 3


@pytest.mark.parametrize(
    ("name", "example"), [("bsr", "bsr(4, 4)"), ("bsc", "bsc(4, 4)"), ("ell", "ell(8)"), ("nm", "nm(2, 4)")]
)
def test_names_without_their_arguments_are_refused_with_an_example(name: str, example: str) -> None:
    with pytest.raises(FormatError) as caught:
        format(name)
    assert str(caught.value).endswith(f"\n  help: write {example}")
