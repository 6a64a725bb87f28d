"""Everything of openwork.dask on a cluster of processes, of which workers are killed, slow, out of disk, or have damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="asks for signals"),
]

HEAD = """
import glob, os, resource, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, METHODS)
import dask, numpy as np, openwork as ow
from distributed import Client, LocalCluster
from dask_methods import methods

# a local cluster gives up workers that are not back by then, which one that was killed again may not be
dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", memory_limit="1GiB")

def checked(name, call, expected):
    assert np.allclose(call(), expected, atol=1e-5), name

def pids(client):
    while True:
        try:
            client.wait_for_workers(2)
            found = list(client.run(os.getpid).values())
        except OSError:
            found = []
        if len(found) == 2:  # none has gone meanwhile
            return found
        time.sleep(0.1)

def full_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, 1 << 10))

def spilled(dask_worker):
    return len(dask_worker.data.disk), dask_worker.local_directory
"""

KILLED = """
def main():
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for k, (name, (call, expected)) in enumerate(methods(Path(".")).items()):
            checked(name, call, expected)
            victim = pids(client)[k % 2]
            threading.Timer(0.02 * (k % 3), os.kill, (victim, signal.SIGKILL)).start()
            end = time.time() + 0.3
            while time.time() < end:
                checked(name, call, expected)
"""

SLOW = """
def main():
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for name, (call, expected) in methods(Path(".")).items():
            victim = pids(client)[0]
            os.kill(victim, signal.SIGSTOP)
            threading.Timer(0.5, os.kill, (victim, signal.SIGCONT)).start()
            checked(name, call, expected)
        M = ow.dask.BlockMatrix(ow.eye(10).asformat("csr"), 2, timeout=0.2)
        M @ np.ones(10)
        os.kill(victim, signal.SIGSTOP)
        try:
            M @ np.ones(10)
        except ow.BlockError as error:
            assert "block" in str(error) and "no result in 0.2 s" in str(error), error
        else:
            raise AssertionError("the product did not wait for the slow worker")
        finally:
            os.kill(victim, signal.SIGCONT)
"""

FULL = """
def main():
    dask.config.set({"distributed.worker.memory.target": 0.00002, "distributed.worker.memory.spill": False})
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(full_disk)
        for name, (call, expected) in methods(Path("."), 600).items():
            checked(name, call, expected)
"""

DAMAGED = """
def main():
    dask.config.set({"distributed.worker.memory.target": 0.00002, "distributed.worker.memory.spill": False})
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        made = methods(Path("."), 600)
        for name, (call, expected) in made.items():
            checked(name, call, expected)
        for count, folder in client.run(spilled).values():
            assert count
            for path in glob.glob(folder + "/**/storage/*", recursive=True):
                content = bytearray(open(path, "rb").read())
                content[len(content) // 2] ^= 1
                open(path, "wb").write(content)
        named = 0
        for name, (call, expected) in made.items():
            try:
                checked(name, call, expected)
            except ow.BlockError as error:
                assert any(x in str(error) for x in ("damaged", "cannot be read where it was spilled")), error
                named += "block " in str(error)
        assert named > 3, named
"""


def on_a_cluster(tmp_path: Path, text: str) -> None:
    head = HEAD.replace("METHODS", repr(str(Path(__file__).parent)))
    (tmp_path / "faults.py").write_text(f"{head}{text}\n\nif __name__ == '__main__':\n    main()\n    print('right')\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "faults.py"], cwd=tmp_path, capture_output=True, text=True, timeout=900,
        env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"},
    )  # fmt: skip
    assert done.stdout.strip().endswith("right"), done.stderr[-3000:]


@pytest.mark.parametrize("text", [KILLED, SLOW, FULL, DAMAGED], ids=["killed", "slow", "full disk", "damaged"])
def test_every_method(tmp_path: Path, text: str) -> None:
    on_a_cluster(tmp_path, text)
