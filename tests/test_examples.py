from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import openwork as ow

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_graphs_run(capsys: pytest.CaptureFixture[str]) -> None:
    load("graphs").main()
    text = capsys.readouterr().out
    assert "[0 1 1 2 3 4]" in text
    assert "[0. 1. 3. 4. 5. 6.]" in text
    assert "triangles  1" in text


def graph(kind: str, seed: int) -> tuple[Any, ow.Tensor]:
    nx = pytest.importorskip("networkx")
    if kind == "scale-free":
        g = nx.DiGraph(nx.scale_free_graph(150, seed=seed))
    else:
        g = nx.gnp_random_graph(120, 0.03, seed=seed, directed=kind == "directed")
    g.remove_edges_from(list(nx.selfloop_edges(g)))
    rng = np.random.default_rng(seed)
    for _, _, data in g.edges(data=True):
        data["weight"] = float(rng.integers(1, 10))
    m = nx.to_scipy_sparse_array(g, nodelist=range(len(g)), weight="weight", format="csr", dtype=float)
    return g, ow.asarray(m)


@pytest.mark.parametrize("kind", ["directed", "undirected", "scale-free"])
def test_graphs_against_networkx(kind: str) -> None:
    nx = pytest.importorskip("networkx")
    module = load("graphs")
    g, A = graph(kind, 3)
    n = len(g)
    levels = nx.single_source_shortest_path_length(g, 0)
    np.testing.assert_array_equal(module.bfs_levels(A, 0), [levels.get(k, -1) for k in range(n)])
    lengths = nx.single_source_dijkstra_path_length(g, 0)
    np.testing.assert_array_equal(module.shortest_paths(A, 0), [lengths.get(k, np.inf) for k in range(n)])
    ranks = nx.pagerank(g, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(module.pagerank(A, tolerance=1e-12), [ranks[k] for k in range(n)], atol=1e-8)
    if kind == "undirected":
        assert module.triangles(A) == sum(nx.triangles(g).values()) // 3
