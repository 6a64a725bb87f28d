from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty
from strategies import formats, shapes

from openwork.errors import FormatError, ShapeError
from openwork.format import Compressed, Dense, Dim, Format, Level, format
from openwork.format.expression import Add, Div, Mod, Sub
from openwork.format.level import unpickled

CSR = Format(("i", "j"), (Level(Dim(0), Dense()), Level(Dim(1), Compressed())))


def test_a_format_is_equal_by_structure() -> None:
    assert format("csr") == CSR
    assert format("(row, column) -> (row : dense, column : compressed)") == CSR
    assert hash(format("(a, b) -> (a : dense, b : compressed)")) == hash(CSR)
    assert format("csc") != CSR
    assert CSR != "csr"
    assert Dense() != Compressed()
    assert len({format("csr"), CSR, format("csc"), format("dcsr")}) == 3


def test_a_format_is_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CSR.dims = ()  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        CSR.levels[0].format.unique = False  # type: ignore[misc]


def test_lists_make_a_format_too() -> None:
    f = Format(["i", "j"], list(CSR.levels))  # type: ignore[arg-type]
    assert f == CSR
    assert f.dims == ("i", "j")


def test_repr_and_text() -> None:
    assert str(CSR) == "(i, j) -> (i : dense, j : compressed)"
    assert repr(CSR) == "format('(i, j) -> (i : dense, j : compressed)')"
    assert pretty(CSR) == repr(CSR)
    assert format("(x, y) -> (x : dense, y : compressed)").canonical == "(d0, d1) -> (d0 : dense, d1 : compressed)"


@given(formats())
def test_parse_print_and_copies(f: Format) -> None:
    assert format(str(f)) == f
    assert format(str(f)).dims == f.dims
    assert format(f.canonical) == f
    assert hash(format(f.canonical)) == hash(f)
    for other in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f), eval(repr(f))):
        assert other == f
        assert hash(other) == hash(f)


def test_a_pickle_hashes_afresh_in_another_process() -> None:
    data = pickle.dumps([format("bsr(2, 3)"), format("coo", 3)])
    code = (
        "import pickle, sys\n"
        "from openwork.format import format\n"
        f"read = pickle.loads({data!r})\n"
        "assert {read[0], read[1]} == {format('bsr(2, 3)'), format('coo', 3)}\n"
    )
    for seed in ("1", "2"):
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONHASHSEED": seed})


@pytest.mark.parametrize(
    "expression",
    [Add(Add(Dim(0), Dim(1)), Dim(2)), Sub(Dim(0), Dim(-1)), Add(Div(Dim(0), 2), Dim(1)), Mod(Dim(0), 0), 3, None],
)
def test_a_pickled_level_of_what_is_no_expression(expression: object) -> None:
    """Only what the language can spell is unpickled: sums of two dimensions, and parts of these."""
    level = Level(Dim(0), Compressed())
    function, arguments = level.__reduce__()[:2]
    assert function(*arguments) == level
    with pytest.raises(FormatError, match="no level"):
        function(expression, *arguments[1:])


def test_formats_are_pickled_with_their_properties() -> None:
    for text in (
        "csr", "coo", "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(unordered))", "nm(2, 4)", "ell(3)",
        "(i, j) -> (i : dense, j : compressed(unordered))", "(i, j) -> (i : dense, j : compressed(nonunique))",
        "(i, j) -> (i : dense, j : loose_compressed(nonunique))", "(i, j) -> (j - i : compressed, j : range)", "bitmap",
    ):  # fmt: skip
        read = pickle.loads(pickle.dumps(format(text)))
        assert read == format(text)
        assert [(x.format.unique, x.format.ordered) for x in read.levels] == [
            (x.format.unique, x.format.ordered) for x in format(text).levels
        ]
    function, arguments = Level(Dim(0), Compressed()).__reduce__()[:2]
    broken = object.__new__(Compressed)
    for level_format in (broken, "compressed", Compressed, None):
        with pytest.raises(FormatError, match="unpickling"):
            function(arguments[0], level_format, *arguments[2:])
    for changed in (
        (list, (), True, True),
        (Compressed, [], True, True),
        (Compressed, (), 1, True),
        (Compressed, (), True, None),
    ):
        with pytest.raises(FormatError, match="unpickling: no level format"):
            unpickled(*changed)  # type: ignore[arg-type]


@given(st.data())
def test_permute_renames_dimensions(data: st.DataObject) -> None:
    f = data.draw(formats())
    axes = data.draw(st.permutations(range(f.ndim)))
    shape = data.draw(shapes(f.ndim))
    g = f.permute(axes)
    assert g.permute(sorted(range(f.ndim), key=axes.__getitem__)) == f
    assert g.dims == tuple(f.dims[axis] for axis in axes)
    assert [level.format for level in g.levels] == [level.format for level in f.levels]
    permuted = tuple(shape[axis] for axis in axes)
    assert g.level_intervals(permuted) == f.level_intervals(shape)
    assert g.inverse == tuple(f.inverse[axis] for axis in axes)
    assert g.ragged(permuted) == f.ragged(shape)


def test_transposes_of_named_formats() -> None:
    assert format("csr").permute((1, 0)) == format("csc")
    assert format("dense", 3).permute((2, 1, 0)) == format("dense_f", 3)
    assert format("csr").permute((-1, -2)) == format("csc")
    assert str(format("bsr(2, 3)").permute((1, 0))) == (
        "(j, i) -> (i // 2 : dense, j // 3 : compressed, i % 2 : dense, j % 3 : dense)"
    )


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 2), (0, -3)])
def test_permute_refuses_what_is_no_permutation(axes: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as error:
        CSR.permute(axes)
    assert str(error.value) == (
        f"permute (i, j) -> (i : dense, j : compressed): expected: a permutation of 0 to 1; got: {axes}\n"
        "  help: name each of the 2 dimensions once"
    )


def test_level_intervals_wants_a_shape_of_the_right_rank() -> None:
    with pytest.raises(ShapeError) as error:
        CSR.level_intervals((3,))
    assert str(error.value) == (
        "format (i, j) -> (i : dense, j : compressed): expected: a shape of 2 extents; got: (3,)\n"
        "  help: give one extent for each of i, j"
    )


@pytest.mark.parametrize(
    ("spec", "options", "batch", "sparse", "dense", "blocksize"),
    [
        ("csr", {}, 0, 2, 0, None),
        ("csr", {"batch": 2, "dense": 1}, 2, 2, 1, None),
        ("bsr(2,3)", {"batch": 1, "dense": 2}, 1, 2, 2, (2, 3)),
        ("bsr(1,1)", {}, 0, 2, 0, (1, 1)),
        ("bsc(2,3)", {}, 0, 2, 0, (2, 3)),
        ("nm(2,4)", {}, 0, 2, 0, (1, 4)),
        ("dense", {}, 0, 0, 2, None),
        ("dense", {"batch": 1}, 1, 0, 2, None),
        ("coo", {"ndim": 4, "dense": 1}, 0, 3, 1, None),
        ("dia", {"dense": 1}, 0, 2, 1, None),
        ("bitmap", {}, 0, 2, 0, None),
        ("() -> ()", {}, 0, 0, 0, None),
        ("(i, j) -> (j - i : compressed, i : dense)", {}, 0, 2, 0, None),
        ("(i, j) -> (i // 2 : dense, j : dense, i % 2 : dense)", {}, 0, 0, 2, (2, 1)),
        ("(i, j) -> (i // 16 : dense, j : compressed, i % 16 // 4 : dense, i % 4 : dense)", {}, 0, 2, 0, (16, 1)),
    ],
)
def test_ranks(
    spec: str, options: dict[str, int], batch: int, sparse: int, dense: int, blocksize: tuple[int, ...] | None
) -> None:
    f = format(spec, **options)  # type: ignore[arg-type]
    assert (f.batch_ndim, f.sparse_ndim, f.dense_ndim) == (batch, sparse, dense)
    assert f.ndim == batch + sparse + dense
    assert f.blocksize == blocksize


@pytest.mark.parametrize(
    ("text", "unique", "ordered", "dense"),
    [
        ("(i, j) -> (i : dense, j : dense)", True, True, True),
        ("(b, j) -> (b : batch, j : dense)", True, True, True),
        ("(i, j) -> (i : dense, j : compressed)", True, True, False),
        ("(i, j) -> (i : dense, j : compressed(nonunique))", False, True, False),
        ("(i, j) -> (i : dense, j : compressed(unordered))", True, False, False),
        ("(i, j) -> (i : compressed(nonunique), j : singleton)", True, True, False),
        ("(i, j) -> (i : compressed(nonunique), j : singleton(nonunique))", False, True, False),
        ("(i, j) -> (i : compressed(nonunique), j : dense)", False, True, False),
        ("(i, j) -> (i : dense, j : bitmap)", True, True, False),
        ("() -> ()", True, True, True),
    ],
)
def test_properties_of_the_whole(text: str, unique: bool, ordered: bool, dense: bool) -> None:
    f = format(text)
    assert (f.is_unique, f.is_ordered, f.is_dense) == (unique, ordered, dense)


@given(formats(properties=False))
def test_the_strategy_keeps_formats_plain_on_request(f: Format) -> None:
    assert f.is_unique
    assert f.is_ordered


@given(formats(ndim=2, kinds=(Dense, Compressed), blocks=False, diagonals=False, properties=False))
def test_the_strategy_keeps_to_the_kinds_asked_for(f: Format) -> None:
    options = itertools.product([Dense(), Compressed()], repeat=2)
    assert f in {Format(("i", "j"), tuple(map(Level, dims, o))) for o in options for dims in DIMS}


DIMS = ((Dim(0), Dim(1)), (Dim(1), Dim(0)))


def test_describe() -> None:
    assert format("csr").describe().splitlines() == [
        "level  coordinate  level format  buffers   children of p                           positions",
        "-----  ----------  ------------  --------  --------------------------------------  ------------",
        "0      i           dense         -         all N coordinates, at p * N + (c - lo)  parents * N",
        "1      j           compressed    pos, crd  crd[pos[p] : pos[p + 1]]                pos[parents]",
    ]
