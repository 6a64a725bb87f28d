"""Laws of tensors by hypothesis: conversions, transposes, round trips, caches and threads."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drive_strategies import sources
from drives import Packed
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matrix import FORMATS, SHAPES, dense_array, same, tensor
from reference import Unpackable
from reference import pack as reference_pack
from strategies import formats

import openwork as ow
from openwork.codegen import cache, disk
from openwork.errors import FormatError, ShapeError
from openwork.format.format import Format

PAIRS = [(spec, shape) for d in (1, 2, 3, 4) for spec in FORMATS[d] for shape in SHAPES[d][:2]]
by_format = pytest.mark.parametrize(("spec", "shape"), PAIRS, ids=lambda x: str(x).replace(" ", ""))


def of(source: Packed) -> ow.Tensor:
    """The tensor, checked."""
    s = source.storage
    pos = {k: b for k, b in enumerate(s.pos) if b is not None}
    crd = {k: b for k, b in enumerate(s.crd) if b is not None}
    return ow.assemble(s.format, s.shape, pos=pos, crd=crd, values=s.values)


def converted(t: ow.Tensor, fmt: Format) -> ow.Tensor:
    """`t` in the format, or no example where it has no place for the elements."""
    try:
        return t.asformat(fmt)
    except (FormatError, ShapeError):
        assume(False)
        raise


def addresses(t: ow.Tensor) -> list[int]:
    """Where the buffers lie; empty ones lie anywhere."""
    return sorted(t._storage.addresses)


@pytest.mark.ci
@settings(max_examples=60)
@given(sources())
def test_what_is_packed_is_read_back(source: Packed) -> None:
    t = of(source)
    same(t.to_numpy(), source.dense)
    assert t.nse == source.stored.sum()


@pytest.mark.ci
@settings(max_examples=60)
@given(sources(), st.data())
def test_transposes_share_buffers_and_undo(source: Packed, data: st.DataObject) -> None:
    t = of(source)
    axes = data.draw(st.permutations(range(t.ndim)))
    turned = t.transpose(axes)
    same(turned.to_numpy(), source.dense.transpose(axes))
    assert addresses(turned) == addresses(t)
    back = turned.transpose([axes.index(d) for d in range(t.ndim)])
    assert back.format == t.format
    assert back.shape == t.shape
    assert (back.nse, back.nbytes) == (t.nse, t.nbytes)


@pytest.mark.ci
@settings(max_examples=35)
@given(sources(), st.data())
def test_conversion_and_transposition_commute(source: Packed, data: st.DataObject) -> None:
    t = of(source)
    target = data.draw(formats(t.ndim))
    there = converted(t, target)
    one, other = there.T, t.T.asformat(target.permute(range(t.ndim)[::-1]))
    assert one.format == other.format == target.permute(range(t.ndim)[::-1])
    assert addresses(one) == addresses(there)
    same(one.to_numpy(), source.dense.T)
    same(other.to_numpy(), source.dense.T)
    for a, b in zip(one._storage.buffers, other._storage.buffers, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.ci
@settings(max_examples=50)
@given(sources(), st.data())
def test_conversion_keeps_what_is_specified(source: Packed, data: st.DataObject) -> None:
    """Explicit zeros stay, duplicates are summed or kept, and a format reached once is reached."""
    t = of(source)
    target = data.draw(formats(t.ndim))
    there = converted(t, target)
    assert there.format == target
    same(there.to_numpy(), source.dense)
    assert there.asformat(target) is there
    again = there.asformat(target, copy=True)
    assert again._storage.addresses != there._storage.addresses or not there.nbytes
    same(again.to_numpy(), source.dense)
    if not t.format.is_dense and not target.is_dense:
        distinct = int((source.stored > 0).sum())
        grouped = target.is_unique or target.levels[-1].format.is_dense  # blocks of one place may become one
        count = distinct if grouped else t.nse
        assert there.nse >= count
        if target.levels and target.levels[-1].format.name in ("compressed", "bitmap", "ell"):
            assert there.nse == count
    home = there.asformat("coo").coalesce() if t.ndim > 1 else there.coalesce()
    same(home.to_numpy(), source.dense)
    assert home.is_coalesced()


@pytest.mark.thin(5)
@by_format
def test_conversion_is_idempotent_and_undone(spec: str, shape: tuple[int, ...]) -> None:
    array = dense_array(shape)
    t = tensor(array, spec)
    coo = t.coalesce()
    back = coo.asformat(t.format)
    assert back.format == t.format
    for a, b in zip(t._storage.buffers, back._storage.buffers, strict=True):
        np.testing.assert_array_equal(a, b)
    same(coo.coalesce().to_numpy(), array)


def test_duplicate_blocks_are_summed_or_kept() -> None:
    """Of two blocks at one place each element is the sum, whether the format has place for both or not."""
    blocks = "(i, j) -> (i : compressed(nonunique, unordered), j : dense)"
    t = ow.assemble(blocks, (2, 2), pos={0: [0, 2]}, crd={0: [1, 1]}, values=[1.0, 2.0, 3.0, 4.0])
    for spec in ("(i, j) -> (i : compressed(nonunique), j : dense)", "coo", "csr", "bsr(1, 2)"):
        there = t.asformat(ow.format(spec, 2))
        assert there.nse == (2 if there.format.is_unique else 4), spec
        same(there.to_numpy(), np.array([[0.0, 0.0], [4.0, 6.0]]))
    diagonals = t.asformat("(i, j) -> (i - j : compressed(nonunique, unordered), j : dense)")
    same(diagonals.to_numpy(), np.array([[0.0, 0.0], [4.0, 6.0]]))


def test_explicit_zeros_are_kept_and_duplicates_summed_or_kept() -> None:
    rows, cols, values = [0, 2, 2, 0, 1], [1, 3, 3, 0, 2], [0.0, 2.0, -2.0, 3.0, 0.0]
    t = ow.sparse_coo_tensor([rows, cols], values, (3, 4))
    assert t.nse == 5
    for spec in ("coo", "csr", "dcsc", "csf", "bitmap", "ell(12)", "bsr(2, 3)", "dia", *FORMATS[2][-11:-7]):
        fmt = ow.format(spec, 2)
        there = t.asformat(fmt)
        same(there.to_numpy(), t.to_numpy())
        if spec in ("coo", "csr", "csc", "dcsr", "dcsc", "csf", "bitmap", "ell(12)"):
            assert there.nse == 4, spec
        if not fmt.is_unique:
            assert there.nse == 5, spec
            assert sorted(there.values) == sorted(values)


@given(formats())
def test_formats_print_pickle_and_copy(fmt: Format) -> None:
    for twin in (ow.format(str(fmt)), pickle.loads(pickle.dumps(fmt)), copy.deepcopy(fmt), copy.copy(fmt)):
        assert twin == fmt
        assert hash(twin) == hash(fmt)
        assert str(twin) == str(fmt)


@pytest.mark.ci
@settings(max_examples=25)
@given(sources())
def test_tensors_pickle_and_copy(source: Packed) -> None:
    t = of(source)
    assert t._storage.addresses
    for twin in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), t.clone()):
        assert (twin.shape, twin.format, twin.dtype, twin.nse) == (t.shape, t.format, t.dtype, t.nse)
        same(twin.to_numpy(), source.dense)
        mine = {a for a, b in zip(t._storage.addresses, t._storage.buffers, strict=True) if len(b)}
        assert not mine & {a for a, b in zip(twin._storage.addresses, twin._storage.buffers, strict=True) if len(b)}
    assert copy.copy(t)._storage.addresses == t._storage.addresses


@pytest.mark.ci
@settings(max_examples=30)
@given(sources(2), st.sampled_from([1, 7, 40]))
def test_products_transpose(source: Packed, columns: int) -> None:
    """(A x).T == x.T A.T, in whatever format."""
    t = of(source)
    x = dense_array((t.shape[1], columns), 1, density=1)
    same((t @ x).T, x.T @ t.T)
    same(t @ x, source.dense @ x)


@pytest.mark.ci
@settings(max_examples=20)
@given(sources())
def test_sums_agree_with_conversion(source: Packed) -> None:
    t = of(source)
    for axes in itertools.islice(
        itertools.chain.from_iterable(itertools.combinations(range(t.ndim), k) for k in range(t.ndim + 1)), 6
    ):
        same(t.sum(axis=axes), source.dense.sum(axis=axes))


def test_the_reference_refuses_what_conversion_refuses() -> None:
    """A format that is too narrow is refused by both, with the place and a remedy."""
    array = np.ones((2, 3))
    with pytest.raises(Unpackable):
        reference_pack(ow.format("ell(2)"), (2, 3), dict.fromkeys(np.ndindex(2, 3), 1.0))
    with pytest.raises(FormatError, match=r"help: use ell\(3\)"):
        ow.asarray(array).asformat("ell(2)")


# -- caches ------------------------------------------------------------------------------------------------------------

USES = """
import sys
import numpy as np
import openwork as ow
from openwork.codegen import cache
rng = np.random.default_rng(0)
array = np.where(rng.random((30, 40)) < 0.2, rng.integers(1, 9, (30, 40)), 0).astype(float)
x = rng.integers(0, 9, (40, 9)).astype(float)
for spec in ("csr", "bsr(2, 3)", "coo", "dia"):
    t = ow.asarray(array).asformat(spec)
    assert np.array_equal(t @ x, array @ x)
    assert np.array_equal(t @ x[:, 0], array @ x[:, 0])
    assert np.array_equal(t.to_numpy(), array)
print("llvmlite" in sys.modules)
"""


def forget() -> None:
    """As in a new process: nothing compiled is remembered."""
    cache.clear_memory()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENWORK_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("OPENWORK_CACHE", raising=False)
    forget()
    yield tmp_path
    forget()


def products(tensors: list[ow.Tensor]) -> list[np.ndarray[Any, Any]]:
    """Products of copies, which remember no launch."""
    forget()
    x = dense_array((11, 6), 1, density=1)
    return [t.clone() @ x for t in tensors]


@pytest.fixture(scope="module")
def three() -> list[ow.Tensor]:
    """Made before the tests, so that their kernels are only those of products."""
    array = dense_array((9, 11), density=0.5)
    return [tensor(array, spec) for spec in ("csr", "bsr(2, 3)", "ell(11)")]


def test_cached_is_fresh(three: list[ow.Tensor], folder: Path) -> None:
    """In memory, from disk, and with every file cut short, altered or emptied: one result."""
    want = products(three)
    files = sorted(folder.glob("*.owk"))
    assert len(files) == 3
    whole = [f.read_bytes() for f in files]
    damages = [
        None,
        lambda b: b[: len(b) // 2],
        lambda b: b[:-1] + bytes([b[-1] ^ 1]),
        lambda b: b"",
        lambda b: b"x" * 99,
    ]
    for damage in damages:
        for path, content in zip(files, whole, strict=True):
            if damage is not None:
                path.write_bytes(damage(content))
        for got, expected in zip(products(three), want, strict=True):
            same(got, expected)
        assert [f.read_bytes() for f in files] == whole
    for got, expected in zip(products(three), want, strict=True):
        same(got, expected)


def test_a_file_of_another_kernel_is_ignored(three: list[ow.Tensor], folder: Path) -> None:
    """Files are found by the digest of their key; one moved to another's name must not be run as the other."""
    want = products(three)
    files = sorted(folder.glob("*.owk"))
    contents = [f.read_bytes() for f in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    for got, expected in zip(products(three), want, strict=True):
        same(got, expected)


@pytest.mark.ci
def test_processes_share_a_folder(folder: Path) -> None:
    """Two at a time, twice: the second time nothing is compiled."""
    env = {**os.environ, "OPENWORK_CACHE_DIR": str(folder)}

    def both() -> list[str]:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", USES], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        answers = [p.communicate(timeout=120) for p in started]
        assert [p.returncode for p in started] == [0, 0], answers
        return [out.strip() for out, _ in answers]

    both()
    files = {f.name: f.read_bytes() for f in folder.glob("*")}
    assert all(name.endswith(".owk") for name in files)
    again = both()
    if sys.platform == "linux":
        assert again == ["False", "False"]
    assert {f.name: f.read_bytes() for f in folder.glob("*")} == files
    assert disk.folder() == folder


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def threads() -> Any:
    before = ow.get_num_threads()
    yield ow.set_num_threads
    ow.set_num_threads(before)


@pytest.mark.thin(7)
@pytest.mark.parametrize("spec", FORMATS[2])
def test_one_thread_is_many(spec: str, threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers, so that sums in any order are equal; small work is made to count as large."""
    monkeypatch.setattr("openwork.runtime.program.PARALLEL_WORK", 1)
    array = dense_array((37, 12), density=0.5)
    array[5] = 1
    x, u, v = dense_array((12, 9), 1, density=1), dense_array((37, 4), 2, density=1), dense_array((4, 12), 3, density=1)
    want = array @ x
    results = []
    for n in (1, 2, 3, 8):
        threads(n)
        t = tensor(array, spec)
        same(t @ x, want)
        same(x.T @ t.T, want.T)
        same(t @ x[:, 0], want[:, 0])
        same(t.sum(axis=1), array.sum(axis=1))
        results.append([b.copy() for b in (*t._storage.buffers, ow.sddmm(t, u, v).values)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
