"""networkx's functions that `openwork.graph` has, as a backend of networkx: `nx.pagerank(G, backend="openwork")`.

networkx finds this module by the entry point `networkx.backends` and calls what is named as its own functions, with its
own arguments, on graphs that `convert_from_nx` made. What `can_run` refuses networkx runs itself, or says so.
Source: networkx's guide to backends (3.4 and later).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from inspect import signature
from typing import Any

import numpy as np

import openwork as ow
from openwork import graph

__all__ = [
    "Graph", "betweenness_centrality", "can_run", "connected_components", "convert_from_nx", "convert_to_nx",
    "core_number", "is_connected", "is_strongly_connected", "is_weakly_connected", "node_connected_component",
    "number_connected_components", "number_strongly_connected_components", "number_weakly_connected_components",
    "pagerank", "should_run", "single_source_bellman_ford_path_length", "single_source_dijkstra_path_length",
    "single_source_shortest_path_length", "strongly_connected_components", "weakly_connected_components",
]  # fmt: skip

_LEFT: dict[str, Mapping[str, Any]] = {
    "pagerank": {"nstart": None, "dangling": None},
    "betweenness_centrality": {"k": None, "weight": None, "endpoints": False},
}
"""Arguments that are left to networkx unless they have these values."""
_PATHS = ("single_source_dijkstra_path_length", "single_source_bellman_ford_path_length")


class Graph:
    """A graph of networkx as its nodes, in its order, and their adjacency.

    Parameters
    ----------
    nodes : the n nodes; row k is node k
    adjacency : Tensor (n, n), an undirected edge both ways
    directed, multigraph : as the graph was
    """

    __networkx_backend__ = "openwork"

    def __init__(self, nodes: list[Hashable], adjacency: ow.Tensor, directed: bool, multigraph: bool) -> None:
        self.nodes, self.adjacency = nodes, adjacency
        self._directed, self._multigraph = directed, multigraph
        self.graph: dict[str, Any] = {}

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def at(self, node: Hashable) -> int:
        """A node's row. Raises networkx.NodeNotFound."""
        try:
            return self.nodes.index(node)
        except ValueError:
            from networkx import NodeNotFound

            raise NodeNotFound(f"Node {node} not found in graph") from None

    def named(self, values: Any) -> dict[Hashable, Any]:
        """The values of all nodes, one for each row, by node."""
        return dict(zip(self.nodes, np.asarray(values).tolist(), strict=True))


def convert_from_nx(
    G: Any, *, edge_attrs: Mapping[str, Any] | None = None, name: str | None = None, **attributes: Any
) -> Graph:
    """The Graph of networkx's: with an attribute of edges their weights, else 1 for each.

    edge_attrs : networkx's: the attribute and its value for edges without it
    name, attributes : what else networkx says of the call; of nodes' and graphs' attributes none are needed

    Raises NotImplementedError, which networkx understands, for several attributes and for weights that are no numbers.
    """
    if edge_attrs is not None and len(edge_attrs) > 1:
        raise NotImplementedError(f"openwork: {name}: one attribute of edges; got {', '.join(edge_attrs)}")
    nodes = list(G)
    at = {node: k for k, node in enumerate(nodes)}
    if edge_attrs:
        ((attribute, default),) = edge_attrs.items()
        edges = [(at[u], at[v], w) for u, v, w in G.edges(data=attribute, default=1 if default is None else default)]
    else:
        edges = [(at[u], at[v], 1.0) for u, v in G.edges()]
    ends = np.array([e[:2] for e in edges], np.int64).reshape(-1, 2)
    try:
        weights = np.array([e[2] for e in edges], np.float64)
    except (TypeError, ValueError):
        raise NotImplementedError(f"openwork: {name}: weights of edges are numbers") from None
    if not G.is_directed():
        twice = ends[:, 0] != ends[:, 1]
        ends, weights = np.concatenate([ends, ends[twice, ::-1]]), np.concatenate([weights, weights[twice]])
    n = len(nodes)
    adjacency = ow.sparse_coo_tensor(ends.T, weights, (n, n)).asformat("csr")
    return Graph(nodes, adjacency, G.is_directed(), G.is_multigraph())


def convert_to_nx(result: Any, **_: Any) -> Any:
    """A Graph as networkx's; other results are networkx's already."""
    if not isinstance(result, Graph):
        return result
    import networkx

    kind = networkx.DiGraph if result.is_directed() else networkx.Graph
    made = kind()
    made.add_nodes_from(result.nodes)
    coo = result.adjacency.to_scipy("coo")
    for u, v, w in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
        made.add_edge(result.nodes[u], result.nodes[v], weight=w)
    return made


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call is one of openwork's, or the reason why not."""
    try:
        given = signature(globals()[name]).bind_partial(*args, **kwargs).arguments
    except TypeError:
        return "it has arguments that networkx alone knows"
    for key, value in _LEFT.get(name, {}).items():
        if given.get(key, value) is not value:
            return f"{key}= is left to networkx"
    G = given.get("G")
    if name in _PATHS:
        if not isinstance(given.get("weight", "weight"), str):
            return "weights are an attribute of edges"
        if G is not None and G.is_multigraph():
            return "edges of multigraphs are added up, of which the shortest one counts"
    if name == "pagerank":
        if not 0 <= given.get("alpha", 0.85) < 1:
            return "alpha beyond 0 and 1 is left to networkx"
        if given.get("weight", "") is None and isinstance(G, Graph) and G.is_multigraph():
            return "the weights of a multigraph's edges were added up, and are no number of edges"
    if name == "core_number" and G is not None and G.is_directed():
        return "core numbers are of undirected graphs"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether the conversion is worth it, which it is for all of these."""
    return True


# -- networkx's functions ------------------------------------------------------------------------------------------


def pagerank(
    G: Graph, alpha: float = 0.85, personalization: Mapping[Hashable, float] | None = None, max_iter: int = 100,
    tol: float = 1e-6, nstart: None = None, weight: str | None = "weight", dangling: None = None,
) -> dict[Hashable, float]:  # fmt: skip
    """`networkx.pagerank`, by `graph.pagerank`. Raises networkx.PowerIterationFailedConvergence."""
    if not len(G):
        return {}
    jumps = None if personalization is None else [float(personalization.get(node, 0)) for node in G.nodes]
    if jumps is not None and not sum(jumps):
        raise ZeroDivisionError("pagerank: the sum of personalization is 0")
    counted = weight is not None or G.is_multigraph()  # converted without weights, edges were counted
    A = G.adjacency if counted else ow.pattern(G.adjacency).astype("float64")
    try:
        shares = graph.pagerank(A, damping=alpha, personalization=jumps, tolerance=tol, max_iterations=max_iter)
    except ValueError as error:
        if "no convergence" not in str(error):
            raise
        from networkx import PowerIterationFailedConvergence

        raise PowerIterationFailedConvergence(max_iter) from error
    return G.named(shares)


def betweenness_centrality(
    G: Graph, k: None = None, normalized: bool = True, weight: None = None, endpoints: bool = False, seed: Any = None
) -> dict[Hashable, float]:
    """`networkx.betweenness_centrality` of all nodes, by `graph.betweenness`."""
    if not len(G):
        return {}
    return G.named(graph.betweenness(G.adjacency, directed=G.is_directed(), normalized=normalized))


def core_number(G: Graph) -> dict[Hashable, int]:
    """`networkx.core_number`, by `graph.core_numbers`. Raises networkx.NetworkXNotImplemented for loops."""
    if not len(G):
        return {}
    if ow.count_nonzero(ow.pattern(ow.diagonal(G.adjacency))):
        from networkx import NetworkXNotImplemented

        raise NetworkXNotImplemented("Input graph has self loops which is not permitted.")
    return G.named(graph.core_numbers(G.adjacency))


def single_source_shortest_path_length(G: Graph, source: Hashable, cutoff: float | None = None) -> dict[Hashable, int]:
    """`networkx.single_source_shortest_path_length`, by `graph.bfs`."""
    return _reached(G, graph.bfs(G.adjacency, G.at(source)), None if cutoff is None else np.ceil(cutoff), -1)


def single_source_dijkstra_path_length(
    G: Graph, source: Hashable, cutoff: float | None = None, weight: str = "weight"
) -> dict[Hashable, float]:
    """`networkx.single_source_dijkstra_path_length`, by `graph.shortest_paths`."""
    if (np.asarray(G.adjacency.values) < 0).any():
        raise ValueError("Contradictory paths found:", "negative weights?")
    return _reached(G, graph.shortest_paths(G.adjacency, G.at(source), method="dijkstra"), cutoff, np.inf)


def single_source_bellman_ford_path_length(G: Graph, source: Hashable, weight: str = "weight") -> dict[Hashable, float]:
    """`networkx.single_source_bellman_ford_path_length`, by `graph.shortest_paths`."""
    try:
        lengths = graph.shortest_paths(G.adjacency, G.at(source))
    except ValueError as error:
        from networkx import NetworkXUnbounded

        raise NetworkXUnbounded("Negative cycle detected.") from error
    return _reached(G, lengths, None, np.inf)


def _reached(G: Graph, lengths: Any, cutoff: float | None, never: float) -> dict[Hashable, Any]:
    """The nodes with a way to them, those that are near first."""
    lengths = np.asarray(lengths)
    reached = np.flatnonzero((lengths != never) & (True if cutoff is None else lengths <= cutoff))
    reached = reached[np.argsort(lengths[reached], kind="stable")]
    return {G.nodes[k]: lengths[k].item() for k in reached.tolist()}


def _components(G: Graph, connection: str, directed: bool | None) -> tuple[int, Any]:
    """The number of components, and that of each node. Raises networkx.NetworkXNotImplemented for another kind."""
    if directed is not None and G.is_directed() != directed:
        from networkx import NetworkXNotImplemented

        raise NetworkXNotImplemented(f"not implemented for {'un' if directed else ''}directed type")
    if not len(G):
        return 0, np.zeros(0, np.int64)
    count, labels = graph.components(G.adjacency, connection=connection)
    return count, np.asarray(labels)


def _sets(G: Graph, connection: str, directed: bool) -> Iterator[set[Hashable]]:
    count, labels = _components(G, connection, directed)
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1]) if count else ():
        yield {G.nodes[k] for k in members.tolist()}


def _is_one(G: Graph, connection: str, directed: bool) -> bool:
    count, _ = _components(G, connection, directed)
    if not len(G):
        from networkx import NetworkXPointlessConcept

        raise NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return count == 1


def connected_components(G: Graph) -> Iterator[set[Hashable]]:
    """`networkx.connected_components`, by `graph.components`."""
    return _sets(G, "weak", False)


def weakly_connected_components(G: Graph) -> Iterator[set[Hashable]]:
    """`networkx.weakly_connected_components`, by `graph.components`."""
    return _sets(G, "weak", True)


def strongly_connected_components(G: Graph) -> Iterator[set[Hashable]]:
    """`networkx.strongly_connected_components`, by `graph.components`."""
    return _sets(G, "strong", True)


def number_connected_components(G: Graph) -> int:
    """`networkx.number_connected_components`, by `graph.components`."""
    return _components(G, "weak", False)[0]


def number_weakly_connected_components(G: Graph) -> int:
    """`networkx.number_weakly_connected_components`, by `graph.components`."""
    return _components(G, "weak", True)[0]


def number_strongly_connected_components(G: Graph) -> int:
    """`networkx.number_strongly_connected_components`, by `graph.components`."""
    return _components(G, "strong", True)[0]


def is_connected(G: Graph) -> bool:
    """`networkx.is_connected`, by `graph.components`."""
    return _is_one(G, "weak", False)


def is_weakly_connected(G: Graph) -> bool:
    """`networkx.is_weakly_connected`, by `graph.components`."""
    return _is_one(G, "weak", True)


def is_strongly_connected(G: Graph) -> bool:
    """`networkx.is_strongly_connected`, by `graph.components`."""
    return _is_one(G, "strong", True)


def node_connected_component(G: Graph, n: Hashable) -> set[Hashable]:
    """`networkx.node_connected_component`, by `graph.components`."""
    _, labels = _components(G, "weak", False)
    return {G.nodes[k] for k in np.flatnonzero(labels == labels[G.at(n)]).tolist()}
