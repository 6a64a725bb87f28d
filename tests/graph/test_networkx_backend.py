"""networkx's functions by openwork's backend: networkx's results, through its dispatcher."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openwork.graph import networkx_backend

nx = pytest.importorskip("networkx")

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved")
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point is known to networkx, as where the package is installed."""
    made = EntryPoint("openwork", "openwork.graph.networkx_backend", "networkx.backends")
    monkeypatch.setitem(nx.utils.backends.backends, "openwork", made)
    monkeypatch.setitem(nx.utils.backends.backend_info, "openwork", {})
    dispatcher = nx.utils.backends._dispatchable  # it chooses its way when networkx is imported
    monkeypatch.setattr(dispatcher, "__call__", dispatcher._call_if_any_backends_installed)


def graphs(directed: bool) -> Iterator[Any]:
    for seed in range(4):
        made = nx.gnp_random_graph(30, 0.03 + 0.05 * seed, seed=seed, directed=directed)
        rng = np.random.default_rng(seed)
        for k, (_, _, data) in enumerate(made.edges(data=True)):
            if k % 4:
                data["weight"] = float(rng.integers(1, 9))
        yield nx.relabel_nodes(made, {k: f"node {k}" for k in range(15)})


EACH = ("pagerank", "betweenness_centrality")
SINGLE = (
    "single_source_shortest_path_length", "single_source_dijkstra_path_length", "single_source_bellman_ford_path_length",
)  # fmt: skip
SETS = {"connected_components": False, "weakly_connected_components": True, "strongly_connected_components": True}
COUNTS = {
    "number_connected_components": False, "number_weakly_connected_components": True,
    "number_strongly_connected_components": True, "is_connected": False, "is_weakly_connected": True,
    "is_strongly_connected": True,
}  # fmt: skip


def close(got: dict[Any, float], want: dict[Any, float], tolerance: float = 1e-9) -> None:
    assert set(got) == set(want)
    for node, value in want.items():
        assert abs(got[node] - value) <= tolerance, node


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", EACH)
def test_a_number_for_each_node(name: str, directed: bool) -> None:
    function = getattr(nx, name)
    for g in graphs(directed):
        close(function(g, backend="openwork"), function(g), 1e-5 if name == "pagerank" else 1e-9)
    if name == "pagerank":
        share = {node: 1.0 + k for k, node in enumerate(list(g)[:5])}
        for options in ({"weight": None}, {"personalization": share}, {"alpha": 0.5, "tol": 1e-9}):
            close(nx.pagerank(g, backend="openwork", **options), nx.pagerank(g, **options), 1e-5)
    else:
        close(function(g, normalized=False, backend="openwork"), function(g, normalized=False))


def test_core_numbers() -> None:
    for g in graphs(False):
        assert nx.core_number(g, backend="openwork") == nx.core_number(g)
    g.add_edge(0, 0)
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.core_number(g, backend="openwork")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SINGLE)
def test_lengths_of_ways(name: str, directed: bool) -> None:
    function = getattr(nx, name)
    for g in graphs(directed):
        for source in ("node 0", 20):
            close(function(g, source, backend="openwork"), function(g, source))
    if name != SINGLE[2]:
        close(function(g, 20, cutoff=3, backend="openwork"), function(g, 20, cutoff=3))
    with pytest.raises(nx.NodeNotFound):
        function(g, "nobody", backend="openwork")


def test_negative_weights() -> None:
    g = nx.DiGraph()
    g.add_weighted_edges_from([(0, 1, 4), (0, 2, 1), (2, 1, -2)])
    want = nx.single_source_bellman_ford_path_length(g, 0)
    assert nx.single_source_bellman_ford_path_length(g, 0, backend="openwork") == want
    with pytest.raises(ValueError, match="Contradictory"):
        nx.single_source_dijkstra_path_length(g, 0, backend="openwork")
    g.add_edge(1, 0, weight=-9)
    with pytest.raises(nx.NetworkXUnbounded):
        nx.single_source_bellman_ford_path_length(g, 0, backend="openwork")


@pytest.mark.parametrize("name", SETS)
def test_components(name: str) -> None:
    function = getattr(nx, name)
    for g in graphs(SETS[name]):
        got, want = (sorted(map(sorted_texts, function(g, **o))) for o in ({"backend": "openwork"}, {}))
        assert got == want
    with pytest.raises(nx.NetworkXNotImplemented):
        list(function(next(graphs(not SETS[name])), backend="openwork"))


def sorted_texts(nodes: set[Any]) -> list[str]:
    return sorted(map(str, nodes))


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_components(name: str) -> None:
    function = getattr(nx, name)
    for g in graphs(COUNTS[name]):
        assert function(g, backend="openwork") == function(g)


def test_one_component_and_graphs_of_nothing() -> None:
    g = next(graphs(False))
    assert nx.node_connected_component(g, 20, backend="openwork") == nx.node_connected_component(g, 20)
    empty = nx.Graph()
    assert nx.pagerank(empty, backend="openwork") == {}
    assert nx.betweenness_centrality(empty, backend="openwork") == {}
    assert nx.core_number(empty, backend="openwork") == {}
    assert nx.number_connected_components(empty, backend="openwork") == 0
    assert list(nx.connected_components(empty, backend="openwork")) == []
    with pytest.raises(nx.NetworkXPointlessConcept):
        nx.is_connected(empty, backend="openwork")
    lone = nx.empty_graph(3)
    assert nx.number_connected_components(lone, backend="openwork") == 3
    close(nx.pagerank(lone, backend="openwork"), nx.pagerank(lone))


def test_what_is_left_to_networkx() -> None:
    g, multi = next(graphs(False)), nx.MultiGraph([(0, 1), (0, 1)])
    for call in (
        lambda: nx.betweenness_centrality(g, k=3, backend="openwork"),
        lambda: nx.betweenness_centrality(g, weight="weight", backend="openwork"),
        lambda: nx.betweenness_centrality(g, endpoints=True, backend="openwork"),
        lambda: nx.single_source_dijkstra_path_length(g, 20, weight=lambda u, v, d: 2, backend="openwork"),
        lambda: nx.pagerank(g, nstart={20: 1}, backend="openwork"),
        lambda: nx.pagerank(g, dangling={20: 1}, backend="openwork"),
        lambda: nx.core_number(next(graphs(True)), backend="openwork"),
        lambda: nx.single_source_dijkstra_path_length(multi, 0, backend="openwork"),
        lambda: nx.triangles(g, backend="openwork"),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_a_graph_goes_there_and_back() -> None:
    from openwork.graph.networkx_backend import convert_from_nx, convert_to_nx

    for g in (*graphs(False), *graphs(True)):
        back = convert_to_nx(convert_from_nx(g, edge_attrs={"weight": 1}))
        assert (back.is_directed(), list(back)) == (g.is_directed(), list(g))
        want = {(u, v): w for u, v, w in g.edges(data="weight", default=1)}
        got = {(u, v): w for u, v, w in back.edges(data="weight")}
        assert {frozenset(e): w for e, w in got.items()} == {frozenset(e): w for e, w in want.items()}
    assert convert_to_nx(3) == 3


@pytest.mark.ci
def test_networkx_finds_the_entry_point(tmp_path: Path) -> None:
    """By the line of pyproject.toml, in a process of its own."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    folder = tmp_path / "openwork_entry-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: openwork-entry\nVersion: 0\n")
    lines = "".join(f"{k} = {v}\n" for k, v in points["networkx.backends"].items())
    (folder / "entry_points.txt").write_text(f"[networkx.backends]\n{lines}")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT / 'src')!r}]\n"
        "import networkx as nx\nassert 'openwork' not in sys.modules\n"
        "with nx.config(backend_priority=['openwork']):\n"
        "    ranks = nx.pagerank(nx.karate_club_graph())\n"
        "assert 'openwork.graph.networkx_backend' in sys.modules\n"
        "print(max(ranks, key=ranks.get))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "33", run.stderr[-2000:]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_edges_of_multigraphs_without_weights_are_counted(kind: Any) -> None:
    g = kind(
        [(0, 1, {"weight": 5.0}), (0, 1, {"weight": 0.5}), (0, 2, {"weight": 3.0}), (1, 2), (2, 3), (2, 3), (3, 0)]
    )
    for weight in (None, "weight"):
        close(nx.pagerank(g, weight=weight, backend="openwork"), nx.pagerank(g, weight=weight), 1e-4)
    added_up = networkx_backend.convert_from_nx(g, edge_attrs={"weight": 1})
    assert networkx_backend.can_run("pagerank", (added_up,), {"weight": None}) is not True


def test_alpha_of_1_and_cutoffs_between_numbers() -> None:
    g = nx.path_graph(6)
    assert networkx_backend.can_run("pagerank", (g,), {"alpha": 1.0}) is not True
    assert networkx_backend.can_run("pagerank", (g,), {"alpha": 0.5}) is True
    for cutoff in (0, 1, 2.5, 3, float("inf")):
        want = nx.single_source_shortest_path_length(g, 0, cutoff=cutoff)
        assert nx.single_source_shortest_path_length(g, 0, cutoff=cutoff, backend="openwork") == want
