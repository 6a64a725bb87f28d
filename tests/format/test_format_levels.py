from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import Unpackable, pack, walk
from strategies import formats, shapes

from openwork.errors import FormatError
from openwork.format import LEVEL_FORMATS, Format, format
from openwork.format.level import Insert, LevelFormat

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


@pytest.mark.ci
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


OTHER_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "coordinates from 1": ("compressed", {"coordinate": "crd[q] - 1", "seek": "crd[q] <= c", "append_coord": "crd[q] = c + 1"}),
    "ends alone": ("compressed", {"bounds": ("0 if p == 0 else pos[p - 1]", "pos[p]"), "pos_length": "parents"}),
    "counted slots": ("ell", {"bounds": ("p * k", "p * k + pos[p]"), "present": None, "pos_length": "parents"}),
    "dense backwards": ("dense", {"position": "p * N + (hi - 1 - c)", "locate": "p * N + (hi - 1 - c)"}),
    "another sentinel": ("ell", {"present": "crd[q] < N"}),
    "a count and a begin": ("loose_compressed", {"bounds": ("pos[2 * p]", "pos[2 * p] + pos[2 * p + 1]")}),
    "slots that are appended": ("structured", {"insert": Insert.APPEND}),
    "gaps that are said to be none": ("loose_compressed", {"padded": False, "compact": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_a_level_format_of_a_form_that_nothing_knows_is_refused_when_its_class_is_made(name: str) -> None:
    """Its buffers would be read as those of the form that its properties are like."""
    like, changed = OTHER_FORMS[name]
    original = LEVEL_FORMATS[like]
    body = {n: getattr(original, n) for n in ("buffers", "may_be", "parameters", "invariants", "summary", "batched")}
    body |= {"name": "other", "__annotations__": dict.fromkeys(original.parameters, int)}
    copy = dataclass(frozen=True, slots=True)(type("Copy", (LevelFormat,), body | {"functions": original.functions}))
    assert copy(*ARGUMENTS.get(like, ())).is_compressed == make(like).is_compressed
    with pytest.raises(FormatError, match="level format other: its level functions are of no form that is known"):
        type("Other", (LevelFormat,), body | {"functions": replace(original.functions, **changed)})
