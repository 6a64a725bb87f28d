"""Malformed buffers of torch's constructors: which invariant each breaks, and in whose words it is told."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import openwork as ow

LAYOUTS = ("csr", "csc", "bsr", "bsc")
KINDS = [(layout, batch, dense) for layout in LAYOUTS for batch in (0, 2) for dense in (0, 3)]
CONSTRUCTORS = {k: getattr(ow, f"sparse_{k}_tensor") for k in (*LAYOUTS, "coo")}
Parts = dict[str, Any]
FLAT = re.compile(r"\b(pos|crd)\[")
"""What only `assemble` calls a buffer."""


def parts(layout: str, batch: int, dense: int) -> Parts:
    """Valid buffers: a diagonal of two elements or blocks, in each batch."""
    front, behind = (batch,) * bool(batch), (dense,) * bool(dense)
    block = (2, 3) if layout in ("bsr", "bsc") else ()
    pos, crd = np.broadcast_to([0, 1, 2], (*front, 3)).copy(), np.broadcast_to([0, 1], (*front, 2)).copy()
    rows, cols = block or (1, 1)
    return {
        "pos": pos, "crd": crd, "values": np.ones((*front, 2, *block, *behind)),
        "size": (*front, 2 * rows, 2 * cols, *behind),
    }  # fmt: skip


def put(name: str, at: int, value: int) -> Any:
    """Set an element of the last batch."""

    def function(p: Parts) -> Parts:
        buffer = p[name].copy()
        buffer[(*(n - 1 for n in buffer.shape[:-1]), at)] = value
        return {**p, name: buffer}

    return function


def change(name: str, function: Any) -> Any:
    return lambda p: {**p, name: function(p[name])}


BREAKS: dict[str, tuple[Any, str, str]] = {
    "float pos": (change("pos", lambda x: x.astype(float)), "1.1", "POS is of integers"),
    "float crd": (change("crd", lambda x: x.astype(float)), "1.2", "CRD is of integers"),
    "bool crd": (change("crd", lambda x: x.astype(bool)), "1.2", "CRD"),
    "object pos": (change("pos", lambda x: x.astype(object)), "1.1", "POS"),
    "text crd": (change("crd", lambda x: x.astype(str)), "1.2", "CRD"),
    "short pos": (change("pos", lambda x: x.astype("i2")), "1.3", "POS is of int32 or int64"),
    "short crd": (change("crd", lambda x: x.astype("u4")), "1.3", "CRD is of int32 or int64"),
    "text values": (change("values", lambda x: x.astype(str)), "1.5", "values"),
    "object values": (change("values", lambda x: x.astype(object)), "1.5", "values"),
    "pos of rank 0": (change("pos", lambda x: np.int64(0)), "3.2", "rank of POS"),
    "pos of another rank": (change("pos", lambda x: x[None]), "3.2", "rank of POS"),
    "crd of rank 0": (change("crd", lambda x: np.int64(0)), "3.3", "rank of CRD"),
    "crd of another rank": (change("crd", lambda x: x[None]), "3.3", "rank of CRD"),
    "values of rank 0": (change("values", lambda x: 1.0), "3.4", "values"),
    "values of too many axes": (change("values", lambda x: x[..., None]), "3.4", "values"),
    "size of too few": (change("size", lambda x: x[:1]), "3.1", "size"),
    "size of too many": (change("size", lambda x: (*x, 1)), "3.1", "size"),
    "pos too short": (change("pos", lambda x: x[..., :-1]), "3.8", "length of POS"),
    "crd too short": (change("crd", lambda x: x[..., :1]), "3.9", "expected: 2; got: 1"),
    "crd too long": (change("crd", lambda x: np.concatenate([x, x], -1)), "3.9", "expected: 2; got: 4"),
    "first position": (put("pos", 0, 1), "5.1", "POS[#0] == 1"),
    "last position": (put("pos", 2, 1), "5.2", "POS[#2] == 1"),
    "falling": (put("pos", 1, -1), "5.3", "POS[#1] == -1 after 0"),
    "negative": (put("crd", 0, -1), "5.4", "CRD[#0] == -1"),
    "beyond": (put("crd", 1, 7), "5.5", "CRD[#1] == 7"),
}
"""What is done, the number, and what the message says; POS and CRD stand for the arguments, # for the batch's index."""


def refused(kind: str, *given: Any, **options: Any) -> str:
    with pytest.raises(ow.InvariantError) as caught:
        CONSTRUCTORS[kind](*given, **options)
    return str(caught.value)


@pytest.mark.thin(2, rest="ci")
@pytest.mark.parametrize("name", BREAKS)
def test_number_and_argument(name: str) -> None:
    for kind in KINDS:
        _says(name, kind)


def _says(name: str, kind: tuple[str, int, int]) -> None:
    layout, batch, _ = kind
    good = parts(*kind)
    CONSTRUCTORS[layout](*good.values())
    function, number, says = BREAKS[name]
    text = refused(layout, *function(good).values())
    names = ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
    says = says.replace("POS", names[0]).replace("CRD", names[1]).replace("#", "1, " if batch else "")
    assert text.endswith(f"(invariant {number})"), text
    assert says in text, text
    assert not FLAT.search(text), text
    assert "help: " in text


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_too_short_are_counted_in_elements(kind: tuple[str, int, int]) -> None:
    p = parts(*kind)
    batch = bool(kind[1])
    short = p["values"][:, :1] if batch else p["values"][:1]
    assert refused(kind[0], p["pos"], p["crd"], short, p["size"]).endswith("(invariant 3.10)")
    assert refused(kind[0], p["pos"], p["crd"], short).endswith("(invariant 3.10)")


@pytest.mark.parametrize("kind", [k for k in KINDS if k[1]], ids=str)
@pytest.mark.parametrize(("name", "number"), [("pos", "3.8"), ("crd", "3.9"), ("values", "3.10")])
def test_batches_of_another_number(kind: tuple[str, int, int], name: str, number: str) -> None:
    p = parts(*kind)
    text = refused(kind[0], *{**p, name: np.concatenate([p[name], p[name][:1]])}.values())
    assert text.endswith(f"(invariant {number})"), text
    assert not FLAT.search(text), text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_too_many_children_and_disorder_are_told_by_place(layout: str) -> None:
    p = parts(layout, 2, 0)
    names = ("crow_indices", "col_indices") if layout in ("csr", "bsr") else ("ccol_indices", "row_indices")
    pos = np.array([[0, 1, 2], [0, 2, 2]])
    text = refused(layout, pos, np.array([[0, 1], [1, 0]]), p["values"], p["size"])
    assert text.endswith("(invariant 5.6)"), text
    assert f"{names[1]}[1, 1] == 0 after {names[1]}[1, 0] == 1" in text
    size = (2, 2, 1) if layout == "csr" else (2, 1, 2) if layout == "csc" else None
    if size:
        text = refused(layout, pos, np.array([[0, 0], [0, 0]]), p["values"], size)
        assert text.endswith("(invariant 5.3)"), text
        assert f"{names[0]}[1, 0:2] == 0, 2" in text, text


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("extent", [0, 4])
def test_dense_extents_of_empty_values(layout: str, extent: int) -> None:
    text = refused(layout, [0, 0, 0], np.zeros(0, int), np.zeros((0, 3)), (2, 2, extent))
    assert text.endswith("(invariant 3.10)"), text
    assert "(3,) behind" not in text
    assert CONSTRUCTORS[layout]([0, 0, 0], [], np.zeros((0, 3)), (2, 2, 3)).shape == (2, 2, 3)
    assert CONSTRUCTORS[layout]([0, 1, 1], [0], np.zeros((1, 0)), (2, 2, 0)).shape == (2, 2, 0)


def test_blocks_of_a_shape_without_any() -> None:
    assert ow.sparse_bsr_tensor([0], [], np.zeros((0, 2, 3)), (0, 0)).shape == (0, 0)
    assert refused("bsr", [0], [], np.zeros((0, 2, 3, 4)), (0, 0, 0)).endswith("(invariant 3.10)")


COORDINATES: dict[str, tuple[Any, Any, Any, str, str]] = {
    "float": ([[0.0, 1.0]], [1.0, 2.0], (2,), "1.1", "indices is of integers"),
    "text": ([["a", "b"]], [1.0, 2.0], (2,), "1.1", "indices"),
    "short": (np.array([[0, 1]], "i2"), [1.0, 2.0], (2,), "1.3", "indices[0]"),
    "text values": ([[0, 1]], ["a", "b"], (2,), "1.5", "values"),
    "rank 0": (0, [1.0], (2,), "3.3", "indices"),
    "rank 1": ([0, 1], [1.0, 2.0], (2,), "3.3", "indices"),
    "rank 3": ([[[0, 1]]], [1.0, 2.0], (2,), "3.3", "indices"),
    "values of rank 0": ([[0, 1]], 1.0, (2,), "3.4", "values"),
    "values of too many axes": ([[0, 1]], [[1.0], [2.0]], (2,), "3.4", "values"),
    "values too short": ([[0, 1]], [1.0], (2,), "3.10", "values"),
    "dense extents": ([[0, 1]], np.ones((2, 3)), (2, 4), "3.10", "values"),
    "dense extents of none": (np.zeros((1, 0), int), np.zeros((0, 3)), (2, 0), "3.10", "values"),
    "size": ([[0, 1]], [1.0, 2.0], (2, 2), "3.1", "size"),
    "negative": ([[0, 1], [0, -1]], [1.0, 2.0], (2, 2), "5.4", "indices[1, 1] == -1"),
    "beyond": ([[0, 1], [0, 7]], [1.0, 2.0], (2, 2), "5.5", "indices[1, 1] == 7"),
}


@pytest.mark.parametrize("name", COORDINATES)
def test_coordinates(name: str) -> None:
    *given, number, says = COORDINATES[name]
    text = refused("coo", *given)
    assert text.endswith(f"(invariant {number})"), text
    assert says in text, text
    assert not FLAT.search(text), text


def test_order_of_coordinates_is_told_by_place() -> None:
    text = refused("coo", [[0, 0], [1, 1]], [1.0, 2.0], (2, 2), is_coalesced=True)
    assert text.endswith("(invariant 5.6)"), text
    assert "indices[1, 1] == 1 after indices[1, 0] == 1" in text


def sparse_things() -> list[Any]:
    torch, sp = pytest.importorskip("torch"), pytest.importorskip("scipy.sparse")
    x = torch.tensor([0, 1, 2])
    return [x.to_sparse(), torch.eye(2).to_sparse_csr(), sp.csr_array(np.eye(2)), ow.asarray(np.eye(2), format="csr")]


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_buffer_that_is_itself_sparse(layout: str, at: int) -> None:
    sparse, p = sparse_things()[at], parts(layout, 0, 0)
    for name, number in (("pos", "2.1"), ("crd", "2.2"), ("values", "2.3")):
        broken = {**p, name: sparse}
        assert refused(layout, *broken.values()).endswith(f"(invariant {number})")
        with pytest.raises(ow.InvariantError, match=rf"(?s){name}.*invariant {number}"):
            ow.assemble("csr", (2, 2), pos={1: broken["pos"]}, crd={1: broken["crd"]}, values=broken["values"])
    assert refused("coo", sparse, [1.0, 2.0], (2,)).endswith("(invariant 2.2)")
    assert refused("coo", [[0, 1]], sparse, (2,)).endswith("(invariant 2.3)")


def test_complex32_values() -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls complex32 experimental
        values = torch.zeros(2).to(torch.complex32)
    assert refused("csr", [0, 1, 2], [0, 1], values, (2, 2)).endswith("(invariant 1.5)")
    assert refused("coo", [[0, 1]], values, (2,)).endswith("(invariant 1.5)")
    with pytest.raises(ow.DTypeError, match=r"invariant 1\.5"):
        ow.assemble("dense", (2,), values=values)


def test_assemble_says_pos_and_crd_with_the_index_of_the_batch() -> None:
    p = parts("csr", 2, 0)
    spec = "(b, i, j) -> (b : batch, i : dense, j : compressed)"
    with pytest.raises(ow.InvariantError, match=r"crd\[2\]\[1, 1\] == 7"):
        ow.assemble(spec, (2, 2, 2), pos={2: p["pos"]}, crd={2: put("crd", 1, 7)(p)["crd"]}, values=p["values"])
    flat = {k: p[k].reshape(-1) for k in ("pos", "crd", "values")}
    with pytest.raises(ow.InvariantError, match=r"crd\[2\]\[3\] == 7"):
        ow.assemble(
            spec, (2, 2, 2), pos={2: flat["pos"]}, crd={2: put("crd", 3, 7)(flat)["crd"]}, values=flat["values"]
        )
    with pytest.raises(ow.InvariantError, match=r"(?s)crd\[1\] is of integers.*invariant 1\.2"):
        ow.assemble("csr", (2, 2), pos={1: [0, 1, 2]}, crd={1: [0.0, 1.0]}, values=[1.0, 2.0])
