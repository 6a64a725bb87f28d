from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matrix import FORMATS, dense_array, same, tensor

import openwork as ow
from openwork.codegen import pool
from openwork.compiler.schedule.path import Size, find_path
from openwork.errors import FormatError, ShapeError, UnsupportedError
from openwork.ops.products.spgemm import spgemm
from openwork.ops.products.subscripts import parse_subscripts
from openwork.ops.products.tensor_products import kron, outer, tensordot, vecdot
from openwork.runtime import private_accumulators as overlap
from openwork.runtime import program as drive
from openwork.runtime.coiterate import partition as merge_chunks
from openwork.runtime.coiterate import shaped
from openwork.runtime.contraction import spgemm as spgemm_module
from openwork.runtime.conversion import ranges

SPARSE = {n: tuple(f for f in specs if "dense" not in (f, f[:5])) for n, specs in FORMATS.items() if n}
SOME = (
    "csr", "csc", "coo", "dcsr", "bsr(2, 3)", "dia", "bitmap", "ell(12)",
    "(i, j) -> (i : compressed(nonunique, unordered), j : singleton(nonunique, unordered))",
)  # fmt: skip


def canonical(t: ow.Tensor) -> None:
    if t.format.is_dense:
        return
    assert t.format.is_unique
    assert t.format.is_ordered
    loose = t.coalesce()
    assert loose.nse == t.nse or t.format.blocksize is not None or t.format.name in ("dia", "bitmap") or t.ndim == 0


def check(text: str, *operands: Any, **options: Any) -> Any:
    dense = [x.to_numpy() if isinstance(x, ow.Tensor) else x for x in operands]
    got = ow.einsum(text, *operands, **options)
    same(got, np.einsum(text, *dense))
    if isinstance(got, ow.Tensor):
        canonical(got)
    return got


@pytest.mark.thin(16)
@pytest.mark.parametrize("left", SPARSE[2])
def test_every_pair_of_formats(left: str) -> None:
    a = tensor(dense_array((8, 12), 1), left)
    for right in SPARSE[2]:
        b = tensor(dense_array((12, 7), 2), right)
        got = check("ij,jk->ik", a, b)
        assert got.format == ow.format(left) or a.format != b.format or not a.format.is_unique or "(" in left
        same(a @ b, a.to_numpy() @ b.to_numpy())


@pytest.mark.parametrize("spec", SOME)
def test_result_formats(spec: str) -> None:
    a, b = tensor(dense_array((8, 12), 1), "csr"), tensor(dense_array((12, 9), 2), "csc")
    got = (
        check("ij,jk->ik", a, b, format=spec) if "unordered" not in spec else ow.einsum("ij,jk->ik", a, b, format=spec)
    )
    assert got.format == ow.format(spec, 2)
    same(got, a.to_numpy() @ b.to_numpy())


TEXTS = (
    "ij,jk->ik", "ij,jk->ki", "ij,jk", "ij,jk->", "ij,jk->i", "ij,jk->k", "ij,jk->ijk", "ij,kl->ijkl", "ij,kl->ljki",
)  # fmt: skip


@pytest.mark.thin(3, rest="ci")
@pytest.mark.parametrize(("text", "left", "right"), list(product(TEXTS, ("csr", "csc", "coo"), ("csr", "csc", "dcsr"))))
def test_two_matrices(text: str, left: str, right: str) -> None:
    second = (12, 7) if "jk" in text else (4, 7)
    check(text, tensor(dense_array((8, 12), 1), left), tensor(dense_array(second, 2), right))


def test_rank_three_and_vectors() -> None:
    a, m = tensor(dense_array((6, 7), 1), "csr"), tensor(dense_array((7, 5), 2), "csr")
    s, v = tensor(dense_array((6, 6), 4), "coo"), tensor(dense_array((7,), 7), "coo")
    w = tensor(dense_array((6,), 8), "coo")
    for left, right in product(SPARSE[3][:2], SPARSE[3][1:5:2]):
        x, y = tensor(dense_array((3, 6, 7), 5), left), tensor(dense_array((3, 7, 5), 6), right)
        for text in ("bij,bjk->bik", "bij,bjk->ik", "bij,bjk->kbi", "bij,bjk->", "bij,bjk->b", "...ij,...jk->...ik"):
            check(text, x, y)
        check("bij,bij->bij", x, x)
        check("bij,bij->", x, x)
        check("bij,jk->bik", x, m)
        check("...j,jk->...k", x, m)
        check("bij,j,i->b", x, v, w)
    for text, operands in (
        ("ij,j->i", (a, v)), ("j,ij->i", (v, a)), ("i,j->ij", (v, w)), ("i,i->", (v, v)), ("i,i->i", (v, v)),
        ("ii,ij->j", (s, a)), ("ii,ii->i", (s, s)), ("ij,ji->", (s, s)), ("ij,jk,kl->il", (s, a, m)),
        ("ij,ij,ij->ij", (a, a, a)), ("ij,ik,il->jkl", (s, s, a)),
    ):  # fmt: skip
        check(text, *operands)


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "text", ["ijk,kjm->im", "ijk,mkj->im", "kij,jmk->mi", "ijk,jkm->im", "abij,jbia->", "aij,jia->a"]
)
def test_several_indices_that_are_summed(text: str) -> None:
    """In the order of whichever operand; of unordered ones with duplicates too."""
    extents = {"a": 3, "b": 2, "i": 5, "j": 4, "k": 6, "m": 7}
    shapes = [tuple(extents[c] for c in term) for term in text.split("->")[0].split(",")]
    for spec in ("coo", "csf"):
        check(text, *(tensor(dense_array(shape, k), spec) for k, shape in enumerate(shapes)))
    loose = []
    for k, shape in enumerate(shapes):
        index = np.random.default_rng(k).integers(0, 3, (len(shape), 40)) % np.array(shape)[:, None]
        loose.append(ow.sparse_coo_tensor(index, np.arange(40.0), shape))
    check(text, *loose)


def test_one_operand() -> None:
    for spec in SOME:
        s, a = tensor(dense_array((8, 8), 1, density=0.6), spec), tensor(dense_array((8, 12), 2), spec)
        for text in ("ii->i", "ii", "ii->"):
            check(text, s)
        for text in ("ij->ji", "ij->ij", "ij->i", "ij->j", "ij->", "ji"):
            check(text, a)
        check("ij->i", a, format="coo")
    for spec in SPARSE[3][::3]:
        t = tensor(dense_array((5, 5, 5), 3, density=0.5), spec)
        for text in ("iii->i", "iij->ij", "iij->ji", "iji->j", "ijk->ki", "iii"):
            check(text, t)


def test_sparse_and_dense() -> None:
    a, b, c = (tensor(dense_array(n, k), "csr") for k, n in enumerate([(6, 7), (7, 5), (5, 6)]))
    d, e = b.to_numpy(), c.to_numpy()
    for text, operands in (
        ("ij,jk,kl->il", (a, b, e)), ("ij,jk,kl->il", (a, d, c)), ("ij,jk,k->i", (a, d, e[:, 0])),
        ("ij,jk,kl->li", (a, d, c)), ("ij,jk,ki->", (a, b, e)), ("ij,jj->i", (a, dense_array((7, 7), 9))),
        ("ij,jk->ik", (a.to_numpy(), d)),
    ):  # fmt: skip
        assert isinstance(check(text, *operands), np.ndarray)
    assert check("ij,jk->ik", a, b.asformat("dense")).format.is_dense
    assert check("ij,jk->ik", a, d, format="csc").format == ow.format("csc")


@pytest.mark.parametrize("text", ["b,a,cd->", "b,cd,a->", "b,a,c->", "b,dc,a->a", "b,cd,ac->"])
def test_an_index_that_no_other_operand_has(text: str) -> None:
    """Two free indices, each contiguous in an operand of its own: one of them is taken in vector lanes, no more."""
    extents = {"a": 2, "b": 3, "c": 3, "d": 5}
    first, *others = text.split("->")[0].split(",")
    s = tensor(dense_array((3,), 1, density=1.0), "coo")
    for _ in range(5):
        junk = [np.full(n, np.nan) for n in range(1, 40)]
        del junk
        check(text, s, *(np.ascontiguousarray(dense_array(tuple(extents[c] for c in t), 2)) for t in others))
    assert first == "b"


def test_operands_are_summed_in_the_dtype_of_the_result() -> None:
    small, truth = np.full((5, 3), 100, np.int8), dense_array((5, 3), 1, "bool", density=0.8)
    wide, real = dense_array((3, 4), 2, "int64"), dense_array((3, 4), 3)
    for first, other in ((small, wide), (truth, wide), (truth, real)):
        for text in ("ij,jk->k", "ij,jk->", "ij,ij,jk->ik"):
            operands = [first] * (text.count(",")) + [other]
            check(text, *(tensor(x, "csr") for x in operands))
            check(text, *(tensor(x, "csr") for x in operands[:-1]), other)


def test_truths_over_an_index_of_the_dense_operand_alone() -> None:
    """A disjunction over the lanes of a vector."""
    a = tensor(dense_array((5, 4), 1, "bool", density=0.4), "csr")
    for dense in (np.arange(70) == 69, np.zeros(70, bool)):
        check("ij,k->", a, dense)
        check("ij,k->i", a, dense)


LETTERS = "abcd"


DTYPES = ("float64",) * 4 + ("float32", "int64", "int8", "complex128", "bool")
Problem = tuple[str, list[Any], str | None]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Subscripts, operands of any formats and dtypes, and perhaps the format of the result."""
    extents = {c: draw(st.sampled_from((0, 1, 2, 3, 5) if c == "d" else (1, 2, 3, 5))) for c in LETTERS}
    terms = draw(st.lists(st.text(LETTERS, min_size=0, max_size=3), min_size=1, max_size=4))
    letters = sorted(set("".join(terms)))
    out = "".join(draw(st.permutations(letters))[: draw(st.integers(0, min(4, len(letters))))])
    operands: list[Any] = []
    for term in terms:
        shape, seed = tuple(extents[c] for c in term), draw(st.integers(0, 99))
        array = dense_array(shape, seed, draw(st.sampled_from(DTYPES)), density=0.5)
        specs = (*FORMATS[len(term)], None) if term else ("dense", None)
        spec = draw(st.sampled_from(specs))
        operands.append(array if spec is None else tensor(array, "() -> ()" if not term else spec))
    asked = out and not draw(st.integers(0, 3))
    return f"{','.join(terms)}->{out}", operands, draw(st.sampled_from(FORMATS[len(out)])) if asked else None


def check_subscripts(problem: Problem, threads: int) -> None:
    """Against NumPy, by `threads` threads however little there is to do."""
    text, operands, format = problem
    dense = [x.to_numpy() if isinstance(x, ow.Tensor) else x for x in operands]
    try:
        want = np.einsum(text, *dense)
    except ValueError:
        assume(False)
    before = pool.get_num_threads()
    ow.set_num_threads(threads)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((drive, "PARALLEL_WORK"), (spgemm_module, "PARALLEL_WORK"), (overlap, "COST")):
            patch.setattr(module, name, 1)
        for module in (merge_chunks, shaped):
            patch.setattr(module, "MINIMUM", 0)
        patch.setattr(ranges, "PARALLEL", 0)
        try:
            got = ow.einsum(text, *operands, format=format)
        except FormatError:
            if format is None or not format.startswith(("nm", "ell")):
                raise
            return  # too narrow for the result
        finally:
            ow.set_num_threads(before)
    same(got, want)
    if isinstance(got, ow.Tensor):
        if format is None:
            canonical(got)
        else:
            assert got.format == ow.format(format, got.ndim)


@pytest.mark.ci
@settings(max_examples=70)
@given(problems(), st.sampled_from([1, 2, 7]))
def test_random_subscripts(problem: Problem, threads: int) -> None:
    check_subscripts(problem, threads)


@pytest.mark.nightly
@pytest.mark.timeout(14400)
@settings(max_examples=20000, derandomize=False)
@given(problems(), st.sampled_from([1, 2, 7]))
def test_many_random_subscripts(problem: Problem, threads: int) -> None:
    check_subscripts(problem, threads)


def test_stacks_of_matrices_broadcast() -> None:
    shapes = [
        ((3, 4, 5), (3, 5, 2)), ((3, 1, 4, 5), (2, 5, 3)), ((5,), (5,)), ((5,), (2, 5, 3)), ((2, 3, 5), (5,)),
        ((1, 4, 5), (3, 5, 2)), ((3, 4, 5), (1, 5, 2)), ((2, 0, 5), (5, 3)), ((2, 4, 0), (0, 3)), ((5,), (5, 2)),
    ]  # fmt: skip
    for left, right in shapes:
        a, b = tensor(dense_array(left, 3), "coo"), tensor(dense_array(right, 4), "csf")
        same(a @ b, a.to_numpy() @ b.to_numpy())
        same(ow.matmul(a, b), a.to_numpy() @ b.to_numpy())
    with pytest.raises(ShapeError, match="inner extents differ"):
        tensor(dense_array((3, 4), 1), "csr") @ tensor(dense_array((3, 4), 1), "csr")


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:invalid value")
def test_products_of_all_elements_with_infinities() -> None:
    """0 times infinity is NaN, unspecified zeros included, in the kind and format that finite elements give."""
    vector, matrix = np.array([0.0, 1, 0, 2]), np.array([[0.0, 1], [3, 0]])
    sparse = [
        ow.asarray(vector, format="coo"),
        ow.asarray(matrix, format="csr"),
        ow.asarray(matrix, format="bsr(1, 2)"),
    ]

    def kind(x: Any) -> Any:
        return x.format if isinstance(x, ow.Tensor) else type(x)

    for a, x in product(sparse, [vector, matrix, *sparse[:2]]):
        wild = x * np.array([1, np.inf] * (x.shape[-1] // 2))
        for function, reference in ((outer, np.outer), (tensordot, np.tensordot)):
            axes = {"axes": 0} if function is tensordot else {}
            for left, right, finite in ((a, wild, (a, x)), (wild, a, (x, a))):
                found = function(left, right, **axes)
                assert kind(found) == kind(function(*finite, **axes))
                arrays = [y.to_numpy() if isinstance(y, ow.Tensor) else y for y in (found, left, right)]
                np.testing.assert_array_equal(arrays[0], reference(*arrays[1:], **axes))


def test_tensordot_outer_kron_vecdot() -> None:
    for axes, left, right in (
        (0, (3, 4), (2, 3)), (1, (3, 4, 5), (5, 2)), (2, (2, 4, 5), (4, 5, 3)), (([1], [0]), (3, 4, 5), (4, 2)),
        (([0, -1], [1, 0]), (3, 4, 5), (5, 3, 2)),
    ):  # fmt: skip
        a, b = tensor(dense_array(left, 3), "coo"), tensor(dense_array(right, 4), "coo")
        want = np.tensordot(a.to_numpy(), b.to_numpy(), axes=axes)
        same(tensordot(a, b, axes=axes), want)
        same(tensordot(a, b.to_numpy(), axes=axes), want)
    for left, right in (((3, 4), (2, 5)), ((4,), (2, 5)), ((2, 5), (4,)), ((3, 4, 2), (2, 5, 3)), ((3,), (0,))):
        a, b = tensor(dense_array(left, 1), "csf"), tensor(dense_array(right, 2), "coo")
        same(kron(a, b), np.kron(a.to_numpy(), b.to_numpy()))
    for left, right in (((3, 4), (2, 4, 3)), ((4,), (2, 4, 3)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (4,)), ((), (2, 3))):
        a, y = tensor(dense_array(left, 1), "coo"), dense_array(right, 2)
        same(ow.dot(a, y), np.dot(a.to_numpy(), y))
        same(ow.dot(a, tensor(y, "coo")), np.dot(a.to_numpy(), y))
        same(outer(a, b), np.outer(a.to_numpy(), b.to_numpy()))
    a, b = tensor(dense_array((3, 4), 1, density=0.8), "csc"), tensor(dense_array((3, 4), 2, density=0.7), "csr")
    same(vecdot(a, b), (a.to_numpy() * b.to_numpy()).sum(-1))
    same(vecdot(a, b, axis=0), (a.to_numpy() * b.to_numpy()).sum(0))
    for left, right in ((a * (1 + 2j), b), (a, b * (2 - 1j)), (a * (1 + 2j), b * (2 - 1j))):
        for axis in (0, 1):
            same(vecdot(left, right, axis=axis), np.vecdot(left.to_numpy(), right.to_numpy(), axis=axis))
            same(vecdot(left.to_numpy(), right, axis=axis), np.vecdot(left.to_numpy(), right.to_numpy(), axis=axis))
    assert kron(b, b).format == ow.format("csr")
    for columns, width in ((1 << 16, np.int32), ((1 << 17) - 1, np.int32), (1 << 17, np.int64)):  # extents below 2**31
        one = ow.sparse_coo_tensor(np.array([[0], [columns - 1]]), np.ones(1), (1, columns)).asformat("csr")
        other = ow.sparse_coo_tensor(np.array([[0], [5]]), np.ones(1), (1, 1 << 14)).asformat("csr")
        wide = kron(one, other)
        assert (wide.crd(1).dtype, int(wide.crd(1)[0])) == (width, (columns - 1) * (1 << 14) + 5)
    with pytest.raises(ShapeError, match="do not pair"):
        tensordot(a, b, axes=([0], [1]))


@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 3)"])
def test_masks_and_semirings(spec: str) -> None:
    a, b = tensor(dense_array((8, 9), 1), spec), tensor(dense_array((9, 6), 2), spec)
    mask = tensor(dense_array((8, 6), 3), "csr")
    want = a.to_numpy() @ b.to_numpy()
    inside = mask.to_numpy() != 0
    same(spgemm(a, b, mask=mask), np.where(inside, want, 0))
    same(spgemm(a, b, mask=mask, complement=True), np.where(inside, 0, want))
    if spec.startswith("bsr"):
        return
    x, y = (np.where(t.to_numpy() != 0, t.to_numpy(), np.inf) for t in (a, b))
    shortest = (x[:, :, None] + y[None]).min(1)
    same(spgemm(a, b, semiring="min_plus"), shortest)
    same(ow.einsum("ij,jk->ik", a, b, semiring="min_plus"), shortest)
    same(ow.einsum("ij,jk->k", a, b, semiring="min_plus"), shortest.min(0))
    same(spgemm(a, b, semiring="any_pair"), want != 0)
    same(spgemm(a, b, semiring="lor_land"), want != 0)
    counts = (a.to_numpy() != 0).astype(np.int64) @ (b.to_numpy() != 0)
    same(spgemm(a, b, semiring="plus_pair"), counts)
    same(ow.einsum("ij,jk->i", a, b, semiring="plus_pair"), counts.sum(1))
    dense = dense_array((9, 6), 5, density=1.0)
    same(ow.einsum("ij,jk->ik", a, dense, semiring="min_plus"), (x[:, :, None] + dense[None]).min(1))
    same(
        ow.einsum("ij,jk->ik", a, dense, semiring="max_times"),
        (np.where(x < np.inf, x, -np.inf)[:, :, None] * dense).max(1),
    )


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    a = ow.random((600, 500), 0.2, format="csr", rng=rng)
    b = ow.random((500, 700), 0.2, format="csr", rng=rng)
    before, results = pool.get_num_threads(), []
    try:
        for threads in (1, 2, 7):
            ow.set_num_threads(threads)
            results.append(a @ b)
    finally:
        ow.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].values, other.values)
        np.testing.assert_array_equal(results[0].crd(1), other.crd(1))


def test_more_rows_than_memory() -> None:
    n = 10**9
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n, 300), rng.integers(0, 20, 300) * (n // 20)
    a = ow.sparse_coo_tensor(np.stack([i, j]), np.ones(300), (n, n)).coalesce()
    p = a @ a.T
    rows, columns = np.unique(i, return_inverse=True)
    small = np.zeros((len(rows), n // (n // 20) + 1))
    np.add.at(small, (columns, j // (n // 20)), 1.0)
    want = small @ small.T
    got = np.zeros_like(want)
    at = np.asarray(p.coalesce().indices())
    got[np.searchsorted(rows, at[0]), np.searchsorted(rows, at[1])] = p.coalesce().values
    np.testing.assert_array_equal(got, want)
    assert spgemm(a, a.T, mask=p).nse == p.nse
    assert spgemm(a, a.T, mask=p, complement=True).nse == 0


def test_errors() -> None:
    a = tensor(dense_array((3, 4), 1), "csr")
    for text, operands, message in (
        ("ij,jk->ik", (a,), "has 2 terms, got 1 operands"), ("ij,jk->ik", (a, a), "index j has extents 4 and 3"),
        ("ijk->i", (a,), "has 3 letters, its operand 2 dimensions"), ("ij->z", (a,), "the output has 'z'"),
        ("i1->i", (a,), "'1' is not an index letter"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=message):
            ow.einsum(text, *operands)
    shifted = ow.asarray(np.eye(3), format="csr", fill_value=1.0)
    with pytest.raises(UnsupportedError, match="fill value"):
        ow.einsum("ij,jk->ik", shifted, shifted)
    with pytest.raises(UnsupportedError, match="do not distribute"):
        ow.einsum("ij,kj,kl->il", a, a, a, semiring="plus_pair")
    with pytest.raises(ShapeError, match="expected a mask of shape"):
        spgemm(a, a.T, mask=a)


def test_subscripts() -> None:
    assert parse_subscripts("ij,jk", (2, 2)) == (("ij", "jk"), "ik", "")
    terms, out, stretched = parse_subscripts("...i,i...->...", (3, 2))
    assert len(stretched) == 2
    assert (terms, out) == ((stretched + "i", "i" + stretched[1:]), stretched)


def test_paths() -> None:
    extents = {"i": 100, "j": 100, "k": 100, "l": 1}
    terms = [Size(frozenset("ij"), 1e3), Size(frozenset("jk"), 1e3), Size(frozenset("kl"), 10)]
    steps = find_path(terms, "il", extents)
    assert [(s.left, s.right) for s in steps] == [(1, 2), (0, 1)]
    chain = [Size(frozenset((chr(97 + k), chr(98 + k))), 50.0) for k in range(12)]
    many = find_path(chain, "am", {chr(97 + k): 10 for k in range(13)})
    assert len(many) == 11
    assert many[-1].result.letters == frozenset("am")


@pytest.mark.parametrize("format", ["coo", "dcsr", "csr"])
def test_sparse_results_of_dense_operands_do_not_pass_through_dense_ones(format: str) -> None:
    rng = np.random.default_rng(0)
    n = 200_000 if format == "csr" else 10**9
    crd = np.sort(rng.choice(n, (2, 50)), axis=1)
    last = rng.integers(0, 40, 50)
    t = ow.sparse_coo_tensor(np.stack([*crd, last]), rng.random(50), (n, n, 40))
    x = rng.random(40)
    got = ow.einsum("ijk,k->ij", t, x, format=format)
    assert got.format == ow.format(format, 2)
    assert got.shape == (n, n)
    found = got.asformat("coo")
    want = t.values * x[last]
    assert found.nse == 50
    np.testing.assert_allclose(found.values, want)
    np.testing.assert_array_equal(found.indices(), crd)
    if n < 10**9:
        return
    with pytest.raises(MemoryError, match=r'help: einsum\(..., format="coo"\) gives a sparse result'):
        ow.einsum("ijk,k->ij", t.asformat("csf"), x)


def test_many_operands_without_opt_einsum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is then the cheapest pair."""
    terms = [Size(frozenset((chr(97 + k), chr(98 + k))), 10.0 + k) for k in range(10)]
    extents = {chr(97 + k): 2 + k for k in range(11)}

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("openwork.compiler.schedule.path.import_module", absent)
    steps = find_path(terms, "ak", extents)
    assert len(steps) == 9
    assert (steps[0].left, steps[0].right) == (0, 1)
    assert set(steps[-1].result.letters) == set("ak")


@pytest.mark.parametrize("spec", ["coo(nonunique)", "csr(nonunique)"])
def test_elements_at_one_coordinate_are_their_sum_to_a_semiring(spec: str) -> None:
    row, column = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 2, 0, 0])
    pos, crd = ({0: [0, 5]}, {0: row, 1: column}) if spec[:3] == "coo" else ({1: [0, 3, 5]}, {1: column})
    pos = {k: np.array(x) for k, x in pos.items()}
    t = ow.assemble(spec, (2, 3), pos=pos, crd=crd, values=np.array([1, 1, -1, 3, 4]))  # type: ignore[arg-type]
    dense = np.arange(6).reshape(3, 2)
    for _ in range(3):  # the second one is a prepared call
        same(ow.einsum("ij->i", t, semiring="max_plus"), np.array([2, 7]))
        same(ow.einsum("ij->", t, semiring="min_times"), np.array(-1))
        same(ow.einsum("ij,jk->ik", t, dense, semiring="max_plus"), np.array([[4, 5], [7, 8]]))
        opposite = t.with_values(np.array([1, -1, 0, 3, 4]))
        same(ow.einsum("ij->i", opposite, semiring="lor_land"), np.array([False, True]))


@pytest.mark.parametrize("spec", ["csr", "dense", "coo"])
def test_one_operand_has_the_dtype_of_the_semiring(spec: str) -> None:
    t = ow.asarray(np.array([[0, 2, 3], [0, 0, -1], [4, 0, 0]]), format=spec)
    for _ in range(3):
        same(ow.einsum("ij->ji", t, semiring="lor_land"), t.to_numpy().T != 0)
        same(ow.einsum("ij->", t, semiring="lor_land"), np.array(True))
        same(ow.einsum("ij->i", t, semiring="lxor_land"), np.array([False, True, True]))
        same(ow.einsum("ij->i", t, semiring="any_pair"), np.array([True, True, True]))
        same(ow.einsum("ij,k->k", t, np.array([1, 0]), semiring="lxor_land"), np.array([False, False]))


@pytest.mark.thin(3)
@pytest.mark.parametrize("spec", ["dense", "csr", "coo", "dense_f"])
@pytest.mark.parametrize("text", ["ii", "ij->j", "ij->", "ii->i", "ij,ij->j", "ij,jk->ik"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_the_dtype_over_torch_is_that_of_the_operands_in_any_format(spec: str, text: str, dtype: str) -> None:
    pytest.importorskip("torch")
    a = np.array([[100, 0], [3, 120]], dtype)
    t = ow.asarray(ow.asarray(a, format=spec), like="torch")
    found = ow.einsum(text, *[t] * (1 + text.count(",")))
    assert str(found.dtype) == f"torch.{dtype}"
    np.testing.assert_array_equal(found.to_numpy(), np.einsum(text, *[a] * (1 + text.count(","))))


@pytest.mark.thin(2)
@pytest.mark.parametrize("pair", [("int16", "float32"), ("bool", "bool"), ("bool", "int64"), ("uint8", "uint8")])
@pytest.mark.parametrize("name", ["matmul", "einsum", "tensordot", "inner", "vecdot", "dot"])
@pytest.mark.parametrize("dense", ["Tensor", "array"])
def test_products_of_dense_operands_over_torch_in_the_promoted_dtype(pair: Any, name: str, dense: str) -> None:
    """torch's own have one dtype, and none of bool."""
    pytest.importorskip("torch")
    a, b = (np.array([[1, 0, 2], [0, 3, 0], [1, 1, 0]]).astype(dtype) for dtype in pair)
    t, u = (ow.asarray(ow.asarray(x), like="torch") for x in (a, b))
    u = u if dense == "Tensor" else u.to_dense()
    got, want = {
        "einsum": lambda: (ow.einsum("ij,jk->ik", t, u), np.einsum("ij,jk->ik", a, b)),
        "tensordot": lambda: (ow.tensordot(t, u, axes=1), np.tensordot(a, b, 1)),
    }.get(name, lambda: (getattr(ow, name)(t, u), getattr(np, name)(a, b)))()
    assert str(got.dtype).removeprefix("torch.") == {"int16": "float32"}.get(pair[0], pair[1])
    np.testing.assert_array_equal(np.asarray(got.to_numpy() if isinstance(got, ow.Tensor) else got), want)


@pytest.mark.parametrize("semiring", ["min_plus", "max_times"])
def test_extremes_of_truths(semiring: str) -> None:
    """What is unspecified is no part: the identity of the sum where a row has nothing."""
    dense = np.array([[True, False, True], [False, False, False], [False, True, False]])
    a = ow.asarray(dense, format="csr")
    got = ow.evaluate("y[i] += A[i, j] * x[j]", A=a, x=np.ones(3, bool), semiring=semiring)
    assert got.dtype == bool
    want = dense.any(1) if semiring == "max_times" else np.ones(3, bool)
    np.testing.assert_array_equal(np.asarray(got), want)


def test_products_in_half_precision_are_summed_in_single() -> None:
    rng = np.random.default_rng(7)
    x, y = ((rng.random(s) < 0.3) * rng.normal(size=s) for s in ((9, 30), (30, 8)))
    x, y = x.astype(np.float16), y.astype(np.float16)
    got = ow.asarray(x, format="csr") @ ow.asarray(y, format="csr")
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got.to_numpy(), (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16))


@pytest.mark.parametrize("ring", ["plus_times", "min_plus", "max_plus"])
def test_sums_of_one_operand_are_sparse_where_two_dimensions_stay(ring: str) -> None:
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((2, 3, 4)) < 0.6, rng.random((2, 3, 4)) + 1, 0.0)
    add, zero = {"plus_times": (np.sum, 0.0), "min_plus": (np.min, np.inf), "max_plus": (np.max, -np.inf)}[ring]
    known = np.where(dense != 0, dense, zero)
    cases = {"ij->i": (0, 1), "ij->j": (0, 0), "ijk->k": (None, (0, 1)), "ijk->ij": (None, 2), "ijk->ik": (None, 1)}
    for text, (at, axes) in cases.items():
        t = ow.asarray(dense if at is None else dense[at], format="csf" if at is None else "csr")
        want = add(known if at is None else known[at], axis=axes)
        got = ow.einsum(text, t, semiring=ring)
        assert got.format.is_dense == (want.ndim == 1), text
        np.testing.assert_allclose(got.to_numpy(), want)
        for format in ("dense", "coo"):
            asked = ow.einsum(text, t, semiring=ring, format=format)
            assert asked.format == ow.format(format, want.ndim)
            np.testing.assert_allclose(asked.to_numpy(), want)


# -- scaling, and orders of several operands ---------------------------------------------------------------------------

SCALED = [
    "ij,j->ij", "j,ij->ij", "ij,j->ji", "i,ij,j->ij", "ij,ij->ij", "ij,ik,kj->ij", "ij,j,kj->ik", "i,ij,j,jk,k->ik",
    "ij,,jk->ik",
]  # fmt: skip


@pytest.mark.thin(6)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("spec", ["csr", "csc", "coo", "bsr(2, 3)", "dia", "bitmap"])
@pytest.mark.parametrize("text", SCALED)
def test_dense_operands_that_scale_leave_a_result_sparse(text: str, spec: str, library: str) -> None:
    """As `A * d` does; with infinities where nothing is stored, which take no part."""
    rng = np.random.default_rng(4)
    extents = {"i": 6, "j": 8, "k": 6 if "kj->ik" in text else 5}
    sparse = [0] if text.startswith("ij") else [1]
    sparse += [2] if text in ("ij,j,kj->ik", "ij,,jk->ik") else [3] if text.endswith("jk,k->ik") else []
    dense, given = [], []
    for k, term in enumerate(text.split("->")[0].split(",")):
        x = rng.random([extents[c] for c in term])
        if k in sparse:
            x *= rng.random(x.shape) < 0.4
            dense.append(x)
            given.append(ow.asarray(x, format=spec))
            continue
        dense.append(x)
        given.append(x)
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = [
            ow.asarray(torch.from_numpy(x), format=spec) if k in sparse else torch.from_numpy(x)
            for k, x in enumerate(dense)
        ]
    got = ow.einsum(text, *given)
    assert isinstance(got, ow.Tensor)
    assert not got.format.is_dense
    np.testing.assert_allclose(got.to_numpy(), np.einsum(text, *dense), rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(ow.asarray(ow.einsum(text, *given, format="dense")).to_numpy()), got.to_numpy(), rtol=1e-12
    )


def test_orders_of_several_operands_scale_before_they_multiply() -> None:
    a = ow.random((200, 200), 0.05, format="csr", rng=0)
    d = np.random.default_rng(1).random(200)
    steps = [s.title for s in ow.explain(lambda: ow.einsum("i,ij,j,jk,k->ik", d, a, d, a, d)).steps]
    assert "sparse matrix product" in steps[-1]
    terms = [
        dict(s.facts)["terms"] for s in ow.explain(lambda: ow.einsum("ij,j,kj->ik", a, d, a)).steps if "step" in s.title
    ]
    assert terms[0].endswith("T0[i, j] * T1[j]")


def test_one_sparse_operand_goes_in_pairs_where_these_are_fewer_products() -> None:
    rng = np.random.default_rng(1)
    a, x, w = ow.random((300, 300), 0.05, format="csr", rng=0), rng.random((300, 20)), rng.random((20, 30))
    plan = ow.explain(lambda: ow.einsum("ij,jk,kl->il", a, x, w))
    assert "step 1 of 2" in str(plan)
    np.testing.assert_allclose(plan.result, a.to_numpy() @ x @ w)
    t = ow.random((30, 30, 30), 0.01, format="csf", rng=0)
    factors = [rng.random((30, 8)) for _ in range(2)]
    assert "step 1" not in str(ow.explain(lambda: ow.einsum("ijk,jr,kr->ir", t, *factors)))


def test_products_of_one_structure_are_summed_after_they_are_merged() -> None:
    a, b, c = (ow.random((60, 60), 0.1, format="csr", rng=k) for k in range(3))
    da, db, dc = (x.to_numpy() for x in (a, b, c))
    for text in ("ij,jk,ki->", "ij,jk,ik->i", "ij,jk,ki->k", "ij,ij->", "ij,ij->j", "ij,ji->i"):
        operands, dense = (a, b, c)[: text.count(",") + 1], (da, db, dc)[: text.count(",") + 1]
        got = ow.einsum(text, *operands)
        np.testing.assert_allclose(ow.asarray(got).to_numpy(), np.einsum(text, *dense), rtol=1e-12)


def test_dense_operands_in_between_do_not_warn() -> None:
    a = ow.random((60, 60), 0.1, format="csr", rng=0)
    x = np.full((60, 60), np.inf)
    x[0] = -np.inf
    with np.errstate(all="raise"):
        ow.einsum("ij,jk,kl->il", a, x, x)


@pytest.mark.thin(2)
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "ell(8)", "bsr(2, 2)", "dia", "bitmap", "dense"])
def test_a_sum_over_all_letters_is_one_reduction_of_the_product(format: str) -> None:
    """Not a product with a column of ones, which sorted every element; `vdot` is that sum."""
    rng = np.random.default_rng(0)
    x, y = (np.where(rng.random((6, 8)) < 0.5, rng.integers(-4, 5, (6, 8)), 0) + 0.0 for _ in range(2))
    a, b = ow.asarray(x, format=format), ow.asarray(y, format=format)
    for ring, expected in (
        ("plus_times", (x * y).sum()), ("max_times", None), ("min_plus", None), ("lor_land", bool((x * y).any())),
    ):  # fmt: skip
        if expected is None and format in ("bsr(2, 2)", "dia", "dense"):  # which store zeros
            continue
        both = (x * y if ring == "max_times" else x + y)[(x != 0) & (y != 0)]
        expected = {"max_times": both.max(), "min_plus": both.min()}.get(ring, expected)
        found = ow.einsum("ij,ij->", a, b, semiring=ring)
        assert found.to_numpy() == expected, ring
        assert found.shape == ()
    assert ow.vdot(a, b).to_numpy() == ow.vdot(a, y) == (x * y).sum()
    if not a.format.is_dense:
        steps = [s.title for s in ow.explain(lambda: ow.vdot(a, b)).steps]
        assert not [s for s in steps if "matrix product" in s], steps


def test_the_sum_of_a_product_of_nothing() -> None:
    a = ow.zeros((3, 4), format="csr")
    assert ow.einsum("ij,ij->", a, a).to_numpy() == 0
    assert ow.einsum("ij,ij->", a, a, semiring="min_plus").to_numpy() == np.inf
    assert ow.einsum("ij->", a, semiring="max_times").to_numpy() == -np.inf
