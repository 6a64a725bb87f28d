"""Graph functions over every format against networkx and SciPy's csgraph; wrong graphs and arguments."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sps
from scipy.sparse import csgraph

import openwork as ow
from openwork import graph

FORMATS = ("csr", "csc", "coo", "dcsr", "bsr(2, 2)", "dia", "bitmap", "dense", "ell(60)")
GRAPHS = {
    "random": lambda: nx.gnm_random_graph(60, 150, seed=2, directed=True),
    "two parts": lambda: nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (3, 3)]),
    "path": lambda: nx.path_graph(20, create_using=nx.DiGraph),
    "star": lambda: nx.star_graph(12).to_directed(),
    "no edges": lambda: nx.empty_graph(5, create_using=nx.DiGraph),
    "karate": lambda: nx.karate_club_graph().to_directed(),
}


def numbered(name: str) -> tuple[Any, np.ndarray[Any, Any]]:
    g = nx.convert_node_labels_to_integers(GRAPHS[name](), ordering="sorted")
    return g, nx.to_numpy_array(g, weight=None)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("spec", FORMATS)
def test_searches_and_components(name: str, spec: str) -> None:
    g, x = numbered(name)
    a = ow.asarray(x, format=spec)
    want = nx.single_source_shortest_path_length(g, 0)
    levels, parents = graph.bfs(a, 0, parents=True)
    assert levels.tolist() == [want.get(k, -1) for k in range(len(g))]
    for v, u in enumerate(parents.tolist()):
        assert (u == -1) == (levels[v] <= 0)
        assert u == -1 or (x[u, v] and levels[v] == levels[u] + 1)
    for connection in ("weak", "strong"):
        count, labels = graph.components(a, connection=connection)
        n, theirs = csgraph.connected_components(sps.csr_array(x), connection=connection)
        assert count == n
        assert len(set(zip(labels.tolist(), theirs.tolist(), strict=True))) == n
        if connection == "strong":
            assert all(labels[u] >= labels[v] for u, v in np.argwhere(x))


@pytest.mark.parametrize("name", GRAPHS)
def test_ranks_and_counts(name: str) -> None:
    g, x = numbered(name)
    both = nx.Graph(g)
    for spec in ("csr", "csc", "coo"):
        a = ow.asarray(x, format=spec)
        rank = graph.pagerank(a, tolerance=1e-13)
        np.testing.assert_allclose(
            rank, list(nx.pagerank(g, tol=1e-13, max_iter=2000, weight=None).values()), atol=1e-9
        )
        np.testing.assert_allclose(rank.sum(), 1)
        assert graph.triangles(a) == sum(nx.triangles(nx.Graph(both)).values()) // 3
        np.testing.assert_allclose(graph.betweenness(a), list(nx.betweenness_centrality(g).values()), atol=1e-12)
    loops = nx.Graph(both)
    loops.remove_edges_from(nx.selfloop_edges(loops))
    assert graph.core_numbers(ow.asarray(x, format="csr")).tolist() == list(nx.core_number(loops).values())
    s = ow.asarray(both) if len(both.edges) else ow.asarray(x, format="csr")
    want = nx.betweenness_centrality(both, normalized=False)
    np.testing.assert_allclose(
        graph.betweenness(s, directed=False, normalized=False), [want[k] for k in both.nodes], atol=1e-12
    )


def test_distances_are_csgraphs() -> None:
    rng = np.random.default_rng(5)
    x = np.where(rng.random((30, 30)) < 0.1, rng.random((30, 30)), 0)
    a = ow.asarray(x, format="csc")
    np.testing.assert_allclose(graph.shortest_paths(a, 3), csgraph.dijkstra(sps.csr_array(x), indices=3))
    np.testing.assert_allclose(graph.sssp(a, [3, -1]), csgraph.dijkstra(sps.csr_array(x), indices=[3, 29]))
    falling = np.where(np.triu(x, 1), -np.triu(x, 1), 0)
    down = ow.asarray(falling, format="csr")
    want = csgraph.bellman_ford(sps.csr_array(falling), indices=0)
    np.testing.assert_allclose(graph.shortest_paths(down, 0), want)
    np.testing.assert_allclose(graph.shortest_paths(down, 0, method="bellman_ford"), want)
    with pytest.raises(ValueError, match="negative weight"):
        graph.shortest_paths(down, 0, method="dijkstra")
    with pytest.raises(ValueError, match="cycle of negative weight"):
        graph.shortest_paths(ow.asarray(np.array([[0, -1.0], [-1.0, 0]]), format="csr"), 0)


@pytest.mark.parametrize("method", ["auto", "dijkstra", "bellman_ford"])
@pytest.mark.parametrize("edges", [[], [(0, 0)], [(0, 1)], [(1, 2), (0, 1), (0, 2)], [(k, k + 1) for k in range(4)]])
def test_distances_of_few_edges(edges: list[tuple[int, int]], method: str) -> None:
    x = np.zeros((5, 5))
    for k, edge in enumerate(edges):
        x[edge] = k + 1
    for spec in ("csr", "coo", "dcsr"):
        np.testing.assert_array_equal(
            graph.shortest_paths(ow.asarray(x, format=spec), range(5), method=method),
            csgraph.shortest_path(sps.csr_array(x)),
        )


def test_stored_zeros_are_edges_and_padding_is_none() -> None:
    stored = ow.sparse_coo_tensor(np.array([[0, 1], [1, 2]]), np.array([0.0, 5.0]), (3, 3))
    assert graph.bfs(stored, 0).tolist() == [0, 1, 2]
    assert graph.bfs(stored.prune(), 0).tolist() == [0, -1, -1]
    assert graph.shortest_paths(stored, 0).tolist() == [0, 0, 5]
    assert graph.bfs(ow.asarray(stored.to_numpy(), format="bsr(3, 3)"), 1).tolist() == [-1, 0, 1]
    doubled = ow.sparse_coo_tensor(np.array([[0, 0, 1], [1, 1, 2]]), np.ones(3), (3, 3))
    assert graph.triangles(doubled) == 0
    assert graph.core_numbers(doubled).tolist() == [1, 1, 1]


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_index_widths_and_libraries(width: Any) -> None:
    _, x = numbered("random")
    s = sps.csr_array(x)
    s.indices, s.indptr = s.indices.astype(width), s.indptr.astype(width)
    want = graph.bfs(ow.asarray(x, format="csr"), 0)
    assert graph.bfs(s, 0).tolist() == want.tolist()
    assert graph.bfs(s, 0).dtype == width
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.from_numpy(x).to_sparse_csr())
    levels = graph.bfs(t, 0)
    assert isinstance(levels, torch.Tensor)
    assert levels.tolist() == want.tolist()
    for name in ("pagerank", "core_numbers", "betweenness"):
        got = getattr(graph, name)(t)
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), getattr(graph, name)(ow.asarray(x, format="csr")))
    assert graph.triangles(t) == graph.triangles(s)


@pytest.mark.parametrize("spec", ["csr", "coo", "bsr(2, 2)"])
def test_samples_are_neighbours(spec: str) -> None:
    _, x = numbered("random")
    x = x * np.arange(1, 61)
    a, seeds = ow.asarray(x, format=spec), [3, 0, 3, -1]
    for k in (0, 1, 2, 50):
        s = graph.sample_neighbors(a, seeds, k, rng=1)
        got = s.to_numpy()
        assert s.format == ow.format("csr")
        assert np.diff(s.pos(1)).tolist() == [min(k, np.count_nonzero(x[u])) for u in seeds]
        assert ((got == 0) | (got == x[seeds])).all()
    same = [graph.sample_neighbors(a, seeds, 1, rng=7).to_numpy() for _ in range(2)]
    np.testing.assert_array_equal(*same)
    star = ow.asarray(nx.star_graph(40))
    drawn = [int(graph.sample_neighbors(star, [0], 1, rng=r).crd(1)[0]) for r in range(400)]
    assert len(set(drawn)) > 30


def test_sampled_sources_estimate() -> None:
    _, x = numbered("karate")
    a = ow.asarray(x, format="csr")
    np.testing.assert_allclose(graph.betweenness(a, sources=range(34)), graph.betweenness(a))
    assert graph.betweenness(a, sources=[]).sum() == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a: graph.bfs(ow.zeros((2, 3), format="csr"), 0), ow.ShapeError, "a graph's matrix is square"),
        (lambda a: graph.bfs(ow.zeros((2, 2, 2), format="coo"), 0), ow.ShapeError, "square"),
        (lambda a: graph.bfs(a + 1, 0), ow.UnsupportedError, "would be edges between all nodes"),
        (lambda a: graph.bfs(a, 60), IndexError, "source 60 is out of bounds for a graph of 60 nodes"),
        (lambda a: graph.bfs(a, [0, -61]), IndexError, "source -61"),
        (lambda a: graph.bfs(a, 1.5), TypeError, "source is an integer"),
        (lambda a: graph.components(a, connection="odd"), ow.UnsupportedError, "supported: weak, strong"),
        (lambda a: graph.pagerank(a, damping=1), ValueError, "less than 1"),
        (lambda a: graph.pagerank(a * -1), ValueError, "a weight is negative"),
        (lambda a: graph.pagerank(a, max_iterations=1), ValueError, "no convergence in 1"),
        (lambda a: graph.pagerank(a, personalization=np.ones(3)), ow.ShapeError, r"expected \(60,\)"),
        (lambda a: graph.pagerank(a, personalization=np.zeros(60)), ValueError, "shares from 0"),
        (lambda a: graph.shortest_paths(a, 0, method="odd"), ow.UnsupportedError, "supported: auto"),
        (lambda a: graph.shortest_paths(a * 1j, 0), ow.DTypeError, "no order"),
        (lambda a: graph.sample_neighbors(a, [0], -1), ValueError, "k is at least 0"),
        (lambda a: graph.sample_neighbors(a, 0, 1), ow.ShapeError, "one dimension"),
        (lambda a: graph.bfs("graph", 0), (TypeError, ow.UnsupportedError), "asarray"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call(ow.asarray(numbered("random")[1], format="csr"))


def test_no_nodes_and_one() -> None:
    none, one = ow.zeros((0, 0), format="csr"), ow.asarray(np.array([[1.0]]), format="csr")
    assert graph.components(none)[0] == graph.triangles(none) == 0
    assert graph.pagerank(none).shape == graph.core_numbers(none).shape == graph.betweenness(none).shape == (0,)
    assert (graph.bfs(one, 0).tolist(), graph.components(one)[0], graph.core_numbers(one).tolist()) == ([0], 1, [0])
    assert graph.pagerank(one).tolist() == [1.0]
