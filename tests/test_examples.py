from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
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


def agrees_with_networkx(module: ModuleType, g: Any, A: ow.Tensor, source: int) -> None:
    """Levels, distances, ranks and triangles of the graph are those that networkx finds."""
    nx = pytest.importorskip("networkx")
    n = len(g)
    levels = nx.single_source_shortest_path_length(g, source)
    np.testing.assert_array_equal(module.bfs_levels(A, source), [levels.get(k, -1) for k in range(n)])
    lengths = nx.single_source_dijkstra_path_length(g, source)
    np.testing.assert_allclose(module.shortest_paths(A, source), [lengths.get(k, np.inf) for k in range(n)], rtol=1e-12)
    ranks = nx.pagerank(g, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(module.pagerank(A, tolerance=1e-12), [ranks[k] for k in range(n)], atol=1e-8)
    both = nx.Graph(g.to_undirected())
    assert module.triangles(module.undirected(A)) == sum(nx.triangles(both).values()) // 3


@pytest.mark.parametrize("kind", ["directed", "undirected", "scale-free"])
def test_graphs_against_networkx(kind: str) -> None:
    g, A = graph(kind, 3)
    agrees_with_networkx(load("graphs"), g, A, 0)


FILES = [
    "networkit/karate.mtx.gz", "networkit/lesmis.mtx.gz", "networkit/jazz.mtx.gz", "networkit/polblogs.mtx.gz",
    "networkit/power.mtx.gz", "networkit/airfoil1.mtx.gz", "networkit/chesapeake.mtx",
    "lagraph/ldbc-directed-example.mtx", "lagraph/ldbc-undirected-example-unweighted.mtx", "lagraph/cover.mtx",
    "suitesparse/GD98_a.mtx", "suitesparse/Erdos971.mtx", "suitesparse/bcspwr06.mtx", "gnn/citeseer_adj.mtx.gz",
    *(pytest.param(f, marks=pytest.mark.slow) for f in ("networkit/wiki-Vote.mtx.gz", "gnn/p2p-Gnutella31.mtx.gz")),
]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_real_graphs_against_networkx(name: str, data_dir: Path) -> None:
    nx = pytest.importorskip("networkx")
    sio = pytest.importorskip("scipy.io")
    path = data_dir / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    module = load("graphs")
    m = abs(sio.mmread(path).tocsr())
    m.setdiag(0)
    m.eliminate_zeros()
    g = nx.from_scipy_sparse_array(m.astype(float), create_using=nx.DiGraph)
    A = module.read_graph(str(path))
    assert A.nse == g.number_of_edges()
    degrees = np.diff(m.indptr)
    agrees_with_networkx(module, g, A, int(degrees.argmax()))


def test_a_file_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = load("graphs")
    edges = np.array([[0, 1, 2, 0, 2], [1, 2, 0, 0, 3]])
    path = str(tmp_path / "graph.mtx")
    ow.write(path, ow.sparse_coo_tensor(edges, np.array([1.0, -2, 1, 9, 4]), (4, 4)))
    module.main([path])
    text = capsys.readouterr().out
    assert "nodes      4, edges 4, most from node 2 (2)" in text
    assert "levels     2, 4 nodes reached" in text
    assert "distances  up to 4" in text
    assert "triangles  1" in text
    ow.write(path, ow.sparse_coo_tensor(edges, np.ones(5), (4, 5)))
    with pytest.raises(ValueError, match="is square"):
        module.main([path])


TRAINED = {
    "gcn": 0.6, "link_prediction": 0.6, "pruned_mlp": 0.5, "factorization": 0.01, "bag_of_words": 0.8,
    "sparse_attention": 7.0,
}  # fmt: skip
"""What each example of training passes on generated data, shortened; bits for a character stay below."""


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch on one thread: small steps on many wait for each other where tests share the processors."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.ci
@pytest.mark.thin(2)
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", TRAINED)
def test_training_on_generated_data(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENWORK_DATA", str(tmp_path))
    sparse, dense = load(name).main(["--quick"])
    assert (sparse < TRAINED[name]) == (name == "sparse_attention")
    assert sparse == pytest.approx(dense, abs=0.1 if name == "pruned_mlp" else 0.03)
    text = capsys.readouterr().out
    assert "published" not in text
    for line in ("data       ", "sparse     ", "dense      "):
        assert f"\n{line}" in f"\n{text}"


def rows_of_examples() -> list[tuple[str, str, float, float, str]]:
    """The table of docs/torch.md: program, its argument or "", the sparse and the dense figure, what is published."""
    text = (EXAMPLES.parent / "docs/torch.md").read_text()
    rows = re.findall(r"^\| `python examples/(\w+)\.py ?(\S*)` \|[^|]*\|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|", text, re.M)
    return [(name, path, number(sparse), number(dense), published) for name, path, sparse, dense, published in rows]


def number(text: str) -> float:
    """The first number of a text; of one in percent the part of one."""
    value = float(re.search(r"[\d.]+", text)[0])  # type: ignore[index]
    return value / 100 if "%" in text else value


def test_the_table_has_every_example_and_each_sparse_figure_is_its_dense_ones() -> None:
    rows = rows_of_examples()
    assert {name for name, *_ in rows} == TRAINED.keys()
    for name, _, sparse, dense, published in rows:
        assert abs(sparse - dense) <= 0.01, name
        if "none" not in published:
            least, *within = re.findall(r"[\d.]+", published)[:2] if "±" in published else [number(published)]
            scale = 100 if "±" in published else 1
            assert sparse >= (float(least) - sum(map(float, within))) / scale, name


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("name", "path", "sparse", "dense", "published"), rows_of_examples())
def test_examples_converge_to_the_figures_of_the_table(
    name: str, path: str, sparse: float, dense: float, published: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENWORK_DATA", str(data_dir))
    module = load(name)
    arguments = [str(p) for p in data_dir.rglob(path)][:1] if path else []
    paths = getattr(module, "DATA", [])
    if (path and not arguments) or not all(p.exists() for p in ([paths] if isinstance(paths, Path) else paths)):
        pytest.skip(f"no data for {name} {path} here")
    assert module.main(arguments) == pytest.approx((sparse, dense), rel=0.02)


def test_files_are_read_for_training(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    graph, bags, images = tmp_path / "graph.npz", tmp_path / "bags.svm", tmp_path / "images.mtx"
    arrays: dict[str, Any] = {}
    for part in ("adj", "attr"):  # 0 -> 1, 0 -> 2, with the row of 0 not sorted
        arrays |= {
            f"{part}_indptr": np.array([0, 2, 2, 2]), f"{part}_indices": np.array([2, 1]),
            f"{part}_data": np.array([3.0, 1.0]), f"{part}_shape": np.array([3, 3]),
        }  # fmt: skip
    np.savez(graph, labels=np.array([0, 1, 1], np.int8), **arrays)
    A, X, labels = load("gcn").read(str(graph))
    assert A.to_dense().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert X.to_dense().tolist() == [[0, 1, 3], [0, 0, 0], [0, 0, 0]]
    assert labels.tolist() == [0, 1, 1]
    bags.write_text("-1 1:1 3:2\n+1 2:1\n")
    X, y = load("bag_of_words").read(str(bags))
    assert X.to_dense().tolist() == [[1, 0, 2], [0, 1, 0]]
    assert y.tolist() == [0, 1]
    ow.write(images, ow.asarray(np.array([[1.0, 2, 0, 0]])))
    pixels, turns = load("pruned_mlp").turned(str(images))
    assert pixels.tolist() == [[1, 2, 0, 0], [2, 0, 1, 0], [0, 0, 2, 1], [0, 1, 0, 2]]
    assert torch.equal(turns, torch.arange(4))


def test_pagerank_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = load("pagerank_on_disk")
    rank = module.main(["--scale", "6", "--edges", "900", "--folder", str(tmp_path), "--steps", "60"])
    assert "64 nodes" in capsys.readouterr().out
    (source, target), _ = next(module.edges(6, 900))
    A = ow.sparse_coo_tensor(np.stack([source, target]), np.ones(900), (64, 64))
    np.testing.assert_allclose(rank, load("graphs").pagerank(A.asformat("csr"), tolerance=1e-12), atol=1e-6)
