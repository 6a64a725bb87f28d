"""Dask arrays of Tensors give what Dask gives over NumPy's arrays, in one process and on workers that are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openwork as ow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from dask_cases import CASES  # noqa: E402

from openwork.interop.dask import token  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "dask.md"
FORMATS = ["csr", "csc", "coo", "dcsr", "bitmap", "bsr(2, 2)"]
_draw = np.random.default_rng(0)
X, Y = (np.where(m < 0.6, 0, m) for m in _draw.random((2, 8, 6)))


def _page() -> dict[str, str]:
    """The rows of the page's table: function -> what its chunks are."""
    rows = re.findall(r"^\| `([^`]+)` \| (sparse|dense|array) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return dict(rows)


def _kind(result: Any) -> str:
    if not isinstance(result, ow.Tensor):
        return "array"
    return "dense" if result.format.is_dense else "sparse"


def check(name: str, format: str) -> None:
    expected = np.asarray(CASES[name](X, Y, np))
    with dask.config.set(scheduler="sync"):
        a, b = (da.from_array(ow.asarray(m, format=format), chunks=(4, 4)) for m in (X, Y))
        result = CASES[name](a, b, da)
        result = result.compute() if hasattr(result, "compute") else result
    assert _kind(result) == _page()[name], name
    values = result.to_numpy() if isinstance(result, ow.Tensor) else np.asarray(result)
    assert values.dtype == expected.dtype, name
    np.testing.assert_allclose(values, expected, err_msg=name)


@pytest.mark.ci
@pytest.mark.thin(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", FORMATS)
def test_functions_over_chunks(format: str) -> None:
    """Every sixth function by default, another sixth for each format."""
    for name in list(CASES)[FORMATS.index(format) :: len(FORMATS)]:
        check(name, format)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", FORMATS)
def test_every_function_over_chunks(format: str) -> None:
    for name in CASES:
        check(name, format)


def test_the_page_has_every_function() -> None:
    assert list(_page()) == list(CASES)


def test_chunks_keep_their_format() -> None:
    for format in FORMATS:
        a = da.from_array(ow.asarray(X, format=format), chunks=(4, 3))
        assert (a * 2)[2:, 1:].compute(scheduler="sync").format == ow.asarray(X, format=format).format


def test_elementwise_with_a_tensor_on_either_side_is_an_array_of_dask() -> None:
    t = ow.asarray(X, format="csr")
    a = da.from_array(t, chunks=(4, 6))
    for result in (a + t, t + a, t * a, t < a, np.add(t, a), t @ a.T, np.concatenate([t, a]), np.where(a > 0.5, t, a)):
        assert isinstance(result, da.Array)
    assert np.array_equal((t - a).compute(scheduler="sync").to_numpy(), np.zeros((8, 6)))


@pytest.mark.ci
def test_tokens_are_of_contents() -> None:
    t = ow.asarray(X, format="csr")
    same = ow.asarray(X.copy(), format="csr")
    others = [ow.asarray(Y, format="csr"), ow.asarray(X, format="csc"), t.astype("f4"), ow.add(t, 1)]
    tokens = [dask.base.tokenize(x) for x in (t, *others)]
    assert dask.base.tokenize(same) == tokens[0]
    assert len(set(tokens)) == 5
    code = (
        "import openwork as ow, dask.base, numpy as np; print(dask.base.tokenize(ow.asarray(np.eye(3), format='csr')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == dask.base.tokenize(ow.asarray(np.eye(3), format="csr"))


@pytest.mark.ci
@pytest.mark.parametrize("first", ["dask.array", pytest.param("openwork", marks=pytest.mark.slow)])
def test_nothing_is_to_be_called(first: str, tmp_path: Path) -> None:
    """In either order of imports, with the entry point as an installed package has it."""
    info = tmp_path / "openwork_entry-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openwork-entry\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[dask.sizeof]\nopenwork = openwork.interop.dask:register_sizes\n")
    code = f"""
import {first}
import numpy as np, openwork as ow, dask.array as da
from dask.sizeof import sizeof
t = ow.asarray(np.eye(500), format="csr")
assert sizeof(t) == t.nbytes
a = da.from_array(t, chunks=250)
for x in (a + t, t + a):
    assert type(x.compute(scheduler="sync")) is ow.Tensor and isinstance(x, da.Array)
"""
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH"), *sys.path])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert not done.stderr, done.stderr


def test_tokens_over_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = (ow.asarray(torch.eye(3, requires_grad=recorded).to_sparse_csr()) for recorded in (False, True))
    assert token(a) == token(b)
    assert token(a) != token(ow.asarray(np.eye(3, dtype="f4"), format="csr"))


def test_sizes_are_bytes_of_buffers() -> None:
    from dask.sizeof import sizeof

    t = ow.asarray(np.eye(1000), format="csr")
    assert sizeof(t) == t.nbytes


def test_arrays_that_are_made_like_a_tensor_are_tensors() -> None:
    t = ow.asarray(X, format="csr")
    for made, expected in [
        (np.array([[1.0, 0.0]], like=t), np.array([[1.0, 0.0]])),
        (np.array([1, 2], dtype="f4", ndmin=3, like=t), np.array([1, 2], dtype="f4", ndmin=3)),
        (np.asanyarray([3, 0], like=t), np.array([3, 0])),
        (np.ascontiguousarray([3, 0], like=t), np.array([3, 0])),
        (np.identity(3, like=t), np.identity(3)),
        (np.tri(3, 4, 1, like=t), np.tri(3, 4, 1)),
        (np.require([1.0, 2.0], like=t), np.array([1.0, 2.0])),
    ]:
        assert isinstance(made, ow.Tensor)
        assert made.dtype == expected.dtype
        assert np.array_equal(made.to_numpy(), expected)
    with pytest.raises(ow.UnsupportedError, match="requirements"):
        np.require([1.0], requirements="C", like=t)
    with pytest.raises(ow.ShapeError, match="ndmax"):
        np.array([[1.0]], ndmax=1, like=t)


def test_the_backend_of_arrays() -> None:
    import openwork.dask  # noqa: F401  the entry point of an installed package

    with dask.config.set(scheduler="sync"):
        plain = da.from_array(X, chunks=(4, 3))
        a = plain.to_backend("openwork", format="csr")
        assert a._meta.format == a.blocks[1, 1].compute().format == ow.format("csr")
        assert a.to_backend("openwork") is a
        assert np.array_equal(a.to_backend("openwork", format="csc").compute().to_numpy(), X)
        assert plain.to_backend("openwork").compute().format == ow.format("coo")
        back = a.to_backend("numpy").compute()
        assert isinstance(back, np.ndarray)
        assert np.array_equal(back, X)
        with dask.config.set({"array.backend": "openwork"}):
            made = [da.zeros((4, 3), chunks=2, format="csr"), da.ones((4, 3)), da.full(5, 7, dtype="i4"), da.empty(3)]
            assert isinstance(da.arange(5, chunks=2).compute(), ow.Tensor)
            assert da.random.default_rng(0).random(4).compute().shape == (4,)
        for x, number, dtype in zip(made, (0, 1, 7, 0), ("f8", "f8", "i4", "f8"), strict=True):
            t = x.compute()
            assert isinstance(x._meta, ow.Tensor)
            assert (t.nse, t.fill_value, t.dtype) == (0, number, np.dtype(dtype))
        assert made[0].compute().format == ow.format("csr")


def test_arrays_that_are_numpys_all_the_same() -> None:
    """Numbers, and those whose chunks the caller says."""
    from openwork.dask.backend import TensorBackend

    assert type(TensorBackend.ones(()).compute(scheduler="sync")) is not ow.Tensor
    assert float(TensorBackend.full((), 3.0).compute(scheduler="sync")) == 3
    assert isinstance(TensorBackend.ones((2, 3), meta=np.empty((0, 0)))._meta, np.ndarray)
    dispatch = TensorBackend.to_backend_dispatch()
    assert isinstance(dispatch(np.eye(2), format="csr"), ow.Tensor)


def test_what_chunks_of_other_extents_count() -> None:
    """Sums over a dimension whose chunks are uneven, of which two stay."""
    x = np.where(_draw.random((2, 3, 4)) < 0.6, 0, 1.0)
    x[0, 0, 0] = np.nan
    a = da.from_array(ow.asarray(x, format="csf"), chunks=(1, 2, 2))
    found = da.nanmean(a, axis=1).compute(scheduler="sync")
    np.testing.assert_allclose(found.to_numpy(), np.nanmean(x, axis=1))


def test_refused_without_being_made_dense() -> None:
    a = da.from_array(ow.asarray(X, format="csr"), chunks=(4, 6))
    with pytest.raises(ow.UnsupportedError), dask.config.set(scheduler="sync"):
        da.argwhere(a).compute()


def test_methods_whose_vectors_are_arrays_of_dask() -> None:
    from openwork.dask import cg, pagerank

    links = np.where(_draw.random((9, 9)) < 0.6, 0, 1.0)
    links[4] = 0
    spd = np.eye(9) * 5 + (links + links.T) / 4
    b = np.arange(9.0)
    with dask.config.set(scheduler="sync"):
        a, s = (da.from_array(ow.asarray(m, format="csr"), chunks=c) for m, c in ((links, (5, 4)), (spd, (5, 9))))
        options = {"damping": 0.3, "tolerance": 1e-2, "personalization": b}
        found = pagerank(a, **options)
        assert isinstance(found, da.Array)
        assert np.allclose(found.compute(), ow.graph.pagerank(links, **options))
        assert np.isclose(float(pagerank(a, damping=0, tolerance=1).sum()), 1)
        x, info = cg(s, b, rtol=1e-3)
        assert info == 0
        assert np.linalg.norm(spd @ x.compute() - b) <= 1e-3 * np.linalg.norm(b)
        with pytest.warns(ow.ConvergenceWarning, match=r"(?s)cg: no convergence after 1 iterations\n.*; got [0-9.]+"):
            assert cg(s, b, rtol=1e-10, maxiter=1)[1] == 1
        for call, error, text in (
            (lambda: pagerank(links), ow.ShapeError, "array of Dask"),
            (lambda: cg(s[:4], b), ow.ShapeError, "square"),
            (lambda: cg(s, b[:3]), ow.ShapeError, r"right side \(3,\)"),
            (lambda: pagerank(-a), ValueError, "negative"),
            (lambda: pagerank(a, max_iterations=1), ValueError, "no convergence in 1"),
        ):
            with pytest.raises(error, match=text):
                call()


CLUSTER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, METHODS)
import dask, numpy as np, openwork as ow, dask.array as da
from distributed import Client, LocalCluster, wait

def received(t):
    s = t._storage
    return [b.base is not None and b.flags.writeable for b in (s.crd[1], s.values)]

def compiled(t):
    before = ow.cache_info()["compiled"]
    return float((t * t * 3).sum()), ow.cache_info()["compiled"] - before

def main():
    x = np.random.default_rng(0).random((400, 30)); x[x < 0.9] = 0
    options = dict(n_workers=2, threads_per_worker=2, dashboard_address=":0", host="127.0.0.1")
    # Dask gives a task up whose workers died four times, whatever killed them: here always the same task's
    dask.config.set({"distributed.scheduler.allowed-failures": 100})
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        a = da.from_array(ow.asarray(x, format="csr"), chunks=(100, 30)).persist()
        wait(a)
        assert np.allclose((a.T @ a).compute().to_numpy(), x.T @ x)
        first, second = client.run(os.getpid)
        block = client.scatter(ow.asarray(x, format="csr"), workers=[first], direct=True)
        assert client.submit(received, block, workers=[second]).result() == [True, True]  # over memory of the message
        (value, _), (same, count) = (client.submit(compiled, block, workers=[w], pure=False).result() for w in (first, second))
        assert value == same and count == 0  # the kernels were in the cache on disk
        assert set(client.run(ow.get_num_threads).values()) == {1}
        for _ in range(KILLS):
            future = client.compute((a * 2).sum(axis=0))
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            assert np.allclose(future.result(timeout=60).to_numpy(), 2 * x.sum(0))
        client.wait_for_workers(2)
        from dask_methods import methods
        for name, (call, expected) in list(methods(Path(".")).items())[:: 1 if KILLS > 1 else 4]:
            if KILLS > 1 or name not in ("cg", "pagerank"):  # which take seconds
                assert np.allclose(call(), expected, atol=1e-6), name

if __name__ == "__main__":
    main()
    print("right")
"""


def on_a_cluster(tmp_path: Path, kills: int) -> None:
    (tmp_path / "cluster.py").write_text(
        CLUSTER.replace("KILLS", str(kills)).replace("METHODS", repr(str(Path(__file__).parent)))
    )
    done = subprocess.run(
        [sys.executable, "cluster.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "error"},
    )  # fmt: skip
    assert done.stdout.strip().endswith("right"), done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="asks for signals")
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    on_a_cluster(tmp_path, 1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="asks for signals")
def test_killed_workers_change_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    on_a_cluster(tmp_path, 6)


FRESH = """
import operator, sys
import dask.array as da, numpy as np, openwork as ow
from dask.array import chunk_types

a, v, x = np.array([[0.0, 1, 0, 2], [3, 0, 0, 0]]), np.arange(4.0), np.ones((3, 2))
A, V, X = ow.asarray(a, format="csr"), da.from_array(v, chunks=2), da.from_array(x, chunks=2)
cases = {name: getattr(operator, name) for name in "add sub mul truediv lt le gt ge eq ne".split()}
cases |= {f"np.{f.__name__}": f for f in (np.add, np.multiply, np.maximum, np.greater)}
calls = [(name, f, args, dense) for name, f in cases.items() for args, dense in (((A, V), (a, v)), ((V, A), (v, a)))]
calls += [
    ("A @ V", operator.matmul, (A, V), (a, v)), ("X @ A", operator.matmul, (X, A), (x, a)), ("A.T @ X.T", operator.matmul, (A.T, X.T), (a.T, x.T)),
    ("matmul", np.matmul, (X, A), (x, a)), ("tensordot", lambda p, q: np.tensordot(p, q, 1), (X, A), (x, a)),
    ("concatenate", lambda p, q: np.concatenate([p, q]), (V[None], A), (v[None], a)), ("where", lambda p, q: np.where(p > 1, q, 0), (V, A), (v, a)),
    ("+=", operator.iadd, (A, V), (a.copy(), v)),
]
with np.errstate(all="ignore"):
    for name, f, args, dense in calls:
        if ow.Tensor in chunk_types._HANDLED_CHUNK_TYPES:
            chunk_types._HANDLED_CHUNK_TYPES.remove(ow.Tensor)
        found = f(*args)
        assert isinstance(found, da.Array), (name, type(found))
        found = found.compute()
        np.testing.assert_array_equal(found.to_numpy() if isinstance(found, ow.Tensor) else found, f(*dense), err_msg=name)
assert "openwork.dask" not in sys.modules
"""


@pytest.mark.ci
def test_operators_before_openwork_dask_was_imported() -> None:
    """Dask is told of Tensors when one of its arrays is met, on either side."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
