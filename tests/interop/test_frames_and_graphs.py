"""pandas' frames and networkx's graphs: out and in again, of every format, with labels, fill values and wrong shapes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import openwork as ow

X = np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 0], [0, -1, 4.0]])
FORMATS = ("csr", "csc", "coo", "bsr(2, 3)", "dia", "bitmap", "dense", "ell(3)")


@pytest.mark.parametrize("spec", FORMATS)
def test_a_frame_and_back(spec: str) -> None:
    frame = ow.asarray(X, format=spec).to_pandas()
    assert all(isinstance(d, pd.SparseDtype) for d in frame.dtypes)
    np.testing.assert_array_equal(frame.to_numpy(), X)
    back = ow.asarray(frame)
    assert back.format == ow.format("csc")
    np.testing.assert_array_equal(back.to_numpy(), X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64"])
def test_types_and_fill_values(dtype: str) -> None:
    for fill in (0, 1):
        t = ow.asarray(X.astype(dtype), format="csr", fill_value=fill)
        frame = t.to_pandas()
        assert {str(d.subtype) for d in frame.dtypes} == {dtype}
        assert {d.fill_value for d in frame.dtypes} == {fill}
        assert (ow.asarray(frame).nse, ow.asarray(frame).fill_value) == (t.nse, fill)
        np.testing.assert_array_equal(ow.asarray(frame).to_numpy(), X.astype(dtype))


def test_labels_vectors_and_wrong_shapes() -> None:
    t = ow.asarray(X, format="csr")
    frame = t.to_pandas(index=list("wxyz"), columns=["a", "a", "b"])
    assert frame.loc["w"].tolist() == [0, 1.5, 0]
    assert list(frame.columns) == ["a", "a", "b"]
    series = t[3].to_pandas(index=list("xyz"))
    assert (series["z"], str(series.dtype)) == (4.0, "Sparse[float64, 0.0]")
    np.testing.assert_array_equal(ow.asarray(series).to_numpy(), X[3])
    assert ow.zeros((0, 3), format="csr").to_pandas().shape == (0, 3)
    assert ow.zeros((3, 0), format="csr").to_pandas().shape == (3, 0)
    with pytest.raises(ow.ShapeError, match=r"two dimensions, a series one; got shape \(2, 2, 2\)"):
        ow.zeros((2, 2, 2), format="coo").to_pandas()
    with pytest.raises(ow.ShapeError, match="columns= of a vector"):
        t[0].to_pandas(columns=["a"])


@pytest.mark.filterwarnings("ignore:The 'sparse_index' parameter")
def test_before_pandas_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """The series are the same where pandas has no maker of sparse arrays from indices."""
    t = ow.asarray(X, format="csr", fill_value=2.0)
    want = t.to_pandas()
    monkeypatch.delattr(pd.arrays.SparseArray, "from_indices", raising=False)
    frame = t.to_pandas()
    pd.testing.assert_frame_equal(frame, want)
    assert {str(d) for d in frame.dtypes} == {"Sparse[float64, 2.0]"}


def test_over_torch() -> None:
    torch = pytest.importorskip("torch")
    t = ow.asarray(torch.from_numpy(X).to_sparse_csr())
    np.testing.assert_array_equal(t.to_pandas().to_numpy(), X)
    t.values.requires_grad_()
    np.testing.assert_array_equal(t.to_pandas().to_numpy(), X)


GRAPHS = {
    "undirected": lambda: nx.karate_club_graph(),
    "directed": lambda: nx.gn_graph(20, seed=1),
    "loops": lambda: nx.Graph([(0, 0), (0, 1)]),
    "without edges": lambda: nx.empty_graph(4),
    "several edges": lambda: nx.MultiDiGraph([(0, 1), (0, 1), (1, 2)]),
    "names": lambda: nx.Graph([("a", "b"), ("b", "c")]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_adjacencies(name: str) -> None:
    graph: Any = GRAPHS[name]()
    a = ow.asarray(graph)
    assert a.format == ow.format("csr")
    np.testing.assert_array_equal(a.to_numpy(), nx.to_numpy_array(graph))
    again = a.to_networkx(nx.DiGraph if graph.is_directed() else nx.Graph)
    assert again.number_of_nodes() == graph.number_of_nodes()
    np.testing.assert_array_equal(nx.to_numpy_array(again), a.to_numpy())


@pytest.mark.parametrize("spec", FORMATS)
def test_a_graph_of_any_format(spec: str) -> None:
    x = X[:3]
    graph = ow.asarray(x, format=spec).to_networkx()
    assert graph.is_directed()
    assert {(u, v): w for u, v, w in graph.edges(data="weight")} == {(0, 1): 1.5, (1, 0): 2.0}


def test_what_is_no_graph() -> None:
    with pytest.raises(ow.ShapeError, match="expected a square matrix"):
        ow.asarray(X, format="csr").to_networkx()
    with pytest.raises(ow.ShapeError, match="no nodes"):
        ow.asarray(nx.Graph())
    with pytest.raises(ow.UnsupportedError, match="unspecified elements are 1"):
        (ow.asarray(X[:3], format="csr") + 1).to_networkx()
