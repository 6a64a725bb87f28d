"""Graph functions against SciPy's csgraph and GraphBLAS on one machine: least times of interleaved rounds, in one run.

python benchmarks/graphs.py GRAPH.mtx...      # ours / csgraph, ours / GraphBLAS where python-graphblas is installed
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from graphblas_peers import peers
from scipy.sparse import csgraph

import openwork as ow
from openwork import graph

ROUNDS, TURN = 15, 2e-3


def least(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each call in seconds; the rounds take turns, each of so many calls as fill a turn."""
    loops = {name: max(1, round(TURN / min(timeit.repeat(call, number=1, repeat=2)))) for name, call in calls.items()}
    times = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name] = min(times[name], timeit.timeit(call, number=loops[name]) / loops[name])
    return times


def rows(path: str) -> dict[str, dict[str, Callable[[], object]]]:
    """The calls of each row, ours and others'."""
    a: Any = ow.abs(ow.read(path)).astype("float64").asformat("csr")
    a = a.with_values(np.maximum(a.values, 1e-3))
    s = a.to_scipy()
    source = int(np.diff(a.pos(1)).argmax())
    both = (ow.pattern(a) | ow.pattern(a).T).asformat("csr").astype("float64")
    table: dict[str, dict[str, Callable[[], object]]] = {
        "bfs": {
            "ours": lambda: graph.bfs(a, source),
            "csgraph": lambda: csgraph.breadth_first_order(s, source),
        },
        "shortest_paths": {
            "ours": lambda: graph.shortest_paths(a, source),
            "csgraph": lambda: csgraph.dijkstra(s, indices=source),
        },
        "components": {
            "ours": lambda: graph.components(a),
            "csgraph": lambda: csgraph.connected_components(s, connection="weak"),
        },
        "strong components": {
            "ours": lambda: graph.components(a, connection="strong"),
            "csgraph": lambda: csgraph.connected_components(s, connection="strong"),
        },
        "pagerank": {"ours": lambda: graph.pagerank(a, tolerance=1e-8)},
        "triangles": {"ours": lambda: graph.triangles(a)},
        "core_numbers": {"ours": lambda: graph.core_numbers(both)},
        "betweenness of 4": {"ours": lambda: graph.betweenness(a, sources=[0, 1, 2, 3])},
    }
    for name, call in peers(s, source).items():
        table[name]["GraphBLAS"] = call
    return table


def main(paths: list[str]) -> None:
    """A table for each file."""
    for path in paths:
        print(f"\n{Path(path).name}")
        for name, calls in rows(path).items():
            times = least(calls)
            others = "  ".join(f"{times['ours'] / t:5.2f} of {n}" for n, t in times.items() if n != "ours")
            print(f"  {name:18} {times['ours'] * 1e3:9.3f} ms  {others}")


if __name__ == "__main__":
    main(sys.argv[1:])
