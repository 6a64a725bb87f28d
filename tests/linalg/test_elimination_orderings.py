"""Orders for elimination: permutations of any structure, and the elements that their factors have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as scipys

import openwork as ow
from openwork.errors import ShapeError, UnsupportedError
from openwork.linalg.direct_solver.dissection import nested_dissection, separated
from openwork.linalg.direct_solver.elimination_tree import column_counts, elimination_tree, permuted, postorder
from openwork.linalg.direct_solver.graph import Graph, adjacency
from openwork.linalg.direct_solver.minimum_degree import minimum_degree
from openwork.linalg.direct_solver.symbolic import analyse

METHODS = ("amd", "nd", "rcm", "colamd", "natural")


def grid(*extents: int) -> Any:
    total = sp.csr_array((1, 1))
    for n in extents:
        line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
        total = sp.kron(total, sp.eye_array(n)) + sp.kron(sp.eye_array(total.shape[0]), line)
    return sp.csr_array(total)


def random(n: int, density: float, seed: int) -> Any:
    return sp.csr_array(sp.random_array((n, n), density=density, rng=seed))


def star(n: int) -> Any:
    rows = np.concatenate([np.zeros(n - 1, int), np.arange(1, n)])
    return sp.csr_array((np.ones(2 * n - 2), (rows, np.roll(rows, n - 1))), (n, n))


STRUCTURES = {
    "empty": sp.csr_array((0, 0)),
    "one": sp.csr_array(np.ones((1, 1))),
    "zero": sp.csr_array((7, 7)),
    "diagonal": sp.csr_array(sp.eye_array(9)),
    "full": sp.csr_array(np.ones((12, 12))),
    "star": star(3000),
    "line": grid(700),
    "grid": grid(23, 31),
    "cube": grid(9, 8, 10),
    "unsymmetric": random(400, 0.01, 1),
    "sparse": random(2000, 0.0004, 2),
    "crowded": random(300, 0.2, 3),
    "many": sp.block_diag([grid(8, 9), star(40), random(60, 0.1, 4), sp.csr_array((5, 5))], format="csr"),
    "arrow": sp.csr_array(grid(15, 15) + sp.csr_array((np.ones(225), (np.zeros(225, int), np.arange(225))), (225, 225))),
}  # fmt: skip


def elements(A: Any, order: Any) -> int:
    """Elements of the factor, by elimination on sets."""
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    neighbours: list[set[int]] = [set() for _ in order]
    for i, j in zip(*(sp.coo_array(A).coords), strict=True):
        if i != j:
            neighbours[rank[i]].add(int(rank[j]))
            neighbours[rank[j]].add(int(rank[i]))
    total = len(order)
    for v in range(len(order)):
        later = {u for u in neighbours[v] if u > v}
        total += len(later)
        if later:
            neighbours[min(later)] |= later - {min(later)}
    return total


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("method", METHODS)
def test_every_structure_gets_a_permutation(name: str, method: str) -> None:
    A = STRUCTURES[name]
    order = ow.linalg.ordering(ow.asarray(A), method)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(A.shape[0]))


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", [n for n in STRUCTURES if n not in ("star",)])
@pytest.mark.parametrize("method", ["amd", "nd", "rcm"])
def test_elements_are_counted_as_elimination_makes_them(name: str, method: str) -> None:
    A = STRUCTURES[name]
    order = ow.linalg.ordering(ow.asarray(A), method)
    assert analyse(adjacency(A.indptr, A.indices), order, method).nse == elements(A, order)


@pytest.mark.parametrize(("extents", "bound"), [((60, 60), 1.1), ((14, 14, 14), 1.05)])
def test_fill_is_no_more_than_that_of_superlu(extents: tuple[int, ...], bound: float) -> None:
    A = grid(*extents)
    A = sp.csr_array(A + 0.1 * sp.eye_array(A.shape[0]))
    peer = scipys.splu(
        A.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )  # fmt: skip
    graph = adjacency(A.indptr, A.indices)
    for order in (minimum_degree(graph), nested_dissection(graph)):
        assert analyse(graph, order, "").nse <= bound * min(peer.L.nnz, peer.U.nnz)


def test_fill_is_no_more_than_that_of_qdldl() -> None:
    qdldl = pytest.importorskip("qdldl")
    A = sp.csc_matrix(grid(13, 13, 13) + sp.eye_array(13**3))
    L = qdldl.Solver(A).factors()[0]
    graph = adjacency(A.indptr, A.indices)
    assert analyse(graph, minimum_degree(graph), "").nse <= 1.05 * (L.nnz + A.shape[0])


def test_vertices_with_the_same_neighbours_are_dissected_as_one() -> None:
    nodes = grid(9, 9, 9)
    A = sp.csr_array(sp.kron(nodes, np.ones((3, 3))))
    shuffled = np.random.default_rng(0).permutation(A.shape[0])
    A = A[shuffled][:, shuffled]
    order = ow.linalg.ordering(ow.asarray(A), "nd")
    node = shuffled[order] // 3
    assert sorted(order.tolist()) == list(range(A.shape[0]))
    assert (node.reshape(-1, 3) == node[::3, None]).all()
    assert elements(nodes, node[::3]) < 1.1 * elements(nodes, ow.linalg.ordering(ow.asarray(nodes), "nd"))


def test_columns_are_ordered_for_row_exchanges() -> None:
    A = sp.csc_array(random(500, 0.006, 5) + 10 * sp.eye_array(500))
    order = ow.linalg.ordering(ow.asarray(A), "colamd")
    ours = scipys.splu(A[:, order], permc_spec="NATURAL").nnz
    assert ours <= 1.15 * scipys.splu(A, permc_spec="COLAMD").nnz
    assert 1.5 * ours < scipys.splu(A, permc_spec="NATURAL").nnz
    tall = sp.csr_array(sp.random_array((300, 90), density=0.03, rng=6))
    assert np.array_equal(np.sort(ow.linalg.ordering(ow.asarray(tall), "colamd")), np.arange(90))


def test_cuthill_mckee_keeps_the_band_narrow() -> None:
    A = grid(40, 12)
    mixed = np.random.default_rng(7).permutation(480)
    A = sp.csr_array(A[mixed][:, mixed])
    order = ow.linalg.ordering(ow.asarray(A), "rcm")
    i, j = sp.coo_array(A[order][:, order]).coords
    assert np.abs(i - j).max() <= 14


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ["grid", "cube", "crowded", "many", "star"])
def test_a_separator_separates(name: str) -> None:
    A = STRUCTURES[name]
    graph = adjacency(A.indptr, A.indices)
    part = separated([graph])[0]
    assert set(np.unique(part)) <= {0, 1, 2}
    owner = np.repeat(np.arange(graph.n), np.diff(graph.pos))
    assert not np.any((part[owner] == 0) & (part[graph.crd] == 1))
    assert np.bincount(part, minlength=3)[:2].max() <= 0.61 * graph.n + 1


def test_separators_of_cubes_cut_corners() -> None:
    A = grid(16, 16, 16)
    part = separated([adjacency(A.indptr, A.indices)])[0]
    assert np.count_nonzero(part == 2) < 0.9 * 16 * 16


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_both_widths_of_indices(kind: Any) -> None:
    A = STRUCTURES["cube"]
    graph = adjacency(A.indptr.astype(kind), A.indices.astype(kind))
    narrow = adjacency(A.indptr, A.indices)
    for method in (minimum_degree, nested_dissection):
        assert method(graph).dtype == kind
        assert np.array_equal(method(graph), method(narrow))


def test_a_halo_is_counted_and_not_eliminated() -> None:
    A = STRUCTURES["grid"]
    graph = adjacency(A.indptr, A.indices)
    halo = np.zeros(graph.n, np.int32)
    halo[::5] = 1
    assert np.array_equal(np.sort(minimum_degree(graph, halo)), np.flatnonzero(halo == 0))


def test_trees_and_counts_of_a_known_matrix() -> None:
    # edges 0-3 1-2 1-4 2-4 3-4: eliminating 0 .. 4 fills nothing
    A = np.zeros((5, 5))
    for i, j in ((0, 3), (1, 2), (1, 4), (2, 4), (3, 4)):
        A[i, j] = A[j, i] = 1
    A = sp.csr_array(A)
    graph = adjacency(A.indptr, A.indices)
    parent = elimination_tree(graph)
    assert parent.tolist() == [3, 2, 4, 4, -1]
    order = postorder(parent)
    assert sorted(order.tolist()) == list(range(5))
    at = np.argsort(order)
    assert all(parent[v] < 0 or at[parent[v]] > at[v] for v in range(5))
    moved = permuted(graph, order)
    counts = column_counts(moved, elimination_tree(moved))
    assert counts[at].tolist() == [2, 3, 2, 2, 1]


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dia", "bsr(2, 2)", "dcsr", "dense"])
def test_any_format(format: str) -> None:
    A = STRUCTURES["cube"]
    expected = ow.linalg.ordering(ow.asarray(A))
    assert np.array_equal(ow.linalg.ordering(ow.asarray(A).asformat(format)), expected)


def test_indices_are_of_the_tensor_s_library() -> None:
    torch = pytest.importorskip("torch")
    dense = torch.from_numpy(STRUCTURES["grid"].toarray())
    order = ow.linalg.ordering(ow.asarray(dense.to_sparse_csr().requires_grad_()))
    assert isinstance(order, torch.Tensor)
    assert np.array_equal(order.numpy(), ow.linalg.ordering(ow.asarray(STRUCTURES["grid"])))


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected a square matrix"):
        ow.linalg.ordering(ow.asarray(sp.csr_array((3, 4))))
    with pytest.raises(UnsupportedError, match="did you mean 'colamd'"):
        ow.linalg.ordering(ow.asarray(sp.csr_array((3, 3))), "coladm")
    assert Graph(np.zeros(1, np.int32), np.zeros(0, np.int32)).n == 0


def test_threads_change_no_order() -> None:
    graph = adjacency(*(lambda A: (A.indptr, A.indices))(grid(14, 15, 16)))
    before, orders = ow.get_num_threads(), []
    for threads in (1, 3):
        ow.set_num_threads(threads)
        orders.append(nested_dissection(graph))
    ow.set_num_threads(before)
    np.testing.assert_array_equal(orders[0], orders[1])
