"""The parts of the command line that need no tensor: generators, tables, sizes, timing, splitting."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import openwork as ow
from openwork.advice import units
from openwork.advice.measure import medians
from openwork.advice.sizes import block_count, bytes_of, diagonal_count, format_table
from openwork.cli import generate, output
from openwork.cli.bench import measure_all
from openwork.cli.info import bandwidth, degree_histogram, symmetry
from openwork.cli.load import bindings, check_path, split_outside, to_csr
from openwork.cli.main import CliError, main, one_line, positive, seconds
from openwork.cli.peers import blocks_of, in_scipy, in_torch, padded, same_matrix

MATRICES = {
    "uniform": lambda seed: generate.uniform(50, 70, 300, seed),
    "rmat": lambda seed: generate.rmat(6, 400, seed),
    "stencil": lambda seed: generate.stencil(7, 2, seed),
    "blocked": lambda seed: generate.blocked(9, 20, 4, seed),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_generated_matrices_are_sorted_unique_and_repeatable(kind: str) -> None:
    a, b, other = MATRICES[kind](0), MATRICES[kind](0), MATRICES[kind](1)
    key = a.row.astype(np.int64) * a.shape[1] + a.col
    assert np.all(np.diff(key) > 0)
    assert np.all(a.row < a.shape[0])
    assert np.all(a.col < a.shape[1])
    assert np.array_equal(a.toarray(), b.toarray())
    assert not np.array_equal(a.toarray(), other.toarray())


def test_stencil_is_blocked_and_structurally_symmetric() -> None:
    a = generate.stencil(6, 2).tocsr()
    assert symmetry(a) == "symmetric structure, not values"
    assert block_count(a, 2, 2) * 4 == a.nnz
    assert diagonal_count(a) == 3 * 7  # -3 to 3 around each of three rows of points
    diagonal = a.diagonal()
    assert (diagonal > abs(a).sum(axis=1) - diagonal).all()


def test_blocked_has_full_blocks() -> None:
    a = generate.blocked(9, 20, 4).tocsr()
    assert block_count(a, 4, 4) * 16 == a.nnz


def test_stencil_has_the_elements_of_a_nine_point_grid() -> None:
    """Its structure is a Kronecker product of those of paths; values are 22 and -1 to ten per cent."""
    path = np.abs(np.subtract.outer(range(5), range(5))) <= 1
    a = generate.stencil(5, 2).toarray()
    assert np.array_equal(a != 0, np.kron(np.kron(path, path), np.ones((2, 2))))
    off = a * (1 - np.eye(50))
    assert 0.9 * 22 <= a.diagonal().min() < a.diagonal().max() <= 1.1 * 22
    assert -1.1 <= off.min() < -1.05
    assert -0.95 < off[off != 0].max() <= -0.9
    assert generate.stencil(1).shape == (2, 2)


def test_generated_sizes() -> None:
    for nse, want in ((1, (1, 16, 8, 4)), (1000, (100, 64, 50, 24)), (40_000, (4000, 2048, 2178, 1000))):
        assert [generate.by_nse(nse)[kind]().shape for kind in generate.KINDS] == [(n, n) for n in want]
    graph = generate.rmat(10, 20_000).toarray() != 0
    half = graph.reshape(2, 512, 2, 512).sum((1, 3)) / graph.sum()
    assert np.allclose(half, [[0.5, 0.22], [0.22, 0.06]], atol=0.05)


@pytest.mark.parametrize("nse", [1000, 40_000])
@pytest.mark.parametrize("kind", generate.KINDS)
def test_by_nse_is_near_what_was_asked(kind: str, nse: int) -> None:
    assert 0.3 * nse < generate.by_nse(nse)[kind]().nnz < 2 * nse


@pytest.mark.parametrize(
    ("dense", "want"),
    [
        ([[0, 1, 0]], "not square"),
        ([[1, 2], [2, 1]], "symmetric"),
        ([[0, 2], [-2, 0]], "skew-symmetric"),
        ([[1, 2j], [-2j, 1]], "Hermitian"),
        ([[1, 3], [2, 1]], "symmetric structure, not values"),
        ([[1, 3], [0, 1]], "no"),
        ([[True, True], [True, False]], "symmetric"),
    ],
)
def test_symmetry(dense: list[list[complex]], want: str) -> None:
    assert symmetry(sp.csr_array(np.array(dense))) == want


def test_bandwidth_and_degrees() -> None:
    a = sp.csr_array(np.array([[0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]]))
    assert bandwidth(a) == (2, 3)
    assert bandwidth(sp.csr_array(np.eye(4, k=-2))) == (2, 0)
    assert bandwidth(sp.csr_array(np.eye(4, k=3))) == (0, 3)
    assert bandwidth(sp.csr_array((4, 4))) == (0, 0)
    assert degree_histogram(np.diff(a.indptr)) == (["0", "1", "2-3"], [1, 1, 2])
    assert degree_histogram(np.array([], dtype=int)) == (["0"], [0])
    assert degree_histogram(np.array([8, 7, 0])) == (["0", "1", "2-3", "4-7", "8-15"], [1, 0, 0, 1, 1])


def test_texts() -> None:
    assert output.bytes_text(0) == "0 B"
    assert output.bytes_text(999) == "999 B"
    assert output.bytes_text(2_500_000) == "2.5 MB"
    assert output.bytes_text(123_456_789) == "123 MB"
    assert output.time_text(None) == "-"
    assert output.time_text(3.2e-5) == "32.0 us"
    assert output.time_text(0.25) == "250 ms"
    assert output.time_text(2) == "2.00 s"
    assert output.ratio_text(1.234) == "1.23"
    assert output.ratio_text(None) == "-"
    assert output.count_text(1234567) == "1,234,567"
    assert output.percent_text(0.00313) == "0.31%"
    assert output.percent_text(0.5) == "50%"
    assert output.percent_text(0) == "0%"


def test_bytes_of_text() -> None:
    assert [units.bytes_of(f"{n}{u}", "f", "memory") for n, u in ((7, ""), (2, "k"), (2, "MB"), (1.5, "gb"), (1, " T"))] == [
        7, 2000, 2_000_000, 1_500_000_000, 10**12,
    ]  # fmt: skip
    assert [units.bytes_of(f"1{u}iB", "f", "memory") for u in "KmGt"] == [1 << 10, 1 << 20, 1 << 30, 1 << 40]
    assert units.bytes_of(5, "f", "memory") == 5
    for wrong in ("0", "1i", "1iB", "-3", "x", "1 2", "0.5", "1e3", "3xB", 0, -1):
        with pytest.raises(ValueError, match="f: memory is a number of bytes"):
            units.bytes_of(wrong, "f", "memory")


def test_table_and_bars() -> None:
    assert output.table_text(["a", "bb"], [["x", "1"], ["long", "22"]]) == "a     bb\n----  --\nx      1\nlong  22"
    assert output.bars(["0", "10"], [0, 4], width=4) == " 0 |      0\n10 | #### 4"
    assert output.bars([], []) == ""


def test_split_outside_and_bindings() -> None:
    assert split_outside("csr, bsr(4,4),") == ["csr", "bsr(4,4)"]
    assert bindings(["A=bsr(2, 2),B=csc", "x=dense"], "formats") == {"A": "bsr(2, 2)", "B": "csc", "x": "dense"}
    for bad in (["A"], ["=csr"], ["A="], ["A=csr", "A=csc"]):
        with pytest.raises(CliError, match="formats"):
            bindings(bad, "formats")


def test_one_line_keeps_the_first_line_and_the_help() -> None:
    text = 'unknown level format in "x"\n            ^\n  help: say dense'
    assert one_line(ValueError(text)) == 'unknown level format in "x"; help: say dense'
    assert one_line(ValueError()) == "ValueError"
    assert one_line(FileNotFoundError(2, "No such file", "x.mtx")) == "x.mtx: No such file"


def test_positive() -> None:
    assert positive("3") == 3
    with pytest.raises(argparse.ArgumentTypeError):
        positive("0")
    assert [seconds(text) for text in ("0.5", "1e-9", "3599")] == [0.5, 1e-9, 3599]
    for text in ("0", "-1", "3600", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 3600"):
            seconds(text)


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []

    def broken(arguments: argparse.Namespace) -> int:
        raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr("openwork.cli.formats.run", broken)
        patch.setattr("os.dup2", lambda new, old: moved.append(old))
        patch.setattr(sys, "stdout", SimpleNamespace(fileno=lambda: 77))
        assert main(["formats"]) == 0
    assert moved == [77]


def test_a_tensor_is_no_matrix() -> None:
    for shape in ((3,), (2, 3, 4)):
        with pytest.raises(CliError, match=f"this needs a matrix; the file holds a tensor of {len(shape)} dimensions"):
            to_csr(ow.zeros(shape, format="coo"))


def test_formats_that_do_not_suit_are_left_out() -> None:
    rows = list(measure_all(sp.csr_array(np.ones((3, 8))), ["ell(1)", "nm(2, 4)"], ["sum"], 1e-9, lambda what: None))
    assert [(row.op, row.format, row.seconds) for row in rows] == [("all", "ell(1)", {}), ("all", "nm(2, 4)", {})]
    assert all(row.note for row in rows)


def test_a_picture_needs_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [*(m for m in sys.modules if m.startswith("matplotlib.")), "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    ow.write(tmp_path / "a.mtx", ow.eye(3))
    assert main(["plot", str(tmp_path / "a.mtx"), "--out", str(tmp_path / "a.png")]) == 2
    assert "matplotlib is not installed; help: pip install matplotlib" in capsys.readouterr().err
    assert main(["plot", str(tmp_path / "a.mtx"), "--out", str(tmp_path / "none" / "a.png")]) == 2
    assert f"{tmp_path / 'none'}: no such folder" in capsys.readouterr().err
    for path, words in ((tmp_path / "b.mtx", "no such file"), (tmp_path, "not a file")):
        with pytest.raises(CliError, match=words):
            check_path(str(path))
    ow.write(tmp_path / "t.tns", ow.asarray(np.eye(3)[None], format="coo"))
    assert main(["info", str(tmp_path / "t.tns")]) == 0
    assert "\nbytes in each format\n---" in capsys.readouterr().out


def test_medians_call_everything() -> None:
    calls = {"a": 0, "b": 0}

    def count(name: str) -> None:
        calls[name] += 1

    found = medians({"a": lambda: count("a"), "b": lambda: count("b")}, 1e-3)
    assert set(found) == {"a", "b"}
    assert all(value > 0 for value in found.values())
    assert min(calls.values()) > 3


def test_sizes_match_scipy() -> None:
    a = generate.uniform(40, 60, 300).tocsr()
    sizes = bytes_of(a)
    for name, other in (("csr", a), ("csc", a.tocsc()), ("bsr(2, 2)", a.tobsr((2, 2))), ("bsr(4, 4)", a.tobsr((4, 4)))):
        assert sizes[name] == other.data.nbytes + other.indices.nbytes + other.indptr.nbytes
    assert sizes["dense"] == 40 * 60 * 8
    assert bytes_of(sp.csr_array((3, 4)))["csr"] == 16
    table = format_table(a)
    assert {name: count for name, count, _ in table} == sizes
    assert [ratio for *_, ratio in table] == sorted(count / min(sizes.values()) for count in sizes.values())
    assert format_table(sp.csr_array((0, 0)))[0][1:] == (0, 0.0)


def test_peers() -> None:
    a = generate.uniform(5, 7, 20).tocsr()
    assert blocks_of("BSR(2, 3)") == (2, 3)
    assert blocks_of("csr") is None
    assert padded(a, (2, 3)).shape == (6, 9)
    assert a.shape == (5, 7)
    name, blocked = in_scipy(a, "bsr(2,3)")
    assert name == "bsr(2,3)"
    assert np.array_equal(blocked.toarray()[:5, :7], a.toarray())
    assert in_scipy(a, "ell(4)")[0] == "csr"
    assert same_matrix(a.tocoo(), a)
    assert not same_matrix(a * 2, a)
    assert not same_matrix(a.T, a)
    torch = pytest.importorskip("torch")
    for kind, layout in (
        ("coo", torch.sparse_coo),
        ("csc", torch.sparse_csc),
        ("csr", torch.sparse_csr),
        ("bsr(2,3)", torch.sparse_bsr),
    ):
        name, found = in_torch(a, kind)
        assert (name, found.layout) == (kind, layout)
        assert layout is not torch.sparse_coo or found.is_coalesced()
        np.testing.assert_array_equal(found.to_dense()[:5, :7], a.toarray())
