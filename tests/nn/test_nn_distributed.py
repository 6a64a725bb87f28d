"""Layers with dense and sparse gradients under DistributedDataParallel and in shards, over gloo; row-wise states."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import openwork as ow
from openwork.nn import GraphConv, SparseEmbedding, SparseEmbeddingBag, normalized_adjacency, prune
from openwork.torch import optim

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch without distributed")


def cases() -> dict[str, tuple[Any, Any]]:
    """A layer each, and its inputs by rank; the same in every process."""
    torch.manual_seed(0)
    graph = normalized_adjacency(ow.asarray(torch.ones(5, 5).triu(), format="csr"))
    x = torch.rand(5, 4)
    return {
        "linear": (prune(torch.nn.Linear(4, 3), 0.5), lambda rank: (x + rank,)),
        "embedding": (SparseEmbedding(9, 3), lambda rank: (torch.tensor([[1, 2, 2], [3, 4 + rank, 5]]),)),
        "bags": (SparseEmbeddingBag(9, 3, mode="sum"), lambda rank: (torch.tensor([[1, 2], [3, 4 + rank]]),)),
        "graph": (GraphConv(4, 2), lambda rank: (graph, x + rank)),
    }


def check(rank: int, size: int) -> None:
    """Gradients of a group of processes are the mean of their inputs' gradients, and are sparse where they were."""
    for name, (layer, inputs) in cases().items():
        alone = copy.deepcopy(layer)
        torch.stack([alone(*inputs(r)).square().sum() for r in range(size)]).mean().backward()
        together = DistributedDataParallel(layer)  # it must live until the gradients are reduced
        together(*inputs(rank)).square().sum().backward()
        for p, q in zip(layer.parameters(), alone.parameters(), strict=True):
            assert p.grad.is_sparse == (name in ("embedding", "bags"))
            torch.testing.assert_close(p.grad.to_dense(), q.grad.to_dense())
        optim.Adagrad(layer.parameters(), 0.1, rowwise=True).step()
    gathered: list[Any] = [None] * size
    dist.all_gather_object(gathered, ow.asarray(torch.eye(3) * (rank + 1), format="csr"))
    assert [t.values[0].item() for t in gathered] == [r + 1 for r in range(size)]


def check_shards(rank: int, size: int) -> None:
    """Each process keeps a part of each parameter, gathers all for a step, and steps its own part by the mean gradient,
    as FSDP does: two steps are those of one process with all inputs."""
    for name, (layer, inputs) in cases().items():
        alone = copy.deepcopy(layer)
        reference = torch.optim.SGD(alone.parameters(), 0.1)
        shards = [_shard(p.detach(), rank, size) for p in layer.parameters()]
        for _ in range(2):
            reference.zero_grad()
            torch.stack([alone(*inputs(r)).square().sum() for r in range(size)]).mean().backward()
            reference.step()
            for p, shard in zip(layer.parameters(), shards, strict=True):
                p.data.copy_(_gathered(shard, size)[: p.numel()].view_as(p))
                p.grad = None
            layer(*inputs(rank)).square().sum().backward()
            for p, shard in zip(layer.parameters(), shards, strict=True):
                gradient = p.grad.to_dense()
                dist.all_reduce(gradient)
                shard.sub_(_shard(gradient, rank, size), alpha=0.1 / size)
        for p, shard in zip(alone.parameters(), shards, strict=True):
            torch.testing.assert_close(_gathered(shard, size)[: p.numel()].view_as(p), p.detach(), msg=name)


def _shard(x: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    part = -(-x.numel() // size)
    return torch.nn.functional.pad(x.reshape(-1), (0, part * size - x.numel()))[part * rank : part * (rank + 1)].clone()


def _gathered(shard: torch.Tensor, size: int) -> torch.Tensor:
    out = shard.new_empty(size * len(shard))
    dist.all_gather_into_tensor(out, shard)
    return out


def check_fully_shard(rank: int, size: int) -> None:
    """torch's own fully_shard takes the layers whose gradients are dense."""
    from torch.distributed.fsdp import fully_shard

    for name in ("linear", "graph"):
        layer, inputs = cases()[name]
        alone = copy.deepcopy(layer)
        torch.stack([alone(*inputs(r)).square().sum() for r in range(size)]).mean().backward()
        fully_shard(layer)
        layer(*inputs(rank)).square().sum().backward()
        for p, q in zip(layer.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(p.grad.full_tensor(), q.grad)


@pytest.mark.filterwarnings("ignore")
def test_one_process(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        check(0, 1)
        check_shards(0, 1)
    finally:
        dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes(tmp_path: Path) -> None:
    program = (
        "import sys, torch.distributed as dist; import test_nn_distributed as t\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path / 'group'}', rank=int(sys.argv[1]), world_size=2)\n"
        "r = int(sys.argv[1]); t.check(r, 2); t.check_shards(r, 2); t.check_fully_shard(r, 2); dist.destroy_process_group()"
    )
    runs = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(r)], cwd=Path(__file__).parent)
        for r in (0, 1)
    ]
    assert [run.wait(120) for run in runs] == [0, 0]


def test_rowwise_states() -> None:
    torch.manual_seed(0)
    for kind, options in ((optim.Adagrad, {"initial_accumulator_value": 0.1}), (optim.SparseAdam, {"steps": "all"})):
        p = torch.nn.Parameter(torch.rand(6, 4, dtype=torch.float64))
        dense = torch.nn.Parameter(p.detach().clone())
        sums = torch.full((6, 1), options.get("initial_accumulator_value", 0.0), dtype=torch.float64)
        sparse, full = kind([p], 0.1, rowwise=True, **options), kind([dense], 0.1, rowwise=True, **options)
        for rows in ([1, 3], [3, 4]):
            g = torch.rand(2, 4, dtype=torch.float64)
            before = p.detach().clone()
            p.grad = torch.sparse_coo_tensor([rows], g, (6, 4))
            dense.grad = p.grad.to_dense()
            sparse.step()
            if kind is optim.Adagrad:
                full.step()
                torch.testing.assert_close(p, dense)
                sums[rows] += g.square().mean(1, keepdim=True)
                want = before[rows] - 0.1 * g / (sums[rows].sqrt() + 1e-10)
                torch.testing.assert_close(p.detach()[rows], want)
        state = sparse.state[p]["sum" if kind is optim.Adagrad else "exp_avg_sq"]
        assert state.shape == (6, 1)
        assert state[3] > state[0]
    vector = torch.nn.Parameter(torch.ones(3))
    vector.grad = torch.ones(3)
    optim.Adagrad([vector], 0.5, rowwise=True).step()
    torch.testing.assert_close(vector.detach(), torch.full((3,), 0.5))
