"""Tensors sent by `distributed`: frames are the buffers, damage is found, nothing is called, threads do not multiply."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import openwork as ow
from openwork.codegen import pool

protocol = pytest.importorskip("distributed.protocol")

from openwork.interop.frames import checksum  # noqa: E402

X = np.where(np.random.default_rng(0).random((40, 30)) < 0.7, 0, 1.5)


def buffers(t: ow.Tensor) -> list[np.ndarray[Any, Any]]:
    s = t._storage
    return [b for b in (*s.pos, *s.crd, s.values) if b is not None]


@pytest.mark.parametrize("format", ["csr", "coo", "dcsr", "bsr(2, 2)", "bitmap", "dense"])
def test_frames_are_the_buffers_both_ways(format: str) -> None:
    t = ow.asarray(X, format=format)
    header, frames = protocol.serialize(t)
    pickled, *frames = frames
    assert sum(memoryview(f).nbytes for f in frames) == t.nbytes
    for b in buffers(t):
        assert any(np.shares_memory(np.frombuffer(f, np.uint8), b) for f in frames)
    arrived = [np.frombuffer(f, np.uint8).copy() for f in frames]
    u = protocol.deserialize(header, [pickled, *(memoryview(f) for f in arrived)])
    for b in buffers(u):
        assert any(np.shares_memory(f, b) for f in arrived)
        assert b.flags.writeable
    assert u.format == t.format
    assert np.array_equal(u.to_numpy(), X)


def test_every_kind_of_tensor_arrives() -> None:
    for t in (
        ow.asarray(np.array(1 + 2j)), ow.asarray(np.zeros((0, 3)), format="csr"), ow.add(ow.asarray(X, format="csr"), 7),
        ow.asarray(X > 1, format="coo"), ow.asarray(X.astype("u8"), format="csc").T,
    ):  # fmt: skip
        u = protocol.deserialize_bytes(protocol.serialize_bytes(t))
        assert (u.format, u.dtype, u.fill_value, u.shape) == (t.format, t.dtype, t.fill_value, t.shape)
        assert np.array_equal(u.to_numpy(), t.to_numpy())


def test_torch_buffers_and_masks_arrive() -> None:
    torch = pytest.importorskip("torch")
    plain = ow.asarray(torch.eye(5).to_sparse_coo())
    recorded = plain.detach().requires_grad_()
    half = plain.astype(torch.bfloat16)
    masked = ow.masked_tensor(ow.asarray(X), ow.asarray(X > 0))
    for t in (plain, recorded, half, masked):
        header, frames = protocol.serialize(t)
        u = protocol.deserialize(header, [bytearray(f) for f in frames])
        assert type(u) is type(t)
        assert u.dtype == t.dtype
        assert repr(u) == repr(t)


def test_damage_is_found_and_the_tensor_named() -> None:
    sent = protocol.serialize_bytes(ow.asarray(X, format="csr"))
    for at in (1, 9, 200):
        damaged = bytearray(sent)
        damaged[-at] ^= 4
        with pytest.raises(ow.BlockError, match=r"shape \(40, 30\)(?s:.*)expected checksum"):
            protocol.deserialize_bytes(bytes(damaged))


def test_checksums_see_places_and_ends() -> None:
    x = np.arange(100, dtype=np.uint8)
    swapped = x.copy()
    swapped[[8, 17]] = swapped[[17, 8]]
    sums = [checksum([part]) for part in (x, x[1:], x[:-1], swapped, x[::-1].copy())]
    assert len({tuple(s) for s in sums}) == 5
    assert checksum([x[:40].copy(), x[40:].copy()]) == checksum([x])
    assert checksum([b""]) == checksum([np.empty(0)]) == [0, 0]
    unaligned = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:]
    assert checksum([unaligned]) == checksum([x])


WORKER = """
import sys
import {}
import distributed.protocol as p
header, frames = eval(sys.stdin.read())
t = p.deserialize(header, [bytearray(f) for f in frames])
assert "openwork" in type(t).__module__
finders = [f for f in sys.meta_path if type(f).__module__.startswith("openwork")]
print(t.to_numpy().sum(), len(finders), len(p.serialize(t)[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["openwork", "dask", "distributed"])
def test_nothing_is_to_be_called(first: str) -> None:
    header, frames = protocol.serialize(ow.asarray(np.eye(3), format="csr"))
    text = repr((header, [bytes(f) for f in frames]))
    worker = [sys.executable, "-c", WORKER.format(first)]
    done = subprocess.run(worker, input=text, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3.0 0 4\n", ""), "the pickle, and three buffers out of band"


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for ours, openmp, expected in (("3", "1", 3), ("", "2", 2), ("", "4,2", pool._cores()), ("0", "", pool._cores())):
        monkeypatch.setenv("OPENWORK_NUM_THREADS", ours)
        monkeypatch.setenv("OMP_NUM_THREADS", openmp)
        assert pool._default() == expected


def test_processors_where_the_system_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert pool._cores() == expected


def test_threads_of_a_worker_and_of_the_pool_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that starts in a process with a worker of n threads has cores // n threads, at least one."""
    for name in ("threads", "_run", "_is_default"):
        monkeypatch.setattr(pool, name, getattr(pool, name))
    monkeypatch.setattr(pool, "_cores", lambda: 4)
    monkeypatch.setattr(pool, "_native", lambda: None)
    for threads, status, expected in ((1, "running", 4), (2, "running", 2), (16, "running", 1), (16, "closed", 4)):
        worker = SimpleNamespace(state=SimpleNamespace(nthreads=threads), status=SimpleNamespace(name=status))
        module = ModuleType("distributed.worker")
        module.Worker = SimpleNamespace(_instances=[worker])  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "distributed.worker", module)
        pool._is_default = True
        pool._start()
        assert pool.get_num_threads() == expected
    pool._is_default, pool.threads = False, 3
    pool._start()
    assert pool.get_num_threads() == 3


DISK = """
import glob, os, sys
import dask, numpy as np, openwork as ow, dask.array as da
from distributed import Client, LocalCluster, wait

def spilled(dask_worker):
    return len(dask_worker.data.disk), dask_worker.local_directory

def main():
    x = np.random.default_rng(0).random((20000, 50)); x[x < 0.9] = 0
    dask.config.set({"distributed.worker.memory.target": 0.0002, "distributed.worker.memory.spill": False})
    options = dict(n_workers=1, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", memory_limit="1GiB")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        a = da.from_array(ow.asarray(x, format="csr"), chunks=(2500, 50)).persist()
        wait(a)
        count, folder = next(iter(client.run(spilled).values()))
        assert count > 4, count
        assert np.allclose((a.T @ a).compute().to_numpy(), x.T @ x)
        for path in glob.glob(folder + "/**/storage/*", recursive=True):
            content = bytearray(open(path, "rb").read())
            content[len(content) // 2] ^= 1
            open(path, "wb").write(content)
        try:
            (a * 2).sum().compute()
        except ow.BlockError as error:
            assert "(2500, 50)" in str(error)
        else:
            raise AssertionError("damage was not found")

if __name__ == "__main__":
    main()
    print("right")
"""


@pytest.mark.slow
def test_spilled_chunks_come_back_and_damaged_ones_do_not(tmp_path: Path) -> None:
    (tmp_path / "disk.py").write_text(DISK)
    done = subprocess.run(
        [sys.executable, "disk.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"},
    )  # fmt: skip
    assert done.stdout.strip().endswith("right"), done.stderr[-2000:]
