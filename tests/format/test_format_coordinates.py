"""Coordinates as the universal sparse tensor's documentation writes them, and comments in format text."""

from __future__ import annotations

import numpy as np
import pytest

import openwork as ow

COO3 = "(i, j, k) -> (i : compressed(nonunique), j : singleton, k : singleton)"
COO4 = "(i, j, k, l) -> (i : compressed(nonunique), j : singleton, k : singleton, l : singleton)"
DISTINCT = "(i, j, k) -> (i : compressed(nonunique), j : singleton(unique), k : singleton)"


@pytest.mark.parametrize("text", [COO3, COO4])
def test_an_outer_pair_may_occur_again(text: str) -> None:
    """A singleton between a nonunique level and another singleton is nonunique where nothing is said."""
    f = ow.format(text)
    assert f == ow.format("coo", f.ndim)
    assert ow.format(str(f)) == f
    shape = (2, 3, 4, 2)[: f.ndim]
    x = np.arange(float(np.prod(shape))).reshape(shape) % 4
    assert np.array_equal(ow.asarray(x, format=text).to_numpy(), x)
    crd = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 2, 1, 1], [0, 0, 0, 1]])[: f.ndim]
    crd = crd[:, :3] if f.ndim == 3 else crd
    t = ow.assemble(text, shape, pos={0: [0, crd.shape[1]]}, crd=dict(enumerate(crd)), values=np.ones(crd.shape[1]))
    assert t.to_numpy().sum() == t.nse == crd.shape[1]
    again = np.concatenate([crd, crd[:, -1:]], 1)
    count = again.shape[1]
    with pytest.raises(ow.InvariantError):
        ow.assemble(text, shape, pos={0: [0, count]}, crd=dict(enumerate(again)), values=np.ones(count))


def test_pairs_that_are_distinct_have_to_be_said() -> None:
    f = ow.format(DISTINCT)
    assert f != ow.format(COO3)
    assert str(f) == DISTINCT
    assert ow.format(str(f)) == f
    assert f.levels[1].format.unique
    crd = {0: [0, 0], 1: [1, 1], 2: [0, 2]}
    with pytest.raises(ow.InvariantError):
        ow.assemble(DISTINCT, (2, 3, 4), pos={0: [0, 2]}, crd=crd, values=[1.0, 2.0])
    for text in (
        "(i, j) -> (i : compressed(nonunique), j : singleton)",
        "(i, j, k) -> (i : compressed(nonunique), j : singleton, k : dense)",
        "(i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton)",
        "(i, j, k) -> (i : compressed, j : singleton, k : singleton)",
    ):
        f = ow.format(text)
        assert str(f) == text
        assert ow.format(str(f)) == f
        assert f.levels[-1].format.unique


def test_text_and_format_are_one_for_every_choice_of_properties() -> None:
    words = ("", "(unique)", "(nonunique)", "(unordered)", "(unique, unordered)", "(nonunique, unordered)")
    seen = set()
    for a in words:
        for b in words:
            for c in words:
                text = f"(i, j, k) -> (i : compressed{a}, j : singleton{b}, k : singleton{c})"
                try:
                    f = ow.format(text)
                except ow.FormatError:
                    continue
                assert ow.format(str(f)) == f, text
                assert str(ow.format(str(f))) == str(f), text
                seen.add(str(f))
    assert len(seen) > 20


def test_comments() -> None:
    f = ow.format("(i, j) -> ( # rows\n  i : dense, # one for each (\n  j : compressed) # columns")
    assert f == ow.format("csr")
    assert ow.format("# CSR\n(i, j) -> (i : dense, j : compressed)\n#") == f
    text = "map = (i, j) -> (i // 2 : dense, j : compressed, i % 2 : dense), // 2 rows, width = 3\n // all\n posWidth = 32 // x"
    assert ow.format(f"#sparse_tensor.encoding<{{\n {text}\n}}>") == ow.format(text[6 : text.index("),") + 1])
    with pytest.raises(ow.FormatError, match="level format") as error:
        ow.format("(i, j) -> (i : dense, # rows\n j : compresed)")
    assert "compresed" in str(error.value)
