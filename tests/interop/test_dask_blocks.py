"""Matrices and tensors in blocks on workers: products, methods over them, what is sent, and blocks that are lost."""

from __future__ import annotations

import asyncio
import doctest
import gc
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork import decomposition, graph, linalg

distributed = pytest.importorskip("distributed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from distributed.comm import CommClosedError  # noqa: E402

from openwork.dask import BlockMatrix, BlockTensor, allocator, kept  # noqa: E402  # noqa: E402
from openwork.dask.block import Block, block  # noqa: E402
from openwork.dask.local import LocalTensor, run_method  # noqa: E402
from openwork.dask.partition import length, partition  # noqa: E402
from openwork.dask.runner import BlockRunner, LostWorkerError, Message, _read, attended  # noqa: E402

_draw = np.random.default_rng(0)
X = np.where(_draw.random((24, 20)) < 0.8, 0, _draw.random((24, 20)))
T = np.where(_draw.random((6, 5, 4)) < 0.6, 0, _draw.random((6, 5, 4)))
SQUARE = np.where(_draw.random((24, 24)) < 0.95, 0, 1.0)


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:distributed", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    patient = {f"distributed.comm.timeouts.{kind}": "120s" for kind in ("connect", "tcp")}
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(patient), distributed.Client(**options, timeout=120) as c:
        yield c


def csr(x: Any) -> ow.Tensor:
    return ow.asarray(x, format="csr")


def test_parts_have_about_as_many_elements() -> None:
    skewed = np.zeros((40, 30))
    skewed[:10] = _draw.random((10, 30))
    skewed[10:, 0] = 1
    for by, parts in (("nse", 4), ("grid", 4), ("grid", 6)):
        cut = partition(csr(skewed), parts, by=by)
        assert len(cut.blocks) == parts
        assert cut.imbalance < 1.6
        whole = np.zeros((40, 30), int)
        for rows, columns in cut.blocks:
            whole[rows, columns] += 1
        assert (whole == 1).all()
        assert sum(cut.nse) == np.count_nonzero(skewed)
        _, *rows_said, last = str(cut).splitlines()
        assert [line.split("  ")[:2] for line in rows_said] == [[str(k), str(nse)] for k, nse in enumerate(cut.nse)]
        assert last.startswith(f"all  {sum(cut.nse)}  imbalance")
    assert [length(r) for (r, _) in partition(csr(np.zeros((3, 2))), 3).blocks] == [1, 1, 1]
    assert partition(csr(np.zeros((0, 2))), 1).nse == (0,)
    assert str(partition(csr(np.ones((2, 3))), 2)).splitlines()[1:] == [
        "0  3  1 x 3  32 B", "1  3  1 x 3  32 B", "all  6  imbalance 1.00  64 B"
    ]  # fmt: skip


def test_a_graph_partitioner_is_asked_for_sets_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    fake = ModuleType("pymetis")

    def part_graph(parts: int, graph: tuple[list[int], list[int]], vweights: list[int]) -> tuple[int, list[int]]:
        asked.append((*graph, vweights))
        return 0, [k % parts for k in range(len(vweights))]

    fake.CSRAdjacency = lambda starts, adjacent: (starts, adjacent)  # type: ignore[attr-defined]
    fake.part_graph = part_graph  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pymetis", fake)
    cut = partition(csr([[1, 1, 0], [0, 0, 0], [1, 0, 0.0]]), 2, by="graph")
    assert asked == [([0, 2, 3, 4], [1, 2, 0, 0], [3, 1, 2])]  # both ways, without loops
    assert [rows.tolist() for rows, _ in cut.blocks] == [[0, 2], [1]]
    assert cut.nse == (3, 0)
    with pytest.raises(ow.ShapeError, match="by='graph' takes a square matrix"):
        partition(csr(X), 2, by="graph")
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ow.UnsupportedError, match=r"pip install pymetis"):
        partition(csr(SQUARE), 2, by="graph")


def test_a_real_graph_partitioner_sends_less() -> None:
    pytest.importorskip("pymetis")
    n = 20
    line = ow.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])
    order = _draw.permutation(n * n)
    mesh = (ow.kron(line, ow.eye(n)) + ow.kron(ow.eye(n), line)).asformat("csr")[order][:, order]
    assert partition(mesh, 4, by="graph").sent() < 0.7 * partition(mesh, 4).sent()


def test_grids_have_as_many_blocks_as_are_asked_for() -> None:
    for columns, across in ((8, [1, 1, 1, 2, 1, 2]), (1, [1] * 6)):
        cuts = [partition(csr(np.ones((6, columns))), k, by="grid").blocks for k in range(1, 7)]
        assert [len(blocks) for blocks in cuts] == [1, 2, 3, 4, 5, 6]
        assert [len({(b[1].start, b[1].stop) for b in blocks}) for blocks in cuts] == across


def test_products_are_those_of_the_whole_and_send_what_was_predicted(client: Any) -> None:
    t = csr(X)
    sources: list[tuple[Any, Any]] = [
        (t, None), (ow.asarray(X, format="coo"), 5), (t, partition(t, 6, by="grid")),
        (da.from_array(t, chunks=(10, 20)), None), (da.from_array(X, chunks=(24, 7)), None),
    ]  # fmt: skip
    x, y = _draw.random(20), _draw.random((24, 3))
    for source, cut in sources:
        A = BlockMatrix(source, cut, client=client)
        assert (A.shape, A.dtype) == ((24, 20), np.float64)
        assert np.allclose(A @ x, X @ x)
        assert A.blocks.sent == A.blocks.predicted()
        assert np.allclose(A.T @ y, X.T @ y)
        assert A.blocks.sent == A.blocks.predicted(4)
        if not isinstance(cut, type(None) | int):
            assert A.blocks.sent == cut.sent(4)
    assert "5 blocks on 2 workers" in repr(BlockMatrix(t, 5, client=client))


def test_index_sets_and_complex_numbers(client: Any) -> None:
    t = csr(X * (1 + 2j))
    cut = partition(t, 2)
    odd = (np.arange(1, 24, 2), np.arange(0, 24, 2))
    A = BlockMatrix(t, type(cut)(cut.shape, (odd, (slice(0, 20),)), (0, 0), ()), client=client)
    z = _draw.random((24, 2)) + 1j
    assert np.allclose(A.H @ z, t.to_numpy().conj().T @ z)
    assert np.allclose(A.normal_matmat(z[:20]), t.to_numpy().conj().T @ (t.to_numpy() @ z[:20]))
    assert np.allclose(A.gram().to_numpy(), t.to_numpy().T @ t.to_numpy())


def test_methods_over_blocks_are_those_over_the_matrix(client: Any) -> None:
    t = csr(SQUARE)
    A = BlockMatrix(t, 3, client=client)
    options = {"damping": 0.5, "tolerance": 1e-4}
    assert np.allclose(graph.pagerank(A, **options), graph.pagerank(t, **options))
    index_sets = (np.arange(0, 24, 2), np.arange(1, 24, 2))
    parts = type(partition(t, 2))((24, 24), (index_sets, (slice(0, 24),)), (0, 0), ())
    for cut in (1, 5, partition(t, 6, by="grid"), parts):  # the forests of blocks are merged as a tree
        for one, other in zip(graph.components(BlockMatrix(t, cut, client=client)), graph.components(t), strict=True):
            assert np.array_equal(one, other)
    assert np.allclose(BlockMatrix(t, 5, client=client).gram().to_numpy(), SQUARE.T @ SQUARE)
    S = BlockMatrix(csr(np.eye(24) * 4 + (SQUARE + SQUARE.T) / 4), 2, client=client)
    b = np.ones(24)
    x, info = linalg.cg(S, b)
    assert info == 0
    assert np.linalg.norm(S @ x - b) < 1e-4 * np.linalg.norm(b)
    found, expected = (linalg.randomized_svd(m, 2, iterations=2, rng=0) for m in (A, t))
    assert np.allclose(found.s, expected.s)
    assert np.allclose((found.u * found.s) @ found.vh, (expected.u * expected.s) @ expected.vh)


def test_a_method_runs_where_all_blocks_are() -> None:
    """One message there and one back, whatever the method computes; the client's callbacks are called here."""
    definite = csr(SQUARE + SQUARE.T + 12 * np.eye(24))
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(**options, protocol="tcp://", timeout=120) as one:
        for count in (1, 3):
            M, K = BlockMatrix(definite, count, client=one), BlockTensor(ow.asarray(T, format="csf"), count, client=one)
            x, info = linalg.cg(M, np.ones(24), rtol=1e-10)
            assert info == 0
            assert M.blocks.sent == 2 * 24 * 8  # the right side, and the solution
            np.testing.assert_allclose(definite @ x, np.ones(24), rtol=1e-8)
            x += 1  # what arrives is the caller's
            np.testing.assert_allclose(graph.pagerank(M), graph.pagerank(definite), rtol=1e-8)
            np.testing.assert_allclose(linalg.svds(M, 2)[1], linalg.svds(definite, 2)[1], rtol=1e-8)
            models = [decomposition.cp_als(t, 2, maxiter=2, rng=0) for t in (K, ow.asarray(T, format="csf"))]
            np.testing.assert_allclose(models[0].factors[1], models[1].factors[1], rtol=1e-8)
            with pytest.warns(ow.ConvergenceWarning, match="cg: no convergence after 1 iterations") as told:
                linalg.cg(M, np.ones(24), maxiter=1, rtol=1e-12)
            assert told[0].filename == __file__
            with pytest.raises(ow.ShapeError, match="the right side"):
                linalg.cg(M, np.ones(3))
            steps: list[Any] = []
            linalg.cg(M, np.ones(24), callback=steps.append)
            assert len(steps) > 1
            generator = np.random.default_rng(0)
            state = generator.bit_generator.state
            linalg.randomized_svd(M, 2, rng=generator)
            assert generator.bit_generator.state != state


@pytest.mark.slow
def test_scipys_methods_take_operators(client: Any) -> None:
    A = BlockMatrix(csr(X), 1, client=client)
    assert np.allclose(np.sort(linalg.svds(A, k=2, tol=1e-3)[1]), np.sort(np.linalg.svd(X)[1])[-2:])


def test_decompositions_of_blocks(client: Any) -> None:
    t = ow.asarray(T, format="csf")
    expected = decomposition.cp_als(t, 2, maxiter=2, rng=0)
    for K in (BlockTensor(t, 2, client=client), BlockTensor(da.from_array(t, chunks=(6, 3, 4)), client=client)):
        assert np.isclose(decomposition.cp_als(K, 2, maxiter=2, rng=0).fit, expected.fit)
    with pytest.raises(ow.DTypeError, match=r"astype\('float64'\)"):
        decomposition.cp_als(BlockTensor(t.astype("i4"), 2, client=client), 2)


def test_graph_convolution_without_gradients(client: Any) -> None:
    torch = pytest.importorskip("torch")
    from openwork.nn import GraphConv, normalized_adjacency

    A = normalized_adjacency(csr(SQUARE.astype("f4")))
    layer, features = GraphConv(3, 2), torch.ones(24, 3)
    kept = BlockMatrix(A, 2, client=client)
    with torch.no_grad():
        assert torch.allclose(layer(kept, features), layer(A, features))
    with pytest.raises(ow.UnsupportedError, match="no_grad"):
        layer(kept, features)


def test_lost_blocks_are_sent_again_or_named(client: Any) -> None:
    A = BlockMatrix(csr(X), 3, client=client)
    client.cancel(A.blocks.futures[1:2], force=True)
    assert np.allclose(A @ np.ones(20), X.sum(1))
    late = BlockMatrix(csr(X), 2, client=client, timeout=0)
    with pytest.raises(
        ow.BlockError, match=r"block 0 \(rows 0 to \d+, columns 0 to 19\)(, block 1.*)?: no result in 0 s"
    ):
        late @ np.ones(20)


def right_or_named(header: dict[str, Any], frames: list[Any], name: str, expected: Any) -> bool:
    """Whether damage was found; what is read is right where it was not."""
    try:
        again = distributed.protocol.deserialize(header, frames)
    except ow.BlockError as error:
        return str(error).startswith(name)
    t, places = (again.tensor, again.places) if hasattr(again, "places") else (again, None)
    assert np.array_equal(t.to_numpy(), expected[0])
    assert all(map(np.array_equal, places or (), expected[1]))
    return False


def damaged(text: bytes, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :]


def test_every_damaged_byte_of_a_tensor_is_found() -> None:
    """Of its buffers by name; the few hundred bytes of the pickle may be what `pickle` refuses first."""
    header, frames = distributed.protocol.serialize(csr(X))
    pickled, *frames = [bytes(f) for f in frames]
    name, expected = "a tensor of shape (24, 20)", (X, ())
    assert not right_or_named(header, [pickled, *frames], name, expected)
    for k, frame in enumerate(frames):
        for at in range(0, len(frame), 61):
            arrived = [pickled, *frames[:k], damaged(frame, at), *frames[k + 1 :]]
            assert right_or_named(header, arrived, name, expected)
    for at in range(len(pickled)):
        try:
            again = distributed.protocol.deserialize(header, [damaged(pickled, at), *frames])
        except Exception:
            continue
        assert again.dtype == X.dtype
        assert np.array_equal(again.to_numpy(), X), at


@pytest.mark.parametrize("kind", ["block", "pickled"])
def test_every_damaged_byte_is_found_and_the_block_named(kind: str) -> None:
    t, name = csr(X), "block 7 (12 rows, columns 0 to 19)"
    if kind == "pickled":
        t = ow.asarray(pytest.importorskip("torch").from_numpy(X).to_sparse_coo()).requires_grad_()
    places = (np.arange(24), np.arange(20))
    expected = X, places
    header, frames = distributed.protocol.serialize(Block(name, places, t))
    frames = [bytes(f) for f in frames]
    own = header["sub-header"]
    assert not right_or_named(header, frames, name, expected)
    for key, step in (("facts", 7), ("checksum", 3)):
        for at in range(0, len(own[key]), step):
            assert right_or_named({**header, "sub-header": {**own, key: damaged(own[key], at)}}, frames, name, expected)
        for value in (None, 3, "text", own[key][:-1]):
            assert right_or_named({**header, "sub-header": {**own, key: value}}, frames, name, expected)
    assert right_or_named({**header, "sub-header": {**own, "facts": None, "name": None}}, frames, "a tensor", expected)
    assert not right_or_named({**header, "sub-header": {**own, "name": None}}, frames, name, expected)
    for k, frame in enumerate(frames):
        for at in range(0, len(frame), 61):
            assert right_or_named(header, [*frames[:k], damaged(frame, at), *frames[k + 1 :]], name, expected)


def test_a_block_that_cannot_be_read_where_it_was_spilled_is_named() -> None:
    """`distributed` has facts of its own before ours: damage there raises what it likes."""
    sent = distributed.protocol.serialize_bytes(Block("block 7", (slice(0, 24), slice(0, 20)), csr(X)))

    class Disk(dict[str, bytes]):
        def __getitem__(self, key: str) -> Any:
            return distributed.protocol.deserialize_bytes(super().__getitem__(key))

    found = right = 0
    for at in range(0, len(sent), 29):
        try:
            again = _read(Disk(key=damaged(sent, at)), "key", "block 7")
        except ow.BlockError as error:
            found += str(error).startswith("block 7 ")
        else:
            right += np.array_equal(again.tensor.to_numpy(), X)
    assert found + right == len(range(0, len(sent), 29))
    assert found > 4 * right


def test_a_message_is_one_pickle_and_the_arrays_own_memory() -> None:
    x, y = np.ones(5000), np.ones((30, 40)).T
    sent = Message((length, ["key"], ["block 0"], [(0, [None, x, y, x])]))
    frames = distributed.protocol.dumps({"args": [distributed.protocol.to_serialize(sent)]})
    assert len(frames) == 5  # that of the message, the header, the pickle, two arrays
    assert [np.shares_memory(np.frombuffer(f, np.uint8), a) for f, a in zip(frames[3:], (x, y), strict=True)] == [
        True, True,
    ]  # fmt: skip
    (again,) = distributed.protocol.loads([*map(bytearray, frames)])["args"]
    assert again.content[:3] == (length, ["key"], ["block 0"])
    (number, (none, *arrays)) = again.content[3][0]
    assert (number, none) == (0, None)
    for a, b in zip(arrays, (x, y, x), strict=True):
        assert np.array_equal(a, b)
        assert a.flags.writeable


def scaled(b: Block, factor: float) -> ow.Tensor:
    return b.tensor * factor


def test_tensors_that_a_function_of_blocks_gives(client: Any) -> None:
    parts = BlockMatrix(csr(X), 3, client=client).blocks.map(scaled, [(2.0,)] * 3)
    assert sum(p.sum() for p in parts) == pytest.approx(2 * X.sum())


KEPT = """
import importlib.util, resource, sys
import numpy as np
spec = importlib.util.spec_from_file_location("allocator", sys.argv[1])
allocator = importlib.util.module_from_spec(spec)
spec.loader.exec_module(allocator)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(100_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
with allocator.kept_memory():
    faults()
    with allocator.kept_memory():
        pass
    print(faults())
print(faults())
"""


@pytest.mark.skipif(
    not hasattr(os, "confstr") or "CS_GNU_LIBC_VERSION" not in os.confstr_names, reason="asks for glibc"
)
def test_a_method_on_a_worker_keeps_the_memory_of_its_vectors() -> None:
    """Pages that are touched for the first time: 196 of a vector, with the limit that Dask gives its workers."""
    from openwork.dask import allocator

    done = subprocess.run(
        [sys.executable, "-c", KEPT, allocator.__file__], capture_output=True, text=True, check=True,
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
    )  # fmt: skip
    before, kept, after = map(int, done.stdout.split())
    assert kept * 10 < min(before, after)


def raises(b: Block, kind: type[Exception]) -> int:
    if b.name.startswith("block 1 "):
        raise kind("of the function")
    return 1


@pytest.mark.parametrize("kind", [ZeroDivisionError, OSError])
def test_what_a_function_raises_names_the_block(client: Any, kind: type[Exception]) -> None:
    A: Any = BlockMatrix(csr(X), 3, client=client)
    for call in (lambda: A.blocks.map(raises, [(kind,)] * 3), lambda: A.blocks.reduced(raises, (kind,), max)):
        with pytest.raises(kind, match="of the function") as caught:
            call()
        assert "in block 1 (rows" in caught.value.__notes__[0]
    assert np.allclose(A @ np.ones(20), X.sum(1))
    gone = weakref.ref(A.blocks)
    A = None
    del caught
    gc.collect()
    assert gone() is None


class TwoArgumentsError(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def raises_what_does_not_travel(b: Block, kind: str) -> int:
    if not b.name.startswith("block 1 "):
        return 1
    if kind == "two arguments":
        raise TwoArgumentsError("of the", "function")
    error = ValueError("of the function" + "." * (20_000 if kind == "long" else 1))
    if kind == "lock":
        error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


@pytest.mark.parametrize("kind", ["two arguments", "lock", "long"])
def test_errors_that_cannot_be_pickled_name_the_block(client: Any, kind: str) -> None:
    A = BlockMatrix(csr(X), 3, client=client)
    for call in (
        lambda: A.blocks.map(raises_what_does_not_travel, [(kind,)] * 3),
        lambda: A.blocks.reduced(raises_what_does_not_travel, (kind,), max),
    ):
        with pytest.raises(ow.BlockError, match=r"block 1 \(rows.*Error: of the function") as caught:
            call()
        assert len(str(caught.value)) < 5000


def product_in_a_task(x: Any) -> Any:
    A = BlockMatrix(csr(x), 2)
    return A @ np.ones(20), A.gram().to_numpy()


def test_blocks_in_tasks_that_take_all_threads_of_the_workers(client: Any) -> None:
    for product, gram in client.gather(client.map(product_in_a_task, [X, 2 * X, 3 * X], pure=False)):
        k = gram.sum() / (X.T @ X).sum()
        assert np.allclose(product, k**0.5 * X.sum(1))


def test_a_worker_that_has_died_is_waited_for_as_long_as_the_scheduler_has_it() -> None:
    """Its connection is asked for half a minute, which the scheduler's list of workers cuts short."""

    class Scheduler:
        asked = 0

        async def ncores(self) -> dict[str, int]:
            self.asked += 1
            return {"tcp://one": 1, "tcp://two": 1} if self.asked < 2 else {"tcp://one": 1}

    class Asked:
        scheduler = Scheduler()

    async def look(timeout: float | None) -> str:
        calls = {home: asyncio.ensure_future(asyncio.sleep(30)) for home in ("tcp://one", "tcp://two")}
        try:
            names = {"tcp://one": ["block 0"], "tcp://two": ["block 1", "block 2"]}
            client: Any = Asked
            return await attended(client, calls, names, timeout)
        finally:
            for call in calls.values():
                call.cancel()

    with pytest.raises(LostWorkerError, match="block 1, block 2: the worker tcp://two is lost") as caught:
        asyncio.run(look(None))
    assert (caught.value.address, Asked.scheduler.asked) == ("tcp://two", 2)
    Asked.scheduler.asked = -10
    assert asyncio.run(look(0.3)) == "block 0, block 1, block 2"


def test_blocks_forgotten_by_the_scheduler_are_computed_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openwork.dask.kept._NOTICE", 0.2)
    A = BlockMatrix(da.from_array(csr(X), chunks=(12, 20)), client=client)
    client.cancel(A.blocks.futures, force=True)
    assert np.allclose(A @ np.ones(20), X.sum(1))
    for f in A.blocks.futures:  # as the scheduler says when a worker took them with it
        client._handle_lost_data(f.key)
    monkeypatch.setattr(A.blocks, "_gone", lambda: list(range(len(A.blocks.futures))))
    A.blocks._renew(OSError())
    assert "lost" not in [f.status for f in A.blocks.futures], "futures share the state of those before"
    assert np.allclose(A @ np.ones(20), X.sum(1))


def test_a_client_that_is_closed_is_an_error_of_ours(client: Any) -> None:
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    A = BlockMatrix(csr(X), 2, client=other)
    other.close()
    assert "its client is closed" in repr(A)
    for call in (lambda: A @ np.ones(20), A.gram):
        with pytest.raises(ow.BlockError, match="is closed"):
            call()
    with pytest.raises(ow.UnsupportedError, match="one that is closed"):
        BlockMatrix(csr(X), 2, client=other)


def test_blocks_that_cannot_be_had_are_named(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_NOTICE", 0.05)
    A = BlockMatrix(csr(X), 2, client=client)
    tried: list[int] = []

    def fails(error: BaseException) -> Any:
        def call() -> None:
            tried.append(1)
            raise error

        return call

    for error, words in (
        (
            OSError("no"),
            f"one of 2 blocks from {A.blocks.names[0]} on could not be had in {kept._ATTEMPTS} attempts: no",
        ),
        (LostWorkerError("tcp://gone", ["block 7"], "no"), "block 7 could not be had"),
    ):
        tried.clear()
        with pytest.raises(ow.BlockError, match=re.escape(words)):
            A.blocks._attempts(fails(error))
        assert len(tried) == kept._ATTEMPTS > 1
    assert np.allclose(A @ np.ones(20), X.sum(1))
    with monkeypatch.context() as patch:
        patch.setattr(A.blocks, "_located", None)
        patch.setattr(client, "who_has", lambda futures: {})
        with pytest.raises(CommClosedError, match="no worker has block 0"):
            A.blocks._homes()

    def not_yet(futures: Any, timeout: float) -> None:
        assert timeout >= 0
        time.sleep(0.005)
        raise TimeoutError

    slow: Any = SimpleNamespace(done=lambda: False, status="pending")
    monkeypatch.setattr(kept, "wait", not_yet)
    monkeypatch.setattr(A.blocks, "timeout", 0.05)
    with pytest.raises(ow.BlockError, match=r"^block 0 [^;]*0 to 19\): no result in 0\.05 s"):
        A.blocks._wait([slow], [slow, A.blocks.futures[1]], "no result")
    monkeypatch.setattr(A.blocks, "timeout", None)
    monkeypatch.setitem(A.blocks._runners, "tcp://gone", slow)
    with pytest.raises(LostWorkerError, match="tcp://gone is lost: it takes no tasks"):
        A.blocks._wait_for_runner("tcp://gone", ["block 0"])
    with monkeypatch.context() as patch:
        patch.setattr(client, "nthreads", dict)
        patch.setattr(kept, "_PATIENCE", 0.01)
        with pytest.raises(ow.BlockError, match=r"no worker in 0\.01 s"):
            A.blocks._wait([slow], [slow, A.blocks.futures[1]], "no result")
    with monkeypatch.context() as patch:
        patch.setattr(A.blocks, "futures", [SimpleNamespace(status="lost"), SimpleNamespace(status="finished")])
        with pytest.raises(CommClosedError, match=r"^block 0 [^;]* gone"):
            A.blocks._wait([slow], [slow, slow], "no result")


def test_a_block_that_goes_while_it_is_read_is_gone() -> None:
    class Leaves(dict[str, Any]):
        asked = 0

        def __contains__(self, key: object) -> bool:
            self.asked += 1
            return self.asked < 2

    runner: Any = object.__new__(BlockRunner)
    for data in ({}, Leaves()):
        state = SimpleNamespace(nthreads=1)
        runner._worker = SimpleNamespace(data=data, executors={"default": None}, state=state)
        for key, name in (("a", "block 0"), (["a", "b"], "block 0; block 1")):
            assert asyncio.run(runner.run(Message((length, [key], [name], [()])))) is None


def test_methods_of_this_package_alone_run_on_a_worker() -> None:
    found = [
        Block("block 0", (slice(0, 1), slice(0, 2)), csr([[1.0, 2]])),
        Block("block 1", (slice(1, 3), slice(0, 2)), csr(np.eye(2))),
    ]
    here = LocalTensor(found, (3, 2), np.dtype("f8"), (2, 1))
    assert here.reduced(lambda b: float(b.tensor.sum()), (), max) == 3
    with pytest.raises(ValueError, match=r"os\.system is not a method of openwork"):
        run_method(found, ((3, 2), np.dtype("f8"), (2, 1), BlockMatrix), "os", "system", ("true",), {})
    with pytest.raises(ow.ShapeError, match=r"block 3: a chunk of shape \(2, 2\)"):
        block("block 3", (slice(0, 2), slice(0, 3)), np.ones((2, 2)))


def test_squares_of_complex_numbers(client: Any) -> None:
    assert np.isclose(BlockMatrix(csr(X * (1 + 2j)), 2, client=client).blocks.square_norm(), 5 * (X**2).sum())


@pytest.mark.parametrize("made", [BlockMatrix, BlockTensor])
def test_examples(made: Any) -> None:
    test = doctest.DocTestParser().get_doctest(made.__doc__, {"np": np, "ow": ow}, made.__name__, None, 0)
    assert doctest.DocTestRunner().run(test) == doctest.TestResults(0, len(test.examples))


def test_memory_is_kept_until_the_last_stretch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    before = {allocator._TRIM: 65536, allocator._MAP: 1 << 17}
    monkeypatch.setattr(allocator, "_limits", lambda: before)
    monkeypatch.setattr(allocator, "_mallopt", lambda: lambda parameter, size: told.append((parameter, size)))
    with allocator.kept_memory():
        assert dict(told) == allocator._KEPT
        with allocator.kept_memory():
            pass
        assert len(told) == 2
        lock = allocator._lock
        allocator._after_fork()
        assert allocator._lock is not lock
    assert told[2:] == list(before.items())
    monkeypatch.undo()

    def unknown(name: str) -> str:
        raise ValueError(name)

    monkeypatch.setattr(os, "confstr", unknown)
    assert allocator._mallopt.__wrapped__() is None


@pytest.mark.ci
def test_what_is_refused(client: Any) -> None:
    t = csr(X)
    for call, error, text in (
        (lambda: partition(t, 0), ow.ShapeError, "parts=0"),
        (lambda: partition(t, 2, by="rows"), ow.UnsupportedError, "'nse', 'grid', 'graph'"),
        (lambda: partition(ow.asarray([1.0]), 1), ow.ShapeError, "two dimensions"),
        (lambda: BlockMatrix(ow.add(t, 1), 2, client=client), ow.UnsupportedError, "unspecified elements are 1"),
        (lambda: BlockMatrix(ow.asarray(T), 2, client=client), ow.ShapeError, "BlockTensor"),
        (lambda: BlockMatrix(t, partition(csr(SQUARE), 2), client=client), ow.ShapeError, r"a partition of shape \(24, 24\)"),
        (lambda: BlockMatrix(t, partition(t, 4, by="grid"), client=client).gram(), ow.UnsupportedError, "by='nse'"),
        (lambda: BlockTensor(da.from_array(t)[da.from_array(X)[:, 0] > 0], client=client), ow.ShapeError, "compute_chunk_sizes"),
        (lambda: BlockTensor(da.ones(3), client=client), ow.ShapeError, "two dimensions"),
        (lambda: BlockTensor(t, 2, client=client).mttkrp([None, np.ones(3)], 0), ow.ShapeError, r"factor of shape \(3,\)"),
        (lambda: BlockTensor(t, 2, client=client).mttkrp([None], 0), ow.ShapeError, "1 factors"),
        (lambda: BlockMatrix(da.from_array(ow.add(t, 1), chunks=9), client=client), ow.UnsupportedError, r"block \d+ .*are 1"),
        (lambda: BlockMatrix(t, 2, client=client, timeout=-1), ValueError, "timeout"),
        (lambda: BlockMatrix(t, 2, client="tcp://host"), ow.UnsupportedError, "got: str"),
        (lambda: pickle.dumps(BlockTensor(t, 2, client=client)), ow.UnsupportedError, "pickled"),
        (lambda: BlockMatrix(t, 2, client=client).normal_matmat(np.ones(3)), ow.ShapeError, r"expected \(20, k\)"),
        (lambda: BlockMatrix(t, 2, client=client).normal_matmat(np.ones((20, 2, 2))), ow.ShapeError, r"expected \(20, k\)"),
        (lambda: graph.pagerank(BlockMatrix(t, 2, client=client)), ow.ShapeError, "square"),
        (lambda: graph.components(BlockMatrix(csr(SQUARE), 2, client=client), connection="strong"), ow.UnsupportedError, "'weak'"),
        (lambda: linalg.randomized_svd(t, 21), ow.ShapeError, "k from 1 to 20"),
        (lambda: ow.dask.pagerank(da.from_array(csr(SQUARE)), damping=1.0), ValueError, "damping is at least 0"),
        *(
            (lambda p=p: ow.dask.pagerank(da.from_array(csr(SQUARE)), personalization=p), error, "personalization")
            for p, error in (
                (np.ones(23), ow.ShapeError), (np.zeros(24), ValueError), (np.arange(-1.0, 23), ValueError),
                (np.full(24, np.inf), ValueError), (np.full(24, np.nan), ValueError),
            )
        ),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()


FAULTS = """
import os, resource, signal, sys, threading, time
import dask, numpy as np, openwork as ow, dask.array as da
from distributed import Client, LocalCluster, wait
from openwork import linalg

def written(dask_worker):
    from distributed.comm import tcp
    write, total = tcp.TCP.write, [0]
    async def counted(self, *a, **k):
        n = await write(self, *a, **k)
        total[0] += n
        return n
    tcp.TCP.write = counted
    sys.written = total

def full_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))

def main():
    rng = np.random.default_rng(0)
    n = 20000
    A = ow.random_array((n, n), density=5e-4, format="csr", rng=rng)
    x = rng.random(n)
    expected = A @ x
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", memory_limit="2GiB")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        # what is sent is what was predicted, by the bytes that the sockets of client and workers wrote
        M, X = ow.dask.BlockMatrix(A, 2), rng.random((n, 20))
        M @ X
        written(None)
        client.run(written)
        before = sum(client.run(lambda: sys.written[0]).values()) + sys.written[0]
        M @ X
        after = sum(client.run(lambda: sys.written[0]).values()) + sys.written[0]
        predicted = M.blocks.predicted(20)
        assert predicted <= after - before <= 1.1 * predicted + 60000, (after - before, predicted)
        # workers that are killed, while blocks are the client's or Dask's
        for source in (A, da.from_array(A, chunks=(5000, n))):
            M = ow.dask.BlockMatrix(source)
            assert np.allclose(M @ x, expected)
            victim = next(iter(client.run(os.getpid).values()))
            threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
            for _ in range(40):
                assert np.allclose(M @ x, expected)
            client.wait_for_workers(2)
            # one that died between two products: its connection is not waited for, half a minute
            assert np.allclose(M @ x, expected)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            time.sleep(0.5)
            begin = time.monotonic()
            assert np.allclose(M @ x, expected)
            assert time.monotonic() - begin < 25
            client.wait_for_workers(1)
        # a slow worker
        slow = next(iter(client.run(os.getpid).values()))
        os.kill(slow, signal.SIGSTOP)
        threading.Timer(2, os.kill, (slow, signal.SIGCONT)).start()
        assert np.allclose(M @ x, expected)
        # a full disk while chunks are spilled
    dask.config.set({"distributed.worker.memory.target": 0.0002, "distributed.worker.memory.spill": False})
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(full_disk)
        a = da.from_array(A, chunks=(2500, n)).persist()
        wait(a)
        assert np.allclose((a @ x).compute(), expected)

if __name__ == "__main__":
    main()
    print("right")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="asks for signals")
def test_faults_on_a_cluster_of_processes(tmp_path: Path) -> None:
    (tmp_path / "cluster_faults.py").write_text(FAULTS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "cluster_faults.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280,
        env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"},
    )  # fmt: skip
    assert done.stdout.strip().endswith("right"), done.stderr[-3000:]
