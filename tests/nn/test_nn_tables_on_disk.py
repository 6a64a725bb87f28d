"""Tables that do not fit in memory twice: weights mapped from files, and optimizers whose states lie in files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import openwork as ow

torch = pytest.importorskip("torch")
from openwork.nn import SparseEmbedding, SparseEmbeddingBag  # noqa: E402
from openwork.torch import optim  # noqa: E402

LARGE = """
import os, resource, sys, torch
from openwork.nn import SparseEmbedding
from openwork.torch import optim
n, folder = int(sys.argv[1]), sys.argv[2]
weight = torch.from_file(os.path.join(folder, "weight"), shared=True, size=n * 8, dtype=torch.float32).reshape(n, 8)
table = SparseEmbedding(n, 8, weight=torch.nn.Parameter(weight))
for kind in (optim.Adagrad, optim.SparseAdam):
    optimizer = kind(table.parameters(), lr=0.1, rowwise=True, state_folder=folder)
    for _ in range(3):
        rows = torch.randint(0, n, (256,))
        optimizer.zero_grad()
        ((table(rows) - 1) ** 2).sum().backward()
        optimizer.step()
assert bool((weight[rows] != 0).all())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_parameter_is_the_layers_own() -> None:
    for kind in (SparseEmbedding, SparseEmbeddingBag):
        parameter = torch.nn.Parameter(torch.ones(5, 2))
        assert kind(5, 2, weight=parameter).weight is parameter
        assert kind(5, 2, weight=parameter.detach()).weight.data_ptr() != parameter.data_ptr()
    with pytest.raises(ow.ShapeError, match=r"weight \(5, 2\)"):
        SparseEmbedding(4, 2, weight=parameter)


def test_steps_with_states_in_files_are_those_in_memory(tmp_path: Path) -> None:
    for make in (
        lambda p, **o: optim.Adagrad(p, lr=0.1, rowwise=True, initial_accumulator_value=0.5, **o),
        lambda p, **o: optim.Adagrad(p, lr=0.1, **o),
        lambda p, **o: optim.SparseAdam(p, lr=0.1, rowwise=True, **o),
        lambda p, **o: optim.SparseAdam(p, lr=0.1, steps="all", **o),
    ):
        found = []
        for options in ({}, {"state_folder": tmp_path}):
            weight = torch.nn.Parameter(torch.arange(12.0).reshape(6, 2))
            optimizer = make([weight], **options)
            for row in (1, 4, 1):
                weight.grad = torch.sparse_coo_tensor([[row]], [[1.0, -2.0]], (6, 2))
                optimizer.step()
            found.append(weight.detach())
        assert torch.equal(*found)
        assert not list(tmp_path.iterdir()) or os.name != "posix"
    with pytest.raises(ow.ShapeError, match="a folder that is there"):
        optim.Adagrad([weight], state_folder=tmp_path / "none")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="files with holes")
def test_a_table_of_1e8_rows_takes_memory_for_the_rows_that_are_used(tmp_path: Path) -> None:
    peaks = []
    for n in (1000, 10**8):  # 10.8 GB of weights and states
        folder = tmp_path / str(n)
        folder.mkdir()
        run = subprocess.run([sys.executable, "-c", LARGE, str(n), str(folder)], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        peaks.append(int(run.stdout))
        stored = sum(f.stat().st_blocks for f in folder.iterdir()) * 512
        assert stored < 100 << 20
    assert peaks[1] - peaks[0] < 1 << 20  # KiB; 240 MiB were measured, most of it what is read around each row
