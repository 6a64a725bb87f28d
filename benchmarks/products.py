"""Contractions of several operands, eigenpairs and attention layers against the peers: rows of `selection.py`.

Orders by hand are the best of those that were tried, written as products of two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
import torch
from measure import least, show

import openwork as ow


def contractions(rounds: int) -> None:
    """`einsum` of several operands, one of them sparse or all, against the best order by hand."""
    n, rng = 20_000, np.random.default_rng(0)
    a = ow.random((n, n), 10 / n, format="csr", rng=0)
    d, x = rng.random(n), rng.random((n, 8))
    u, v, w = rng.random((n, 8)), rng.random((8, n)), rng.random((n, 4))
    ways = {
        "A D A^T, ij,j,kj->ik": (lambda: ow.einsum("ij,j,kj->ik", a, d, a), lambda: (a * d) @ a.T),
        "A A A x, ij,jk,kl,lm->im": (lambda: ow.einsum("ij,jk,kl,lm->im", a, a, a, x), lambda: a @ (a @ (a @ x))),
        "A U V W, ij,jk,kl,lm->im": (lambda: ow.einsum("ij,jk,kl,lm->im", a, u, v, w), lambda: a @ (u @ (v @ w))),
        "D A D A x, i,ij,j,jk,kl->il": (
            lambda: ow.einsum("i,ij,j,jk,kl->il", d, a, d, a, x), lambda: d[:, None] * (a @ (d[:, None] * (a @ x))),
        ),
    }  # fmt: skip
    for name, (ours, by_hand) in ways.items():
        times = least({"ours": ours, "by hand": by_hand}, rounds)
        show(name, times["by hand"], times["ours"], "by hand, two by two")


def block_sparse(rounds: int) -> None:
    """A contraction of blocks of 16 x 16, two fifths of them stored, against NumPy's of all elements."""
    rng = np.random.default_rng(0)
    x, y = (
        rng.standard_normal((128, 2, 128)) * np.kron(rng.random((8, 1, 8)) < 0.4, np.ones((16, 2, 16))) for _ in "xy"
    )
    a, b = ow.asarray(x, format="coo"), ow.asarray(y, format="coo")
    text = "ijk,kjm->im"
    times = least({
        "dense": lambda: np.einsum(text, x, y, optimize=True), "one": lambda: ow.einsum(text, a, y),
        "two": lambda: ow.einsum(text, a, b),
    }, rounds)  # fmt: skip
    show("ijk,kjm->im, one operand in blocks", times["dense"], times["one"], "NumPy, dense")
    show("ijk,kjm->im, both in blocks", times["dense"], times["two"], "NumPy, dense")


def eigenpairs(rounds: int) -> None:
    """lobpcg of a Laplacian with 40,000 rows, ten iterations, against SciPy's."""
    t = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(200, 200))
    eye = sp.eye_array(200)
    k = sp.csr_array(sp.kron(t, eye) + sp.kron(eye, t))
    a, x = ow.asarray(k), np.random.default_rng(0).standard_normal((k.shape[0], 5))
    times = least({
        "SciPy": lambda: sla.lobpcg(k, x, maxiter=10, largest=False),
        "ours": lambda: ow.linalg.lobpcg(a, x, maxiter=10, largest=False),
    }, rounds)  # fmt: skip
    show("lobpcg, 10 iterations", times["SciPy"], times["ours"], "SciPy")


def layers(rounds: int) -> None:
    """PyTorch Geometric's GATConv of a Tensor against that of edges, forward and backward."""
    try:
        import torch_geometric.nn as pyg

        from openwork.nn.pyg import GATConv, GATv2Conv
    except ImportError:
        return
    n = 20_000
    a = ow.random((n, n), 10 / n, format="csr", rng=0)
    s = a.to_scipy().tocoo()
    edges = torch.from_numpy(np.stack([s.col, s.row]).astype(np.int64))
    t = ow.asarray(a, like="torch").astype("float32")
    x = torch.randn(n, 64, generator=torch.Generator().manual_seed(0))
    for name, layer, theirs in (
        ("GATConv", GATConv, pyg.GATConv), ("GATv2Conv", GATv2Conv, pyg.GATv2Conv),
    ):  # fmt: skip
        own, peer = (kind(64, 32, add_self_loops=False) for kind in (layer, theirs))

        def step(model: Any, graph: Any) -> None:
            model.zero_grad()
            model(x, graph).sum().backward()

        times = least({
            "PyG": lambda peer=peer: step(peer, edges), "ours": lambda own=own: step(own, t),
        }, max(rounds // 3, 3))  # fmt: skip
        show(f"{name}, forward and backward", times["PyG"], times["ours"], "PyG, edge_index")


PARTS: Any = (contractions, block_sparse, eigenpairs, layers)
