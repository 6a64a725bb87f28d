"""Constants of a machine and a network -> seconds, bytes and dollars of methods over blocks on 1 to 1,000 machines.

    python benchmarks/scale_model.py [NAME=VALUE ...]

Per product: seconds = elements * columns / rate + bytes / network + blocks * message + latency. What is measured and
what is assumed stands beside each constant; `benchmarks/cluster.py` measures. An element takes 12 bytes, a vector's 8.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields

TERA = 1e12


@dataclass(frozen=True)
class Constants:
    """Of one machine of 16 cores, its network and Dask."""

    element_rate: float = 0.7e9  # elements a second of one core, CSR @ vector: measured
    column_gain: float = 2.0  # how much faster each of 8 columns is than a vector alone: measured
    cores: int = 16  # assumed
    core_share: float = 0.5  # of 16 cores' rate that the memory's bandwidth allows: assumed
    network: float = 3.0e9  # bytes a second of one machine: 25 Gbit/s, assumed
    serial: float = 1.0e9  # bytes a second of one process and its sockets: assumed; measured in a sandbox 0.1e9
    message: float = 0.21e-3  # seconds for each block of a product: measured
    latency: float = 1.6e-3  # seconds of a product whatever its size: measured
    task: float = 1.4e-3  # seconds for each task of Dask: measured
    round: float = 10e-3  # seconds of a round of Dask's tasks: measured
    memory: float = 128e9  # bytes of a machine: assumed
    dollars: float = 1.0  # of a machine and hour: assumed


@dataclass(frozen=True)
class Cost:
    """Of one product."""

    compute: float
    send: float
    tasks: float
    client: float
    """bytes of vectors that one process holds"""
    worker: float
    """bytes on each worker"""

    @property
    def seconds(self) -> float:
        return self.compute + self.send + self.tasks


def _compute(c: Constants, elements: float, columns: float, machines: int) -> float:
    gain = c.column_gain if columns > 1 else 1.0
    return elements * columns / (c.element_rate * gain * c.cores * c.core_share * machines)


def _on_client(c: Constants, elements: float, down: float, up: float, columns: float, machines: int) -> Cost:
    """Vectors on the client: all bytes go through its one process; `down` and `up` are rows of all blocks together."""
    sent = 8 * columns * (down + up)
    return Cost(
        _compute(c, elements, columns, machines), sent / min(c.network, c.serial), machines * c.message + c.latency,
        8 * columns * max(up, down / machines), 12 * elements / machines,
    )  # fmt: skip


def tall(c: Constants, elements: float, machines: int) -> Cost:
    """A.H @ (A @ X) in rows of 100 elements, 1e5 columns, X of 64: a step of randomized SVD (`normal_matmat`)."""
    cost = _on_client(c, elements, 1e5 * machines, 1e5 * machines, 64, machines)
    return Cost(2 * cost.compute, cost.send, cost.tasks, 8 * 64 * 1e5, cost.worker)


def _nodes(elements: float) -> float:
    return elements / 1000


def rows(c: Constants, elements: float, machines: int) -> Cost:
    """A step of PageRank or CG of a random graph of 1,000 edges a node by row blocks: each block reads all columns."""
    n = _nodes(elements)
    return _on_client(c, elements, n * machines, n, 1, machines)


def grid(c: Constants, elements: float, machines: int) -> Cost:
    """The same in a grid of blocks."""
    n, side = _nodes(elements), machines**0.5
    return _on_client(c, elements, n * side, n * side, 1, machines)


def parted(c: Constants, elements: float, machines: int) -> Cost:
    """The same, of a graph whose parts by METIS read a tenth of a part more than their own columns."""
    n = _nodes(elements)
    return _on_client(c, elements, 1.1 * n, n, 1, machines)


def on_workers(c: Constants, elements: float, machines: int) -> Cost:
    """The same in a grid, vectors as arrays of Dask on the workers, which send to each other all at once."""
    n, side = _nodes(elements), machines**0.5
    sent = 8 * (n / side) * 2 if machines > 1 else 0.0
    return Cost(
        _compute(c, elements, 1, machines), sent / min(c.network, c.serial), 3 * machines * c.task + c.round,
        0.0, 12 * elements / machines + 32 * n / side,
    )  # fmt: skip


def factors(c: Constants, elements: float, machines: int) -> Cost:
    """A factor of CP-ALS of rank 16, extents 1e7, 1e6 and 1e5 cut along the first."""
    short = 1.1e6 * machines
    cost = _on_client(c, elements, short, 1e7, 16, machines)
    return Cost(2 * cost.compute, cost.send, cost.tasks, 8 * 16 * 1.1e7, cost.worker)


def components(c: Constants, elements: float, machines: int) -> Cost:
    """Weak components: once, by row blocks; forests of two numbers of 8 bytes a node, merged on workers in rounds."""
    n, rounds = _nodes(elements), math.ceil(math.log2(machines)) if machines > 1 else 0
    forest = 16 * n
    return Cost(
        4 * _compute(c, elements, 1, machines) + rounds * 2 * n / 1e8,
        (rounds + 1) * forest / min(c.network, c.serial), 2 * machines * c.task + (rounds + 1) * c.round,
        forest + 8 * n, 12 * elements / machines + 2 * forest,
    )  # fmt: skip


METHODS: dict[str, Callable[[Constants, float, int], Cost]] = {
    "randomized SVD, tall, a power": tall,
    "PageRank, CG: rows": rows,
    "PageRank, CG: grid": grid,
    "PageRank, CG: METIS": parted,
    "PageRank: grid, vectors on workers": on_workers,
    "CP-ALS, a factor": factors,
    "components, all": components,
}


def table(c: Constants, elements_each: float = 1e9, machines: tuple[int, ...] = (1, 10, 100, 1000)) -> list[str]:
    """Rows of Markdown: seconds of a product (its compute, send, tasks), with as many elements on each machine."""
    out = ["| method | " + " | ".join(f"{m:,} machines, {m * elements_each:.0e}" for m in machines) + " | dollars |"]
    out.append("| --- |" + " --- |" * (len(machines) + 1))
    for name, method in METHODS.items():
        cells = []
        for m in machines:
            k = method(c, m * elements_each, m)
            room = "" if max(k.client, k.worker) < c.memory else ", no room"
            cells.append(f"{k.seconds:.3g} ({k.compute:.2g}, {k.send:.2g}, {k.tasks:.2g}{room})")
        out.append(f"| {name} | " + " | ".join(cells) + f" | {k.seconds * machines[-1] * c.dollars / 3600:.2f} |")
    return out


def main(arguments: list[str]) -> None:
    """Print the table, with constants that the arguments change."""
    known = {f.name: f.type for f in fields(Constants)}
    said = dict(a.split("=", 1) for a in arguments)
    if unknown := sorted(set(said) - set(known)):
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    print("\n".join(table(Constants(**{name: float(text) for name, text in said.items()}))))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1:])
