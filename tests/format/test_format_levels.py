from __future__ import annotations

import ast
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import Unpackable, pack, walk
from strategies import formats, shapes

from openwork.format import LEVEL_FORMATS, Format, format
from openwork.format.level import LevelFormat

ARGUMENTS = {"structured": (2, 4), "ell": (3,)}
NAMES = {"p", "q", "c", "lo", "hi", "N", "pos", "crd", "parents", "positions", "count", "begin", "len"}


def make(name: str) -> LevelFormat:
    return LEVEL_FORMATS[name](*ARGUMENTS.get(name, ()))


@pytest.mark.parametrize("name", LEVEL_FORMATS)
def test_level_functions_are_text_over_the_documented_names(name: str) -> None:
    level = make(name)
    allowed = NAMES | set(level.parameters) | {"valid_lo", "valid_hi"}
    texts = [getattr(level.functions, f) for f in level.functions.__dataclass_fields__]
    texts = [t for text in texts for t in (text if isinstance(text, tuple) else (text,)) if isinstance(t, str)]
    assert len(texts) >= 5
    for text in texts:
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        assert used <= allowed | {"True"}, text


@pytest.mark.parametrize("name", LEVEL_FORMATS)
def test_level_functions_read_only_stored_buffers(name: str) -> None:
    level = make(name)
    texts = repr(level.functions)
    for buffer in ("pos", "crd"):
        assert (f"{buffer}[" in texts) == (buffer in level.buffers)
    assert (level.functions.pos_length is not None) == ("pos" in level.buffers)


@pytest.mark.parametrize("name", LEVEL_FORMATS)
def test_level_format_prints_as_it_is_read(name: str) -> None:
    level = make(name)
    assert name == level.name
    assert str(level).startswith(name)
    assert level.arguments == ARGUMENTS.get(name, ())
    for given_property in level.may_be:
        changed = {"nonunique": {"unique": False}, "unordered": {"ordered": False}}[given_property]
        assert given_property in str(type(level)(*level.arguments, **changed))


def roundtrip(f: Format, shape: tuple[int, ...], elements: dict[tuple[int, ...], float]) -> None:
    found: Counter[tuple[int, ...]] = Counter()
    for coordinates, value in walk(f, shape, pack(f, shape, elements)):
        assert f.is_unique is False or coordinates not in found
        found[coordinates] += int(value)
    assert {c: v for c, v in found.items() if v} == elements


@pytest.mark.parametrize(
    "spec", ["dense", "dense_f", "coo", "csr", "csc", "dcsr", "dcsc", "bsr(2,3)", "bsc(2,3)", "dia"]
)
def test_walking_a_named_format_finds_what_was_packed(spec: str) -> None:
    roundtrip(format(spec), (5, 7), {(0, 0): 1, (0, 6): 2, (1, 3): 3, (4, 2): 4, (4, 6): 5})


@pytest.mark.parametrize("spec", ["ell(2)", "csf", "bitmap", "nm(2,4)", "(i, j) -> (i + j : compressed, j : range)"])
def test_walking_other_formats_finds_what_was_packed(spec: str) -> None:
    roundtrip(format(spec), (5, 7), {(0, 0): 1, (0, 6): 2, (1, 3): 3, (4, 2): 4, (4, 6): 5})


@given(st.data())
def test_level_functions_walk_what_was_packed(data: st.DataObject) -> None:
    """Pack random elements into a random format, walk the buffers by the level functions' text: the same elements."""
    f = data.draw(formats(max_ndim=3, max_batch=0))
    shape = data.draw(shapes(f.ndim, max_extent=5))
    assume(all(shape) or f.ndim == 0)
    coordinates = st.tuples(*(st.integers(0, n - 1) for n in shape))
    elements = data.draw(st.dictionaries(coordinates, st.integers(1, 9), max_size=6))
    try:
        roundtrip(f, shape, elements)
    except Unpackable:
        assume(False)


def test_the_reference_walk_can_fail() -> None:
    f, shape = format("csr"), (2, 3)
    buffers = pack(f, shape, {(0, 1): 1, (1, 2): 2})
    assert dict(walk(f, shape, buffers)) == {(0, 1): 1, (1, 2): 2}
    buffers.pos[1] = [0, 2, 2]
    assert dict(walk(f, shape, buffers)) != {(0, 1): 1, (1, 2): 2}
