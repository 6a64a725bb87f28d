"""One valid call of every public function and method that takes an integer or a real number, those arguments given.

The tests walk the signatures: a new function with such a parameter fails them until it has a call here.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

import openwork as ow
from openwork import masked

DENSE = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
SQUARE = np.diag([4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]) + np.eye(7, k=1) + np.eye(7, k=-1)
CUBE = np.where(np.arange(24).reshape(2, 3, 4) % 3 == 0, np.arange(24.0).reshape(2, 3, 4), 0.0)
VECTOR = np.array([1.0, 0.0, 2.0])


def a() -> ow.Tensor:
    """A matrix in CSR."""
    return ow.asarray(sp.csr_array(DENSE))


def square() -> ow.Tensor:
    """A symmetric positive definite matrix in CSR."""
    return ow.asarray(sp.csr_array(SQUARE))


def coo() -> ow.Tensor:
    """A matrix in COO."""
    return a().asformat("coo")


def m() -> masked.MaskedTensor:
    """A masked matrix, all but its zeros specified."""
    return masked.masked_tensor(DENSE, DENSE != 0)


Call = tuple[tuple[Any, ...], dict[str, Any]]


def _call(*args: Any, **kwargs: Any) -> Call:
    return args, kwargs


_AXIS = (
    "all", "any", "count_nonzero", "logsumexp", "max", "mean", "median", "min", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanprod",
    "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
)  # fmt: skip
_ONE_AXIS = (
    "argmax", "argmin", "argsort", "cumulative_prod", "cumulative_sum", "log_softmax", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "softmax", "sort", "unstack",
)  # fmt: skip
_MASKED_DIM = (
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp", "mean", "median", "norm", "normalize",
    "prod", "softmax", "softmin", "std", "sum", "var",
)  # fmt: skip
_SHAPE = ("empty", "ones", "zeros")
_ORDINARY: dict[str, Call] = {
    **{name: _call(a(), axis=1) for name in (*_AXIS, *_ONE_AXIS, "expand_dims", "flip")},
    **{name: _call(shape=(2, 3)) for name in _SHAPE},
    **{f"{name}_like": _call(a(), shape=(2, 3)) for name in _SHAPE},
    **{name: _call(a(), 0.5, axis=1) for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "full_like": _call(a(), 1.5, shape=(2, 3)),
    "assembler": _call((2, 3), [0, 1, 1], [1, 2, 2]),
    "assembler ignore_negative": _call((2, 3), [0, -1, 1], [1, 2, 2], ignore_negative=True),
    "assembler blocks": _call((2, 3), [0, 1, 1], [1, 2, 2], blocks=(1, 1)),
    "assemble": _call("csr", (2, 3), pos={1: [0, 1, 3]}, crd={1: [1, 0, 2]}, values=[2.0, 3.0, 4.0]),
    "broadcast_to": _call(a(), (2, 2, 3)),
    "concat": _call([a(), a()], axis=1),
    "concatenate": _call([a(), a()], axis=1),
    "diag": _call(a(), k=1),
    "diagonal": _call(a(), offset=1, axis1=0, axis2=1),
    "diff": _call(a(), axis=1, n=1),
    "diags_array": _call(VECTOR, offsets=1, shape=(3, 4)),
    "eye": _call(3, 4, k=1),
    "eye_array": _call(3, 4, k=1),
    "format": _call("coo", ndim=3, batch=0, dense=1),
    "from_triplets": _call({"i": [0, 1], "j": [1, 2], "value": [1.0, 2.0]}, (2, 3)),
    "full": _call((2, 3), 1.5),
    "linspace": _call(0.0, 1.0, 3),
    "moveaxis": _call(a(), 0, 1),
    "mttkrp": _call(ow.asarray(CUBE, format="coo"), [np.ones((n, 2)) for n in CUBE.shape], 1),
    "permute_dims": _call(a(), (1, 0)),
    "random": _call((4, 5), 0.5, rng=1),
    "random_array": _call((4, 5), density=0.5, rng=1),
    "read": _call("absent.tns", base=1, max_ratio=100, shape=(2, 3)),
    "convert": _call("absent.tns", "never.ow", base=1, max_ratio=100),
    "repeat": _call(a(), 2, axis=1),
    "reshape": _call(a(), (3, 2)),
    "round": _call(a(), 1),
    "roll": _call(a(), 1, axis=1),
    "set_kernel_limit": _call(200),
    "advise": _call(a(), op="scale", seconds=0.001, threads=1),
    "set_num_threads": _call(1),
    "sparse_bsc_tensor": _call([0, 1, 1, 1], [0], np.ones((1, 2, 1)), (2, 3)),
    "sparse_bsr_tensor": _call([0, 1], [0], np.ones((1, 2, 1)), (2, 3)),
    "sparse_coo_tensor": _call([[0, 1], [1, 2]], [1.0, 2.0], (2, 3)),
    "sparse_csc_tensor": _call([0, 1, 1, 1], [0], [1.0], (2, 3)),
    "sparse_csr_tensor": _call([0, 1, 1], [0], [1.0], (2, 3)),
    "sparse_compressed_tensor": _call([0, 1, 1], [0], [1.0], (2, 3), layout="csr"),
    "squeeze": _call(a()[:1], axis=0),
    "swapaxes": _call(a(), 0, 1),
    "topk": _call(a(), 2, axis=1),
    "trace": _call(a(), offset=1, axis1=0, axis2=1),
    "stack": _call([a(), a()], axis=1),
    "take": _call(a(), 1, axis=1),
    "take_along_axis": _call(a(), np.array([[1], [0]]), axis=1),
    "tensordot": _call(a(), a().T, axes=1),
    "tile": _call(a(), 2),
    "tril": _call(a(), k=1),
    "triu": _call(a(), k=1),
    "ttm": _call(a(), np.ones((3, 2)), 1),
    "ttv": _call(a(), VECTOR, 1),
    "vecdot": _call(a(), a(), axis=1),
    "linalg.factorized refine": _call(square(), refine=1),
    "linalg.factorized tolerance": _call(square(), "qr", tolerance=1e-12),
    "linalg.amg": _call(ow.asarray(np.eye(7)), sweeps=1, coarse=1, max_levels=2, block=1),
    "linalg.chebyshev": _call(ow.asarray(np.eye(7)), degree=2),
    "linalg.iluk": _call(square(), level=1),
    "linalg.ilut": _call(square(), fill=3),
    "linalg.cross": _call(ow.asarray(VECTOR), ow.asarray(VECTOR), axis=0),
    "linalg.diagonal": _call(a(), offset=1, axis1=0, axis2=1),
    "linalg.eigs": _call(square(), k=2, v0=np.ones(7)),
    "linalg.eigsh": _call(square(), k=2),
    "linalg.matrix_norm": _call(a(), axis=(0, 1)),
    "linalg.matrix_power": _call(square(), 2),
    "linalg.norm": _call(a(), axis=1),
    "linalg.onenormest": _call(square(), t=2, itmax=5),
    "linalg.pca": _call(square(), k=2),
    "linalg.randomized_svd": _call(square(), k=2, oversample=1, iterations=1, rng=0),
    "linalg.svds": _call(square(), k=2),
    "linalg.tensordot": _call(a(), a().T, axes=1),
    "linalg.trace": _call(a(), offset=1),
    "linalg.vecdot": _call(a(), a(), axis=1),
    "linalg.vector_norm": _call(a(), axis=1, ord=3.0),
    **{f"Tensor.{name}": _call(a(), axis=1) for name in (*_AXIS, "argmax", "argmin") if name != "logsumexp"},
    "graph.bfs": _call(square(), 1),
    "graph.pagerank": _call(square(), max_iterations=50, damping=0.5, tolerance=1e-3),
    "graph.sample_neighbors": _call(square(), [0, 1], 1, rng=0),
    "graph.shortest_paths": _call(square(), 1),
    "graph.sssp": _call(square(), 1),
    "decomposition.cp_als": _call(ow.asarray(CUBE), 2, maxiter=1, tol=0.1, rng=0),
    "decomposition.tucker": _call(ow.asarray(CUBE), 2, maxiter=1, tol=0.1, rng=0),
    **{f"masked.{name}": _call(m(), dim=1) for name in _MASKED_DIM},
    **{f"masked.{name} axis": _call(m(), axis=1) for name in ("log_softmax", "normalize", "softmax")},
    "masked.attention": _call(np.eye(2), np.eye(2), np.eye(2), ow.asarray(np.eye(2), format="csr"), scale=0.5),
    "masked.concat": _call([m(), m()], axis=1),
    "masked.layer_norm": _call(m(), axis=1, eps=0.5),
    "masked.norm ord": _call(m(), ord=1.0),
    "masked.normalize p": _call(m(), p=1.0),
    "masked.normalize ord": _call(m(), ord=1.0),
    "masked.normalize eps": _call(m(), eps=0.5),
    "masked.pad": _call(m(), ((1, 0), (0, 1))),
    "masked.stack": _call([m(), m()], axis=1),
    "masked.std correction": _call(m(), correction=0.5),
    "masked.var correction": _call(m(), correction=0.5),
    "plot.rows": _call(a(), axis=1),
    "arange": _call(3.0, 9.0, 2.0),
    **{f"{name} correction": _call(a(), correction=0.5) for name in ("nanstd", "nanvar", "std", "var")},
    **{f"{name} ddof": _call(a(), ddof=0.5) for name in ("nanstd", "nanvar", "std", "var")},
    "advise seconds": _call(a(), op="scale", seconds=0.001, threads=1),
    "set_compile_notice": _call(0.5),
    "linalg.chebyshev ratio": _call(ow.asarray(np.eye(7)), ratio=3.0),
    "linalg.ilut drop_tol": _call(square(), drop_tol=0.5),
    "linalg.amg strength": _call(ow.asarray(np.eye(7)), strength=0.5),
    "linalg.ic0": _call(square(), shift=0.5),
    "linalg.ssor": _call(square(), omega=0.5),
    "Tensor.diagonal": _call(a(), offset=1, axis1=0, axis2=1),
    "Tensor.crd": _call(a(), 1),
    "Tensor.pos": _call(a(), 1),
    "Tensor.getnnz": _call(a(), axis=1),
    "Tensor.resize": _call(a(), 2, 3),
    "Tensor.setdiag": _call(a(), 1.5, k=0),
    "Tensor.tobsr": _call(a(), blocksize=(1, 1)),
    "Tensor.index_select": _call(a(), 1, np.array([0, 1])),
    "Tensor.narrow": _call(a(), 1, 0, 1),
    "Tensor.select": _call(a(), 1, 0),
    "Tensor.sparse_resize_": _call(coo(), (2, 3), 2, 0),
    "Tensor.stride": _call(a().asformat("dense"), 1),
    "Tensor.to_sparse": _call(a(), 2),
    "Tensor.to_sparse blocksize": _call(a(), layout="bsr", blocksize=(1, 1)),
    "Tensor.to_sparse dense_dim": _call(a(), dense_dim=1),
    "Tensor.to_sparse_bsc": _call(a(), (1, 1), 0),
    "Tensor.to_sparse_bsr": _call(a(), (1, 1), 0),
    "Tensor.to_sparse_csc": _call(a(), 0),
    "Tensor.to_sparse_csr": _call(a(), 0),
    "Tensor.transpose": _call(a(), (1, 0)),
    "Tensor.transpose_": _call(a(), 0, 1),
}
if find_spec("torch"):
    import torch

    _ORDINARY |= {
        "nn.GraphAttention": _call(4, 2, 1),
        "nn.GraphConv": _call(4, 2),
        **{
            f"nn.{name}": _call(4, 2, kdim=4, vdim=4, dropout=0.5)
            for name in ("SparseAttention", "SparseMultiheadAttention")
        },
        **{f"nn.{name}": _call(4, 2, padding_idx=1) for name in ("SparseEmbedding", "SparseEmbeddingBag")},
        "nn.attend": _call(ow.asarray(np.eye(2)), *[torch.eye(2)] * 3, dropout=0.5, scale=0.5),
        "nn.neighbor_batches": _call(square(), [0, 1], (2,), batch_size=1, shuffle=False),
        "nn.prune": _call(torch.nn.Linear(4, 4), amount=0.5),
    }

_STOPS: dict[str, Any] = {"rtol": 0.5, "atol": 0.5, "maxiter": 50}
_ARPACK: dict[str, Any] = {"ncv": 6, "maxiter": 200, "tol": 0.5}
_PIVOTS: dict[str, Any] = {"relax": 2, "panel_size": 2, "diag_pivot_thresh": 0.5}
_LEAST: dict[str, Any] = {"atol": 0.5, "btol": 0.5, "conlim": 1e4}
_SOLVERS: dict[str, tuple[Call, dict[str, Any]]] = {
    **{name: (_call(square(), np.ones(7)), _STOPS) for name in ("bicg", "bicgstab", "cg", "cgs", "qmr", "tfqmr")},
    "gcrotmk": (_call(square(), np.ones(7)), {**_STOPS, "m": 5, "k": 5}),
    "gmres": (_call(square(), np.ones(7)), {**_STOPS, "restart": 5}),
    "lgmres": (_call(square(), np.ones(7)), {**_STOPS, "inner_m": 5, "outer_k": 2}),
    "minres": (_call(square(), np.ones(7)), {"rtol": 0.5, "shift": 0.0, "maxiter": 50}),
    "lsmr": (_call(square(), np.ones(7)), {**_LEAST, "maxiter": 50}),
    "lsqr": (_call(square(), np.ones(7)), {**_LEAST, "iter_lim": 50}),
    **{name: (_call(square(), k=2, v0=np.ones(7)), _ARPACK) for name in ("eigs", "eigsh", "svds")},
    "pca": (_call(square(), k=2, v0=np.ones(7)), {"maxiter": 200, "tol": 0.5}),
    "factorized": (_call(square()), _PIVOTS),
    "splu": (_call(square()), _PIVOTS),
    "spilu": (_call(square()), {**_PIVOTS, "drop_tol": 0.5, "fill_factor": 4.0}),
    "lobpcg": (
        _call(square(), np.eye(7, 1) + 0.1, tol=50.0),
        {"maxiter": 5, "verbosityLevel": 0, "restartControl": 20, "tol": 50.0},
    ),
}
_ORDINARY |= {
    f"linalg.{name} {key}": (args, {**kwargs, key: value})
    for name, ((args, kwargs), options) in _SOLVERS.items()
    for key, value in options.items()
}
_ORDINARY["Tensor.reshape shape"] = _call(a(), shape=(3, 2))
OPTIONS: dict[str, tuple[Call, tuple[str, ...]]] = {
    "linalg.cg": (_call(square(), np.ones(7)), ("maxiter",)),
    "linalg.gmres": (_call(square(), np.ones(7)), ("maxiter", "restart")),
    "linalg.minres": (_call(square(), np.ones(7)), ("maxiter",)),
    "linalg.bicgstab": (_call(square(), np.ones(7)), ("maxiter",)),
    **{
        f"linalg.{name}": (_call(square(), np.ones(7)), ("maxiter",))
        for name in ("bicg", "cgs", "lsmr", "qmr", "tfqmr")
    },
    "linalg.gcrotmk": (_call(square(), np.ones(7)), ("maxiter", "m", "k")),
    "linalg.lgmres": (_call(square(), np.ones(7)), ("maxiter", "inner_m", "outer_k")),
    "linalg.splu": (_call(square()), ("relax", "panel_size")),
    "linalg.spilu": (_call(square()), ("relax", "panel_size")),
    "linalg.factorized": (_call(square()), ("relax", "panel_size")),
    "linalg.lsqr": (_call(square(), np.ones(7)), ("iter_lim",)),
    "linalg.eigsh": (_call(square(), 2), ("maxiter", "ncv")),
    "linalg.eigs": (_call(square(), 2), ("maxiter", "ncv")),
    "linalg.svds": (_call(square(), 2), ("maxiter", "ncv")),
    "linalg.lobpcg": (_call(square(), np.eye(7, 1)), ("maxiter",)),
    "linalg.expm_multiply": (_call(square(), np.ones(7)), ("num",)),
}
"""Keywords that are handed on to SciPy."""

NAMES = {
    "axes", "axis", "axis1", "axis2", "destination", "dim", "dim0", "dim1", "k", "n", "offset", "repeats",
    "repetitions", "shape", "shift", "size", "source",
}  # fmt: skip
"""Names of integer parameters whose annotation may be wider."""

NOT_INTEGERS = {"random": {"rng", "values"}, "random_array": {"rng"}, "Tensor.power": {"n"}}
"""Parameters whose annotation has `int` in it and that are something else besides."""


HOMES = ("linalg", "graph", "decomposition", "masked", "plot", *(("nn",) if find_spec("torch") else ()))
"""The public modules whose functions and classes are walked, beside the namespace itself."""


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of the namespaces and every public method of a Tensor, by dotted name."""
    for home in ("", *HOMES):
        module = importlib.import_module(f"openwork.{home}".rstrip("."))
        for name in sorted(n for n in getattr(module, "__all__", dir(module)) if not n.startswith("_")):
            found = getattr(module, name)
            if inspect.isfunction(found) or (inspect.isclass(found) and home == "nn"):
                yield f"{home}.{name}".lstrip("."), found
    for name in sorted(dir(ow.Tensor)):
        method = inspect.getattr_static(ow.Tensor, name)
        if not name.startswith("_") and inspect.isfunction(method):
            yield f"Tensor.{name}", method


def integer_parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function that are documented as integers, by annotation or by name."""
    found = []
    for p in inspect.signature(function).parameters.values():
        said = str(p.annotation)
        if p.name in NOT_INTEGERS.get(name, ()) or "float" in said:
            continue
        if p.name in NAMES or re.search(r"\bint\b", said):
            found.append(p)
    return found


def real_parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function that are annotated as real numbers."""
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if re.fullmatch(r"float( \| None)?", str(p.annotation))]


def call_of(name: str, parameter: str = "") -> Call | None:
    """A valid call of a function, with a parameter that its other call leaves out; where it has none, its namesake's."""
    base = name.removeprefix("Tensor.")
    keys = (f"{name} {parameter}", f"{base} {parameter}", name, base)
    return next((_ORDINARY[key] for key in keys if key in _ORDINARY), None)


def every_integer() -> list[tuple[str, str]]:
    """(function, parameter) of all integer parameters."""
    return [(name, p.name) for name, f in functions() for p in integer_parameters(name, f)]


def every_real() -> list[tuple[str, str]]:
    """(function, parameter) of all parameters that are real numbers."""
    return [(name, p.name) for name, f in functions() for p in real_parameters(name, f)]
